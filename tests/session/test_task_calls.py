"""The task tools over MCPL: offered with a store, asked of it, answered when it has answered."""

from typing import Any

import pytest

from mcpl_heartbeat.tasks import texts
from mcpl_heartbeat.tasks import tools as tasks
from mcpl_heartbeat.tasks.results import HeartbeatAgentTaskResult
from mcpl_heartbeat.tasks.wing import TASKS_WING
from mcpl_heartbeat.wake.tools import TOOLS as WAKE
from mcpl_heartbeat.watch import tools as watch
from mcpl_heartbeat.watch.failures import failure, unavailable
from mcpl_heartbeat.watch.wing import WATCH_WING
from tests.world import World

ID = "3f2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f70"
NOW = "2026-12-01T12:00:00.000Z"
GRANT = {
    "effectiveCapabilities": ["tools", "pushEvents"],
    "enabled": ["heartbeat", "watch", "tasks"],
}
HELD = HeartbeatAgentTaskResult(
    server_time=NOW,
    id=ID,
    status="claimed",
    claimable=False,
    execution_epoch=2,
    claimed_at=NOW,
    lease_expires_at="2026-12-01T12:05:00.000Z",
    timeout_at="2026-12-02T12:00:00.000Z",
    submitted_at=None,
    created_at=NOW,
    updated_at=NOW,
    agent_id="worker-3",
    lease_seconds=300,
    timeout_fallthrough="fail",
    seconds_left=300.0,
)


def store_world(policy: dict[str, Any] | None = GRANT) -> World:
    world = World(annexes=(WATCH_WING, TASKS_WING))
    world.connect(policy=policy)
    return world


def told(world: World, id: int, outcome: Any) -> dict[str, Any]:
    world.tell(world.asks[-1], outcome)
    result: dict[str, Any] = world.reply(id)["result"]
    return result


@pytest.mark.requirement("tasks.tools.offered")
def test_with_a_store_the_task_tools_come_last() -> None:
    world = World(annexes=(WATCH_WING, TASKS_WING))
    result = world.connect(policy=GRANT)
    names = [tool["name"] for tool in world.request("tools/list")["result"]["tools"]]
    assert names == [tool.name for tool in (*WAKE, *watch.TOOLS, *tasks.TOOLS)]
    sets = result["capabilities"]["experimental"]["mcpl"]["featureSets"]
    assert list(sets) == ["heartbeat", "watch", "tasks"]
    assert sets["tasks"]["uses"] == ["pushEvents", "tools"]
    assert "claim_agent_task" in result["instructions"]


@pytest.mark.requirement("tasks.tools.offered")
def test_the_receipt_says_what_is_lost_without_the_set() -> None:
    world = store_world(policy=None)
    only = {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": ["heartbeat", "watch"]}
    receipt = world.request("featureSets/update", only)["result"]
    assert receipt["mode"] == "degraded"
    (lost,) = receipt["unavailableFeatures"]
    assert lost["featureSet"] == "tasks"
    assert world.request("featureSets/update", GRANT)["result"]["mode"] == "full"


@pytest.mark.requirement("tasks.tools.asked")
def test_a_call_is_asked_of_the_store_and_answered_when_that_has_answered() -> None:
    world = store_world()
    id = world.begin_call("heartbeat_agent_task", task_id=ID, execution_epoch=2, note="page 2")
    (ask,) = world.asks
    assert (ask.tool, ask.secret) == ("heartbeat_agent_task", None)
    assert (ask.arguments.task_id, ask.arguments.note) == (ID, "page 2")
    assert not world.answered(id)
    assert world.request("ping")["result"] == {}
    result = told(world, id, HELD)
    assert "isError" not in result
    assert result["structuredContent"]["lease_expires_at"] == HELD.lease_expires_at
    assert result["content"][0]["text"] == texts.text_of("heartbeat_agent_task", HELD)


@pytest.mark.requirement("tasks.tools.asked")
def test_calls_of_both_wings_are_asked_in_their_order_and_answered_each_by_its_own() -> None:
    world = store_world()
    first = world.begin_call("heartbeat_agent_task", task_id=ID, execution_epoch=2)
    second = world.begin_call("whoami")
    third = world.begin_call("list_agent_tasks", agent_key="k" * 32)
    asked = world.asks
    assert [ask.tool for ask in asked] == ["heartbeat_agent_task", "whoami", "list_agent_tasks"]
    assert asked[2].secret == "k" * 32
    assert len({ask.id for ask in asked}) == 3
    world.tell(asked[2], unavailable("list_agent_tasks", "it is full"))
    assert world.answered(third)
    assert not world.answered(first)
    assert not world.answered(second)
    world.tell(asked[0], HELD)
    assert world.answered(first)
    assert not world.answered(second)


@pytest.mark.requirement("tasks.tools.asked", "watch.mcp.failures")
def test_a_worker_that_lost_its_claim_is_told_to_stop() -> None:
    world = store_world()
    id = world.begin_call("heartbeat_agent_task", task_id=ID, execution_epoch=2)
    stop = "Stop: discard the work, list again."
    result = told(world, id, failure("stale_epoch", "No.", stop, execution_epoch=3))
    assert result["isError"] is True
    assert result["structuredContent"]["execution_epoch"] == 3
    assert stop in result["content"][0]["text"]


@pytest.mark.requirement("tasks.tools.asked", "tasks.args.all-problems")
def test_wrong_arguments_are_refused_without_asking() -> None:
    world = store_world()
    result = world.call("create_agent_task", output_contract=[{"key": 5}], lease_seconds=1)
    assert result["isError"] is True
    assert not world.asks
    named = {p.partition(":")[0] for p in result["structuredContent"]["problems"]}
    assert named == {"output_contract", "lease_seconds", "input_snapshot"}
    assert "item 1: key must be a string" in result["content"][0]["text"]


@pytest.mark.requirement("tasks.tools.asked")
def test_words_that_fail_cost_only_this_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tool: str, result: object) -> str:
        raise RuntimeError("no words")

    monkeypatch.setattr("mcpl_heartbeat.tasks.wing.text_of", fails)
    world = store_world()
    id = world.begin_call("claim_agent_task", task_id=ID)
    result = told(world, id, HELD)
    assert result["isError"] is True
    assert "get_agent_task" in result["content"][0]["text"]
    assert world.request("ping")["result"] == {}
