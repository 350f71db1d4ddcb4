"""Raw bytes over a socket, for tests of connections: requests, a peer, and a server on a stage."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from mcpl_heartbeat.shell.http.app import application
from mcpl_heartbeat.shell.http.connections import Connections
from tests.http.support import SECRET, NotingDesk

HEAD = (
    f"POST /v1/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\n"
).encode()
PLAIN = HEAD + b"Content-Length: 2\r\n\r\n{}"


class Peer:
    """The client's end."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._read = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read one response with a Content-Length, or without a body."""
        while b"\r\n\r\n" not in self._read:
            await self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._read) < length:
            await self._more()
        body, self._read = self._read[:length], self._read[length:]
        return int(first.split()[1]), headers, body

    async def _more(self) -> None:
        data = await self.stream.receive_some(65_536)
        assert data, f"closed after {self._read!r}"
        self._read += data

    async def closed(self) -> bool:
        """Wait for the server's end of the connection."""
        try:
            return not self._read and await self.stream.receive_some(1) == b""
        except trio.BrokenResourceError:
            return True


class Stage:
    """A server on a real socket, its desk, and clients of it."""

    def __init__(self, nursery: trio.Nursery, desk: NotingDesk, app=None) -> None:
        self.desk = desk
        self.connections = Connections(app or application(desk, "127.0.0.1"))
        self._nursery = nursery
        self._clients: list[trio.SocketStream] = []
        self.ended = trio.Event()

    async def connect(self) -> Peer:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        stream = await trio.open_tcp_stream(*listener.socket.getsockname())
        accepted = await listener.accept()
        await listener.aclose()
        self._nursery.start_soon(self._serve, accepted)
        self._clients.append(stream)
        return Peer(stream)

    async def leave(self) -> None:
        for stream in self._clients:
            await trio.aclose_forcefully(stream)

    async def _serve(self, stream: trio.SocketStream) -> None:
        try:
            await self.connections.serve(stream)
        finally:
            await trio.aclose_forcefully(stream)
        self.ended.set()


@asynccontextmanager
async def stage(desk: NotingDesk | None = None, app=None) -> AsyncIterator[Stage]:
    async with trio.open_nursery() as nursery:
        at = Stage(nursery, desk or NotingDesk(), app)
        try:
            yield at
        finally:
            await at.leave()
        nursery.cancel_scope.cancel()
