"""The server's tasks in one process, over a socket pair and with trio's own clock."""

import logging
import os
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from mcpl_heartbeat.actions import Action, NotSaved, WakeAt
from mcpl_heartbeat.shell import streams
from mcpl_heartbeat.shell.server import Server
from tests.shell.fakes import FakeClock, FakeCore, FakeFiles

pytestmark = pytest.mark.trio


class Bench:
    """A running server and the host's ends of its two pipes."""

    def __init__(self) -> None:
        self.core = FakeCore()
        self.files = FakeFiles()
        self.clock = FakeClock()
        self._from_host, self._to_server = os.pipe()
        self.output, self._server_output = socket.socketpair()
        self._server_output.setblocking(False)
        self.sink = streams.Sink(self._server_output.fileno())
        self.source = streams.Source(self._from_host)
        self.server = Server(self.core, self.source, self.sink, self.files, self.clock)
        self.host = trio.socket.from_stdlib_socket(self.output)
        self.ended = trio.Event()

    async def run(self) -> None:
        await self.server.run()
        self._server_output.close()
        self.ended.set()

    def send(self, text: str) -> None:
        os.write(self._to_server, text.encode())

    def hang_up(self) -> None:
        if self._to_server >= 0:
            os.close(self._to_server)
            self._to_server = -1

    async def line(self) -> bytes:
        got = b""
        while not got.endswith(b"\n"):
            part = await self.host.recv(65536)
            assert part, "the server closed its output"
            got += part
        return got

    def taken(self) -> bytes:
        """Everything that has reached the host by now."""
        self.output.setblocking(False)
        got = b""
        while True:
            try:
                part = self.output.recv(1 << 20)
            except BlockingIOError:
                return got
            if not part:
                return got
            got += part

    def clear(self) -> None:
        self.hang_up()
        self.files.gate.set()
        os.close(self._from_host)
        self.host.close()
        self._server_output.close()


@asynccontextmanager
async def running(**files: object) -> AsyncIterator[Bench]:
    made = Bench()
    for name, value in files.items():
        setattr(made.files, name, value)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        await trio.testing.wait_all_tasks_blocked()
        yield made
        nursery.cancel_scope.cancel()
    made.clear()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as made:
        await until(lambda: len(made.core.openings) == 1)
        yield made


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that a thread does, in real time, with a bound far above any lateness."""
    for _ in range(6000):
        if condition():
            return
        await trio.to_thread.run_sync(time.sleep, 0.01)
    raise AssertionError("it never came")


async def test_all_lines_of_a_chunk_leave_in_one_write(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[bytes] = []
    monkeypatch.setattr(bench.sink, "write", writes.append)
    bench.send("ping\nping\nping\n")
    await settle()
    assert writes == [b"pong\n" * 3]


@pytest.mark.requirement("field.8")
async def test_a_last_line_without_newline_is_answered(bench: Bench) -> None:
    bench.send("ping")
    bench.hang_up()
    await bench.ended.wait()
    assert bench.taken() == b"pong\n"


@pytest.mark.requirement("stdio.ends-without-loss", "field.1")
async def test_the_end_of_input_waits_for_a_save_under_way(bench: Bench) -> None:
    bench.files.gate.clear()
    bench.send("save a\n")
    bench.hang_up()
    await settle()
    assert not bench.ended.is_set()
    bench.files.gate.set()
    await bench.ended.wait()
    assert bench.files.content == ["a"]
    assert bench.taken() == b"saved\n"


@pytest.mark.requirement("stdio.ends-without-loss")
async def test_the_end_of_input_waits_for_the_files_to_be_opened() -> None:
    async with running(slow_open=True, gate=threading.Event()) as bench:
        bench.send("ping\n")
        bench.hang_up()
        await settle()
        assert bench.taken() == b"pong\n", "what needs no file is answered meanwhile"
        assert not bench.ended.is_set()
        bench.files.gate.set()
        await bench.ended.wait()
        assert len(bench.core.openings) == 1


@pytest.mark.requirement("stdio.ends-quickly")
async def test_a_save_that_hangs_is_abandoned(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    bench.files.gate.clear()
    bench.send("save a\nping\n")
    bench.hang_up()
    await settle()
    assert not bench.ended.is_set()
    mock_clock.jump(1.5)
    await settle()
    assert bench.ended.is_set()
    assert bench.taken() == b"pong\n"


@pytest.mark.requirement("stdio.ends-quickly")
async def test_a_host_that_reads_nothing_more_is_not_waited_for(
    mock_clock: trio.testing.MockClock, bench: Bench
) -> None:
    bench.send("flood 4000000\n")
    bench.hang_up()
    await settle()
    assert not bench.ended.is_set()
    mock_clock.jump(1.5)
    await settle()
    assert bench.ended.is_set()


@pytest.mark.requirement("stdio.ends-quickly", "field.7")
async def test_a_closed_output_is_noticed_while_idle(bench: Bench) -> None:
    bench.output.close()
    await bench.ended.wait()
    assert "end" in bench.core.calls


@pytest.mark.requirement("field.7")
async def test_a_closed_output_is_noticed_by_the_write(bench: Bench) -> None:
    bench.sink.watch = trio.sleep_forever  # type: ignore[method-assign]
    bench.output.close()
    bench.send("ping\n")
    await bench.ended.wait()


async def test_stop_leaves_as_the_end_of_input_does(bench: Bench) -> None:
    bench.files.gate.clear()
    bench.send("save a\n")
    await settle()
    bench.server.stop()
    await settle()
    bench.files.gate.set()
    await bench.ended.wait()
    assert bench.core.calls == ["start", "end"]
    assert bench.taken() == b"saved\n"


@pytest.mark.requirement("file.slow-save", "mcp.ping-meanwhile")
async def test_a_slow_save_delays_only_its_own_reply(bench: Bench) -> None:
    bench.files.gate.clear()
    bench.send("save a\n")
    await settle()
    bench.send("ping\n")
    assert await bench.line() == b"pong\n"
    bench.files.gate.set()
    assert await bench.line() == b"saved\n"


async def test_saves_of_a_document_are_made_one_at_a_time_in_order(bench: Bench) -> None:
    bench.files.gate.clear()
    bench.send("".join(f"save {n}\n" for n in range(20)))
    await settle()
    bench.files.gate.set()
    await until(lambda: len(bench.core.outcomes) == 20)
    assert bench.files.content == [str(n) for n in range(20)]


async def test_a_save_asked_for_by_saved_is_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = bench.core.saved

    def saved(*args: Any) -> list[Action]:
        actions = real(*args)
        if len(bench.core.outcomes) == 1:
            actions += bench.core._one("save again", args[-1])
        return actions

    monkeypatch.setattr(bench.core, "saved", saved)
    bench.send("save once\n")
    await until(lambda: len(bench.core.outcomes) == 2)
    assert bench.files.content == ["once", "again"]


async def test_what_a_save_throws_is_an_outcome_and_one_log_line(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.send("save breaks\n")
    assert await bench.line() == b"not saved\n"
    (outcome,) = bench.core.outcomes
    assert isinstance(outcome, NotSaved)
    assert "made of cheese" in outcome.reason
    (said,) = caplog.messages
    assert said.startswith("LookupError: the disk is made of cheese (at ")


async def test_a_mistake_in_the_core_is_one_log_line_and_the_loop_goes_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.send("break it\n")
    await settle()
    bench.send("ping\n")
    assert await bench.line() == b"pong\n"
    (said,) = caplog.messages
    assert re.fullmatch(r"LookupError: it \(at \S+fakes\.py:\d+\)", said)


async def test_logs_of_the_core_carry_their_level(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.send("log %s is no format\n")
    await settle()
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.WARNING, "%s is no format")
    ]


@pytest.mark.requirement("stdio.host-stops-reading")
async def test_a_host_that_stops_reading_stops_neither_saves_nor_reading(bench: Bench) -> None:
    bench.send("flood 3000000\n")
    await settle()
    assert bench.sink.waiting > 0
    bench.send("save a\n")
    await until(lambda: bench.files.content == ["a"])
    bench.send("ping\n")
    await settle()
    assert bench.core.chunks == 3
    got = b""
    while not got.endswith(b"pong\n"):
        got += await bench.host.recv(1 << 20)
    assert got == b"x" * 3_000_000 + b"\nsaved\npong\n"


@pytest.mark.requirement("stdio.host-stops-reading")
async def test_reading_stops_while_too_much_waits_and_goes_on_when_it_is_taken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LIMIT", 1_000_000)
    monkeypatch.setattr(streams.Sink.room, "__defaults__", (1_000_000,))
    bench.send("flood 3000000\n")
    await settle()
    bench.send("ping\n")
    await settle()
    assert bench.core.chunks == 1
    got = b""
    while not got.endswith(b"pong\n"):
        got += await bench.host.recv(1 << 20)
    assert bench.core.chunks == 2


@pytest.mark.requirement("stdio.host-stops-reading", "stdio.ends-quickly")
async def test_a_host_that_leaves_without_reading_is_noticed_all_the_same(
    mock_clock: trio.testing.MockClock, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LIMIT", 1_000_000)
    monkeypatch.setattr(streams.Sink.room, "__defaults__", (1_000_000,))
    bench.send("flood 3000000\n")
    await settle()
    bench.send("save a\n")
    bench.hang_up()
    await settle()
    mock_clock.jump(1.5)
    await until(lambda: bench.files.content == ["a"])
    await bench.ended.wait()


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


async def bench_ticks(bench: Bench, count: int) -> None:
    await until(lambda: len(bench.core.ticks) >= count)


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
    assert bench.core.told == ["opened", "Taken", "opened", "NotSaved"]
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


async def test_files_that_cannot_be_opened_at_all_are_a_trouble() -> None:
    async with running(breaks=True) as bench:
        await until(lambda: len(bench.core.openings) == 1)
        (opening,) = bench.core.openings
        for document in (opening.config, opening.reminders):
            assert document.trouble is not None
            assert "no files today" in document.trouble.text
            assert not document.trouble.savable
        bench.send("ping\n")
        assert await bench.line() == b"pong\n"
