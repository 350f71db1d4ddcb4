"""Reviews of tasks that timed out: each is to be pushed to its creator once, by one server."""

import json

import pytest

from mcpl_heartbeat.storage.store import schema
from tests.store.operations.rig import Agent, Rig
from tests.store.tasks.queue import make

pytestmark = pytest.mark.requirement("tasks.push.review-once")


def _overdue(rig: Rig, *agents: Agent, each: int = 1) -> None:
    for agent in agents:
        for _ in range(each):
            make(agent, lease_seconds=30, timeout_seconds=30)
    rig.advance(30)
    assert rig.sweep().timed_out == len(agents) * each


def test_a_review_is_given_to_one_server_of_its_creator_at_a_time(rig: Rig) -> None:
    agent, other = rig.agent("a"), rig.agent("b")
    _overdue(rig, agent)
    (review,) = rig.reviews(agent, "one")
    assert (review.kind, review.box, review.agent) == ("message", "review", agent.id)
    assert rig.reviews(agent, "two") == ()
    assert rig.reviews(other) == ()
    assert rig.news(agent, "two").empty, "it is no alert"
    rig.pushed([review.seq], taken=False, token="one")
    assert [each.seq for each in rig.reviews(agent, "two")] == [review.seq]
    rig.advance(60)
    assert [each.seq for each in rig.reviews(agent, "one")] == [review.seq]


def test_what_a_host_took_is_not_pushed_again_and_stays_in_its_box(rig: Rig) -> None:
    agent = rig.agent()
    _overdue(rig, agent, each=2)
    first, second = rig.reviews(agent)
    rig.pushed([first.seq], taken=True)
    rig.advance(60)
    assert [each.seq for each in rig.reviews(agent, "another")] == [second.seq]
    assert agent.whoami().total == 2
    assert "pushed" not in {row["kind"] for row in rig.rows(schema.journal)}
    task_id = agent.inbox_poll(box="review").envelope.task_id
    agent.inbox_ack(task_id=task_id)
    agent.inbox_ack(task_id=agent.inbox_poll(box="review").envelope.task_id)
    rig.advance(60)
    assert rig.reviews(agent) == (), "nor what was read before it was pushed"


def test_mail_that_somebody_sends_to_that_box_is_no_review(rig: Rig) -> None:
    agent, other = rig.agent("a"), rig.agent("b")
    for sender in (agent, other):
        sender.send(to=f"{agent.address}/review", objective="Review: agent task 1 timed out")
    assert rig.reviews(agent) == ()


def test_the_bound_holds_and_what_was_tampered_with_holds_up_nothing(rig: Rig) -> None:
    agent = rig.agent()
    _overdue(rig, agent, each=3)
    first, second = rig.reviews(agent, most=2)
    rig.sql("UPDATE envelopes SET context = :c WHERE seq = :s", c='{"a": 1}', s=first.seq)
    seqs = [each.seq for each in rig.reviews(agent)]
    assert second.seq in seqs
    assert first.seq not in seqs
    assert len(seqs) == 2


def test_no_task_has_two_reviews(rig: Rig) -> None:
    agent = rig.agent()
    _overdue(rig, agent)
    (row,) = rig.rows(schema.envelopes)
    of = (row["of_namespace"], row["of_scope"], row["of_generation"])
    task = json.loads(row["context"])["task_id"]
    assert of == (agent.namespace, f"task:{task}", 0)


def test_one_look_for_nothing_goes_by_an_index(sqlite_rig: Rig) -> None:
    agent = sqlite_rig.agent()
    sqlite_rig.statements.clear()
    assert sqlite_rig.reviews(agent) == ()
    (asked,) = [each for each in sqlite_rig.statements if "envelopes" in each]
    plan = sqlite_rig.plan(asked, (agent.id, "server", 0, 50, 0))
    assert "envelopes_reviews" in plan
    assert "SCAN" not in plan
