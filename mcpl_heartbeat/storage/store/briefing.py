"""What is read: the state of switches, who one is, and the briefing on a scope.

``settle`` is how a reader gets at switches: ``due.settle`` in a transaction that writes, and
``due.peek``, which refuses where something is due, in one that does not.
"""

import base64
import binascii
from collections.abc import Callable, Collection, Sequence

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import fires, journal, leases, mail, schema, tasks
from mcpl_heartbeat.storage.store.sql import Key
from mcpl_heartbeat.storage.store.switches import CORRUPT, Loaded
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks.states import is_live
from mcpl_heartbeat.tasks.views import record
from mcpl_heartbeat.watch import identity
from mcpl_heartbeat.watch.arguments import ResumePacketArguments, SwitchStatusArguments
from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.failures import Failure, invalid
from mcpl_heartbeat.watch.results import (
    HeldTaskView,
    ResumePacketResult,
    SwitchStatusResult,
    WhoamiResult,
)
from mcpl_heartbeat.watch.resume import entry_view, gap_views, packet
from mcpl_heartbeat.watch.rows import LISTED, Identity, Switch
from mcpl_heartbeat.watch.switches import view

GAPS = 20
"""How many watch gaps are told, the newest ones."""
JOURNAL = 50
"""How many lines of a scope's journal ``switch_status`` shows."""
ARRIVALS = 50
"""How many envelopes a briefing names."""
MOST_CORRUPT = 100

Settle = Callable[[Transaction, Collection[Key]], Loaded]

_TABLE = schema.switches
_OF_NAMESPACE = _TABLE.c.namespace == sa.bindparam("namespace")
_PAGE = (
    sa.select(_TABLE.c.scope)
    .where(_OF_NAMESPACE, _TABLE.c.scope > sa.bindparam("after"))
    .order_by(_TABLE.c.scope)
    .limit(sa.bindparam("most"))
)
# Says nothing, but that the index ``switches_state`` serves.
_BY_STATE = _TABLE.c.namespace > sa.literal_column("''")
_COUNTS = (
    sa.select(_TABLE.c.state, sa.func.count())
    .where(_OF_NAMESPACE, _BY_STATE)
    .group_by(_TABLE.c.state)
)
_DUE = sa.select(sa.func.count()).where(
    # Not by the namespace, which may have many: sweeps leave few that are to be looked at.
    _TABLE.c.namespace.concat(sa.literal_column("''")) == sa.bindparam("namespace"),
    _TABLE.c.state == sa.literal_column("'armed'"),
    _TABLE.c.check_watched <= sa.bindparam("watched"),
    _TABLE.c.deadline_watched <= sa.bindparam("watched"),
)
_CORRUPT = (
    sa.select(_TABLE.c.scope)
    # In no order, or SQLite would walk all switches in that order.
    .where(_OF_NAMESPACE, _BY_STATE, _TABLE.c.state == CORRUPT)
    .limit(MOST_CORRUPT)
)


def status(
    tx: Transaction, who: Identity, arguments: SwitchStatusArguments, settle: Settle
) -> SwitchStatusResult | Failure:
    """Show all switches of a namespace, a page at a time, or one with its journal."""
    if isinstance(arguments.scope, str):
        return _status_of(tx, who, arguments.scope, settle)
    after = _position(arguments.cursor) if isinstance(arguments.cursor, str) else ""
    if after is None:
        return invalid("switch_status", ["cursor: is none that next_cursor gave"])
    scopes, more = _page(tx, who, after, arguments.limit)
    found = settle(tx, [(who.namespace, scope) for scope in scopes])
    shown = [found.switches[key] for key in sorted(found.switches)]
    corrupt = tx.conn.execute(_CORRUPT, {"namespace": who.namespace}).scalars().all()
    unread = {key[1] for key in found.aside}
    return SwitchStatusResult(
        server_time=tx.now.server_time,
        switches=tuple(view(switch, tx.now) for switch in shown),
        total=sum(_counts(tx, who.namespace).values()),
        next_cursor=_cursor(scopes[-1]) if more else None,
        watch_gaps=gap_views(_gaps(who, shown, tx.now), tx.now),
        corrupt=tuple(sorted({*corrupt, *unread})),
    )


def _status_of(tx: Transaction, who: Identity, scope: str, settle: Settle) -> SwitchStatusResult:
    key = (who.namespace, scope)
    found = settle(tx, [key])
    switch = found.switches.get(key)
    notes = []
    if key in found.aside:
        notes.append(
            "The record of this scope cannot be read and was set aside: no deadline is kept. The "
            "next beat arms it anew."
        )
    elif switch is None:
        notes.append("No switch was ever armed for this scope. Check its spelling.")
    shown = [] if switch is None else [switch]
    entries = journal.newest(tx, *key, JOURNAL)
    return SwitchStatusResult(
        server_time=tx.now.server_time,
        notes=tuple(notes),
        switches=tuple(view(each, tx.now) for each in shown),
        total=len(shown),
        next_cursor=None,
        watch_gaps=gap_views(_gaps(who, shown, tx.now), tx.now),
        journal=tuple(entry_view(entry, tx.now) for entry in entries),
        corrupt=tuple(aside[1] for aside in found.aside),
    )


def whoami(tx: Transaction, who: Identity) -> WhoamiResult:
    """Tell who is asking and what waits."""
    boxes, next_due = mail.boxes(tx, who.agent)
    found = identity.whoami(
        who,
        boxes,
        mail.dead(tx, who.agent),
        next_due,
        _counts(tx, who.namespace),
        leases.count(tx, who.namespace),
        tx.now,
    )
    return msgspec.structs.replace(found, tasks=tasks.counts(tx, who.namespace))


def resume(
    tx: Transaction, who: Identity, arguments: ResumePacketArguments, settle: Settle
) -> ResumePacketResult:
    """Brief on a scope."""
    key = (who.namespace, arguments.scope)
    found = settle(tx, [key])
    arrivals, total = mail.of_scope(tx, who.agent, arguments.box, arguments.scope, ARRIVALS)
    return packet(
        arguments.scope,
        found.switches.get(key),
        fires.checkpoints(tx, [key]).get(key),
        leases.of_scopes(tx, [key]).get(key, []),
        arrivals,
        total,
        journal.newest(tx, *key, journal.KEPT),
        arguments.tail,
        _gaps_since(who.registered_at, tx.now),
        tx.now,
        *_tasks(tx, key),
    )


def _tasks(tx: Transaction, key: Key) -> tuple[tuple[HeldTaskView, ...], int]:
    """Show the first tasks that are claimed under a scope and whose lease runs, and count them."""
    held = [task for task in tasks.under(tx, [key]).get(key, ()) if is_live(task, tx.now)]
    shown = tuple(
        HeldTaskView(
            id=task.id,
            status=task.status,
            execution_epoch=task.epoch,
            agent_id=task.agent_id,
            lease_expires_at=str(record(task, tx.now).lease_expires_at),
        )
        for task in held[:LISTED]
    )
    return shown, len(held)


def _counts(tx: Transaction, namespace: str) -> dict[str, int]:
    """Count switches by state; those that are due count as fired, swept or not."""
    sought = {"namespace": namespace, "watched": tx.now.watched}
    counts = {"armed": 0, "fired": 0, "disarmed": 0}
    counts.update({row[0]: row[1] for row in tx.conn.execute(_COUNTS, sought)})
    due = int(tx.conn.execute(_DUE, sought).scalar_one())
    counts["armed"] -= due
    counts["fired"] += due
    return counts


def _page(tx: Transaction, who: Identity, after: str, limit: int) -> tuple[Sequence[str], bool]:
    """Give the next scopes, and whether there are more."""
    sought = {"namespace": who.namespace, "after": after, "most": limit + 1}
    scopes = tx.conn.execute(_PAGE, sought).scalars().all()
    return scopes[:limit], len(scopes) > limit


def _gaps(who: Identity, shown: Sequence[Switch], now: Reading) -> tuple[Gap, ...]:
    """Give the gaps that moved the deadlines shown; with none, those since there is the agent."""
    return _gaps_since(min((each.armed_at for each in shown), default=who.registered_at), now)


def _gaps_since(since: int, now: Reading) -> tuple[Gap, ...]:
    return tuple(gap for gap in now.gaps if gap.ended > since)[-GAPS:]


def _cursor(scope: str) -> str:
    return base64.urlsafe_b64encode(scope.encode()).decode().rstrip("=")


def _position(cursor: str) -> str | None:
    """Read a cursor; ``None`` for one that we did not make."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return None if "\0" in text or _cursor(text) != cursor else text
