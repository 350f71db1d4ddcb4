"""Reminders, seen from outside: when they leave, what they say, what becomes of them."""

import datetime
import zoneinfo
from typing import Any

import pytest

from mcpl_heartbeat.times import Zone
from tests.world import ACCEPTED, GRANT, START, World, accept, refuse, silence

MINUTE = 60_000
HOUR = 3_600_000
DUPLICATE = {"result": {"accepted": False, "reason": "duplicate"}}
BLOCKED = {"effectiveCapabilities": ["tools"]}
LOS_ANGELES = Zone("America/Los_Angeles", zoneinfo.ZoneInfo("America/Los_Angeles"))
NEW_YORK = Zone("America/New_York", zoneinfo.ZoneInfo("America/New_York"))


def ready(**keywords: Any) -> World:
    world = World(**keywords)
    world.connect()
    world.call("heartbeat_configure", paused=True)
    return world


def add(world: World, message: str = "x", **when: Any) -> str:
    result = world.call("reminder_add", message=message, **when)
    assert not result.get("isError"), result
    id: str = result["structuredContent"]["reminder"]["id"]
    return id


def texts(world: World) -> list[str]:
    return [push["payload"]["content"][0]["text"] for push in world.pushes]


@pytest.mark.requirement(
    "seed.reminder.push", "reminder.event-shape", "reminder.event-id", "seed.reminder.header"
)
def test_a_one_shot_leaves_on_time_with_its_header_and_is_gone_when_taken() -> None:
    world = ready(zone=LOS_ANGELES)
    id = add(world, "Call Ann: now", inSeconds=30, inMinutes=1)
    world.pass_time(90_000 - 1)
    assert world.pushes == []
    world.pass_time(1)
    (push,) = world.pushes
    assert push == {
        "featureSet": "heartbeat",
        "eventId": f"reminder_{id}_{START + 90_000}",
        "timestamp": "2026-09-21T14:14:50.000Z",
        "origin": {"source": "reminder", "reminderId": id, "recurring": False},
        "payload": {
            "content": [
                {
                    "type": "text",
                    "text": f"[reminder {id}, set 2026-09-21T07:13:20-07:00 [America/Los_Angeles] "
                    "· current time: 2026-09-21T07:14:50-07:00 [America/Los_Angeles]] "
                    "Call Ann: now",
                }
            ]
        },
        "tags": ["heartbeat:reminder"],
    }
    assert world.disk.rows() == []
    assert world.text("reminder_list") == "0 reminder(s):"


@pytest.mark.requirement(
    "seed.reminder.header-recurring", "field.71", "seed.reminder.taken-changes"
)
def test_a_recurring_one_says_that_it_repeats_and_advances_when_taken() -> None:
    world = ready()
    id = add(world, "every 10 minutes send me X", everyMinutes=10)
    world.pass_time(10 * MINUTE)
    assert texts(world)[0].startswith(f"[reminder {id}, repeats every 600s · current time: 20")
    assert texts(world)[0].endswith("]] every 10 minutes send me X")
    assert world.disk.rows()[0]["fireAt"] == START + 20 * MINUTE


@pytest.mark.requirement("seed.reminder.header-late", "seed.reminder.waits-blocked")
@pytest.mark.parametrize(("late", "said"), [(MINUTE - 1, False), (MINUTE, True)])
def test_one_that_fires_a_minute_late_says_when_it_was_due(late: int, said: bool) -> None:
    world = World()
    world.connect(policy=BLOCKED)
    add(world, inSeconds=10)
    world.pass_time(10_000 + late)
    world.request("featureSets/update", GRANT)
    assert (", due 2026-09-21T14:13:30+00:00 [UTC] · current time" in texts(world)[0]) is said


@pytest.mark.requirement("reminder.grid", "field.55", "seed.reminder.first-fire")
def test_a_recurring_one_does_not_drift_however_slow_the_host() -> None:
    world = ready(answer=silence)
    add(world, everySeconds=5)
    for n in range(6):
        world.pass_time(5_000 if n == 0 else 4_000)
        world.pass_time(1_000 if n else 0)
        world.answer_push(n, ACCEPTED)
    assert world.sent_at == [START + 5_000 * n for n in range(1, 7)]


@pytest.mark.requirement("seed.reminder.first-fire", "seed.reminder.units-add-up")
def test_the_first_time_of_a_recurring_one_is_the_delay_or_moment_given_with_it() -> None:
    world = ready()
    add(world, "delay", everyMinutes=2, everySeconds=30, inSeconds=7)
    add(world, "moment", everyHours=1, atIso="2026-09-21T14:13:30Z")
    world.pass_time(7_000 + 150_000)
    assert world.sent_at == [START + 7_000, START + 10_000, START + 157_000]


@pytest.mark.requirement("reminder.catch-up", "seed.reminder.catch-up-once", "field.56")
def test_after_a_suspend_one_for_all_the_missed_periods_then_the_grid() -> None:
    world = ready()
    add(world, everySeconds=5)
    world.suspend(12_000)
    world.pass_time(8_000)
    assert world.sent_at == [START + 12_000, START + 15_000, START + 20_000]


@pytest.mark.requirement("reminder.due-order", "reminder.no-cap")
def test_several_due_at_once_leave_in_order_of_due_time() -> None:
    world = World()
    world.connect(policy=BLOCKED)
    for n in (7, 3, 9, 1, 5, *range(10, 500)):
        add(world, str(n), inSeconds=n)
    world.pass_time(600_000)
    world.request("featureSets/update", GRANT)
    world.pass_time(0)
    sent = [int(push["eventId"].rsplit("_", 1)[1]) for push in world.pushes]
    assert len(sent) == 495
    assert sent == sorted(sent)


@pytest.mark.requirement(
    "seed.reminder.deliverable-only", "seed.reminder.list-overdue", "words.reminder-held"
)
def test_while_blocked_it_waits_overdue_and_the_list_ends_with_why() -> None:
    world = World()
    world.connect(policy=BLOCKED)
    assert "No wake can be delivered (" in world.text("reminder_add", message="x", inSeconds=1)
    world.pass_time(5_000)
    head, line, last = world.text("reminder_list").split("\n")
    assert head == "1 reminder(s):"
    assert " (overdue) | one-shot" in line
    assert last.startswith("No wake can be delivered (")
    assert "pushEvents" in last
    assert world.pushes == []
    assert len(world.disk.rows()) == 1


@pytest.mark.requirement("seed.reminder.waits-blocked")
def test_after_a_malformed_policy_it_waits_too() -> None:
    world = ready()
    add(world, inSeconds=1)
    reply = world.request("featureSets/update", {"effectiveCapabilities": "all"})
    assert reply["error"]["code"] == -32602
    world.pass_time(5_000)
    assert world.pushes == []
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 1


@pytest.mark.requirement(
    "seed.reminder.never-fires-host", "policy.plain", "host.7", "words.reminder-add"
)
def test_on_a_host_that_takes_no_wake_add_and_list_say_so() -> None:
    plain = World()
    plain.connect(mcpl=False, policy=None)
    told = World()
    told.connect(policy=None)
    told.notify("featureSets/update", GRANT)
    for world in (plain, told):
        for text in (
            world.text("reminder_add", message="x", inSeconds=1),
            world.text("reminder_list"),
        ):
            assert "No reminder will fire on this host" in text
        world.pass_time(60_000)
        assert world.pushes == []


@pytest.mark.requirement("seed.reminder.blocked-log", "seed.policy.log-drops")
def test_while_blocked_the_log_counts_the_stranded_at_each_occasion() -> None:
    world = ready()
    id = add(world, "a", inHours=1)
    add(world, "b", inHours=2)
    assert world.logs == []

    def said() -> list[str]:
        logs, world.logs = world.logs, []
        return [line for line in logs if "will not fire" in line]

    world.request("featureSets/update", BLOCKED)
    (line,) = said()
    assert line.startswith("2 reminders will not fire: ")
    assert "pushEvents" in line
    add(world, "c", inHours=3)
    assert len(said()) == 1
    world.call("reminder_cancel", id=id)
    assert len(said()) == 1
    world.boot()
    assert len(said()) == 1
    world.connect()
    said()
    world.answer = silence
    world.pass_time(2 * HOUR)
    world.request("featureSets/update", BLOCKED)
    said()
    world.answer_push(-1, refuse(-32002)({}))
    assert said() == ["2 reminders will not fire" + line.split("will not fire")[1]]


@pytest.mark.requirement("seed.reminder.blocked-log", "policy.answer-codes")
def test_a_denial_in_answer_to_a_reminder_counts_the_stranded_too() -> None:
    world = ready(answer=refuse(-32002, "not for you"))
    add(world, "due", inSeconds=1)
    add(world, "later", inHours=1)
    world.pass_time(1_000)
    (line,) = [line for line in world.logs if "will not fire" in line]
    assert line.startswith("2 reminders will not fire")
    assert "not for you" in line


@pytest.mark.requirement("reminder.list-pages")
def test_an_offset_past_the_end_is_told_so() -> None:
    world = ready()
    add(world, inHours=1)
    assert world.text("reminder_list", offset=5).endswith("offset 5 is past the last of them.")


@pytest.mark.requirement(
    "seed.reminder.held", "field.77", "reminder.late-answer", "words.reminder-held"
)
def test_one_without_an_answer_is_held_after_30_s_kept_and_settled_by_a_late_one() -> None:
    world = ready(answer=silence)
    add(world, inSeconds=1)
    world.pass_time(30_999)
    assert "not answered yet" in world.text("reminder_list")
    world.pass_time(1)
    assert (
        "held since 2026-09-21T14:13:51+00:00 [UTC]: the host gave no answer within 30 s"
        in world.text("reminder_list")
    )
    assert len(world.disk.rows()) == 1
    world.answer_push(0, ACCEPTED)
    assert world.disk.rows() == []


@pytest.mark.requirement("seed.reminder.retry-events", "seed.reminder.file-until-taken", "host.15")
@pytest.mark.parametrize("occasion", ["policy", "add", "cancel", "restart"])
def test_a_held_one_is_tried_once_more_at_each_occasion_under_the_same_id(occasion: str) -> None:
    world = ready(answer=refuse(-32603, "stopping"))
    spare = add(world, "spare", inHours=9)
    add(world, inSeconds=1)
    world.pass_time(HOUR)
    assert len(world.pushes) == 1
    match occasion:
        case "policy":
            world.request("featureSets/update", GRANT)
        case "add":
            add(world, inHours=9)
        case "cancel":
            world.call("reminder_cancel", id=spare)
        case "restart":
            world.boot()
            world.connect()
    assert len(world.pushes) == 2
    assert world.pushes[0]["eventId"] == world.pushes[1]["eventId"]
    world.pass_time(HOUR)
    assert len(world.pushes) == 2


@pytest.mark.requirement("seed.reminder.retry-interval")
def test_a_held_recurring_one_is_also_tried_an_interval_later() -> None:
    world = ready(answer=refuse(-32603))
    add(world, everyMinutes=10)
    world.pass_time(35 * MINUTE)
    assert world.sent_at == [START + n * 10 * MINUTE for n in (1, 2, 3)]
    assert len({push["eventId"] for push in world.pushes}) == 1
    world.answer = accept
    world.pass_time(15 * MINUTE)
    assert world.sent_at[3:] == [START + n * 10 * MINUTE for n in (4, 5)]


@pytest.mark.requirement("seed.reminder.twice-marked", "reminder.event-id", "host.18")
def test_one_that_is_out_at_a_crash_fires_again_under_its_id() -> None:
    world = ready(answer=silence)
    add(world, inSeconds=1)
    world.pass_time(2_000)
    world.answer = lambda push: DUPLICATE
    world.boot()
    world.connect()
    assert world.pushes[0]["eventId"] == world.pushes[1]["eventId"]
    assert world.disk.rows() == []


@pytest.mark.requirement("reminder.duplicate-taken", "field.73")
def test_a_slot_that_was_taken_does_not_fire_again_after_a_crash() -> None:
    world = ready()
    add(world, everySeconds=5)
    world.pass_time(5_000)
    world.boot()
    world.connect()
    world.pass_time(4_999)
    assert len(world.pushes) == 1


@pytest.mark.requirement("reminder.cancel-final", "field.83")
@pytest.mark.parametrize("answer", [ACCEPTED, {"error": {"code": -32603, "message": "no"}}])
def test_a_cancel_while_its_push_is_out_is_final(answer: dict[str, Any]) -> None:
    world = ready(answer=silence)
    id = add(world, everySeconds=5)
    world.pass_time(5_000)
    assert "cancelled" in world.text("reminder_cancel", id=id)
    world.answer_push(0, answer)
    world.pass_time(HOUR)
    assert len(world.pushes) == 1
    assert world.disk.rows() == []


@pytest.mark.requirement("field.74", "policy.replaces")
def test_two_policies_send_a_due_reminder_once() -> None:
    world = World(answer=silence)
    world.connect(policy=None)
    add(world, inSeconds=1)
    world.pass_time(2_000)
    world.request("featureSets/update", GRANT)
    world.pass_time(10)
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 1


@pytest.mark.requirement("reminder.coalesce")
def test_recurring_ones_coalesce_per_id_on_hosts_that_take_it() -> None:
    world = World()
    world.connect(mcpl={"version": "0.5", "eventCoalescing": {"pushEvents": True}})
    id = add(world, "r", everySeconds=5)
    add(world, "o", inSeconds=6)
    world.pass_time(6_000)
    assert world.pushes[0]["coalesce"] == {"key": f"reminder:{id}"}
    assert "coalesce" not in world.pushes[1]


@pytest.mark.requirement("words.reminder-add", "words.reminder-list", "words.local-time")
def test_the_words_of_add_and_list_are_fixed() -> None:
    world = ready(zone=LOS_ANGELES)
    text = world.text("reminder_add", message="feed\nthe cat", inMinutes=10)
    id = text.split()[1]
    when = "next 2026-09-21T07:23:20-07:00 [America/Los_Angeles] (~600s)"
    assert text == f'Reminder {id} set: {when} | one-shot | "feed\\nthe cat"'
    text = world.text("reminder_add", message="y", everySeconds=7.5)
    other = text.split()[1]
    soon = "next 2026-09-21T07:13:27-07:00 [America/Los_Angeles] (~8s)"
    assert text == f'Reminder {other} set: {soon} | repeats every 7.5s | "y"'
    assert world.text("reminder_list") == (
        f'2 reminder(s):\n{other} | {soon} | repeats every 7.5s | "y"\n'
        f'{id} | {when} | one-shot | "feed\\nthe cat"'
    )


@pytest.mark.requirement("reminder.twin", "field.82")
@pytest.mark.parametrize(
    "when",
    [{"inMinutes": 10}, {"everyMinutes": 10}, {"atIso": "2027-01-01T00:00:00Z"}],
)
def test_the_same_add_again_names_its_twin_and_both_outlive_a_restart(when: dict[str, Any]) -> None:
    world = ready()
    first = add(world, "again", **when)
    world.pass_time(3_000)
    result = world.call("reminder_add", message="again", **when)
    assert result["structuredContent"]["twins"] == [first]
    assert first in result["content"][0]["text"].split("\n")[1]
    assert world.call("reminder_add", message="other", **when)["structuredContent"]["twins"] == []
    world.boot()
    world.connect()
    assert first in world.text("reminder_list")
    assert result["structuredContent"]["reminder"]["id"] in world.text("reminder_list")


@pytest.mark.requirement("reminder.list-pages")
def test_a_long_list_is_cut_at_20_000_characters_and_goes_on_by_offset() -> None:
    world = ready()
    for n in range(300):
        add(world, f"message number {n}", inMinutes=n + 1)
    seen: list[str] = []
    offset = 0
    while True:
        result = world.call("reminder_list", offset=offset)
        text = result["content"][0]["text"]
        assert len(text) <= 20_000
        assert text.startswith("300 reminder(s):\n")
        part = result["structuredContent"]
        seen += [view["message"] for view in part["reminders"]]
        if not part["more"]:
            break
        offset = part["offset"] + len(part["reminders"])
        assert f"{part['more']} more: call reminder_list with offset {offset}." in text
    assert seen == [f"message number {n}" for n in range(300)]
    assert offset > 0


@pytest.mark.requirement("reminder.list-pages", "field.11", "field.31")
def test_a_list_shows_one_whole_message_and_the_beginning_of_giants() -> None:
    world = ready()
    odd = "a\u2028b\u2029c\u0085d\u000be\U0001f378"
    add(world, odd, inSeconds=1)
    assert odd in world.text("reminder_list")
    world.pass_time(1_000)
    assert texts(world)[0].endswith(odd)
    add(world, "g" * 200_000, inSeconds=2)
    add(world, "g" * 200_000, inSeconds=1)
    text = world.text("reminder_list")
    assert len(text) <= 20_000
    assert text.count("(200000 characters)") == 2
    assert (
        world.call("reminder_list")["structuredContent"]["reminders"][0]["message"] == "g" * 200_000
    )


@pytest.mark.requirement("seed.cancel.unknown-id-error", "words.for-models")
def test_a_cancel_of_an_unknown_id_is_an_error_that_says_what_to_do() -> None:
    world = ready()
    result = world.call("reminder_cancel", id="rem_none")
    assert result["isError"] is True
    assert "rem_none" in result["content"][0]["text"]
    assert "reminder_list" in result["content"][0]["text"]
    assert result["structuredContent"]["cancelled"] is False


@pytest.mark.requirement("reminder.range", "field.32", "field.50")
def test_the_edge_of_the_calendar_is_taken_exactly_or_refused_whole() -> None:
    world = ready(zone=Zone("Asia/Tokyo", zoneinfo.ZoneInfo("Asia/Tokyo")))
    for when in (
        {"atIso": "9999-12-31T23:59:59.999Z"},
        {"atIso": "0001-01-01T00:00:00Z"},
        {"inHours": 1e300},
        {"inHours": 69_894_000},
        {"everySeconds": 1e308},
    ):
        result = world.call("reminder_add", message="x", **when)
        assert result["isError"] is True, when
    assert world.disk.rows() == []
    add(world, "far", atIso="9999-12-31T23:59:59.999+09:00")
    assert world.disk.rows()[0]["fireAt"] == 253_402_268_399_999
    add(world, "near", inSeconds=1)
    world.pass_time(1_000)
    assert len(world.pushes) == 1


@pytest.mark.requirement("reminder.at-iso-zone", "reminder.gap-fold", "field.53")
@pytest.mark.parametrize(
    ("text", "fires", "shown"),
    [
        ("2027-03-14T02:30:00", "2027-03-14T07:30:00+00:00", "2027-03-14T03:30:00-04:00"),
        ("2027-11-07T01:30:00", "2027-11-07T05:30:00+00:00", "2027-11-07T01:30:00-04:00"),
    ],
)
def test_a_time_in_the_gap_or_the_fold_fires_once_and_says_which(
    text: str, fires: str, shown: str
) -> None:
    due = int(datetime.datetime.fromisoformat(fires).timestamp() * 1000)
    world = ready(zone=NEW_YORK, wall=due - HOUR)
    reply = world.text("reminder_add", message="x", atIso=text)
    assert f"next {shown} [America/New_York]" in reply
    assert reply.count("\n") == 1
    world.pass_time(4 * HOUR)
    assert world.sent_at == [due]


@pytest.mark.requirement("reminder.at-iso-forms", "reminder.past", "field.52")
@pytest.mark.parametrize(
    "text", ["2030-01-01", "2030-01-01T24:00", "20300101T090000Z", "2030-W01-1", "tomorrow", ""]
)
def test_odd_forms_are_refused_with_what_to_send(text: str) -> None:
    world = ready()
    result = world.call("reminder_add", message="x", atIso=text)
    assert result["isError"] is True
    assert "atIso" in result["content"][0]["text"]
    assert world.disk.rows() == []


@pytest.mark.requirement("reminder.past")
def test_the_past_is_refused_with_the_time_that_is_now() -> None:
    world = ready()
    text = world.text("reminder_add", message="x", atIso="2025-01-01T00:00:00Z")
    assert "2026-09-21T14:13:20+00:00" in text
    add(world, atIso="2026-09-21T14:13:15Z")
    world.pass_time(0)
    assert len(world.pushes) == 1


@pytest.mark.requirement("field.59", "schedule.clock-steps")
def test_a_clock_set_ahead_a_day_fires_only_what_is_due_then() -> None:
    world = ready()
    add(world, "hour", inHours=1)
    add(world, "days", inHours=48)
    world.step_clock(24 * HOUR)
    world.pass_time(30_000)
    assert [text[-4:] for text in texts(world)] == ["hour"]
    world.pass_time(HOUR)
    assert len(world.pushes) == 1


@pytest.mark.requirement("field.58", "schedule.clock-steps")
def test_a_clock_set_back_moves_delays_and_leaves_appointments_on_the_clock() -> None:
    world = ready()
    add(world, "delay", inSeconds=60)
    add(world, "clock", atIso="2026-09-21T14:14:20Z")
    world.step_clock(-HOUR)
    world.pass_time(60_000)
    assert [text[-5:] for text in texts(world)] == ["delay"]
    world.boot()
    world.connect()
    world.pass_time(HOUR)
    assert [text[-5:] for text in texts(world)] == ["delay", "clock"]


@pytest.mark.requirement("host.17")
def test_unknown_server_is_no_delivery() -> None:
    world = ready(answer=lambda push: {"result": {"accepted": False, "reason": "Unknown server"}})
    add(world, inSeconds=1)
    world.pass_time(1_000)
    assert "Unknown server" in world.text("reminder_list")
    assert len(world.disk.rows()) == 1


@pytest.mark.requirement("field.47", "jsonrpc.answer-matching", "jsonrpc.unexpected-answer")
def test_only_the_exact_first_answer_counts() -> None:
    world = ready(answer=silence)
    add(world, inSeconds=1)
    world.pass_time(1_000)
    before = len(world.replies)
    for id in (1, "1", 99, None, world.push_ids[0] + "x", [world.push_ids[0]]):
        world.send({"jsonrpc": "2.0", "id": id, **ACCEPTED})
    assert len(world.disk.rows()) == 1
    world.answer_push(0, refuse(-32603)({}))
    world.answer_push(0, ACCEPTED)
    assert len(world.disk.rows()) == 1
    assert len(world.replies) == before


@pytest.mark.requirement("reminder.table")
def test_a_push_that_is_out_twice_is_settled_by_whichever_answer_takes_it() -> None:
    world = ready(answer=silence)
    add(world, inSeconds=1)
    world.pass_time(31_000)
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 2
    world.answer_push(0, refuse(-32603)({}))
    assert "not answered yet" in world.text("reminder_list")
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == 2
    world.answer_push(1, ACCEPTED)
    assert world.disk.rows() == []


@pytest.mark.requirement("reminder.due-order")
def test_more_than_a_burst_at_one_instant_leaves_at_that_instant() -> None:
    world = ready(answer=silence)
    for n in range(450):
        add(world, str(n), atIso="2026-09-21T14:13:30Z")
    world.pass_time(10_000)
    assert len(world.pushes) == 450


@pytest.mark.requirement("reminder.range")
@pytest.mark.parametrize(
    "when",
    [
        {"everyHours": 70_128_000, "inSeconds": 1},
        {"everyHours": 69_892_000, "atIso": "9990-01-01T00:00:00Z"},
    ],
)
def test_an_interval_whose_second_time_has_no_date_is_refused(when: dict[str, Any]) -> None:
    world = ready()
    result = world.call("reminder_add", message="x", **when)
    assert result["isError"] is True
    assert "everyHours: is out of range" in result["content"][0]["text"]
    assert world.disk.rows() == []


@pytest.mark.requirement("reminder.range", "schedule.grid")
def test_a_heartbeat_that_would_come_after_the_last_date_is_refused() -> None:
    world = ready()
    result = world.call("heartbeat_configure", intervalHours=70_128_000)
    assert result["isError"] is True
    assert "intervalHours: is out of range" in result["content"][0]["text"]


@pytest.mark.requirement("seed.args.all-problems")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"message": "", "atIso": "yesterday"}, ["message", "atIso"]),
        ({"message": "x", "atIso": "2020-01-01T00:00:00Z", "everySeconds": 1}, ["atIso", "every"]),
        ({"message": " ", "inHours": 69_894_000}, ["message", "inHours"]),
        ({"message": "x", "atIso": "nope", "foo": 1}, ["atIso", "Ignored: foo"]),
    ],
)
def test_a_time_that_cannot_be_is_named_beside_every_other_problem(
    arguments: dict[str, Any], named: list[str]
) -> None:
    text = ready().text("reminder_add", **arguments)
    assert [name for name in named if name not in text] == []


@pytest.mark.requirement("field.59", "schedule.clock-steps")
def test_a_clock_set_ahead_and_put_right_again_moves_nothing() -> None:
    world = ready()
    add(world, "two days", inHours=48)
    world.step_clock(24 * HOUR)
    world.pass_time(MINUTE)
    add(world, "an hour", inHours=1)
    add(world, "often", everyMinutes=10)
    world.pass_time(10 * MINUTE)
    world.step_clock(-24 * HOUR)
    world.pass_time(10 * MINUTE)
    assert [text[-5:] for text in texts(world)] == ["often", "often"]
    world.pass_time(39 * MINUTE)
    assert "an hour" not in texts(world)[-1]
    world.pass_time(MINUTE)
    assert any(text.endswith("an hour") for text in texts(world))
    two_days = START + 48 * HOUR
    (row,) = [row for row in world.disk.rows() if row["message"] == "two days"]
    assert row["fireAt"] == two_days
    world.pass_time(48 * HOUR)
    assert [
        at
        for at, text in zip(world.sent_at, texts(world), strict=True)
        if text.endswith("two days")
    ] == [two_days]


@pytest.mark.requirement("schedule.clock-steps")
def test_rows_from_the_file_stay_on_the_clock_unless_made_at_what_is_now_to_come() -> None:
    world = ready()
    add(world, "old", inHours=10)
    world.pass_time(2 * HOUR)
    add(world, "new", inHours=10)
    world.boot()
    world.connect()
    world.step_clock(-HOUR)
    world.pass_time(30_000)
    due = {row["message"]: row["fireAt"] for row in world.disk.rows()}
    assert due == {"old": START + 10 * HOUR, "new": START + 11 * HOUR}


@pytest.mark.requirement("host.16", "policy.answer-codes")
def test_at_a_host_that_denies_wakes_only_a_probe_a_minute_and_the_retries_leave() -> None:
    world = ready(answer=refuse(-32002, "denied"))
    for n in range(1, 200):
        add(world, str(n), inSeconds=n)
    world.pass_time(1_000)
    assert len(world.pushes) == 1
    world.pass_time(200_000)
    assert len(world.pushes) == 4
    assert "denied" in world.text("reminder_add", message="y", inHours=1)
    assert len(world.pushes) == 8
    assert world.text("reminder_list").endswith("reminders wait and fire once when one can.")
    world.answer = accept
    world.pass_time(60_000)
    assert len(world.disk.rows()) == 5
    world.request("featureSets/update", GRANT)
    assert [row["message"] for row in world.disk.rows()] == ["y"]


@pytest.mark.requirement("reminder.twin")
def test_appointments_on_other_grids_are_no_twins() -> None:
    world = ready()
    add(world, "t", everyHours=1, atIso="2030-01-01T00:00:00Z")
    for at, twins in (("2031-05-05T00:07:00Z", 0), ("2031-05-05T03:00:00Z", 1)):
        result = world.call("reminder_add", message="t", everyHours=1, atIso=at)
        assert len(result["structuredContent"]["twins"]) == twins


@pytest.mark.requirement("schedule.clock-steps", "field.58")
@pytest.mark.parametrize("outcome", ["taken", "refused"])
def test_a_clock_set_back_while_a_push_is_out_does_not_stall_the_series(outcome: str) -> None:
    world = ready(answer=silence)
    add(world, everySeconds=5)
    world.pass_time(5_000)
    world.step_clock(-24 * HOUR)
    world.pass_time(1_000)
    world.answer_push(0, ACCEPTED if outcome == "taken" else refuse(-32603)({}))
    world.answer = accept
    world.pass_time(14_000)
    assert len(world.pushes) == 4
    ids = [push["eventId"] for push in world.pushes]
    assert (ids[0] == ids[1]) is (outcome == "refused")


@pytest.mark.requirement("schedule.clock-steps")
def test_a_recurring_row_from_the_file_is_due_within_its_interval_after_a_step_back() -> None:
    world = ready()
    add(world, "minutely", everySeconds=60)
    add(world, "first in two days", everySeconds=60, inHours=48)
    world.pass_time(30_000)
    world.boot()
    world.connect()
    rows = {row["message"]: row["fireAt"] for row in world.disk.rows()}
    world.step_clock(-10_000)
    world.pass_time(30_000)
    after = {row["message"]: row["fireAt"] for row in world.disk.rows()}
    assert after["first in two days"] == rows["first in two days"]
    assert 0 < after["minutely"] - world.wall <= 60_000


@pytest.mark.requirement("policy.replaces", "policy.answer-codes")
def test_a_denial_of_a_push_from_before_the_policy_blocks_nothing_under_it() -> None:
    world = ready(answer=silence)
    add(world, "before", inSeconds=1)
    world.pass_time(1_000)
    world.request("featureSets/update", GRANT)
    world.answer_push(0, refuse(-32001)({}))
    assert "delivery=ok" in world.text("heartbeat_status")
    add(world, "after", inSeconds=5)
    world.pass_time(5_000)
    assert texts(world)[-1].endswith("after")


@pytest.mark.requirement("seed.reminder.held", "host.39")
def test_the_status_says_that_reminders_are_held_and_since_when_does_not_move() -> None:
    world = ready(answer=refuse(-32603, "stopping"))
    add(world, everySeconds=60)
    world.pass_time(3 * MINUTE)
    assert "1 reminder is held, not taken by the host" in world.text("heartbeat_status")
    assert "held since 2026-09-21T14:14:20+00:00 [UTC]: " in world.text("reminder_list")
    world.answer = accept
    world.pass_time(MINUTE)
    assert "held" not in world.text("heartbeat_status")
