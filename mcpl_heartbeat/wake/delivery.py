"""What is pushed, and what the host's answer to it means (MCPL §9).

An answer is one of three things. *Taken*: ``accepted: true``, or ``accepted: false`` because the
host has heard this eventId before. *Empty*: the host takes no push without visible content, which
only a silent heartbeat lacks; that tick is sent again as a message. *Refused*: everything else,
with the reason in words.
"""

from typing import Any

import msgspec

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Answer, PeerError
from mcpl_heartbeat.times import Zone, local_time, utc_time
from mcpl_heartbeat.wake.files import Reminder
from mcpl_heartbeat.wake.reminders import every_ms

FEATURE_SET = "heartbeat"
LATE_MS = 60_000
"""A reminder that is sent this long (ms) after it was due says when it was due (seed)."""
MAX_COALESCE_KEY_BYTES = 256

FEATURE_SET_NOT_ENABLED = -32001
CAPABILITY_DENIED = -32002
UNKNOWN_FEATURE_SET = -32003
BLOCKING_CODES = {
    FEATURE_SET_NOT_ENABLED: "feature set not enabled",
    CAPABILITY_DENIED: "capability denied",
    UNKNOWN_FEATURE_SET: "unknown feature set",
}


class Taken(msgspec.Struct, frozen=True):
    """The host has the push; whether the agent woke is the host's affair."""


class Refused(msgspec.Struct, frozen=True):
    """The host does not have the push.

    ``empty``: because it had no visible content. ``blocking``: the host says that no wake of this
    feature set passes, so the reason belongs in the status.
    """

    reason: str
    empty: bool = False
    blocking: bool = False


class _Result(msgspec.Struct):
    accepted: bool
    # Of whatever type: an odd reason must not hide what was decided.
    reason: Any = None


def read_answer(answer: Answer) -> Taken | Refused:
    """Say what the host's answer to a push means; an answer of the wrong shape is a refusal."""
    if answer.error is not None:
        return _read_error(answer.error)
    try:
        result = msgspec.json.decode(answer.result or b"null", type=_Result)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return Refused("the host's answer did not say `accepted: true` or `accepted: false`")
    if result.accepted:
        return Taken()
    reason = result.reason if isinstance(result.reason, str) else ""
    if reason.strip().lower() == "duplicate":
        return Taken()
    words = (
        f"the host answered accepted:false ({shorten(reason)})"
        if reason
        else ("the host answered accepted:false without a reason")
    )
    return Refused(words, empty="empty" in reason.lower())


def _read_error(error: PeerError) -> Refused:
    name = BLOCKING_CODES.get(error.code or 0)
    code = "an error" if error.code is None else str(error.code)
    words = f"the host answered {code}" + (f" ({name})" if name else "")
    return Refused(
        f"{words}: {shorten(error.message) or 'no message'}",
        empty=error.code == INVALID_PARAMS,
        blocking=name is not None,
    )


def shorten(text: str, limit: int = 200) -> str:
    """``text`` on one line, at most ``limit`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


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
        return _event(event_id, now, origin, [])
    if fallback:
        origin["silentFallback"] = True
    event = _event(
        event_id, now, origin, [_text(f"[current time: {local_time(now, zone)}] {message}")]
    )
    event["tags"] = ["heartbeat:tick"]
    if coalesces:
        event["coalesce"] = {"key": "tick"}
    return event


def reminder_event(row: Reminder, *, coalesces: bool, zone: Zone, now: int) -> dict[str, Any]:
    """The params of a due reminder's ``push/event``."""
    recurring = row.every_seconds is not None
    origin = {"source": "reminder", "reminderId": row.id, "recurring": recurring}
    event = _event(event_id(row), now, origin, [_text(reminder_text(row, zone, now))])
    event["tags"] = ["heartbeat:reminder"]
    key = f"reminder:{row.id}"
    if coalesces and recurring and len(key.encode()) <= MAX_COALESCE_KEY_BYTES:
        event["coalesce"] = {"key": key}
    return event


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


def _event(
    event_id: str, now: int, origin: dict[str, Any], content: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "featureSet": FEATURE_SET,
        "eventId": event_id,
        "timestamp": utc_time(now),
        "origin": origin,
        "payload": {"content": content},
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
