"""The desk: calls from many tasks on one store, under a clock in hand."""

from pathlib import Path

import pytest
import trio
import trio.testing

from mcpl_heartbeat.shell import desk as desks
from tests.store.desk_rig import running, until


@pytest.mark.requirement("watch.desk.waits-for-opening")
@pytest.mark.trio
async def test_a_call_made_before_the_store_is_open_waits_for_it(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        assert rig.desk.trouble == "it is not open yet"
        assert (await rig.register()).created
        assert rig.desk.trouble is None
        assert rig.store.opened == 1


@pytest.mark.requirement("watch.desk.shared-commit", "watch.desk.order")
@pytest.mark.trio
async def test_calls_that_wait_share_a_transaction_in_their_order(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.batches.clear()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        generations: list[tuple[int, int]] = []

        async def beat(number: int) -> None:
            result = await rig.call("heartbeat", scope="s", disarm=number % 2 == 1)
            generations.append((number, result.generation))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat, 0)
            await until(rig.store.at_the_gate.is_set)
            for number in range(1, 301):
                nursery.start_soon(beat, number)
                await trio.testing.wait_all_tasks_blocked()
            rig.store.gate.set()
        assert [len(batch) for batch in rig.store.batches] == [1, 256, 44]
        assert sorted(generations) == [(number, number // 2 + 1) for number in range(301)]
        assert rig.desk.counters.beats == 151


@pytest.mark.requirement("watch.desk.reads-beside", "field.46.answers-meanwhile")
@pytest.mark.trio
async def test_reads_wait_for_no_write(tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.call, "heartbeat")
            await until(rig.store.at_the_gate.is_set)
            assert (await rig.call("whoami")).address.startswith("agent:")
            stats = await rig.desk.stats()
            assert stats is not None
            assert stats.armed == 0
            rig.store.gate.set()


@pytest.mark.requirement("watch.desk.reads-beside", "watch.store.settled-first")
@pytest.mark.trio
async def test_a_read_that_meets_a_due_switch_settles_it(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        await rig.call("heartbeat", expect_within_seconds=2)
        rig.store.clock.now += 2_000
        [view] = (await rig.call("switch_status", scope="s")).switches
        assert view.state == "fired"


@pytest.mark.requirement("watch.desk.sweeps")
@pytest.mark.trio
async def test_it_sweeps_twice_a_second_and_counts_what_it_finds(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        await rig.call("heartbeat", expect_within_seconds=2)
        await rig.after(1.5)
        assert rig.desk.counters.fires == 0
        await rig.after(0.5)
        assert rig.swept == len(rig.store.sweeps) == 5
        assert rig.desk.counters.fires == 1
        assert rig.desk.counters.late.counts[0] == 1


@pytest.mark.requirement("watch.desk.bounded-rate")
@pytest.mark.trio
async def test_many_due_at_once_fire_in_bounded_sweeps_with_calls_between(
    tmp_path: Path, mock_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "FIRES", 10)
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        async with trio.open_nursery() as nursery:
            for number in range(35):
                nursery.start_soon(
                    lambda number=number: rig.call(
                        "heartbeat", scope=str(number), expect_within_seconds=2
                    )
                )
        rig.store.clock.now += 2_000
        rig.store.sweeps.clear()
        mock_clock.jump(0.5)
        answered = 0
        while rig.desk.counters.fires < 35:
            await rig.call("heartbeat", scope="live")
            answered += 1
            assert len(rig.store.sweeps) <= answered + 1
        assert [sweep.fired for sweep in rig.store.sweeps][:4] == [10, 10, 10, 5]


@pytest.mark.requirement("watch.desk.chores")
@pytest.mark.trio
async def test_housekeeping_comes_after_a_minute_and_then_hourly(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        for seconds, tidied in ((59, 0), (1, 1), (3_599, 1), (1, 2)):
            rig.store.clock.now += seconds * 1_000
            mock_clock.jump(seconds)
            swept = rig.swept
            await until(lambda swept=swept: rig.swept > swept)
            await rig.call("heartbeat")
            assert rig.store.tidied == tidied


@pytest.mark.requirement("watch.store.housekeeping-pieces")
@pytest.mark.trio
async def test_housekeeping_goes_on_after_the_next_sweep_while_there_is_more(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.pieces = 3
        await rig.after(59.5)
        for tidied in (1, 2, 3, 3):
            await rig.after(0.5)
            await rig.call("heartbeat")
            assert rig.store.tidied == tidied


@pytest.mark.requirement("watch.http.metrics", "watch.desk.counters")
@pytest.mark.trio
async def test_a_fire_that_a_call_found_is_counted_like_a_sweep_s(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        await rig.call("heartbeat", expect_within_seconds=2)
        rig.store.clock.now += 2_200
        assert (await rig.call("heartbeat")).fired
        await rig.after(0.5)
        assert rig.desk.counters.fires == 1
        assert sum(rig.desk.counters.late.counts) == 1
        assert rig.desk.counters.late.total == pytest.approx(0.2)
        await rig.after(0.5)
        assert rig.desk.counters.fires == 1
