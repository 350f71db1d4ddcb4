"""What the tools of the tasks wing give: the body over HTTP, ``structuredContent`` over MCP."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpl_heartbeat.watch.results import Answer, Result


class Record(Result, frozen=True, kw_only=True):
    """A task's metadata, names and nulls as in B.1."""

    id: str | UnsetType = UNSET
    status: (
        Literal["available", "claimed", "submitted", "timed_out", "cancelled", "failed"]
        | int
        | UnsetType
    ) = UNSET
    """As it is stored; ``claimable`` says whether it can be claimed."""
    claimable: bool | UnsetType = UNSET
    execution_epoch: int | UnsetType = UNSET
    claimed_at: str | UnsetType | None = UNSET
    lease_expires_at: str | UnsetType | None = UNSET
    timeout_at: str | UnsetType = UNSET
    submitted_at: str | UnsetType | None = UNSET
    created_at: str | UnsetType = UNSET
    updated_at: str | UnsetType = UNSET
    agent_id: str | UnsetType | None = UNSET
    """The label of whoever holds it."""
    lease_seconds: int | UnsetType = UNSET
    timeout_fallthrough: str | UnsetType = UNSET
    seconds_left: float | UnsetType | None = UNSET
    """Until the lease lapses."""
    holder: str | UnsetType | None = UNSET
    """Of a failure: the label of whoever holds it."""


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a list: metadata only."""

    id: str
    status: str
    claimable: bool
    execution_epoch: int
    claimed_at: str | None
    lease_expires_at: str | None
    timeout_at: str
    submitted_at: str | None
    created_at: str
    updated_at: str
    agent_id: str | None
    lease_seconds: int
    timeout_fallthrough: str


class HandoverView(msgspec.Struct, frozen=True, kw_only=True):
    """What the last claimant left behind."""

    epoch: int
    agent_id: str | None
    cause: str | None
    """How that epoch ended: lapsed, switch_fired, released."""
    note: str | None
    """The last note that any claimant left."""
    step: str | None
    """The step that it named."""
    note_epoch: int | None
    """Which of them left the two."""
    noted_at: str | None


class EpochView(msgspec.Struct, frozen=True, kw_only=True):
    """Who held it when."""

    execution_epoch: int
    agent_id: str | None
    claimed_at: str
    beats: int
    ended_at: str | None
    cause: str | None
    note: str | None
    step: str | None


class CreateAgentTaskResult(Record, frozen=True, kw_only=True):
    """The task; ``created`` false: the dedupe key named one that is there already."""

    created: bool | UnsetType = UNSET
    cancelled: bool | UnsetType = UNSET


class PaginationView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether more come, and from where."""

    has_more: bool
    next_cursor: str | None


class ListAgentTasksResult(Answer, frozen=True, kw_only=True):
    """The tasks, the oldest first."""

    data: tuple[RecordView, ...] | UnsetType = UNSET
    pagination: PaginationView | UnsetType = UNSET


class GetAgentTaskResult(Record, frozen=True, kw_only=True):
    """One task, whole."""

    input_snapshot: Raw | UnsetType = UNSET
    output_contract: tuple[dict[str, Any], ...] | UnsetType = UNSET
    instructions: str | UnsetType | None = UNSET
    handover: HandoverView | UnsetType | None = UNSET
    outputs: Raw | UnsetType | None = UNSET
    summary: str | UnsetType | None = UNSET
    reason: str | UnsetType | None = UNSET
    epochs: tuple[EpochView, ...] | UnsetType = UNSET


class ClaimAgentTaskResult(GetAgentTaskResult, frozen=True, kw_only=True):
    """The claim and the payload."""

    guard_scope: str | UnsetType | None = UNSET
    replayed: bool | UnsetType = UNSET
    """The reply of the claim that this ``idempotency_key`` made before."""


class HeartbeatAgentTaskResult(Record, frozen=True, kw_only=True):
    """Metadata only; the next deadline is ``lease_expires_at``."""


class SubmitAgentTaskResult(Record, frozen=True, kw_only=True):
    """The stored result's metadata."""

    replayed: bool | UnsetType = UNSET
    """The same result was submitted before under this epoch."""


class ReleaseAgentTaskResult(Record, frozen=True, kw_only=True):
    """The task after it was given back or failed."""
