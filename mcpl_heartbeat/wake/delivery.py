"""What the wake wing pushes; what an answer to it means is in ``policy/pushing.py``."""

from typing import Any

from mcpl_heartbeat.policy.pushing import (
    MAX_COALESCE_KEY_BYTES,
    Refused,
    Taken,
    event,
    read_answer,
    shorten,
)
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.wake.files import Reminder
from mcpl_heartbeat.wake.reminders import every_ms

__all__ = [
    "FEATURE_SET",
    "LATE_MS",
    "MAX_COALESCE_KEY_BYTES",
    "Refused",
    "Taken",
    "event_id",
    "heartbeat_event",
    "read_answer",
    "reminder_event",
    "reminder_text",
    "seconds",
    "shorten",
]

FEATURE_SET = "heartbeat"
LATE_MS = 60_000
"""A reminder that is sent this long (ms) after it was due says when it was due (seed)."""


def heartbeat_event(  # noqa: PLR0913 - each is one fact of the event, all named
    *,
    event_id: str,
    manual: bool,
    silent: bool,
    fallback: bool,
    message: str,
    coalesces: bool,
    zone: Zone,
    now: int,
) -> dict[str, Any]:
    """The params of a heartbeat's ``push/event``.

    A silent one is the host's marker to the letter: no content, no tags, no coalescing.
    """
    origin: dict[str, Any] = {"source": "heartbeat", "reason": "manual" if manual else "schedule"}
    if silent:
        origin["silent"] = True
        return event(FEATURE_SET, event_id, now, origin)
    if fallback:
        origin["silentFallback"] = True
    text = f"[current time: {local_time(now, zone)}] {message}"
    params = event(FEATURE_SET, event_id, now, origin, text)
    params["tags"] = ["heartbeat:tick"]
    if coalesces:
        params["coalesce"] = {"key": "tick"}
    return params


def reminder_event(row: Reminder, *, coalesces: bool, zone: Zone, now: int) -> dict[str, Any]:
    """The params of a due reminder's ``push/event``."""
    recurring = row.every_seconds is not None
    origin = {"source": "reminder", "reminderId": row.id, "recurring": recurring}
    params = event(FEATURE_SET, event_id(row), now, origin, reminder_text(row, zone, now))
    params["tags"] = ["heartbeat:reminder"]
    key = f"reminder:{row.id}"
    if coalesces and recurring and len(key.encode()) <= MAX_COALESCE_KEY_BYTES:
        params["coalesce"] = {"key": key}
    return params


def event_id(row: Reminder) -> str:
    """The eventId of the reminder's next occurrence, the same however often that one is sent."""
    return f"reminder_{row.id}_{row.fire_at}"


def reminder_text(row: Reminder, zone: Zone, now: int) -> str:
    """The text the agent reads: a header that says whose words follow, then the message (seed)."""
    every = every_ms(row)
    kind = (
        f"set {local_time(row.created_at, zone)}"
        if every is None
        else f"repeats every {seconds(every)}s"
    )
    late = f", due {local_time(row.fire_at, zone)}" if now - row.fire_at >= LATE_MS else ""
    return (
        f"[reminder {row.id}, {kind}{late} · current time: {local_time(now, zone)}] {row.message}"
    )


def seconds(ms: int) -> str:
    """A length of ``ms`` as seconds, without a tail of zeros: ``600``, ``7.5``."""
    whole, rest = divmod(ms, 1000)
    return str(whole) if rest == 0 else f"{ms / 1000:.3f}".rstrip("0")
