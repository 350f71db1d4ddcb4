"""Workers that share a queue, on a real server and a real store: by route and by MCP."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.http.served import served
from tests.store.conftest import postgres_server, postgres_url, store_url
from tests.store.world import World

__all__ = ["postgres_server", "postgres_url", "store_url"]

TASKS = "/v1/agent-tasks"
NEW = {
    "input_snapshot": {"pages": 3},
    "output_contract": [{"key": "total", "dataType": "number"}],
    "lease_seconds": 30,
}
RESULT = {"total": {"value": 12.5}}
STOP = "Stop: discard the work, list again."


class Worker:
    """One that shares a secret with others, by plain HTTP."""

    def __init__(self, url: str, secret: str) -> None:
        self._http = httpx.Client(base_url=url, headers={"authorization": f"Bearer {secret}"})

    def get(self, path: str) -> Any:
        return self._done(self._http.get(path))

    def post(self, path: str, **body: Any) -> Any:
        return self._done(self._http.post(path, json=body))

    def refused(self, path: str, status: int, **body: Any) -> Any:
        response = self._http.post(path, json=body)
        assert response.status_code == status, response.text
        return response.json()

    def absent(self, path: str) -> str:
        response = self._http.get(path)
        assert response.status_code == 404
        code: str = response.json()["code"]
        return code

    def over_mcp(self, tool: str, **arguments: Any) -> Any:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        headers = {"mcp-protocol-version": "2025-11-25"}
        return self._done(self._http.post("/mcp", json=message, headers=headers))["result"]

    def close(self) -> None:
        self._http.close()

    def _done(self, response: httpx.Response) -> Any:
        assert response.status_code == 200, response.text
        return response.json()


class Shop:
    """A server, its time, two workers of one queue and a stranger."""

    def __init__(self, world: World, url: str) -> None:
        self._world = world
        self._watching = world.store()
        secrets = [
            httpx.post(f"{url}/v1/register", json={}).json()["agent_secret"] for _ in range(2)
        ]
        self.one, self.other, self.stranger = (
            Worker(url, secret) for secret in (secrets[0], secrets[0], secrets[1])
        )

    def pass_time(self, seconds: int) -> None:
        """Let time pass while somebody watches."""
        self._world.watch(self._watching, ms=seconds * 1000)


@pytest.fixture
def shop(store_url: str) -> Iterator[Shop]:
    world = World(store_url)
    with served(world.url, world.clock) as url:
        shop = Shop(world, url)
        yield shop
        for worker in (shop.one, shop.other, shop.stranger):
            worker.close()
    world.close()


@pytest.mark.requirement("tasks.http.story")
def test_a_worker_that_went_quiet_loses_its_task_to_another(shop: Shop) -> None:
    made = shop.one.post(TASKS, **NEW)
    here = f"{TASKS}/{made['id']}"
    assert [task["id"] for task in shop.other.get(f"{TASKS}?status=available")["data"]] == [
        made["id"]
    ]

    claim = shop.one.post(f"{here}/claim", agent_id="one")
    assert (claim["execution_epoch"], claim["input_snapshot"]) == (2, NEW["input_snapshot"])
    assert shop.other.refused(f"{here}/claim", 409)["code"] == "already_claimed"
    shop.pass_time(20)
    beat = shop.one.post(f"{here}/heartbeat", execution_epoch=2, note="page 2")
    assert beat["lease_expires_at"] > claim["lease_expires_at"]
    assert beat["timeout_at"] == claim["timeout_at"]

    shop.pass_time(31)
    (lapsed,) = shop.other.get(f"{TASKS}?status=available&limit=5")["data"]
    assert (lapsed["status"], lapsed["claimable"]) == ("claimed", True)
    again = shop.other.post(f"{here}/claim", agent_id="other")
    assert again["execution_epoch"] == 3
    assert (again["handover"]["note"], again["handover"]["cause"]) == ("page 2", "lapsed")

    for path, body in (
        ("heartbeat", {}),
        ("submit", {"outputs": RESULT}),
        ("release", {"final": True, "reason": "r"}),
    ):
        late = shop.one.refused(f"{here}/{path}", 409, execution_epoch=2, **body)
        assert (late["code"], late["execution_epoch"]) == ("stale_epoch", 3)
        assert late["holder"] == "other"
        assert STOP in late["next"]

    bad = shop.other.refused(f"{here}/submit", 422, execution_epoch=3, outputs={"x": {"value": 1}})
    assert bad["code"] == "invalid_outputs"
    assert len(bad["problems"]) == 2
    done = shop.other.post(f"{here}/submit", execution_epoch=3, outputs=RESULT)
    assert (done["status"], done["replayed"]) == ("submitted", False)
    assert shop.other.post(f"{here}/submit", execution_epoch=3, outputs=RESULT)["replayed"] is True
    whole = shop.one.get(here)
    assert whole["outputs"] == RESULT
    assert [(e["execution_epoch"], e["agent_id"], e["cause"]) for e in whole["epochs"]] == [
        (2, "one", "lapsed"),
        (3, "other", "submitted"),
    ]


@pytest.mark.requirement("tasks.http.story", "tasks.store.namespaces")
def test_a_stranger_sees_and_changes_nothing(shop: Shop) -> None:
    here = f"{TASKS}/{shop.one.post(TASKS, **NEW)['id']}"
    shop.one.post(f"{here}/claim")
    assert shop.stranger.get(TASKS)["data"] == []
    assert shop.stranger.absent(here) == "unknown_task"
    for path, body in (
        ("claim", {}),
        ("heartbeat", {"execution_epoch": 2}),
        ("submit", {"execution_epoch": 2, "outputs": RESULT}),
        ("release", {"execution_epoch": 2}),
    ):
        assert shop.stranger.refused(f"{here}/{path}", 404, **body)["code"] == "unknown_task"
    cancel = {"cancel_task_id": here.rpartition("/")[2]}
    assert shop.stranger.refused(TASKS, 404, **cancel)["code"] == "unknown_task"
    assert shop.one.get(here)["status"] == "claimed"


@pytest.mark.requirement("tasks.http.story")
def test_the_same_queue_is_reached_over_mcp(shop: Shop) -> None:
    made = shop.one.over_mcp("create_agent_task", **NEW)["structuredContent"]
    task = made["id"].upper()  # an id is the same in either case
    assert shop.one.get(f"{TASKS}/{task}")["id"] == made["id"]
    claim = shop.other.over_mcp("claim_agent_task", task_id=task, idempotency_key="k")
    assert claim["structuredContent"]["execution_epoch"] == 2
    assert made["id"] in claim["content"][0]["text"]
    again = shop.other.post(f"{TASKS}/{task}/claim", idempotency_key="k")
    assert again["replayed"] is True
    refused = shop.one.over_mcp("heartbeat_agent_task", task_id=task, execution_epoch=1)
    assert refused["isError"] is True
    assert refused["structuredContent"]["code"] == "stale_epoch"
    assert STOP in refused["content"][0]["text"]
    given = shop.one.post(f"{TASKS}/{task}/release", execution_epoch=2, note="half")
    assert given["status"] == "available"
