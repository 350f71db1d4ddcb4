"""Timing tasks out: everything that ``timeout_at`` does, for any number of tasks at once.

All of it goes into the transaction that is open. Whoever has a call for a task that is overdue does
it first; the sweep finds the rest. A task counts as timed out from its very ``timeout_at`` on.
"""

from collections.abc import Sequence

import msgspec

from mcpl_heartbeat.storage.store import beats, epochs, mail, tasks
from mcpl_heartbeat.storage.store.engine import Kind, judge
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.rows import Task, guard_scope
from mcpl_heartbeat.watch.identity import agent_of
from mcpl_heartbeat.watch.rows import Identity


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
        with tx.conn.begin_nested():
            ended.tasks = _end(tx, overdue)
    except Exception as wrong:
        if judge(wrong).kind is not Kind.OURS:
            raise
        _end_apart(tx, overdue, ended)
    return ended


def _end_apart(tx: Transaction, overdue: Sequence[Task], ended: Ended) -> None:
    for task in overdue:
        try:
            with tx.conn.begin_nested():
                ended.tasks |= _end(tx, [task])
        except Exception as wrong:
            if judge(wrong).kind is not Kind.OURS:
                raise
            tasks.put_aside(tx, [task.id])
            ended.aside.append(task.id)


def _end(tx: Transaction, overdue: Sequence[Task]) -> dict[str, Task]:
    post = mail.Post(tx)
    disarm: list[beats.Beat] = []
    after: dict[str, Task] = {}
    for task in overdue:
        timed = machine.time_out(task, tx.now, mail.task_id(tx))
        after[task.id] = timed.task
        tasks.write(tx, task, timed.task)
        if timed.ends is not None and timed.ended_at is not None:
            epochs.end(tx, timed.task, task.epoch, timed.ends, timed.ended_at)
        disarm += [(_owner(tx, task.namespace), each) for each in timed.guard]
        if timed.review is not None:
            post.put(timed.review, review=guard_scope(task.id))
    # When no task is claimed any more: a guard that is due as well fires, and has nothing to free.
    if disarm:
        beats.take(tx, disarm)
    post.flush()
    return after


def _owner(tx: Transaction, namespace: str) -> Identity:
    return Identity(namespace=namespace, agent=agent_of(tx.salt, namespace), registered_at=0)
