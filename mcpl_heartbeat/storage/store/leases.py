"""Leases in the store."""

from collections import defaultdict
from collections.abc import Collection, Iterable

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import rows, schema
from mcpl_heartbeat.storage.store.sql import HELD, ByKeys, Key, among
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch.rows import Lease

_TABLE = schema.leases
_ONE = sa.and_(
    _TABLE.c.namespace == sa.bindparam("of_namespace"), _TABLE.c.key == sa.bindparam("of_key")
)
_LOAD = sa.select(*rows.LEASE).where(_ONE)
_INSERT = sa.insert(_TABLE)
_REST = [column.name for column in _TABLE.columns if column.name not in ("namespace", "key")]
_CHANGE = sa.update(_TABLE).where(_ONE).values({name: sa.bindparam(name) for name in _REST})
_LET_GO = sa.update(_TABLE).where(_ONE).values(held=0)
_LIVE = sa.and_(HELD, _TABLE.c.expires_watched > sa.bindparam("watched"))
_OF_SCOPES = ByKeys(rows.LEASE, (_TABLE.c.namespace, _TABLE.c.scope), HELD)
_UNSCOPED = (
    sa.select(_TABLE.c.namespace, sa.func.count())
    .where(_LIVE, _TABLE.c.scope.is_(None), among(_TABLE.c.namespace))
    .group_by(_TABLE.c.namespace)
)
_COUNT = sa.select(sa.func.count()).where(_LIVE, _TABLE.c.namespace == sa.bindparam("namespace"))


def load(tx: Transaction, namespace: str, key: str) -> Lease | None:
    """Read the lease of that key, held or free."""
    row = tx.conn.execute(_LOAD, {"of_namespace": namespace, "of_key": key}).first()
    return None if row is None else rows.lease(row)


def of_scopes(tx: Transaction, keys: Collection[Key]) -> dict[Key, list[Lease]]:
    """Read the leases of these scopes that were not let go, by scope; some may have run out."""
    found: dict[Key, list[Lease]] = defaultdict(list)
    kept = list(_OF_SCOPES(tx, keys))
    tx.weigh(len(kept))
    for lease in sorted(map(rows.lease, kept), key=lambda lease: lease.key):
        found[lease.namespace, str(lease.scope)].append(lease)
    return found


def unscoped(tx: Transaction, namespaces: Collection[str]) -> dict[str, int]:
    """Count the leases held that name no scope, which no fire can reach."""
    sought = {"keys": list(namespaces), "watched": tx.now.watched}
    return {row[0]: row[1] for row in tx.conn.execute(_UNSCOPED, sought)}


def count(tx: Transaction, namespace: str) -> int:
    """Count the leases held in a namespace."""
    sought = {"namespace": namespace, "watched": tx.now.watched}
    return int(tx.conn.execute(_COUNT, sought).scalar_one())


def insert(tx: Transaction, lease: Lease) -> None:
    """Keep the first lease of a key."""
    tx.conn.execute(_INSERT, rows.lease_values(lease))


def let_go(tx: Transaction, leases: Iterable[Lease]) -> None:
    """Write that leases which were read in this transaction are held no longer."""
    freed = [{"of_namespace": lease.namespace, "of_key": lease.key} for lease in leases]
    if freed:
        tx.conn.execute(_LET_GO, freed)


def write(tx: Transaction, leases: Iterable[Lease]) -> None:
    """Write rows that exist."""
    changed = []
    for lease in leases:
        values = rows.lease_values(lease)
        values["of_namespace"], values["of_key"] = values.pop("namespace"), values.pop("key")
        changed.append(values)
    if changed:
        tx.conn.execute(_CHANGE, changed)
