"""The protocol around the wings: initialize, versions, batches, policy and errors."""

import json
from typing import Any

import pytest

from mcpl_heartbeat.mcp.lifecycle import VERSIONS
from tests.world import GRANT, World, silence

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "heartbeat_status"}}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.requirement("host.1", "host.5", "policy.manifest", "mcp.tools-capability")
def test_initialize_with_id_0_is_answered_with_id_0_and_the_manifest() -> None:
    world = World()
    world.send(
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2024-11-05",
                "capabilities": {"experimental": {"mcpl": {"version": "0.5"}}},
                "clientInfo": {"name": "agent-framework", "version": "1.0.0"},
            },
        }
    )
    result = world.reply(0)["result"]
    assert result["protocolVersion"] == "2024-11-05"
    assert result["capabilities"]["tools"] == {}
    mcpl = result["capabilities"]["experimental"]["mcpl"]
    assert mcpl["version"] == "0.5"
    assert mcpl["pushEvents"] is True
    assert mcpl["featureSets"]["heartbeat"]["uses"] == ["pushEvents", "tools"]
    assert mcpl["revision"].startswith("sha256:")
    assert world.request("mcpl/manifest")["result"] == mcpl


@pytest.mark.requirement("host.6", "policy.manifest-array")
@pytest.mark.parametrize("name", ["mcpl-harness-web", "mcpl-harness"])
def test_a_harness_gets_its_feature_sets_as_an_array(name: str) -> None:
    mcpl = World().connect(client=name)["capabilities"]["experimental"]["mcpl"]
    assert [each["name"] for each in mcpl["featureSets"]] == ["heartbeat"]


@pytest.mark.requirement("policy.manifest-only-mcpl", "policy.plain", "host.7")
def test_a_plain_client_gets_no_manifest_no_policy_and_no_push() -> None:
    world = World()
    result = world.connect(mcpl=False, policy=None)
    assert "experimental" not in result["capabilities"]
    for method in ("mcpl/manifest", "featureSets/update"):
        assert world.request(method, GRANT)["error"]["code"] == -32601
    world.pass_time(24 * 3_600_000)
    assert world.pushes == []
    assert world.call("heartbeat_trigger")["isError"] is True


@pytest.mark.requirement("mcp.version-echo", "mcp.version-unknown", "host.2", "field.38")
@pytest.mark.parametrize("version", [*VERSIONS, "1999-01-01", "2026-07-28"])
def test_versions(version: str) -> None:
    answered = World().connect(version=version)["protocolVersion"]
    assert answered == (version if version in VERSIONS else "2025-11-25")


@pytest.mark.requirement("mcp.before-initialize", "mcp.discover", "field.40", "host.3")
def test_before_initialize_everything_else_is_an_error_and_does_nothing() -> None:
    world = World()
    for message, code in (
        (CALL, -32600),
        ({**CALL, "params": {"name": "heartbeat_trigger"}}, -32600),
        ({**CALL, "method": "featureSets/update", "params": GRANT}, -32600),
        ({**CALL, "method": "tools/list"}, -32600),
        ({**CALL, "method": "server/discover"}, -32601),
        ([PING], -32600),
        (7, -32600),
    ):
        world.replies.clear()
        world.send(message)
        assert [reply["error"]["code"] for reply in world.replies] == [code]
    world.replies.clear()
    world.send(PING)
    assert world.replies == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    world.replies.clear()
    world.connect()
    assert world.pushes == []
    world.call("heartbeat_trigger")
    assert len(world.pushes) == 1


@pytest.mark.requirement("mcp.initialize-twice")
def test_a_second_initialize_is_refused_and_changes_nothing() -> None:
    world = World()
    world.connect()
    again = world.request("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}})
    assert again["error"]["code"] == -32600
    world.call("heartbeat_trigger")
    assert len(world.pushes) == 1


@pytest.mark.requirement("jsonrpc.batch", "field.35")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_a_batch_gets_a_batch_even_when_one_reply_waits_for_a_save(version: str) -> None:
    world = World()
    world.connect(version=version)
    world.disk.slow = True
    world.replies.clear()
    add = {"name": "reminder_add", "arguments": {"message": "x", "inHours": 1}}
    world.send(
        [
            {**CALL, "id": "a", "params": add},
            {**PING, "id": "b"},
            {"jsonrpc": "2.0", "method": "notifications/x"},
            1,
        ]
    )
    assert world.replies == []
    world.end_save()
    ((first, second, third),) = world.replies
    assert (first["id"], second["id"], third["id"]) == ("a", "b", None)
    assert third["error"]["code"] == -32600


@pytest.mark.requirement("jsonrpc.batch-later", "field.35")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_batch_under_later_versions_is_one_error(version: str) -> None:
    world = World()
    world.connect(version=version)
    world.replies.clear()
    world.send([PING, PING])
    (reply,) = world.replies
    assert reply["error"]["code"] == -32600
    assert reply["id"] is None


@pytest.mark.requirement("mcp.structured-content", "mcp.tools-output-schema", "mcp.tool-error")
@pytest.mark.parametrize("version", VERSIONS)
def test_structured_content_comes_with_its_schema_and_only_then(version: str) -> None:
    world = World()
    world.connect(version=version)
    later = version >= "2025-06-18"
    listed = {tool["name"]: tool for tool in world.request("tools/list")["result"]["tools"]}
    assert len(listed) == 6
    for name, arguments in (
        ("heartbeat_status", {}),
        ("heartbeat_configure", {"paused": 1}),
        ("heartbeat_configure", {}),
        ("reminder_add", {}),
        ("reminder_list", {"offset": -1}),
        ("reminder_list", {"offset": 9}),
        ("reminder_cancel", {"id": "none"}),
        ("heartbeat_status", {"interval": 1}),
        ("heartbeat_trigger", {"interval": 1}),
        ("heartbeat_trigger", {}),
    ):
        result = world.call(name, **arguments)
        assert ("structuredContent" in result) is later
        assert ("outputSchema" in listed[name]) is later
        if later:
            schema = listed[name]["outputSchema"]
            assert set(schema["required"]) <= set(result["structuredContent"]), (name, arguments)
            assert set(result["structuredContent"]) <= set(schema["properties"])


@pytest.mark.requirement("mcp.unknown-tool", "jsonrpc.invalid-params")
@pytest.mark.parametrize(
    "params",
    [{"name": "nope"}, {}, {"name": 5}, [], {"name": "heartbeat_status", "arguments": "x"}],
)
def test_a_call_of_no_tool_is_wrong_params(params: Any) -> None:
    world = World()
    world.connect()
    assert world.request("tools/call", params)["error"]["code"] == -32602


@pytest.mark.requirement("jsonrpc.unknown-method", "host.38")
@pytest.mark.parametrize(
    "method", ["channels/list", "push/render", "resources/list", "", "méthode"]
)
def test_unknown_methods_are_an_error(method: str) -> None:
    world = World()
    world.connect()
    assert world.request(method)["error"]["code"] == -32601


@pytest.mark.requirement("jsonrpc.unknown-notification", "field.34", "host.4")
def test_unknown_notifications_say_nothing() -> None:
    world = World()
    world.connect()
    before = len(world.replies)
    for method in ("notifications/roots/list_changed", "notifications/x", "foo", "tools/call"):
        world.notify(method)
        world.notify(method, {"name": "heartbeat_trigger"})
    assert len(world.replies) == before
    assert world.pushes == []


@pytest.mark.requirement("policy.at-once", "host.8", "seed.policy.receipt", "policy.receipt-full")
def test_a_policy_is_answered_at_once_with_pushes_out_and_however_often() -> None:
    world = World(answer=silence)
    world.connect()
    world.call("heartbeat_trigger")
    for _ in range(3):
        assert world.request("featureSets/update", GRANT)["result"] == {
            "accepted": True,
            "mode": "full",
            "unavailableFeatures": [],
            "notes": [],
        }


@pytest.mark.requirement(
    "seed.policy.denied-set-disabled",
    "policy.receipt-degraded",
    "policy.receipt-notes",
    "host.9",
    "seed.policy.status-blocked",
    "seed.policy.absence-denies",
)
def test_a_policy_without_push_events_disables_the_wakes_and_says_so_everywhere() -> None:
    world = World()
    world.connect(policy=None)
    receipt = world.request("featureSets/update", {"effectiveCapabilities": ["tools"]})["result"]
    assert receipt["accepted"] is True
    assert receipt["mode"] == "degraded"
    assert receipt["unavailableFeatures"] == [
        {"featureSet": "heartbeat", "missingCapabilities": ["pushEvents"], "effect": "disabled"}
    ]
    assert "reminder" in receipt["notes"][0]
    assert "delivery=BLOCKED (" in world.text("heartbeat_status")
    world.pass_time(4 * 3_600_000)
    assert any(line.startswith("suppressed heartbeat push/event — ") for line in world.logs)


@pytest.mark.requirement("policy.notification-narrows", "host.12")
def test_a_notification_narrows_a_granted_policy_and_never_widens_it() -> None:
    world = World()
    world.connect()
    world.notify("featureSets/update", {"disabled": ["heartbeat"]})
    assert "delivery=BLOCKED" in world.text("heartbeat_status")
    world.notify("featureSets/update", GRANT)
    assert "delivery=BLOCKED" in world.text("heartbeat_status")
    assert world.logs[0] == "featureSets/update Notification disables: heartbeat"
    world.request("featureSets/update", GRANT)
    assert "delivery=ok" in world.text("heartbeat_status")


@pytest.mark.requirement("stdio.half-line")
def test_wakes_leave_while_half_a_line_is_waiting() -> None:
    world = World(answer=silence)
    world.connect()
    world.raw(b'{"jsonrpc":"2.0","id":"late","meth')
    world.pass_time(4 * 3_600_000)
    assert len(world.pushes) == 1
    world.raw(b'od":"ping"}\n')
    assert world.reply("late")["result"] == {}


@pytest.mark.requirement("host.37", "seed.args.unknown-ignored")
def test_host_extras_are_ignored_and_said_to_be() -> None:
    world = World()
    world.connect()
    text = world.text("reminder_add", message="x", inHours=1, state={}, checkpoint="c")
    assert text.startswith("Reminder rem_")
    assert "Ignored: state, checkpoint" in text


@pytest.mark.requirement("jsonrpc.never-raises")
def test_a_fault_of_ours_costs_one_call_and_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.connect()

    def broken(*_: object) -> None:
        raise RuntimeError("our fault")

    monkeypatch.setitem(world.session._calls._handlers, "heartbeat_status", broken)
    reply = world.request("tools/call", {"name": "heartbeat_status"})
    assert reply["error"]["code"] == -32603
    assert "our fault" not in json.dumps(reply)
    assert any("our fault" in line for line in world.logs)
    assert world.request("ping")["result"] == {}


@pytest.mark.requirement("policy.malformed")
@pytest.mark.parametrize("params", ["all", 5, True, []])
def test_a_policy_of_no_shape_at_all_is_malformed_and_takes_the_grant_away(params: Any) -> None:
    world = World()
    world.connect()
    assert world.request("featureSets/update", params)["error"]["code"] == -32602
    assert "delivery=BLOCKED (no valid featureSets/update" in world.text("heartbeat_status")


@pytest.mark.requirement("jsonrpc.batch", "mcp.ping")
def test_a_batch_of_thousands_is_refused_whole_and_at_once() -> None:
    world = World()
    world.connect(version="2025-03-26")
    for count, replies in ((1_000, 1_000), (1_001, 1), (3_000_000, 1)):
        world.replies.clear()
        world.raw(b"[" + b",".join([b"1"] * count) + b"]\n")
        (reply,) = world.replies
        assert (len(reply) if isinstance(reply, list) else 1) == replies
    assert reply["error"]["code"] == -32600
    assert "1000" in reply["error"]["message"]


@pytest.mark.requirement("file.lock")
def test_a_server_that_stands_by_still_shows_its_status_by_an_empty_configure() -> None:
    world = World()
    world.disk.held_by = "process 4711"
    world.boot()
    world.connect()
    result = world.call("heartbeat_configure")
    assert not result.get("isError")
    assert result["content"][0]["text"].startswith("Heartbeat ACTIVE")
    assert "process 4711" in result["content"][0]["text"]


@pytest.mark.requirement("seed.status.message", "jsonrpc.id-echo")
def test_the_same_question_in_one_write_is_answered_anew_after_every_change() -> None:
    world = World()
    world.connect()
    status = {"name": "heartbeat_status"}
    configure = {"name": "heartbeat_configure", "arguments": {"message": "other words"}}
    calls = [status, status, configure, status, status]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": f"q{n}", "method": "tools/call", "params": params})
        for n, params in enumerate(calls)
    ]
    world.call("heartbeat_status")
    world.raw("".join(line + "\n" for line in lines).encode())
    texts = [world.reply(f"q{n}")["result"]["content"][0]["text"] for n in (0, 1, 3, 4)]
    assert ["other words" in text for text in texts] == [False, False, True, True]
