"""The committed schemas fit what a session says and what files hold, and refuse what is not so."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from mcpl_heartbeat.actions import Document, Moment
from mcpl_heartbeat.catalogue import TOOLS as STORE_TOOLS
from mcpl_heartbeat.mcp.tools import tools_list
from mcpl_heartbeat.policy.manifest import HEARTBEAT, TASKS, WATCH, manifest
from mcpl_heartbeat.storage.store.ports import Work
from mcpl_heartbeat.tasks.pushes import COALESCE_KEY, work_event
from mcpl_heartbeat.tasks.reviews import review_event
from mcpl_heartbeat.times import UTC
from mcpl_heartbeat.watch import nudges, pushes
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import STATUS, failure
from mcpl_heartbeat.watch.mail import alert_envelope
from mcpl_heartbeat.watch.rows import Alert, Envelope, Nudge
from spec import generate
from tests.session.test_task_reviews import review
from tests.world import Disk, World, refuse

SCHEMAS = {
    str(path.relative_to(generate.SCHEMAS).with_suffix("")): json.loads(path.read_text("utf-8"))
    for path in sorted(generate.SCHEMAS.rglob("*.json"))
}
COALESCING = {"version": "0.5", "pushEvents": True, "eventCoalescing": {"pushEvents": True}}


def _faults(name: str, value: Any) -> list[str]:
    # As it travels: tuples have become arrays.
    value = json.loads(json.dumps(value))
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def _fits(name: str, value: Any) -> None:
    assert _faults(name, value) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["title"]


@pytest.mark.requirement("mcp.tools-schema", "mcp.tools-output-schema", "mcp.tools-list")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
def test_the_tools_are_listed_with_these_schemas(version: str) -> None:
    world = World()
    world.connect(version=version)
    listed = world.request("tools/list")["result"]
    _fits("messages/tools-list.result", listed)
    for tool in listed["tools"]:
        for member, part in (("inputSchema", "arguments"), ("outputSchema", "result")):
            if member in tool:
                committed = SCHEMAS[f"tools/{tool['name']}.{part}"]
                assert {**committed, **tool[member]} == committed


@pytest.mark.requirement("policy.manifest", "policy.manifest-array", "mcp.tools-capability")
@pytest.mark.parametrize("client", ["agent-framework", "mcpl-harness-web"])
def test_initialize_and_the_manifest_fit(client: str) -> None:
    world = World()
    result = world.connect(client=client)
    _fits("messages/initialize.result", result)
    manifest = world.request("mcpl/manifest")["result"]
    _fits("messages/manifest", manifest)
    assert isinstance(manifest["featureSets"], list) == (client != "agent-framework")
    _fits("messages/initialize.result", World().connect(mcpl=False, policy=None))


@pytest.mark.requirement("policy.receipt-full", "policy.receipt-degraded", "host.9")
@pytest.mark.parametrize(
    ("policy", "mode"),
    [
        ({"effectiveCapabilities": ["*"]}, "full"),
        ({"effectiveCapabilities": ["tools"], "deniedCapabilities": ["pushEvents"]}, "degraded"),
        ({"effectiveCapabilities": ["*"], "disabled": ["heartbeat"]}, "degraded"),
        ({}, "degraded"),
    ],
)
def test_policies_and_receipts_fit(policy: dict[str, Any], mode: str) -> None:
    world = World()
    world.connect(policy=None)
    _fits("messages/feature-sets-update.params", policy)
    receipt = world.request("featureSets/update", policy)["result"]
    _fits("messages/feature-sets-update.result", receipt)
    assert receipt["mode"] == mode


@pytest.mark.requirement(
    "schedule.event-shape", "reminder.event-shape", "seed.silent.marker", "host.21", "host.22"
)
@pytest.mark.parametrize("mcpl", [None, COALESCING])
def test_each_push_fits_the_schema_of_its_kind_alone(mcpl: Any) -> None:
    world = World()
    world.connect(mcpl=mcpl)
    world.call("reminder_add", message="once", inSeconds=1)
    world.call("reminder_add", message="again", everySeconds=60)
    world.call("heartbeat_trigger")
    world.pass_time(120_000)
    world.answer = refuse(-32602)
    world.call("heartbeat_configure", deliveryMode="silent", intervalSeconds=60)
    world.pass_time(60_000)
    kinds = ("tick", "silent", "reminder")
    seen = set()
    for push in world.pushes:
        fitting = [k for k in kinds if not _faults(f"messages/push-event.{k}.params", push)]
        assert len(fitting) == 1, push
        seen.add((fitting[0], "coalesce" in push, *sorted(push["origin"])))
    assert {kind for kind, *_ in seen} == set(kinds)
    assert any("silentFallback" in what for what in seen)
    assert any(with_key for _, with_key, *_ in seen) == (mcpl is not None)


def _alert(scope: str) -> Envelope:
    when = "2026-12-02T00:00:00.000Z"
    alert = Alert(
        scope=scope,
        generation=1,
        agent_id=None,
        last_beat_at=when,
        deadline=when,
        noticed_at=when,
        on_expiry=("queue_alert",),
        released=(),
        unreachable=0,
        marked_failed=False,
    )
    now = Reading(real=1_780_000_000_000)
    return alert_envelope(alert, ("a" * 16, "inbox"), "b" * 16, f"task_{scope}", now)


def _due(scope: str, now: int) -> nudges.Due:
    return nudges.Due(Nudge(scope, 3, now + 9_000), 9_000, now + 9_000, 900)


@pytest.mark.requirement(
    "watch.push.alert",
    "watch.push.nudge",
    "watch.push.nudges-together",
    "watch.push.one-at-a-time",
    "tasks.push.wake",
    "tasks.push.review",
)
def test_each_push_of_the_store_fits_the_schema_of_its_kind_alone() -> None:
    now = 1_780_000_000_000
    nudge, two, many = (
        nudges.nudges_event([_due(f"s{n}", now) for n in range(most)], UTC, Moment(now, 0))
        for most in (1, 2, 500)
    )
    coalesced = {**nudge, "coalesce": {"key": nudges.nudge_key("s" * 256)}}
    some = Work(of="0123456789abcdef", claimable=3, number=7, real=now, watched=now)
    work = work_event(some, UTC, now)
    sent = {
        "alert": [pushes.alert_event([_alert("s")], UTC, now)],
        "alerts": [
            pushes.alert_event([_alert("s"), _alert("t")], UTC, now),
            pushes.alert_event([_alert(f"s{n}") for n in range(1_000)], UTC, now),
        ],
        "nudge": [nudge, coalesced],
        "nudges": [two, many],
        "tasks": [work, {**work, "coalesce": {"key": COALESCE_KEY}}],
        "review": [review_event([review(1)], UTC, now)],
        "reviews": [review_event([review(n) for n in range(most)], UTC, now) for most in (2, 99)],
    }
    kinds = ("tick", "silent", "reminder", *sent)
    for kind, events in sent.items():
        for event in events:
            fitting = [k for k in kinds if not _faults(f"messages/push-event.{k}.params", event)]
            assert fitting == [kind]


@pytest.mark.requirement("watch.tools.feature-set", "policy.manifest", "policy.manifest-array")
@pytest.mark.parametrize("as_array", [False, True])
def test_the_manifest_with_all_feature_sets_fits(as_array: bool) -> None:
    _fits("messages/manifest", manifest((HEARTBEAT, WATCH, TASKS), as_array=as_array))


@pytest.mark.requirement("watch.tools.schema", "tasks.tools.schema")
def test_the_store_s_tools_are_listed_with_these_schemas() -> None:
    listed = tools_list(STORE_TOOLS, "2025-11-25")
    _fits("messages/tools-list.result", listed)
    for tool in listed["tools"]:
        for member, part in (("inputSchema", "arguments"), ("outputSchema", "result")):
            committed = SCHEMAS[f"tools/{tool['name']}.{part}"]
            assert {**committed, **tool[member]} == committed


@pytest.mark.requirement("watch.tools.results")
def test_failures_fit() -> None:
    for code in STATUS:
        told = msgspec.to_builtins(failure(code, "m", "n", problems=("a: b",)))
        _fits("tools/failure", told)
        for member in ("code", "message", "status", "next"):
            assert _faults("tools/failure", {k: v for k, v in told.items() if k != member})


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("heartbeat_status", {}),
    ("heartbeat_configure", {"intervalHours": 1.5}),
    ("heartbeat_configure", {"paused": 1}),
    ("heartbeat_trigger", {}),
    ("reminder_add", {"message": "m", "atIso": "2027-01-01T00:00Z", "everyMinutes": 5}),
    ("reminder_add", {}),
    ("reminder_list", {"offset": 0}),
    ("reminder_list", {"offset": -1}),
    ("reminder_cancel", {"id": "none"}),
]


@pytest.mark.requirement("mcp.structured-content", "mcp.tool-error")
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
@pytest.mark.parametrize("policy", [{}, {"effectiveCapabilities": ["tools", "pushEvents"]}])
def test_each_result_fits(tool: str, arguments: dict[str, Any], policy: dict[str, Any]) -> None:
    world = World()
    world.connect(policy=policy)
    _fits("messages/tools-call.params", {"name": tool, "arguments": arguments})
    result = world.call(tool, **arguments)
    _fits("messages/tools-call.result", result)
    _fits(f"tools/{tool}.result", result["structuredContent"])
    if _faults(f"tools/{tool}.arguments", arguments):
        assert result["isError"]


@pytest.mark.requirement("jsonrpc.encode", "jsonrpc.invalid-request", "jsonrpc.unknown-method")
@pytest.mark.parametrize(
    "line", [b"{", b"7", b'{"id":1,"jsonrpc":"2.0","method":"x"}', b'{"id":1,"jsonrpc":"2.0"}']
)
def test_errors_fit(line: bytes) -> None:
    world = World()
    world.raw(line + b"\n")
    _fits("messages/error", world.replies[0]["error"])


@pytest.mark.requirement("file.node-loads", "file.node-reads", "file.kept-members")
def test_files_fit_as_written_and_as_the_node_server_wrote_them() -> None:
    disk = Disk()
    disk.bytes[Document.CONFIG] = json.dumps(
        config := {"intervalSeconds": 600, "paused": False, "message": "m", "theirs": [1]}
    ).encode()
    row = {"id": "rem_1", "message": "", "createdAt": 1, "fireAt": 2**42, "everySeconds": None}
    disk.bytes[Document.REMINDERS] = json.dumps([row]).encode()
    _fits("files/config", config)
    _fits("files/reminders", [row])
    world = World(disk)
    world.connect()
    world.call("reminder_add", message="m", atIso="2027-01-01T00:00Z", everySeconds=7.5)
    world.call("heartbeat_configure", deliveryMode="silent")
    _fits("files/config", disk.config())
    _fits("files/reminders", disk.rows())
    assert disk.config()["theirs"] == [1]
    assert len(disk.rows()) == 2


WRONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "messages/push-event.silent.params",
        {
            "featureSet": "heartbeat",
            "eventId": "heartbeat_1_a",
            "timestamp": "2026-09-21T18:13:20.000Z",
            "origin": {"source": "heartbeat", "reason": "schedule", "silent": True},
            "payload": {"content": []},
        },
        {
            "tags": ["heartbeat:tick"],
            "eventId": "tick",
            "timestamp": "2026-09-21T18:13:20+02:00",
            "origin": {"source": "heartbeat", "reason": "schedule", "silent": False},
            "payload": {"content": [{"type": "text", "text": "x"}]},
        },
    ),
    (
        "messages/feature-sets-update.result",
        {"accepted": True, "mode": "full", "unavailableFeatures": [], "notes": []},
        {"accepted": False, "mode": "partial", "unavailableFeatures": [{}], "notes": None},
    ),
    (
        "files/config",
        {"intervalSeconds": 60, "paused": True, "message": "m", "nextAt": None},
        {"intervalSeconds": 59, "paused": 0, "message": " ", "deliveryMode": "loud", "nextAt": -1},
    ),
    (
        "messages/error",
        {"code": -32600, "message": "no"},
        {"code": "-32600", "message": "", "more": 1},
    ),
]


@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_what_is_wrong_does_not_fit(
    name: str, right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    _fits(name, right)
    for member, value in wrong.items():
        assert _faults(name, {**right, member: value}), member
    for member in SCHEMAS[name]["required"]:
        assert _faults(name, {m: v for m, v in right.items() if m != member}), member
