"""The audit in the store: who held which task when."""

from collections.abc import Iterable

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import schema, tasks_rows
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks.rows import Cause, Epoch, Task

SHOWN = 100
"""How many epochs of a task are told, the newest ones."""

_TABLE = schema.task_epochs
_ONE = sa.and_(_TABLE.c.task == sa.bindparam("of_task"), _TABLE.c.epoch == sa.bindparam("of_epoch"))
_INSERT = sa.insert(_TABLE)
_LEFT = ("note", "step", "note_at")
_ENDED = ("ended_at", "cause")
_RUNNING = sa.update(_TABLE).where(_ONE, _TABLE.c.ended_at.is_(None))
_END = _RUNNING.values({name: sa.bindparam(name) for name in (*_ENDED, *_LEFT)})
_END_ALL = _RUNNING.values({name: sa.bindparam(name) for name in _ENDED})
_BEAT = (
    sa.update(_TABLE)
    .where(_ONE)
    .values(beats=_TABLE.c.beats + 1, **{name: sa.bindparam(name) for name in _LEFT})
)
_NEWEST = (
    sa.select(*tasks_rows.EPOCH)
    .where(_TABLE.c.task == sa.bindparam("of_task"))
    .order_by(_TABLE.c.epoch.desc())
    .limit(sa.bindparam("most"))
)


def begin(tx: Transaction, task: Task) -> None:
    """Note that a claim began: the one that ``task`` stands under."""
    row = {
        "task": task.id,
        "epoch": task.epoch,
        "namespace": task.namespace,
        "agent_id": task.agent_id,
        "claimed_at": task.claimed_at,
        "beats": 0,
    }
    tx.conn.execute(_INSERT, row)


def end(tx: Transaction, task: Task, epoch: int, cause: Cause, ended_at: int) -> None:
    """Note how and when (real ms) an epoch of ``task`` ended."""
    row = {"of_task": task.id, "of_epoch": epoch, **_left(task, epoch)}
    tx.conn.execute(_END, {**row, "ended_at": ended_at, "cause": cause})


def end_all(tx: Transaction, ends: Iterable[tuple[Task, Cause, int]]) -> None:
    """Note how and when the running epochs of many ended, of which nobody left a note at the end.

    Each of ``ends`` is the task as it was before.
    """
    rows = [
        {"of_task": task.id, "of_epoch": task.epoch, "ended_at": ended_at, "cause": cause}
        for task, cause, ended_at in ends
    ]
    if rows:
        tx.conn.execute(_END_ALL, rows)


def beat(tx: Transaction, task: Task) -> None:
    """Count a heartbeat of the running epoch, and keep the note that it may have left."""
    row = {"of_task": task.id, "of_epoch": task.epoch, **_left(task, task.epoch)}
    tx.conn.execute(_BEAT, row)


def of(tx: Transaction, task: str) -> list[Epoch]:
    """Give the newest epochs of a task, oldest first; those that cannot be read are left out."""
    found: list[Epoch] = []
    for row in tx.conn.execute(_NEWEST, {"of_task": task, "most": SHOWN}):
        try:
            found.append(tasks_rows.epoch(row))
        except CorruptRow:
            continue
    found.reverse()
    return found


def _left(task: Task, epoch: int) -> dict[str, str | int | None]:
    """What whoever held it under that epoch noted."""
    own = task.note_epoch == epoch
    return {name: getattr(task, name) if own else None for name in _LEFT}
