"""Heartbeats over the real pipes: scheduled, by hand, silent, through restarts."""

import json
import re

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.wire import ACCEPT, NEVER, age, error, event_id, is_tick, now_ms, origin, shown

ZONED = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d-0[78]:00 \[America/Los_Angeles\]"


def next_in(status: str) -> int:
    """Return the seconds to the next wake that a status shows."""
    found = re.search(r"next in ~(\d+)s", status)
    assert found, status
    return int(found[1])


@pytest.mark.requirement("seed.trigger.fires-now", "schedule.event-shape", "schedule.event-id")
@pytest.mark.requirement("seed.configure.message-mode-text", "seed.trigger.fired-means-sent")
@pytest.mark.requirement("seed.configure.message", "host.21", "host.22", "host.23", "host.39")
def test_a_trigger_sends_a_message_with_the_time(host: Host) -> None:
    host.call("heartbeat_configure", message="What is next?")
    reply = host.call("heartbeat_trigger")
    assert not reply.is_error
    assert "Heartbeat fired" in reply.text
    push = host.wait_push()
    params = push["params"]
    assert params["featureSet"] == "heartbeat"
    assert re.fullmatch(r"heartbeat_\d{13}_\w+", params["eventId"])
    assert params["origin"] == {"source": "heartbeat", "reason": "manual"}
    assert params["tags"] == ["heartbeat:tick"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", params["timestamp"])
    assert re.fullmatch(rf"\[current time: {ZONED}\] What is next\?", shown(push)), shown(push)
    assert [block["type"] for block in params["payload"]["content"]] == ["text"]


@pytest.mark.requirement("seed.trigger.fired-means-sent", "host.39")
def test_a_refused_trigger_is_said_in_the_log(spawn: Spawn) -> None:
    server = spawn(answers=error(-32603, "the host is stopping")).ready()
    assert "Heartbeat fired" in server.call("heartbeat_trigger").text
    server.wait_log("the host is stopping")


@pytest.mark.requirement("seed.silent.marker", "host.24", "seed.configure.silent-mode-empty")
@pytest.mark.requirement("seed.configure.delivery-mode", "schedule.silent-origin")
def test_a_silent_tick_is_exactly_the_marker(host: Host) -> None:
    assert not host.call("heartbeat_configure", deliveryMode="silent").is_error
    assert "mode=silent" in host.status()
    host.call("heartbeat_trigger")
    params = host.wait_push()["params"]
    assert params["featureSet"] == "heartbeat"
    assert params["origin"] == {"source": "heartbeat", "reason": "manual", "silent": True}
    assert params["payload"] == {"content": []}
    assert "coalesce" not in params


@pytest.mark.requirement("seed.silent.fallback", "seed.silent.status", "seed.silent.tries-first")
@pytest.mark.requirement("seed.silent.one-warning", "host.25", "schedule.silent-origin")
def test_a_refused_silent_tick_falls_back_to_a_message_each_time(spawn: Spawn) -> None:
    def host_without_silence(push: dict[str, object]) -> object:
        params = push["params"]
        assert isinstance(params, dict)
        return ACCEPT if params["payload"]["content"] else error(-32602, "empty content")

    server = spawn(answers=host_without_silence).ready()
    server.call("heartbeat_configure", deliveryMode="silent", message="hello")
    for count in (2, 4):
        server.call("heartbeat_trigger")
        server.wait_push(count=count)
        server.settle()
    kinds = [(origin(p).get("silent"), origin(p).get("silentFallback")) for p in server.pushes]
    assert kinds == [(True, None), (None, True)] * 2
    assert shown(server.pushes[1]).endswith("hello")
    assert len({event_id(push) for push in server.pushes}) == 4
    assert "mode=silent (the host refused a silent wake, " in server.status()
    server.wait_log("silent")
    warnings = [line for line in server.stderr.splitlines() if "WARNING" in line]
    assert len([line for line in warnings if "silent" in line]) == 1


@pytest.mark.requirement("schedule.grid", "schedule.missed-once", "host.28", "host.27")
@pytest.mark.requirement("seed.configure.persists", "seed.wake.interval-push", "field.64")
def test_the_schedule_survives_restarts_and_a_missed_one_fires_once(spawn: Spawn) -> None:
    server = spawn().ready()
    server.call("heartbeat_configure", intervalMinutes=10)
    assert 590 <= next_in(server.status()) <= 600
    server.end()
    age(server.config, 300_000)
    middle = spawn().ready()
    assert 280 <= next_in(middle.status()) <= 300
    assert middle.pushes == []
    middle.kill()
    age(server.config, 1_500_000)
    late = spawn().ready()
    push = late.wait_push(is_tick)
    assert origin(push)["reason"] == "schedule"
    scheduled = int(event_id(push).split("_")[1])
    assert scheduled < now_ms()
    late.settle()
    late.quiet(1)
    assert len(late.pushes) == 1
    # 1800 s ago it was armed for 600 s: the grid's next point is 0 to 600 s away.
    assert 0 <= next_in(late.status()) <= 600
    late.kill()
    after = spawn().ready()
    after.quiet(1)
    assert after.pushes == []


@pytest.mark.requirement("schedule.missed-once", "seed.policy.log-drops", "host.14")
def test_a_wake_due_before_the_policy_is_said_and_fires_once_with_it(spawn: Spawn) -> None:
    server = spawn().ready()
    server.call("heartbeat_configure", intervalSeconds=60)
    server.end()
    age(server.config, 90_000)
    again = spawn()
    again.initialize()
    again.wait_log("suppressed heartbeat push/event — no valid featureSets/update Request")
    assert "next in" not in again.status()
    assert again.pushes == []
    again.policy()
    assert origin(again.wait_push(is_tick))["reason"] == "schedule"
    again.settle()
    again.quiet(1)
    assert len(again.pushes) == 1


@pytest.mark.requirement("schedule.rearm", "schedule.paused", "seed.configure.paused")
@pytest.mark.requirement("seed.status.paused", "words.status-paused", "seed.status.interval")
def test_pausing_and_rearming(spawn: Spawn) -> None:
    server = spawn().ready()
    server.call("heartbeat_configure", intervalMinutes=10)
    server.end()
    age(server.config, 300_000)
    again = spawn().ready()
    again.call("heartbeat_configure", intervalMinutes=10)
    assert next_in(again.status()) <= 300
    again.call("heartbeat_configure", intervalMinutes=11)
    assert 650 <= next_in(again.status()) <= 660
    again.call("heartbeat_configure", paused=True)
    paused = again.status()
    assert paused.startswith("Heartbeat PAUSED | mode=message | interval=660s (0.18h) | ")
    assert "next in" not in paused
    assert json.loads(again.config.read_text())["paused"] is True
    again.call("heartbeat_configure", paused=False)
    assert again.status().startswith("Heartbeat ACTIVE")
    assert next_in(again.status()) <= 660


@pytest.mark.requirement("field.76", "schedule.trigger-apart")
def test_a_trigger_does_not_use_up_the_next_slot(spawn: Spawn) -> None:
    server = spawn().ready()
    server.call("heartbeat_configure", intervalSeconds=60)
    server.end()
    age(server.config, 55_000)
    again = spawn().ready()
    again.call("heartbeat_trigger")
    again.wait_push(lambda push: origin(push)["reason"] == "manual")
    scheduled = again.wait_push(lambda push: origin(push)["reason"] == "schedule")
    assert scheduled["params"]["tags"] == ["heartbeat:tick"]


@pytest.mark.requirement("field.70", "schedule.skips-unanswered", "field.65")
def test_one_unanswered_wake_at_most_is_out(spawn: Spawn) -> None:
    server = spawn(answers=NEVER).ready()
    server.call("heartbeat_configure", intervalSeconds=60)
    server.end()
    age(server.config, 300_000)
    again = spawn(answers=NEVER).ready()
    push = again.wait_push(is_tick)
    for _ in range(3):
        again.policy()
    again.quiet(1)
    assert len(again.pushes) == 1
    again.answer(push, ACCEPT)
    again.quiet(1)
    assert len(again.pushes) == 1
