"""The life of a task: its table, and what each call does to the row and the reply."""

import msgspec
import pytest

from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.machine import CLOSED, TABLE, Event, State
from mcpl_heartbeat.tasks.results import ClaimAgentTaskResult
from mcpl_heartbeat.tasks.rows import Task
from mcpl_heartbeat.times import utc_time
from tests.tasks.working import (
    DAY,
    LEASE,
    OUTPUTS,
    START,
    at,
    beating,
    cancelling,
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

SOON = at(2_000)
OPEN = [State.AVAILABLE, State.CLAIMED]


def moved(before: Task, event: Event) -> Task:
    """What becomes of a task by an event, as a store has it."""
    match event:
        case Event.LAPSE:
            return before
        case Event.TIMEOUT:
            late = at(DAY)
            return machine.time_out(before, late, "m").task if before.status in OPEN else before
        case Event.GIVE_BACK:
            # A store hands over nothing that is not claimed.
            if before.status != "claimed":
                return before
            return machine.give_back(before, SOON.watched, SOON).task
        case Event.CLAIM:
            now = at(LEASE) if before.status == "claimed" else SOON
            change = machine.claim(before, claiming(), now)
        case Event.HEARTBEAT:
            change = machine.heartbeat(before, beating(before.epoch), SOON)
        case Event.SUBMIT:
            change = machine.submit(before, submitting(before.epoch), SOON)
        case Event.RELEASE:
            change = machine.release(before, releasing(before.epoch), SOON)
        case Event.FAIL:
            over = releasing(before.epoch, final=True, reason="r")
            change = machine.release(before, over, SOON)
        case Event.CANCEL:
            change = machine.cancel(before, cancelling(), SOON)
    return change.task or before


@pytest.mark.requirement("tasks.machine.table")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_a_task_moves_as_its_table_says(state: State, event: Event) -> None:
    before = in_state(state)
    assert before.status == state.value
    after = moved(before, event)
    assert after.status == TABLE[state, event].value
    if state in CLOSED:
        assert after == before


@pytest.mark.requirement("tasks.machine.table")
def test_the_table_is_whole_and_nothing_leads_out_of_an_end() -> None:
    assert set(TABLE) == {(state, event) for state in State for event in Event}
    for state in CLOSED:
        assert {TABLE[state, event] for event in Event} == {state}


@pytest.mark.requirement("tasks.machine.claim")
def test_a_claim_raises_the_epoch_and_gives_all_there_is_to_do() -> None:
    made = task(instructions="add up")
    change = machine.claim(made, claiming(agent_id="worker-1", scope="s"), SOON)
    after = kept(change)
    assert (after.status, after.epoch, after.agent_id, after.scope) == (
        "claimed", 2, "worker-1", "s",
    )  # fmt: skip
    assert after.expires_watched == START + 2_000 + LEASE
    assert (after.claimed_at, after.claimable_at) == (START + 2_000, None)
    assert (change.begins, change.ends, change.beat, change.guard) == (True, None, False, ())
    result = plain(change.result)
    assert result["execution_epoch"] == 2
    assert result["lease_expires_at"] == utc_time(START + 2_000 + LEASE)
    assert result["seconds_left"] == 300
    assert result["input_snapshot"] == {"page": 1.5}
    assert result["output_contract"] == [
        {"key": "total", "dataType": "number", "required": True},
        {"key": "remark", "dataType": "string", "required": False},
    ]
    assert result["instructions"] == "add up"
    assert (result["handover"], result["guard_scope"], result["replayed"]) == (None, None, False)
    assert isinstance(change.result, ClaimAgentTaskResult)


@pytest.mark.requirement("tasks.machine.already-claimed")
@pytest.mark.parametrize("label", ["worker-1", "worker-2"])
def test_a_live_claim_is_refused_to_all_without_its_epoch(label: str) -> None:
    held = claimed(agent_id="worker-1", idempotency_key="k")
    for key in ({}, {"idempotency_key": "other"}):
        change = machine.claim(held, claiming(agent_id=label, **key), at(LEASE - 1))
        failure = refused(change, "already_claimed")
        assert failure.status == 409
        assert failure.holder == "worker-1"
        assert failure.lease_expires_at == utc_time(START + LEASE)
        assert "execution_epoch" not in plain(failure)
        assert "epoch 2" not in failure.message


@pytest.mark.requirement("tasks.machine.already-claimed")
def test_no_key_is_no_proof_even_of_a_claim_without_one() -> None:
    refused(machine.claim(claimed(), claiming(), SOON), "already_claimed")


@pytest.mark.requirement("tasks.machine.replay")
def test_the_key_of_a_live_claim_gives_its_reply_again() -> None:
    first = machine.claim(task(), claiming(idempotency_key="k", agent_id="a"), at())
    again = machine.claim(kept(first), claiming(idempotency_key="k"), at(10_000))
    assert (again.task, again.begins, again.ends, again.guard) == (None, False, None, ())
    told, before = plain(again.result), plain(first.result)
    assert told.pop("replayed") is True
    assert before.pop("replayed") is False
    for name in ("server_time", "seconds_left"):
        assert told.pop(name) != before.pop(name)
    assert told == before


@pytest.mark.requirement("tasks.machine.replay")
def test_the_key_of_a_lapsed_claim_makes_a_new_one() -> None:
    held = claimed(idempotency_key="k")
    change = machine.claim(held, claiming(idempotency_key="k"), at(LEASE))
    assert kept(change).epoch == 3
    assert change.begins
    assert change.ends == "lapsed"
    assert isinstance(change.result, ClaimAgentTaskResult)
    assert change.result.replayed is False


@pytest.mark.requirement("tasks.machine.reclaim")
def test_a_lapsed_claim_is_anybodys_and_its_epoch_ended_when_it_lapsed() -> None:
    held = claimed(agent_id="worker-1", scope="s", idempotency_key="k")
    refused(machine.claim(held, claiming(), at(LEASE - 1)), "already_claimed")
    change = machine.claim(held, claiming(agent_id="worker-2"), at(LEASE + 60_000))
    after = kept(change)
    assert (after.epoch, after.agent_id, after.scope, after.claim_key) == (
        3, "worker-2", None, None,
    )  # fmt: skip
    assert (change.ends, change.ended_at) == ("lapsed", START + LEASE)


@pytest.mark.requirement("tasks.machine.heartbeat")
def test_a_heartbeat_moves_the_lease_and_nothing_else_but_its_note() -> None:
    held = claimed(agent_id="worker-1")
    change = machine.heartbeat(held, beating(note="page 7 of 12"), at(200_000))
    assert kept(change) == msgspec.structs.replace(
        held,
        updated_at=START + 200_000,
        expires_watched=START + 200_000 + LEASE,
        note="page 7 of 12",
        note_at=START + 200_000,
        note_epoch=2,
    )
    assert (change.beat, change.begins, change.ends) == (True, False, None)
    result = plain(change.result)
    assert result["lease_expires_at"] == utc_time(START + 200_000 + LEASE)
    assert result["timeout_at"] == utc_time(START + DAY)
    assert (result["execution_epoch"], result["seconds_left"]) == (2, 300)
    assert "input_snapshot" not in result
    bare = machine.heartbeat(kept(change), beating(), at(201_000))
    assert kept(bare).note == "page 7 of 12"


@pytest.mark.requirement("tasks.machine.clamp")
def test_no_lease_is_told_to_outlive_the_timeout() -> None:
    held = claimed(task(timeout_seconds=400), at(200_000))
    assert machine.is_live(held, at(399_999))
    assert not machine.is_live(held, at(400_000))
    change = machine.heartbeat(held, beating(), at(390_000))
    result = plain(change.result)
    assert result["lease_expires_at"] == result["timeout_at"] == utc_time(START + 400_000)
    assert result["seconds_left"] == 10


@pytest.mark.requirement("tasks.machine.submit")
def test_a_submit_keeps_the_outputs_as_sent_and_closes_the_task() -> None:
    held = claimed(agent_id="worker-1")
    change = machine.submit(held, submitting(summary="done"), SOON)
    after = kept(change)
    assert (after.status, after.submitted_at, after.summary) == (
        "submitted", START + 2_000, "done",
    )  # fmt: skip
    assert bytes(after.outputs or b"") == bytes(OUTPUTS)
    assert (change.ends, change.ended_at) == ("submitted", START + 2_000)
    result = plain(change.result)
    assert (result["status"], result["lease_expires_at"]) == ("submitted", None)
    assert result["submitted_at"] == utc_time(START + 2_000)
    assert result["claimed_at"] == utc_time(START)
    assert result["replayed"] is False


@pytest.mark.requirement("tasks.machine.invalid-outputs")
def test_bad_outputs_change_nothing_and_the_claim_stays() -> None:
    held = claimed()
    bad = msgspec.Raw(b'{"total": {"value": "12"}, "extra": {"value": 1}}')
    change = machine.submit(held, submitting(outputs=bad), SOON)
    failure = refused(change, "invalid_outputs")
    assert failure.status == 422
    assert isinstance(failure.problems, tuple)
    assert len(failure.problems) == 2
    assert utc_time(START + LEASE) in failure.next
    assert kept(machine.submit(held, submitting(), SOON)).status == "submitted"


@pytest.mark.requirement("tasks.machine.resubmit")
def test_the_same_result_again_is_told_as_it_is_stored() -> None:
    done = kept(machine.submit(claimed(), submitting(summary="s"), SOON))
    same = msgspec.Raw(b'{"total":{"confidence":0.90,"value":12.50}}')
    change = machine.submit(done, submitting(outputs=same, summary="s"), at(DAY * 3))
    assert change.task is None
    result = plain(change.result)
    assert (result["replayed"], result["submitted_at"]) == (True, utc_time(START + 2_000))


@pytest.mark.requirement("tasks.machine.resubmit")
@pytest.mark.parametrize(
    "arguments",
    [
        {"outputs": msgspec.Raw(b'{"total": {"value": 13}}'), "summary": "s"},
        {"summary": "other"},
        {},
        {"epoch": 1, "summary": "s"},
        {"epoch": 3, "summary": "s"},
    ],
)
def test_another_result_or_epoch_finds_the_task_closed(arguments: dict[str, object]) -> None:
    done = kept(machine.submit(claimed(), submitting(summary="s"), SOON))
    again = submitting(**arguments)  # type: ignore[arg-type]
    refused(machine.submit(done, again, SOON), "task_closed")


@pytest.mark.requirement("tasks.machine.release")
def test_what_is_released_waits_for_the_next_with_its_note() -> None:
    held = claimed(agent_id="worker-1", scope="s", idempotency_key="k")
    change = machine.release(held, releasing(note="page 3 is missing"), SOON)
    after = kept(change)
    assert (after.status, after.epoch, after.lost) == ("available", 2, "released")
    assert (after.claimed_at, after.expires_watched, after.scope, after.claim_key) == (None,) * 4
    assert (after.note, after.note_epoch, after.claimable_at) == (
        "page 3 is missing", 2, START + 2_000,
    )  # fmt: skip
    assert (change.ends, change.ended_at) == ("released", START + 2_000)
    assert plain(change.result)["agent_id"] is None
    assert plain(change.result)["claimable"] is True


@pytest.mark.requirement("tasks.machine.release")
def test_a_final_release_ends_it_as_failed_for_its_reason() -> None:
    change = machine.release(claimed(), releasing(final=True, reason="no such page"), SOON)
    after = kept(change)
    assert (after.status, after.reason, after.claimable_at) == ("failed", "no such page", None)
    assert change.ends == "failed"


@pytest.mark.requirement("tasks.machine.unknown")
def test_a_task_that_is_not_there_is_unknown_to_every_call() -> None:
    changes = [
        machine.claim(None, claiming(), at()),
        machine.heartbeat(None, beating(), at()),
        machine.submit(None, submitting(), at()),
        machine.release(None, releasing(), at()),
        machine.cancel(None, cancelling(), at()),
    ]
    for change in changes:
        assert refused(change, "unknown_task").status == 404


@pytest.mark.requirement("tasks.machine.overdue-first")
@pytest.mark.parametrize("state", OPEN)
def test_no_call_is_handed_a_task_whose_timeout_has_come(state: State) -> None:
    late, before = at(DAY), in_state(state)
    assert not machine.is_overdue(before, at(DAY - 1))
    assert machine.is_overdue(before, late)
    calls = [
        lambda: machine.claim(before, claiming(), late),
        lambda: machine.heartbeat(before, beating(), late),
        lambda: machine.submit(before, submitting(), late),
        lambda: machine.release(before, releasing(), late),
        lambda: machine.cancel(before, cancelling(), late),
    ]
    for call in calls:
        with pytest.raises(AssertionError):
            call()
