"""The policy on the real pipes: grants, receipts, refusals, what waits meanwhile."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.wire import AGENT_FRAMEWORK, NEVER, error, is_reminder, is_tick, now_ms, origin, row


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
    for text in (server.call("reminder_add", message="x", inHours=1).text, server.listed()):
        assert re.search(r"\bno reminder will fire\b", text, re.IGNORECASE), text
    assert server.pushes == []


@pytest.mark.requirement("seed.reminder.blocked-log", "seed.policy.log-drops")
def test_the_log_counts_the_reminders_that_will_not_fire(spawn: Spawn, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = [row(f"rem_{n}", now_ms() + 10**8) for n in range(3)]
    (data / "heartbeat-reminders.json").write_text(json.dumps(rows))
    server = spawn(answers=error(-32002, "denied"))

    def counted(number: int, why: str, times: int = 1) -> None:
        line = re.compile(rf"\b{number} reminders?\b.*\bfire\b.*{why}")
        server.wait(
            f"log of {number} reminders, {times} times",
            lambda: len(line.findall(server.stderr)) >= times,
        )

    server.initialize()
    counted(3, "no valid featureSets/update Request")
    server.add("fourth", inHours=1)
    counted(4, "no valid featureSets/update Request")
    server.call("reminder_cancel", id="rem_0")
    counted(3, "no valid featureSets/update Request", 2)
    server.policy(["tools"])
    counted(3, "pushEvents")
    server.policy()
    server.add("fires", inSeconds=1)
    server.wait_push(is_reminder)
    counted(4, "-32002")


@pytest.mark.requirement("host.14", "seed.reminder.waits-blocked", "seed.reminder.deliverable-only")
@pytest.mark.requirement("seed.reminder.list-overdue")
def test_a_reminder_due_before_the_policy_waits_and_fires_once(spawn: Spawn) -> None:
    server = spawn()
    server.initialize()
    server.add("early", inSeconds=1)
    server.quiet(2)
    listed = server.listed()
    assert "(overdue)" in listed.splitlines()[1]
    assert "no valid featureSets/update Request in force" in listed.splitlines()[-1]
    assert server.pushes == []
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
def test_coalescing_is_used_only_where_offered(spawn: Spawn, offer: Any, tmp_path: Path) -> None:
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
