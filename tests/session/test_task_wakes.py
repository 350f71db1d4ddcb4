"""The wake for claimable tasks: once each time that work appears, to one who asked for it."""

import pytest

from mcpl_heartbeat.actions import Woken
from mcpl_heartbeat.storage.store.ports import News, Work
from mcpl_heartbeat.tasks.wing import TASKS_WING
from mcpl_heartbeat.watch.wing import WATCH_WING
from tests.session.watching import READING, beaten
from tests.world import ACCEPTED, World, accept, refuse, silence

GRANT = {
    "effectiveCapabilities": ["tools", "pushEvents"],
    "enabled": ["heartbeat", "watch", "tasks"],
}
WITHOUT = {**GRANT, "enabled": ["heartbeat", "watch"]}


def tasks_world(*, policy: object = GRANT, **options: object) -> World:
    world = World(annexes=(WATCH_WING, TASKS_WING), **options)
    world.connect(policy=policy)
    return world


def work(number: int = 1, claimable: int = 3) -> Work:
    return Work(of="abcd0123", claimable=claimable, number=number, real=5, watched=5)


def tell(world: World, work: Work) -> None:
    world.news(News(READING, work=work))


@pytest.mark.requirement("tasks.push.wake")
def test_the_wake_says_how_much_can_be_claimed_and_how() -> None:
    world = tasks_world()
    assert world.seeking
    tell(world, work())
    (push,) = world.pushes
    assert push["featureSet"] == "tasks"
    assert push["eventId"] == "tasks_abcd0123_1"
    assert push["origin"] == {"source": "tasks", "claimable": 3}
    assert push["tags"] == ["tasks:available"]
    assert "coalesce" not in push
    text = push["payload"]["content"][0]["text"]
    for word in ("3 tasks", "list_agent_tasks", "claim_agent_task", "wake_on_tasks"):
        assert word in text, word
    assert world.woken == [Woken(work(), taken=True)]


@pytest.mark.requirement("tasks.push.wake")
def test_it_replaces_an_unread_one_where_the_host_coalesces() -> None:
    world = World(annexes=(WATCH_WING, TASKS_WING))
    world.connect(
        policy=GRANT, mcpl={"version": "0.5", "pushEvents": True, "eventCoalescing": True}
    )
    tell(world, work())
    assert world.pushes[0]["coalesce"] == {"key": "tasks"}


@pytest.mark.requirement("tasks.push.wake")
def test_the_next_one_leaves_five_seconds_later_at_the_earliest() -> None:
    world = tasks_world()
    tell(world, work())
    assert not world.seeking, "nothing could leave now"
    world.pass_time(4_999)
    assert not world.seeking
    world.pass_time(1)
    assert world.seeking
    tell(world, work(2))
    assert [push["eventId"] for push in world.pushes] == ["tasks_abcd0123_1", "tasks_abcd0123_2"]


@pytest.mark.requirement("tasks.push.wake")
def test_one_that_was_taken_is_not_sent_again_though_the_store_has_not_heard_of_it() -> None:
    world = tasks_world()
    tell(world, work())
    world.pass_time(5_000)
    tell(world, work())
    assert len(world.pushes) == 1
    assert world.woken == [Woken(work(), taken=True)] * 2


@pytest.mark.requirement("tasks.push.once")
def test_what_has_appeared_since_the_push_that_was_taken_is_not_counted_as_told() -> None:
    world = tasks_world()
    tell(world, work())
    world.pass_time(5_000)
    # The store, which has not heard of it yet, looks at a later moment, when there is more.
    later = Work(of="abcd0123", claimable=4, number=1, real=9, watched=9)
    tell(world, later)
    assert world.woken == [Woken(work(), taken=True)] * 2


@pytest.mark.requirement("tasks.push.policy")
def test_without_the_feature_set_nothing_is_looked_for() -> None:
    world = tasks_world(policy=WITHOUT)
    assert not world.seeking
    tell(world, work())
    assert world.pushes == []
    assert world.woken == [Woken(work(), taken=False)], "it was looked for before"
    world.request("featureSets/update", GRANT)
    assert world.seeking
    world.request("featureSets/update", WITHOUT)
    assert not world.seeking


@pytest.mark.requirement("tasks.push.held")
def test_one_that_is_refused_is_let_go_and_tried_once_a_minute_under_the_same_id() -> None:
    world = tasks_world(answer=refuse(-32603))
    tell(world, work())
    assert world.woken == [Woken(work(), taken=False)]
    for _ in range(11):
        world.pass_time(5_000)
        assert world.seeking
        tell(world, work())
    assert len(world.pushes) == 1
    world.answer = accept
    world.pass_time(5_000)
    tell(world, work())
    assert [push["eventId"] for push in world.pushes] == ["tasks_abcd0123_1"] * 2
    assert world.woken[-1] == Woken(work(), taken=True)
    assert sum("wake for claimable tasks is held" in line for line in world.logs) == 1


@pytest.mark.requirement("tasks.push.held")
def test_one_that_is_held_goes_again_at_the_next_policy() -> None:
    world = tasks_world(answer=refuse(-32603))
    tell(world, work())
    world.pass_time(5_000)
    world.request("featureSets/update", GRANT)
    tell(world, work())
    assert len(world.pushes) == 2


@pytest.mark.requirement("tasks.push.held")
def test_one_that_is_not_answered_is_held_and_a_late_answer_counts() -> None:
    world = tasks_world(answer=silence)
    tell(world, work())
    world.pass_time(29_999)
    assert world.woken == []
    assert not world.seeking
    world.pass_time(1)
    assert world.woken == [Woken(work(), taken=False)]
    world.answer_push(0, ACCEPTED)
    assert world.woken[-1] == Woken(work(), taken=True)


@pytest.mark.requirement("tasks.push.held")
def test_a_server_that_leaves_lets_go_of_what_was_not_answered() -> None:
    world = tasks_world(answer=silence)
    tell(world, work())
    world.leave()
    assert world.woken == [Woken(work(), taken=False)]
    assert not world.seeking


@pytest.mark.requirement("tasks.push.told")
@pytest.mark.parametrize(
    ("policy", "wanted", "said"),
    [(WITHOUT, True, True), (WITHOUT, False, False), (GRANT, True, False)],
)
def test_a_beat_that_asks_for_wakes_which_the_host_denies_is_told_so(
    policy: object, wanted: bool, said: bool
) -> None:
    world = tasks_world(policy=policy)
    id = world.begin_call("heartbeat", scope="s", expect_within_seconds=60, wake_on_tasks=wanted)
    world.tell(world.asks[-1], beaten(world.asks[-1]))
    text = world.reply(id)["result"]["content"][0]["text"]
    assert ("Claimable tasks and reviews cannot wake you here" in text) is said
