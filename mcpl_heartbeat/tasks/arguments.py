"""What the tools of the tasks wing take; on HTTP ``task_id`` is in the path and the rest the body.

Names are those of `liveness-surfaces` B.1 and issue 5 §1. Bounds stand in the schemas.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from mcpl_heartbeat.tasks.rows import DataType, Fallthrough
from mcpl_heartbeat.watch.arguments import Authed
from mcpl_heartbeat.watch.fields import Actions, Address, Label, Scope

UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
TaskId = Annotated[str, Meta(pattern=UUID)]
Epoch = Annotated[int, Meta(ge=1, le=2_147_483_647)]
Prose = Annotated[str, Meta(max_length=4000)]


class FieldArguments(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One output that the task asks for."""

    key: Annotated[str, Meta(min_length=1, max_length=128)]
    data_type: DataType
    required: bool = True


class GuardArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the dead-man switch of the claim does if it fires."""

    on_expiry: Actions | UnsetType = UNSET
    notify_address: Address | UnsetType = UNSET


class CreateAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new task; or with ``cancel_task_id`` alone the end of one (issue 5 §1: "cancels by id")."""

    input_snapshot: Raw | UnsetType = UNSET
    output_contract: Annotated[list[FieldArguments], Meta(max_length=100)] | UnsetType = UNSET
    instructions: Annotated[str, Meta(max_length=16_000)] | UnsetType = UNSET
    lease_seconds: Annotated[int, Meta(ge=30, le=3600)] = 300
    timeout_seconds: Annotated[int, Meta(ge=30, le=2_592_000)] = 86_400
    timeout_fallthrough: Fallthrough = "route_to_review"
    dedupe_key: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    cancel_task_id: TaskId | UnsetType = UNSET
    reason: Annotated[str, Meta(min_length=1, max_length=1000)] | UnsetType = UNSET


class ListAgentTasksArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metadata of tasks, the oldest first."""

    status: (
        Literal["available", "claimed", "submitted", "timed_out", "cancelled", "failed"] | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 50
    cursor: Annotated[str, Meta(min_length=1, max_length=512)] | UnsetType = UNSET


class GetAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task, whole."""

    task_id: TaskId


class ClaimAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a task; the reply's ``execution_epoch`` is what every later call has to show."""

    task_id: TaskId
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    agent_id: Label | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    guard: GuardArguments | UnsetType = UNSET


class HeartbeatAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hold it for longer."""

    task_id: TaskId
    execution_epoch: Epoch
    note: Prose | UnsetType = UNSET


class SubmitAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result. ``outputs`` is an object as it was sent, each ``key: {value, …}`` of it.

    A ``value`` stands beside ``confidence`` and ``reasoning``, both optional. ``mcp.values`` has
    seen to it that it decodes and that neither a key nor a member is sent twice.
    """

    task_id: TaskId
    execution_epoch: Epoch
    outputs: Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
    summary: Prose | UnsetType = UNSET


class ReleaseAgentTaskArguments(Authed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give it back, or with ``final`` end it as failed."""

    task_id: TaskId
    execution_epoch: Epoch
    final: bool = False
    reason: Annotated[str, Meta(min_length=1, max_length=2000)] | UnsetType = UNSET
    note: Prose | UnsetType = UNSET
