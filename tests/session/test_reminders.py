"""Reminders, seen from outside: when they leave, what they say, what becomes of them."""

import zoneinfo
from typing import Any

import pytest

from mcpl_heartbeat.times import Zone
from tests.session.reminders import BLOCKED, HOUR, MINUTE, add, ready, texts
from tests.world import ACCEPTED, GRANT, START, World, silence

DUPLICATE = {"result": {"accepted": False, "reason": "duplicate"}}
LOS_ANGELES = Zone("America/Los_Angeles", zoneinfo.ZoneInfo("America/Los_Angeles"))


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
    assert world.text("reminder_list") == "0 reminder(s)."


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


@pytest.mark.requirement("reminder.list-pages")
def test_an_offset_past_the_end_is_told_so() -> None:
    world = ready()
    add(world, inHours=1)
    assert world.text("reminder_list", offset=5).endswith("offset 5 is past the last of them.")


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


@pytest.mark.requirement("reminder.twin")
def test_appointments_on_other_grids_are_no_twins() -> None:
    world = ready()
    add(world, "t", everyHours=1, atIso="2030-01-01T00:00:00Z")
    for at, twins in (("2031-05-05T00:07:00Z", 0), ("2031-05-05T03:00:00Z", 1)):
        result = world.call("reminder_add", message="t", everyHours=1, atIso=at)
        assert len(result["structuredContent"]["twins"]) == twins
