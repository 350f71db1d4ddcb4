"""What the tools of the tasks wing take; on HTTP ``task_id`` is in the path and the rest the body.

Names are those of `liveness-surfaces` B.1 and issue 5 §1. Every bound that is enforced stands in
the schema, and every rule in a description. The rules between arguments are in ``rules.py``; what
depends on the stored task, or on now, is decided where those are known.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from mcpl_heartbeat.tasks.rows import DataType, Fallthrough
from mcpl_heartbeat.watch.arguments import Authed
from mcpl_heartbeat.watch.fields import Actions, Address, Label, Scope

MAX_JSON = 262_144
"""The most bytes that a snapshot, or the outputs, may have as JSON."""
MAX_CURSOR = 512
UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
EXAMPLE_ID = "3f2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f70"

TaskId = Annotated[str, Meta(pattern=UUID)]
Epoch = Annotated[int, Meta(ge=1, le=2_147_483_647)]
Prose = Annotated[str, Meta(max_length=4000)]
Step = Annotated[str, Meta(max_length=1024)]
Key = Annotated[str, Meta(min_length=1, max_length=256)]

_TASK = Meta(
    description="The id of the task: a UUID, as create_agent_task or list_agent_tasks gave it.",
    examples=[EXAMPLE_ID],
)
_EPOCH = Meta(
    description="The execution_epoch that your claim returned: it proves that the claim is still "
    "yours. A whole number from 1 to 2147483647.",
    examples=[2],
)


class FieldArguments(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One output that the task asks for."""

    key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)],
        Meta(description="The name of the output, 1 to 128 characters; each key once."),
    ]
    data_type: Annotated[
        DataType,
        Meta(
            description="string, number, integer, boolean, date (YYYY-MM-DD, or a moment with Z or "
            "an offset), object or array."
        ),
    ]
    required: Annotated[
        bool, Meta(description="Whether a result without it is refused; default true.")
    ] = True


class GuardArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the dead-man switch of the claim does if it fires."""

    on_expiry: Annotated[
        Actions | UnsetType,
        Meta(
            description="What is done beside giving the task back: release_leases, mark_failed, "
            "queue_alert (needs notify_address); default mark_failed."
        ),
    ] = UNSET
    notify_address: Annotated[
        Address | UnsetType,
        Meta(
            description="Where the alert goes: agent:<id> or agent:<id>/<box>; only with "
            "queue_alert.",
            examples=["agent:7k2pq4m3x5w6y7zb/alerts"],
        ),
    ] = UNSET


class CreateAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new task; or with ``cancel_task_id`` alone the end of one (issue 5 §1: "cancels by id")."""

    input_snapshot: Annotated[
        Raw | UnsetType,
        Meta(
            description="What the work starts from: any JSON, at most 262144 bytes and 100 levels "
            "deep, given to whoever claims the task and never changed. Required for a new task.",
            examples=[{"document": "permit 4711", "pages": 12}],
        ),
    ] = UNSET
    output_contract: Annotated[
        Annotated[list[FieldArguments], Meta(max_length=100)] | UnsetType,
        Meta(
            description="The outputs that a result has, and no others: a list of up to 100 of "
            "{key, dataType, required}. An empty list asks for none. Required for a new task.",
            examples=[[{"key": "total", "dataType": "number", "required": True}]],
        ),
    ] = UNSET
    instructions: Annotated[
        Annotated[str, Meta(max_length=16_000)] | UnsetType,
        Meta(description="What the worker is to do, at most 16000 characters."),
    ] = UNSET
    lease_seconds: Annotated[
        int,
        Meta(
            ge=30,
            le=3600,
            description="For how long a claim, and each heartbeat of it, holds the task: 30 to "
            "3600 seconds; default 300.",
        ),
    ] = 300
    timeout_seconds: Annotated[
        int,
        Meta(
            ge=30,
            le=2_592_000,
            description="In how many seconds the task times out, whoever holds it and however "
            "often they heartbeat: 30 to 2592000 (30 days), not less than lease_seconds; default "
            "86400 (24 hours).",
        ),
    ] = 86_400
    timeout_fallthrough: Annotated[
        Fallthrough,
        Meta(
            description="What happens then, once: route_to_review (default; mail to your box "
            "review), continue_without_output or fail (both only say so in the task)."
        ),
    ] = "route_to_review"
    dedupe_key: Annotated[
        Key | UnsetType,
        Meta(
            description="Your own name for it, 1 to 256 characters: a second call with the same "
            "one makes no second task but returns the first, created false."
        ),
    ] = UNSET
    cancel_task_id: Annotated[
        TaskId | UnsetType,
        Meta(
            description="Make nothing, but cancel this task of yours, claimed or not; only reason "
            "may be sent beside it.",
            examples=[EXAMPLE_ID],
        ),
    ] = UNSET
    reason: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1000)] | UnsetType,
        Meta(description="Why it is cancelled, 1 to 1000 characters; only with cancel_task_id."),
    ] = UNSET


class ListAgentTasksArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metadata of tasks, the oldest first."""

    status: Annotated[
        Literal["available", "claimed", "submitted", "timed_out", "cancelled", "failed"]
        | UnsetType,
        Meta(
            description="Only these. available: all that can be claimed, also where the lease of "
            "a claim ran out; claimed: those whose lease runs. Left out: all tasks."
        ),
    ] = UNSET
    limit: Annotated[
        int,
        Meta(ge=1, le=100, description="How many tasks to list at once, 1 to 100; default 50."),
    ] = 50
    cursor: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_CURSOR)] | UnsetType,
        Meta(description="The next_cursor of the page before, to go on from there."),
    ] = UNSET


class GetAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task, whole."""

    task_id: Annotated[TaskId, _TASK]


class ClaimAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a task; the reply's ``execution_epoch`` is what every later call has to show."""

    task_id: Annotated[TaskId, _TASK]
    idempotency_key: Annotated[
        Key | UnsetType,
        Meta(
            description="A name for this one attempt, 1 to 256 characters, new for each claim: "
            "sent again while the claim holds, it gives the same reply once more, should the "
            "first have been lost."
        ),
    ] = UNSET
    agent_id: Annotated[
        Label | UnsetType,
        Meta(
            description="A label for the instance that works on it, 1 to 64 characters; others "
            "see who holds it. Left out: the label you registered with. Proves nothing.",
            examples=["worker-3"],
        ),
    ] = UNSET
    scope: Annotated[
        Scope | UnsetType,
        Meta(
            description="The unit of work under which you beat the heartbeat tool, 1 to 256 "
            "characters: when that dead-man switch fires, the task is given back at once."
        ),
    ] = UNSET
    guard: Annotated[
        GuardArguments | UnsetType,
        Meta(
            description="Arms a dead-man switch for this claim, with the lease as its window: "
            "heartbeat_agent_task beats it too, submit and release disarm it, and if it fires the "
            "task is given back. {} takes the defaults.",
            examples=[{"on_expiry": ["mark_failed"]}],
        ),
    ] = UNSET


class HeartbeatAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hold it for longer."""

    task_id: Annotated[TaskId, _TASK]
    execution_epoch: Annotated[Epoch, _EPOCH]
    note: Annotated[
        Prose | UnsetType,
        Meta(
            description="How far you are, at most 4000 characters; kept for whoever claims the "
            "task next, should you lose it."
        ),
    ] = UNSET
    step: Annotated[
        Step | UnsetType,
        Meta(
            description="The step you are at, at most 1024 characters, kept likewise.",
            examples=["6 of 9"],
        ),
    ] = UNSET


class SubmitAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result. ``outputs`` is an object as it was sent, each ``key: {value, …}`` of it.

    A ``value`` stands beside ``confidence`` and ``reasoning``, both optional. ``mcp.values`` has
    seen to it that it decodes and that neither a key nor a member is sent twice.
    """

    task_id: Annotated[TaskId, _TASK]
    execution_epoch: Annotated[Epoch, _EPOCH]
    outputs: Annotated[
        Raw,
        Meta(
            description="For each key of output_contract {value, confidence, reasoning}: value as "
            "its dataType says, confidence (optional) from 0 to 1, reasoning (optional) of at most "
            "4000 characters. At most 262144 bytes of JSON. An undeclared key, a missing required "
            "one or a wrong type: all of it is refused, and the claim stays.",
            examples=[{"total": {"value": 12.5, "confidence": 0.9}}],
            extra_json_schema={"type": "object"},
        ),
    ]
    summary: Annotated[
        Prose | UnsetType,
        Meta(description="What was done, in your own words, at most 4000 characters."),
    ] = UNSET


class ReleaseAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give it back, or with ``final`` end it as failed."""

    task_id: Annotated[TaskId, _TASK]
    execution_epoch: Annotated[Epoch, _EPOCH]
    final: Annotated[
        bool,
        Meta(
            description="true: nobody is to try again; the task ends as failed, and reason is "
            "required. Default false: anyone may claim it.",
            examples=[False],
        ),
    ] = False
    reason: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2000)] | UnsetType,
        Meta(
            description="Why it cannot be done, 1 to 2000 characters; only with final true (use "
            "note otherwise)."
        ),
    ] = UNSET
    note: Annotated[
        Prose | UnsetType,
        Meta(
            description="How far you are, at most 4000 characters; kept for whoever claims the "
            "task next."
        ),
    ] = UNSET
    step: Annotated[
        Step | UnsetType,
        Meta(
            description="The step you were at, at most 1024 characters, kept likewise.",
            examples=["6 of 9"],
        ),
    ] = UNSET
