"""What each call on a task comes to, and what its timeout and a switch's fire do to it.

The life itself is the table in ``states.py``. Each function takes the row as it is in the open
transaction and says what is to be written in that same one.
"""

from typing import Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from mcpl_heartbeat.tasks import contract, guards, moves, refusals, reviews, views
from mcpl_heartbeat.tasks.arguments import (
    ClaimAgentTaskArguments,
    CreateAgentTaskArguments,
    HeartbeatAgentTaskArguments,
    ReleaseAgentTaskArguments,
    SubmitAgentTaskArguments,
)
from mcpl_heartbeat.tasks.results import (
    CreateAgentTaskResult,
    HeartbeatAgentTaskResult,
    ReleaseAgentTaskResult,
    SubmitAgentTaskResult,
)
from mcpl_heartbeat.tasks.rows import Cause, Field, Task
from mcpl_heartbeat.tasks.states import (
    CLOSED,
    TABLE,
    Event,
    State,
    claimable,
    is_lapsed,
    is_live,
    is_open,
    is_overdue,
    next_status,
)
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.rows import Envelope, FreedTask

__all__ = [
    "CLOSED",
    "TABLE",
    "Change",
    "Event",
    "GivenBack",
    "State",
    "TimedOut",
    "cancel",
    "check",
    "claim",
    "claimable",
    "create",
    "created_result",
    "give_back",
    "heartbeat",
    "is_lapsed",
    "is_live",
    "is_open",
    "is_overdue",
    "release",
    "submit",
    "time_out",
]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to, to be done all in one transaction."""

    task: Task | None = None
    """The row to keep; ``None``: what there is stays as it is."""
    ends: Cause | None = None
    """How the epoch that the task had before this call ended, if it did; and when (real ms)."""
    ended_at: int | None = None
    begins: bool = False
    """Whether an epoch begins: the one of ``task``."""
    beat: bool = False
    """Whether the running epoch counts one beat more."""
    guard: tuple[HeartbeatArguments, ...] = ()
    """Calls of ``heartbeat`` on the guard's switch. If one is refused, so is the whole call."""
    result: Result | Failure


class TimedOut(msgspec.Struct, frozen=True, kw_only=True):
    """What ``timeout_at`` does, all in one transaction."""

    task: Task
    ends: Cause | None
    ended_at: int | None
    guard: tuple[HeartbeatArguments, ...]
    """As in ``Change``: the guard is disarmed, for its worker did not die of this."""
    review: Envelope | None
    """Mail for the creator, if the fallthrough is ``route_to_review``."""


class GivenBack(msgspec.Struct, frozen=True, kw_only=True):
    """What the fire of a switch does to a task that was claimed under it."""

    task: Task
    ends: Cause
    ended_at: int
    freed: FreedTask | None
    """For the alert; ``None``: its lease had lapsed before the switch was late."""


def check(task: Task | None, epoch: int, now: Reading) -> Task | Failure:
    """Give the task if whoever shows ``epoch`` may change it now: the one place that decides."""
    if task is None:
        return refusals.unknown_task(now)
    assert not is_overdue(task, now)
    if not is_open(task):
        return refusals.task_closed(task, now)
    if epoch != task.epoch:
        return refusals.stale_epoch(task, epoch, now)
    if not is_live(task, now):
        return refusals.lease_expired(task, now)
    return task


# --- the creator -------------------------------------------------------------------------------


def create(
    namespace: str, creator: str, id: str, arguments: CreateAgentTaskArguments, now: Reading
) -> Task:
    """Make a task of arguments that the rules have passed. ``creator``: the ``<id>`` of an address,
    ``id``: a new UUID."""
    assert arguments.input_snapshot is not UNSET
    assert arguments.output_contract is not UNSET
    return Task(
        namespace=namespace,
        id=id,
        creator=creator,
        created_at=now.real,
        updated_at=now.real,
        lease_ms=arguments.lease_seconds * 1000,
        timeout_at=now.real + arguments.timeout_seconds * 1000,
        fallthrough=arguments.timeout_fallthrough,
        dedupe_key=moves.or_none(arguments.dedupe_key),
        instructions=moves.or_none(arguments.instructions),
        input_snapshot=arguments.input_snapshot,
        output_contract=tuple(
            Field(key=field.key, data_type=field.data_type, required=field.required)
            for field in arguments.output_contract
        ),
        claimable_at=now.real,
    )


def created_result(task: Task, existing: Task | None, now: Reading) -> CreateAgentTaskResult:
    """Tell of ``task``, or of the ``existing`` one that its dedupe key names already."""
    if existing is None:
        return CreateAgentTaskResult(**views.metadata(task, now), created=True, cancelled=False)
    notes = ["The dedupe_key names a task that is there already: this is it, unchanged."]
    different = _different(task, existing)
    if different:
        notes.append(
            f"What you sent differs from it in {' and '.join(different)}, and was not taken."
        )
    return CreateAgentTaskResult(
        **views.metadata(existing, now), created=False, cancelled=False, notes=tuple(notes)
    )


def cancel(task: Task | None, arguments: CreateAgentTaskArguments, now: Reading) -> Change:
    """Call it off, whoever holds it. A second time it still is called off."""
    if task is None:
        return Change(result=refusals.unknown_task(now))
    assert not is_overdue(task, now)
    if task.status == "cancelled":
        notes = ("It was cancelled before; nothing has changed.",)
        return Change(
            result=CreateAgentTaskResult(
                **views.metadata(task, now), created=False, cancelled=True, notes=notes
            )
        )
    if not is_open(task):
        return Change(result=refusals.task_closed(task, now))
    changed = replace(moves.closed(task, Event.CANCEL, now), reason=moves.or_none(arguments.reason))
    ends, ended_at = moves.ending(task, "cancelled", now)
    return Change(
        task=changed,
        ends=ends,
        ended_at=ended_at,
        guard=moves.disarm(task),
        result=CreateAgentTaskResult(**views.metadata(changed, now), created=False, cancelled=True),
    )


# --- the worker --------------------------------------------------------------------------------


def claim(task: Task | None, arguments: ClaimAgentTaskArguments, now: Reading) -> Change:
    """Take a task that nobody holds, as its next epoch.

    The ``idempotency_key`` of the claim that is in force gives that claim's reply again.
    """
    if task is None:
        return Change(result=refusals.unknown_task(now))
    assert not is_overdue(task, now)
    if not is_open(task):
        return Change(result=refusals.task_closed(task, now))
    if is_live(task, now):
        key = arguments.idempotency_key
        if key is UNSET or key != task.claim_key:
            return Change(result=refusals.already_claimed(task, now))
        return Change(result=views.claimed(task, views.handover(task, now), now, replayed=True))
    ends, ended_at = moves.ending(task, "lapsed", now)
    changed = replace(
        task,
        status=next_status(task, Event.CLAIM),
        epoch=task.epoch + 1,
        updated_at=now.real,
        claimed_at=now.real,
        expires_watched=now.watched + task.lease_ms,
        agent_id=moves.or_none(arguments.agent_id),
        scope=moves.or_none(arguments.scope),
        guard=arguments.guard is not UNSET,
        claim_key=moves.or_none(arguments.idempotency_key),
        lost=ends or task.lost,
        claimable_at=None,
    )
    # A guard that still stands is another claim's: it must not fire for this one.
    guard = moves.disarm(task)
    if arguments.guard is not UNSET:
        guard += (guards.arm(changed, arguments),)
    return Change(
        task=changed,
        ends=ends,
        ended_at=ended_at,
        begins=True,
        guard=guard,
        result=views.claimed(changed, views.handover(task, now), now),
    )


def heartbeat(
    task: Task | None,
    arguments: HeartbeatAgentTaskArguments,
    now: Reading,
    down: guards.Down | None = None,
) -> Change:
    """Hold it for one more lease from now, and with it the guard, which may be ``down``."""
    held = check(task, arguments.execution_epoch, now)
    if isinstance(held, Failure):
        return Change(result=held)
    changed = replace(
        moves.noted(held, arguments.note, arguments.step, now),
        updated_at=now.real,
        expires_watched=now.watched + held.lease_ms,
    )
    said = () if down is None else (down.note,)
    return Change(
        task=changed,
        beat=True,
        guard=(guards.beat(held, down),) if held.guard else (),
        result=HeartbeatAgentTaskResult(
            **views.metadata(changed, now), notes=(*said, *views.not_renewed(changed))
        ),
    )


def submit(task: Task | None, arguments: SubmitAgentTaskArguments, now: Reading) -> Change:
    """Take the result, if all of it fits the contract.

    The same result once more, under the epoch that submitted it, is told as it is stored.
    """
    summary = moves.or_none(arguments.summary)
    if task is not None and task.status == "submitted" and task.epoch == arguments.execution_epoch:
        assert task.outputs is not None
        if task.summary == summary and contract.same(arguments.outputs, task.outputs):
            return Change(result=SubmitAgentTaskResult(**views.metadata(task, now), replayed=True))
    held = check(task, arguments.execution_epoch, now)
    if isinstance(held, Failure):
        return Change(result=held)
    problems = contract.check(arguments.outputs, held.output_contract)
    if problems:
        return Change(result=refusals.invalid_outputs(held, problems, now))
    changed = replace(
        moves.closed(held, Event.SUBMIT, now),
        submitted_at=now.real,
        outputs=arguments.outputs,
        summary=summary,
        lost=None,
    )
    return Change(
        task=changed,
        ends="submitted",
        ended_at=now.real,
        guard=moves.disarm(held),
        result=SubmitAgentTaskResult(**views.metadata(changed, now), replayed=False),
    )


def release(task: Task | None, arguments: ReleaseAgentTaskArguments, now: Reading) -> Change:
    """Give it back to whoever wants it, or with ``final`` end it as failed."""
    held = check(task, arguments.execution_epoch, now)
    if isinstance(held, Failure):
        return Change(result=held)
    noted = moves.noted(held, arguments.note, arguments.step, now)
    cause: Literal["failed", "released"] = "failed" if arguments.final else "released"
    if arguments.final:
        changed = replace(
            moves.closed(noted, Event.FAIL, now), reason=moves.or_none(arguments.reason)
        )
    else:
        changed = moves.available(noted, Event.RELEASE, cause, now)
    return Change(
        task=changed,
        ends=cause,
        ended_at=now.real,
        guard=moves.disarm(held),
        result=ReleaseAgentTaskResult(**views.metadata(changed, now)),
    )


# --- nobody ------------------------------------------------------------------------------------


def time_out(task: Task, now: Reading, mail_id: str) -> TimedOut:
    """End a task that is overdue. ``mail_id``: the ``task_id`` of the mail, if there is any."""
    assert is_overdue(task, now)
    ends, ended_at = moves.ending(task, "timed_out", now)
    changed = replace(
        moves.closed(task, Event.TIMEOUT, now),
        lost=ends or task.lost,
        reason=f"timed out at {now.tell(task.timeout_at)}" if task.fallthrough == "fail" else None,
    )
    review = None
    if task.fallthrough == "route_to_review":
        left = views.handover(changed, now, closed=True)
        review = reviews.review(changed, left, mail_id, now)
    return TimedOut(
        task=changed, ends=ends, ended_at=ended_at, guard=moves.disarm(task), review=review
    )


def give_back(task: Task, deadline_watched: int, now: Reading) -> GivenBack:
    """Take it from its worker, whose switch has fired: of the claim's scope, or the guard.

    ``deadline_watched`` (ms) is the switch's. It must have come before the timeout, which may have
    come since. A lease that had lapsed by then is no loss of this fire's: its end is noted as what
    it was, and nobody is told that the fire gave the task back.
    """
    assert task.status == "claimed"
    assert task.expires_watched is not None
    ends, ended_at = moves.fired(task, deadline_watched, now)
    back = moves.available(task, Event.GIVE_BACK, ends, now)
    freed = FreedTask(id=task.id, execution_epoch=task.epoch, agent_id=task.agent_id)
    return GivenBack(
        # Not the deadline: until the fire was noticed, nobody saw that it could be claimed, and who
        # had looked meanwhile is to be woken for it. From its lapse on everybody saw it, and it is
        # no further work.
        task=replace(back, claimable_at=min(now.real_of(task.expires_watched), now.real)),
        ends=ends,
        ended_at=ended_at,
        freed=freed if ends == "switch_fired" else None,
    )


def _different(sent: Task, existing: Task) -> list[str]:
    """Name what a task that was not made would have had else."""
    different = {
        "input_snapshot": not contract.same(sent.input_snapshot, existing.input_snapshot),
        "output_contract": sent.output_contract != existing.output_contract,
        "instructions": sent.instructions != existing.instructions,
        "lease_seconds": sent.lease_ms != existing.lease_ms,
        "timeout_seconds": sent.timeout_at - sent.created_at
        != existing.timeout_at - existing.created_at,
        "timeout_fallthrough": sent.fallthrough != existing.fallthrough,
    }
    return [name for name, differs in different.items() if differs]
