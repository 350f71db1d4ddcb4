"""What the thirteen tools answer: each result, and every failure, fits the schema told of it."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.watch import results as r
from mcpl_heartbeat.watch.failures import STATUS, Failure, failure, unavailable
from mcpl_heartbeat.watch.tools import BY_NAME, TOOLS
from tests.mcp.declared import fits

NOW = "2026-12-02T00:00:00.000Z"
SWITCH = r.SwitchView(
    scope="s",
    state="armed",
    generation=1,
    deadline=NOW,
    seconds_left=1.5,
    expect_within_seconds=60,
    on_expiry=("mark_failed",),
    notify_address=None,
    nudge_seconds=None,
    wake_on_tasks=False,
    agent_id=None,
    beats=1,
    armed_at=NOW,
    last_beat_at=NOW,
    fires=0,
    fired_generation=None,
    failed=False,
)
ENVELOPE = r.EnvelopeView(
    task_id="t",
    box="inbox",
    kind="alert",
    objective="o",
    sender=None,
    sent_at=NOW,
    due_at=NOW,
    attempts=1,
    delivery_token="d",
    visible_again_at=NOW,
    context=Raw(b'{"a":[1]}'),
    scope="s",
    generation=1,
    agent_id=None,
    last_beat_at=NOW,
    deadline=NOW,
    noticed_at=NOW,
    on_expiry=("queue_alert",),
    released=({"key": "k", "holder": "h", "generation": 1},),
    released_count=2,
    released_tasks=({"id": "t", "execution_epoch": 2, "agent_id": None},),
    released_tasks_count=1,
    unreachable=0,
    marked_failed=True,
    resume=None,
)
DEATH = r.DeathView(
    generation=1,
    agent_id=None,
    last_beat_at=NOW,
    deadline=NOW,
    noticed_at=NOW,
    marked_failed=True,
    released=(),
    released_count=0,
    unreachable=2,
    recovered_at=None,
)
GAP = r.GapView(began_at=NOW, ended_at=NOW, seconds=0.5)
ENTRY = r.EntryView(at=NOW, kind="armed", generation=1, detail={})
HELD = r.HeldLeaseView(key="k", holder="h", generation=1, expires_at=NOW)
ARRIVAL = r.ArrivalView(task_id="t", box="inbox", kind="message", objective="o", sent_at=NOW)
BOX = r.BoxView(box="inbox", total=1, due=1)
LEASE: dict[str, Any] = {"key": "k", "holder": "h", "generation": 1}
RESULTS: list[tuple[str, r.Result]] = [
    (
        "heartbeat",
        r.HeartbeatResult(
            server_time=NOW,
            scope="s",
            state="armed",
            generation=1,
            deadline=NOW,
            seconds_left=60.0,
            expect_within_seconds=60,
            on_expiry=("mark_failed",),
            notify_address=None,
            alert_delivery="inbox",
            nudge_seconds=None,
            agent_id="a",
            fired=False,
            fired_generation=None,
            failed=False,
            warnings=("w",),
        ),
    ),
    ("heartbeat", r.HeartbeatResult(server_time=NOW, state="unarmed", deadline=None)),
    (
        "switch_status",
        r.SwitchStatusResult(
            server_time=NOW,
            switches=(SWITCH,),
            total=1,
            next_cursor=None,
            watch_gaps=(GAP,),
            journal=(ENTRY,),
            corrupt=("x",),
        ),
    ),
    (
        "register",
        r.RegisterResult(
            server_time=NOW,
            agent_secret="hb",
            address="agent:a",
            namespace_id="ns",
            label=None,
            created=True,
        ),
    ),
    (
        "whoami",
        r.WhoamiResult(
            server_time=NOW,
            address="agent:a",
            label=None,
            boxes=(BOX,),
            switches={"armed": 1},
            next_due_at=None,
        ),
    ),
    ("send", r.SendResult(server_time=NOW, queued=True, task_id="t", to="agent:a", due_at=NOW)),
    ("inbox_poll", r.InboxPollResult(server_time=NOW, envelope=ENVELOPE, waiting=0)),
    ("inbox_poll", r.InboxPollResult(server_time=NOW, envelope=None, next_due_at=None)),
    ("inbox_ack", r.InboxAckResult(server_time=NOW, acked=True, task_id="t", status="failed")),
    ("inbox_ack", r.InboxAckResult(server_time=NOW, acked=False, reason="lost_delivery")),
    ("inbox_nack", r.InboxNackResult(server_time=NOW, nacked=False, reason="already_done")),
    ("lease", r.LeaseResult(server_time=NOW, acquired=True, fence="f", renewed=False, **LEASE)),
    ("lease", r.LeaseResult(server_time=NOW, acquired=False, reason="held", **LEASE)),
    ("lease", r.LeaseResult(server_time=NOW, acquired=None)),
    ("lease_renew", r.LeaseRenewResult(server_time=NOW, renewed=False, reason="expired")),
    ("lease_release", r.LeaseReleaseResult(server_time=NOW, released=True, **LEASE)),
    ("checkpoint_put", r.CheckpointPutResult(server_time=NOW, saved=True, scope="s", version=1)),
    (
        "resume_packet",
        r.ResumePacketResult(
            server_time=NOW,
            scope="s",
            empty=False,
            objective=None,
            next_action=None,
            checkpoint={"a": 1},
            switch=SWITCH,
            failed=True,
            recovered=False,
            deaths=(DEATH,),
            leases=(HELD,),
            leases_total=1,
            tasks=(),
            tasks_total=0,
            arrivals=(ARRIVAL,),
            arrivals_total=1,
            watch_gaps=(GAP,),
            journal=(ENTRY,),
        ),
    ),
]


@pytest.mark.requirement("watch.tools.results", "mcp.structured-content")
@pytest.mark.parametrize(("tool", "result"), RESULTS)
def test_results_fit_their_schema(tool: str, result: r.Result) -> None:
    assert type(result) is BY_NAME[tool].result
    fits(BY_NAME[tool], result)


@pytest.mark.requirement("watch.tools.results", "mcp.structured-content")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_failure_fits_the_schema_of_every_result(tool: Tool) -> None:
    for code in STATUS:
        fits(tool, failure(code, "m", "n"))
        fits(tool, failure(code, "m", "n", problems=("a: b",), server_time=NOW))
    fits(tool, unavailable(tool.name, "it is full"))


@pytest.mark.requirement("watch.tools.results")
def test_every_result_is_shown_here() -> None:
    assert {tool for tool, _ in RESULTS} == set(BY_NAME)
    for tool in TOOLS:
        assert issubclass(tool.result, r.Result)
        required = schema(tool.result).get("required", [])
        assert required == [], "a failure has none of a success's members"


@pytest.mark.requirement("watch.tools.results")
def test_a_failure_has_no_member_that_a_result_lacks() -> None:
    for tool in TOOLS:
        names = set(Failure.__struct_fields__) - {"acquired", "renewed", "released"}
        names -= {"execution_epoch", "holder", "lease_expires_at"}  # failures of tasks alone
        assert names <= set(tool.result.__struct_fields__)


@pytest.mark.requirement("watch.tools.unknown-state")
@pytest.mark.parametrize(
    ("tool", "flag"),
    [("lease", "acquired"), ("lease_renew", "renewed"), ("lease_release", "released")],
)
def test_an_unknown_lease_is_null_and_not_false(tool: str, flag: str) -> None:
    told = msgspec.json.decode(msgspec.json.encode(unavailable(tool, "it is full")))
    assert told[flag] is None
    assert "do not proceed" in told["next"]
    assert getattr(unavailable("heartbeat", "it is full"), flag) is UNSET
