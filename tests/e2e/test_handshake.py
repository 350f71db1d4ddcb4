"""Versions, tools, manifest and policy, as a host negotiates them."""

import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.wire import AGENT_FRAMEWORK, NEVER, error, is_reminder, is_tick, origin, row

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
    assert "fire" in added.text.split("\n", 1)[-1]
    assert "BLOCKED" in server.status()
    assert server.call("heartbeat_trigger").is_error
    server.quiet(2)
    assert "(overdue)" in server.listed()
    assert server.pushes == []


@pytest.mark.requirement("policy.receipt-full", "seed.policy.receipt")
def test_a_full_grant_is_answered_exactly(spawn: Spawn) -> None:
    server = spawn()
    server.initialize()
    full = {"accepted": True, "mode": "full", "unavailableFeatures": [], "notes": []}
    assert server.policy(["tools", "pushEvents"]) == full
    assert server.policy(["tools", "pushEvents"], None) == full


REDUCED = [
    ({"effectiveCapabilities": ["tools"], "enabled": ["heartbeat"]}, ["pushEvents"]),
    ({"enabled": ["heartbeat"]}, ["pushEvents", "tools"]),
    ({"effectiveCapabilities": []}, ["pushEvents", "tools"]),
    ({"effectiveCapabilities": ["tools", "pushEvents"], "enabled": []}, []),
    ({"effectiveCapabilities": ["tools", "pushEvents"], "enabled": ["other"]}, []),
    ({"effectiveCapabilities": ["tools", "pushEvents"], "disabled": ["heartbeat"]}, []),
]


@pytest.mark.requirement("policy.receipt-degraded", "policy.receipt-notes", "policy.allowlist")
@pytest.mark.requirement("policy.enabled", "policy.disabled", "host.9", "host.10", "host.11")
@pytest.mark.requirement("seed.policy.absence-denies", "seed.policy.denied-set-disabled")
@pytest.mark.requirement("seed.policy.status-blocked", "words.status-blocked")
@pytest.mark.parametrize(("params", "missing"), REDUCED)
def test_a_reduced_grant_blocks_and_says_so(
    spawn: Spawn, params: dict[str, Any], missing: list[str]
) -> None:
    server = spawn()
    server.initialize()
    receipt = server.ask("featureSets/update", params)["result"]
    assert receipt["accepted"] is True
    assert receipt["mode"] == "degraded"
    [entry] = receipt["unavailableFeatures"]
    assert entry["featureSet"] == "heartbeat"
    assert sorted(entry["missingCapabilities"]) == missing
    assert entry["effect"] == "disabled"
    assert receipt["notes"]
    assert "delivery=BLOCKED (" in server.status()
    refused = server.call("heartbeat_trigger")
    assert refused.is_error
    assert server.pushes == []


@pytest.mark.requirement("policy.malformed", "policy.denied-overlap", "host.10", "policy.replaces")
@pytest.mark.parametrize(
    "params",
    [
        {"effectiveCapabilities": "tools"},
        {"effectiveCapabilities": ["tools", 5]},
        {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": "heartbeat"},
        {
            "effectiveCapabilities": ["tools", "pushEvents"],
            "deniedCapabilities": ["pushEvents"],
        },
        [],
    ],
)
def test_a_malformed_policy_clears_the_grant_until_a_valid_one(host: Host, params: Any) -> None:
    assert host.ask("featureSets/update", params)["error"]["code"] == -32602
    assert "delivery=BLOCKED (" in host.status()
    assert host.call("heartbeat_trigger").is_error
    host.policy()
    assert "delivery=ok" in host.status()
    assert not host.call("heartbeat_trigger").is_error
    host.wait_push(is_tick)


@pytest.mark.requirement("field.67", "seed.policy.notification-not-ready", "host.12")
@pytest.mark.requirement("seed.policy.log-waiting", "seed.policy.log-notification")
@pytest.mark.requirement("seed.policy.log-none", "seed.status.shows-next", "words.status-paused")
@pytest.mark.requirement("seed.policy.nothing-before-request", "policy.notification-narrows")
def test_blocked_without_a_policy_request_and_saying_so(spawn: Spawn) -> None:
    server = spawn()
    server.initialize()
    first = server.status()
    assert "delivery=BLOCKED (" in first
    assert "next in" not in first
    assert server.call("heartbeat_trigger").is_error
    server.wait_log(
        "suppressed heartbeat push/event — no valid featureSets/update Request in force "
        "(none yet, or the last was malformed); "
    )
    grant = {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": ["heartbeat"]}
    server.notify("featureSets/update", grant)
    second = server.status()
    assert "delivery=BLOCKED (" in second
    assert "next in" not in second
    assert server.call("heartbeat_trigger").is_error
    server.wait_log(
        "suppressed heartbeat push/event — host sent featureSets/update only as a Notification, "
    )
    server.wait_log("WARNING: initial policy has still not arrived as a Request. ")
    assert "no reminder" in server.listed() or server.call(
        "reminder_add", message="x", inHours=1
    ).text.count("fire")
    assert server.pushes == []


@pytest.mark.requirement("host.14", "seed.reminder.waits-blocked", "seed.reminder.deliverable-only")
@pytest.mark.requirement("seed.reminder.list-overdue", "seed.reminder.blocked-log")
def test_a_reminder_due_before_the_policy_waits_and_fires_once(spawn: Spawn) -> None:
    server = spawn()
    server.initialize()
    server.add("early", inSeconds=1)
    server.quiet(2)
    listed = server.listed()
    assert "(overdue)" in listed
    assert server.pushes == []
    assert "reminder" in server.stderr
    server.policy()
    server.wait_push(is_reminder)
    server.settle()
    server.quiet(1)
    assert len(server.pushes) == 1
    assert "rem_" not in server.listed()


@pytest.mark.requirement("field.74", "host.8")
def test_two_policies_at_once_send_a_due_reminder_once(spawn: Spawn) -> None:
    server = spawn(answers=NEVER)
    server.initialize()
    server.add("early", inSeconds=1)
    server.quiet(1.5)
    for _ in range(3):
        server.policy()
    server.answer(server.wait_push(is_reminder), {"result": {"accepted": True}})
    server.policy()
    server.quiet(1)
    assert len(server.pushes) == 1


@pytest.mark.requirement("policy.answer-codes", "host.16", "seed.reminder.retry-events")
@pytest.mark.parametrize("code", [-32001, -32002, -32003])
def test_a_denial_in_answer_to_a_push_shows_as_blocked(spawn: Spawn, code: int) -> None:
    server = spawn(answers=error(code, "no")).ready()
    server.add("later", inSeconds=1)
    server.wait_push(is_reminder)
    server.settle()
    assert "delivery=BLOCKED (" in server.status()
    server.answers = {"result": {"accepted": True}}
    server.policy()
    server.wait_push(is_reminder, count=2)
    assert server.pushes[0]["params"]["eventId"] == server.pushes[1]["params"]["eventId"]
    server.settle()
    assert "delivery=ok" in server.status()
    server.wait("empty file", lambda: server.rows() == [])


@pytest.mark.requirement("host.26", "schedule.coalesce", "reminder.coalesce", "host.24")
@pytest.mark.parametrize("offer", [True, {"pushEvents": True}, {"pushEvents": False}, None])
def test_coalescing_is_used_only_where_offered(spawn: Spawn, offer: Any, tmp_path: Any) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = [row("rem_once", 1_700_000_000_000), row("rem_often", 1_700_000_000_001, every=3600)]
    (data / "heartbeat-reminders.json").write_text(json.dumps(rows))
    mcpl = AGENT_FRAMEWORK if offer is None else AGENT_FRAMEWORK | {"eventCoalescing": offer}
    server = spawn().ready(mcpl=mcpl)
    server.wait_push(is_reminder, count=2)
    server.call("heartbeat_trigger")
    server.wait_push(is_tick)
    server.settle()
    server.call("heartbeat_configure", deliveryMode="silent")
    server.call("heartbeat_trigger")
    server.wait_push(is_tick, count=2)
    found = {origin(p).get("reminderId", origin(p).get("silent")): p for p in server.pushes}
    offered = offer is True or offer == {"pushEvents": True}
    keys = {name: push["params"].get("coalesce") for name, push in found.items()}
    assert keys["rem_once"] is None
    assert keys[True] is None
    if offered:
        assert keys[None] == {"key": "tick"}
        assert "rem_often" in keys["rem_often"]["key"]
    else:
        assert keys[None] is keys["rem_often"] is None
