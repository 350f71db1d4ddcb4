"""Claims in the store: one holder an epoch, fenced, in one transaction."""

import json

import pytest

from mcpl_heartbeat.storage.store import schema
from tests.store.operations.rig import Rig, refused
from tests.store.tasks.queue import (
    CONTRACT,
    TOTAL,
    beat,
    claim,
    get,
    guard,
    listed,
    make,
    new,
    raw,
    release,
    submit,
)


@pytest.mark.requirement("tasks.store.rows")
def test_what_was_sent_is_what_the_claimant_gets(rig: Rig) -> None:
    agent = rig.agent()
    snapshot = '{"z" : 1.50, "ä":"\\u0000\\ud83e\\udd80", "n": 1e400, "deep": [[[{}]]]}'
    result = agent.create_agent_task(
        **{**new(), "input_snapshot": raw(0)}, instructions="Lies das: 'ä' \U0001f980"
    )
    odd = agent.create_agent_task(
        **{**new(output_contract=CONTRACT), "input_snapshot": type(raw(0))(snapshot.encode())}
    )
    claimed = agent.claim_agent_task(task_id=odd.id)
    assert bytes(claimed.input_snapshot).decode() == snapshot
    assert claimed.output_contract == tuple(CONTRACT)
    assert get(agent, result.id).instructions == "Lies das: 'ä' \U0001f980"
    outputs = ' {"total" : {"value":12.50}} '.strip()
    agent.submit_agent_task(
        task_id=odd.id, execution_epoch=2, outputs=type(raw(0))(outputs.encode()), summary="so"
    )
    shown = get(agent, odd.id)
    assert bytes(shown.outputs).decode() == outputs
    assert shown.summary == "so"


@pytest.mark.requirement("tasks.store.claim", "tasks.store.audit")
def test_a_life_from_claim_to_claim_to_submit(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, output_contract=CONTRACT)
    assert claim(agent, id, agent_id="one") == 2
    rig.advance(100)
    beat(agent, id, 2, note="half")
    beat(agent, id, 2)
    other = refused(agent.claim_agent_task(task_id=id))
    assert (other.code, other.status, other.holder) == ("already_claimed", 409, "one")
    rig.advance(300)
    stale = refused(beat(agent, id, 2))
    assert (stale.code, stale.status, stale.execution_epoch) == ("lease_expired", 409, 2)
    second = agent.claim_agent_task(task_id=id, agent_id="two")
    assert second.execution_epoch == 3
    assert (second.handover.note, second.handover.cause) == ("half", "lapsed")
    assert refused(submit(agent, id, 2, TOTAL)).code == "stale_epoch"
    assert refused(release(agent, id, 2)).execution_epoch == 3
    bad = refused(submit(agent, id, 3, {"total": {"value": "x"}, "more": {"value": 1}}))
    assert (bad.code, bad.status) == ("invalid_outputs", 422)
    assert get(agent, id).status == "claimed"
    rig.advance(10)
    done = submit(agent, id, 3, TOTAL, summary="done")
    assert (done.status, done.replayed) == ("submitted", False)
    assert submit(agent, id, 3, TOTAL, summary="done").replayed
    assert refused(submit(agent, id, 3, TOTAL)).code == "task_closed"
    assert refused(agent.claim_agent_task(task_id=id)).code == "task_closed"
    first, last = get(agent, id).epochs
    assert (first.execution_epoch, first.agent_id, first.beats) == (2, "one", 2)
    assert (first.cause, first.note) == ("lapsed", "half")
    assert first.ended_at == rig.now.tell(rig.real - 10_000)
    assert (last.execution_epoch, last.cause, last.beats) == (3, "submitted", 0)
    assert last.ended_at == done.submitted_at


@pytest.mark.requirement("tasks.store.claim")
def test_a_claim_whose_reply_was_lost_is_told_again_while_it_holds(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    first = agent.claim_agent_task(task_id=id, idempotency_key="k", agent_id="w")
    before = rig.dump()
    again = agent.claim_agent_task(task_id=id, idempotency_key="k", agent_id="w")
    assert again.replayed
    assert (again.execution_epoch, again.lease_expires_at) == (2, first.lease_expires_at)
    assert rig.dump() == before
    rig.advance(300)
    assert claim(agent, id, idempotency_key="k") == 3


@pytest.mark.requirement("tasks.store.claim")
def test_a_reply_told_again_says_who_came_before_as_it_did_first(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    release(agent, id, claim(agent, id, agent_id="one"), note="page 3")
    first = agent.claim_agent_task(task_id=id, idempotency_key="k", agent_id="two").handover
    assert (first.epoch, first.agent_id, first.cause, first.note) == (
        2,
        "one",
        "released",
        "page 3",
    )
    beat(agent, id, 3, note="page 5")
    again = agent.claim_agent_task(task_id=id, idempotency_key="k", agent_id="two").handover
    assert (again.epoch, again.agent_id, again.cause, again.note) == (
        2,
        "one",
        "released",
        "page 3",
    )


@pytest.mark.requirement("tasks.store.claim")
def test_of_claims_in_one_batch_one_is_taken(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    asks = [agent.ask("claim_agent_task", task_id=id, agent_id=f"w{n}") for n in range(8)]
    outcomes = rig.batch(*asks)
    assert [getattr(each, "execution_epoch", None) for each in outcomes[:1]] == [2]
    assert {refused(each).code for each in outcomes[1:]} == {"already_claimed"}
    assert len(rig.rows(schema.task_epochs)) == 1


@pytest.mark.requirement("tasks.store.claim")
def test_an_id_is_the_same_in_capitals(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    assert claim(agent, id.upper()) == 2
    assert beat(agent, id.upper(), 2).id == id


@pytest.mark.requirement("tasks.store.claim")
def test_what_is_released_is_available_at_once_and_what_failed_is_over(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    release(agent, id, claim(agent, id, scope="s", agent_id="w"), note="got to page 3")
    shown = get(agent, id)
    assert (shown.status, shown.claimable, shown.handover.note) == (
        "available",
        True,
        "got to page 3",
    )
    assert claim(agent, id) == 3
    gone = release(agent, id, 3, final=True, reason="cannot be read")
    assert gone.status == "failed"
    assert refused(agent.claim_agent_task(task_id=id)).code == "task_closed"
    shown = get(agent, id)
    assert shown.reason == "cannot be read"
    assert [each.cause for each in shown.epochs] == ["released", "failed"]


@pytest.mark.requirement("tasks.store.dedupe")
def test_a_dedupe_key_names_one_task_of_its_namespace(rig: Rig) -> None:
    one, other = rig.agent("a"), rig.agent("b")
    id = make(one, dedupe_key="k", snapshot=1)
    again = one.create_agent_task(**new(1, dedupe_key="k"))
    assert (again.id, again.created) == (id, False)
    assert not any("differs" in note for note in again.notes)
    different = one.create_agent_task(**new(2, dedupe_key="k"))
    assert (different.id, different.created) == (id, False)
    assert any("input_snapshot" in note for note in different.notes)
    assert make(other, dedupe_key="k") != id
    release(one, id, claim(one, id), final=True, reason="no")
    ended = one.create_agent_task(**new(1, dedupe_key="k"))
    assert (ended.created, ended.status) == (False, "failed")


@pytest.mark.requirement("tasks.store.dedupe", "tasks.store.settled-first")
def test_a_task_that_its_key_finds_overdue_has_timed_out(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, dedupe_key="k", timeout_seconds=300)
    rig.advance(300)
    again = agent.create_agent_task(**new(dedupe_key="k"))
    assert (again.id, again.status) == (id, "timed_out")


@pytest.mark.requirement("tasks.store.claim")
def test_a_creator_calls_off_what_a_worker_holds(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    claim(agent, id, guard=guard())
    ended = agent.create_agent_task(cancel_task_id=id, reason="no longer wanted")
    assert (ended.status, ended.cancelled, ended.created) == ("cancelled", True, False)
    assert agent.create_agent_task(cancel_task_id=id).cancelled
    assert refused(beat(agent, id, 2)).code == "task_closed"
    shown = get(agent, id)
    assert (shown.reason, shown.epochs[0].cause) == ("no longer wanted", "cancelled")
    assert agent.switch_status(scope=f"task:{id}").switches[0].state == "disarmed"


@pytest.mark.requirement("tasks.store.namespaces")
def test_a_task_of_another_is_as_one_that_is_not_there(rig: Rig) -> None:
    one, other = rig.agent("a"), rig.agent("b")
    id = make(one)
    claim(one, id)
    before = rig.dump()
    nobody = "3f2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f70"
    for theirs in (id, nobody):
        said = [
            other.get_agent_task(task_id=theirs),
            other.claim_agent_task(task_id=theirs),
            beat(other, theirs, 2),
            submit(other, theirs, 2),
            release(other, theirs, 2),
            other.create_agent_task(cancel_task_id=theirs),
        ]
        assert {(refused(each).code, each.status) for each in said} == {("unknown_task", 404)}
    assert rig.dump() == before
    assert listed(other) == []


@pytest.mark.requirement("tasks.store.atomic")
@pytest.mark.parametrize("nth", range(1, 6))
def test_a_claim_is_in_the_store_whole_or_not_at_all(rig: Rig, nth: int) -> None:
    agent = rig.agent()
    id = make(agent)
    before = rig.dump()
    rig.fail_at = nth
    given = {"task_id": id, "guard": guard(), "scope": "s"}
    try:
        agent.claim_agent_task(**given)
    except Exception:  # the database's, which the store tells of
        assert rig.dump() == before
    else:
        assert nth > 3, "the task, its epoch, its guard and the journal were written"
    rig.fail_at = 0
    assert json.loads(bytes(get(agent, id).input_snapshot)) == {"page": 1}


@pytest.mark.requirement("tasks.store.indexed")
def test_a_heartbeat_writes_neither_the_payload_nor_what_is_indexed(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent)
    claim(agent, id)
    rig.statements.clear()
    rig.advance(1)
    beat(agent, id, 2, note="on it")
    written = [each for each in rig.statements if each.startswith("UPDATE")]
    assert [each.split()[1] for each in written] == ["tasks", "task_epochs"]
    assignments = written[0].partition("SET")[2].partition("WHERE")[0]
    for column in ("status", "claimable_at", "timeout_at", "scope"):
        assert column not in assignments
    assert not any("input_snapshot" in each for each in rig.statements)


@pytest.mark.requirement("tasks.store.own-label")
def test_a_claim_is_under_the_label_of_its_agent(rig: Rig) -> None:
    agent = rig.agent("a", label="keeper")
    first, second = make(agent), make(agent)
    claimed = agent.claim_agent_task(task_id=first, guard=guard(), idempotency_key="k")
    assert claimed.agent_id == "keeper"
    assert agent.claim_agent_task(task_id=first, idempotency_key="k").agent_id == "keeper"
    assert agent.claim_agent_task(task_id=second, agent_id="w1").agent_id == "w1"
    (switch,) = agent.switch_status().switches
    assert (switch.scope, switch.agent_id) == (f"task:{first}", "keeper")
    assert get(agent, first).epochs[-1].agent_id == "keeper"
    other = rig.agent("b")
    assert other.claim_agent_task(task_id=make(other)).agent_id is None
