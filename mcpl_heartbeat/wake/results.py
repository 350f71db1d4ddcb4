"""What the wake wing's tools give, as values: the ``structuredContent`` of their results.

Required are the members that an error can fill as truthfully as a success, so that every result has
``structuredContent`` that fits (issue 2 §1). ``problems`` is there only in an error.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType


class StatusResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The heartbeat as it stands."""

    state: Literal["active", "paused"]
    delivery_mode: Literal["message", "silent"]
    interval_seconds: float
    next_at: str | UnsetType = UNSET
    """Local time of the next wake, while one is coming."""
    seconds_to_next: float | UnsetType = UNSET
    reminders: int
    deliverable: bool
    blocked_because: str | UnsetType = UNSET
    message: str
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] | UnsetType = UNSET


class ConfigureResult(StatusResult, frozen=True, kw_only=True, rename="camel"):
    """The heartbeat after a change; ``saved`` is false when the file does not hold that change."""

    saved: bool


class TriggerResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether the heartbeat was sent to the host; never whether the agent woke."""

    sent: bool
    event_id: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] | UnsetType = UNSET


class ReminderView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One pending reminder as an agent sees it."""

    id: str
    message: str
    next: str
    """Local time."""
    due_at: int
    """The same in milliseconds since 1970-01-01T00:00Z."""
    seconds_to_next: float
    every_seconds: float | UnsetType = UNSET
    overdue: bool
    held_since: str | UnsetType = UNSET
    held_because: str | UnsetType = UNSET


class AddResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The reminder that was added; ``twins`` are ids of pending ones that say and do the same."""

    added: bool
    reminder: ReminderView | UnsetType = UNSET
    saved: bool
    twins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] | UnsetType = UNSET


class ListResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the pending reminders, the soonest first; ``more`` come after it."""

    total: int
    offset: int
    reminders: tuple[ReminderView, ...]
    more: int
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] | UnsetType = UNSET


class CancelResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether the reminder is gone, and gone from the file too."""

    id: str | UnsetType = UNSET
    cancelled: bool
    saved: bool
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] | UnsetType = UNSET
