"""A task that is lost in several ways at once: what came first counts, one death is told once."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpl_heartbeat.storage.store import schema
from tests.store.operations.rig import Agent, Rig, refused
from tests.store.tasks.queue import beat, claim, get, guard, listed, make, submit

ALERT = ["queue_alert"]

Look = Callable[[Rig, Agent, str], object]
LOOKS: dict[str, Look] = {
    "sweep": lambda rig, _agent, _id: rig.sweep(),
    "sweep of one": lambda rig, _agent, _id: [rig.sweep(1) for _ in range(4)],
    "get": lambda _rig, agent, id: get(agent, id),
    "list": lambda _rig, agent, _id: listed(agent),
    "claim": lambda _rig, agent, id: agent.claim_agent_task(task_id=id),
    "submit": lambda _rig, agent, id: submit(agent, id, 2),
    "look at the guard": lambda _rig, agent, id: agent.switch_status(scope=f"task:{id}"),
    "look at the scope": lambda _rig, agent, _id: agent.switch_status(scope="s"),
    "beat of the scope": lambda _rig, agent, _id: agent.heartbeat(expect_within_seconds=3600),
}


@pytest.fixture(params=LOOKS.values(), ids=LOOKS)
def look(request: pytest.FixtureRequest) -> Look:
    """Whoever comes by first."""
    given: Look = request.param
    return given


def alerting(agent: Agent) -> Any:
    return guard(on_expiry=ALERT, notify_address=agent.address)


def alerts(rig: Rig) -> list[tuple[str, list[str]]]:
    """The scope of each alert, and the tasks that it says were given back."""
    found = [json.loads(row["alert"]) for row in rig.rows(schema.envelopes) if row["alert"]]
    return [
        (alert["scope"], [task["id"] for task in alert.get("released_tasks", ())])
        for alert in found
    ]


def states(rig: Rig) -> dict[str, str]:
    return {row["scope"]: row["state"] for row in rig.rows(schema.switches)}


def end_of(agent: Agent, id: str) -> str | None:
    """How the epoch of the first claim ended."""
    cause: str | None = get(agent, id).epochs[0].cause
    return cause


@pytest.mark.requirement("tasks.store.one-death")
def test_what_gives_a_task_back_leaves_its_guard_nothing_to_tell(rig: Rig, look: Look) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=60)
    agent.heartbeat(expect_within_seconds=30, on_expiry=ALERT, notify_address=agent.address)
    claim(agent, id, scope="s", guard=alerting(agent))
    deadline = rig.now.tell(rig.real + 30_000)
    rig.advance(90)
    look(rig, agent, id)
    rig.sweep()
    assert alerts(rig) == [("s", [id])]
    assert states(rig)[f"task:{id}"] == "disarmed"
    (epoch,) = get(agent, id).epochs[:1]
    assert (epoch.cause, epoch.ended_at) == ("switch_fired", deadline)
    rig.advance(3600)
    rig.sweep()
    assert len(alerts(rig)) == 1
    kinds = [row["kind"] for row in rig.rows(schema.journal) if row["scope"] == f"task:{id}"]
    assert kinds == ["armed", "disarmed"]


@pytest.mark.requirement("tasks.store.one-death")
def test_a_guard_that_is_not_due_yet_is_disarmed_in_the_same_transaction(rig: Rig) -> None:
    agent = rig.agent()
    ids = [make(agent, lease_seconds=3600) for _ in range(3)]
    agent.heartbeat(expect_within_seconds=30)
    for id in ids:
        claim(agent, id, scope="s", guard=alerting(agent))
    other = make(agent)
    claim(agent, other, scope="t", guard=guard())
    rig.advance(30)
    assert rig.sweep().fired == 1
    assert [states(rig)[f"task:{id}"] for id in ids] == ["disarmed"] * 3
    assert states(rig)[f"task:{other}"] == "armed"
    assert beat(agent, other, 2).status == "claimed"
    assert claim(agent, ids[0], guard=alerting(agent)) == 3
    assert states(rig)[f"task:{ids[0]}"] == "armed"


@pytest.mark.requirement("tasks.store.one-death")
@pytest.mark.parametrize("scope", ["a", "s", "z"])
def test_of_two_switches_due_at_once_that_of_the_scope_tells(rig: Rig, scope: str) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=30)
    agent.heartbeat(scope=scope, on_expiry=ALERT, notify_address=agent.address)
    claim(agent, id, scope=scope, guard=alerting(agent))
    rig.advance(30)
    assert rig.sweep().fired == 1
    assert alerts(rig) == [(scope, [id])]
    assert len(get(agent, id).epochs) == 1
    assert claim(agent, id) == 3


@pytest.mark.requirement("tasks.store.one-death", "tasks.store.in-order")
def test_a_guard_that_came_first_fires_first_and_the_scope_s_switch_by_itself(
    rig: Rig, look: Look
) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=30)
    agent.heartbeat(expect_within_seconds=60, on_expiry=ALERT, notify_address=agent.address)
    claim(agent, id, scope="s", guard=alerting(agent))
    rig.advance(90)
    look(rig, agent, id)
    rig.sweep()
    assert alerts(rig) == [(f"task:{id}", [id]), ("s", [])]
    assert states(rig)[f"task:{id}"] == "fired"


@pytest.mark.requirement("tasks.store.in-order")
def test_a_timeout_before_the_deadlines_wins(rig: Rig, look: Look) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=60, timeout_seconds=80)
    claim(agent, id, scope="s", guard=alerting(agent))
    rig.advance(50)
    beat(agent, id, 2)
    agent.heartbeat(expect_within_seconds=40, on_expiry=ALERT, notify_address=agent.address)
    rig.advance(100)
    look(rig, agent, id)
    rig.sweep()
    rig.sweep()
    shown = get(agent, id)
    assert (shown.status, shown.epochs[0].cause) == ("timed_out", "timed_out")
    assert shown.epochs[0].ended_at == shown.timeout_at
    assert states(rig)[f"task:{id}"] == "disarmed"
    assert alerts(rig) == [("s", [])], "that one's own death, which took no task"
    assert agent.whoami().boxes[-1].box == "review"


@pytest.mark.requirement("tasks.store.in-order")
@pytest.mark.parametrize("killer", ["guard", "scope"])
def test_a_death_before_the_timeout_comes_first(rig: Rig, look: Look, killer: str) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=30 if killer == "guard" else 100, timeout_seconds=100)
    if killer == "scope":
        agent.heartbeat(on_expiry=ALERT, notify_address=agent.address)
    claim(agent, id, scope="s", guard=alerting(agent))
    rig.advance(150)
    look(rig, agent, id)
    rig.sweep()
    rig.sweep()
    shown = get(agent, id)
    assert (shown.status, shown.epochs[0].cause) == ("timed_out", "switch_fired")
    assert shown.epochs[0].ended_at <= shown.timeout_at
    assert alerts(rig) == [("s" if killer == "scope" else f"task:{id}", [id])]
    assert states(rig)[f"task:{id}"] == ("fired" if killer == "guard" else "disarmed")
    (review,) = [row for row in rig.rows(schema.envelopes) if row["box"] == "review"]
    assert json.loads(review["context"])["handover"]["cause"] == "switch_fired"
    assert bytes(shown.input_snapshot) == b'{"page": 1}'


@pytest.mark.requirement("tasks.store.in-order")
def test_a_timeout_that_was_reached_in_a_gap_comes_after_the_deadline_before_it(rig: Rig) -> None:
    """The deadline is told in the time in which it came, not shifted by what came since."""
    agent = rig.agent()
    id = make(agent, lease_seconds=30, timeout_seconds=100)
    claim(agent, id, guard=alerting(agent))
    rig.advance(31)
    rig.gap(600)
    rig.sweep()
    assert alerts(rig) == [(f"task:{id}", [id])]
    assert end_of(agent, id) == "switch_fired"


@pytest.mark.requirement("tasks.store.in-order", "tasks.machine.audit")
@pytest.mark.parametrize(("window", "cause"), [(30, "switch_fired"), (31, "lapsed")])
def test_audit_alert_journal_and_handover_agree_on_what_ended_a_claim_and_when(
    rig: Rig, look: Look, window: int, cause: str
) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=30)
    agent.heartbeat(expect_within_seconds=window, on_expiry=ALERT, notify_address=agent.address)
    claim(agent, id, scope="s", agent_id="w-1")
    ended = rig.now.tell(rig.real + 30_000)
    rig.advance(90)
    look(rig, agent, id)
    rig.sweep()
    listed_as_lost = [id] if cause == "switch_fired" else []
    shown = get(agent, id)
    assert (shown.epochs[0].cause, shown.epochs[0].ended_at) == (cause, ended)
    assert alerts(rig) == [("s", listed_as_lost)]
    (death,) = agent.resume_packet(scope="s").deaths
    assert [task["id"] for task in death.released_tasks] == listed_as_lost
    assert (shown.handover.epoch, shown.handover.agent_id) == (2, "w-1")
    assert shown.handover.cause == cause
    if shown.status == "available":
        assert refused(submit(agent, id, 2)).code == "lease_expired"
        assert agent.claim_agent_task(task_id=id).handover.cause == cause


@pytest.mark.requirement("tasks.store.in-order", "tasks.machine.audit")
def test_a_claim_that_a_switch_took_before_a_gap_ended_before_the_gap(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    agent.heartbeat()
    claim(agent, id, scope="s")
    deadline = rig.now.tell(rig.real + 30_000)
    rig.advance(31)
    rig.gap(600)
    rig.sweep()
    (epoch,) = get(agent, id).epochs
    assert (epoch.cause, epoch.ended_at) == ("switch_fired", deadline)


@pytest.mark.requirement("tasks.store.one-death")
def test_the_guard_of_what_had_lapsed_is_disarmed_by_the_fire_that_finds_it(rig: Rig) -> None:
    """Somebody has beaten it by hand, beyond the lease and the switch of the scope."""
    agent = rig.agent()
    id = make(agent, lease_seconds=30)
    agent.heartbeat(expect_within_seconds=60, on_expiry=ALERT, notify_address=agent.address)
    claim(agent, id, scope="s", guard=alerting(agent))
    agent.heartbeat(scope=f"task:{id}", expect_within_seconds=90)
    rig.advance(60)
    assert rig.sweep().fired == 1
    assert (end_of(agent, id), states(rig)[f"task:{id}"]) == ("lapsed", "disarmed")
    rig.advance(60)
    assert rig.sweep().fired == 0
    assert alerts(rig) == [("s", [])]


@pytest.mark.requirement("tasks.store.in-order")
def test_one_fire_of_many_tasks_puts_each_in_its_own_order(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(expect_within_seconds=60, on_expiry=ALERT, notify_address=agent.address)
    early = make(agent, timeout_seconds=40, lease_seconds=40)
    late = make(agent, timeout_seconds=80, lease_seconds=80)
    guarded = make(agent, timeout_seconds=300, lease_seconds=30)
    free = make(agent, timeout_seconds=300, lease_seconds=300)
    for id in (early, late, free):
        claim(agent, id, scope="s")
    claim(agent, guarded, scope="s", guard=alerting(agent))
    rig.advance(100)
    swept = rig.sweep()
    assert (swept.fired, swept.timed_out) == (2, 2)
    assert alerts(rig) == [(f"task:{guarded}", [guarded]), ("s", sorted([late, free]))]
    assert [end_of(agent, id) for id in (early, late, guarded, free)] == [
        "timed_out",
        "switch_fired",
        "switch_fired",
        "switch_fired",
    ]
    assert refused(submit(agent, free, 2)).code == "lease_expired"
