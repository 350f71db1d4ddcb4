"""What is shown of tasks: lists, counts, briefings; and what cannot be read."""

import pytest
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import operations, schema
from mcpl_heartbeat.storage.store.ports import Unsettled
from mcpl_heartbeat.tasks import machine
from tests.store.operations.rig import Agent, Rig, refused
from tests.store.tasks.queue import (
    TOTAL,
    beat,
    claim,
    get,
    guard,
    listed,
    make,
    new,
    release,
    submit,
)


@pytest.mark.requirement("tasks.store.list")
def test_a_list_shows_what_is_true_now(rig: Rig) -> None:
    agent = rig.agent()
    free, held, lapsed, done, failed, called_off, overdue = (
        make(agent, timeout_seconds=seconds) for seconds in (9000,) * 6 + (300,)
    )
    claim(agent, lapsed)
    for id in (done, failed):
        claim(agent, id)
    submit(agent, done, 2)
    release(agent, failed, 2, final=True, reason="no")
    agent.create_agent_task(cancel_task_id=called_off)
    rig.advance(300)
    claim(agent, held, agent_id="w")
    assert listed(agent) == [free, held, lapsed, done, failed, called_off, overdue]
    shown = {
        status: listed(agent, status)
        for status in ("available", "claimed", "submitted", "failed", "cancelled", "timed_out")
    }
    assert shown == {
        "available": [free, lapsed],
        "claimed": [held],
        "submitted": [done],
        "failed": [failed],
        "cancelled": [called_off],
        "timed_out": [overdue],
    }
    (ours,) = [each for each in agent.list_agent_tasks().data if each.id == lapsed]
    assert (ours.status, ours.claimable, ours.execution_epoch) == ("claimed", True, 2)


@pytest.mark.requirement("tasks.store.list")
@pytest.mark.parametrize("status", [None, "available"])
def test_pages_show_each_task_once_whatever_happens_between(rig: Rig, status: str | None) -> None:
    agent = rig.agent()
    ids = [make(agent) for _ in range(25)]
    for id in ids[::3]:
        claim(agent, id)
    rig.advance(300)
    given = {} if status is None else {"status": status}
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = agent.list_agent_tasks(limit=10, **given, **cursor)
        seen += [each.id for each in page.data]
        if not page.pagination.has_more:
            assert page.pagination.next_cursor is None
            break
        cursor = {"cursor": page.pagination.next_cursor}
        claim(agent, seen[0])
        release(agent, seen[0], get(agent, seen[0]).execution_epoch)
    assert seen == ids


@pytest.mark.requirement("tasks.store.list")
@pytest.mark.parametrize("cursor", ["x", "dGFzazox\n", "dGFzazot", "!!!!", "dGFzazowMQ", "OTk5"])
def test_a_cursor_that_was_not_given_out_is_refused(rig: Rig, cursor: str) -> None:
    failure = refused(rig.agent().list_agent_tasks(cursor=cursor))
    assert failure.code == "invalid_arguments"
    assert "cursor" in failure.message


@pytest.mark.requirement("tasks.store.list", "tasks.store.settled-first")
def test_a_list_gives_back_first_what_a_due_switch_takes(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat()
    id = make(agent)
    claim(agent, id, scope="s")
    rig.advance(30)
    assert listed(agent, "claimed") == []
    assert listed(agent, "available") == [id]


@pytest.mark.requirement("tasks.store.told")
def test_what_is_open_is_counted_and_a_briefing_names_what_is_held(rig: Rig) -> None:
    agent = rig.agent()
    ids = [make(agent, timeout_seconds=9000) for _ in range(5)]
    claim(agent, ids[0])
    rig.advance(300)
    claim(agent, ids[1], scope="s", agent_id="w")
    claim(agent, ids[2])
    submit(agent, ids[2], 2)
    assert agent.whoami().tasks == {"available": 3, "claimed": 1}
    packet = agent.resume_packet(scope="s")
    assert not packet.empty
    assert packet.notes == ()
    (held,) = packet.tasks
    assert (held.id, held.execution_epoch, held.agent_id) == (ids[1], 2, "w")
    assert held.lease_expires_at == get(agent, ids[1]).lease_expires_at
    assert agent.resume_packet(scope="other").empty
    stats = rig.do(operations.stats)
    assert (stats.tasks_available, stats.tasks_claimed) == (2, 2)
    rig.advance(300)
    assert agent.resume_packet(scope="s").tasks == ()


def _spoil(rig: Rig, id: str, what: str) -> None:
    rig.sql(f"UPDATE tasks SET {what} WHERE id = :id", id=id)


SPOILT = ["epoch = 0", "status = 'lost'", "guard = 7", "fallthrough = 'x'", "expires_watched = 5"]


def _set_aside(rig: Rig, id: str) -> bool:
    return [row["status"] for row in rig.rows(schema.tasks) if row["id"] == id] == ["corrupt"]


@pytest.mark.requirement("tasks.store.corrupt")
@pytest.mark.parametrize("what", SPOILT)
def test_a_task_that_cannot_be_read_is_set_aside_by_whoever_calls(rig: Rig, what: str) -> None:
    agent = rig.agent()
    id, other = make(agent), make(agent)
    _spoil(rig, id, what)
    with pytest.raises(Unsettled):
        agent.look("get_agent_task", task_id=id)
    failure = refused(agent.claim_agent_task(task_id=id))
    assert (failure.code, failure.status) == ("unknown_task", 404)
    assert "set aside" in failure.message
    assert _set_aside(rig, id)
    assert refused(get(agent, id)).code == "unknown_task"
    assert listed(agent) == [other]
    assert claim(agent, other) == 2


@pytest.mark.requirement("tasks.store.corrupt")
@pytest.mark.parametrize("what", SPOILT)
def test_a_list_tells_of_a_task_that_it_set_aside(rig: Rig, what: str) -> None:
    agent = rig.agent()
    id, other = make(agent), make(agent)
    _spoil(rig, id, what)
    with pytest.raises(Unsettled):
        agent.look("list_agent_tasks")
    shown = agent.list_agent_tasks()
    assert [each.id for each in shown.data] == [other]
    assert id in shown.notes[0]
    assert agent.list_agent_tasks().notes == ()


@pytest.mark.requirement("tasks.store.corrupt")
@pytest.mark.parametrize(
    "spoil",
    [
        "DELETE FROM task_payloads WHERE task = :id",
        "UPDATE task_payloads SET output_contract = '[{}]' WHERE task = :id",
        "UPDATE task_payloads SET input_snapshot = '{' WHERE task = :id",
    ],
)
def test_a_payload_that_cannot_be_read_costs_its_task_only(rig: Rig, spoil: str) -> None:
    agent = rig.agent()
    id, other = make(agent, dedupe_key="k"), make(agent)
    rig.sql(spoil, id=id)
    assert refused(agent.claim_agent_task(task_id=id)).code == "unknown_task"
    assert claim(agent, other) == 2
    assert make(agent, dedupe_key="k") not in {id, other}, "its key is free again"


@pytest.mark.requirement("tasks.store.corrupt", "tasks.store.sweep")
def test_a_sweep_and_a_fire_pass_over_what_they_cannot_read(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(expect_within_seconds=300)
    bad, good = make(agent, timeout_seconds=900), make(agent, timeout_seconds=900)
    spoilt = make(agent, timeout_seconds=300)
    for id in (bad, good):
        claim(agent, id, scope="s")
    _spoil(rig, bad, "epoch = 0")
    _spoil(rig, spoilt, "lease_ms = 0")
    rig.advance(300)
    swept = rig.sweep()
    assert (swept.fired, swept.corrupt_tasks) == (1, (spoilt,))
    assert get(agent, good).status == "available"
    rig.advance(600)
    swept = rig.sweep()
    assert (swept.timed_out, swept.corrupt_tasks) == (1, (bad,))
    assert rig.sweep().corrupt_tasks == ()


@pytest.mark.requirement("tasks.store.corrupt", "tasks.store.timeout")
def test_a_task_that_cannot_be_timed_out_costs_only_itself(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = rig.agent()
    bad, good = make(agent, timeout_seconds=300), make(agent, timeout_seconds=300)
    right = machine.time_out

    def time_out(task: object, *more: object) -> object:
        if task.id == bad:
            raise RuntimeError("a bug")
        return right(task, *more)

    monkeypatch.setattr(machine, "time_out", time_out)
    rig.advance(300)
    swept = rig.sweep()
    assert (swept.timed_out, swept.corrupt_tasks) == (1, (bad,))
    assert get(agent, good).status == "timed_out"
    assert agent.whoami().total == 1


def _everything(rig: Rig, agent: Agent) -> None:
    agent.heartbeat(scope="x", wake_on_tasks=True)
    first = make(agent, dedupe_key="k", timeout_seconds=9000)
    agent.create_agent_task(**new(dedupe_key="k"))
    called_off = make(agent)
    given_back, overdue = make(agent), make(agent, timeout_seconds=300)
    claim(agent, first, scope="x", guard=guard(), idempotency_key="i")
    claim(agent, given_back, scope="y")
    claim(agent, overdue)
    agent.heartbeat(scope="y")
    beat(agent, first, 2, note="n")
    rig.advance(1)
    work = rig.work(agent)
    assert work is not None
    rig.woken(agent, work, taken=False)
    rig.work(agent)
    rig.woken(agent, work, taken=True)
    for status in (None, "available", "claimed", "submitted", "timed_out", "cancelled", "failed"):
        listed(agent, status)
    get(agent, first)
    agent.resume_packet(scope="x")
    agent.whoami()
    rig.advance(30)
    rig.sweep()
    agent.create_agent_task(cancel_task_id=called_off)
    claim(agent, given_back)
    release(agent, given_back, 3)
    submit(agent, first, 2, {})
    rig.advance(300)
    get(agent, overdue)
    listed(agent)
    rig.do(operations.stats)
    rig.gap(1)


@pytest.mark.requirement("tasks.store.indexed")
def test_no_statement_on_tasks_walks_a_table(sqlite_rig: Rig) -> None:
    rig = sqlite_rig
    seen: dict[str, tuple[object, ...]] = {}

    def note(
        _c: object, _cursor: object, text: str, values: object, _x: object, many: bool
    ) -> None:
        if text.startswith(("SELECT", "UPDATE", "DELETE")):
            seen[text] = tuple(values[0] if many else values)

    agent = rig.agent()
    sa.event.listen(rig.engine, "before_cursor_execute", note)
    _everything(rig, agent)
    sa.event.remove(rig.engine, "before_cursor_execute", note)
    tables = {table.name for table in schema.metadata.sorted_tables}
    on_tasks = [text for text in seen if "task" in text]
    assert len(on_tasks) > 20
    for text in on_tasks:
        plan = rig.plan(text, seen[text])
        walked = [each for each in plan.split("; ") if each.startswith("SCAN")]
        assert not [each for each in walked if each.split()[1] in tables], (text, plan)
        # Of all that a namespace ever had, only a list of all of it may go through some.
        assert "tasks_list" not in plan or "status !=" in text, (text, plan)


@pytest.mark.requirement("tasks.store.rows")
def test_outputs_are_held_to_the_contract_that_was_kept(rig: Rig) -> None:
    agent = rig.agent()
    id = make(agent, output_contract=[{"key": "total", "dataType": "integer", "required": False}])
    claim(agent, id)
    assert refused(submit(agent, id, 2, TOTAL)).code == "invalid_outputs"
    assert submit(agent, id, 2).status == "submitted"
