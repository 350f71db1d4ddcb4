"""The clients people use, each in an environment of its own, against the installed command."""

import json
from pathlib import Path

import pytest

from .conftest import SERVER

pytestmark = pytest.mark.requirement("people.clients")

TOOLS = [
    "heartbeat_status",
    "heartbeat_configure",
    "heartbeat_trigger",
    "reminder_add",
    "reminder_list",
    "reminder_cancel",
]


def look(said, files):
    """What every client must have seen, and what must be on disk after it."""
    assert said["tools"] == TOOLS
    assert said["added"].startswith("Reminder rem_")
    assert said["structured"]["added"] is True
    is_error, text = said["refused"]
    assert is_error is True
    assert "did you mean inHours?" in text
    assert said["status"].startswith("Heartbeat ACTIVE | mode=message")
    assert "delivery=BLOCKED" in said["status"]
    (row,) = json.loads(Path(files["HEARTBEAT_REMINDERS_FILE"]).read_text(encoding="utf-8"))
    assert row["message"] == "Look."


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("way", ["session", "client"])
def test_the_python_sdk(python_client, files, way, backend):
    look(python_client("mcp", "sdk.py", way, backend), files)


def test_fastmcp(python_client, files):
    said = python_client("fastmcp", "fast.py")
    assert said["pong"] is True
    look(said, files)


def inspector(client, files, *arguments):
    passed = [part for name, path in files.items() for part in ("-e", f"{name}={path}")]
    return json.loads(client("inspector", "--cli", SERVER, "--stdio", *passed, *arguments))


def test_the_inspector_lists_the_tools(client, files):
    said = inspector(client, files, "--method", "tools/list")
    assert [tool["name"] for tool in said["tools"]] == TOOLS


def test_the_inspector_calls_them(client, files):
    call = ("--method", "tools/call", "--tool-name", "reminder_add")
    added = inspector(client, files, *call, "--tool-arg", "message=Look.", "inHours=1")
    assert added["content"][0]["text"].startswith("Reminder rem_")
    call = ("--method", "tools/call", "--tool-name", "heartbeat_status")
    status = inspector(client, files, *call)
    assert "reminders=1" in status["content"][0]["text"]


def test_mcp_conform(client):
    command = f"{SERVER} --stdio"
    said = json.loads(client("conform", "server", "--command", command, "--format", "json"))
    assert [check for check in said["checks"] if not check["passed"]] == []
    assert said["ok"] is True
    assert said["total"] >= 20
