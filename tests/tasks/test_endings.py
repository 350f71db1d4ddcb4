"""What nobody asked for: the timeout, the fire of a switch; guards, and what the next one gets."""

import msgspec
import pytest
from msgspec import UNSET

from mcpl_heartbeat.tasks import machine, views
from mcpl_heartbeat.tasks.machine import State
from mcpl_heartbeat.tasks.results import ClaimAgentTaskResult
from mcpl_heartbeat.tasks.rows import REVIEW_BOX, Epoch, Task, guard_scope
from mcpl_heartbeat.times import utc_time
from mcpl_heartbeat.watch import switches
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.clock import Gap
from mcpl_heartbeat.watch.rows import FreedTask
from tests.tasks.working import (
    CREATOR,
    DAY,
    ID,
    LEASE,
    NAMESPACE,
    START,
    World,
    at,
    beating,
    cancelling,
    claimed,
    claiming,
    guarding,
    in_state,
    kept,
    plain,
    refused,
    releasing,
    submitting,
    task,
)

GUARD = guard_scope(ID)
OVER = HeartbeatArguments(scope=GUARD, expect_within_seconds=UNSET, disarm=True)


def noted(before: Task, note: str = "page 7 of 12", ms: int = 1_000) -> Task:
    return kept(machine.heartbeat(before, beating(before.epoch, note=note), at(ms)))


# --- the timeout -------------------------------------------------------------------------------


@pytest.mark.requirement("tasks.machine.timeout")
@pytest.mark.parametrize("fallthrough", ["route_to_review", "continue_without_output", "fail"])
@pytest.mark.parametrize("state", [State.AVAILABLE, State.CLAIMED])
def test_at_its_timeout_a_task_is_timed_out_whoever_holds_it(
    fallthrough: str, state: State
) -> None:
    before = msgspec.structs.replace(in_state(state), fallthrough=fallthrough)  # type: ignore[arg-type]
    done = machine.time_out(before, at(DAY), "m1")
    assert done.task.status == "timed_out"
    assert (done.task.expires_watched, done.task.claimable_at) == (None, None)
    assert (done.review is not None) == (fallthrough == "route_to_review")
    assert (done.task.reason is not None) == (fallthrough == "fail")
    assert not machine.is_overdue(done.task, at(DAY))
    with pytest.raises(AssertionError):
        machine.time_out(done.task, at(DAY * 2), "m2")


@pytest.mark.requirement("tasks.machine.timeout")
def test_no_task_times_out_before_its_time() -> None:
    with pytest.raises(AssertionError):
        machine.time_out(claimed(), at(DAY - 1), "m")


@pytest.mark.requirement("tasks.machine.review")
def test_the_creator_gets_mail_of_what_is_known() -> None:
    before = noted(claimed(task(instructions="add up\nall pages"), agent_id="worker-1"))
    review = machine.time_out(before, at(DAY + 500), "m1").review
    assert review is not None
    assert (review.agent, review.box, review.sender) == (CREATOR, REVIEW_BOX, CREATOR)
    assert (review.kind, review.task_id, review.scope, review.alert) == (
        "message",
        "m1",
        None,
        None,
    )
    assert review.sent_at == review.due_at == review.visible_at == START + DAY + 500
    assert plain(review.context) == {
        "task_id": ID,
        "status": "timed_out",
        "execution_epoch": 2,
        "timeout_at": utc_time(START + DAY),
        "note": "page 7 of 12",
        "step": None,
        "handover": {
            "epoch": 2,
            "agent_id": "worker-1",
            "cause": "lapsed",
            "note": "page 7 of 12",
            "step": None,
            "note_epoch": 2,
            "noted_at": utc_time(START + 1_000),
        },
    }
    for said in (ID, '"worker-1"', '"page 7 of 12"', '"add up\\nall pages"'):
        assert said in review.objective
    assert "\n" not in review.objective


@pytest.mark.requirement("tasks.machine.review")
def test_a_task_that_nobody_took_says_so() -> None:
    review = machine.time_out(task(), at(DAY), "m").review
    assert review is not None
    assert "Nobody ever claimed it." in review.objective
    assert plain(review.context)["handover"] is None


@pytest.mark.requirement("tasks.machine.audit")
def test_the_audit_says_until_when_it_was_held_and_not_who_looked_when() -> None:
    held = claimed(task(timeout_seconds=3600))
    for noticed in (3_600_000, 9_000_000):
        done = machine.time_out(held, at(noticed), "m")
        assert (done.ends, done.ended_at) == ("lapsed", START + LEASE)
    late = claimed(task(timeout_seconds=3600), at(3_500_000))
    for noticed in (3_600_000, 9_000_000):
        done = machine.time_out(late, at(noticed), "m")
        assert (done.ends, done.ended_at) == ("timed_out", START + 3_600_000)
    done = machine.time_out(task(), at(DAY), "m")
    assert (done.ends, done.ended_at) == (None, None)
    for change in (
        machine.claim(held, claiming(), at(1_000_000)),
        machine.cancel(held, cancelling(), at(1_000_000)),
    ):
        assert (change.ends, change.ended_at) == ("lapsed", START + LEASE)


@pytest.mark.requirement("tasks.machine.audit")
def test_a_lease_that_a_watch_gap_held_back_ended_when_it_ended() -> None:
    gap = Gap(START + 100_000, START + 700_000, 0)
    now = at(1_000_000, cut=gap.length, gaps=(gap,))
    change = machine.claim(claimed(), claiming(), now)
    assert (change.ends, change.ended_at) == ("lapsed", START + LEASE + gap.length)


# --- the fire of a switch ----------------------------------------------------------------------


@pytest.mark.requirement("tasks.machine.give-back")
@pytest.mark.parametrize("ms", [1_000, LEASE, LEASE + 60_000])
def test_a_fire_gives_the_task_back_lapsed_or_not(ms: int) -> None:
    held = noted(claimed(agent_id="worker-1", scope="s", guard=guarding()), ms=0)
    done = machine.give_back(held, at(ms))
    after = done.task
    assert (after.status, after.epoch, after.lost) == ("available", 2, "switch_fired")
    assert (after.scope, after.guard, after.expires_watched) == (None, False, None)
    # What had lapsed could be claimed since, and is no work that has only now appeared.
    assert (after.note, after.claimable_at) == ("page 7 of 12", START + min(ms, LEASE))
    assert (done.ends, done.ended_at) == ("switch_fired", START + min(ms, LEASE))
    assert done.freed == FreedTask(id=ID, execution_epoch=2, agent_id="worker-1")


@pytest.mark.requirement("tasks.machine.give-back")
def test_whichever_of_two_clocks_is_seen_first_the_next_claim_is_taken() -> None:
    held = claimed(agent_id="worker-1", guard=guarding())
    lapsed = machine.claim(held, claiming(), at(LEASE))
    fired = machine.claim(machine.give_back(held, at(LEASE)).task, claiming(), at(LEASE))
    one, other = kept(lapsed), kept(fired)
    assert msgspec.structs.replace(one, lost=None) == msgspec.structs.replace(other, lost=None)
    assert (one.lost, other.lost) == ("lapsed", "switch_fired")


@pytest.mark.requirement("tasks.machine.give-back")
@pytest.mark.parametrize("state", [state for state in State if state is not State.CLAIMED])
def test_only_what_is_claimed_can_be_given_back(state: State) -> None:
    with pytest.raises(AssertionError):
        machine.give_back(in_state(state), at(2_000))


# --- guards ------------------------------------------------------------------------------------


@pytest.mark.requirement("tasks.machine.guard")
def test_a_guard_is_armed_with_the_claim_for_as_long_as_the_lease() -> None:
    address = "agent:abcdefghijklmnop/alerts"
    guard = guarding(on_expiry=["queue_alert"], notify_address=address)
    change = machine.claim(task(), claiming(guard=guard, agent_id="worker-1"), at())
    assert kept(change).guard is True
    (beat,) = change.guard
    assert beat == HeartbeatArguments(
        scope=GUARD,
        expect_within_seconds=300,
        on_expiry=["queue_alert"],
        notify_address=address,
        agent_id="worker-1",
    )
    armed = switches.beat(None, NAMESPACE, beat, at())
    assert isinstance(armed, switches.Beaten)
    assert armed.switch is not None
    assert armed.switch.deadline_watched == kept(change).expires_watched
    assert isinstance(change.result, ClaimAgentTaskResult)
    assert change.result.guard_scope == GUARD


@pytest.mark.requirement("tasks.machine.guard")
def test_a_guard_that_names_no_actions_marks_the_work_failed() -> None:
    (beat,) = machine.claim(task(), claiming(guard=guarding()), at()).guard
    assert beat.on_expiry == ["mark_failed"]


@pytest.mark.requirement("tasks.machine.guard")
def test_the_guard_ends_with_the_claim() -> None:
    held = claimed(guard=guarding())
    assert machine.submit(held, submitting(), at(1)).guard == (OVER,)
    assert machine.release(held, releasing(), at(1)).guard == (OVER,)
    assert machine.release(held, releasing(final=True, reason="r"), at(1)).guard == (OVER,)
    assert machine.cancel(held, cancelling(), at(1)).guard == (OVER,)
    assert machine.time_out(held, at(DAY), "m").guard == (OVER,)
    bare = claimed()
    assert machine.submit(bare, submitting(), at(1)).guard == ()
    assert machine.heartbeat(bare, beating(), at(1)).guard == ()
    assert machine.time_out(bare, at(DAY), "m").guard == ()


@pytest.mark.requirement("tasks.machine.guard")
def test_a_guard_that_outlived_its_claim_does_not_pass_to_the_next() -> None:
    held = claimed(guard=guarding())
    assert machine.claim(held, claiming(), at(LEASE)).guard == (OVER,)
    first, second = machine.claim(held, claiming(guard=guarding()), at(LEASE)).guard
    assert first == OVER
    assert (second.scope, second.disarm) == (GUARD, False)


@pytest.mark.requirement("tasks.machine.guard")
def test_a_refused_call_touches_no_guard() -> None:
    held = claimed(guard=guarding())
    refused(machine.submit(held, submitting(3), at(1)), "stale_epoch")
    refused(machine.heartbeat(held, beating(), at(LEASE)), "lease_expired")


@pytest.mark.requirement("field.10.all-renewed-or-named")
def test_one_heartbeat_renews_all_that_would_take_the_claim_or_names_it() -> None:
    held = claimed(guard=guarding())
    change = machine.heartbeat(held, beating(), at(200_000))
    (beat,) = change.guard
    assert (beat.scope, beat.expect_within_seconds, beat.disarm) == (GUARD, 300, False)
    armed = switches.beat(None, NAMESPACE, beat, at(200_000))
    assert isinstance(armed, switches.Beaten)
    assert armed.switch is not None
    assert armed.switch.deadline_watched == kept(change).expires_watched
    assert change.result.notes == ()  # type: ignore[union-attr]
    for guard in (UNSET, guarding()):
        scoped = claimed(scope="permit-review", guard=guard)
        notes = machine.heartbeat(scoped, beating(), at(1)).result.notes  # type: ignore[union-attr]
        assert len(notes) == 1
        assert '"permit-review"' in notes[0]
        assert "heartbeat does" in notes[0]


# --- what the next one gets --------------------------------------------------------------------


@pytest.mark.requirement("tasks.machine.handover")
def test_the_next_claimant_gets_the_last_note_and_how_the_claim_was_lost() -> None:
    held = noted(claimed(agent_id="worker-1"))
    lapse = 1_000 + LEASE
    rows = {
        "lapsed": held,
        "switch_fired": machine.give_back(held, at(2_000)).task,
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
    assert shown["epochs"][0]["ended_at"] == utc_time(START)
