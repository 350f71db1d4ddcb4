"""Log lines: their form, and that no reader of stderr can hold the server up."""

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from mcpl_heartbeat.shell import stderr

STAMP = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Bench:
    """A handler on a pipe."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        os.set_blocking(self.out, False)
        self.handler = stderr.StderrHandler(self.into)

    def log(self, text: str, level: int = logging.INFO) -> None:
        self.handler.handle(logging.LogRecord("n", level, "f", 1, text, None, None))

    def read(self) -> bytes:
        got = b""
        with suppress(BlockingIOError):
            while part := os.read(self.out, 65536):
                got += part
        return got

    def fill(self) -> None:
        """Leave no room, as a host does that never reads."""
        os.set_blocking(self.into, False)
        with suppress(BlockingIOError):
            while True:
                os.write(self.into, b"." * 4096)
        os.set_blocking(self.into, True)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    os.close(made.out)
    os.close(made.into)


def test_the_form_of_a_line(bench: Bench) -> None:
    bench.log("all is well")
    bench.log("all is not", logging.WARNING)
    assert re.fullmatch(
        STAMP + rb" all is well\n" + STAMP + rb" WARNING: all is not\n", bench.read()
    )


def test_the_stamp_is_the_time_of_the_record_in_utc(bench: Bench) -> None:
    record = logging.LogRecord("n", logging.INFO, "f", 1, "x", None, None)
    record.created = 1_796_158_618.123
    bench.handler.handle(record)
    assert bench.read() == b"2026-12-01T20:56:58.123Z x\n"


def test_one_record_is_one_line_of_plain_text(bench: Bench) -> None:
    bench.log("a\nb\r\x1b[31m\x00\u2028\u0085\tc")
    (line,) = bench.read().splitlines()
    assert line.endswith(b" a\\nb\\r\\x1b[31m\\x00\\u2028\\x85\tc")


@pytest.mark.parametrize("text", ["x" * 100_000, "é" * 50_000, "x" + "\U0001f378" * 25_000])
def test_a_long_line_is_cut_between_characters(bench: Bench, text: str) -> None:
    bench.log(text)
    line = bench.read()
    assert stderr.LONGEST_LINE - 8 < len(line) <= stderr.LONGEST_LINE
    assert line.decode().endswith("…\n")


def test_a_lone_surrogate_does_no_harm(bench: Bench) -> None:
    bench.log("a\udc80b")
    assert bench.read().endswith(b" a?b\n")


@pytest.mark.requirement("stdio.stderr-never-blocks", "host.35")
def test_a_full_pipe_drops_lines_and_says_how_many(bench: Bench) -> None:
    bench.fill()
    for _ in range(3):
        bench.log("lost")
    assert b"lost" not in bench.read()
    bench.log("back")
    first, second = bench.read().splitlines()
    assert first.endswith(b"WARNING: 3 log lines were dropped because standard error was full.")
    assert second.endswith(b" back")
    bench.log("on")
    assert bench.read().count(b"\n") == 1


@pytest.mark.requirement("stdio.stderr-never-blocks")
def test_a_single_dropped_line_is_counted_too(bench: Bench) -> None:
    bench.fill()
    bench.log("lost")
    bench.read()
    bench.log("back")
    assert b" 1 log line was dropped" in bench.read()


@pytest.mark.requirement("stdio.stderr-never-blocks")
def test_a_reader_that_is_gone_is_nothing_to_speak_of(bench: Bench) -> None:
    reader = os.dup(bench.out)
    os.close(bench.out)
    os.close(reader)
    bench.log("to nobody")
    bench.out = os.open(os.devnull, os.O_RDONLY)


def test_a_record_that_cannot_be_formatted_is_dropped(bench: Bench) -> None:
    bench.handler.handle(logging.LogRecord("n", logging.INFO, "f", 1, "%d", ("x",), None))
    bench.log("next")
    assert b" 1 log line was dropped" in bench.read()


@pytest.mark.requirement("stdio.stray-print")
def test_what_is_printed_becomes_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    out = stderr.StrayText()
    print("one", 2, file=out)
    print("half", end="", file=out)
    assert caplog.messages == ["one 2"]
    print(" a line\n\n  \n", file=out)
    assert caplog.messages == ["one 2", "half a line"]
    assert out.writable()


def test_install_takes_logging_and_printing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    stderr.install(bench.into)
    logging.getLogger("mcpl_heartbeat").warning("logged")
    print("printed")
    print("complained", file=sys.stderr)
    lines = bench.read().splitlines()
    assert [line.partition(b" ")[2] for line in lines] == [
        b"WARNING: logged",
        b"printed",
        b"complained",
    ]
    assert capfd.readouterr() == ("", "")


def test_install_bears_a_closed_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    descriptor = os.dup(2)
    os.close(descriptor)
    stderr.install(descriptor)
    assert root.handlers == []


def test_an_error_is_told_in_one_line() -> None:
    def raise_it() -> None:
        raise KeyError("x")

    try:
        raise_it()
    except KeyError as error:
        group = ExceptionGroup("several", [error])
    for told in (stderr.describe(group), stderr.describe(group.exceptions[0])):
        assert re.fullmatch(r"KeyError: 'x' \(at \S+test_stderr\.py:\d+\)", told)


def test_an_error_without_text_or_trace_is_told_too() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert stderr.describe(Mute()) == "Mute: (no message) (at an unknown place)"
    assert len(stderr.describe(ValueError("x" * 10_000))) < 600


@pytest.mark.requirement("stdio.stderr-never-blocks")
def test_a_full_socket_drops_lines_as_a_full_pipe_does() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                theirs.send(b"." * 4096)
        theirs.setblocking(True)
        handler = stderr.StderrHandler(theirs.fileno())
        handler.handle(logging.LogRecord("n", logging.INFO, "f", 1, "lost", None, None))
        ours.setblocking(False)
        got = b""
        with suppress(BlockingIOError):
            while part := ours.recv(65536):
                got += part
        assert b"lost" not in got
