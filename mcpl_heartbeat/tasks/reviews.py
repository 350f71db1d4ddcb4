"""The mail by which a creator learns that its task timed out (``route_to_review``)."""

from typing import Any

import msgspec

from mcpl_heartbeat.tasks.results import HandoverView
from mcpl_heartbeat.tasks.rows import REVIEW_BOX, Task
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.rows import Envelope
from mcpl_heartbeat.watch.words import quoted

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
    if task.instructions is not None:
        said.append(f"Instructions: {quoted(task.instructions, _SHOWN)}.")
    said.append("get_agent_task has all of it.")
    return " ".join(said)
