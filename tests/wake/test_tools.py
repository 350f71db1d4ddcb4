"""The six tools: what they say of themselves, and the shape of their results."""

from typing import Any

import jsonschema
import msgspec
import pytest

from mcpl_heartbeat.mcp.lifecycle import VERSIONS
from mcpl_heartbeat.mcp.tools import encoded_tools_list, schema, tools_list
from mcpl_heartbeat.wake import tools as wake
from mcpl_heartbeat.wake.tools import TOOLS
from tests.mcp.declared import fits, hints, unsaid

# --- what they say of themselves ---------------------------------------------------------------


@pytest.mark.requirement("mcp.tools-list")
def test_the_six_tools_and_their_arguments() -> None:
    assert {tool.name: list(schema(tool.arguments)["properties"]) for tool in TOOLS} == {
        "heartbeat_status": [],
        "heartbeat_configure": [
            "intervalSeconds",
            "intervalMinutes",
            "intervalHours",
            "paused",
            "deliveryMode",
            "message",
        ],
        "heartbeat_trigger": [],
        "reminder_add": [
            "message",
            "inSeconds",
            "inMinutes",
            "inHours",
            "atIso",
            "everySeconds",
            "everyMinutes",
            "everyHours",
        ],
        "reminder_list": ["offset"],
        "reminder_cancel": ["id"],
    }


def walk(node: Any) -> Any:
    yield node
    if isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from walk(item)


@pytest.mark.requirement("mcp.tools-schema", "field.41", "field.43")
@pytest.mark.parametrize("version", VERSIONS)
def test_no_schema_makes_a_host_drop_the_tool(version: str) -> None:
    for tool in msgspec.json.decode(encoded_tools_list(TOOLS, version))["tools"]:
        for key in ("inputSchema", "outputSchema"):
            if key not in tool:
                continue
            root = tool[key]
            jsonschema.Draft202012Validator.check_schema(root)
            assert root["type"] == "object"
            assert isinstance(root["properties"], dict)
            for node in walk(root):
                assert not isinstance(node, bool), "no boolean schema"
                if isinstance(node, dict):
                    assert node.keys().isdisjoint(
                        {"anyOf", "oneOf", "allOf", "not", "$ref", "$defs"}
                    )
                    assert isinstance(node.get("type", ""), str | dict)
            for rule in root["properties"].values():
                assert isinstance(rule["type"], str)


@pytest.mark.requirement("mcp.tools-annotations", "mcp.tools-class")
def test_hints_and_class() -> None:
    assert {tool.name: hints(tool) for tool in TOOLS} == {
        "heartbeat_status": (True, True, False, False),
        "heartbeat_configure": (False, True, False, False),
        "heartbeat_trigger": (False, False, False, False),
        "reminder_add": (False, False, False, False),
        "reminder_list": (True, True, False, False),
        "reminder_cancel": (False, True, True, False),
    }
    for listed in tools_list(TOOLS, "2024-11-05")["tools"]:
        assert listed["_meta"] == {"mcpl/class": ["control"]}
        assert listed["annotations"]["title"]


@pytest.mark.requirement("mcp.tools-rules-stated", "field.46")
@pytest.mark.parametrize(
    ("tool", "argument", "words"),
    [
        ("heartbeat_configure", "intervalSeconds", ["0 or more", "at least 60", "8,000 years"]),
        ("heartbeat_configure", "intervalMinutes", ["0 or more", "at least 60"]),
        ("heartbeat_configure", "intervalHours", ["0 or more", "at least 60"]),
        ("heartbeat_configure", "deliveryMode", ['"message"', '"silent"', "Nothing else"]),
        ("heartbeat_configure", "paused", ["true", "false"]),
        ("heartbeat_configure", "message", ["not be blank"]),
        ("heartbeat_configure", None, ["60 seconds or more", "8,000 years", "blank", "add up"]),
        ("reminder_add", "message", ["not be blank"]),
        ("reminder_add", "inSeconds", ["0 or more", "more than 0", "year 10000", "atIso"]),
        ("reminder_add", "inMinutes", ["0 or more", "atIso"]),
        ("reminder_add", "inHours", ["0 or more", "atIso"]),
        ("reminder_add", "atIso", ["64 characters", "ahead", "year 10000", "inSeconds"]),
        ("reminder_add", "everySeconds", ["0 or more", "at least 5", "8,000 years"]),
        ("reminder_add", "everyMinutes", ["0 or more", "at least 5"]),
        ("reminder_add", "everyHours", ["0 or more", "at least 5"]),
        ("reminder_add", None, ["not both", "is required", "5 seconds or more", "8,000 years"]),
        ("reminder_list", "offset", ["whole number", "0 or more"]),
        ("reminder_cancel", "id", ["pending"]),
        ("reminder_cancel", None, ["required", "error"]),
        ("heartbeat_status", None, ["no arguments"]),
        ("heartbeat_trigger", None, ["no arguments"]),
    ],
)
def test_every_rule_is_stated(tool: str, argument: str | None, words: list[str]) -> None:
    assert unsaid(tool, argument, words) == []


@pytest.mark.requirement("mcp.tools-rules-stated", "host.37")
def test_every_argument_is_described_briefly() -> None:
    for tool in TOOLS:
        assert len(tool.description) < 1024
        for rule in schema(tool.arguments)["properties"].values():
            assert 20 < len(rule["description"]) < 400


# --- results -----------------------------------------------------------------------------------

VIEW = wake.ReminderView(
    id="rem_1",
    message="x",
    next="2030-01-01T00:00:00Z [UTC]",
    due_at=1_893_456_000_000,
    seconds_to_next=1.5,
    overdue=False,
)
STATUS: dict[str, Any] = {
    "state": "active",
    "delivery_mode": "message",
    "interval_seconds": 60.0,
    "reminders": 0,
    "deliverable": False,
    "message": "x",
}


@pytest.mark.requirement("mcp.structured-content", "mcp.tools-output-schema")
@pytest.mark.parametrize(
    "result",
    [
        wake.StatusResult(**STATUS),
        wake.StatusResult(
            **STATUS,
            next_at="x",
            seconds_to_next=1,
            blocked_because="x",
            notes=("a",),
            problems=("b",),
        ),
        wake.ConfigureResult(**STATUS, saved=True),
        wake.TriggerResult(sent=False, reason="x", problems=("x",)),
        wake.TriggerResult(sent=True, event_id="x"),
        wake.AddResult(added=False, saved=False, problems=("x",)),
        wake.AddResult(added=True, saved=True, reminder=VIEW, twins=("rem_0",)),
        wake.ListResult(total=1, offset=0, reminders=(VIEW,), more=0),
        wake.CancelResult(cancelled=False, saved=False, problems=("x",)),
        wake.CancelResult(id="rem_1", cancelled=True, saved=True),
    ],
)
def test_results_fit_their_schema(result: msgspec.Struct) -> None:
    tool = next(tool for tool in TOOLS if tool.result is type(result))
    fits(tool, result)


@pytest.mark.requirement("mcp.tools-output-schema")
def test_every_tool_has_a_result_with_problems() -> None:
    for tool in TOOLS:
        rule = schema(tool.result)["properties"]["problems"]
        assert rule == {"type": "array", "items": {"type": "string"}}
        assert "problems" not in schema(tool.result)["required"]
