"""The steps that the calls on a task have in common: how a row changes, how an epoch ends."""

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from mcpl_heartbeat.tasks.rows import Cause, Task, guard_scope
from mcpl_heartbeat.tasks.states import Event, is_live, next_status
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.clock import Reading


def available(task: Task, event: Event, lost: Cause, now: Reading) -> Task:
    """Put it back to where it can be claimed; the label of who held it last stays, for the next."""
    return replace(
        task,
        status=next_status(task, event),
        updated_at=now.real,
        claimed_at=None,
        expires_watched=None,
        scope=None,
        guard=False,
        claim_key=None,
        lost=lost,
        claimable_at=now.real,
    )


def closed(task: Task, event: Event, now: Reading) -> Task:
    """End it; who held it last, and what was noted, stays to be read."""
    return replace(
        task,
        status=next_status(task, event),
        updated_at=now.real,
        expires_watched=None,
        guard=False,
        claimable_at=None,
    )


def noted(task: Task, note: str | UnsetType, step: str | UnsetType, now: Reading) -> Task:
    """Keep what was sent of a progress note and its step in place of the one before.

    What was not sent stays, if it is of the same claim; of an earlier one it would be another's.
    """
    if note is UNSET and step is UNSET:
        return task
    own = task.note_epoch == task.epoch
    return replace(
        task,
        note=(task.note if own else None) if note is UNSET else note,
        step=(task.step if own else None) if step is UNSET else step,
        note_at=now.real,
        note_epoch=task.epoch,
    )


def ending(task: Task, cause: Cause, now: Reading) -> tuple[Cause | None, int | None]:
    """How and when (real ms) the epoch of a task ends that is taken from its worker by ``cause``.

    A lease that ran out before did so by itself, whenever that is noticed: the audit says until
    when a worker held the task, not when somebody looked.
    """
    if task.expires_watched is None:
        return None, None
    lapse = now.real_of(task.expires_watched)
    if cause == "timed_out":
        return ("lapsed", lapse) if lapse < task.timeout_at else (cause, task.timeout_at)
    if is_live(task, now):
        return cause, now.real
    return "lapsed", min(lapse, now.real, task.timeout_at)


def fired(task: Task, deadline_watched: int, now: Reading) -> tuple[Cause, int]:
    """How and when (real ms) the epoch of a claim ends that a switch of this deadline takes.

    The worker held it until the deadline, whenever the fire was noticed; but a lease that ran out
    before the deadline had ended by then. Where both come at once it was the switch.
    """
    assert task.expires_watched is not None
    if task.expires_watched < deadline_watched:
        return "lapsed", now.real_of(task.expires_watched)
    return "switch_fired", now.real_of(deadline_watched)


def disarm(task: Task) -> tuple[HeartbeatArguments, ...]:
    """Give the call that ends the guard of a claim, if it has one."""
    if not task.guard:
        return ()
    scope = guard_scope(task.id)
    return (HeartbeatArguments(scope=scope, expect_within_seconds=UNSET, disarm=True),)


def or_none(value: str | UnsetType) -> str | None:
    """Give what was sent, or ``None``."""
    return None if value is UNSET else value
