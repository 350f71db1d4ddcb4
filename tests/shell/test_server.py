"""The server's tasks in one process, over a socket pair and with trio's own clock."""

import logging
import re
import threading
from typing import Any

import pytest
import trio
import trio.testing

from mcpl_heartbeat.actions import Action, NotSaved
from mcpl_heartbeat.shell import streams
from tests.shell.bench import Bench, running, settle, until

pytestmark = pytest.mark.trio


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
    bench.sink.watch = trio.sleep_forever
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
