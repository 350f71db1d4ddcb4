"""The schedule over restarts, outages, suspends and clocks that are stepped."""

import pytest

from mcpl_heartbeat.actions import Document
from tests.session.heartbeats import HOUR, MINUTE, every_minute, ready
from tests.world import START, Disk


@pytest.mark.requirement("schedule.grid", "field.64", "host.28")
def test_restarts_neither_move_nor_starve_the_grid() -> None:
    world = every_minute()
    for _ in range(6):
        world.pass_time(40_000)
        world.boot()
        world.connect()
    assert world.sent_at == [START + n * MINUTE for n in (1, 2, 3, 4)]


@pytest.mark.requirement("schedule.missed-once", "host.27")
def test_ticks_missed_while_down_fire_once_and_the_grid_goes_on() -> None:
    world = every_minute()
    world.wall += 10 * MINUTE + 5_000
    world.monotonic += 10 * MINUTE + 5_000
    world.boot()
    world.connect()
    assert [push["eventId"].split("_")[1] for push in world.pushes] == [str(START + MINUTE)]
    world.pass_time(55_000)
    assert world.sent_at == [START + 10 * MINUTE + 5_000, START + 11 * MINUTE]


@pytest.mark.requirement("schedule.clock-steps", "field.58", "host.29")
def test_a_clock_set_back_stalls_nothing_and_set_right_again_fires_nothing_twice() -> None:
    world = every_minute()
    world.pass_time(30_000)
    world.step_clock(-HOUR)
    world.pass_time(30_000)
    assert len(world.pushes) == 1
    world.step_clock(HOUR)
    world.pass_time(59_000)
    assert len(world.pushes) == 1
    world.pass_time(1_000)
    assert len(world.pushes) == 2


@pytest.mark.requirement("schedule.clock-steps", "host.29")
def test_a_clock_set_ahead_or_a_suspend_costs_one_wake_and_then_the_grid() -> None:
    world = every_minute()
    world.step_clock(24 * HOUR)
    world.pass_time(30_000)
    assert len(world.pushes) == 1
    world.suspend(8 * HOUR)
    assert len(world.pushes) == 2
    assert (world.wall - START) % MINUTE == 30_000
    world.pass_time(30_000)
    assert len(world.pushes) == 3


@pytest.mark.requirement("schedule.grid")
def test_a_saved_wake_beyond_an_interval_is_brought_near() -> None:
    disk = Disk()
    disk.bytes[Document.CONFIG] = b'{"intervalSeconds":60,"nextAt":%d}' % (START + 10**9)
    world = ready(disk=disk)
    world.pass_time(MINUTE)
    assert len(world.pushes) == 1


@pytest.mark.requirement("schedule.clock-steps")
def test_a_heartbeat_keeps_its_time_over_a_clock_set_ahead_and_put_right() -> None:
    world = ready()
    world.call("heartbeat_configure", intervalHours=48)
    world.step_clock(24 * HOUR)
    world.pass_time(MINUTE)
    world.step_clock(-24 * HOUR)
    world.pass_time(48 * HOUR - MINUTE)
    assert world.sent_at == [START + 48 * HOUR]


@pytest.mark.requirement("schedule.clock-steps", "schedule.grid")
def test_a_saved_wake_never_waits_longer_than_an_interval_when_the_clock_is_set_back() -> None:
    world = every_minute()
    world.pass_time(30_000)
    world.boot()
    world.connect()
    world.step_clock(-24 * HOUR)
    world.pass_time(MINUTE)
    assert len(world.pushes) == 1
    assert (world.sent_at[0] - START) % MINUTE == 0


@pytest.mark.requirement("schedule.clock-steps")
def test_a_step_while_paused_is_reckoned_with_at_the_resume() -> None:
    world = ready()
    world.call("heartbeat_configure", intervalHours=1, paused=True)
    world.step_clock(5 * HOUR)
    world.pass_time(MINUTE)
    world.call("heartbeat_configure", paused=False)
    world.pass_time(MINUTE)
    world.step_clock(-5 * HOUR)
    world.pass_time(59 * MINUTE)
    assert len(world.pushes) == 1
