"""What the tools of the watch wing give: the body over HTTP, ``structuredContent`` over MCP.

Times are ISO 8601 in UTC with milliseconds. A refusal that is an ordinary answer has its flag false
and a ``reason``; a flag that is ``null`` says that the state is unknown. A failure has the shape of
``failures.Failure`` instead, on every door.
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What every answer holds. The members of a failure are here, so that one schema fits both.

    Every success has ``server_time``; a failure has it where the store's time is known.
    """

    server_time: str | UnsetType = UNSET
    notes: tuple[str, ...] = ()
    """Sentences for the agent, such as what was ignored."""
    code: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    next: str | UnsetType = UNSET
    problems: tuple[str, ...] | UnsetType = UNSET


class Answer(Result, frozen=True, kw_only=True):
    """An answer whose own members leave ``status`` to the failure, where it is HTTP's number."""

    status: int | UnsetType = UNSET


class GapView(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which no server watched, and for which nobody was declared dead."""

    began_at: str
    ended_at: str
    seconds: float


class EntryView(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the journal."""

    at: str
    kind: str
    generation: int
    detail: dict[str, Any]


class HeartbeatResult(Answer, frozen=True, kw_only=True):
    """The switch after a beat. ``fired``: this call found that the generation before had fired."""

    scope: str | UnsetType = UNSET
    state: Literal["armed", "fired", "disarmed", "unarmed"] | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    deadline: str | UnsetType | None = UNSET
    seconds_left: float | UnsetType | None = UNSET
    expect_within_seconds: int | UnsetType | None = UNSET
    on_expiry: tuple[str, ...] | UnsetType = UNSET
    notify_address: str | UnsetType | None = UNSET
    alert_delivery: Literal["push", "inbox"] | UnsetType = UNSET
    """``push`` while a server is connected that can wake whom the alert is for."""
    nudge_seconds: int | UnsetType | None = UNSET
    wake_on_tasks: bool | UnsetType = UNSET
    """Whether claimable agent tasks wake the agent while this switch is armed."""
    agent_id: str | UnsetType | None = UNSET
    fired: bool | UnsetType = UNSET
    fired_generation: int | UnsetType | None = UNSET
    """The last generation that fired, ever."""
    failed: bool | UnsetType = UNSET
    warnings: tuple[str, ...] | UnsetType = UNSET


class SwitchView(msgspec.Struct, frozen=True, kw_only=True):
    """One switch as it stands."""

    scope: str
    state: Literal["armed", "fired", "disarmed"]
    generation: int
    deadline: str
    seconds_left: float | None
    """``null`` when it is not armed."""
    expect_within_seconds: int
    on_expiry: tuple[str, ...]
    notify_address: str | None
    nudge_seconds: int | None
    wake_on_tasks: bool
    agent_id: str | None
    beats: int
    """In this generation."""
    armed_at: str
    last_beat_at: str
    fires: int
    fired_generation: int | None
    failed: bool


class SwitchStatusResult(Answer, frozen=True, kw_only=True):
    """The switches of the namespace, by scope; with one scope asked for also its journal."""

    switches: tuple[SwitchView, ...] | UnsetType = UNSET
    total: int | UnsetType = UNSET
    next_cursor: str | UnsetType | None = UNSET
    watch_gaps: tuple[GapView, ...] | UnsetType = UNSET
    journal: tuple[EntryView, ...] | UnsetType = UNSET
    corrupt: tuple[str, ...] | UnsetType = UNSET
    """Scopes whose row cannot be read: set aside, never fired."""


class RegisterResult(Answer, frozen=True, kw_only=True):
    """The identity. ``agent_secret`` is told once, here, and kept nowhere."""

    agent_secret: str | UnsetType = UNSET
    address: str | UnsetType = UNSET
    namespace_id: str | UnsetType = UNSET
    label: str | UnsetType | None = UNSET
    created: bool | UnsetType = UNSET
    """False when that secret was registered before; nothing has changed then."""


class BoxView(msgspec.Struct, frozen=True, kw_only=True):
    """How much waits in one box."""

    box: str
    total: int
    due: int


class WhoamiResult(Answer, frozen=True, kw_only=True):
    """Who is asking, and what waits. Looking changes nothing."""

    address: str | UnsetType = UNSET
    namespace_id: str | UnsetType = UNSET
    label: str | UnsetType | None = UNSET
    registered_at: str | UnsetType = UNSET
    total: int | UnsetType = UNSET
    """Pending envelopes in all boxes."""
    due: int | UnsetType = UNSET
    """Those that a poll would give now."""
    next_due_at: str | UnsetType | None = UNSET
    dead_lettered: int | UnsetType = UNSET
    """Envelopes that were acknowledged as failed."""
    boxes: tuple[BoxView, ...] | UnsetType = UNSET
    switches: dict[str, int] | UnsetType = UNSET
    """Counts by state."""
    leases: int | UnsetType = UNSET
    tasks: dict[str, int] | UnsetType = UNSET
    """Counts of agent tasks that are open: ``available`` to be claimed, and ``claimed``."""


class SendResult(Answer, frozen=True, kw_only=True):
    """Whether it was queued; a sender never learns more of the box."""

    queued: bool | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    to: str | UnsetType = UNSET
    due_at: str | UnsetType = UNSET


class EnvelopeView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One envelope. An alert has its facts beside the rest, as issue 4 §5 names them."""

    task_id: str
    box: str
    kind: Literal["message", "alert"]
    objective: str
    sender: str | None
    sent_at: str
    due_at: str
    attempts: int
    delivery_token: str
    visible_again_at: str
    context: Raw | UnsetType = UNSET
    history: Raw | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    # Of an alert:
    generation: int | UnsetType = UNSET
    agent_id: str | UnsetType | None = UNSET
    last_beat_at: str | UnsetType = UNSET
    deadline: str | UnsetType = UNSET
    noticed_at: str | UnsetType = UNSET
    on_expiry: tuple[str, ...] | UnsetType = UNSET
    released: tuple[dict[str, Any], ...] | UnsetType = UNSET
    """The leases that were freed: the first 100, and how many they were."""
    released_count: int | UnsetType = UNSET
    released_tasks: tuple[dict[str, Any], ...] | UnsetType = UNSET
    """The agent tasks that went back to the queue, likewise."""
    released_tasks_count: int | UnsetType = UNSET
    unreachable: int | UnsetType = UNSET
    marked_failed: bool | UnsetType = UNSET
    resume: dict[str, Any] | UnsetType | None = UNSET
    resume_private: bool | UnsetType = UNSET
    """There is a checkpoint, which only its own namespace may read."""
    resolved_at: str | UnsetType | None = UNSET
    resolution: str | UnsetType | None = UNSET
    folded: int | UnsetType = UNSET
    folded_scopes: tuple[str, ...] | UnsetType = UNSET
    meant_for: str | UnsetType = UNSET
    """The box that it was sent to, where there was mail in too many boxes to open another."""


class InboxPollResult(Answer, frozen=True, kw_only=True):
    """The next envelope, or ``null``; ``waiting`` are due after it."""

    envelope: EnvelopeView | UnsetType | None = UNSET
    waiting: int | UnsetType = UNSET
    next_due_at: str | UnsetType | None = UNSET


class InboxAckResult(Result, frozen=True, kw_only=True):
    """Whether the envelope is dealt with; a second time it still is."""

    acked: bool | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    status: Literal["done", "failed"] | int | UnsetType = UNSET
    """Of the envelope; in a failure the number that HTTP gives, as everywhere."""
    reason: Literal["unknown_task", "lost_delivery"] | UnsetType = UNSET


class InboxNackResult(Answer, frozen=True, kw_only=True):
    """Whether the envelope will be handed out again, and from when."""

    nacked: bool | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    visible_again_at: str | UnsetType = UNSET
    reason: Literal["unknown_task", "lost_delivery", "already_done"] | UnsetType = UNSET


class LeaseResult(Answer, frozen=True, kw_only=True):
    """The lock, or who holds it; ``acquired`` null: unknown, do not proceed."""

    acquired: bool | UnsetType | None = UNSET
    key: str | UnsetType = UNSET
    holder: str | UnsetType = UNSET
    scope: str | UnsetType | None = UNSET
    fence: str | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    renewed: bool | UnsetType = UNSET
    """True when the holder showed its fence and so only holds it for longer."""
    reason: Literal["held"] | UnsetType = UNSET
    retry_after_seconds: float | UnsetType = UNSET


class LeaseRenewResult(Answer, frozen=True, kw_only=True):
    """Whether it is held for longer; ``renewed`` null: unknown, do not proceed."""

    renewed: bool | UnsetType | None = UNSET
    key: str | UnsetType = UNSET
    holder: str | UnsetType = UNSET
    fence: str | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    reason: Literal["expired", "not_holder"] | UnsetType = UNSET


class LeaseReleaseResult(Answer, frozen=True, kw_only=True):
    """Whether it was let go by this call; ``released`` null: unknown, it ends at its expiry."""

    released: bool | UnsetType | None = UNSET
    key: str | UnsetType = UNSET
    holder: str | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    reason: Literal["expired", "not_holder"] | UnsetType = UNSET


class CheckpointPutResult(Answer, frozen=True, kw_only=True):
    """The checkpoint is kept in place of the one before."""

    saved: bool | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    saved_at: str | UnsetType = UNSET


class HeldLeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that is held on the scope."""

    key: str
    holder: str
    generation: int
    expires_at: str


class HeldTaskView(msgspec.Struct, frozen=True, kw_only=True):
    """An agent task that is claimed under the scope."""

    id: str
    status: str
    execution_epoch: int
    agent_id: str | None
    lease_expires_at: str


class DeathView(msgspec.Struct, frozen=True, kw_only=True):
    """A death that the server observed: when it was due, and when it was noticed."""

    generation: int
    agent_id: str | None
    last_beat_at: str
    deadline: str
    noticed_at: str
    marked_failed: bool
    released: tuple[dict[str, Any], ...]
    """The leases that were freed: the first 100, and how many they were."""
    released_count: int
    released_tasks: tuple[dict[str, Any], ...] = ()
    """Agent tasks claimed under the scope, which went back to the queue, likewise."""
    released_tasks_count: int = 0
    unreachable: int
    recovered_at: str | None


class ArrivalView(msgspec.Struct, frozen=True, kw_only=True):
    """Mail of this scope that waits; ``inbox_poll`` hands it out."""

    task_id: str
    box: str
    kind: str
    objective: str
    sent_at: str


class ResumePacketResult(Answer, frozen=True, kw_only=True):
    """The briefing: what the checkpoint says, and what the server saw itself."""

    scope: str | UnsetType = UNSET
    empty: bool | UnsetType = UNSET
    """Nothing at all is known of this scope."""
    known: bool | UnsetType = UNSET
    """The namespace has this scope itself; mail alone may tell of another agent's."""
    objective: str | UnsetType | None = UNSET
    next_action: str | UnsetType | None = UNSET
    checkpoint: dict[str, Any] | UnsetType | None = UNSET
    """What ``checkpoint_put`` was given, with ``version`` and ``saved_at``."""
    switch: SwitchView | UnsetType | None = UNSET
    failed: bool | UnsetType = UNSET
    """The last death marked the work failed, and no beat has come since."""
    recovered: bool | UnsetType = UNSET
    """It died, and a later beat took it up again."""
    deaths: tuple[DeathView, ...] | UnsetType = UNSET
    leases: tuple[HeldLeaseView, ...] | UnsetType = UNSET
    """Leases that are held on it: the first 100, and how many they are."""
    leases_total: int | UnsetType = UNSET
    tasks: tuple[HeldTaskView, ...] | UnsetType = UNSET
    """Agent tasks that are claimed under it, likewise; get_agent_task shows one whole."""
    tasks_total: int | UnsetType = UNSET
    arrivals: tuple[ArrivalView, ...] | UnsetType = UNSET
    arrivals_total: int | UnsetType = UNSET
    watch_gaps: tuple[GapView, ...] | UnsetType = UNSET
    journal: tuple[EntryView, ...] | UnsetType = UNSET
