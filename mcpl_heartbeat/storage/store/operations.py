"""The calls of the tools, carried out in one transaction: who asks, what is due, what follows."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import UNSET, UnsetType

from mcpl_heartbeat.storage.store import (
    beats,
    briefing,
    due,
    fires,
    identities,
    journal,
    leases,
    mail,
    news,
    rows,
    schema,
    tasks,
    work,
)
from mcpl_heartbeat.storage.store.ports import Ask, Outcome, Stats
from mcpl_heartbeat.storage.store.sql import ARMED, PENDING, Key
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch import checkpoints
from mcpl_heartbeat.watch import leases as decide
from mcpl_heartbeat.watch.arguments import (
    CheckpointPutArguments,
    HeartbeatArguments,
    LeaseArguments,
    LeaseReleaseArguments,
    LeaseRenewArguments,
    RegisterArguments,
    ResumePacketArguments,
    SendArguments,
    SwitchStatusArguments,
    WhoamiArguments,
)
from mcpl_heartbeat.watch.failures import Failure, failure
from mcpl_heartbeat.watch.mail import message, sent
from mcpl_heartbeat.watch.results import RegisterResult, Result
from mcpl_heartbeat.watch.rows import Identity, Lease

FENCE_BYTES = 16
PIECE = 1_000
"""How many envelopes are dropped, or scopes gone through, in one transaction of housekeeping."""

_INSERT_CHECKPOINT = sa.insert(schema.checkpoints)
_CHANGE_CHECKPOINT = (
    sa.update(schema.checkpoints)
    .where(
        schema.checkpoints.c.namespace == sa.bindparam("of_namespace"),
        schema.checkpoints.c.scope == sa.bindparam("of_scope"),
    )
    .values({name: sa.bindparam(name) for name in ("version", "saved_at", "content")})
)
_ARMED = sa.select(sa.func.count()).select_from(schema.switches).where(ARMED)
_WAITING = sa.select(sa.func.count()).select_from(schema.envelopes).where(PENDING)
_GAPS = sa.select(sa.func.count()).select_from(schema.gaps)


def carry_out(tx: Transaction, asks: Sequence[Ask]) -> list[Outcome]:
    """Carry out calls in their order. Raises only for what is ours, or the database's."""
    known = identities.by_secret(tx, [ask.secret for ask in asks if ask.secret])
    outcomes: list[Outcome] = []
    for together, group in itertools.groupby(asks, key=_is_beat):
        if together:
            outcomes += _beats(tx, known, list(group))
        else:
            outcomes += [_one(tx, known, ask) for ask in group]
    return [_timed(outcome, tx) for outcome in outcomes]


def look(tx: Transaction, ask: Ask) -> Outcome:
    """Carry out a call that only reads, in a transaction that may be read-only.

    Raises ``Unsettled`` when a switch or a task that it would show is due.
    """
    who = identities.identify(tx, ask.secret) if ask.secret else None
    return _timed(_unauthorized() if who is None else _read(tx, who, ask, work.LOOKING), tx)


def stats(tx: Transaction) -> Stats:
    """Count what is armed, what waits and how often nobody watched."""
    available, claimed = tasks.totals(tx)
    return Stats(
        armed=int(tx.conn.execute(_ARMED).scalar_one()),
        mail_waiting=int(tx.conn.execute(_WAITING).scalar_one()),
        gaps=int(tx.conn.execute(_GAPS).scalar_one()),
        tasks_available=available,
        tasks_claimed=claimed,
    )


def housekeeping(tx: Transaction, after: Key = ("", "")) -> Key | None:
    """Drop a piece of what nobody needs any more: all of it at once would hold everybody up.

    ``after``: what the piece before gave; ``None`` says that all is done.
    """
    news.forget_absent(tx)
    if mail.forget_old(tx, PIECE):
        return after
    return journal.trim(tx, after, PIECE)


def _is_beat(ask: Ask) -> bool:
    return isinstance(ask.arguments, HeartbeatArguments)


def _unauthorized() -> Failure:
    return failure(
        "unauthorized",
        "No registered agent has this secret, or none was sent.",
        "Register first, or send Authorization: Bearer <agent_secret>.",
    )


def _timed(outcome: Outcome, tx: Transaction) -> Outcome:
    if isinstance(outcome, Failure) and outcome.server_time is UNSET:
        return msgspec.structs.replace(outcome, server_time=tx.now.server_time)
    return outcome


def _beats(tx: Transaction, known: Mapping[str, Identity], asks: Sequence[Ask]) -> list[Outcome]:
    theirs: list[beats.Beat] = []
    for ask in asks:
        who = known.get(ask.secret or "")
        if who is not None and isinstance(ask.arguments, HeartbeatArguments):
            theirs.append((who, ask.arguments))
    outcomes = iter(beats.take(tx, theirs))
    return [next(outcomes) if ask.secret in known else _unauthorized() for ask in asks]


def _one(tx: Transaction, known: dict[str, Identity], ask: Ask) -> Outcome:
    if isinstance(ask.arguments, RegisterArguments):
        outcome = identities.register(tx, ask.arguments)
        if isinstance(outcome, RegisterResult) and isinstance(outcome.agent_secret, str):
            known.update(identities.by_secret(tx, [outcome.agent_secret]))
        return outcome
    who = known.get(ask.secret or "")
    if who is None:
        return _unauthorized()
    call = _WRITES.get(ask.tool)
    if call is not None:
        return call(tx, who, ask.arguments)
    return _read(tx, who, ask, work.WRITING)


def _read(tx: Transaction, who: Identity, ask: Ask, hand: work.Hand) -> Outcome:
    arguments = ask.arguments
    if isinstance(arguments, SwitchStatusArguments):
        return briefing.status(tx, who, arguments, hand.switches)
    if isinstance(arguments, ResumePacketArguments):
        return briefing.resume(tx, who, arguments, hand.switches)
    if isinstance(arguments, WhoamiArguments):
        return briefing.whoami(tx, who)
    return work.read(tx, who, arguments, hand)


def _send(tx: Transaction, who: Identity, arguments: SendArguments) -> Outcome:
    envelope = message(arguments, who.agent, mail.task_id(tx), tx.now)
    if isinstance(envelope, Failure):
        return envelope
    if envelope.agent not in identities.registered(tx, [envelope.agent]):
        return beats.not_registered(arguments.to)
    post = mail.Post(tx)
    placed = post.put(envelope)
    if isinstance(placed, Failure):
        return placed
    post.flush()
    return sent(envelope, tx.now)


def _lease(tx: Transaction, who: Identity, arguments: LeaseArguments) -> Outcome:
    before = _settled_lease(tx, who, arguments.key, arguments.scope)
    fence = f"fence_{tx.random(FENCE_BYTES).hex()}"
    taken = decide.take(before, who.namespace, arguments, fence, tx.now)
    return _keep(tx, before, taken)


def _renew(tx: Transaction, who: Identity, arguments: LeaseRenewArguments) -> Outcome:
    before = _settled_lease(tx, who, arguments.key, UNSET)
    return _keep(tx, before, decide.renew(before, arguments, tx.now))


def _release(tx: Transaction, who: Identity, arguments: LeaseReleaseArguments) -> Outcome:
    before = _settled_lease(tx, who, arguments.key, UNSET)
    return _keep(tx, before, decide.release(before, arguments, tx.now))


def _settled_lease(
    tx: Transaction, who: Identity, key: str, scope: str | UnsetType
) -> Lease | None:
    """Read a lease once nothing is due on the scope that it has, or is to have.

    A switch that is due may let go of it: who gets it must not depend on when a sweep comes.
    """
    lease = leases.load(tx, who.namespace, key)
    scopes = {scope} if isinstance(scope, str) else set()
    if lease is not None and lease.held and lease.scope is not None:
        scopes.add(lease.scope)
    if not scopes:
        return lease
    due.settle(tx, [(who.namespace, each) for each in scopes])
    return leases.load(tx, who.namespace, key)


def _keep(tx: Transaction, before: Lease | None, taken: decide.Taken) -> Result:
    if taken.lease is not None:
        if before is None:
            leases.insert(tx, taken.lease)
        else:
            leases.write(tx, [taken.lease])
    journal.write(tx, taken.entries)
    return taken.result


def _checkpoint(tx: Transaction, who: Identity, arguments: CheckpointPutArguments) -> Outcome:
    named = arguments.scope if arguments.workflow_id is UNSET else arguments.workflow_id
    key = (who.namespace, named if isinstance(named, str) else "")
    due.settle(tx, [key])
    before = fires.checkpoints(tx, [key]).get(key)
    put = checkpoints.put(before, who.namespace, arguments, tx.now)
    if isinstance(put, Failure):
        return put
    checkpoint, result, entries = put
    values = rows.checkpoint_values(checkpoint)
    values["of_namespace"], values["of_scope"] = key
    if not tx.conn.execute(_CHANGE_CHECKPOINT, values).rowcount:
        tx.conn.execute(_INSERT_CHECKPOINT, rows.checkpoint_values(checkpoint))
    journal.write(tx, entries)
    return result


_WRITES: dict[str, Callable[[Transaction, Identity, Any], Outcome]] = {
    "send": _send,
    "inbox_poll": mail.poll,
    "inbox_ack": mail.ack,
    "inbox_nack": mail.nack,
    "lease": _lease,
    "lease_renew": _renew,
    "lease_release": _release,
    "checkpoint_put": _checkpoint,
    "create_agent_task": work.create,
    "claim_agent_task": work.claim,
    "heartbeat_agent_task": work.heartbeat,
    "submit_agent_task": work.submit,
    "release_agent_task": work.release,
}
