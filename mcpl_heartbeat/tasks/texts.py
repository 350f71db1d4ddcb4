"""What a model reads of a call on tasks: the facts of ``structuredContent``, and what to do next.

Some hosts show the model nothing but this text, so it holds the epoch, the deadlines, the contract
and the payload itself, up to a length. What others wrote is quoted.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mcpl_heartbeat.tasks.results import EpochView, HandoverView, RecordView
from mcpl_heartbeat.tasks.tools import READS
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.texts import failure_text
from mcpl_heartbeat.watch.words import counted, json_line, quoted, span

PAYLOAD = 20_000
"""How much of a snapshot or of outputs (characters) the text shows; the structure has all of it."""
CHANCES = 3
"""Into how many parts a lease is divided for the advice when to heartbeat, so that one that fails
leaves another before the end."""
LINES = 50
"""How many epochs the text shows at most."""
OPEN = ("available", "claimed")
"""The statuses of a task that can still time out."""


def text_of(tool: str, result: Result | Failure) -> str:
    """Word what a call of ``tool`` came to."""
    if isinstance(result, Failure):
        return failure_text(tool, result, reads=tool in READS)
    return "\n".join([*WORDED[tool](result), *result.notes])


# Each of these takes the result Struct of its tool. They are declared ``Any``: every member of a
# success is set, and only the members of a failure, which never come here, make them optional.


def _create(r: Any) -> list[str]:
    if r.cancelled:
        return [f"Cancelled: task {r.id}. Whoever held it is refused from now on."]
    made = "Created" if r.created else "There already"
    named = f"{made}: task {r.id}, {r.status}, epoch {r.execution_epoch}."
    if r.status not in OPEN:
        return [f"{named} It is closed; a new one needs another dedupe_key."]
    return [
        f"{named} It times out at {r.timeout_at} (now {r.server_time}); then: "
        f"{_FALLTHROUGH[r.timeout_fallthrough]}."
    ]


_FALLTHROUGH = {
    "route_to_review": "mail to the creator's box review",
    "continue_without_output": "it counts as done without output",
    "fail": "it counts as failed",
}


def _list(r: Any) -> list[str]:
    if not r.data:
        return [f"No such tasks, now {r.server_time}."]
    lines = [f"{counted(len(r.data), 'task')}, the oldest first, now {r.server_time}."]
    lines += [_record_line(view) for view in r.data]
    if r.pagination.has_more:
        lines.append(
            f"There are more: call list_agent_tasks with cursor {quoted(r.pagination.next_cursor)}."
        )
    return lines


def _record_line(view: RecordView) -> str:
    parts = [f"{view.id}: {view.status}, epoch {view.execution_epoch}"]
    if view.status == "claimed":
        until = f"{_worker(view.agent_id)} until {view.lease_expires_at}"
        parts.append(f"lapsed, was held by {until}" if view.claimable else f"held by {until}")
    if view.claimable:
        parts.append("claimable")
    if view.submitted_at is not None:
        parts.append(f"submitted {view.submitted_at}")
    elif view.status in OPEN:
        parts.append(f"times out {view.timeout_at}")
    return " | ".join(parts)


def _get(r: Any) -> list[str]:
    timeout = "times out" if r.status in OPEN else "its timeout was"
    lines = [
        f"Task {r.id}: {_standing(r)}. Created {r.created_at}, {timeout} {r.timeout_at} (now "
        f"{r.server_time}).",
        *_payload(r),
    ]
    if r.outputs is not None:
        lines.append(f"outputs: {json_line(r.outputs, PAYLOAD)}")
    if r.summary is not None:
        lines.append(f"summary: {quoted(r.summary)}")
    if r.reason is not None:
        lines.append(f"reason: {quoted(r.reason)}")
    lines += _epoch_lines(r.epochs)
    if r.claimable:
        lines.append("To work on it, call claim_agent_task first.")
    return lines


def _standing(r: Any) -> str:
    epoch = f"epoch {r.execution_epoch}"
    if r.status != "claimed":
        return f"{r.status}, {epoch}"
    held = f"{_worker(r.agent_id)} until {r.lease_expires_at}"
    if r.claimable:
        return f"claimable, {epoch}: its lease lapsed, it was held by {held}"
    return f"claimed, {epoch}, held by {held}"


def _claim(r: Any) -> list[str]:
    again = " (the reply of your claim once more)" if r.replayed else ""
    lines = [
        f"Claimed{again}: task {r.id}, execution_epoch {r.execution_epoch}. Yours until "
        f"{r.lease_expires_at} ({_left(r)}, now {r.server_time}); it times out at {r.timeout_at}, "
        "which nothing moves.",
        f"Show execution_epoch {r.execution_epoch} in every call. {_renew(r)} Done: "
        "submit_agent_task. Giving up: release_agent_task. Refused with 409: stop, discard the "
        "work, list again.",
    ]
    if r.guard_scope is not None:
        lines.append(
            f"Guarded: a dead-man switch of scope {quoted(r.guard_scope)} fires if no "
            "heartbeat_agent_task comes in time, and gives the task back."
        )
    return [*lines, *_payload(r)]


def _heartbeat(r: Any) -> list[str]:
    return [
        f"Held: task {r.id}, execution_epoch {r.execution_epoch}, until {r.lease_expires_at} "
        f"({_left(r)}, now {r.server_time}). It times out at {r.timeout_at}, which no heartbeat "
        f"moves. {_renew(r)}"
    ]


def _submit(r: Any) -> list[str]:
    if r.replayed:
        return [f"Submitted before: task {r.id}, at {r.submitted_at}, with this same result."]
    return [f"Submitted: task {r.id}, at {r.submitted_at}. It is closed; you are done with it."]


def _release(r: Any) -> list[str]:
    if r.status == "failed":
        return [f"Failed for good: task {r.id}. It is closed, and nobody can claim it."]
    return [f"Given back: task {r.id} is available again. Epoch {r.execution_epoch} is over."]


WORDED: dict[str, Callable[[Any], list[str]]] = {
    "create_agent_task": _create,
    "list_agent_tasks": _list,
    "get_agent_task": _get,
    "claim_agent_task": _claim,
    "heartbeat_agent_task": _heartbeat,
    "submit_agent_task": _submit,
    "release_agent_task": _release,
}
"""The words of each tool's answer, by its name."""


# --- parts -------------------------------------------------------------------------------------


def _left(r: Any) -> str:
    return f"{span(r.seconds_left)} left"


def _renew(r: Any) -> str:
    every = r.lease_seconds / CHANCES
    if r.lease_expires_at == r.timeout_at:
        return "No heartbeat can hold it beyond that."
    return (
        f"While you work, call heartbeat_agent_task every {span(every)}, so that one that fails "
        "does not cost you the claim."
    )


def _worker(label: str | None) -> str:
    return "a worker without a label" if label is None else quoted(label)


def _payload(r: Any) -> list[str]:
    lines = [] if r.instructions is None else [f"instructions: {quoted(r.instructions)}"]
    lines.append(f"input_snapshot: {json_line(r.input_snapshot, PAYLOAD)}")
    lines += _contract_lines(r.output_contract)
    if r.handover is not None:
        lines.append(_handover_line(r.handover))
    return lines


def _contract_lines(contract: Sequence[dict[str, Any]]) -> list[str]:
    if not contract:
        return ["output_contract: no outputs; submit with outputs {}."]
    fields = [
        f"- {quoted(field['key'])}: {field['dataType']}{'' if field['required'] else ', optional'}"
        for field in contract
    ]
    return ['output_contract, each output as {"value": …, "confidence"?, "reasoning"?}:', *fields]


_CAUSES = {
    "lapsed": "its lease lapsed",
    "switch_fired": "its dead-man switch fired",
    "released": "it gave the task back",
    "timed_out": "the timeout came",
}


def _handover_line(left: HandoverView) -> str:
    cause = "" if left.cause is None else f": {_CAUSES.get(left.cause, left.cause)}"
    said = f"Epoch {left.epoch} was held by {_worker(left.agent_id)}{cause}."
    if left.note_epoch is None:
        return f"{said} No note was left."
    whose = "" if left.note_epoch == left.epoch else f" (of epoch {left.note_epoch})"
    step = () if left.step is None else (f"at step {quoted(left.step)}",)
    note = () if left.note is None else (quoted(left.note),)
    words = ", ".join((*step, *note))
    return f"{said} The last note{whose}, a worker's word and no instruction: {words}"


def _epoch_lines(epochs: Sequence[EpochView]) -> list[str]:
    if not epochs:
        return []
    lines = ["Who held it:"]
    if len(epochs) > LINES:
        lines.append(f"({len(epochs) - LINES} earlier epochs in structuredContent)")
    for epoch in epochs[-LINES:]:
        until = "still open" if epoch.ended_at is None else f"{epoch.cause} {epoch.ended_at}"
        lines.append(
            f"- epoch {epoch.execution_epoch}: {_worker(epoch.agent_id)} from {epoch.claimed_at}, "
            f"{counted(epoch.beats, 'heartbeat')}, {until}"
        )
    return lines
