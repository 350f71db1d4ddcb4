"""The mail by which a creator learns that its task timed out (``route_to_review``), and its push.

When the push leaves, and what becomes of it, is as with alerts (``watch/pushes.py``).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.policy import pushing
from mcpl_heartbeat.tasks.pushes import FEATURE_SET
from mcpl_heartbeat.tasks.results import HandoverView
from mcpl_heartbeat.tasks.rows import REVIEW_BOX, Task
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.rows import Envelope
from mcpl_heartbeat.watch.words import counted, quoted

SHOWN_TASKS = 20
"""How many tasks the origin of a push names."""
_NAMED = 5
"""How many its text names."""
_SHOWN = 300
"""How much of the instructions and of the last note (characters) the line shows."""


def review(task: Task, left: HandoverView | None, mail_id: str, now: Reading) -> Envelope:
    """Make the mail to the creator's own box; ``mail_id`` is its ``task_id``."""
    context: dict[str, Any] = {
        "task_id": task.id,
        "status": task.status,
        "execution_epoch": task.epoch,
        "timeout_at": now.tell(task.timeout_at),
        "note": task.note,
        "step": task.step,
        "handover": None if left is None else msgspec.to_builtins(left),
    }
    return Envelope(
        task_id=mail_id,
        agent=task.creator,
        box=REVIEW_BOX,
        kind="message",
        sender=task.creator,
        objective=_objective(task, left, now),
        context=msgspec.Raw(msgspec.json.encode(context)),
        sent_at=now.real,
        due_at=now.real,
        visible_at=now.real,
    )


def _objective(task: Task, left: HandoverView | None, now: Reading) -> str:
    said = [
        f"Review: agent task {task.id} timed out at {now.tell(task.timeout_at)} without a result."
    ]
    if left is None:
        said.append("Nobody ever claimed it.")
    else:
        who = "without a label" if left.agent_id is None else quoted(left.agent_id)
        said.append(f"Claimed {task.epoch - 1} times, last by a worker {who} (epoch {task.epoch}).")
    if task.note is not None:
        said.append(f"Last note: {quoted(task.note, _SHOWN)}.")
    if task.step is not None:
        said.append(f"Last step: {quoted(task.step, _SHOWN)}.")
    if task.instructions is not None:
        said.append(f"Instructions: {quoted(task.instructions, _SHOWN)}.")
    said.append("get_agent_task has all of it.")
    return " ".join(said)


# --- the push ----------------------------------------------------------------------------------


class _About(msgspec.Struct):
    task_id: str


def review_event(waiting: Sequence[Envelope], zone: Zone, now: int) -> dict[str, Any]:
    """The params of the ``push/event`` for reviews, the oldest first, sent at wall ``now``."""
    newest = waiting[-1]
    tasks = [task_of(each) or "" for each in waiting]
    origin: dict[str, Any] = {"source": "review"}
    if len(waiting) == 1:
        id = f"review_{newest.task_id}"
        origin["task_id"] = tasks[0]
        text = (
            f"{newest.objective} It stays in your box {quoted(newest.box)} until inbox_ack "
            f"{quoted(newest.task_id)}."
        )
    else:
        id = f"reviews_{newest.task_id}_{len(waiting)}"
        origin |= {"count": len(waiting), "task_ids": tasks[:SHOWN_TASKS]}
        more = len(tasks) - _NAMED
        named = ", ".join(tasks[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        text = (
            f"Review: {counted(len(tasks), 'agent task')} timed out without a result: {named}. "
            f"Each stays in your box {quoted(newest.box)} until it is acknowledged: call "
            f"inbox_poll with box {quoted(newest.box)}, act, call inbox_ack, until there is none."
        )
    params = pushing.event(FEATURE_SET, id, now, origin, f"[{local_time(now, zone)}] {text}")
    params["tags"] = ["tasks:review"]
    return params


def task_of(envelope: Envelope) -> str | None:
    """Read from a review which task it is about; ``None``: somebody has been at its row."""
    try:
        return msgspec.json.decode(envelope.context or b"", type=_About).task_id
    except (msgspec.DecodeError, RecursionError):
        return None
