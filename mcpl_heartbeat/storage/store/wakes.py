"""Waking a worker when claimable work appears (``wake_on_tasks``), once each time.

Work *appears* when a task becomes claimable: it is made, released, given back, or its lease runs
out. A namespace that has an armed switch with ``wake_on_tasks`` is told, by one server at a time,
of work that has appeared since it was last told. It counts what appeared before this millisecond:
what comes in it is seen by the next look, so nothing is told twice and nothing is missed.

Who is told may die before it claims anything. So a switch of that kind that was armed since then,
after the generation before it had fired, asks for one wake more, for all that can be claimed. One
that was disarmed in between does not: whoever ends each turn that way would be woken for ever.
"""

import hashlib

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import schema, tasks
from mcpl_heartbeat.storage.store.ports import Work
from mcpl_heartbeat.storage.store.sql import ARMED
from mcpl_heartbeat.storage.store.transaction import Transaction

CLAIM_MS = 60_000
"""How long (ms) a server has to get it pushed before another may try."""

_SWITCHES, _TASKS, _WAKES = schema.switches.c, schema.tasks.c, schema.task_wakes
_NAMESPACE: sa.BindParameter[str] = sa.bindparam("of_namespace")
_REAL: sa.BindParameter[int] = sa.bindparam("real")
_WATCHED: sa.BindParameter[int] = sa.bindparam("watched")
_WANTED = (
    sa.select(_SWITCHES.scope)
    .where(
        ARMED,
        _SWITCHES.wake_on_tasks == sa.literal_column("1"),
        _SWITCHES.namespace == _NAMESPACE,
        _SWITCHES.deadline_watched > _WATCHED,
    )
    .limit(1)
)
_REBORN = _WANTED.where(
    _SWITCHES.fired_generation == _SWITCHES.generation - 1,
    _SWITCHES.armed_at > sa.bindparam("since_real"),
)
_MARK = sa.select(
    _WAKES.c.number, _WAKES.c.real, _WAKES.c.watched, _WAKES.c.push_token, _WAKES.c.push_until
).where(_WAKES.c.namespace == _NAMESPACE)
_OFFERED = (
    sa.select(_TASKS.seq)
    .where(
        _TASKS.namespace == _NAMESPACE,
        tasks.AVAILABLE,
        _TASKS.claimable_at >= sa.bindparam("since_real"),
        _TASKS.claimable_at < _REAL,
        tasks.IN_TIME,
    )
    .limit(1)
)
_LAPSED = (
    sa.select(_TASKS.seq)
    .where(
        _TASKS.namespace == _NAMESPACE,
        tasks.CLAIMED,
        _TASKS.expires_watched >= sa.bindparam("since_watched"),
        _TASKS.expires_watched < _WATCHED,
        tasks.IN_TIME,
    )
    .limit(1)
)
_ONE = _WAKES.c.namespace == _NAMESPACE
_INSERT = sa.insert(_WAKES)
_CLAIM = (
    sa.update(_WAKES)
    .where(_ONE)
    .values(push_token=sa.bindparam("token"), push_until=sa.bindparam("until"))
)
_LET_GO = (
    sa.update(_WAKES)
    .where(_ONE, _WAKES.c.push_token == sa.bindparam("token"))
    .values(push_token=None, push_until=None)
)
_WOKEN = (
    sa.update(_WAKES)
    .where(_ONE, _WAKES.c.number == sa.bindparam("number") - 1)
    .values(
        number=sa.bindparam("number"),
        real=sa.bindparam("real"),
        watched=sa.bindparam("watched"),
        push_token=None,
        push_until=None,
    )
)


def work(tx: Transaction, namespace: str, token: str) -> Work | None:
    """Claim for the server ``token`` what is to be told of claimable work; ``None``: nothing."""
    now = {"of_namespace": namespace, "real": tx.now.real, "watched": tx.now.watched}
    if tx.conn.execute(_WANTED, now).first() is None:
        return None
    mark = tx.conn.execute(_MARK, now).first()
    number, real, watched, holder, until = mark or (0, 0, 0, None, 0)
    if holder not in (None, token) and until > tx.now.real:
        return None
    since = {**now, "since_real": real, "since_watched": watched}
    if mark is not None and tx.conn.execute(_REBORN, since).first() is not None:
        since |= {"since_real": 0, "since_watched": 0}
    if not any(tx.conn.execute(look, since).first() for look in (_OFFERED, _LAPSED)):
        return None
    claimed = holder == token and until > tx.now.real + CLAIM_MS // 2
    if not claimed:
        tx.to_write()
    if mark is None:
        row = {"namespace": namespace, "number": 0, "real": 0, "watched": 0}
        tx.conn.execute(_INSERT, row)
    if not claimed:
        until = tx.now.real + CLAIM_MS
        tx.conn.execute(_CLAIM, {"of_namespace": namespace, "token": token, "until": until})
    return Work(
        of=hashlib.sha256(namespace.encode()).hexdigest()[:8],
        claimable=tasks.counts(tx, namespace)["available"],
        number=number + 1,
        real=tx.now.real,
        watched=tx.now.watched,
    )


def woken(tx: Transaction, namespace: str, token: str, work: Work, *, taken: bool) -> None:
    """Note that a host took the push of ``work``, or let it go for another server to try.

    A late word counts, too, unless another server's push was taken meanwhile.
    """
    if not taken:
        tx.conn.execute(_LET_GO, {"of_namespace": namespace, "token": token})
        return
    row = {"number": work.number, "real": work.real, "watched": work.watched}
    tx.conn.execute(_WOKEN, {"of_namespace": namespace, **row})
