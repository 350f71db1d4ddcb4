"""The sweep: what finds the switches and tasks that are due when nobody calls.

The index it goes by, ``check_watched``, lags behind the deadlines: a beat leaves it alone. So what
it finds there is either due, and fires, or was beaten meanwhile, and is moved on to its deadline. A
switch thus costs the index one change for each of its windows, however often it beats, and a sweep
that finds nothing costs one look at the switches and one at the tasks.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import due, schema, switches, tasks
from mcpl_heartbeat.storage.store.ports import Swept
from mcpl_heartbeat.storage.store.sql import ARMED, HELD
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch.switches import GRACE_MS, is_due

LOOKS = 5
"""How many rows a sweep looks at for each that it may fire."""

_TABLE = schema.switches
_WATCHED: sa.BindParameter[int] = sa.bindparam("watched")
_CHECK, _DEADLINE = _TABLE.c.check_watched, _TABLE.c.deadline_watched
_TO_CHECK = (
    sa.select(_TABLE.c.namespace, _TABLE.c.scope, _CHECK, _DEADLINE)
    .where(ARMED, _CHECK <= _WATCHED)
    .order_by(_CHECK)
    .limit(sa.bindparam("most"))
)
_MOVE = (
    sa.update(_TABLE)
    .where(
        _TABLE.c.namespace == sa.bindparam("of_namespace"),
        _TABLE.c.scope == sa.bindparam("of_scope"),
    )
    .values(check_watched=_DEADLINE)
)
_HORIZON = _WATCHED + GRACE_MS
_GRACE = _WATCHED + sa.case((_TABLE.c.window_ms < GRACE_MS, _TABLE.c.window_ms), else_=GRACE_MS)
_RAISE_SWITCHES = (
    sa.update(_TABLE)
    .where(ARMED, _CHECK < _HORIZON, _WATCHED < _DEADLINE, _DEADLINE < _GRACE)
    # Another deadline has a nudge of its own.
    .values(deadline_watched=_GRACE, nudged=0)
)
_EXPIRES, _TTL = schema.leases.c.expires_watched, schema.leases.c.ttl_ms
_TTL_GRACE = _WATCHED + sa.case((_TTL < GRACE_MS, _TTL), else_=GRACE_MS)
_RAISE_LEASES = (
    sa.update(schema.leases)
    .where(HELD, _WATCHED < _EXPIRES, _EXPIRES < _TTL_GRACE)
    .values(expires_watched=_TTL_GRACE)
)


_CLAIM_EXPIRES, _LEASE = schema.tasks.c.expires_watched, schema.tasks.c.lease_ms
_CLAIM_GRACE = _WATCHED + sa.case((_LEASE < GRACE_MS, _LEASE), else_=GRACE_MS)
_RAISE_CLAIMS = (
    sa.update(schema.tasks)
    .where(
        # By the index of what is open.
        tasks.OPEN,
        tasks.IN_TIME,
        tasks.CLAIMED,
        _WATCHED < _CLAIM_EXPIRES,
        _CLAIM_EXPIRES < _CLAIM_GRACE,
    )
    .values(expires_watched=_CLAIM_GRACE)
)


def sweep(tx: Transaction, most: int) -> Swept:
    """Fire switches and time out tasks that are due, the oldest first, together up to ``most``.

    Where there is too much of both, each gets half of it.
    """
    overdue, unread = tasks.overdue(tx, most)
    tasks.put_aside(tx, unread)
    full = len(overdue) + len(unread) == most
    swept = _switches(tx, most - min(len(overdue), most // 2))
    if overdue and swept.fired + swept.timed_out:
        # Some of them may have been lost to their workers, or timed out, by that.
        overdue, _ = tasks.overdue(tx, most)
    now = overdue[: max(most - swept.fired - swept.timed_out, 0)]
    ended = due.end(tx, now)
    return msgspec.structs.replace(
        swept,
        fired=len(tx.late_ms),
        late_ms=tuple(tx.late_ms),
        timed_out=swept.timed_out + len(ended.tasks),
        more=swept.more or full or len(now) < len(overdue),
        corrupt_tasks=(*unread, *swept.corrupt_tasks, *ended.aside),
    )


def _switches(tx: Transaction, most: int) -> Swept:
    looks = most * LOOKS
    found = tx.conn.execute(_TO_CHECK, {"watched": tx.now.watched, "most": looks}).all()
    if not found:
        return Swept()
    # Up to here every deadline is known: what was not looked at has a later one.
    horizon = tx.now.watched if len(found) < looks else min(found[-1][2], tx.now.watched)
    late = sorted((row for row in found if row[3] <= horizon), key=lambda row: row[3])
    chosen = {(row[0], row[1]) for row in late[:most]}
    _move(tx, [row for row in found if row[2] != row[3] and (row[0], row[1]) not in chosen])
    loaded = switches.load(tx, chosen)
    corrupt = [key[1] for key in loaded.corrupt]
    switches.set_aside(tx, loaded)
    ready = [switch for switch in loaded.switches.values() if is_due(switch, tx.now)]
    settled = due.fire(tx, ready)
    corrupt.extend(key[1] for key in settled.aside)
    return Swept(
        fired=len(settled.fired),
        late_ms=tuple(settled.late_ms),
        more=len(found) == looks or len(late) > most,
        corrupt=tuple(corrupt),
        timed_out=settled.timed_out,
        corrupt_tasks=tuple(settled.tasks_aside),
    )


def _move(tx: Transaction, beaten: Sequence[Sequence[Any]]) -> None:
    """Have a sweep look at these again when they are due."""
    if beaten:
        tx.conn.execute(_MOVE, [{"of_namespace": row[0], "of_scope": row[1]} for row in beaten])


def after_gap(tx: Transaction) -> None:
    """Give those whose deadline lies ahead the time to beat, or renew, after a watch gap.

    It is what ``watch.switches.after_gap`` says, for all rows at once.
    """
    if not tx.sqlite:
        # It may be all that there are, and what is not raised cannot be left for later.
        tx.conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
    now = {"watched": tx.now.watched, "real": tx.now.real}
    tx.conn.execute(_RAISE_SWITCHES, now)
    tx.conn.execute(_RAISE_LEASES, now)
    tx.conn.execute(_RAISE_CLAIMS, now)
