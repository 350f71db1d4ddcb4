"""Alerts that wake: when they leave, what becomes of them, and that none is lost or rains down."""

from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.actions import Listen, Settle
from mcpl_heartbeat.watch import pushes
from mcpl_heartbeat.watch.mail import PLACES
from tests.session.watching import GRANT, alert, news, resolved, watch_world
from tests.world import ACCEPTED, World, accept, refuse, silence


def taken(*seqs: int) -> Settle:
    return Settle(seqs, taken=True)


def let_go(*seqs: int) -> Settle:
    return Settle(seqs, taken=False)


def texts(world: World) -> list[str]:
    return [push["payload"]["content"][0]["text"] for push in world.pushes]


@pytest.mark.requirement("watch.push.alert")
def test_an_alert_wakes_whom_it_is_for() -> None:
    world = watch_world()
    assert world.listening == Listen(pushes.MOST, here=True)
    world.news(news(alert(7, "permits")))
    (push,) = world.pushes
    assert push["featureSet"] == "watch"
    assert push["eventId"] == "alert_task-7"
    assert push["origin"] == {"source": "alert", "scope": "permits", "generation": 3}
    assert push["tags"] == ["watch:alert"]
    assert "coalesce" not in push
    text = texts(world)[0]
    for word in ("permits", "worker-3", "deploy", "open page 4", "task-7", "inbox_ack"):
        assert word in text, word
    assert world.settled == [taken(7)]


@pytest.mark.requirement("watch.push.alert")
def test_an_alert_that_was_resolved_is_no_death() -> None:
    world = watch_world()
    world.news(news(resolved(alert(7))))
    assert "resolved" in texts(world)[0]
    assert "fired" not in texts(world)[0]


@pytest.mark.requirement("watch.push.one-at-a-time")
def test_several_leave_together_with_counts() -> None:
    world = watch_world()
    world.news(news(*(alert(seq) for seq in range(1, 31))))
    (push,) = world.pushes
    assert push["eventId"] == "alerts_task-30_30"
    assert push["origin"] == {
        "source": "alert",
        "count": 30,
        "scopes": [f"scope-{seq}" for seq in range(1, 21)],
    }
    assert "30 alerts" in texts(world)[0]
    assert world.settled == [taken(*range(1, 31))]


@pytest.mark.requirement("watch.push.one-at-a-time")
def test_a_full_box_is_one_wake() -> None:
    world = watch_world()
    assert world.listening.alerts is not None
    assert world.listening.alerts >= PLACES
    world.news(news(*(alert(n, f"scope {n}") for n in range(PLACES))))
    world.pass_time(60_000)
    (push,) = world.pushes
    assert push["origin"]["count"] == PLACES
    assert len(push["origin"]["scopes"]) == pushes.SHOWN_SCOPES
    assert texts(world)[0].count("scope") < 20
    assert world.settled == [taken(*range(PLACES))]


@pytest.mark.requirement("watch.push.one-at-a-time")
def test_the_next_rests_until_five_seconds_after_the_last() -> None:
    world = watch_world()
    world.news(news(alert(1)))
    assert world.listening == Listen(0, here=True), "what could not leave is not asked for"
    world.news(news(alert(2)))
    assert len(world.pushes) == 1
    assert world.settled == [taken(1), let_go(2)]
    world.pass_time(4_999)
    assert world.listening.alerts == 0
    world.pass_time(1)
    assert world.listening.alerts == pushes.MOST
    world.news(news(alert(2), alert(3)))
    assert [push["eventId"] for push in world.pushes] == ["alert_task-1", "alerts_task-3_2"]


@pytest.mark.requirement("watch.push.one-at-a-time")
def test_while_one_is_out_no_other_leaves() -> None:
    world = watch_world(answer=silence)
    world.news(news(alert(1)))
    world.pass_time(20_000)
    assert world.listening.alerts == 0
    world.news(news(alert(1), alert(2)))
    assert len(world.pushes) == 1
    assert world.settled == [let_go(2)], "the one that is out stays claimed"
    world.answer_push(0, ACCEPTED)
    assert world.settled[1:] == [taken(1)]
    assert world.listening.alerts == pushes.MOST


@pytest.mark.requirement("watch.push.held")
@pytest.mark.parametrize("answer", [refuse(-32603), refuse(-32602), lambda push: {"result": {}}])
def test_one_that_is_refused_is_let_go_and_held(answer: Any) -> None:
    world = watch_world(answer=answer)
    world.news(news(alert(1)))
    assert world.settled == [let_go(1)]
    assert any("1 alert held" in line for line in world.logs)
    world.pass_time(5_000)
    assert world.listening == Listen(pushes.MOST, here=True)


@pytest.mark.requirement("watch.push.held")
def test_what_is_held_goes_again_with_the_next_one_that_comes() -> None:
    world = watch_world(answer=refuse(-32603))
    world.news(news(alert(1)))
    world.pass_time(5_000)
    world.news(news(alert(1)))
    assert len(world.pushes) == 1, "nothing new"
    assert world.settled == [let_go(1), let_go(1)]
    assert world.listening.alerts == 0, "so that another server gets its turn"
    world.pass_time(5_000)
    world.answer = accept
    world.news(news(alert(1), alert(2)))
    assert len(world.pushes) == 2
    assert world.settled[2:] == [taken(1, 2)]


@pytest.mark.requirement("watch.push.held")
def test_what_is_held_is_probed_once_a_minute_with_the_same_id() -> None:
    world = watch_world(answer=refuse(-32603))
    for _ in range(600):
        if world.listening.alerts:
            world.news(news(alert(1)))
        world.pass_time(1_000)
    ids = [push["eventId"] for push in world.pushes]
    assert set(ids) == {"alert_task-1"}
    assert 10 <= len(ids) <= 11
    assert sum("held" in line for line in world.logs) == 1, "said once"


@pytest.mark.requirement("watch.push.held")
def test_what_is_held_goes_again_at_the_next_policy() -> None:
    world = watch_world(answer=refuse(-32603))
    world.news(news(alert(1)))
    world.answer = accept
    world.pass_time(6_000)
    world.request("featureSets/update", GRANT)
    world.news(news(alert(1)))
    assert len(world.pushes) == 2
    assert world.settled[-1] == taken(1)


@pytest.mark.requirement("watch.push.held")
def test_a_host_that_denies_the_set_is_no_way_to_the_agent() -> None:
    world = watch_world(answer=refuse(-32002, "Capability denied"))
    world.news(news(alert(1)))
    assert world.listening.here is False
    world.pass_time(60_000)
    assert world.listening == Listen(pushes.MOST, here=False), "it goes on trying"
    world.answer = accept
    world.news(news(alert(1)))
    assert world.listening.here is True


@pytest.mark.requirement("watch.push.unanswered")
def test_one_that_is_not_answered_is_held_after_thirty_seconds() -> None:
    world = watch_world(answer=silence)
    world.news(news(alert(1)))
    world.pass_time(29_999)
    assert world.settled == []
    world.pass_time(1)
    assert world.settled == [let_go(1)]
    assert any("within 30 s" in line for line in world.logs)


@pytest.mark.requirement("watch.push.unanswered")
def test_a_late_answer_counts() -> None:
    world = watch_world(answer=silence)
    world.news(news(alert(1)))
    world.pass_time(3_600_000)
    world.answer_push(0, ACCEPTED)
    assert world.settled == [let_go(1), taken(1)]
    assert not any("does not take" in line for line in world.session._others[0]._troubles())


@pytest.mark.requirement("watch.push.unanswered")
def test_a_host_that_never_answers_fills_no_memory() -> None:
    world = watch_world(answer=silence)
    for seq in range(1, 101):
        world.pass_time(61_000)
        world.news(news(alert(seq)))
    assert len(world.pushes) == 100
    assert len(world.session._outgoing._waiting) <= pushes.REMEMBERED
    world.answer_push(0, ACCEPTED)
    assert taken(1) not in world.settled, "that one is forgotten: it comes again, marked by its id"


@pytest.mark.requirement("watch.push.once-taken")
def test_one_that_was_taken_is_not_pushed_again_though_the_store_has_not_heard() -> None:
    world = watch_world()
    world.news(news(alert(1)))
    world.pass_time(5_000)
    world.news(news(alert(1), alert(2)))
    assert [push["eventId"] for push in world.pushes] == ["alert_task-1", "alert_task-2"]
    assert world.settled == [taken(1), taken(1), taken(2)]


@pytest.mark.requirement("watch.push.once-taken")
def test_an_alert_of_another_store_is_not_taken_for_one_that_was_told() -> None:
    world = watch_world()
    world.news(news(alert(1)))
    world.pass_time(5_000)
    # The store was put in another's place, and counts from 1 again.
    world.news(news(msgspec.structs.replace(alert(1), task_id="task-other")))
    assert [push["eventId"] for push in world.pushes] == ["alert_task-1", "alert_task-other"]


@pytest.mark.requirement("watch.push.one-at-a-time")
def test_one_that_has_taken_in_others_says_something_new() -> None:
    world = watch_world()
    world.news(news(alert(1)))
    world.pass_time(5_000)
    world.news(news(alert(1, folded=2, folded_scopes=("x", "y"))))
    world.pass_time(5_000)
    world.news(news(alert(1, folded=2, folded_scopes=("x", "y")), alert(2)))
    assert [push["eventId"] for push in world.pushes] == [
        "alert_task-1",
        "alert_task-1_3",
        "alert_task-2",
    ]
    assert "2 more alerts" in texts(world)[1]
    world.pass_time(5_000)
    world.news(news(alert(1, folded=4), alert(2, folded=1)))
    assert world.pushes[-1]["eventId"] == "alerts_task-2_7"
    assert world.pushes[-1]["origin"]["count"] == 7


@pytest.mark.requirement("watch.push.once-taken")
def test_a_host_that_has_heard_it_before_has_taken_it() -> None:
    world = watch_world(answer=lambda push: {"result": {"accepted": False, "reason": "duplicate"}})
    world.news(news(alert(1)))
    assert world.settled == [taken(1)]


@pytest.mark.requirement("watch.push.policy")
@pytest.mark.parametrize(
    "policy",
    [
        None,
        {"effectiveCapabilities": ["tools"]},
        {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": ["heartbeat"]},
        {"effectiveCapabilities": ["tools", "pushEvents"], "disabled": ["watch"]},
    ],
)
def test_nothing_is_looked_for_without_a_grant(policy: dict[str, Any] | None) -> None:
    world = watch_world(connect=False)
    world.connect(policy=policy)
    assert world.listening == Listen(None, here=False)
    world.news(news(alert(1)))
    assert world.pushes == []
    assert world.settled == [let_go(1)]


@pytest.mark.requirement("watch.push.policy")
def test_a_grant_that_goes_ends_the_looking_at_once() -> None:
    world = watch_world()
    world.request("featureSets/update", {"effectiveCapabilities": ["tools"]})
    assert world.listening == Listen(None, here=False)
    world.request("featureSets/update", GRANT)
    assert world.listening == Listen(pushes.MOST, here=True)


@pytest.mark.requirement("watch.push.policy")
def test_the_wake_wing_alone_can_be_granted() -> None:
    world = watch_world(connect=False)
    world.connect(policy={"effectiveCapabilities": ["tools", "pushEvents"], "disabled": ["watch"]})
    assert not world.call("heartbeat_trigger").get("isError")
    assert [push["featureSet"] for push in world.pushes] == ["heartbeat"]


@pytest.mark.requirement("watch.push.let-go")
def test_a_server_that_leaves_lets_go_of_what_is_out() -> None:
    world = watch_world(answer=silence)
    world.news(news(alert(1), alert(2)))
    world.leave()
    assert world.settled == [let_go(1, 2)]
    assert world.listening == Listen(None, here=False)


@pytest.mark.requirement("watch.push.again-after-restart")
def test_a_restarted_server_pushes_what_was_not_taken_under_the_same_id() -> None:
    world = watch_world(answer=silence)
    world.news(news(alert(1)))
    world.boot()
    world.answer = accept
    world.connect(policy=GRANT)
    world.news(news(alert(1)))
    assert [push["eventId"] for push in world.pushes] == ["alert_task-1"] * 2
    assert world.settled == [taken(1)]
