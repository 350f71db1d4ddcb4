"""The push of reviews: as with alerts, under the feature set of tasks."""

import json

import msgspec
import pytest

from mcpl_heartbeat.actions import Seek, Settle
from mcpl_heartbeat.storage.store.ports import News
from mcpl_heartbeat.tasks import reviews
from mcpl_heartbeat.watch import pushes
from mcpl_heartbeat.watch.rows import Envelope
from tests.session.test_task_wakes import GRANT, WITHOUT, tasks_world, tell, work
from tests.session.watching import READING, alert
from tests.world import ACCEPTED, START, World, accept, refuse, silence

TASK = "3f2a9c1e-5b7d-4e8f-9a01-2b3c4d5e6f7{}"


def review(seq: int, task: str = "") -> Envelope:
    """A review as the store gives it."""
    context = {"task_id": task or TASK.format(seq % 10), "status": "timed_out"}
    return Envelope(
        seq=seq,
        task_id=f"task_{seq}",
        agent="a" * 16,
        box="review",
        kind="message",
        sender="a" * 16,
        objective=f"Review: agent task {context['task_id']} timed out.",
        context=msgspec.Raw(json.dumps(context).encode()),
        sent_at=START,
        due_at=START,
        visible_at=START,
    )


def told(world: World, *waiting: Envelope) -> None:
    world.news(News(READING, reviews=waiting))


def text(world: World) -> str:
    said: str = world.pushes[-1]["payload"]["content"][0]["text"]
    return said


@pytest.mark.requirement("tasks.push.review")
def test_a_review_wakes_the_creator() -> None:
    world = tasks_world()
    assert world.seek == Seek(True, reviews=pushes.MOST, here=True)
    told(world, review(7))
    (push,) = world.pushes
    assert push["featureSet"] == "tasks"
    assert push["eventId"] == "review_task_7"
    assert push["origin"] == {"source": "review", "task_id": TASK.format(7)}
    assert push["tags"] == ["tasks:review"]
    assert "coalesce" not in push
    for word in (TASK.format(7), '"review"', '"task_7"', "inbox_ack"):
        assert word in text(world), word
    assert world.settled == [Settle((7,), taken=True)]


@pytest.mark.requirement("tasks.push.review")
def test_several_leave_together_with_counts() -> None:
    world = tasks_world()
    told(world, *(review(seq, f"id-{seq}") for seq in range(1, 31)))
    (push,) = world.pushes
    assert push["eventId"] == "reviews_task_30_30"
    assert push["origin"] == {
        "source": "review",
        "count": 30,
        "task_ids": [f"id-{seq}" for seq in range(1, reviews.SHOWN_TASKS + 1)],
    }
    assert "30 agent tasks" in text(world)
    assert "and 25 more" in text(world)
    assert "inbox_poll" in text(world)
    assert world.settled == [Settle(tuple(range(1, 31)), taken=True)]


@pytest.mark.requirement("tasks.push.review")
def test_reviews_alerts_and_work_leave_beside_each_other() -> None:
    world = tasks_world(answer=silence)
    world.news(News(READING, alerts=(alert(1),), work=work(), reviews=(review(2),)))
    assert [push["tags"] for push in world.pushes] == [
        ["watch:alert"],
        ["tasks:available"],
        ["tasks:review"],
    ]
    for at in range(3):
        world.answer_push(at, ACCEPTED)
    assert world.settled == [Settle((1,), taken=True), Settle((2,), taken=True)]
    assert [each.taken for each in world.woken] == [True]


@pytest.mark.requirement("tasks.push.review")
def test_one_push_is_out_at_a_time_and_the_next_rests() -> None:
    world = tasks_world(answer=silence)
    told(world, review(1))
    assert world.seek == Seek(True, reviews=0, here=True), "work can still be told of"
    told(world, review(1), review(2))
    assert len(world.pushes) == 1
    assert world.settled == [Settle((2,), taken=False)]
    world.answer_push(0, ACCEPTED)
    world.pass_time(5_000)
    assert world.seek.reviews == pushes.MOST
    told(world, review(1), review(2))
    assert world.pushes[-1]["eventId"] == "review_task_2", "the store had not heard of the first"


@pytest.mark.requirement("tasks.push.review-held")
def test_one_that_is_refused_is_let_go_and_tried_once_a_minute_under_the_same_id() -> None:
    world = tasks_world(answer=refuse(-32603))
    told(world, review(1))
    assert world.settled == [Settle((1,), taken=False)]
    for _ in range(11):
        world.pass_time(5_000)
        assert world.seek.reviews
        told(world, review(1))
    assert len(world.pushes) == 1
    world.answer = accept
    world.pass_time(5_000)
    told(world, review(1))
    assert [push["eventId"] for push in world.pushes] == ["review_task_1"] * 2
    assert world.settled[-1] == Settle((1,), taken=True)
    assert sum("1 review held" in line for line in world.logs) == 1


@pytest.mark.requirement("tasks.push.review-held")
def test_one_that_is_held_goes_again_with_the_next_one_and_at_the_next_policy() -> None:
    world = tasks_world(answer=refuse(-32603))
    told(world, review(1))
    world.pass_time(5_000)
    told(world, review(1), review(2))
    assert world.pushes[-1]["eventId"] == "reviews_task_2_2"
    world.pass_time(5_000)
    world.request("featureSets/update", GRANT)
    told(world, review(1), review(2))
    assert len(world.pushes) == 3


@pytest.mark.requirement("tasks.push.review-held")
def test_one_that_is_not_answered_is_held_and_a_late_answer_counts() -> None:
    world = tasks_world(answer=silence)
    told(world, review(1))
    world.pass_time(29_999)
    assert world.settled == []
    world.pass_time(1)
    assert world.settled == [Settle((1,), taken=False)]
    world.answer_push(0, ACCEPTED)
    assert world.settled[-1] == Settle((1,), taken=True)


@pytest.mark.requirement("tasks.push.review-held")
def test_a_server_that_leaves_lets_go_of_it() -> None:
    world = tasks_world(answer=silence)
    told(world, review(1))
    world.leave()
    assert world.settled == [Settle((1,), taken=False)]
    assert world.seek == Seek(False)


@pytest.mark.requirement("tasks.push.policy")
def test_without_the_feature_set_no_review_is_looked_for() -> None:
    world = tasks_world(policy=WITHOUT)
    assert world.seek == Seek(False)
    told(world, review(1))
    assert world.pushes == []
    assert world.settled == [Settle((1,), taken=False)], "it was asked for before"
    world.request("featureSets/update", GRANT)
    assert world.seek == Seek(True, reviews=pushes.MOST, here=True)


@pytest.mark.requirement("tasks.push.policy")
def test_a_host_that_denies_the_set_is_no_way_to_the_agent() -> None:
    world = tasks_world(answer=refuse(-32002, "Capability denied"))
    tell(world, work())
    assert world.seek.here is False
    assert world.listening.here is True, "what it said of the one set says nothing of another"
    world.pass_time(60_000)
    assert world.seek == Seek(True, reviews=pushes.MOST, here=False), "it goes on trying"
    world.answer = accept
    tell(world, work())
    assert world.seek.here is True
