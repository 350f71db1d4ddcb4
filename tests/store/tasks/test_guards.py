"""A guard that was disarmed by hand: the next heartbeat of its task arms it again, and says so."""

import pytest

from tests.store.operations.rig import Agent, Rig
from tests.store.tasks.queue import beat, claim, get, guard, make, submit

pytestmark = pytest.mark.requirement("tasks.store.guard-again")


def _scope(id: str) -> str:
    return f"task:{id}"


def _disarm(agent: Agent, id: str) -> None:
    assert agent.heartbeat(scope=_scope(id), disarm=True).state == "disarmed"


def _switch(agent: Agent, id: str) -> dict[str, object]:
    (shown,) = agent.switch_status(scope=_scope(id)).switches
    names = ("state", "on_expiry", "notify_address", "expect_within_seconds", "agent_id")
    return {name: getattr(shown, name) for name in names}


def _guarded(worker: Agent, boss: Agent, **more: object) -> str:
    id = make(worker, lease_seconds=60)
    alert = guard(on_expiry=["mark_failed", "queue_alert"], notify_address=f"{boss.address}/deaths")
    claim(worker, id, guard=alert, agent_id="w-1", **more)
    return id


def test_it_is_armed_as_the_claim_set_it_and_fires_as_it_would_have(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = _guarded(worker, boss)
    before = _switch(worker, id)
    _disarm(worker, id)
    rig.present(boss)
    (note,) = beat(worker, id, 2).notes
    assert "had been disarmed" in note
    assert f"mark_failed, queue_alert to {boss.address}/deaths" in note
    assert _switch(worker, id) == before
    kinds = [entry.kind for entry in worker.switch_status(scope=_scope(id)).journal]
    assert kinds == ["armed", "disarmed", "armed"]
    assert beat(worker, id, 2).notes == (), "once"
    rig.advance(60)
    assert rig.sweep().fired == 1
    assert boss.inbox_poll(box="deaths").envelope.released_tasks[0]["id"] == id
    assert get(worker, id).claimable


def test_it_is_said_if_its_alert_wakes_nobody(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = _guarded(worker, boss)
    _disarm(worker, id)
    notes = beat(worker, id, 2).notes
    assert len(notes) == 2
    assert f"Nothing can wake {boss.address}/deaths" in notes[1]
    assert beat(worker, id, 2).notes == ()


def test_until_then_it_does_not_fire_and_the_lease_runs_as_ever(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = _guarded(worker, boss)
    _disarm(worker, id)
    rig.advance(60)
    assert rig.sweep().fired == 0
    assert beat(worker, id, 2).code == "lease_expired"
    assert _switch(worker, id)["state"] == "disarmed"
    assert get(worker, id).handover.cause == "lapsed"


def test_the_next_claim_has_nothing_of_it(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = _guarded(worker, boss)
    _disarm(worker, id)
    rig.advance(60)
    assert claim(worker, id) == 3
    assert beat(worker, id, 3).notes == ()
    assert _switch(worker, id)["state"] == "disarmed", "that claim has no guard"
    rig.advance(60)
    assert claim(worker, id, guard=guard()) == 4
    _disarm(worker, id)
    (note,) = beat(worker, id, 4).notes
    assert note.endswith(": mark_failed.")
    assert _switch(worker, id)["notify_address"] is None


def test_an_address_that_is_nobodys_any_more_costs_the_alert_and_not_the_claim(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = _guarded(worker, boss)
    _disarm(worker, id)
    rig.sql("DELETE FROM identities WHERE agent = :agent", agent=boss.id)
    result = beat(worker, id, 2)
    assert result.status == "claimed"
    (note,) = result.notes
    assert f"nobody is registered at {boss.address}/deaths any more" in note
    assert _switch(worker, id)["on_expiry"] == ("mark_failed",)
    rig.advance(60)
    assert rig.sweep().fired == 1


def test_one_whose_record_cannot_be_read_is_armed_with_the_default_and_that_is_said(
    rig: Rig,
) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = _guarded(worker, boss)
    rig.sql("UPDATE switches SET on_expiry = '7'")
    (note,) = beat(worker, id, 2).notes
    assert "not known any more" in note
    assert _switch(worker, id)["on_expiry"] == ("mark_failed",)
    assert beat(worker, id, 2).notes == ()


def test_one_that_stands_is_only_beaten(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = _guarded(worker, boss)
    worker.heartbeat(scope=_scope(id), on_expiry=["release_leases"])
    assert beat(worker, id, 2).notes == ()
    assert _switch(worker, id)["on_expiry"] == ("release_leases",), "as its agent has set it since"
    submit(worker, id, 2)
    assert _switch(worker, id)["state"] == "disarmed"


def test_one_that_was_armed_by_hand_before_the_claim_is_the_guard_of_the_claim(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    id = make(worker, lease_seconds=60)
    worker.heartbeat(scope=_scope(id), expect_within_seconds=3_600)
    rig.advance(1)
    alert = guard(on_expiry=["mark_failed", "queue_alert"], notify_address=boss.address)
    claim(worker, id, guard=alert, agent_id="w-1")
    before = _switch(worker, id)
    assert before["on_expiry"] == ("mark_failed", "queue_alert")
    assert beat(worker, id, 2).notes == ()
    _disarm(worker, id)
    assert "it is armed again as it was" in beat(worker, id, 2).notes[0]
    assert _switch(worker, id) == before
