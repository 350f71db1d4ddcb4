"""Whole processes that are all shell: every ending, and every odd pair of streams."""

import fcntl
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parents[2]
FAKE = [sys.executable, "-m", "tests.shell.fake_server"]
SOON = 30.0
"""Seconds: a bound for a busy machine, far above what is promised."""

Process = subprocess.Popen[bytes]


@pytest.fixture
def started() -> Iterator[list[Process]]:
    processes: list[Process] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def start(started: list[Process], *arguments: str, **streams: int | IO[bytes]) -> Process:
    given: dict[str, int | IO[bytes]] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    process = subprocess.Popen([*FAKE, *arguments], cwd=ROOT, **(given | streams))
    started.append(process)
    return process


def send(process: Process, text: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def line(process: Process) -> bytes:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], SOON)[0], "no answer"
    return process.stdout.readline()


def ready(process: Process) -> None:
    send(process, b"ping\n")
    assert line(process) == b"pong\n"


def ended(process: Process) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=SOON)
    return process.returncode, out, err


@pytest.mark.requirement("stdio.ends-quickly", "field.1")
def test_the_end_of_input_ends_it(started: list[Process]) -> None:
    process = start(started)
    ready(process)
    assert ended(process) == (0, b"", b"")


@pytest.mark.requirement("field.2")
def test_started_on_the_null_device_it_ends(started: list[Process]) -> None:
    process = start(started, stdin=subprocess.DEVNULL)
    assert ended(process) == (0, b"", b"")


def test_input_from_a_file_is_served_to_its_end(started: list[Process], tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"ping\nping\nping")
    with (tmp_path / "in").open("rb") as file:
        process = start(started, stdin=file)
    assert ended(process) == (0, b"pong\n" * 3, b"")


@pytest.mark.requirement("stdio.ends-quickly")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_the_signals_status(
    started: list[Process], number: signal.Signals
) -> None:
    process = start(started)
    ready(process)
    process.send_signal(number)
    assert process.wait(SOON) == -number
    assert ended(process)[1:] == (b"", b"")


def test_a_signal_that_was_ignored_stays_ignored(started: list[Process]) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start(started)
    finally:
        signal.signal(signal.SIGINT, before)
    ready(process)
    process.send_signal(signal.SIGINT)
    ready(process)
    assert ended(process)[0] == 0


@pytest.mark.requirement("stdio.ends-quickly")
@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_a_save_that_hangs_does_not_keep_it(
    started: list[Process], number: signal.Signals | None
) -> None:
    process = start(started, "slow")
    send(process, b"save a\nping\n")
    assert line(process) == b"pong\n"
    begun = time.monotonic()
    if number is None:
        assert process.stdin is not None
        process.stdin.close()
    else:
        process.send_signal(number)
    assert process.wait(SOON) == (0 if number is None else -number)
    assert time.monotonic() - begun < SOON / 2


@pytest.mark.requirement("stdio.ends-quickly", "field.7")
def test_a_host_that_closes_our_output_ends_it(started: list[Process]) -> None:
    process = start(started)
    ready(process)
    assert process.stdout is not None
    process.stdout.close()
    if sys.platform != "linux":
        send(process, b"ping\n")
    assert process.wait(SOON) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""


@pytest.mark.requirement("field.4")
def test_killing_its_parent_ends_it(started: list[Process]) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdin.write(b'ping\\n'); child.stdin.flush()\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *FAKE], cwd=ROOT, stdout=subprocess.PIPE
    )
    started.append(parent)
    child = int(line(parent))
    parent.kill()
    until = time.monotonic() + SOON
    while alive(child):
        assert time.monotonic() < until, "it lives on"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Whoever inherits orphans may be slow to collect them.
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return sys.platform != "linux"


@pytest.mark.requirement("field.5", "stdio.terminal-restored")
@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_terminal_is_left_as_it_was(
    started: list[Process], number: signal.Signals | None
) -> None:
    master, slave = pty.openpty()
    modes, flags = termios.tcgetattr(slave), fcntl.fcntl(slave, fcntl.F_GETFL)
    process = start(started, stdin=slave, stdout=slave, stderr=slave)
    os.write(master, b"ping\n")
    shown = until_shown(master, b"pong")
    if number is None:
        os.write(master, b"\x04")
    else:
        process.send_signal(number)
    assert process.wait(SOON) == (0 if number is None else -number)
    assert termios.tcgetattr(slave) == modes
    assert fcntl.fcntl(slave, fcntl.F_GETFL) == flags
    os.close(slave)
    assert b"Traceback" not in shown + drained(master)
    os.close(master)


def until_shown(master: int, text: bytes) -> bytes:
    shown = b""
    while text not in shown:
        assert select.select([master], [], [], SOON)[0], "nothing shown"
        shown += os.read(master, 65536)
    return shown


def drained(master: int) -> bytes:
    shown = b""
    with suppress(OSError):
        while part := os.read(master, 65536):
            shown += part
    return shown


def test_a_terminal_that_hangs_up_ends_it(started: list[Process]) -> None:
    master, slave = pty.openpty()
    process = start(started, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    os.write(master, b"ping\n")
    until_shown(master, b"pong")
    os.close(master)
    assert process.wait(SOON) == 0


@pytest.mark.requirement("stdio.ends-quickly")
def test_a_terminal_that_is_stopped_does_not_keep_it(started: list[Process]) -> None:
    master, slave = pty.openpty()
    process = start(started, stdin=slave, stdout=slave)
    os.write(master, b"ping\n")
    until_shown(master, b"pong")
    termios.tcflow(slave, termios.TCOOFF)
    os.write(master, b"flood 1000000\n")
    process.send_signal(signal.SIGTERM)
    assert process.wait(SOON) in {-signal.SIGTERM, 128 + signal.SIGTERM}
    os.close(slave)
    os.close(master)


@pytest.mark.requirement("stdio.stray-print", "field.20")
def test_a_stray_print_does_not_reach_the_host(started: list[Process]) -> None:
    process = start(started)
    send(process, b"print hello\nlog careful\nraw from C\nping\n")
    assert line(process) == b"pong\n"
    send(process, b"break this\n")
    status, out, err = ended(process)
    assert (status, out) == (0, b"")
    said = [text.partition(b" ")[2] for text in err.splitlines()]
    assert said[:3] == [b"hello", b"C", b"WARNING: careful"]
    assert said[3].startswith(b"ERROR: LookupError: this (at ")
    assert len(said) == 4


@pytest.mark.requirement("stdio.stderr-never-blocks", "host.35")
def test_a_full_stderr_holds_nothing_up(started: list[Process]) -> None:
    process = start(started)
    # Well over what a pipe takes, and nobody reads it.
    for _ in range(100):
        send(process, b"log " + b"x" * 3000 + b"\nprint " + b"y" * 3000 + b"\nping\n")
        assert line(process) == b"pong\n"
    status, out, err = ended(process)
    assert (status, out) == (0, b"")
    assert 30_000 < len(err) < 600_000


@pytest.mark.requirement("stdio.stderr-never-blocks")
def test_both_outputs_on_one_full_pipe_lose_no_answer(started: list[Process]) -> None:
    process = start(started, stderr=subprocess.STDOUT)
    ready(process)
    send(process, b"flood 200000\n" + b"log x\n" * 100 + b"ping\n")
    out = ended(process)[1]
    assert out.count(b"x" * 200_000 + b"\n") == 1
    assert out.endswith(b"pong\n")


@pytest.mark.requirement("stdio.ends-quickly")
@pytest.mark.parametrize(
    ("closed", "text"),
    [("<&-", b"standard input is closed"), (">&-", b"standard output is closed")],
)
def test_a_stream_that_is_closed_at_the_start_is_said_in_one_line(
    started: list[Process], closed: str, text: bytes
) -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *FAKE],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    started.append(process)
    status, out, err = ended(process)
    assert (status, out) == (1, b"")
    assert text in err
    assert err.count(b"\n") == 1
    assert b"Traceback" not in err


@pytest.mark.requirement("stdio.ends-quickly")
def test_a_closed_stderr_is_no_hindrance(started: list[Process]) -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *FAKE],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    started.append(process)
    send(process, b"log a\nprint b\nping\n")
    assert line(process) == b"pong\n"
    send(process, b"break c\n")
    assert ended(process)[:2] == (0, b"")


def test_a_socket_is_given_back_as_it_was(started: list[Process]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        flags = fcntl.fcntl(theirs.fileno(), fcntl.F_GETFL)
        process = start(started, stdin=theirs.fileno(), stdout=theirs.fileno())
        ours.sendall(b"ping\n")
        ours.settimeout(SOON)
        assert ours.recv(10) == b"pong\n"
        assert fcntl.fcntl(theirs.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(SOON) == 0
        assert fcntl.fcntl(theirs.fileno(), fcntl.F_GETFL) == flags
