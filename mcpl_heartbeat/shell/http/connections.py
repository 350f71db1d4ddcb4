"""Connections: a quick way for plain POSTs and GETs, Hypercorn for all the rest.

Hypercorn's trio worker takes some 640 µs for a small request, mostly in tasks and cancel scopes of
its own, which leaves no room for 1,500 durable beats a second on one core. What agents send all day
is simple: a POST with a Content-Length, or a GET without a body, on a connection that stays open.
For that alone the same parser that Hypercorn uses, h11, is driven directly, a fifth of the cost,
and the same application answers. At the first request that is anything else the whole connection,
with what was read of it, goes to Hypercorn.
"""

import logging
import re
import time
from collections.abc import Iterable
from email.utils import formatdate
from typing import Any, cast

import h11
import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState, Framework
from hypercorn.utils import wrap_app

from mcpl_heartbeat.shell import stderr
from mcpl_heartbeat.shell.http import replies
from mcpl_heartbeat.shell.http.replies import App, Message, Receive, Scope, Send
from mcpl_heartbeat.watch.failures import failure

IDLE = 75.0
"""Seconds for which a connection may stay open with no request on it."""
SLOW = 30.0
"""Seconds within which a request has to come whole, and a response has to be taken."""
MAX_HEAD = 65_536
"""Bytes of a request's line and headers together."""

_log = logging.getLogger("mcpl_heartbeat")
_CHUNK = 65_536
_GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)
_BARE = re.compile(rb"(?i)HTTP/1\.1 (4\d\d) .*\r\ncontent-length: 0\r\n")
_UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"http2-settings"})


class Connections:
    """Serves each connection of a listener; ``close`` lets what runs finish and ends the rest."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._config = _config()
        self._context = WorkerContext(None)
        # Hypercorn tells the messages of ASGI apart, where we take any mapping.
        theirs = cast("Framework", _InTime(app))
        self._wrapped = wrap_app(theirs, replies.MAX_BODY, "asgi")
        self._closing = False
        self._idle: set[trio.CancelScope] = set()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it ends. Never raises but for cancellation."""
        try:
            taken = await _Quick(self, stream).run()
            if taken is not None:
                await self._hand_over(_Replayed(stream, taken))
        except* _GONE:
            pass
        except* Exception as fault:
            _log.error("A connection failed: %s", stderr.describe(fault))

    async def close(self) -> None:
        """End idle connections now, and the others after the request that they are at."""
        self._closing = True
        for scope in self._idle:
            scope.cancel()
        await self._context.terminated.set()

    async def _hand_over(self, stream: "_Replayed") -> None:
        await TCPServer(
            self._wrapped,
            self._config,
            self._context,
            ConnectionState({}),
            cast("Any", stream),  # it is declared as one of TLS
        )

    @property
    def app(self) -> App:
        """The application."""
        return self._app

    @property
    def closing(self) -> bool:
        """Whether no further request is to be taken."""
        return self._closing

    def idle(self, scope: trio.CancelScope) -> None:
        """A connection waits for a request within ``scope``."""
        self._idle.add(scope)

    def busy(self, scope: trio.CancelScope) -> None:
        """It waits no longer."""
        self._idle.discard(scope)


class _Quick:
    """One connection on the quick way."""

    def __init__(self, connections: Connections, stream: trio.SocketStream) -> None:
        self._connections = connections
        self._stream = stream
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._read = b""
        """Everything read since the present request began, for Hypercorn."""
        self._until = 0.0
        """By when it has to be here, whole; or has to begin."""
        ends = stream.socket.getpeername(), stream.socket.getsockname()
        self._client, self._server = (tuple(end[:2]) for end in ends)

    async def run(self) -> bytes | None:
        """Answer requests; the bytes of the first that is not for this way, ``None`` at the end."""
        while not self._connections.closing:
            try:
                request = await self._head()
                if request is None:
                    return None
                if not isinstance(request, h11.Request) or not _is_plain(request):
                    return self._read
                body = await self._body()
            except h11.RemoteProtocolError as error:
                await self._say(_malformed(error.error_status_hint))
                return None
            if body is None:
                return None
            reply = _Collected(body)
            await self._connections.app(self._scope(request), reply.receive, reply.send)
            if not reply.whole:
                return None
            await self._send(reply)
            if self._parser.our_state is not h11.DONE or self._parser.their_state is not h11.DONE:
                return None
            self._parser.start_next_cycle()
            self._read = bytes(self._parser.trailing_data[0])
        return None

    async def _head(self) -> Any:
        """Wait for a request's line and headers; what h11 makes of them."""
        self._until = trio.current_time() + (SLOW if self._read else IDLE)
        while True:
            event = self._parser.next_event()
            if event is not h11.NEED_DATA:
                return None if isinstance(event, h11.ConnectionClosed) else event
            with trio.move_on_at(self._until) as waiting:
                if not self._read:
                    self._connections.idle(waiting)
                try:
                    data = await self._stream.receive_some(_CHUNK)
                finally:
                    self._connections.busy(waiting)
            if waiting.cancelled_caught or (not data and not self._read):
                return None
            if not self._read:
                self._until = trio.current_time() + SLOW
            self._read += data
            self._parser.receive_data(data)

    async def _body(self) -> bytes | None:
        """Read the whole body; ``None`` when it does not come."""
        parts: list[bytes] = []
        while True:
            event = self._parser.next_event()
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return b"".join(parts)
            elif event is not h11.NEED_DATA:
                return None
            else:
                with trio.move_on_at(self._until) as waiting:
                    self._parser.receive_data(await self._stream.receive_some(_CHUNK))
                if waiting.cancelled_caught:
                    return None

    def _scope(self, request: h11.Request) -> dict[str, Any]:
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.1"},
            "http_version": "1.1",
            "method": request.method.decode("ascii"),
            "scheme": "http",
            "path": path.decode("ascii"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": self._client,
            "server": self._server,
            "state": {},
        }

    async def _send(self, reply: "_Collected") -> None:
        if self._connections.closing:
            reply.headers.append((b"connection", b"close"))
        with trio.fail_after(SLOW):
            await self._stream.send_all(_written(self._parser, reply))

    async def _say(self, refused: replies.Reply) -> None:
        """Refuse what is no HTTP, if it can still be heard."""
        if self._parser.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            reply = _Collected(b"")
            await replies.send_reply(refused, reply.send)
            await self._send(reply)


class _Collected:
    """A request's body for the application, and its response, whole."""

    def __init__(self, body: bytes) -> None:
        self._sent: bytes | None = body
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.whole = False

    async def receive(self) -> Message:
        if self._sent is None:
            await trio.sleep_forever()
        body, self._sent = self._sent, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
        else:
            self.body += message.get("body", b"")
            self.whole = not message.get("more_body", False)


def _written(parser: h11.Connection, reply: _Collected) -> bytes:
    head = h11.Response(status_code=reply.status, headers=[*reply.headers, (b"date", _date())])
    data = (head, h11.Data(data=reply.body), h11.EndOfMessage())
    return b"".join(parser.send(event) or b"" for event in data)


class _InTime:
    """The application, for requests that Hypercorn reads: it waits for their bodies without end.

    And it takes bodies whose length is told twice over, of which a proxy may have read another.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _is_told_twice(scope["headers"]):
            await replies.send_reply(_malformed(400), send)
            return
        until, whole = trio.current_time() + SLOW, False

        async def receive_in_time() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            with trio.move_on_at(until):
                message = await receive()
                whole = not message.get("more_body")
                return message
            return {"type": "http.disconnect"}

        await self._app(scope, receive_in_time, send)


class _Replayed:
    """A stream whose first bytes were read already."""

    def __init__(self, stream: trio.SocketStream, read: bytes) -> None:
        self._stream = stream
        self._first = read
        self.socket = stream.socket

    async def receive_some(self, most: int) -> bytes | bytearray:
        if self._first:
            first, self._first = self._first, b""
            return first
        return await self._stream.receive_some(most)

    async def send_all(self, data: bytes) -> None:
        # Hypercorn's own refusals have no body, and the application's always one.
        if bare := _BARE.match(data):
            refused = _Collected(b"")
            await replies.send_reply(_malformed(int(bare[1])), refused.send)
            data = _written(h11.Connection(h11.SERVER), refused)
        # Hypercorn would wait without end, even when it is cancelled.
        with trio.fail_after(SLOW):
            await self._stream.send_all(data)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _is_plain(request: h11.Request) -> bool:
    if request.method not in {b"POST", b"GET"} or request.http_version != b"1.1":
        return False
    if not request.target.startswith(b"/") or b"%" in request.target:
        return False
    length = None
    for name, value in request.headers:
        if name in _UNUSUAL:
            return False
        if name == b"content-length":
            length = int(value)
    if request.method == b"GET":
        return not length
    return length is not None and length <= replies.MAX_BODY


def _is_told_twice(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return {b"transfer-encoding", b"content-length"} <= {name for name, _ in headers}


def _malformed(status: int) -> replies.Reply:
    """Refuse what is no HTTP; ``status`` is what a parser would answer to it."""
    code = "too_large" if status == 431 else "invalid_arguments"
    failed = failure(code, "This is no request of HTTP/1.1.", "Send a well-formed request.")
    return replies.of_failure(failed, (b"connection", b"close"))


def _config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = logging.getLogger("mcpl_heartbeat")
    config.include_server_header = False
    config.keep_alive_timeout = IDLE
    config.read_timeout = int(IDLE)
    config.keep_alive_max_requests = 1_000_000
    config.h11_max_incomplete_size = MAX_HEAD
    config.max_app_queue_size = 10
    return config


def _date() -> bytes:
    return _dated(int(time.time()))


_dates: dict[int, bytes] = {}


def _dated(second: int) -> bytes:
    if second not in _dates:
        _dates.clear()
        _dates[second] = formatdate(second, usegmt=True).encode()
    return _dates[second]
