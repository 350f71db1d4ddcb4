"""The desk when the store is in trouble, hangs, or is left."""

import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from mcpl_heartbeat.shell import desk as desks
from mcpl_heartbeat.shell.counters import Histogram
from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.storage.store.ports import NeedsUpgrade, StoreError
from tests.store.desk_rig import Watched, failed, running, until
from tests.store.world import ARGUMENTS, SECRET


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


@pytest.mark.requirement("watch.desk.said-once")
@pytest.mark.trio
async def test_trouble_that_comes_and_goes_is_logged_once_with_its_end(
    tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpl_heartbeat")
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        for _ in range(5):
            rig.store.trouble = StoreError("database or disk is full")
            failed(await rig.call("heartbeat"))
            rig.store.trouble = None
            mock_clock.jump(1)
            await rig.call("heartbeat")
    assert [record.getMessage() for record in caplog.records] == [
        "The store cannot be used now: database or disk is full. It is tried again.",
        "The store can be used again.",
    ]


@pytest.mark.requirement("watch.desk.hung")
@pytest.mark.trio
async def test_a_store_that_hangs_is_in_trouble(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        rig.store.at_the_gate.clear()
        rig.store.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.call, "heartbeat")
            await until(rig.store.at_the_gate.is_set)
            mock_clock.jump(11)
            assert rig.desk.trouble is None
            mock_clock.jump(1)
            assert rig.desk.trouble == "it has not answered for 12 s"
            # Nobody else has to wait to be told so, but for those whom it still answers.
            assert "for 12 s" in failed(await rig.call("heartbeat")).message
            with pytest.raises(StoreError, match="for 12 s"):
                await rig.desk.identify(SECRET)
            assert (await rig.call("whoami")).address
            rig.store.gate.set()
        await until(lambda: rig.desk.trouble is None)
        assert (await rig.call("heartbeat")).state == "armed"


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

        async def identify() -> None:
            with pytest.raises(StoreError, match="has not answered"):
                await rig.desk.identify(SECRET)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "out")
            await until(rig.store.at_the_gate.is_set)
            nursery.start_soon(call, "waiting")
            nursery.start_soon(identify)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(desks.PATIENCE)
        assert [failed(outcome).code for outcome in outcomes] == ["unavailable"] * 2
        rig.store.gate.set()
        await until(lambda: rig.desk.trouble is None)
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
async def test_a_fault_of_ours_in_the_housekeeping_hides_nothing_of_the_sweep(
    tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, mock_clock) as rig:
        await rig.register()
        await rig.call("heartbeat", expect_within_seconds=60)
        rig.store.trouble_tidying = RuntimeError("a bug\nDETAIL: what an agent has said")
        await rig.after(61)
        assert rig.store.tidied == 1
        assert rig.desk.counters.fires == 1
    assert caplog.text.count("a bug") == 1
    assert "DETAIL" not in caplog.text


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
