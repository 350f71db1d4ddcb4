"""The watch tools over MCPL: listed, weighed, asked of the store, and answered when it answers."""

from typing import Any

import pytest

from mcpl_heartbeat.mcp.tools import schema
from mcpl_heartbeat.storage.store.ports import News
from mcpl_heartbeat.watch import tools
from mcpl_heartbeat.watch.failures import unavailable
from tests.session.watching import GRANT, READING, alert, beaten, news, no_switches, watch_world
from tests.world import World, refuse

KEY = "k" * 32


def told(world: World, id: int, outcome: Any) -> dict[str, Any]:
    world.tell(world.asks[-1], outcome)
    result: dict[str, Any] = world.reply(id)["result"]
    return result


@pytest.mark.requirement("watch.mcp.only-with-a-store")
def test_without_a_store_there_is_no_watch_wing() -> None:
    world = World()
    result = world.connect()
    names = [tool["name"] for tool in world.request("tools/list")["result"]["tools"]]
    assert "heartbeat" not in names
    assert list(result["capabilities"]["experimental"]["mcpl"]["featureSets"]) == ["heartbeat"]
    assert "dead-man" not in result["instructions"]
    reply = world.request("tools/call", {"name": "heartbeat", "arguments": {}})
    assert reply["error"]["code"] == -32602


@pytest.mark.requirement("watch.mcp.offered")
def test_with_a_store_its_tools_follow_the_wake_tools() -> None:
    world = watch_world(connect=False)
    result = world.connect(policy=GRANT)
    names = [tool["name"] for tool in world.request("tools/list")["result"]["tools"]]
    assert names[:6] == [
        "heartbeat_status",
        "heartbeat_configure",
        "heartbeat_trigger",
        "reminder_add",
        "reminder_list",
        "reminder_cancel",
    ]
    assert tuple(names[6:]) == tuple(tool.name for tool in tools.TOOLS)
    mcpl = result["capabilities"]["experimental"]["mcpl"]
    assert list(mcpl["featureSets"]) == ["heartbeat", "watch"]
    assert mcpl["featureSets"]["watch"]["uses"] == ["pushEvents", "tools"]
    assert world.request("mcpl/manifest")["result"] == mcpl
    assert "dead-man switch" in result["instructions"]


@pytest.mark.requirement("watch.mcp.offered")
def test_the_receipt_names_what_is_not_granted() -> None:
    world = watch_world(connect=False)
    world.connect(policy=None)
    only = {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": ["heartbeat"]}
    receipt = world.request("featureSets/update", only)["result"]
    assert receipt["mode"] == "degraded"
    assert [one["featureSet"] for one in receipt["unavailableFeatures"]] == ["watch"]
    assert world.request("featureSets/update", GRANT)["result"]["mode"] == "full"


@pytest.mark.requirement("watch.mcp.asked")
def test_a_call_is_asked_of_the_store_and_answered_when_that_has_answered() -> None:
    world = watch_world()
    id = world.begin_call("heartbeat", scope="permits", expect_within_seconds=300)
    (ask,) = world.asks
    assert (ask.tool, ask.secret, ask.arguments.scope) == ("heartbeat", None, "permits")
    assert not world.answered(id)
    assert world.request("ping")["result"] == {}
    assert not world.call("heartbeat_status").get("isError")
    result = told(world, id, beaten(ask))
    assert "isError" not in result
    assert result["structuredContent"]["state"] == "armed"
    assert "permits" in result["content"][0]["text"]


@pytest.mark.requirement("watch.mcp.asked")
def test_asks_leave_in_the_order_in_which_they_came() -> None:
    world = watch_world()
    ids = [
        world.begin_call("heartbeat", scope=f"s{n}", expect_within_seconds=300) for n in range(5)
    ]
    assert [ask.arguments.scope for ask in world.asks] == ["s0", "s1", "s2", "s3", "s4"]
    for ask in reversed(world.asks):
        world.tell(ask, beaten(ask))
    scopes = [world.reply(id)["result"]["structuredContent"]["scope"] for id in ids]
    assert scopes == ["s0", "s1", "s2", "s3", "s4"]


@pytest.mark.requirement("watch.mcp.asked")
def test_it_needs_neither_the_files_nor_a_policy() -> None:
    world = watch_world(connect=False)
    world.boot(open_files=False)
    world.connect(policy=None)
    world.begin_call("heartbeat", scope="permits", expect_within_seconds=300)
    assert len(world.asks) == 1


@pytest.mark.requirement("watch.mcp.key")
def test_a_key_that_was_sent_goes_with_the_ask() -> None:
    world = watch_world()
    world.begin_call("heartbeat", scope="a", expect_within_seconds=300, agent_key=KEY)
    world.begin_call("register", label="second")
    assert [ask.secret for ask in world.asks] == [KEY, None]


@pytest.mark.requirement("watch.mcp.refused")
def test_wrong_arguments_are_refused_with_every_problem_and_never_asked() -> None:
    world = watch_world()
    result = world.call("heartbeat", scope="", expect_within_seconds=1, agentId="x")
    assert result["isError"] is True
    assert world.asks == []
    body = result["structuredContent"]
    assert (body["code"], body["status"]) == ("invalid_arguments", 400)
    assert len(body["problems"]) == 3
    assert body["server_time"].endswith("Z")
    assert "changed nothing" in result["content"][0]["text"]


@pytest.mark.requirement("watch.mcp.refused")
def test_a_slip_for_another_wings_name_is_told() -> None:
    world = watch_world()
    text = world.text("heartbeat", scope="a", expect_within_seconds=300, intervalSeconds=60)
    assert "heartbeat_configure" in text


@pytest.mark.requirement("watch.mcp.failure")
def test_a_failure_is_an_error_result_in_the_one_shape() -> None:
    world = watch_world()
    id = world.begin_call("lease", key="deploy", holder="worker-3")
    result = told(world, id, unavailable("lease", "it is locked"))
    assert result["isError"] is True
    body = result["structuredContent"]
    assert (body["code"], body["acquired"]) == ("unavailable", None)
    assert body["server_time"].endswith("Z")
    assert "do not proceed" in result["content"][0]["text"]


@pytest.mark.requirement("watch.mcp.cancelled")
def test_a_cancelled_call_gets_no_reply() -> None:
    world = watch_world()
    id = world.begin_call("heartbeat", scope="permits", expect_within_seconds=300)
    world.notify("notifications/cancelled", {"requestId": id})
    world.tell(world.asks[0], beaten(world.asks[0]))
    assert not world.answered(id)
    assert world.request("ping")["result"] == {}


@pytest.mark.requirement("watch.mcp.asked")
def test_a_batch_waits_for_its_store_calls() -> None:
    world = watch_world(connect=False)
    world.connect(version="2025-03-26")
    beat = {"name": "heartbeat", "arguments": {"scope": "a", "expect_within_seconds": 300}}
    world.send(
        [
            {"jsonrpc": "2.0", "id": "beat", "method": "tools/call", "params": beat},
            {"jsonrpc": "2.0", "id": "ping", "method": "ping"},
        ]
    )
    assert not isinstance(world.replies[-1], list)
    world.tell(world.asks[0], beaten(world.asks[0]))
    assert [one["id"] for one in world.replies[-1]] == ["beat", "ping"]
    assert "structuredContent" not in world.replies[-1][0]["result"]


@pytest.mark.requirement("watch.mcp.failure")
def test_a_fault_of_ours_costs_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    world = watch_world()
    id = world.begin_call("heartbeat", scope="permits", expect_within_seconds=300)
    result = told(world, id, no_switches())
    assert result["isError"] is True
    assert any("internal error in heartbeat" in line for line in world.logs)
    world.tell(world.asks[0], no_switches())
    assert world.request("ping")["result"] == {}


@pytest.mark.requirement("watch.push.told")
@pytest.mark.parametrize("policy", [None, {"effectiveCapabilities": ["tools"]}])
def test_who_cannot_be_woken_is_told(policy: dict[str, Any] | None) -> None:
    world = watch_world(connect=False)
    world.connect(policy=policy)
    result = told(world, world.begin_call("switch_status"), no_switches())
    (note,) = result["structuredContent"]["notes"]
    assert "cannot wake you here" in note
    assert note in result["content"][0]["text"]


@pytest.mark.requirement("watch.push.told")
def test_what_the_host_does_not_take_is_told_with_the_reason() -> None:
    world = watch_world(answer=refuse(-32603, "stopping"))
    assert (
        told(world, world.begin_call("switch_status"), no_switches())["structuredContent"]["notes"]
        == []
    )
    world.news(news(alert(1), alert(2)))
    result = told(world, world.begin_call("switch_status"), no_switches())
    (note,) = result["structuredContent"]["notes"]
    assert "2 alerts" in note
    assert "stopping" in note
    other = told(world, world.begin_call("switch_status", agent_key=KEY), no_switches())
    assert other["structuredContent"]["notes"] == [], "it is no news of another agent's"


@pytest.mark.requirement("watch.push.told")
def test_what_is_held_is_counted_as_it_waits_yet() -> None:
    def notes() -> list[str]:
        result = told(world, world.begin_call("switch_status"), no_switches())
        said: list[str] = result["structuredContent"]["notes"]
        return said

    world = watch_world(answer=refuse(-32603, "stopping"))
    world.news(news(alert(1), alert(2)))
    world.pass_time(5_000)
    world.news(news(alert(2)))
    (note,) = notes()
    assert "1 alert " in note, "somebody has read the other one, or it was resolved"
    world.news(News(READING, quiet=frozenset({"reviews"})))
    assert len(notes()) == 1
    world.news(News(READING, quiet=frozenset({"alerts"})))
    assert notes() == []
    assert len(world.pushes) == 1, "that there are fewer is no cause to send them"


@pytest.mark.requirement("mcp.structured-content")
@pytest.mark.parametrize("tool", tools.TOOLS, ids=lambda tool: tool.name)
def test_a_failure_has_the_members_that_the_schema_names(tool: Any) -> None:
    world = watch_world()
    result = world.call(tool.name, nonsense=True)
    assert result["isError"] is True
    stated = schema(tool.result)
    assert set(stated.get("required", ())) <= set(result["structuredContent"])
    assert set(result["structuredContent"]) <= set(stated["properties"])
