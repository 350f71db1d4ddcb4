"""What the creator of a task does: make it, make it once, take it back."""

import msgspec
import pytest

from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.machine import State
from mcpl_heartbeat.tasks.results import CreateAgentTaskResult
from mcpl_heartbeat.times import utc_time
from tests.tasks.working import (
    CREATOR,
    DAY,
    ID,
    NAMESPACE,
    START,
    at,
    cancelling,
    claimed,
    creating,
    in_state,
    kept,
    plain,
    refused,
    task,
)

SOON = at(2_000)
OPEN = [State.AVAILABLE, State.CLAIMED]


@pytest.mark.requirement("tasks.machine.create")
def test_a_new_task_waits_at_epoch_1() -> None:
    made = task(lease_seconds=60, timeout_seconds=3600, instructions="add up", dedupe_key="d")
    assert (made.namespace, made.creator, made.id) == (NAMESPACE, CREATOR, ID)
    assert (made.status, made.epoch) == ("available", 1)
    assert (made.lease_ms, made.timeout_at) == (60_000, START + 3_600_000)
    assert bytes(made.input_snapshot) == b'{"page": 1.50}'
    assert made.claimable_at == START
    result = machine.created_result(made, None, at())
    assert isinstance(result, CreateAgentTaskResult)
    assert plain(result) == {
        "server_time": utc_time(START),
        "notes": [],
        "id": ID,
        "status": "available",
        "claimable": True,
        "execution_epoch": 1,
        "claimed_at": None,
        "lease_expires_at": None,
        "timeout_at": utc_time(START + 3_600_000),
        "submitted_at": None,
        "created_at": utc_time(START),
        "updated_at": utc_time(START),
        "agent_id": None,
        "lease_seconds": 60,
        "timeout_fallthrough": "route_to_review",
        "seconds_left": None,
        "created": True,
        "cancelled": False,
    }


@pytest.mark.requirement("tasks.machine.dedupe")
def test_a_dedupe_key_that_is_taken_gives_the_task_there_is() -> None:
    held = claimed(task(dedupe_key="d"))
    again = machine.create(NAMESPACE, CREATOR, "other", creating(dedupe_key="d"), SOON)
    result = machine.created_result(again, held, SOON)
    assert (result.created, result.id, result.status) == (False, ID, "claimed")
    assert len(result.notes) == 1
    assert "differs" not in result.notes[0]


@pytest.mark.requirement("tasks.machine.dedupe")
def test_what_differs_from_the_task_there_is_is_named() -> None:
    same = machine.created_result(task(input_snapshot=msgspec.Raw(b'{"page":1.5}')), task(), SOON)
    assert len(same.notes) == 1
    result = machine.created_result(
        task(
            input_snapshot=msgspec.Raw(b'{"page": 2}'),
            output_contract=[],
            instructions="other",
            lease_seconds=30,
            timeout_seconds=60,
            timeout_fallthrough="fail",
        ),
        task(),
        SOON,
    )
    for name in (
        "input_snapshot", "output_contract", "instructions", "lease_seconds", "timeout_seconds",
        "timeout_fallthrough",
    ):  # fmt: skip
        assert name in result.notes[1]


@pytest.mark.requirement("tasks.machine.cancel")
@pytest.mark.parametrize("state", OPEN)
def test_an_open_task_can_be_cancelled_whoever_holds_it(state: State) -> None:
    change = machine.cancel(in_state(state), cancelling(reason="obsolete"), SOON)
    after = kept(change)
    assert (after.status, after.reason) == ("cancelled", "obsolete")
    assert (after.expires_watched, after.claimable_at) == (None, None)
    assert change.ends == ("cancelled" if state is State.CLAIMED else None)
    assert isinstance(change.result, CreateAgentTaskResult)
    assert (change.result.cancelled, change.result.created) == (True, False)


@pytest.mark.requirement("tasks.machine.cancel")
def test_a_second_cancel_is_still_cancelled_and_changes_nothing() -> None:
    before = in_state(State.CANCELLED)
    change = machine.cancel(before, cancelling(reason="another"), at(DAY * 2))
    assert change.task is None
    assert isinstance(change.result, CreateAgentTaskResult)
    assert change.result.cancelled is True
    assert change.result.notes


@pytest.mark.requirement("tasks.machine.cancel")
@pytest.mark.parametrize("state", [State.SUBMITTED, State.FAILED, State.TIMED_OUT])
def test_what_has_ended_otherwise_cannot_be_cancelled(state: State) -> None:
    refused(machine.cancel(in_state(state), cancelling(), SOON), "task_closed")
