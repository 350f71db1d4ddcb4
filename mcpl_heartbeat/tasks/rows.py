"""What the store holds of the tasks wing, a Struct for each table.

``*_at`` is real time, ``*_watched`` is watched time (``watch/clock.py``), both in milliseconds. A
lease is in watched time, so that no worker loses its claim over a time in which nobody watched;
``timeout_at`` is real time and gets nothing back (F.2).
"""

from typing import Literal

import msgspec

from mcpl_heartbeat.watch.rows import Action

Status = Literal["available", "claimed", "submitted", "timed_out", "cancelled", "failed"]
Fallthrough = Literal["route_to_review", "continue_without_output", "fail"]
DataType = Literal["string", "number", "integer", "boolean", "date", "object", "array"]
Cause = Literal[
    "submitted", "released", "failed", "timed_out", "cancelled", "lapsed", "switch_fired"
]
"""How an epoch ended."""

REVIEW_BOX = "review"
"""The creator's box that ``route_to_review`` sends to."""


class Field(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One output that a task asks for; ``dataType`` on the wire as in B.1."""

    key: str
    data_type: DataType
    required: bool = True


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task; its life is the table in ``machine.py``."""

    namespace: str
    id: str
    """A UUID."""
    seq: int = 0
    """Rises with every task of the store; 0 until it is kept. Lists go by it, the oldest first."""
    status: Status = "available"
    epoch: int = 1
    """1 while it was never claimed; each claim adds one, nothing else changes it."""
    creator: str
    """The ``<id>`` of the creator's address."""
    created_at: int
    updated_at: int
    """When the row changed: of what ends by itself, when that was noticed. The audit
    (``Epoch.ended_at``) and ``timeout_at`` say when it happened."""
    lease_ms: int
    timeout_at: int
    fallthrough: Fallthrough
    dedupe_key: str | None = None
    instructions: str | None = None
    input_snapshot: msgspec.Raw
    output_contract: tuple[Field, ...]
    claimed_at: int | None = None
    expires_watched: int | None = None
    """When the lease lapses; set exactly while ``claimed``."""
    agent_id: str | None = None
    """The label of whoever holds it, or held it last."""
    scope: str | None = None
    """The unit of work of the claim: a switch of that scope that fires gives the task back."""
    guard: bool = False
    """Whether the claim armed a switch of its own, on the scope ``guard_scope(id)``."""
    claim_key: str | None = None
    """The claim's ``idempotency_key``."""
    note: str | None = None
    """The last progress note, kept for the next claimant."""
    step: str | None = None
    """The step it spoke of, likewise."""
    note_at: int | None = None
    """When (real ms) one of the two was last left, and under which epoch."""
    note_epoch: int | None = None
    lost: Cause | None = None
    """How the last epoch ended, when it ended without a result; for the next claimant."""
    claimable_at: int | None = None
    """Since when (real ms) whoever looks sees that it waits to be claimed; ``None`` when it does
    not. After a fire that was noticed late that is when it was noticed. A lapsed lease does not
    write this: it shows in ``expires_watched``."""
    submitted_at: int | None = None
    outputs: msgspec.Raw | None = None
    summary: str | None = None
    reason: str | None = None
    """Why it was failed for good, or cancelled."""


class Epoch(msgspec.Struct, frozen=True, kw_only=True):
    """Who held a task when: the audit."""

    namespace: str
    task: str
    epoch: int
    agent_id: str | None
    claimed_at: int
    beats: int = 0
    ended_at: int | None = None
    """Until when it was held: the call that ended it, or the lapse, the deadline of the switch or
    the timeout, whichever came first."""
    cause: Cause | None = None
    note: str | None = None
    step: str | None = None
    note_at: int | None = None


class Guard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the dead-man switch of a claim does when it fires; its window is the lease."""

    on_expiry: list[Action] | msgspec.UnsetType = msgspec.UNSET
    notify_address: str | msgspec.UnsetType = msgspec.UNSET


def guard_scope(id: str) -> str:
    """Name the scope of the switch that guards a claim of this task."""
    return f"task:{id}"
