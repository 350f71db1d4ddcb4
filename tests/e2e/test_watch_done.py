"""What issue 4 calls done: agents over HTTP, one of them dead, another woken on stdio."""

import json
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_watch import Agent, agent, is_watch, postgres_server, postgres_url, store, told
from tests.e2e.wire import origin, shown
from tests.http.server import Server

__all__ = ["agent", "postgres_server", "postgres_url", "store"]


def post(url: str, path: str, secret: str | None = None, **body: Any) -> dict[str, Any]:
    """What curl would send, and the answer."""
    request = urllib.request.Request(
        f"{url}/v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    if secret is not None:
        request.add_header("Authorization", f"Bearer {secret}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.fixture
def servers(tmp_path: Path, store: str) -> Iterator[list[Server]]:
    """Two servers on one store."""
    started = [Server(tmp_path, "--listen", "127.0.0.1:0", "--store", store) for _ in range(2)]
    yield started
    for server in started:
        server.process.kill()
        server.process.wait(60)
        server.process.stdout.close()
        server.process.stderr.close()


@pytest.mark.requirement("watch.done")
def test_one_dies_with_the_server_that_saw_it_and_the_other_is_woken(
    agent: Agent, store: str, servers: list[Server]
) -> None:
    first, second = (server.url for server in servers)
    worker = post(first, "register", label="worker")
    woken = agent("woken", store)
    address = told(woken, "whoami")["address"]
    secret = worker["agent_secret"]
    lease = post(first, "lease", secret, key="deploy", holder="w1", scope="permits")
    assert lease["acquired"] is True
    point = {"objective": "review permits", "next_action": "open page 4"}
    post(second, "checkpoint", secret, scope="permits", **point)
    beat = {
        "scope": "permits",
        "on_expiry": ["release_leases", "mark_failed", "queue_alert"],
        "notify_address": address,
        "agent_id": "worker-1",
    }
    while (
        post(second, "heartbeat", secret, expect_within_seconds=600, **beat)["alert_delivery"]
        != "push"
    ):
        woken.quiet(0.1)
    armed = post(first, "heartbeat", secret, expect_within_seconds=2, **beat)
    assert armed["state"] == "armed"
    # It beats no more; and of those who watch, one is killed and one stands still.
    servers[0].process.send_signal(signal.SIGKILL)
    servers[1].process.send_signal(signal.SIGSTOP)

    push = woken.wait_push(is_watch)
    assert origin(push) == {"source": "alert", "scope": "permits", "generation": 1}
    for word in ("worker-1", "deploy", "open page 4"):
        assert word in shown(push)
    envelope = told(woken, "inbox_poll")["envelope"]
    assert [freed["key"] for freed in envelope["released"]] == ["deploy"]
    servers[1].process.send_signal(signal.SIGCONT)
    taken = post(second, "lease", secret, key="deploy", holder="w2")
    assert (taken["acquired"], taken["generation"]) == (True, 2)
    packet = post(second, "resume", secret, scope="permits")
    assert (packet["failed"], len(packet["deaths"])) == (True, 1)
    assert told(woken, "whoami")["total"] == 1, "one alert, whoever watched"
