"""Versions, tools and the manifest, as a host negotiates them."""

import hashlib
import json
import re
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from tests.e2e.conftest import Spawn

TOOLS = {
    "heartbeat_status",
    "heartbeat_configure",
    "heartbeat_trigger",
    "reminder_add",
    "reminder_list",
    "reminder_cancel",
}
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.requirement("field.38", "mcp.version-echo", "host.2")
@pytest.mark.parametrize("version", VERSIONS)
def test_supported_versions_are_echoed(spawn: Spawn, version: str) -> None:
    result = spawn().initialize(version=version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"]


@pytest.mark.requirement("field.38", "mcp.version-unknown", "host.2")
@pytest.mark.parametrize("version", ["1999-01-01", "2099-01-01", ""])
def test_an_unknown_version_gets_the_newest(spawn: Spawn, version: str) -> None:
    assert spawn().initialize(version=version)["protocolVersion"] == "2025-11-25"


@pytest.mark.requirement("field.38", "mcp.version-missing", "jsonrpc.invalid-params")
def test_a_missing_or_wrong_version_is_refused_and_a_right_one_still_works(spawn: Spawn) -> None:
    server = spawn()
    for params in ({}, {"protocolVersion": 5}, {"protocolVersion": None}, None):
        reply = server.ask("initialize", params)
        assert reply["error"]["code"] == -32602
        assert "protocolVersion" in reply["error"]["message"]
    server.initialize()


@pytest.mark.requirement(
    "field.40",
    "mcp.before-initialize",
    "mcp.discover",
    "host.3",
    "mcp.initialize-twice",
    "mcp.ping",
)
def test_before_initialize_nothing_is_done(spawn: Spawn) -> None:
    server = spawn()
    early = server.ask("tools/call", {"name": "heartbeat_trigger", "arguments": {}})
    assert "error" in early
    assert server.ask("server/discover")["error"]["code"] == -32601
    assert "error" in server.ask("featureSets/update", {"effectiveCapabilities": ["pushEvents"]})
    assert "error" in server.ask("tools/list")
    server.send([1], 5, "garbage", b"garbage")
    server.ping()
    server.initialize()
    assert "error" in server.ask(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}
    )
    assert "BLOCKED" in server.status()
    assert server.pushes == []


@pytest.mark.requirement(
    "field.41", "field.43", "mcp.tools-list", "mcp.tools-schema", "mcp.tools-annotations"
)
@pytest.mark.requirement("mcp.tools-class", "host.37", "host.5", "mcp.tools-capability")
def test_every_host_can_read_the_tools(spawn: Spawn) -> None:
    server = spawn()
    assert server.initialize()["capabilities"]["tools"] is not None
    listed = server.ask("tools/list")["result"]
    assert "nextCursor" not in listed
    assert {tool["name"] for tool in listed["tools"]} == TOOLS
    for tool in listed["tools"]:
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert isinstance(schema["properties"], dict)
        assert not {"anyOf", "oneOf", "allOf", "not", "$ref", "enum"} & set(schema)
        for property_ in schema["properties"].values():
            assert isinstance(property_, dict)
            assert isinstance(property_["type"], str)
            assert property_["description"]
        notes = tool["annotations"]
        assert isinstance(notes["title"], str)
        for hint in ("readOnlyHint", "idempotentHint", "destructiveHint"):
            assert isinstance(notes[hint], bool)
        assert tool["_meta"] == {"mcpl/class": ["control"]}
        assert "outputSchema" not in tool
    by_name = {tool["name"]: tool for tool in listed["tools"]}
    assert by_name["heartbeat_status"]["inputSchema"]["properties"] == {}
    assert by_name["heartbeat_status"]["annotations"]["readOnlyHint"] is True


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Judge ``value`` by the few words of JSON Schema that a server's output needs."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return fits(value, (root.get("$defs") or root["definitions"])[name], root)
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind = schema.get("type")
    plain: dict[Any, Any] = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
    if kind in plain:
        is_bool = isinstance(value, bool)
        return isinstance(value, plain[kind]) and is_bool == (kind == "boolean")
    if kind == "array":
        return isinstance(value, list) and all(
            fits(v, schema.get("items", {}), root) for v in value
        )
    if kind == "object":
        known = schema.get("properties", {})
        return (
            isinstance(value, dict)
            and set(schema.get("required", ())) <= set(value)
            and all(fits(v, known[name], root) for name, v in value.items() if name in known)
        )
    return True


@pytest.mark.requirement("mcp.tools-output-schema", "mcp.structured-content")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_later_versions_get_structured_content_that_fits(spawn: Spawn, version: str) -> None:
    server = spawn().ready(version=version)
    tools = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("heartbeat_status", {}),
        ("heartbeat_configure", {"intervalHours": 2}),
        ("heartbeat_trigger", {}),
        ("reminder_add", {"message": "x", "everyHours": 1}),
        ("reminder_list", {}),
        ("reminder_cancel", {"id": "rem_nothing"}),
        ("reminder_add", {"message": 5}),
        ("heartbeat_configure", {"intervalSeconds": 1}),
    ]
    for name, arguments in calls:
        result = server.call(name, **arguments).result
        schema = tools[name]["outputSchema"]
        assert schema["type"] == "object"
        if not result.get("isError") or "structuredContent" in result:
            assert fits(result["structuredContent"], schema, schema), (name, result)


def manifest(result: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of an ``initialize`` answer."""
    found: dict[str, Any] = result["capabilities"]["experimental"]["mcpl"]
    return found


@pytest.mark.requirement(
    "policy.manifest", "policy.manifest-method", "policy.revision", "host.5", "host.6"
)
def test_the_manifest(spawn: Spawn) -> None:
    server = spawn()
    shown = manifest(server.initialize())
    assert shown["version"] == "0.5"
    assert shown["pushEvents"] is True
    assert shown["featureSets"]["heartbeat"]["uses"] == ["pushEvents", "tools"]
    assert server.ask("mcpl/manifest")["result"] == shown
    revision = shown.pop("revision")
    # All of it is ASCII strings, so sorted compact JSON is the canonical form.
    canonical = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = urlsafe_b64encode(hashlib.sha256(canonical.encode()).digest()).decode().rstrip("=")
    assert revision == f"sha256:{digest}"


@pytest.mark.requirement("policy.manifest-array", "host.6")
def test_the_harness_gets_an_array(spawn: Spawn) -> None:
    old = {"version": "0.4", "pushEvents": True}
    server = spawn()
    shown = manifest(server.initialize(client="mcpl-harness-web", mcpl=old))
    assert [one["name"] for one in shown["featureSets"]] == ["heartbeat"]
    receipt = server.policy(deniedCapabilities=[], disabled=[])
    assert receipt["mode"] == "full"


@pytest.mark.requirement("policy.manifest-only-mcpl", "policy.plain", "host.7")
@pytest.mark.requirement("seed.reminder.never-fires-host", "seed.trigger.unsendable-error")
def test_a_plain_mcp_host_gets_tools_and_no_push(spawn: Spawn) -> None:
    server = spawn()
    result = server.initialize(mcpl=None)
    assert "mcpl" not in result["capabilities"].get("experimental", {})
    added = server.call("reminder_add", message="x", inSeconds=1)
    assert not added.is_error
    assert "rem_" in added.text
    for text in (added.text, server.listed()):
        assert re.search(r"\bno reminder will fire\b", text, re.IGNORECASE), text
    assert "BLOCKED" in server.status()
    assert server.call("heartbeat_trigger").is_error
    server.quiet(2)
    assert "(overdue)" in server.listed()
    assert server.pushes == []
