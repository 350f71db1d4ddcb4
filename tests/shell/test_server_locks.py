"""The server on files that another process holds, takes, or lets go."""

from typing import Any

import pytest
import trio.testing

from mcpl_heartbeat.actions import Action
from tests.shell.bench import Bench, bench_ticks, running, settle, until

pytestmark = pytest.mark.trio


@pytest.mark.requirement("file.lock-takeover")
async def test_standby_tries_every_2_s_and_takes_over(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with running(held_by="process 4711") as bench:
        await until(lambda: len(bench.core.openings) == 1)
        assert bench.core.standby
        await settle()
        mock_clock.jump(2)
        await until(lambda: bench.files.tries == 1)
        bench.files.held_by = None
        await settle()
        mock_clock.jump(2)
        await until(lambda: len(bench.core.openings) == 2)
        assert not bench.core.standby
        await settle()
        mock_clock.jump(10)
        await settle()
        assert bench.files.tries == 2


@pytest.mark.requirement("file.lock", "file.lock-takeover")
async def test_files_taken_at_a_save_are_told_after_it_and_taken_over_again_later(
    bench: Bench, mock_clock: trio.testing.MockClock
) -> None:
    bench.files.held_by, bench.files.taken = "process 4711", True
    bench.files.gate.clear()
    bench.send("save one\nsave two\n")
    await settle()
    bench.files.gate.set()
    await until(lambda: len(bench.core.outcomes) == 2)
    assert bench.core.heard == ["opened", "Taken", "opened", "NotSaved"]
    assert bench.core.openings[-1].held_by == "process 4711"
    assert bench.files.content == []
    bench.files.held_by = None
    await settle()
    mock_clock.jump(2)
    await until(lambda: len(bench.core.openings) == 3)
    assert not bench.core.standby
    await settle()
    mock_clock.jump(10)
    await settle()
    assert bench.files.tries == 1


@pytest.mark.requirement("file.lock")
async def test_files_taken_are_told_before_the_tick_that_would_send(
    bench: Bench, mock_clock: trio.testing.MockClock
) -> None:
    standby: list[bool] = []

    def look(_now: Any) -> list[Action]:
        standby.append(bench.core.standby)
        return []

    bench.core.on_tick = look
    bench.files.held_by, bench.files.taken = "process 4711", True
    bench.files.undisturbed = False
    mock_clock.jump(30)
    await bench_ticks(bench, 1)
    assert standby == [True]


@pytest.mark.requirement("file.lock")
async def test_locks_that_stand_cost_no_thread_at_a_tick(
    bench: Bench, mock_clock: trio.testing.MockClock
) -> None:
    mock_clock.jump(30)
    await bench_ticks(bench, 1)
    assert bench.files.checks == 0
    bench.files.undisturbed = False
    await settle()
    mock_clock.jump(30)
    await bench_ticks(bench, 2)
    assert bench.files.checks == 1
    assert len(bench.core.openings) == 1
