"""How a worker loses a task: by its switch, its guard, the timeout; and what a gap leaves it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.ports import Unsettled
from tests.store.operations.rig import Agent, Rig, refused
from tests.store.tasks.queue import beat, claim, get, guard, listed, make, release, submit

ALL = ["release_leases", "mark_failed", "queue_alert"]


@pytest.mark.requirement("tasks.store.fire-gives-back")
def test_a_fire_gives_back_what_is_claimed_under_its_scope(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    worker.heartbeat(on_expiry=ALL, notify_address=boss.address)
    mine, other, free = make(worker), make(worker), make(worker)
    claim(worker, mine, scope="s", agent_id="w-1")
    claim(worker, other, scope="t")
    rig.advance(20)
    beat(worker, mine, 2, note="page 4")
    rig.advance(10)
    assert rig.sweep().fired == 1
    shown = get(worker, mine)
    assert (shown.status, shown.claimable) == ("available", True)
    assert (shown.handover.cause, shown.handover.note) == ("switch_fired", "page 4")
    assert get(worker, other).status == "claimed"
    assert get(worker, free).epochs == ()
    envelope = boss.inbox_poll().envelope
    assert envelope.released_tasks == ({"id": mine, "execution_epoch": 2, "agent_id": "w-1"},)
    (epoch,) = shown.epochs
    assert (epoch.cause, epoch.ended_at, epoch.note) == (
        "switch_fired",
        rig.now.server_time,
        "page 4",
    )
    assert refused(submit(worker, mine, 2)).code == "lease_expired"
    assert claim(worker, mine) == 3
    assert worker.resume_packet(scope="s").deaths[0].released_tasks[0]["id"] == mine


@pytest.mark.requirement("tasks.store.settled-first")
@pytest.mark.parametrize("swept", [True, False])
def test_a_submit_after_the_deadline_is_too_late_swept_or_not(rig: Rig, swept: bool) -> None:
    agent = rig.agent()
    agent.heartbeat()
    id = make(agent)
    claim(agent, id, scope="s")
    rig.advance(30)
    if swept:
        rig.sweep()
    assert refused(submit(agent, id, 2)).code == "lease_expired"
    assert get(agent, id).status == "available"
    assert agent.switch_status(scope="s").switches[0].state == "fired"


@pytest.mark.requirement("tasks.store.settled-first")
def test_a_look_shows_nothing_that_is_due_and_not_done(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat()
    under, overdue = make(agent), make(agent, timeout_seconds=300)
    claim(agent, under, scope="s")
    assert agent.look("get_agent_task", task_id=under).status == "claimed"
    assert len(agent.look("list_agent_tasks").data) == 2
    rig.advance(30)
    with pytest.raises(Unsettled):
        agent.look("get_agent_task", task_id=under)
    with pytest.raises(Unsettled):
        agent.look("list_agent_tasks")
    rig.sweep()
    assert agent.look("get_agent_task", task_id=under).status == "available"
    rig.advance(270)
    with pytest.raises(Unsettled):
        agent.look("get_agent_task", task_id=overdue)
    with pytest.raises(Unsettled):
        agent.look("list_agent_tasks")
    assert listed(agent, "timed_out") == [overdue]
    assert agent.look("get_agent_task", task_id=overdue).status == "timed_out"


@pytest.mark.requirement("tasks.store.guard")
def test_a_guard_lives_with_its_claim(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=60)
    claimed = agent.claim_agent_task(task_id=id, guard=guard(), agent_id="w")
    scope = f"task:{id}"
    assert claimed.guard_scope == scope

    def switch() -> object:
        return agent.switch_status(scope=scope).switches[0]

    first = switch()
    assert (first.state, first.expect_within_seconds, first.agent_id) == ("armed", 60, "w")
    rig.advance(50)
    beat(agent, id, 2)
    assert switch().beats == 2
    assert switch().deadline == get(agent, id).lease_expires_at
    rig.advance(50)
    assert rig.sweep().fired == 0
    submit(agent, id, 2)
    assert switch().state == "disarmed"
    rig.advance(3600)
    assert rig.sweep().fired == 0


@pytest.mark.requirement("tasks.store.guard", "tasks.store.fire-gives-back")
def test_a_guard_that_fires_gives_its_task_back_whatever_else_it_does(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = make(worker, lease_seconds=60)
    address = f"{boss.address}/deaths"
    claim(worker, id, guard=guard(on_expiry=["queue_alert"], notify_address=address))
    rig.advance(60)
    assert rig.sweep().fired == 1
    assert get(worker, id).status == "available"
    envelope = boss.inbox_poll(box="deaths").envelope
    assert envelope.released_tasks[0]["id"] == id
    assert get(worker, id).epochs[0].cause == "switch_fired"
    assert claim(worker, id) == 3


@pytest.mark.requirement("tasks.push.told", "tasks.store.guard")
def test_a_claim_says_whether_the_alert_of_its_guard_wakes_anybody(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    alert = guard(on_expiry=["queue_alert"], notify_address=boss.address)
    for given, present, said in [(alert, False, 1), (alert, True, 0), (guard(), False, 0)]:
        rig.present(boss, here=present)
        notes = worker.claim_agent_task(task_id=make(worker), guard=given).notes
        found = [note for note in notes if f"Nothing can wake {boss.address}" in note]
        assert len(found) == said


@pytest.mark.requirement("tasks.store.guard", "tasks.store.atomic")
def test_a_guard_that_cannot_be_armed_refuses_the_claim_whole(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    before = rig.dump()
    nobody = guard(on_expiry=["queue_alert"], notify_address="agent:" + "z" * 16)
    assert refused(agent.claim_agent_task(task_id=id, guard=nobody)).code == "not_registered"
    useless = guard(on_expiry=["queue_alert"])
    assert refused(agent.claim_agent_task(task_id=id, guard=useless)).code == "invalid_arguments"
    assert rig.dump() == before
    assert claim(agent, id, guard=guard()) == 2


@pytest.mark.requirement("tasks.store.timeout", "tasks.store.audit")
def test_at_its_timeout_a_task_is_over_whoever_holds_it(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, timeout_seconds=600, instructions="Read it all.")
    epoch = claim(agent, id, agent_id="w", guard=guard())
    for _ in range(4):
        rig.advance(140)
        beat(agent, id, epoch, note="still at it")
    rig.advance(39.999)
    assert beat(agent, id, epoch).lease_expires_at == beat(agent, id, epoch).timeout_at
    rig.advance(0.001)
    assert rig.sweep().timed_out == 1
    assert refused(submit(agent, id, epoch)).code == "task_closed"
    shown = get(agent, id)
    assert (shown.status, shown.epochs[0].cause) == ("timed_out", "timed_out")
    assert agent.switch_status(scope=f"task:{id}").switches[0].state == "disarmed"
    mail = agent.inbox_poll(box="review").envelope
    context = json.loads(bytes(mail.context))
    assert (context["task_id"], context["note"]) == (id, "still at it")
    assert "Read it all." in mail.objective
    rig.advance(3600)
    rig.sweep()
    assert agent.whoami().total == 1, "once"


@pytest.mark.requirement("tasks.store.timeout", "tasks.store.settled-first")
@pytest.mark.parametrize("fallthrough", ["route_to_review", "continue_without_output", "fail"])
def test_the_first_call_after_the_timeout_carries_it_out(rig: Rig, fallthrough: str) -> None:
    agent = rig.agent()
    id = make(agent, timeout_seconds=300, timeout_fallthrough=fallthrough)
    rig.advance(300)
    assert refused(agent.claim_agent_task(task_id=id)).code == "task_closed"
    assert get(agent, id).status == "timed_out"
    assert agent.whoami().total == (fallthrough == "route_to_review")
    assert rig.sweep().timed_out == 0


@pytest.mark.requirement("tasks.store.timeout")
def test_a_full_review_box_loses_nothing(rig: Rig) -> None:
    agent = rig.agent()
    to = f"{agent.address}/review"
    rig.batch(*[agent.ask("send", to=to, objective="mail") for _ in range(968)])
    ids = [make(agent, timeout_seconds=300) for _ in range(40)]
    rig.advance(300)
    assert rig.sweep().timed_out == 40
    contexts = [row["context"] for row in rig.rows(schema.envelopes) if row["context"]]
    assert {json.loads(each)["task_id"] for each in contexts} == set(ids)


@pytest.mark.requirement("tasks.store.sweep")
def test_a_sweep_keeps_its_bound_and_starves_neither_switches_nor_tasks(rig: Rig) -> None:
    agent = rig.agent()
    for at in range(30):
        make(agent, timeout_seconds=300 + at, timeout_fallthrough="fail")
        agent.heartbeat(scope=f"s{at}", expect_within_seconds=300)
    rig.advance(400)
    swept = [rig.sweep(10) for _ in range(6)]
    assert [(each.fired, each.timed_out) for each in swept] == [(5, 5)] * 6
    assert [each.more for each in swept[:5]] == [True] * 5
    while (last := rig.sweep(10)).more:
        assert not last.fired + last.timed_out
    assert {row["status"] for row in rig.rows(schema.tasks)} == {"timed_out"}


@pytest.mark.requirement("tasks.store.sweep")
def test_the_oldest_timeout_comes_first(rig: Rig) -> None:
    agent = rig.agent()
    late = make(agent, timeout_seconds=400)
    early = make(agent, timeout_seconds=300)
    rig.advance(500)
    assert rig.sweep(1).timed_out == 1
    by_id = {row["id"]: row["status"] for row in rig.rows(schema.tasks)}
    assert by_id == {early: "timed_out", late: "available"}
    assert rig.sweep(1).timed_out == 1


@pytest.mark.requirement("tasks.store.gap")
def test_a_gap_costs_no_claim_and_moves_no_timeout(rig: Rig) -> None:
    agent = rig.agent()
    long, short = make(agent, timeout_seconds=1000), make(agent, lease_seconds=30)
    claim(agent, long, guard=guard())
    rig.advance(290)
    claim(agent, short)
    rig.advance(5)
    before = get(agent, long)
    rig.gap(600)
    left = get(agent, long)
    assert (left.status, left.seconds_left) == ("claimed", 60)
    assert left.timeout_at == before.timeout_at
    assert get(agent, short).seconds_left == 30
    assert rig.sweep().fired == 0
    assert beat(agent, long, 2).seconds_left == 105, "to its timeout"
    rig.advance(60)
    assert get(agent, short).claimable


@pytest.mark.requirement("tasks.store.gap")
def test_a_lease_that_had_lapsed_before_a_gap_stays_lapsed(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    claim(agent, id)
    rig.advance(300)
    rig.gap(10)
    assert get(agent, id).claimable
    assert refused(beat(agent, id, 2)).code == "lease_expired"


@pytest.mark.requirement("tasks.store.timeout")
def test_a_guard_and_a_timeout_due_at_once_end_the_task_and_give_nothing_back(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, lease_seconds=300, timeout_seconds=300)
    claim(agent, id, guard=guard(), scope="s")
    rig.advance(300)
    rig.sweep()
    shown = get(agent, id)
    assert (shown.status, shown.epochs[0].cause) == ("timed_out", "timed_out")
    assert rig.sweep().fired + rig.sweep().timed_out == 0
    assert refused(release(agent, id, 2)).code == "task_closed"


NAMING: dict[str, Callable[[Agent, str], Any]] = {
    "heartbeat": lambda agent, scope: agent.heartbeat(scope=scope, expect_within_seconds=600),
    "disarm": lambda agent, scope: agent.heartbeat(scope=scope, disarm=True),
    "switch_status": lambda agent, scope: agent.switch_status(scope=scope),
    "all switches": lambda agent, scope: agent.switch_status(),
    "resume_packet": lambda agent, scope: agent.resume_packet(scope=scope),
    "checkpoint_put": lambda agent, scope: agent.checkpoint_put(
        scope=scope, objective="o", next_action="n"
    ),
    "lease": lambda agent, scope: agent.lease(key="k", holder="h", scope=scope, ttl_seconds=60),
}


@pytest.mark.requirement("tasks.store.scope-settles")
@pytest.mark.parametrize("call", NAMING.values(), ids=NAMING)
@pytest.mark.parametrize("guarded", [True, False])
def test_whoever_names_the_scope_of_its_guard_finds_an_overdue_task_over(
    rig: Rig, call: Callable[[Agent, str], Any], guarded: bool
) -> None:
    agent = rig.agent()
    id = make(agent, timeout_seconds=300)
    claim(agent, id, **({"guard": guard()} if guarded else {}))
    scope = f"task:{id}"
    if not guarded:
        agent.heartbeat(scope=scope, expect_within_seconds=3600)
    rig.advance(200)
    if guarded:
        beat(agent, id, 2)
    call(agent, scope)
    assert [row["status"] for row in rig.rows(schema.tasks)] == ["claimed"], "it is in time"
    rig.advance(100)
    call(agent, scope)
    assert [row["status"] for row in rig.rows(schema.tasks)] == ["timed_out"]
    (epoch,) = get(agent, id).epochs
    assert epoch.ended_at == get(agent, id).timeout_at
    assert len([row for row in rig.rows(schema.envelopes) if row["box"] == "review"]) == 1
    call(agent, scope)
    assert rig.sweep().timed_out == 0


@pytest.mark.requirement("tasks.store.scope-settles", "tasks.store.one-death")
def test_a_beat_of_the_guard_of_what_is_over_begins_a_switch_of_its_own(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, timeout_seconds=300)
    claim(agent, id, guard=guard())
    rig.advance(200)
    beat(agent, id, 2)
    rig.advance(100)
    told = agent.heartbeat(scope=f"task:{id}", expect_within_seconds=60)
    assert (told.generation, told.fired, told.failed) == (2, False, False)
    assert agent.switch_status(scope=f"task:{id}").switches[0].state == "armed"


@pytest.mark.requirement("tasks.store.scope-settles")
def test_a_look_at_the_guard_of_an_overdue_task_is_left_to_one_that_may_write(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, timeout_seconds=300)
    claim(agent, id, guard=guard())
    rig.advance(200)
    beat(agent, id, 2)
    looks = [("switch_status", {"scope": f"task:{id}"}), ("switch_status", {})]
    looks.append(("resume_packet", {"scope": f"task:{id}"}))
    for tool, args in looks:
        agent.look(tool, **args)
    rig.advance(100)
    for tool, args in looks:
        with pytest.raises(Unsettled):
            agent.look(tool, **args)
    rig.sweep()
    for tool, args in looks:
        assert agent.look(tool, **args)


@pytest.mark.requirement("tasks.store.scope-settles", "tasks.store.namespaces")
def test_nobody_settles_the_task_of_another_by_its_name(rig: Rig) -> None:
    agent, stranger = rig.agent("a"), rig.agent("b")
    id = make(agent, timeout_seconds=300)
    rig.advance(300)
    stranger.heartbeat(scope=f"task:{id}", expect_within_seconds=60)
    assert [row["status"] for row in rig.rows(schema.tasks)] == ["available"]
    assert stranger.look("switch_status", scope=f"task:{id}").switches[0].state == "armed"
    agent.heartbeat(scope=f"task:{id}", expect_within_seconds=60)
    assert [row["status"] for row in rig.rows(schema.tasks)] == ["timed_out"]
