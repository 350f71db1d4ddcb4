"""What every wing pushes alike, and what the host's answer to a push means (MCPL §9).

An answer is one of three things. *Taken*: ``accepted: true``, or ``accepted: false`` because the
host has heard this eventId before. *Empty*: the host takes no push without visible content, which
only a silent heartbeat lacks; that tick is sent again as a message. *Refused*: everything else,
with the reason in words.
"""

from typing import Any

import msgspec

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Answer, PeerError
from mcpl_heartbeat.times import utc_time

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


def event(
    feature_set: str, event_id: str, now: int, origin: dict[str, Any], *texts: str
) -> dict[str, Any]:
    """The params of a ``push/event`` sent at ``now`` (wall ms), each text a block of its own."""
    return {
        "featureSet": feature_set,
        "eventId": event_id,
        "timestamp": utc_time(now),
        "origin": origin,
        "payload": {"content": [{"type": "text", "text": text} for text in texts]},
    }
