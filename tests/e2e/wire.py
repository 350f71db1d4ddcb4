"""What a host says and what it reads, as plain values for the tests from outside."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

Message = dict[str, Any]

AGENT_FRAMEWORK: dict[str, Any] = {
    "version": "0.5",
    "pushEvents": True,
    "featureSets": True,
    "contextHooks": {"beforeInference": True},
    "inferenceLifecycle": True,
}
"""What agent-framework's host offers as ``experimental.mcpl``, without coalescing."""

COALESCING = AGENT_FRAMEWORK | {"eventCoalescing": {"pushEvents": True, "retryWindowMs": 3600000}}

ACCEPT: dict[str, Any] = {"result": {"accepted": True, "inferenceId": "inf-1"}}
NEVER: dict[str, Any] | None = None


def error(code: int, message: str = "refused by the test", data: Any = None) -> dict[str, Any]:
    """Answer a push with a JSON-RPC error."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return {"error": body}


def decline(reason: str) -> dict[str, Any]:
    """Answer a push with ``accepted: false`` and a reason."""
    return {"result": {"accepted": False, "reason": reason}}


class ToolReply(NamedTuple):
    """A tool call's result."""

    text: str
    is_error: bool
    result: dict[str, Any]


def shown(push: Message) -> str:
    """Return the text of a push, all its blocks joined."""
    return "".join(block["text"] for block in push["params"]["payload"]["content"])


def origin(push: Message) -> dict[str, Any]:
    """Return the origin of a push."""
    found: dict[str, Any] = push["params"]["origin"]
    return found


def event_id(push: Message) -> str:
    """Return the eventId of a push."""
    found: str = push["params"]["eventId"]
    return found


def is_reminder(push: Message) -> bool:
    """Tell whether a push is a reminder's."""
    return bool(origin(push).get("source") == "reminder")


def is_tick(push: Message) -> bool:
    """Tell whether a push is a heartbeat's."""
    return bool(origin(push).get("source") == "heartbeat")


SIGSTOP, SIGCONT = signal.SIGSTOP, signal.SIGCONT


def age(path: Path, by_ms: int) -> None:
    """Move every moment in a stopped server's file back, as if so much time had passed."""

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: moved(member) for name, member in value.items()}
        if isinstance(value, list):
            return [moved(member) for member in value]
        if type(value) is int and value > 10**12:
            return value - by_ms
        if isinstance(value, str):  # an eventId holds the moment that it was planned for
            return re.sub(r"\d{13}", lambda found: str(int(found[0]) - by_ms), value)
        return value

    path.write_text(json.dumps(moved(json.loads(path.read_text("utf-8")))), "utf-8")


def row(
    name: str, fire_at: int, *, every: float | None = None, text: str = "tea"
) -> dict[str, Any]:
    """Return a reminder row as the Node server writes it."""
    created = fire_at - 3_600_000
    return {
        "id": name,
        "message": text,
        "createdAt": created,
        "fireAt": fire_at,
        "everySeconds": every,
    }


def now_ms() -> int:
    """Return the wall time in milliseconds."""
    return time.time_ns() // 1_000_000
