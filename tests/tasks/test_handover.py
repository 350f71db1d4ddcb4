"""What the next one gets of who held it before, and how a task is shown."""

import pytest

from mcpl_heartbeat.tasks import machine, views
from mcpl_heartbeat.tasks.rows import Epoch
from mcpl_heartbeat.times import utc_time
from tests.tasks.working import (
    DAY,
    ID,
    LEASE,
    START,
    World,
    at,
    beating,
    claimed,
    claiming,
    fired,
    in_state,
    kept,
    noted,
    plain,
    releasing,
    submitting,
    task,
)

# --- what the next one gets --------------------------------------------------------------------


@pytest.mark.requirement("tasks.machine.handover")
def test_the_next_claimant_gets_the_last_note_and_how_the_claim_was_lost() -> None:
    held = noted(claimed(agent_id="worker-1"))
    lapse = 1_000 + LEASE
    rows = {
        "lapsed": held,
        "switch_fired": fired(held, 2_000, 2_000).task,
        "released": kept(machine.release(held, releasing(), at(2_000))),
    }
    for cause, row in rows.items():
        result = machine.claim(row, claiming(agent_id="worker-2"), at(lapse)).result
        assert plain(result)["handover"] == {
            "epoch": 2,
            "agent_id": "worker-1",
            "cause": cause,
            "note": "page 7 of 12",
            "step": None,
            "note_epoch": 2,
            "noted_at": utc_time(START + 1_000),
        }
        assert plain(result)["input_snapshot"] == {"page": 1.5}
        assert plain(views.got(row, (), at(lapse)))["handover"]["cause"] == cause


@pytest.mark.requirement("tasks.machine.handover")
def test_a_note_outlives_claims_that_left_none() -> None:
    silent = claimed(noted(claimed(agent_id="worker-1")), at(LEASE + 1_000))
    result = plain(machine.claim(silent, claiming(), at(LEASE * 3)).result)
    handover = result["handover"]
    assert (handover["epoch"], handover["agent_id"]) == (3, None)
    assert (handover["note"], handover["note_epoch"]) == ("page 7 of 12", 2)


@pytest.mark.requirement("tasks.machine.handover")
def test_whoever_holds_it_can_read_again_what_was_left_before() -> None:
    epochs = [
        Epoch(
            namespace="ns",
            task=ID,
            epoch=2,
            agent_id="worker-1",
            claimed_at=START,
            note="old",
            note_at=START + 1_000,
        ),
        Epoch(namespace="ns", task=ID, epoch=3, agent_id="worker-2", claimed_at=START),
    ]
    first = noted(claimed(agent_id="worker-1"), "old")
    second = claimed(first, at(LEASE + 1_000), agent_id="worker-2")
    left = views.handover(second, at(LEASE + 2_000), epochs)
    assert left is not None
    assert (left.epoch, left.agent_id, left.cause) == (2, "worker-1", "lapsed")
    assert (left.note, left.note_epoch) == ("old", 2)
    own = noted(second, "my own", LEASE + 3_000)
    still = views.handover(own, at(LEASE + 4_000), epochs)
    assert still is not None
    assert (still.note, still.note_epoch) == ("old", 2)
    assert still.noted_at == left.noted_at == utc_time(START + 1_000)
    bare = views.handover(own, at(LEASE + 4_000))
    assert bare is not None
    assert (bare.epoch, bare.agent_id, bare.note) == (2, None, None)


@pytest.mark.requirement("tasks.machine.handover")
def test_the_step_is_handed_over_beside_the_note_and_each_stays_until_its_like_comes() -> None:
    held = claimed(agent_id="worker-1")
    for ms, sent in ((1_000, {"step": "6 of 9"}), (2_000, {"note": "page 7"}), (3_000, {})):
        held = kept(machine.heartbeat(held, beating(**sent), at(ms)))
    left = plain(machine.claim(held, claiming(), at(LEASE * 2)).result)["handover"]
    assert (left["step"], left["note"], left["noted_at"]) == (
        "6 of 9",
        "page 7",
        utc_time(START + 2_000),
    )
    # Under the next claim they are another's: what it leaves is its own alone.
    second = claimed(held, at(LEASE * 2), agent_id="worker-2")
    own = kept(machine.heartbeat(second, beating(3, step="1"), at(LEASE * 2 + 1)))
    assert (own.step, own.note, own.note_epoch) == ("1", None, 3)
    after = kept(machine.release(own, releasing(3, note="n"), at(LEASE * 2 + 2)))
    assert (after.step, after.note) == ("1", "n")


@pytest.mark.requirement("tasks.machine.handover")
def test_the_first_claimant_and_a_closed_task_have_none() -> None:
    assert views.handover(claimed(), at(1)) is None
    assert views.handover(task(), at(1)) is None
    for state in machine.CLOSED:
        assert views.handover(in_state(state), at(2_000)) is None


# --- the record --------------------------------------------------------------------------------


@pytest.mark.requirement("tasks.machine.record")
def test_a_lapsed_claim_shows_as_claimable_with_its_stored_status() -> None:
    held = claimed(agent_id="worker-1")
    live, lapsed = views.record(held, at(LEASE - 1)), views.record(held, at(LEASE))
    assert (live.status, live.claimable) == ("claimed", False)
    assert (lapsed.status, lapsed.claimable) == ("claimed", True)
    assert lapsed.lease_expires_at == utc_time(START + LEASE)
    assert views.seconds_left(held, at(LEASE + 5_000)) == 0
    assert views.record(held, at(DAY)).claimable is False
    assert [machine.is_lapsed(held, at(ms)) for ms in (LEASE - 1, LEASE)] == [False, True]
    assert not machine.is_lapsed(task(), at(LEASE))


@pytest.mark.requirement("tasks.machine.record")
def test_one_task_is_shown_whole_with_who_held_it_when() -> None:
    world = World()
    world.call(machine.claim, claiming(agent_id="worker-1"))
    world.call(machine.heartbeat, beating())
    world.fire()
    world.call(machine.claim, claiming(agent_id="worker-2"))
    world.call(machine.submit, submitting(3, summary="done"))
    shown = plain(views.got(world.task, world.epochs, world.now))
    assert (shown["outputs"], shown["summary"], shown["reason"]) == (
        {"total": {"value": 12.5, "confidence": 0.9}}, "done", None,
    )  # fmt: skip
    assert [
        (epoch["execution_epoch"], epoch["agent_id"], epoch["beats"], epoch["cause"])
        for epoch in shown["epochs"]
    ] == [(2, "worker-1", 1, "switch_fired"), (3, "worker-2", 0, "submitted")]
    assert shown["epochs"][0]["ended_at"] == utc_time(START + 1)


@pytest.mark.requirement("tasks.machine.audit")
def test_the_audit_shows_a_lapse_that_nobody_has_come_by_to_note() -> None:
    held = claimed()
    running = [Epoch(task=ID, namespace=held.namespace, epoch=2, agent_id="w", claimed_at=START)]
    for ms, ended in [
        (LEASE - 1, (None, None)),
        (LEASE, ("lapsed", utc_time(START + LEASE))),
        (LEASE + 5_000, ("lapsed", utc_time(START + LEASE))),
    ]:
        (shown,) = plain(views.got(held, running, at(ms)))["epochs"]
        assert (shown["cause"], shown["ended_at"]) == ended
