"""Reminders while the clock is stepped, the machine sleeps, or an hour comes twice."""

import datetime
import zoneinfo

import pytest

from mcpl_heartbeat.times import Zone
from tests.session.reminders import HOUR, MINUTE, add, ready, texts
from tests.world import ACCEPTED, START, World, accept, refuse, silence

NEW_YORK = Zone("America/New_York", zoneinfo.ZoneInfo("America/New_York"))


@pytest.mark.requirement("reminder.catch-up", "seed.reminder.catch-up-once", "field.56")
def test_after_a_suspend_one_for_all_the_missed_periods_then_the_grid() -> None:
    world = ready()
    add(world, everySeconds=5)
    world.suspend(12_000)
    world.pass_time(8_000)
    assert world.sent_at == [START + 12_000, START + 15_000, START + 20_000]


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


@pytest.mark.requirement("schedule.clock-steps", "file.lock-takeover")
def test_a_step_before_a_take_over_is_reckoned_with_after_it() -> None:
    first = ready()
    first.disk.held_by = "process 4711"
    second = World(first.disk)
    second.connect()
    second.step_clock(5 * HOUR)
    second.pass_time(MINUTE)
    first.disk.held_by = None
    second.open_files()
    add(second, "soon", inSeconds=60)
    second.step_clock(-5 * HOUR)
    second.pass_time(90_000)
    assert [text[-4:] for text in texts(second)] == ["soon"]
