"""Nudges: the agent is told in time to beat or disarm, and never too late."""

import pytest

from mcpl_heartbeat.watch import nudges
from tests.session.watching import GRANT, beaten, checked, given, nudge, pass_looking, watch_world
from tests.world import ACCEPTED, accept, refuse, silence


@pytest.mark.requirement("watch.push.nudge")
def test_a_nudge_says_what_to_do_and_until_when() -> None:
    world = watch_world()
    given(world, "permits", left=30_000)
    (push,) = world.pushes
    assert push["featureSet"] == "watch"
    assert push["origin"] == {"source": "nudge", "scope": "permits", "generation": 2}
    assert push["tags"] == ["watch:nudge"]
    assert "coalesce" not in push
    text = push["payload"]["content"][0]["text"]
    for word in ("permits", "30 s", "heartbeat", "disarm"):
        assert word in text, word
    assert world.settled == []


@pytest.mark.requirement("watch.push.nudge")
def test_it_replaces_an_unread_one_where_the_host_coalesces() -> None:
    world = watch_world(connect=False)
    world.connect(
        policy=GRANT, mcpl={"version": "0.5", "pushEvents": True, "eventCoalescing": True}
    )
    given(world, "permits")
    world.pass_time(5_000)
    given(world, "ß" * 200)
    world.pass_time(5_000)
    keys = [push["coalesce"]["key"] for push in world.pushes]
    assert keys[0] == "nudge:permits"
    assert keys[1].startswith("nudge:")
    assert all(len(key.encode()) <= 256 for key in keys)


@pytest.mark.requirement("watch.push.nudge")
def test_each_deadline_has_its_own_id() -> None:
    world = watch_world()
    for told in (
        nudge(left=30_000),
        nudge(left=60_000),
        nudge(left=60_000, generation=3),
        nudge("other", left=60_000),
        nudge("other", "else", left=60_000),
        nudge("other", "else", left=61_000),
        nudge("other", "more", left=61_000),
    ):
        world.news(told)
        pass_looking(world, 5_000)
    assert len({push["eventId"] for push in world.pushes}) == 7


@pytest.mark.requirement("watch.push.nudge-in-time")
def test_one_that_comes_after_its_deadline_is_dropped() -> None:
    world = watch_world()
    given(world, left=1_000, took=1_000)
    checked(world)
    assert (world.pushes, world.listening.held) == ([], ())
    given(world, left=1_000, took=999)
    assert len(world.pushes) == 1


@pytest.mark.requirement("watch.push.nudge-after-gap")
@pytest.mark.parametrize("waits", ["held", "resting", "blocked", "on its way"])
def test_one_whose_deadline_a_gap_put_off_goes_with_the_time_that_it_has(waits: str) -> None:
    answer = refuse(-32603) if waits == "held" else accept
    world = watch_world(answer=answer, connect=waits != "blocked")
    if waits == "blocked":
        world.connect(policy=None)
    if waits == "resting":
        given(world, "first", left=300_000)
    asleep = 600_000
    given(world, left=300_000, took=asleep if waits == "on its way" else 0)
    sent = len(world.pushes)
    world.answer = accept
    if waits != "on its way":
        world.suspend(asleep)
    if waits == "blocked":
        world.request("featureSets/update", GRANT)
    checked(world, cut=asleep)
    assert len(world.pushes) == sent + 1
    text = world.pushes[-1]["payload"]["content"][0]["text"]
    assert "fires in 300 s, at 2026-09-21T14:28:20" in text
    assert world.listening.held == ()


@pytest.mark.requirement("watch.push.nudge-in-time", "watch.push.held")
def test_one_that_is_refused_goes_again_but_never_after_its_deadline() -> None:
    world = watch_world(answer=refuse(-32603))
    given(world, left=150_000)
    pass_looking(world, 149_500)
    assert len(world.pushes) == 3
    assert len({push["eventId"] for push in world.pushes}) == 1
    world.pass_time(3_600_000)
    world.request("featureSets/update", GRANT)
    checked(world)
    assert world.listening.held == ()
    assert len(world.pushes) == 3
    assert sum("the nudge for scope" in line for line in world.logs) == 1


@pytest.mark.requirement("watch.push.held")
def test_one_that_is_held_goes_again_at_the_next_policy() -> None:
    world = watch_world(answer=refuse(-32603))
    given(world)
    world.answer = accept
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 1, "the store is asked first whether it still stands"
    checked(world)
    assert len(world.pushes) == 2
    world.request("featureSets/update", GRANT)
    assert world.listening.held == (), "it was taken"
    assert len(world.pushes) == 2


@pytest.mark.requirement("watch.push.nudges-together", "watch.push.held")
def test_those_that_are_held_try_together_once_a_minute_as_one_occurrence() -> None:
    world = watch_world(answer=refuse(-32603))
    given(world, *(f"scope-{place}" for place in range(20)), left=600_000)
    pass_looking(world, 180_000)
    assert [push["origin"]["count"] for push in world.pushes] == [20] * 4
    assert len({push["eventId"] for push in world.pushes}) == 1
    assert sum("20 nudges are held" in line for line in world.logs) == 1
    world.answer = accept
    pass_looking(world, 120_000)
    assert len(world.pushes) == 5, "and were taken together"
    assert world.listening.held == ()


@pytest.mark.requirement("watch.push.policy")
def test_one_that_comes_while_nothing_is_granted_waits_for_the_grant() -> None:
    world = watch_world(connect=False)
    world.connect(policy=None)
    given(world)
    assert world.pushes == []
    world.request("featureSets/update", GRANT)
    checked(world)
    assert len(world.pushes) == 1


@pytest.mark.requirement("watch.push.nudge-in-time")
def test_a_beat_by_another_door_makes_one_that_is_held_void() -> None:
    world = watch_world(answer=refuse(-32603))
    for scope in ("beaten", "quiet"):
        given(world, scope, left=600_000)
        world.pass_time(5_000)
    assert [each.scope for each in world.listening.held] == ["beaten", "quiet"]
    checked(world, "beaten")
    assert [each.scope for each in world.listening.held] == ["quiet"], "the store is asked no more"
    assert len(world.pushes) == 2, "that it stands is no cause to send it"
    world.answer = accept
    pass_looking(world, 60_500)
    assert [push["origin"]["scope"] for push in world.pushes] == ["beaten", "quiet", "quiet"]
    assert not any("nudge" in line for line in world.session._others[0]._troubles())


@pytest.mark.requirement("watch.push.nudge-in-time")
def test_so_it_does_to_one_that_waited_for_the_grant() -> None:
    world = watch_world(connect=False)
    world.connect(policy=None)
    given(world)
    assert world.listening.held == (), "nothing could be looked for"
    world.request("featureSets/update", GRANT)
    checked(world, "permits")
    world.pass_time(60_000)
    assert world.pushes == []


@pytest.mark.requirement("watch.push.nudge-in-time")
def test_without_the_word_of_the_store_none_is_sent_again() -> None:
    world = watch_world(answer=refuse(-32603))
    given(world, left=300_000)
    world.pass_time(200_000)
    assert len(world.pushes) == 1


@pytest.mark.requirement("watch.push.unanswered")
def test_a_late_answer_to_a_nudge_counts() -> None:
    world = watch_world(answer=silence)
    given(world, left=300_000)
    world.pass_time(31_000)
    world.answer_push(0, ACCEPTED)
    world.pass_time(200_000)
    assert len(world.pushes) == 1


@pytest.mark.requirement("watch.push.nudge-in-time")
def test_a_beat_here_makes_an_older_nudge_void() -> None:
    world = watch_world(answer=refuse(-32603))
    given(world, "permits")
    id = world.begin_call("heartbeat", scope="permits", expect_within_seconds=300)
    world.tell(world.asks[-1], beaten(world.asks[-1]))
    assert world.answered(id)
    world.answer = accept
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 1


@pytest.mark.requirement("watch.push.nudges-together")
def test_a_storm_is_one_wake_with_the_soonest_first() -> None:
    world = watch_world(answer=silence)
    given(world, *(f"scope-{place}" for place in range(100)), left=30_000)
    (push,) = world.pushes
    scopes = sorted(f"scope-{place}" for place in range(100))
    assert push["origin"] == {"source": "nudge", "count": 100, "scopes": scopes[:20]}
    assert push["tags"] == ["watch:nudge"]
    assert push["eventId"].endswith("_100")
    text = push["payload"]["content"][0]["text"]
    for word in ("100 of your", '"scope-0"', "30 s", "80 more", "heartbeat", "disarm"):
        assert word in text, word


@pytest.mark.requirement("watch.push.nudges-together")
def test_what_comes_within_5_s_of_a_push_goes_together() -> None:
    world = watch_world()
    given(world, "first", left=300_000)
    world.pass_time(1_000)
    given(world, "second", left=301_000)
    world.pass_time(3_999)
    given(world, "third", left=303_000)
    world.pass_time(1)
    assert len(world.pushes) == 1, "the store is asked first whether they still stand"
    checked(world)
    assert world.pushes[1]["origin"]["scopes"] == ["second", "third"]
    world.pass_time(5_000)
    given(world, "fourth", left=400_000)
    assert len(world.pushes) == 3


@pytest.mark.requirement("watch.push.nudges-together", "watch.push.nudge-in-time")
def test_none_waits_for_others_longer_than_a_tenth_of_its_time() -> None:
    world = watch_world()
    given(world, "first", left=300_000)
    given(world, "leisurely", left=300_000)
    given(world, "urgent", left=10_000)
    world.pass_time(999)
    assert world.listening.held == ()
    world.pass_time(1)
    assert [each.scope for each in world.listening.held] == ["leisurely", "urgent"]
    checked(world)
    assert world.pushes[1]["origin"]["scopes"] == ["urgent", "leisurely"]


@pytest.mark.requirement("watch.push.nudges-together", "watch.push.nudge-in-time")
def test_a_beat_by_another_door_makes_one_that_rests_void() -> None:
    world = watch_world()
    given(world, "first", left=300_000)
    given(world, "beaten", "quiet", left=300_000)
    world.pass_time(5_000)
    checked(world, "beaten")
    assert [push["origin"]["scope"] for push in world.pushes] == ["first", "quiet"]
    assert world.listening.held == ()


@pytest.mark.requirement("watch.push.nudges-together", "watch.push.nudge-in-time")
def test_a_beat_takes_its_scope_out_of_those_that_wait() -> None:
    world = watch_world(answer=refuse(-32603))
    given(world, "beaten", "quiet", "still", left=600_000)
    checked(world, "beaten")
    world.answer = accept
    pass_looking(world, 60_500)
    assert [push["origin"]["count"] for push in world.pushes] == [3, 2]
    assert world.pushes[1]["origin"]["scopes"] == ["quiet", "still"]
    first, second = (push["eventId"] for push in world.pushes)
    assert first != second, "it says something else"


@pytest.mark.requirement("watch.push.nudges-together", "watch.push.unanswered")
def test_a_late_answer_counts_for_all_that_it_told_of() -> None:
    world = watch_world(answer=silence)
    given(world, "a", "b", left=300_000)
    world.pass_time(31_000)
    given(world, "c", left=300_000)
    assert [each.scope for each in world.listening.held] == ["a", "b"]
    world.answer_push(0, ACCEPTED)
    assert world.listening.held == ()
    world.pass_time(20_000)
    assert len(world.pushes) == 2
    world.answer_push(1, {"error": {"code": -32603, "message": "no"}})
    assert [each.scope for each in world.listening.held] == ["c"]


@pytest.mark.no_cover  # much too long when measured
@pytest.mark.requirement("watch.push.unanswered")
def test_nudges_that_nobody_answers_fill_no_memory() -> None:
    world = watch_world(answer=silence)
    for place in range(2_000):
        given(world, f"scope-{place}", left=3_600_000)
    assert len(world.session._outgoing._waiting) <= nudges.MOST
    world.pass_time(3_600_000)
    checked(world)
    assert len(world.session._outgoing._waiting) == 0


@pytest.mark.requirement("watch.push.nudge-given-back")
def test_who_leaves_gives_back_what_the_host_did_not_take() -> None:
    world = watch_world()
    given(world, "taken", left=300_000)
    given(world, "rests", left=300_000)
    world.answer = refuse(-32603)
    world.pass_time(5_000)
    checked(world)
    world.answer = silence
    world.pass_time(5_000)
    given(world, "out", left=300_000)
    assert [push["origin"]["scope"] for push in world.pushes] == ["taken", "rests", "out"]
    assert world.unsent == []
    world.leave()
    (unsent,) = world.unsent
    assert [each.scope for each in unsent.nudges] == ["rests", "out"]
    given(world, "on its way", left=300_000)
    assert [each.scope for each in world.unsent[1].nudges] == ["on its way"]
    assert len(world.pushes) == 3


@pytest.mark.requirement("watch.push.nudge-given-back")
def test_who_holds_none_gives_none_back() -> None:
    world = watch_world()
    given(world, "taken")
    world.leave()
    assert world.unsent == []
