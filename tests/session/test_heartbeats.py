"""The schedule, seen from the host: when a wake leaves, under which id, and what is said."""

import re
from typing import Any

import pytest

from tests.session.heartbeats import HOUR, MINUTE, every_minute, ready
from tests.world import ACCEPTED, GRANT, START, World, accept, refuse, silence


@pytest.mark.requirement("schedule.defaults", "seed.wake.self-configured", "words.status")
def test_without_any_file_it_wakes_every_four_hours_in_message_mode() -> None:
    world = ready()
    assert world.text("heartbeat_status").startswith(
        "Heartbeat ACTIVE | mode=message | interval=14400s (4.00h) | next in ~14400s | "
        'reminders=0 | delivery=ok | message="'
    )
    world.pass_time(4 * HOUR - 1)
    assert world.pushes == []
    world.pass_time(1)
    assert len(world.pushes) == 1


@pytest.mark.requirement(
    "seed.wake.interval-push",
    "seed.configure.message-mode-text",
    "schedule.event-id",
    "schedule.event-shape",
    "host.21",
    "host.22",
    "host.23",
)
def test_a_message_tick_has_its_id_tags_origin_and_the_time_before_the_words() -> None:
    world = every_minute()
    world.call("heartbeat_configure", message="Look around.")
    world.pass_time(MINUTE)
    (push,) = world.pushes
    assert re.fullmatch(rf"heartbeat_{START + MINUTE}_\w+", push.pop("eventId"))
    assert push == {
        "featureSet": "heartbeat",
        "timestamp": "2026-09-21T14:14:20.000Z",
        "origin": {"source": "heartbeat", "reason": "schedule"},
        "payload": {
            "content": [
                {
                    "type": "text",
                    "text": "[current time: 2026-09-21T14:14:20+00:00 [UTC]] Look around.",
                }
            ]
        },
        "tags": ["heartbeat:tick"],
    }


@pytest.mark.requirement("schedule.missed-once", "host.14", "seed.policy.nothing-before-request")
def test_ticks_due_before_the_policy_are_logged_each_and_fire_once_with_it() -> None:
    world = World()
    world.connect(policy=None)
    world.pass_time(3 * 4 * HOUR)
    assert world.pushes == []
    dropped = [line for line in world.logs if line.startswith("suppressed heartbeat push/event — ")]
    assert len(dropped) == 3
    assert dropped[0].startswith(
        "suppressed heartbeat push/event — no valid featureSets/update Request in force "
        "(none yet, or the last was malformed); "
    )
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 1
    world.pass_time(4 * HOUR)
    assert len(world.pushes) == 2


@pytest.mark.requirement("seed.policy.log-notification", "seed.policy.notification-not-ready")
def test_a_notification_only_host_is_named_in_the_log() -> None:
    world = World()
    world.connect(policy=None)
    world.notify("featureSets/update", GRANT)
    world.pass_time(4 * HOUR)
    assert world.pushes == []
    assert any(
        line.startswith(
            "suppressed heartbeat push/event — "
            "host sent featureSets/update only as a Notification, "
        )
        for line in world.logs
    )


@pytest.mark.requirement("seed.policy.log-waiting")
@pytest.mark.parametrize("told", [True, False])
def test_a_policy_that_does_not_come_is_warned_of_once(told: bool) -> None:
    world = World()
    world.connect(policy=None)
    if told:
        world.notify("featureSets/update", GRANT)
    world.pass_time(10 * MINUTE)
    warnings = [line for line in world.logs if line.startswith("initial policy has still not ")]
    assert len(warnings) == 1
    assert warnings[0].startswith("initial policy has still not arrived as a Request. ")


@pytest.mark.requirement("seed.policy.log-waiting")
def test_a_policy_in_time_is_not_warned_of() -> None:
    world = ready()
    world.pass_time(10 * MINUTE)
    assert world.logs == []


@pytest.mark.requirement("schedule.skips-unanswered", "field.70", "field.10", "mcp.ping-meanwhile")
def test_at_most_one_tick_is_out_and_each_skipped_one_is_said() -> None:
    world = every_minute(answer=silence)
    world.pass_time(6 * MINUTE)
    assert len(world.pushes) == 1
    assert sum(line.startswith("skipped the heartbeat due ") for line in world.logs) == 5
    assert world.request("ping")["result"] == {}
    assert "has not answered the heartbeat sent" in world.text("heartbeat_status")
    world.answer = accept
    world.answer_push(0, ACCEPTED)
    assert "has not answered" not in world.text("heartbeat_status")
    world.pass_time(MINUTE)
    assert world.sent_at == [START + MINUTE, START + 7 * MINUTE]


@pytest.mark.requirement("schedule.failure-goes-on", "field.65", "host.19")
def test_a_host_that_never_answers_does_not_silence_the_schedule_for_ever() -> None:
    world = every_minute(answer=silence)
    world.pass_time(3 * HOUR)
    gaps = [b - a for a, b in zip(world.sent_at, world.sent_at[1:], strict=False)]
    assert gaps == [HOUR, HOUR]
    assert len({push["eventId"] for push in world.pushes}) == 3


@pytest.mark.requirement("schedule.failure-goes-on", "field.65")
@pytest.mark.parametrize(
    "answer",
    [
        refuse(-32603, "stopping"),
        refuse(-32001),
        lambda push: {"result": {"accepted": False, "reason": "busy"}},
        lambda push: {"result": "yes"},
        lambda push: {"result": None},
    ],
)
def test_a_refused_tick_is_logged_and_the_next_leaves_on_time(answer: Any) -> None:
    world = every_minute()
    world.pass_time(MINUTE)
    world.answer = answer
    world.pass_time(MINUTE)
    world.answer = accept
    world.pass_time(MINUTE)
    assert world.sent_at == [START + n * MINUTE for n in (1, 2, 3)]
    assert sum("the host did not take a heartbeat" in line for line in world.logs) == 1


@pytest.mark.requirement("policy.answer-codes", "host.16", "host.17")
@pytest.mark.parametrize("code", [-32001, -32002, -32003])
def test_a_blocking_refusal_shows_in_the_status_until_a_policy_and_is_then_tried_again(
    code: int,
) -> None:
    world = every_minute(answer=refuse(code, "not for you"))
    world.pass_time(MINUTE)
    status = world.text("heartbeat_status")
    assert f"delivery=BLOCKED (the host answered {code} (" in status
    assert "not for you" in status
    assert "next in" not in status
    world.answer = accept
    world.request("featureSets/update", GRANT)
    assert world.pushes[1]["eventId"] == world.pushes[0]["eventId"]
    assert "delivery=ok" in world.text("heartbeat_status")


@pytest.mark.requirement("schedule.trigger-apart", "field.76", "seed.trigger.fires-now")
def test_a_trigger_just_before_a_slot_leaves_the_slot_alone() -> None:
    world = every_minute()
    world.pass_time(55_000)
    assert world.text("heartbeat_trigger").startswith("Heartbeat fired")
    world.pass_time(5_000)
    assert [push["origin"]["reason"] for push in world.pushes] == ["manual", "schedule"]
    assert len({push["eventId"] for push in world.pushes}) == 2


@pytest.mark.requirement("seed.trigger.unsendable-error", "host.39")
def test_a_trigger_that_cannot_be_sent_is_an_error_with_the_reason() -> None:
    world = World()
    world.connect(policy={"effectiveCapabilities": ["tools"]})
    result = world.call("heartbeat_trigger")
    assert result["isError"] is True
    assert "pushEvents" in result["content"][0]["text"]
    assert result["structuredContent"]["sent"] is False
    assert world.pushes == []


@pytest.mark.requirement("seed.trigger.fired-means-sent")
def test_a_refused_trigger_says_fired_and_the_log_says_refused() -> None:
    world = ready(answer=refuse(-32603, "stopping"))
    assert world.text("heartbeat_trigger").startswith("Heartbeat fired")
    assert any("stopping" in line for line in world.logs)


@pytest.mark.requirement("schedule.rearm", "seed.configure.persists")
def test_only_another_interval_re_arms() -> None:
    world = every_minute()
    world.pass_time(30_000)
    world.call("heartbeat_configure", intervalMinutes=1, message="other words")
    assert "next in ~30s" in world.text("heartbeat_status")
    world.call("heartbeat_configure", intervalSeconds=90)
    assert "next in ~90s" in world.text("heartbeat_status")
    world.pass_time(90_000)
    assert world.sent_at == [START + 120_000]
    assert world.disk.config()["intervalSeconds"] == 90


@pytest.mark.requirement("seed.configure.interval-adds-up", "seed.args.milliseconds")
def test_units_add_up_to_the_millisecond() -> None:
    world = ready()
    world.call("heartbeat_configure", intervalHours=1, intervalMinutes=1.5, intervalSeconds=0.25)
    assert world.disk.config()["intervalSeconds"] == 3690.25
    world.pass_time(3_690_249)
    assert world.pushes == []
    world.pass_time(1)
    assert len(world.pushes) == 1


@pytest.mark.requirement("seed.configure.paused", "schedule.paused", "words.status-paused")
def test_paused_stays_paused_over_restarts_and_resumes_an_interval_from_then() -> None:
    world = every_minute()
    world.call("heartbeat_configure", paused=True)
    assert world.text("heartbeat_status").startswith("Heartbeat PAUSED | ")
    assert "next in" not in world.text("heartbeat_status")
    world.pass_time(10 * MINUTE)
    world.boot()
    world.connect()
    world.pass_time(10 * MINUTE)
    assert world.pushes == []
    world.call("heartbeat_configure", paused=False)
    world.pass_time(MINUTE)
    assert len(world.pushes) == 1


@pytest.mark.requirement("schedule.coalesce", "host.26")
@pytest.mark.parametrize("advertised", [True, {"pushEvents": True, "deferred": False}])
def test_ticks_coalesce_only_where_the_host_said_so(advertised: Any) -> None:
    world = World()
    world.connect(mcpl={"version": "0.5", "eventCoalescing": advertised})
    world.call("heartbeat_trigger")
    world.call("heartbeat_configure", deliveryMode="silent")
    world.call("heartbeat_trigger")
    assert world.pushes[0]["coalesce"] == {"key": "tick"}
    assert "coalesce" not in world.pushes[1]


@pytest.mark.requirement("schedule.event-id", "host.18", "host.20")
def test_a_tick_that_was_out_at_a_crash_is_sent_again_under_its_id_and_then_counts_as_heard() -> (
    None
):
    world = every_minute(answer=silence)
    world.pass_time(MINUTE)
    world.answer = lambda push: {"result": {"accepted": False, "reason": "duplicate"}}
    world.boot()
    world.connect()
    assert world.pushes[1]["eventId"] == world.pushes[0]["eventId"]
    world.boot()
    world.connect()
    assert len(world.pushes) == 2


@pytest.mark.requirement("field.67", "seed.status.shows-next", "words.status-blocked")
def test_a_schedule_that_cannot_fire_says_so_and_names_no_next_wake() -> None:
    world = World()
    world.connect(policy=None)
    for told in (False, True):
        if told:
            world.notify("featureSets/update", GRANT)
        status = world.call("heartbeat_status")
        text = status["content"][0]["text"]
        assert "delivery=BLOCKED (" in text
        assert "next in" not in text
        assert status["structuredContent"]["deliverable"] is False
        assert "nextAt" not in status["structuredContent"]


@pytest.mark.no_cover  # much too long when measured
@pytest.mark.requirement("field.49", "host.29")
def test_a_thousand_hours_are_a_thousand_hours() -> None:
    world = ready()
    world.call("heartbeat_configure", intervalHours=1000)
    world.pass_time(999 * HOUR)
    assert world.pushes == []
    world.pass_time(HOUR)
    assert len(world.pushes) == 1


@pytest.mark.requirement("schedule.skips-unanswered")
def test_another_grid_or_a_pause_does_not_let_a_second_one_out() -> None:
    world = every_minute(answer=silence)
    world.pass_time(MINUTE)
    world.call("heartbeat_configure", intervalSeconds=61)
    world.pass_time(62_000)
    world.call("heartbeat_configure", paused=True)
    world.call("heartbeat_configure", paused=False)
    world.pass_time(5 * MINUTE)
    assert len(world.pushes) == 1
    assert sum(line.startswith("skipped the heartbeat due ") for line in world.logs) == 5
    world.answer = accept
    world.answer_push(0, ACCEPTED)
    world.pass_time(61_000)
    assert len(world.pushes) == 2


@pytest.mark.requirement("host.39", "seed.trigger.fired-means-sent")
def test_the_status_says_when_the_last_heartbeat_was_not_taken_until_one_is() -> None:
    world = every_minute(answer=refuse(-32603, "stopping"))
    world.pass_time(MINUTE)
    text = world.text("heartbeat_status")
    assert "The last heartbeat was not taken (2026-09-21T14:14:20+00:00 [UTC]: " in text
    assert "stopping" in text
    world.answer = accept
    world.pass_time(MINUTE)
    assert "not taken" not in world.text("heartbeat_status")


@pytest.mark.requirement("policy.malformed")
def test_a_malformed_policy_is_named_in_the_log() -> None:
    world = ready()
    world.request("featureSets/update", {"effectiveCapabilities": 5})
    assert any("featureSets/update is malformed: effectiveCapabilities" in x for x in world.logs)
