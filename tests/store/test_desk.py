"""The desk: calls from many tasks on one store, whatever becomes of it, under a clock in hand."""

import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from mcpl_heartbeat.shell import desk as desks
from mcpl_heartbeat.shell.counters import Histogram
from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.storage.store.ports import Ask, NeedsUpgrade, Outcome, StoreError, Swept
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.failures import Failure
from tests.store.world import ARGUMENTS, SECRET, HandClock


class Watched(Store):
    """A real store that notes how it is used, can be held up and made to fail."""

    def __init__(self, url: str) -> None:
        self.clock = HandClock()
        super().__init__(url, clock=self.clock)
        self.batches: list[list[str]] = []
        self.sweeps: list[Swept] = []
        self.opened = self.closed = self.tidied = 0
        self.trouble: Exception | None = None
        self.trouble_sweeping: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.at_the_gate = threading.Event()

    def open(self) -> None:
        self.opened += 1
        self._fail()
        super().open()

    def close(self) -> None:
        self.closed += 1
        super().close()

    def answer(self, asks: Sequence[Ask]) -> list[Outcome]:
        self._pass()
        self._fail()
        self.batches.append([each.tool for each in asks])
        return super().answer(asks)

    def look(self, each: Ask) -> Outcome:
        self._fail()
        return super().look(each)

    def sweep(self, most: int) -> Swept:
        self._fail()
        if self.trouble_sweeping is not None:
            raise self.trouble_sweeping
        self.sweeps.append(super().sweep(most))
        return self.sweeps[-1]

    def present(self, agent: str, token: str, *, here: bool) -> None:
        self._fail()
        super().present(agent, token, here=here)

    def housekeeping(self) -> None:
        self.tidied += 1
        super().housekeeping()

    def _pass(self) -> None:
        self.at_the_gate.set()
        assert self.gate.wait(30)

    def _fail(self) -> None:
        if self.trouble is not None:
            raise self.trouble


class Rig:
    """A desk that runs, its store and its clock."""

    def __init__(self, store: Watched, desk: Desk, clock: trio.testing.MockClock) -> None:
        self.store, self.desk, self.clock = store, desk, clock

    async def call(self, tool: str, **arguments: Any) -> Any:
        if tool == "heartbeat":
            arguments = {"scope": "s", "expect_within_seconds": 60, **arguments}
        return await self.desk.call(tool, ARGUMENTS[tool](**arguments), SECRET)

    async def register(self) -> Any:
        return await self.call("register", agent_secret=SECRET)

    async def after(self, seconds: float) -> None:
        """Let so much time pass, for the store too, and see what was due done."""
        for _ in range(round(seconds / 0.5)):
            swept = self.swept
            self.store.clock.now += 500
            self.clock.jump(0.5)
            await until(lambda swept=swept: self.swept > swept)

    @property
    def swept(self) -> int:
        """How many sweeps the desk is done with."""
        return sum(self.desk.counters.sweeps.counts)


async def until(true: Callable[[], object]) -> None:
    """Let the other tasks and their threads go on until it is so."""
    with trio.testing.assert_checkpoints():
        await trio.lowlevel.checkpoint()
    while not true():
        await trio.to_thread.run_sync(lambda: None)


@asynccontextmanager
async def running(tmp_path: Path, clock: trio.testing.MockClock) -> AsyncIterator[Rig]:
    store = Watched(f"sqlite:///{tmp_path}/store.db")
    rig = Rig(store, Desk(store), clock)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.desk.run)
            yield rig
            nursery.cancel_scope.cancel()
    finally:
        store.gate.set()
        store.trouble = None
        store.close()


def failed(outcome: Any) -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert (outcome.code, outcome.status) == ("unavailable", 503)
    return outcome


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


@pytest.mark.requirement("watch.desk.unavailable", "field.49.unavailable")
@pytest.mark.parametrize(
    ("tool", "arguments", "flag"),
    [
        ("lease", {"key": "k", "holder": "h"}, "acquired"),
        ("lease_renew", {"key": "k", "holder": "h", "fence": "f"}, "renewed"),
        ("lease_release", {"key": "k", "holder": "h", "fence": "f"}, "released"),
        ("whoami", {}, None),
        ("heartbeat", {}, None),
    ],
)
@pytest.mark.trio
async def test_while_the_store_cannot_be_used_the_state_is_unknown(
    tmp_path: Path,
    mock_clock: trio.testing.MockClock,
    tool: str,
    arguments: dict[str, str],
    flag: str | None,
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.trouble = StoreError("database or disk is full")
        for _ in range(2):
            outcome = failed(await rig.call(tool, **arguments))
            assert "database or disk is full" in outcome.message
            assert "do not proceed" in outcome.next
            told = msgspec.to_builtins(outcome)
            assert {name for name in told if told[name] is None} == ({flag} if flag else set())


@pytest.mark.requirement("watch.desk.tries-again")
@pytest.mark.trio
async def test_it_is_tried_again_ever_more_seldom_and_at_once_for_whoever_calls(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.trouble = StoreError("gone")
        failed(await rig.call("heartbeat"))
        assert rig.desk.trouble == "gone"
        assert await rig.desk.stats() is None
        tries = rig.store.opened
        for pause in (0.5, 1.0, 2.0, 4.0, 5.0, 5.0):
            await until(lambda: rig.desk._next_try > trio.current_time())
            mock_clock.jump(pause - 0.1)
            await trio.testing.wait_all_tasks_blocked()
            assert rig.store.opened == tries
            mock_clock.jump(0.2)
            tries += 1
            await until(lambda tries=tries: rig.store.opened == tries)
        # Within half a second of a try nobody waits for another.
        failed(await rig.call("heartbeat"))
        assert rig.store.opened == tries
        mock_clock.jump(0.5)
        failed(await rig.call("heartbeat"))
        assert rig.store.opened == tries + 1
        rig.store.trouble = None
        mock_clock.jump(0.5)
        assert (await rig.call("heartbeat")).state == "armed"
        assert rig.desk.trouble is None


@pytest.mark.requirement("watch.desk.said-once")
@pytest.mark.trio
async def test_trouble_and_its_end_are_logged_once(
    tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpl_heartbeat")
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.trouble = NeedsUpgrade("run: mcpl-heartbeat store upgrade")
        for _ in range(5):
            failed(await rig.call("heartbeat"))
            mock_clock.jump(1)
        rig.store.trouble = None
        mock_clock.jump(1)
        await rig.call("heartbeat")
    assert [record.getMessage() for record in caplog.records] == [
        "The store cannot be used now: run: mcpl-heartbeat store upgrade. It is tried again.",
        "The store can be used again.",
    ]


@pytest.mark.requirement("watch.desk.patience")
@pytest.mark.trio
async def test_a_call_that_hangs_is_told_that_nobody_knows(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        outcomes: list[Any] = []

        async def call(scope: str) -> None:
            outcomes.append(await rig.call("heartbeat", scope=scope))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "out")
            await until(rig.store.at_the_gate.is_set)
            nursery.start_soon(call, "waiting")
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(desks.PATIENCE)
        assert [failed(outcome).code for outcome in outcomes] == ["unavailable"] * 2
        rig.store.gate.set()
        # The one that had not begun is not done behind its caller's back.
        await rig.call("heartbeat", scope="later")
        listed = (await rig.call("switch_status")).switches
        assert [view.scope for view in listed] == ["later", "out"]


@pytest.mark.requirement("watch.desk.cancelled")
@pytest.mark.trio
async def test_a_call_that_was_cancelled_before_its_turn_is_not_done(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: rig.call("heartbeat", scope="first"))
            await until(rig.store.at_the_gate.is_set)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as inner:
                    inner.start_soon(lambda: rig.call("heartbeat", scope="cancelled"))
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
            rig.store.gate.set()
        listed = (await rig.call("switch_status")).switches
        assert [view.scope for view in listed] == ["first"]


@pytest.mark.requirement("watch.desk.bounded-memory")
@pytest.mark.trio
async def test_calls_beyond_what_may_wait_are_refused(
    tmp_path: Path, mock_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "WAITING", 3)
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.call, "heartbeat")
            await until(rig.store.at_the_gate.is_set)
            for _ in range(3):
                nursery.start_soon(rig.call, "heartbeat")
            await trio.testing.wait_all_tasks_blocked()
            assert "too many" in failed(await rig.call("heartbeat")).message
            rig.store.gate.set()


@pytest.mark.requirement("watch.desk.faults")
@pytest.mark.trio
async def test_a_fault_of_ours_in_a_sweep_stops_nobody_s_call(
    tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        rig.store.trouble_sweeping = RuntimeError("a bug")
        await rig.register()
        for _ in range(3):
            mock_clock.jump(0.5)
            assert (await rig.call("heartbeat")).state == "armed"
    assert caplog.text.count("a bug") == 1


@pytest.mark.requirement("watch.desk.faults")
@pytest.mark.trio
async def test_a_fault_of_ours_in_a_call_is_no_trouble_of_the_store(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.trouble = RuntimeError("a bug")
        assert "a bug" not in failed(await rig.call("heartbeat")).message
        with pytest.raises(StoreError, match="fault of the server"):
            await rig.desk.present("a", "token", here=True)
        rig.store.trouble = None
        assert (await rig.call("heartbeat")).state == "armed"


@pytest.mark.requirement("watch.desk.pushes")
@pytest.mark.trio
async def test_news_presence_and_identity_go_the_same_way(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        told = await rig.register()
        who = await rig.desk.identify(SECRET)
        assert who is not None
        assert told.address == f"agent:{who.agent}"
        assert await rig.desk.identify("x" * 40) is None
        await rig.desk.present(who.agent, "token", here=True)
        result = await rig.call(
            "heartbeat",
            expect_within_seconds=2,
            on_expiry=["queue_alert"],
            notify_address=told.address,
        )
        assert result.alert_delivery == "push"
        await rig.after(2)
        news = await rig.desk.news(who.agent, who.namespace, "token", 10)
        [alert] = news.alerts
        await rig.desk.pushed("token", [alert.seq], taken=True)
        assert (await rig.desk.news(who.agent, who.namespace, "token", 10)).alerts == ()
        rig.store.trouble = StoreError("gone")
        failed(await rig.call("heartbeat"))
        with pytest.raises(StoreError, match="gone"):
            await rig.desk.news(who.agent, who.namespace, "token", 10)


@pytest.mark.requirement("watch.desk.leaves")
@pytest.mark.trio
async def test_it_leaves_when_what_waits_is_answered(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        outcomes: list[Any] = []

        async def call(scope: str) -> None:
            outcomes.append(await rig.call("heartbeat", scope=scope))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "a")
            await until(rig.store.at_the_gate.is_set)
            nursery.start_soon(call, "b")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(rig.desk.aclose)
            await trio.testing.wait_all_tasks_blocked()
            assert "leaving" in failed(await rig.call("heartbeat")).message
            rig.store.gate.set()
        assert [outcome.state for outcome in outcomes] == ["armed", "armed"]
        assert rig.store.closed == 1
        assert "leaving" in failed(await rig.call("whoami")).message
        await rig.desk.aclose()


@pytest.mark.requirement("watch.desk.leaves")
@pytest.mark.trio
async def test_it_leaves_in_time_though_the_store_hangs(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        outcomes: list[Any] = []

        async def call() -> None:
            outcomes.append(await rig.call("heartbeat"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await until(rig.store.at_the_gate.is_set)
            nursery.start_soon(rig.desk.aclose, 2.0)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(2.0)
        failed(outcomes[0])


@pytest.mark.requirement("watch.desk.leaves")
@pytest.mark.trio
async def test_one_that_never_ran_leaves_at_once(tmp_path: Path) -> None:
    desk = Desk(Watched(f"sqlite:///{tmp_path}/store.db"))
    await desk.aclose()
    failed(await desk.call("whoami", ARGUMENTS["whoami"](), None))


@pytest.mark.requirement("watch.desk.counters")
def test_a_histogram_counts_by_its_bounds() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 1.0, 7.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]
    assert histogram.total == pytest.approx(8.65)
    assert Histogram((1.0,)).counts == [0, 0]
