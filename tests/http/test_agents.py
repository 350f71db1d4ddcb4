"""Agents on a real server and a real store: what one does, and what no other may see of it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mcpl_heartbeat.shell.http.routes import PATHS
from tests.http.served import served
from tests.http.test_routes import BODIES, shape
from tests.store.conftest import postgres_server, postgres_url, store_url
from tests.store.world import World

__all__ = ["postgres_server", "postgres_url", "store_url"]


class Agent:
    """One that registered, by plain HTTP."""

    def __init__(self, url: str, label: str) -> None:
        self._http = httpx.Client(base_url=url)
        self.identity = self.post("/v1/register", label=label)
        self._http.headers["authorization"] = f"Bearer {self.identity['agent_secret']}"
        self.address = self.identity["address"]

    def ask(self, path: str, **body: Any) -> httpx.Response:
        return self._http.post(path, json=body)

    def post(self, path: str, **body: Any) -> Any:
        response = self.ask(path, **body)
        assert response.status_code == 200, response.text
        return response.json()

    def close(self) -> None:
        self._http.close()


class Town:
    """A server, its time, and two agents."""

    def __init__(self, world: World, url: str) -> None:
        self.world = world
        self.url = url
        self.one, self.other = Agent(url, "worker"), Agent(url, "keeper")


def _town(store: str) -> Iterator[Town]:
    world = World(store)
    with served(world.url, world.clock) as url:
        town = Town(world, url)
        yield town
        town.one.close()
        town.other.close()
    world.close()


@pytest.fixture
def town(store_url: str) -> Iterator[Town]:
    yield from _town(store_url)


@pytest.fixture(scope="module")
def one_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    yield from _town(f"sqlite:///{tmp_path_factory.mktemp('town')}/store.db")


@pytest.mark.requirement("watch.http.story")
def test_a_death_is_told_with_what_was_freed_and_where_to_resume(town: Town) -> None:
    one, other = town.one, town.other
    lease = one.post("/v1/lease", key="db", holder="worker", scope="job", ttl_seconds=600)
    one.post("/v1/lease", key="elsewhere", holder="worker", ttl_seconds=600)
    one.post("/v1/checkpoint", scope="job", objective="Review.", next_action="Read page 7.")
    beat = one.post(
        "/v1/heartbeat",
        scope="job",
        expect_within_seconds=2,
        on_expiry=["queue_alert", "release_leases", "mark_failed"],
        notify_address=f"{other.address}/alerts",
        agent_id="worker-3",
    )
    assert (beat["state"], beat["generation"], beat["fired"]) == ("armed", 1, False)
    assert beat["alert_delivery"] == "inbox"
    assert other.post("/v1/inbox/poll", box="alerts")["envelope"] is None

    town.world.advance(2_001)
    # A look at the scope settles what is due on it, as the next sweep would.
    assert one.post("/v1/switches", scope="job")["switches"][0]["state"] == "fired"

    alert = other.post("/v1/inbox/poll", box="alerts")["envelope"]
    assert alert["kind"] == "alert"
    assert (alert["scope"], alert["generation"], alert["agent_id"]) == ("job", 1, "worker-3")
    assert alert["deadline"] == beat["deadline"] <= alert["noticed_at"]
    assert alert["last_beat_at"] == beat["server_time"]
    assert [freed["key"] for freed in alert["released"]] == ["db"]
    assert alert["unreachable"] == 1
    assert alert["resume"]["next_action"] == "Read page 7."
    taken = one.post("/v1/lease", key="db", holder="successor", scope="job")
    assert taken["acquired"] is True
    assert taken["generation"] == lease["generation"] + 1
    packet = one.post("/v1/resume", scope="job")
    assert packet["failed"] is True
    [death] = packet["deaths"]
    assert (death["generation"], death["deadline"]) == (1, beat["deadline"])
    [switch] = one.post("/v1/switches", scope="job")["switches"]
    assert (switch["state"], switch["fires"]) == ("fired", 1)

    again = one.post("/v1/heartbeat", scope="job", expect_within_seconds=60)
    assert (again["state"], again["generation"], again["fired"]) == ("armed", 2, True)
    assert other.post("/v1/inbox/ack", task_id=alert["task_id"])["acked"] is True
    assert other.post("/v1/inbox/poll", box="alerts")["envelope"] is None
    assert one.post("/v1/resume", scope="job")["failed"] is False


@pytest.mark.requirement("watch.http.story")
def test_a_beat_after_the_deadline_fires_first(town: Town) -> None:
    town.one.post("/v1/heartbeat", scope="job", expect_within_seconds=2)
    town.world.advance(2_000)
    beat = town.one.post("/v1/heartbeat", scope="job", expect_within_seconds=2)
    assert (beat["fired"], beat["fired_generation"], beat["generation"]) == (True, 1, 2)


@pytest.mark.requirement("watch.http.secret")
@pytest.mark.parametrize("path", sorted(set(PATHS) - {"/v1/register"}))
def test_every_route_asks_whose_call_it_is(one_town: Town, path: str) -> None:
    headers: dict[str, str]
    for headers in ({}, {"authorization": "Bearer hb_" + "x" * 43}):
        response = httpx.post(one_town.url + path, json=BODIES[path], headers=headers)
        assert shape(response)["code"] == "unauthorized"
        assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.fixture(scope="module")
def busy(one_town: Town) -> dict[str, Any]:
    """One agent with something of everything, and what the other must not see or change."""
    one = one_town.one
    one.post("/v1/heartbeat", scope="secret-job", expect_within_seconds=3_000)
    lease = one.post("/v1/lease", key="secret-key", holder="me", scope="secret-job")
    one.post("/v1/checkpoint", scope="secret-job", objective="Hide.", next_action="Run.")
    one.post("/v1/send", to=one.address, objective="secret-note", scope="secret-job")
    envelope = one.post("/v1/inbox/poll", visibility_timeout_seconds=86_400)["envelope"]
    return {"fence": lease["fence"], "task_id": envelope["task_id"]}


def _state(one: Agent) -> Any:
    """Everything the first agent sees of its own, without the time at which it looks."""
    seen = [
        one.post("/v1/switches", scope="secret-job"),
        one.post("/v1/whoami"),
        one.post("/v1/resume", scope="secret-job"),
    ]
    for each in seen:
        del each["server_time"]
    for switch in (*seen[0]["switches"], seen[2]["switch"]):
        del switch["seconds_left"]
    return seen


@pytest.mark.requirement("watch.http.two-namespaces")
@pytest.mark.parametrize("path", sorted(PATHS))
def test_no_route_sees_changes_or_counts_what_is_anothers(
    one_town: Town, busy: dict[str, Any], path: str
) -> None:
    one, other = one_town.one, one_town.other
    bodies: dict[str, dict[str, Any]] = {
        "/v1/heartbeat": {"scope": "secret-job", "expect_within_seconds": 2, "disarm": True},
        "/v1/switches": {"scope": "secret-job"},
        "/v1/register": {"label": "another"},
        "/v1/whoami": {},
        "/v1/send": {"to": other.address, "objective": "To myself.", "scope": "secret-job"},
        "/v1/inbox/poll": {},
        "/v1/inbox/ack": {"task_id": busy["task_id"]},
        "/v1/inbox/nack": {"task_id": busy["task_id"]},
        "/v1/lease": {"key": "secret-key", "holder": "me", "scope": "secret-job"},
        "/v1/lease/renew": {"key": "secret-key", "holder": "me", "fence": busy["fence"]},
        "/v1/lease/release": {"key": "secret-key", "holder": "me", "fence": busy["fence"]},
        "/v1/checkpoint": {"scope": "secret-job", "objective": "Mine.", "next_action": "Go."},
        "/v1/resume": {"scope": "secret-job"},
    }
    before = _state(one)
    response = other.ask(path, **bodies[path])
    assert response.status_code == 200, response.text
    for hidden in (one.address, busy["task_id"], busy["fence"], "secret-note", "Hide."):
        shown = response.text.replace(f'"task_id":"{bodies[path].get("task_id")}"', "")
        assert hidden not in shown
    assert _state(one) == before


@pytest.mark.requirement("watch.mcp.story")
def test_the_same_agent_over_mcp(town: Town) -> None:
    secret = town.one.identity["agent_secret"]
    town.one.post("/v1/heartbeat", scope="job", expect_within_seconds=2)

    def call(tool: str, **arguments: Any) -> Any:
        response = httpx.post(
            f"{town.url}/mcp",
            json={
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            },
            headers={
                "accept": "application/json, text/event-stream",
                "authorization": f"Bearer {secret}",
                "mcp-protocol-version": "2025-11-25",
            },
        )  # fmt: skip
        return response.json()["result"]

    result = call("heartbeat", scope="job", expect_within_seconds=2)
    assert result["structuredContent"]["generation"] == 1
    town.world.advance(2_000)
    result = call("resume_packet", scope="job")
    assert result["structuredContent"]["failed"] is True
    assert "failed" in result["content"][0]["text"]
    result = call("whoami", agent_key="hb_" + "x" * 43)
    assert result["isError"] is True
