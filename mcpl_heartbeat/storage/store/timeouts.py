"""Timing tasks out: everything that ``timeout_at`` does, for any number of tasks at once.

All of it goes into the transaction that is open. Whoever has a call for a task that is overdue does
it first; the sweep finds the rest; both by ``due.py``. A task counts as timed out from its very
``timeout_at`` on.
"""

from collections.abc import Sequence

import msgspec

from mcpl_heartbeat.storage.store import epochs, mail, switches, tasks
from mcpl_heartbeat.storage.store.engine import Kind, judge
from mcpl_heartbeat.storage.store.sql import Key
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.rows import Task, guard_scope


class Ended(msgspec.Struct):
    """What timing out came to."""

    tasks: dict[str, Task] = {}
    """By their ids, as they are then."""
    aside: list[str] = []
    """Those that could not be timed out and were set aside."""


def end(tx: Transaction, overdue: Sequence[Task]) -> Ended:
    """Time out tasks that are overdue, each of them whole; one that cannot be costs only itself."""
    ended = Ended()
    if not overdue:
        return ended
    overdue = sorted(overdue, key=lambda task: (task.timeout_at, task.seq))
    try:
        with tx.part():
            ended.tasks = _end(tx, overdue)
    except Exception as wrong:
        if judge(wrong).kind is not Kind.OURS:
            raise
        _end_apart(tx, overdue, ended)
    return ended


def _end_apart(tx: Transaction, overdue: Sequence[Task], ended: Ended) -> None:
    for task in overdue:
        try:
            with tx.part():
                ended.tasks |= _end(tx, [task])
        except Exception as wrong:
            if judge(wrong).kind is not Kind.OURS:
                raise
            tasks.put_aside(tx, [task.id])
            ended.aside.append(task.id)


def _end(tx: Transaction, overdue: Sequence[Task]) -> dict[str, Task]:
    ended = [(task, machine.time_out(task, tx.now, mail.task_id(tx))) for task in overdue]
    post = mail.Post(tx)
    guards: list[Key] = []
    for task, timed in ended:
        guards += [(task.namespace, each.scope) for each in timed.guard]
        if timed.review is not None:
            scope = guard_scope(task.id)
            post.put(timed.review, (task.namespace, scope, mail.REVIEW), review=scope)
    tasks.write_all(tx, [(task, timed.task) for task, timed in ended])
    epochs.end_all(
        tx,
        [
            (task, timed.ends, timed.ended_at)
            for task, timed in ended
            if timed.ends is not None and timed.ended_at is not None
        ],
    )
    switches.stand_down(tx, guards)
    post.flush()
    return {task.id: timed.task for task, timed in ended}
