"""What is told of a task: its record (B.1), the payload of a claim, what a claimant left behind."""

from collections.abc import Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.tasks import moves
from mcpl_heartbeat.tasks.results import (
    ClaimAgentTaskResult,
    EpochView,
    GetAgentTaskResult,
    HandoverView,
    RecordView,
)
from mcpl_heartbeat.tasks.rows import Epoch, Task, guard_scope
from mcpl_heartbeat.tasks.states import claimable, is_lapsed, is_live, is_open, lease_end
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.words import quoted


def seconds_left(task: Task, now: Reading) -> float | None:
    """How long (s) until then; 0 when it has lapsed."""
    end = lease_end(task, now)
    if end is None:
        return None
    return (end - now.real) / 1000 if is_live(task, now) else 0


def record(task: Task, now: Reading) -> RecordView:
    """Show a task in a list."""
    return RecordView(**_record(task, now))


def metadata(task: Task, now: Reading) -> dict[str, Any]:
    """Give what every result of one task holds: its record, the time left, the server's time."""
    return {
        **_record(task, now),
        "seconds_left": seconds_left(task, now),
        "server_time": now.server_time,
    }


def handover(
    task: Task, now: Reading, epochs: Sequence[Epoch] = (), *, closed: bool = False
) -> HandoverView | None:
    """Give what the claimant before left behind; ``None`` if there was none before.

    Before the present one, if a claim is in force; else the last one there was. ``epochs`` are the
    task's, for the label of one who is not in its row any more. A closed task hands nothing over,
    but where ``closed`` asks what was left at its end.
    """
    if not is_open(task) and not closed:
        return None
    live = is_live(task, now)
    epoch = task.epoch - 1 if live else task.epoch
    if epoch <= 1:
        return None
    known = {each.epoch: each for each in epochs}
    before = known.get(epoch)
    label = task.agent_id
    if live:
        label = None if before is None else before.agent_id
    cause = "lapsed" if task.status == "claimed" and not live else task.lost
    note, step, note_epoch, note_at = task.note, task.step, task.note_epoch, task.note_at
    if live and note_epoch == task.epoch:
        # The present claimant has noted something itself since.
        left = [each for each in epochs if each.epoch < task.epoch and each.note_at is not None]
        last = max(left, key=lambda each: each.epoch, default=None)
        note, step, note_epoch, note_at = (None, None, None, None)
        if last is not None:
            note, step, note_epoch, note_at = last.note, last.step, last.epoch, last.note_at
    return HandoverView(
        epoch=epoch,
        agent_id=label,
        cause=cause,
        note=note,
        step=step,
        note_epoch=note_epoch,
        noted_at=_told(note_at, now),
    )


def claimed(
    task: Task, left: HandoverView | None, now: Reading, *, replayed: bool = False
) -> ClaimAgentTaskResult:
    """Give the payload to whoever has claimed it."""
    return ClaimAgentTaskResult(
        **metadata(task, now),
        **_payload(task),
        handover=left,
        guard_scope=guard_scope(task.id) if task.guard else None,
        replayed=replayed,
        notes=not_renewed(task),
    )


def got(task: Task, epochs: Sequence[Epoch], now: Reading) -> GetAgentTaskResult:
    """Show one task, whole; ``epochs`` are its own, the oldest first."""
    return GetAgentTaskResult(
        **metadata(task, now),
        **_payload(task),
        handover=handover(task, now, epochs),
        outputs=task.outputs,
        summary=task.summary,
        reason=task.reason,
        epochs=tuple(epoch_view(_until_lapse(epoch, task, now), now) for epoch in epochs),
    )


def _until_lapse(epoch: Epoch, task: Task, now: Reading) -> Epoch:
    """End the epoch of a claim that lapsed, though nobody has come by to note it."""
    if epoch.epoch != task.epoch or epoch.ended_at is not None or not is_lapsed(task, now):
        return epoch
    cause, ended_at = moves.ending(task, "lapsed", now)
    return msgspec.structs.replace(epoch, cause=cause, ended_at=ended_at)


def epoch_view(epoch: Epoch, now: Reading) -> EpochView:
    """Show who held a task, from when and until when."""
    return EpochView(
        execution_epoch=epoch.epoch,
        agent_id=epoch.agent_id,
        claimed_at=now.tell(epoch.claimed_at),
        beats=epoch.beats,
        ended_at=_told(epoch.ended_at, now),
        cause=epoch.cause,
        note=epoch.note,
        step=epoch.step,
    )


def not_renewed(task: Task) -> tuple[str, ...]:
    """Name what can take the claim away and is not held off by a heartbeat of the task."""
    if task.scope is None:
        return ()
    return (
        f"If a dead-man switch of scope {quoted(task.scope)} fires, it gives this task back: "
        "heartbeat_agent_task does not beat that one, heartbeat does.",
    )


def _record(task: Task, now: Reading) -> dict[str, Any]:
    end = lease_end(task, now)
    return {
        "id": task.id,
        "status": task.status,
        "claimable": claimable(task, now),
        "execution_epoch": task.epoch,
        "claimed_at": _told(task.claimed_at, now),
        "lease_expires_at": _told(end, now),
        "timeout_at": now.tell(task.timeout_at),
        "submitted_at": _told(task.submitted_at, now),
        "created_at": now.tell(task.created_at),
        "updated_at": now.tell(task.updated_at),
        "agent_id": None if task.status == "available" else task.agent_id,
        "lease_seconds": task.lease_ms // 1000,
        "timeout_fallthrough": task.fallthrough,
    }


def _payload(task: Task) -> dict[str, Any]:
    return {
        "input_snapshot": task.input_snapshot,
        "output_contract": tuple(msgspec.to_builtins(field) for field in task.output_contract),
        "instructions": task.instructions,
    }


def _told(real: int | None, now: Reading) -> str | None:
    return None if real is None else now.tell(real)
