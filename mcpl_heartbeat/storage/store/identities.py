"""Identities in the store: who asks, who is registered, whom a push can reach."""

from collections.abc import Collection, Iterable

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import rows, schema
from mcpl_heartbeat.storage.store.sql import among
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch import identity
from mcpl_heartbeat.watch.arguments import RegisterArguments
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import RegisterResult
from mcpl_heartbeat.watch.rows import Identity

_TABLE = schema.identities
_BY_NAMESPACE = sa.select(*rows.IDENTITY).where(among(_TABLE.c.namespace))
_AGENTS = sa.select(_TABLE.c.agent).where(among(_TABLE.c.agent))
_INSERT = sa.insert(_TABLE)
_PRESENCE = schema.presence
_PRESENT = sa.select(_PRESENCE.c.agent, _PRESENCE.c.feature_set).where(
    among(_PRESENCE.c.agent), _PRESENCE.c.until > sa.bindparam("real")
)
WATCH, TASKS = "watch", "tasks"
"""The feature sets under which something is pushed to an agent."""


def by_secret(tx: Transaction, secrets: Iterable[str]) -> dict[str, Identity]:
    """Find whose these secrets are; those of nobody are missing in the answer."""
    of = {secret: identity.namespace_of(tx.salt, secret) for secret in set(secrets)}
    found = by_namespace(tx, of.values())
    return {secret: found[namespace] for secret, namespace in of.items() if namespace in found}


def identify(tx: Transaction, secret: str) -> Identity | None:
    """Say whose secret it is."""
    return by_secret(tx, [secret]).get(secret)


def by_namespace(tx: Transaction, namespaces: Collection[str]) -> dict[str, Identity]:
    """Read the identities of these namespaces."""
    if not namespaces:
        return {}
    found = map(rows.identity, tx.conn.execute(_BY_NAMESPACE, {"keys": list(namespaces)}))
    return {each.namespace: each for each in found}


def registered(tx: Transaction, agents: Collection[str]) -> frozenset[str]:
    """Give those of ``agents``, the ``<id>`` of addresses, that exist."""
    if not agents:
        return frozenset()
    return frozenset(tx.conn.execute(_AGENTS, {"keys": list(agents)}).scalars())


def present(tx: Transaction, agents: Collection[str]) -> frozenset[tuple[str, str]]:
    """Give those of ``agents`` that some server can push to now, each with the feature set."""
    if not agents:
        return frozenset()
    sought = {"keys": list(agents), "real": tx.now.real}
    return frozenset((row[0], row[1]) for row in tx.conn.execute(_PRESENT, sought))


def register(tx: Transaction, arguments: RegisterArguments) -> RegisterResult | Failure:
    """Make an identity, or find the one that the secret has."""
    secret = arguments.agent_secret
    if not isinstance(secret, str):
        secret = identity.new_secret(tx.random(identity.SECRET_BYTES))
    namespace = identity.namespace_of(tx.salt, secret)
    existing = by_namespace(tx, [namespace]).get(namespace)
    agent = identity.agent_of(tx.salt, namespace)
    new, outcome = identity.register(existing, arguments, secret, namespace, agent, tx.now)
    if new is not None:
        tx.conn.execute(_INSERT, rows.identity_values(new))
    return outcome
