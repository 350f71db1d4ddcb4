"""Who may change a task: the epoch, the lease and the state, looked at in one place."""

from collections.abc import Callable

import pytest

from mcpl_heartbeat.tasks import machine, texts
from mcpl_heartbeat.tasks.machine import CLOSED, Change, State
from mcpl_heartbeat.tasks.rows import Task
from mcpl_heartbeat.times import utc_time
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure, unavailable
from tests.tasks.working import (
    DAY,
    LEASE,
    START,
    World,
    at,
    beating,
    claimed,
    claiming,
    in_state,
    kept,
    plain,
    refused,
    releasing,
    submitting,
    task,
)

Way = Callable[[Task, int, Reading], Change]

WAYS: dict[str, Way] = {
    "heartbeat": lambda row, epoch, now: machine.heartbeat(row, beating(epoch), now),
    "submit": lambda row, epoch, now: machine.submit(row, submitting(epoch), now),
    "release": lambda row, epoch, now: machine.release(row, releasing(epoch), now),
    "fail": lambda row, epoch, now: machine.release(
        row, releasing(epoch, final=True, reason="r"), now
    ),
}
"""Every call by which a worker changes a task that it holds."""
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.mark.requirement("field.1.lapsed-task", "tasks.machine.check")
@every_way
def test_what_has_lapsed_is_refused_though_nobody_took_it(way: Way) -> None:
    held = claimed(agent_id="worker-1")
    kept(way(held, 2, at(LEASE - 1)))
    for late in (at(LEASE), at(LEASE * 9)):
        failure = refused(way(held, 2, late), "lease_expired")
        assert failure.status == 409
        assert failure.execution_epoch == 2
        assert failure.lease_expires_at == utc_time(START + LEASE)
        assert failure.next.startswith("Stop: discard the work, list again.")


@pytest.mark.requirement("field.2.equal-workers", "tasks.machine.check")
@every_way
def test_with_equal_labels_only_the_present_epoch_counts(way: Way) -> None:
    first = claimed(agent_id="worker-1")
    second = claimed(first, at(LEASE), agent_id="worker-1")
    failure = refused(way(second, 2, at(LEASE + 1)), "stale_epoch")
    assert (failure.status, failure.execution_epoch, failure.holder) == (409, 3, "worker-1")
    assert failure.next == "Stop: discard the work, list again."
    kept(way(second, 3, at(LEASE + 1)))


@pytest.mark.requirement("field.4.no-stealing-back")
def test_a_late_heartbeat_leaves_the_new_lease_as_it_is() -> None:
    second = claimed(claimed(), at(LEASE))
    change = machine.heartbeat(second, beating(2, note="still here"), at(LEASE + 200_000))
    failure = refused(change, "stale_epoch")
    assert failure.lease_expires_at == utc_time(START + LEASE * 2)
    assert change.task is None


@pytest.mark.requirement("field.5.epoch-rises")
def test_the_epoch_only_rises_and_it_is_the_epoch_that_refuses() -> None:
    world = World()
    for n in range(2, 12):
        change = world.call(machine.claim, claiming())
        assert plain(change.result)["execution_epoch"] == n
        if n % 3 == 0:
            world.call(machine.release, releasing(n))
        elif n % 3 == 1:
            world.fire()
        else:
            world.pass_ms(LEASE)
        assert world.task.epoch == n
    world.call(machine.claim, claiming())
    # Held and live, so nothing but the epoch can be what refuses these.
    for old in (*range(1, 12), 13, 2_147_483_647):
        refused(world.call(machine.submit, submitting(old)), "stale_epoch")
    kept(world.call(machine.submit, submitting(12)))


@pytest.mark.requirement("field.7.every-way-fenced", "tasks.machine.check")
@every_way
def test_every_way_that_can_settle_a_task_refuses_a_stale_epoch(way: Way) -> None:
    rows = [claimed(), claimed(claimed(), at(LEASE)), kept(WAYS["release"](claimed(), 2, at()))]
    for row in rows:
        now = at(LEASE + 1) if row.epoch == 3 else at(1)
        for stale in (row.epoch - 1, row.epoch + 1):
            refused(way(row, stale, now), "stale_epoch")


@pytest.mark.requirement("field.8.expiry-never-null")
def test_a_claimed_task_always_has_an_expiry_and_no_other_has() -> None:
    held = claimed()
    rows = [
        *(in_state(state) for state in State),
        kept(machine.heartbeat(held, beating(), at(1))),
        claimed(held, at(LEASE)),
        machine.give_back(held, at(1).watched, at(1)).task,
        kept(machine.release(held, releasing(), at(1))),
    ]
    for row in rows:
        assert (row.expires_watched is not None) == (row.status == "claimed"), row
        told = plain(machine.created_result(row, row, at(1)))["lease_expires_at"]
        assert (told is not None) == (row.status == "claimed")


@pytest.mark.requirement("field.11.beating-is-never-reaped")
def test_a_worker_that_beats_keeps_its_task_until_the_timeout() -> None:
    world = World(timeout_seconds=7200, lease_seconds=30)
    world.call(machine.claim, claiming())
    for _ in range(7200 // 29):
        world.pass_ms(29_000)
        world.sweep()
        refused(world.call(machine.claim, claiming()), "already_claimed")
        kept(world.call(machine.heartbeat, beating()))
    world.pass_ms(30_000)
    refused(world.call(machine.heartbeat, beating()), "task_closed")
    assert world.task.status == "timed_out"
    assert world.task.timeout_at == START + 7_200_000


@pytest.mark.requirement("field.47.two-chances")
@pytest.mark.parametrize("lease_seconds", [30, 300, 3600])
def test_the_advice_leaves_two_chances_to_renew(lease_seconds: int) -> None:
    claim = machine.claim(task(lease_seconds=lease_seconds), claiming(), at())
    beat = machine.heartbeat(kept(claim), beating(), at())
    for tool, change in (("claim_agent_task", claim), ("heartbeat_agent_task", beat)):
        text = texts.text_of(tool, change.result)
        every = float(text.partition("heartbeat_agent_task every ")[2].partition(" s")[0])
        assert every * 2 < lease_seconds


@pytest.mark.requirement("field.49.unavailable-is-no-refusal")
@pytest.mark.parametrize("tool", ["heartbeat_agent_task", "submit_agent_task"])
def test_a_store_out_of_reach_is_no_loss_of_the_task(tool: str) -> None:
    failure = unavailable(tool, "it is full")
    assert failure.status == 503
    assert "stands until its known end" in failure.next
    lost = machine.heartbeat(claimed(), beating(3), at()).result
    assert isinstance(lost, Failure)
    assert (lost.status, "Stop" in lost.next, "Stop" in failure.next) == (409, True, False)
    # The beat that did not arrive changed nothing: the next one is in time still.
    kept(machine.heartbeat(claimed(), beating(), at(LEASE - 1)))


@pytest.mark.requirement("tasks.machine.check")
@every_way
@pytest.mark.parametrize("state", CLOSED)
@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_what_has_ended_is_closed_whatever_epoch_is_shown(
    way: Way, state: State, epoch: int
) -> None:
    row = in_state(state)
    if state is State.SUBMITTED and way is WAYS["submit"] and epoch == row.epoch:
        assert plain(way(row, epoch, at(DAY)).result)["replayed"] is True
        return
    failure = refused(way(row, epoch, at(DAY)), "task_closed")
    assert failure.execution_epoch == row.epoch
    assert state.value in failure.message
    assert failure.next == "Stop: discard the work, list again."


@pytest.mark.requirement("tasks.machine.check")
@every_way
def test_what_nobody_holds_is_refused_with_what_became_of_the_claim(way: Way) -> None:
    held = claimed()
    given = machine.give_back(held, at(1).watched, at(1)).task
    let_go = kept(machine.release(held, releasing(), at(1)))
    for row, epoch, why in (
        (given, 2, "fired"),
        (let_go, 2, "released"),
        (task(), 1, "nobody has claimed"),
    ):
        failure = refused(way(row, epoch, at(2)), "lease_expired")
        assert why in failure.message
        assert "lease_expires_at" not in plain(failure)


@pytest.mark.requirement("tasks.machine.check")
def test_a_watch_gap_takes_no_claim_and_moves_no_timeout() -> None:
    world = World(timeout_seconds=7200)
    world.call(machine.claim, claiming())
    world.pass_ms(200_000)
    world.gap(3_600_000)
    change = world.call(machine.heartbeat, beating())
    assert plain(change.result)["seconds_left"] == 300
    assert world.task.timeout_at == START + 7_200_000
    world.gap(3_600_000)
    refused(world.call(machine.heartbeat, beating()), "task_closed")
    assert world.epochs[-1].cause == "timed_out"


@pytest.mark.requirement("tasks.machine.check")
def test_a_step_of_the_wall_clock_changes_nothing_but_what_is_told() -> None:
    for step in (-3_600_000, 3_600_000):
        world = World()
        world.call(machine.claim, claiming())
        world.step_wall(step)
        world.pass_ms(LEASE - 1)
        told = plain(world.call(machine.heartbeat, beating()).result)
        assert told["seconds_left"] == 300
        assert told["lease_expires_at"] == utc_time(START + LEASE - 1 + LEASE + step)


@pytest.mark.requirement("tasks.machine.check")
def test_a_repeated_heartbeat_is_harmless() -> None:
    once = kept(machine.heartbeat(claimed(), beating(note="n"), at(5)))
    assert kept(machine.heartbeat(once, beating(note="n"), at(5))) == once


@pytest.mark.requirement("words.sentences")
@pytest.mark.parametrize(
    ("label", "who"), [(None, "worker without a label"), ("ann", 'worker "ann"')]
)
def test_whoever_holds_it_is_named_as_the_sentence_needs(label: str | None, who: str) -> None:
    told = {} if label is None else {"agent_id": label}
    held = claimed(claimed(), at(LEASE), **told)
    stale = refused(machine.submit(held, submitting(2), at(LEASE + 1)), "stale_epoch")
    article = "a " if label is None else ""
    assert f"the task is at epoch 3, and {article}{who} holds it until " in stale.message
    taken = refused(machine.claim(held, claiming(), at(LEASE + 1)), "already_claimed")
    begun = f"{article}{who} holds this task until "
    assert taken.message.startswith(begun[0].upper() + begun[1:])
