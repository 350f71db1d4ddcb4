"""Very many tasks and leases under one scope: all are freed at once, and it stays a quick thing."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.storage.store import schema, sql, tasks, transaction
from mcpl_heartbeat.watch.rows import LISTED
from tests.store.operations.rig import Agent, Rig
from tests.store.tasks.queue import guard, new

ALL = ["release_leases", "mark_failed", "queue_alert"]


def held(rig: Rig, agent: Agent, count: int, scope: str = "s", **more: Any) -> list[str]:
    """That many leases, and tasks that are claimed, under a scope."""
    given = {"lease_seconds": 3600, **more}
    made = rig.batch(*[agent.ask("create_agent_task", **new(**given)) for _ in range(count)])
    ids = [str(task.id) for task in made]
    claims = {"scope": scope, "agent_id": "w", "guard": guard()}
    rig.batch(*[agent.ask("claim_agent_task", task_id=id, **claims) for id in ids])
    names = {"holder": "h", "scope": scope, "ttl_seconds": 3600}
    rig.batch(*[agent.ask("lease", key=f"{scope}{at:03}", **names) for at in range(count)])
    return ids


def statements(rig: Rig, work: Callable[[], object]) -> list[str]:
    """What it takes, each statement once for however many rows."""
    rig.statements.clear()
    work()
    return list(rig.statements)


@pytest.mark.requirement("watch.switch.named-and-counted", "tasks.store.many-at-once")
def test_a_fire_frees_all_of_them_names_some_and_counts_every_one(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(on_expiry=ALL, notify_address=agent.address)
    many = LISTED + 20
    ids = held(rig, agent, many)
    packet = agent.resume_packet(scope="s")
    assert (len(packet.tasks), packet.tasks_total) == (LISTED, many)
    assert (len(packet.leases), packet.leases_total) == (LISTED, many)
    rig.advance(30)
    assert rig.sweep().fired == 1
    assert {row["status"] for row in rig.rows(schema.tasks)} == {"available"}
    assert not any(row["held"] for row in rig.rows(schema.leases))
    assert {row["cause"] for row in rig.rows(schema.task_epochs)} == {"switch_fired"}
    guards = [row for row in rig.rows(schema.switches) if row["scope"] != "s"]
    assert (len(guards), {row["state"] for row in guards}) == (many, {"disarmed"})
    (alert,) = [json.loads(row["alert"]) for row in rig.rows(schema.envelopes) if row["alert"]]
    assert [task["id"] for task in alert["released_tasks"]] == sorted(ids)[:LISTED]
    packet = agent.resume_packet(scope="s")
    (death,) = packet.deaths
    envelope = agent.inbox_poll().envelope
    (line,) = [entry for entry in packet.journal if entry.kind == "fired"]
    for told in (death, envelope, msgspec.convert(line.detail, dict)):
        shown = told if isinstance(told, dict) else msgspec.to_builtins(told)
        assert len(shown["released"]) == len(shown["released_tasks"]) == LISTED
        assert shown["released_count"] == shown["released_tasks_count"] == many
    assert f"Freed {many} leases" in envelope.objective
    assert f"Back in the queue: {many} tasks" in envelope.objective


@pytest.mark.requirement("tasks.store.many-at-once")
@pytest.mark.parametrize("timeout_seconds", [86_400, 3600])
def test_many_cost_no_more_statements_than_few(rig: Rig, timeout_seconds: int) -> None:
    """With the shorter timeout they time out before the switch fires, which finds none left."""
    agent = rig.agent()
    taken = []
    for scope, count in (("few", 2), ("many", 60)):
        agent.heartbeat(scope=scope, on_expiry=ALL, notify_address=agent.address)
        agent.heartbeat(scope=scope, expect_within_seconds=4000)
        held(rig, agent, count, scope, timeout_seconds=timeout_seconds)
        rig.advance(3500)
        rig.batch(
            *[
                agent.ask("heartbeat_agent_task", task_id=row["id"], execution_epoch=2)
                for row in rig.rows(schema.tasks, status="claimed")
            ]
        )
        rig.advance(500)
        taken.append(statements(rig, lambda scope=scope: agent.switch_status(scope=scope)))
        ended = "available" if timeout_seconds == 86_400 else "timed_out"
        assert {row["status"] for row in rig.rows(schema.tasks)} == {ended}
        rig.sweep()
    assert len(taken[1]) <= len(taken[0]), [each[:60] for each in taken[1]]


@pytest.mark.requirement("tasks.store.many-at-once", "tasks.store.timeout")
def test_they_are_read_in_pieces_none_of_which_is_left_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "_PIECE", 2)
    agent = rig.agent()
    agent.heartbeat(expect_within_seconds=4000)
    ids = held(rig, agent, 5, timeout_seconds=3600)
    rig.advance(3600)
    rig.do(lambda tx: _all_past(tx, agent, ids))
    rig.advance(400)
    agent.switch_status(scope="s")
    assert {row["status"] for row in rig.rows(schema.tasks)} == {"timed_out"}


def _all_past(tx: transaction.Transaction, agent: Agent, ids: list[str]) -> None:
    keys = [(agent.namespace, f"task:{id}") for id in ids]
    assert sorted(tasks.past(tx, [*keys, ("other", "task:x"), ("other", "s")])) == sorted(ids)
    found, unread = tasks.to_end(tx, ids)
    assert sorted(task.id for task in found) == sorted(ids)
    assert not unread


@pytest.mark.requirement("tasks.store.many-at-once")
def test_of_many_none_is_written_over_what_it_was_not(rig: Rig) -> None:
    agent = rig.agent()
    ids = held(rig, agent, 3)

    def write(tx: transaction.Transaction) -> None:
        found, _ = tasks.by_ids(tx, agent.namespace, ids)
        stale = msgspec.structs.replace(found[ids[1]], epoch=1)
        before = [found[ids[0]], stale, found[ids[2]]]
        after = [msgspec.structs.replace(task, agent_id="thief") for task in before]
        tasks.write_all(tx, list(zip(before, after, strict=True)))

    with pytest.raises(AssertionError, match="not as they were read"):
        rig.do(write)
    assert {row["agent_id"] for row in rig.rows(schema.tasks)} == {"w"}


@pytest.mark.requirement("tasks.store.many-at-once")
@pytest.mark.parametrize("many", [2, 3])
def test_a_database_waits_for_who_has_much_to_decide(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """It would end the transaction in the midst of it, however often it is tried."""
    monkeypatch.setattr(transaction, "MANY", many)
    agent = rig.agent()
    agent.heartbeat()
    held(rig, agent, 3)
    rig.advance(30)
    done = statements(rig, rig.sweep)
    patient = [each for each in done if "idle_in_transaction_session_timeout" in each]
    assert bool(patient) == (many == 2 and not rig.sqlite)
    assert {row["status"] for row in rig.rows(schema.tasks)} == {"available"}
