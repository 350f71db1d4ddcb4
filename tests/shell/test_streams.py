"""The streams on every kind of descriptor a host may give."""

import fcntl
import os
import pty
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from mcpl_heartbeat.shell import streams


@pytest.fixture
def descriptors() -> Iterator[list[int]]:
    opened: list[int] = []
    yield opened
    for descriptor in opened:
        with suppress(OSError):
            os.close(descriptor)


@pytest.fixture
def pipe(descriptors: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    descriptors.extend(ends)
    return ends


def flags(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_GETFL)


def filled(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe[1], b"." * 4096)


@pytest.mark.trio
async def test_a_regular_file_is_read_to_its_end(tmp_path: Path, descriptors: list[int]) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"x" * 100_000)
    descriptors.append(os.open(file, os.O_RDONLY))
    source = streams.Source(descriptors[0])
    got = b""
    while data := await source.read():
        got += data
    assert got == b"x" * 100_000


@pytest.mark.trio
@pytest.mark.requirement("field.2")
async def test_the_null_device_is_an_end_of_input(descriptors: list[int]) -> None:
    descriptors.append(os.open(os.devnull, os.O_RDONLY))
    assert await streams.Source(descriptors[0]).read() == b""


@pytest.mark.trio
async def test_a_descriptor_that_cannot_be_read_is_an_end_of_input(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    assert await streams.Source(pipe[1]).read() == b""


@pytest.mark.trio
async def test_a_terminal_whose_other_side_is_gone_is_an_end_of_input(
    descriptors: list[int],
) -> None:
    master, slave = pty.openpty()
    descriptors.append(slave)
    os.close(master)
    assert await streams.Source(slave).read() == b""


@pytest.mark.trio
async def test_reading_leaves_the_mode_alone_and_bears_a_non_blocking_one(
    pipe: tuple[int, int], nursery: trio.Nursery
) -> None:
    os.set_blocking(pipe[0], False)
    before = flags(pipe[0])
    got: list[bytes] = []

    async def read() -> None:
        got.append(await streams.Source(pipe[0]).read())

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    assert got == []
    os.write(pipe[1], b"late")
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert got == [b"late"]
    assert flags(pipe[0]) == before


@pytest.mark.trio
async def test_bytes_leave_in_order_whatever_the_host_takes(
    pipe: tuple[int, int], nursery: trio.Nursery
) -> None:
    os.set_blocking(pipe[1], False)
    sink = streams.Sink(pipe[1])
    nursery.start_soon(sink.run)
    sent = b""
    for number in range(200):
        data = bytes([number]) * (1000 + number)
        sink.write(data)
        sent += data
    got = b""
    while len(got) < len(sent):
        await trio.testing.wait_all_tasks_blocked(0.001)
        got += os.read(pipe[0], 50_000)
    assert got == sent
    await sink.room(0)
    sink.write(b"more")
    assert os.read(pipe[0], 10) == b"more"
    nursery.cancel_scope.cancel()


@pytest.mark.trio
async def test_a_lost_host_frees_what_waits(pipe: tuple[int, int], nursery: trio.Nursery) -> None:
    os.set_blocking(pipe[1], False)
    sink = streams.Sink(pipe[1])
    nursery.start_soon(sink.run)
    sink.write(b"x" * 1_000_000)
    assert sink.waiting > 0
    os.close(pipe[0])
    await sink.lost.wait()
    await sink.room(0)
    assert sink.waiting == 0
    sink.write(b"to nobody")
    assert sink.waiting == 0


@pytest.mark.trio
async def test_a_full_disk_under_the_output_is_a_lost_host(descriptors: list[int]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    descriptors.append(os.open(full, os.O_WRONLY))
    sink = streams.Sink(descriptors[0])
    sink.write(b"x")
    assert sink.lost.is_set()


@pytest.mark.trio
async def test_nobody_hangs_up_a_regular_file(tmp_path: Path, descriptors: list[int]) -> None:
    descriptors.append(os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT))
    with trio.move_on_after(0.01) as scope:
        await streams.hang_up(descriptors[0])
    assert scope.cancelled_caught


def test_a_pipe_is_opened_again_so_that_its_other_holders_keep_their_mode(
    pipe: tuple[int, int], descriptors: list[int]
) -> None:
    before = flags(pipe[1])
    taken = streams.Streams(pipe[0], os.dup(pipe[1]))
    descriptors.append(taken.sink)
    assert flags(taken.sink) & os.O_NONBLOCK
    if Path("/proc/self/fd").exists():
        assert flags(pipe[1]) == before
    taken.restore()
    assert flags(pipe[1]) == before
    os.write(taken.sink, b"arrives")
    assert os.read(pipe[0], 10) == b"arrives"


def test_a_pipe_that_cannot_be_opened_again_is_switched_and_switched_back(
    pipe: tuple[int, int], descriptors: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = flags(pipe[1])
    monkeypatch.setattr(streams, "_opened_again", lambda descriptor: None)
    taken = streams.Streams(pipe[0], os.dup(pipe[1]))
    descriptors.append(taken.sink)
    assert flags(pipe[1]) & os.O_NONBLOCK
    taken.restore()
    taken.restore()
    assert flags(pipe[1]) == before


def test_a_socket_is_switched_and_switched_back() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        before = flags(ours.fileno())
        taken = streams.Streams(ours.fileno(), ours.fileno())
        assert flags(ours.fileno()) & os.O_NONBLOCK
        taken.restore()
        assert flags(ours.fileno()) == before


@pytest.mark.requirement("stdio.terminal-restored")
def test_the_terminals_own_opening_stays_blocking(descriptors: list[int]) -> None:
    master, slave = pty.openpty()
    descriptors += [master, slave]
    before = flags(slave)
    taken = streams.Streams(slave, os.dup(slave))
    descriptors.append(taken.sink)
    assert flags(slave) == before
    os.write(taken.sink, b"seen")
    assert os.read(master, 10) == b"seen"


def test_what_leads_elsewhere_is_not_written_to(
    descriptors: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"")
    master, slave = pty.openpty()
    descriptors += [master, slave]
    monkeypatch.setattr(os, "ttyname", lambda descriptor: str(other))
    assert streams._opened_again(slave) is None
