"""Why a call on a task was refused, and what that means for whoever made it.

A worker that is refused has lost the task: whatever it has made belongs to a claim that is over.
So every refusal but one says "stop"; bad outputs leave the claim as it is.
"""

from collections.abc import Iterable

from mcpl_heartbeat.tasks.rows import Task
from mcpl_heartbeat.tasks.states import is_live, lease_end
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure, failure
from mcpl_heartbeat.watch.words import quoted

STOP = "Stop: discard the work, list again."


def unknown_task(now: Reading) -> Failure:
    """Refuse an id that is not there, or is another namespace's: who asks cannot tell which."""
    return failure(
        "unknown_task",
        "There is no task of this id among yours.",
        "Call list_agent_tasks and use an id that it gives.",
        server_time=now.server_time,
    )


def already_claimed(task: Task, now: Reading) -> Failure:
    """Refuse a claim of what is held. The epoch stays untold: it is its holder's to show."""
    holder, end = task.agent_id, _end(task, now)
    who = _who(holder)
    return failure(
        "already_claimed",
        f"{who[0].upper()}{who[1:]} holds this task until {end}, or for longer if it heartbeats.",
        "Leave it alone and claim another: list again. If this was your own claim whose reply was "
        "lost, claim with the same idempotency_key; without one, wait for the lease to lapse.",
        server_time=now.server_time,
        holder=holder,
        lease_expires_at=end,
    )


def stale_epoch(task: Task, epoch: int, now: Reading) -> Failure:
    """Refuse an epoch that is not the task's present one."""
    if is_live(task, now):
        what = f"{_who(task.agent_id)} holds it until {_end(task, now)}"
        standing = {"holder": task.agent_id, "lease_expires_at": _end(task, now)}
    else:
        what, standing = "nobody holds it now", {}
    return failure(
        "stale_epoch",
        f"execution_epoch {epoch} is not in force: the task is at epoch {task.epoch}, and {what}.",
        STOP,
        server_time=now.server_time,
        execution_epoch=task.epoch,
        **standing,
    )


def lease_expired(task: Task, now: Reading) -> Failure:
    """Refuse the last epoch there was, whose claim is over though nobody has claimed anew."""
    more = {}
    lapsed_at = _lapsed_at(task, now)
    if lapsed_at is not None:
        more = {"holder": task.agent_id, "lease_expires_at": lapsed_at}
        why = f"the lease of epoch {task.epoch} lapsed at {lapsed_at}"
    elif task.epoch == 1:
        why = "nobody has claimed this task yet"
    elif task.lost == "switch_fired":
        why = f"the dead-man switch of epoch {task.epoch} fired and gave the task back"
    else:
        why = f"the claim of epoch {task.epoch} was released"
    return failure(
        "lease_expired",
        f"No claim is in force: {why}. It cannot be revived.",
        f"{STOP} To go on with it, claim_agent_task gives you a new epoch if nobody is faster.",
        server_time=now.server_time,
        execution_epoch=task.epoch,
        **more,
    )


_CLOSED = {
    "submitted": "its result was submitted",
    "timed_out": "its timeout came",
    "cancelled": "it was cancelled",
    "failed": "it was given up as failed",
}


def task_closed(task: Task, now: Reading) -> Failure:
    """Refuse any change of a task that has ended."""
    when = task.timeout_at if task.status == "timed_out" else task.updated_at
    return failure(
        "task_closed",
        f"The task is closed, {task.status}: {_CLOSED[task.status]} at {now.tell(when)}.",
        STOP,
        server_time=now.server_time,
        execution_epoch=task.epoch,
    )


def invalid_outputs(task: Task, problems: Iterable[str], now: Reading) -> Failure:
    """Refuse a result that is not what the contract asks for. The claim stays as it was."""
    all_of_them = tuple(problems)
    end = _end(task, now)
    return failure(
        "invalid_outputs",
        f"The outputs do not fit the contract, and nothing was kept: {'; '.join(all_of_them)}.",
        f"The claim is still yours until {end}: mend every problem named and submit again with the "
        "same execution_epoch.",
        problems=all_of_them,
        server_time=now.server_time,
        execution_epoch=task.epoch,
        lease_expires_at=end,
    )


def _who(label: str | None) -> str:
    return "a worker without a label" if label is None else f"worker {quoted(label)}"


def _lapsed_at(task: Task, now: Reading) -> str | None:
    """When the lease of the last claim lapsed, if that was its end."""
    if task.status == "claimed":
        return _end(task, now)
    if task.lost == "lapsed" and task.claimable_at is not None:
        # A fire found it lapsed and put it back: it could be claimed from the lapse on.
        return now.tell(task.claimable_at)
    return None


def _end(task: Task, now: Reading) -> str:
    end = lease_end(task, now)
    assert end is not None
    return now.tell(end)
