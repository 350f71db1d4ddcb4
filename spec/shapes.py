"""The JSON Schemas: of the code's Structs; of ``messages.py``, ``pushes.py`` where it has none."""

from typing import Any

import msgspec

from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.policy.grant import Receipt
from mcpl_heartbeat.tasks.tools import TOOLS as TASKS
from mcpl_heartbeat.wake import files
from mcpl_heartbeat.wake.tools import TOOLS as WAKE
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.tools import TOOLS as WATCH
from spec import messages as m
from spec import pushes as p

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Shape(msgspec.Struct, frozen=True):
    """What one schema describes."""

    title: str
    description: str
    body: dict[str, Any]


def _of(struct: type[msgspec.Struct], title: str, description: str) -> Shape:
    return Shape(title, description, schema(struct))


def _receipt() -> Shape:
    # The code's Struct knows these two only as strings.
    body = schema(Receipt)
    properties = body["properties"]
    unavailable = properties["unavailableFeatures"]
    entry = unavailable["items"]
    effect = {**entry["properties"]["effect"], "const": "disabled"}
    properties = {
        **properties,
        "accepted": {"type": "boolean", "const": True},
        "mode": {"type": "string", "enum": ["full", "degraded"]},
        "unavailableFeatures": {
            **unavailable,
            "items": {
                **entry,
                "properties": {**entry["properties"], "effect": effect},
                "required": [*entry["required"], "effect"],
            },
        },
    }
    return Shape(
        "Result of featureSets/update",
        "The degradation receipt (MCPL §6.7).",
        {**body, "properties": properties, "required": list(properties)},
    )


def _written(struct: type[msgspec.Struct], required: list[str]) -> dict[str, Any]:
    """The schema of a file's Struct; members of other programs, kept under "", may stand in it."""
    body = schema(struct)
    properties = {name: value for name, value in body["properties"].items() if name}
    return {"type": "object", "properties": properties, "required": required}


def _config() -> Shape:
    body = _written(files.Config, ["intervalSeconds", "paused", "message"])
    bounds = {"type": "number", "minimum": files.MIN_INTERVAL_SECONDS, "maximum": files.LONGEST}
    time = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": files.LATEST}, {"type": "null"}]}
    words = {"type": "string", "pattern": r"\S"}
    body["properties"] |= {
        "intervalSeconds": bounds,
        "message": words,
        "nextAt": time,
        "nextEventId": {"anyOf": [words, {"type": "null"}]},
    }
    return Shape("The config file", "What a server writes; files.md says what it reads.", body)


def _reminders() -> Shape:
    row = _written(files.Reminder, ["id", "message", "createdAt", "fireAt", "everySeconds"])
    row["properties"]["id"] = {"type": "string", "pattern": r"\S"}
    return Shape(
        "The reminders file",
        "What a server writes; files.md says what it reads. Ids are unique.",
        {"type": "array", "items": row},
    )


def _of_tool(tool: Tool, errors: str) -> dict[str, Shape]:
    return {
        f"tools/{tool.name}.arguments": Shape(tool.title, tool.description, schema(tool.arguments)),
        f"tools/{tool.name}.result": Shape(
            f"{tool.title}: structuredContent",
            f"Fits error results too; those have {errors}.",
            schema(tool.result),
        ),
    }


def shapes() -> dict[str, Shape]:
    """Every schema by its path under ``spec/schemas``, without ``.json``."""
    messages = {
        "initialize.params": _of(
            m.Initialize,
            "Params of initialize",
            "Only protocolVersion is required of a client; whatever else is odd is passed over.",
        ),
        "initialize.result": _of(
            m.Initialized, "Result of initialize", "What the server declares."
        ),
        "manifest": _of(
            m.Manifest,
            "Result of mcpl/manifest",
            "Also `experimental.mcpl` of initialize's result.",
        ),
        "feature-sets-update.params": _of(
            m.Update, "Params of featureSets/update", "The policy (MCPL §5.3)."
        ),
        "feature-sets-update.result": _receipt(),
        "push-event.tick.params": _of(
            p.Tick, "Params of push/event: a heartbeat in message mode", "See wake.md."
        ),
        "push-event.silent.params": _of(
            p.SilentTick, "Params of push/event: a silent heartbeat", "See wake.md."
        ),
        "push-event.reminder.params": _of(
            p.ReminderPush, "Params of push/event: a reminder", "See wake.md."
        ),
        "push-event.alert.params": _of(
            p.AlertPush, "Params of push/event: an alert", "See watch.md."
        ),
        "push-event.alerts.params": _of(
            p.AlertsPush, "Params of push/event: several alerts", "See watch.md."
        ),
        "push-event.nudge.params": _of(
            p.NudgePush, "Params of push/event: a nudge", "See watch.md."
        ),
        "push-event.nudges.params": _of(
            p.NudgesPush, "Params of push/event: several nudges", "See watch.md."
        ),
        "push-event.tasks.params": _of(
            p.WorkPush, "Params of push/event: claimable tasks", "See tasks.md."
        ),
        "push-event.review.params": _of(
            p.ReviewPush, "Params of push/event: a review", "See tasks.md."
        ),
        "push-event.reviews.params": _of(
            p.ReviewsPush, "Params of push/event: several reviews", "See tasks.md."
        ),
        "push-event.result": _of(
            p.PushResult, "Result of push/event", "What a host answers when it answers no error."
        ),
        "tools-list.result": _of(
            m.ListedTools,
            "Result of tools/list",
            "title and outputSchema stand in it from MCP 2025-06-18 on.",
        ),
        "tools-call.params": _of(m.CallParams, "Params of tools/call", "See errors.md."),
        "tools-call.result": _of(
            m.CallResult,
            "Result of tools/call",
            "structuredContent stands in it from MCP 2025-06-18 on.",
        ),
        "cancelled.params": _of(m.Cancelled, "Params of notifications/cancelled", "See errors.md."),
        "error": _of(m.Error, "The error member of a reply", "See errors.md for the codes."),
    }
    catalogue = {f"messages/{name}": shape for name, shape in messages.items()}
    for tool in WAKE:
        catalogue |= _of_tool(tool, "`problems`")
    for tool in (*WATCH, *TASKS):
        catalogue |= _of_tool(tool, "`code`")
    catalogue["tools/failure"] = _of(
        Failure,
        "A failure of a tool of the shared store",
        "The body over HTTP, structuredContent over MCP; see doors.md for the codes.",
    )
    return catalogue | {"files/config": _config(), "files/reminders": _reminders()}


def document(shape: Shape) -> dict[str, Any]:
    """Make the schema as it is committed."""
    return {
        "$schema": DIALECT,
        "title": shape.title,
        "description": shape.description,
        **shape.body,
    }
