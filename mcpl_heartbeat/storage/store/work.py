"""The calls of the tasks wing, carried out in one transaction.

What is due comes first, so that no answer depends on when a sweep comes by: a task that is overdue
times out, and a switch that can take a task from its worker fires. Only then the call is decided
(``tasks/machine.py``), on rows that nobody else can change before they are written back.
"""

import base64
import binascii
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec import UNSET

from mcpl_heartbeat.storage.store import (
    beats,
    due,
    epochs,
    identities,
    schema,
    switches,
    tasks,
    timeouts,
)
from mcpl_heartbeat.storage.store.ports import Outcome, Unsettled
from mcpl_heartbeat.storage.store.sql import ARMED, Key
from mcpl_heartbeat.storage.store.switches import Loaded
from mcpl_heartbeat.storage.store.tasks import Corrupt
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks import guards, machine, refusals, views
from mcpl_heartbeat.tasks.arguments import (
    ClaimAgentTaskArguments,
    CreateAgentTaskArguments,
    GetAgentTaskArguments,
    HeartbeatAgentTaskArguments,
    ListAgentTasksArguments,
    ReleaseAgentTaskArguments,
    SubmitAgentTaskArguments,
)
from mcpl_heartbeat.tasks.results import (
    ClaimAgentTaskResult,
    ListAgentTasksResult,
    PaginationView,
)
from mcpl_heartbeat.tasks.rows import Task, guard_scope
from mcpl_heartbeat.watch.beats import inbox_only
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure, invalid
from mcpl_heartbeat.watch.results import HeartbeatResult
from mcpl_heartbeat.watch.rows import Identity
from mcpl_heartbeat.watch.switches import split_address

MOST_DUE = 200
"""How many switches that are due a list fires before it looks; the sweep does the rest."""
_ID_BYTES = 16

_SWITCHES = schema.switches
_DUE = (
    sa.select(_SWITCHES.c.scope)
    .where(
        ARMED,
        # Not by the namespace, which may have many: sweeps leave few that are to be looked at.
        _SWITCHES.c.namespace.concat(sa.literal_column("''")) == sa.bindparam("namespace"),
        _SWITCHES.c.check_watched <= sa.bindparam("watched"),
        _SWITCHES.c.deadline_watched <= sa.bindparam("watched"),
    )
    .order_by(_SWITCHES.c.check_watched)
    .limit(sa.bindparam("most"))
)


class Hand(msgspec.Struct, frozen=True):
    """How what is due is settled: by doing it, or, for a look that may not write, ``Unsettled``."""

    switches: Callable[[Transaction, Collection[Key]], Loaded]
    timeouts: Callable[[Transaction, Sequence[Task]], timeouts.Ended]
    put_aside: Callable[[Transaction, Sequence[str]], None]


def _refuse(_: Transaction, found: Sequence[Any]) -> Any:
    if found:
        raise Unsettled
    return timeouts.Ended()


WRITING = Hand(due.settle, due.end, tasks.put_aside)
LOOKING = Hand(due.peek, _refuse, _refuse)


def read(tx: Transaction, who: Identity, arguments: Any, hand: Hand) -> Outcome:
    """Carry out a call that only reads."""
    if isinstance(arguments, ListAgentTasksArguments):
        return _list(tx, who, arguments, hand)
    assert isinstance(arguments, GetAgentTaskArguments)
    try:
        task = _find(tx, who, arguments.task_id, whole=True, hand=hand)
    except Corrupt as wrong:
        return _corrupt(tx, wrong, hand)
    if task is None:
        return refusals.unknown_task(tx.now)
    return views.got(task, epochs.of(tx, task.id), tx.now)


def create(tx: Transaction, who: Identity, arguments: CreateAgentTaskArguments) -> Outcome:
    """Make a task, find the one that its dedupe key names, or cancel one."""
    if isinstance(arguments.cancel_task_id, str):
        return _change(tx, who, arguments.cancel_task_id, arguments, machine.cancel)
    existing = None
    if isinstance(arguments.dedupe_key, str):
        existing = _keyed(tx, who, arguments.dedupe_key)
    id = str(uuid.UUID(bytes=tx.random(_ID_BYTES), version=4))
    task = machine.create(who.namespace, who.agent, id, arguments, tx.now)
    if existing is None:
        tasks.insert(tx, task)
    return machine.created_result(task, existing, tx.now)


def claim(tx: Transaction, who: Identity, arguments: ClaimAgentTaskArguments) -> Outcome:
    """Take a task."""
    # What the switch of the new claim's scope would take is not to be taken from it at once.
    if isinstance(arguments.scope, str):
        due.settle(tx, [(who.namespace, arguments.scope)])
    if arguments.agent_id is UNSET and who.label is not None:
        arguments = msgspec.structs.replace(arguments, agent_id=who.label)
    outcome = _change(tx, who, arguments.task_id, arguments, machine.claim, whole=True)
    if not isinstance(outcome, ClaimAgentTaskResult) or not outcome.replayed:
        return outcome
    # Who came before is not in the row any more, and the reply is to say what it said first.
    task = tasks.load(tx, who.namespace, str(outcome.id), whole=False)
    assert task is not None
    left = views.handover(task, tx.now, epochs.of(tx, task.id))
    return msgspec.structs.replace(outcome, handover=left)


def heartbeat(tx: Transaction, who: Identity, arguments: HeartbeatAgentTaskArguments) -> Outcome:
    """Hold a task for longer."""

    def decide(
        task: Task | None, arguments: HeartbeatAgentTaskArguments, now: Reading
    ) -> machine.Change:
        return machine.heartbeat(task, arguments, now, _down(tx, task))

    return _change(tx, who, arguments.task_id, arguments, decide)


def _down(tx: Transaction, task: Task | None) -> guards.Down | None:
    """Look whether the guard of a claim was disarmed by hand."""
    if task is None or not task.guard:
        return None
    key = (task.namespace, guard_scope(task.id))
    switch = switches.load(tx, [key]).switches.get(key)
    notify = None if switch is None or switch.state == "armed" else switch.notify
    agents = {split_address(notify)[0]} if notify else set()
    return guards.down(task, switch, registered=agents == identities.registered(tx, agents))


def submit(tx: Transaction, who: Identity, arguments: SubmitAgentTaskArguments) -> Outcome:
    """Take the result of a task."""
    return _change(tx, who, arguments.task_id, arguments, machine.submit, whole=True)


def release(tx: Transaction, who: Identity, arguments: ReleaseAgentTaskArguments) -> Outcome:
    """Take a task back."""
    return _change(tx, who, arguments.task_id, arguments, machine.release)


A = TypeVar("A")


def _change(  # noqa: PLR0913 - what is to be done, on what, for whom
    tx: Transaction,
    who: Identity,
    id: str,
    arguments: A,
    decide: Callable[[Task | None, A, Any], machine.Change],
    *,
    whole: bool = False,
) -> Outcome:
    try:
        task = _find(tx, who, id, whole=whole, hand=WRITING)
    except Corrupt as wrong:
        return _corrupt(tx, wrong, WRITING)
    change = decide(task, arguments, tx.now)
    if task is None or change.task is None:
        return change.result
    if not change.guard:
        _keep(tx, task, change)
        return change.result
    with tx.part() as part:
        _keep(tx, task, change)
        taken = beats.take(tx, [(who, each) for each in change.guard])
        for outcome in taken:
            if isinstance(outcome, Failure):
                part.rollback()
                return outcome
    return _delivered(change, taken)


def _delivered(change: machine.Change, guard: Sequence[Outcome]) -> Outcome:
    """Add to a reply whether the alert of the guard that it tells of as armed can wake anybody."""
    notes = [
        inbox_only(beat.notify_address)
        for sent, beat in zip(change.guard, guard, strict=True)
        if sent.on_expiry is not UNSET
        and isinstance(beat, HeartbeatResult)
        and beat.alert_delivery == "inbox"
    ]
    assert not isinstance(change.result, Failure)
    return msgspec.structs.replace(change.result, notes=(*change.result.notes, *notes))


def _keep(tx: Transaction, before: Task, change: machine.Change) -> None:
    after = change.task
    assert after is not None
    tasks.write(tx, before, after)
    if change.ends is not None and change.ended_at is not None:
        epochs.end(tx, after, before.epoch, change.ends, change.ended_at)
    if change.begins:
        epochs.begin(tx, after)
    if change.beat:
        epochs.beat(tx, after)


def _find(tx: Transaction, who: Identity, id: str, *, whole: bool, hand: Hand) -> Task | None:
    """Read a task when nothing is due on it any more. Raises ``Corrupt``."""
    id = id.lower()
    task = tasks.load(tx, who.namespace, id, whole=whole)
    if task is None or task.status not in ("available", "claimed"):
        return task
    if not machine.is_overdue(task, tx.now):
        keys = due.takers([task])
        if not keys:
            return task
        hand.switches(tx, keys)
        # One of them may just have taken it from its worker.
        now, _ = tasks.by_ids(tx, who.namespace, [id])
        if id in now and now[id].status == task.status:
            return task
        return tasks.load(tx, who.namespace, id, whole=whole)
    if not whole:
        task = tasks.load(tx, who.namespace, id, whole=True)
        assert task is not None
    ended = hand.timeouts(tx, [task])
    if ended.aside:
        raise Corrupt(id, "cannot be timed out")
    return ended.tasks[id]


def _keyed(tx: Transaction, who: Identity, dedupe_key: str) -> Task | None:
    id = tasks.keyed(tx, who.namespace, dedupe_key)
    if id is None:
        return None
    try:
        return _find(tx, who, id, whole=True, hand=WRITING)
    except Corrupt as wrong:
        tasks.put_aside(tx, [wrong.id])
        return None


def _corrupt(tx: Transaction, wrong: Corrupt, hand: Hand) -> Failure:
    hand.put_aside(tx, [wrong.id])
    return msgspec.structs.replace(
        refusals.unknown_task(tx.now),
        message=f"The record of task {wrong.id} cannot be read and was set aside.",
    )


# --- lists -------------------------------------------------------------------------------------


def _list(
    tx: Transaction, who: Identity, arguments: ListAgentTasksArguments, hand: Hand
) -> ListAgentTasksResult | Failure:
    after = _position(arguments.cursor) if isinstance(arguments.cursor, str) else 0
    if after is None:
        return invalid("list_agent_tasks", ["cursor: is none that next_cursor gave"])
    sought = {"namespace": who.namespace, "watched": tx.now.watched, "most": MOST_DUE}
    scopes = tx.conn.execute(_DUE, sought).scalars().all()
    hand.switches(tx, [(who.namespace, scope) for scope in scopes])
    status = None if arguments.status is UNSET else arguments.status
    rows = tasks.page(tx, who.namespace, status, after, arguments.limit + 1)
    more = len(rows) > arguments.limit
    rows = rows[: arguments.limit]
    found, corrupt = tasks.by_ids(tx, who.namespace, [id for _, id in rows])
    hand.put_aside(tx, corrupt)
    overdue = [task.id for task in found.values() if machine.is_overdue(task, tx.now)]
    if overdue:
        to_end, _ = tasks.to_end(tx, overdue)
        ended = hand.timeouts(tx, to_end)
        # With them a switch may have fired that took others of these.
        found, _ = tasks.by_ids(tx, who.namespace, list(found))
        corrupt += ended.aside
    return ListAgentTasksResult(
        server_time=tx.now.server_time,
        notes=tuple(f"Task {id} cannot be read and was set aside." for id in corrupt),
        data=tuple(
            views.record(found[id], tx.now) for _, id in rows if id in found and id not in corrupt
        ),
        pagination=PaginationView(
            has_more=more, next_cursor=_cursor(rows[-1][0]) if more else None
        ),
    )


def _cursor(seq: int) -> str:
    return base64.urlsafe_b64encode(f"task:{seq}".encode()).decode().rstrip("=")


def _position(cursor: str) -> int | None:
    """Read a cursor; ``None`` for one that we did not make."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
        seq = int(text.removeprefix("task:"))
    except (binascii.Error, ValueError):
        return None
    return seq if _cursor(seq) == cursor and 0 < seq < 2**63 else None
