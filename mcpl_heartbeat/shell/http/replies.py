"""What goes out over HTTP: a status, a few headers and, nearly always, one flat JSON object."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from mcpl_heartbeat.watch.failures import Failure, failure
from mcpl_heartbeat.watch.results import Result

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 1_048_576
"""The longest body (bytes) that is read (issue 4 §5)."""
RETRY_AFTER = 2
"""Seconds after which a client may try again when the store could not be used."""

_JSON = (b"content-type", b"application/json")
_encoder = msgspec.json.Encoder()


def _line(value: object) -> bytes:
    # What a terminal shows of several replies in a row would run together.
    return _encoder.encode(value) + b"\n"


class Reply(msgspec.Struct, frozen=True):
    """A response as it is sent."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class TooLongError(Exception):
    """The body is over ``MAX_BODY``."""


class ClientGoneError(Exception):
    """The client left before its request was whole: nobody waits for a reply."""


def of_outcome(outcome: Result | Failure) -> Reply:
    """Give a tool's answer: 200 with the result, or the failure under its own status."""
    if isinstance(outcome, Failure):
        return of_failure(outcome)
    return of_value(outcome)


def of_value(value: object, status: int = 200) -> Reply:
    """Give any value as JSON."""
    return Reply(status, _line(value), (_JSON,))


def of_failure(failed: Failure, *headers: tuple[bytes, bytes]) -> Reply:
    """Give a failure in the one shape, with the headers that its status calls for."""
    if failed.status == 401:
        headers += ((b"www-authenticate", b'Bearer realm="mcpl-heartbeat"'),)
    elif failed.status == 503:
        headers += ((b"retry-after", str(RETRY_AFTER).encode()),)
    return Reply(failed.status, _line(failed), (_JSON, *headers))


def too_long() -> Reply:
    """Refuse a body that is too long."""
    failed = failure(
        "too_large",
        f"The body is over {MAX_BODY} bytes and was not read.",
        "Send less: context, history, result, body, state and provider_extras hold at most "
        "65,536 bytes each, input_snapshot and outputs 262,144.",
    )
    return of_failure(failed)


INTERNAL = of_failure(
    failure(
        "internal",
        "Internal error; this server's log has the details.",
        "Try once more; when it stays, tell whoever runs this server.",
    )
)


async def send_reply(reply: Reply, send: Send) -> None:
    """Send a whole response."""
    length = (b"content-length", str(len(reply.body)).encode())
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": [*reply.headers, length],
        }
    )
    await send({"type": "http.response.body", "body": reply.body})


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """Read a request's body; raises ``TooLongError`` as soon as it is too long."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > MAX_BODY:
            raise TooLongError
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise TooLongError
        if not message.get("more_body"):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)
