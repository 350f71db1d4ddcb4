"""The server's alarms, with trio's own clock: when a tick comes."""

import pytest
import trio.testing

from mcpl_heartbeat.actions import WakeAt
from tests.shell.bench import Bench, bench_ticks, settle

pytestmark = pytest.mark.trio


@pytest.mark.requirement("schedule.clock-steps")
async def test_tick_comes_when_its_moment_does(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    start = bench.clock.now().wall
    bench.send("wake 5000\n")
    await settle()
    mock_clock.jump(4.999)
    await settle()
    assert bench.core.ticks == []
    mock_clock.jump(0.001)
    await settle()
    assert [tick.wall - start for tick in bench.core.ticks] == [5000]
    mock_clock.jump(20)
    await settle()
    assert len(bench.core.ticks) == 1, "a moment that was reached is used up"


@pytest.mark.requirement("schedule.clock-steps")
async def test_a_later_alarm_replaces_the_one_before(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    bench.send("wake 5000\n")
    await settle()
    bench.send("wake 9000\n")
    await settle()
    mock_clock.jump(8.999)
    await settle()
    assert bench.core.ticks == []
    mock_clock.jump(0.001)
    await settle()
    assert len(bench.core.ticks) == 1


@pytest.mark.requirement("schedule.clock-steps")
async def test_no_pause_is_longer_than_30_s(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    for _ in range(3):
        mock_clock.jump(29)
        bench.send("wake 86400000\n")
        await settle()
        mock_clock.jump(1)
        await settle()
    assert [tick.monotonic for tick in bench.core.ticks] == [30_000, 60_000, 90_000]


@pytest.mark.requirement("schedule.clock-steps", "field.59")
async def test_a_wall_clock_set_ahead_is_noticed_within_30_s(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    bench.send("wake 3600000\n")
    await settle()
    bench.clock.step += 3_600_000
    mock_clock.jump(30)
    await settle()
    assert len(bench.core.ticks) == 1
    mock_clock.jump(29)
    await settle()
    assert len(bench.core.ticks) == 1


@pytest.mark.requirement("schedule.clock-steps", "field.58")
async def test_a_wall_clock_set_back_leaves_the_monotonic_alarm_where_it_is(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    bench.core.on_tick = lambda now: [WakeAt(None, 50_000)] if now.monotonic < 50_000 else []
    bench.send("wake 10000\n")
    await settle()
    bench.clock.step -= 3_600_000
    for second in (10, 20, 20):
        mock_clock.jump(second)
        await settle()
    # At 10 s the wall clock turns out to be elsewhere; that moment stays in force.
    assert [tick.monotonic for tick in bench.core.ticks] == [10_000, 50_000]


async def test_an_alarm_in_the_past_on_every_tick_leaves_the_others_their_turn(
    bench: Bench,
) -> None:
    bench.core.on_tick = lambda now: [WakeAt(now.wall - 1, None)]
    bench.send("wake -1\n")
    await bench_ticks(bench, 3)
    bench.send("ping\n")
    assert await bench.line() == b"pong\n"
