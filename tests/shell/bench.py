"""A running server, for the tests that drive its tasks in one process."""

import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
import trio.testing

from mcpl_heartbeat.shell import streams
from mcpl_heartbeat.shell.server import Server
from tests.shell.fakes import FakeClock, FakeCore, FakeFiles


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


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that a thread does, in real time, with a bound far above any lateness."""
    for _ in range(6000):
        if condition():
            return
        await trio.to_thread.run_sync(time.sleep, 0.01)
    raise AssertionError("it never came")


async def bench_ticks(bench: Bench, count: int) -> None:
    await until(lambda: len(bench.core.ticks) >= count)
