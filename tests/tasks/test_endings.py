"""What nobody asked for: the timeout, the fire of a switch; and guards."""

import msgspec
import pytest
from msgspec import UNSET

from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.machine import State
from mcpl_heartbeat.tasks.results import ClaimAgentTaskResult
from mcpl_heartbeat.tasks.rows import REVIEW_BOX, guard_scope
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
    at,
    beating,
    cancelling,
    claimed,
    claiming,
    fired,
    guarding,
    in_state,
    kept,
    noted,
    plain,
    refused,
    releasing,
    submitting,
    task,
)

GUARD = guard_scope(ID)
OVER = HeartbeatArguments(scope=GUARD, expect_within_seconds=UNSET, disarm=True)


# --- the timeout -------------------------------------------------------------------------------


@pytest.mark.requirement("tasks.machine.timeout")
@pytest.mark.parametrize("fallthrough", ["route_to_review", "continue_without_output", "fail"])
@pytest.mark.parametrize("state", [State.AVAILABLE, State.CLAIMED])
def test_at_its_timeout_a_task_is_timed_out_whoever_holds_it(
    fallthrough: str, state: State
) -> None:
    before = msgspec.structs.replace(in_state(state), fallthrough=fallthrough)
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


@pytest.mark.requirement("tasks.machine.give-back", "tasks.machine.audit")
@pytest.mark.parametrize("noticed", [0, 1, 500, LEASE, LEASE * 9])
@pytest.mark.parametrize("deadline", [1_000, LEASE - 1, LEASE])
def test_a_fire_takes_the_task_at_its_deadline_whenever_it_is_noticed(
    deadline: int, noticed: int
) -> None:
    held = noted(claimed(agent_id="worker-1", scope="s", guard=guarding()), ms=0)
    done = fired(held, deadline, deadline + noticed)
    after = done.task
    assert (after.status, after.epoch, after.lost) == ("available", 2, "switch_fired")
    assert (after.scope, after.guard, after.expires_watched) == (None, False, None)
    assert (after.note, after.updated_at) == ("page 7 of 12", START + deadline + noticed)
    assert (done.ends, done.ended_at) == ("switch_fired", START + deadline)
    assert done.freed == FreedTask(id=ID, execution_epoch=2, agent_id="worker-1")


@pytest.mark.requirement("tasks.machine.give-back", "tasks.machine.audit")
@pytest.mark.parametrize("noticed", [0, 1, LEASE])
@pytest.mark.parametrize("later", [1, 60_000])
def test_what_had_lapsed_before_the_switch_was_late_was_not_lost_by_its_fire(
    later: int, noticed: int
) -> None:
    held = claimed(agent_id="worker-1", scope="s")
    done = fired(held, LEASE + later, LEASE + later + noticed)
    assert (done.task.status, done.task.lost, done.task.scope) == ("available", "lapsed", None)
    assert (done.ends, done.ended_at, done.freed) == ("lapsed", START + LEASE, None)
    now = at(LEASE + later + noticed)
    left = plain(machine.claim(done.task, claiming(), now).result)["handover"]
    assert (left["epoch"], left["agent_id"], left["cause"]) == (2, "worker-1", "lapsed")
    for row in (held, done.task):
        told = refused(machine.heartbeat(row, beating(), now), "lease_expired")
        assert f"the lease of epoch 2 lapsed at {utc_time(START + LEASE)}" in told.message
        assert (told.holder, told.lease_expires_at) == ("worker-1", utc_time(START + LEASE))


@pytest.mark.requirement("tasks.push.once")
@pytest.mark.parametrize(
    ("deadline", "noticed", "seen"),
    [
        (1_000, 1_000, 1_000),
        (1_000, 2_000, 2_000),
        (1_000, LEASE, LEASE),
        # From its lapse on everybody saw it, whatever had come before that or came after.
        (1_000, LEASE + 5, LEASE),
        (LEASE + 1, LEASE + 5, LEASE),
    ],
)
def test_a_task_counts_as_claimable_from_when_that_could_be_seen(
    deadline: int, noticed: int, seen: int
) -> None:
    assert fired(claimed(), deadline, noticed).task.claimable_at == START + seen


@pytest.mark.requirement("tasks.machine.audit")
def test_a_fire_before_a_watch_gap_that_is_noticed_after_it_ended_the_claim_before_it() -> None:
    gap = Gap(START + 100_000, START + 700_000, 0)
    now = at(1_000_000, cut=gap.length, gaps=(gap,))
    before = machine.give_back(claimed(), at(90_000).watched, now)
    assert (before.ends, before.ended_at) == ("switch_fired", START + 90_000)
    assert before.task.claimable_at == START + LEASE + gap.length, "its lapse was seen first"
    after = machine.give_back(claimed(), at(110_000).watched, now)
    assert (after.ends, after.ended_at) == ("switch_fired", START + 110_000 + gap.length)


@pytest.mark.requirement("tasks.machine.give-back")
def test_whichever_of_two_clocks_is_seen_first_the_next_claim_is_taken() -> None:
    held = claimed(agent_id="worker-1", guard=guarding())
    lapsed = machine.claim(held, claiming(), at(LEASE))
    one, other = (
        kept(lapsed),
        kept(machine.claim(fired(held, LEASE, LEASE).task, claiming(), at(LEASE))),
    )
    assert msgspec.structs.replace(one, lost=None) == msgspec.structs.replace(other, lost=None)
    assert (one.lost, other.lost) == ("lapsed", "switch_fired")


@pytest.mark.requirement("tasks.machine.give-back")
@pytest.mark.parametrize("state", [state for state in State if state is not State.CLAIMED])
def test_only_what_is_claimed_can_be_given_back(state: State) -> None:
    with pytest.raises(AssertionError):
        fired(in_state(state), 2_000, 2_000)


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
    assert change.result.notes == ()
    for guard in (UNSET, guarding()):
        scoped = claimed(scope="permit-review", guard=guard)
        notes = machine.heartbeat(scoped, beating(), at(1)).result.notes
        assert len(notes) == 1
        assert '"permit-review"' in notes[0]
        assert "heartbeat does" in notes[0]
