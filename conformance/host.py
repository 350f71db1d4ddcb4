"""The host's end of one connection: what came from the server, and answers to what it asks.

Requests of the server are answered by jsonrpcserver, so that host and server share no JSON-RPC
code. Nothing here waits or reads a clock; ``Seat`` is fed by whoever has the bytes.
"""

import collections
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from conformance import exact, patterns
from conformance.patterns import Clock, Result
from conformance.values import Names

with warnings.catch_warnings():
    # It reads its files in a way that Python 3.11 and 3.12 call out of date.
    warnings.simplefilter("ignore", DeprecationWarning)
    import jsonrpcserver

PUSH = "push/event"
MOST_MESSAGES = 50_000
MOST_ASKED = 5_000
MOST_BYTES = 64 * 1024 * 1024
LONGEST_LINE = 32 * 1024 * 1024
LONGEST_LOG = 1024 * 1024
_FLOOD = "floods its host: it wrote more than any host would read"
UNREAD = 16 * 1024 * 1024
"""A line of the host's longer than this (bytes) no server reads, so it is not looked at for ids."""


class Message(msgspec.Struct, frozen=True):
    """One line of the server, read."""

    value: Any
    line: str

    @property
    def is_push(self) -> bool:
        """Whether it is a ``push/event``."""
        return isinstance(self.value, dict) and self.value.get("method") == PUSH

    @property
    def is_reply(self) -> bool:
        """Whether it answers something."""
        return not isinstance(self.value, dict) or "method" not in self.value


def match_message(pattern: Any, message: Message, names: Names, clock: Clock) -> Result:
    """Compare a whole message with ``pattern``, or its line with ``{"$line": pattern}``."""
    if isinstance(pattern, dict) and pattern.keys() == {"$line"}:
        return patterns.match(pattern["$line"], message.line, names, clock)
    return patterns.match(pattern, message.value, names, clock)


def answer_to(line: str, answer: Any) -> str:
    """Return the host's answer to the server's Request on ``line``.

    ``answer`` is for a push; a host knows no other method.
    """

    def push_event(**params: Any) -> Any:
        if "result" in answer:
            return jsonrpcserver.Success(answer["result"])
        error = answer["error"]
        data = {"data": error["data"]} if "data" in error else {}
        return jsonrpcserver.Error(error["code"], error.get("message", "refused"), **data)

    return str(jsonrpcserver.dispatch(line, methods={PUSH: push_event}))


class Answers:
    """How pushes are answered; a list is used up one a push, its last element stays."""

    def __init__(self, answer: Any) -> None:
        self._answers: list[Any] = []
        self.set(answer)

    def set(self, answer: Any) -> None:
        """Answer so from here on."""
        self._answers = list(answer) if isinstance(answer, list) else [answer]

    def next(self) -> Any:
        """Return how the push that has just come is answered."""
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Seat:
    """One server process as its host sees it.

    ``write`` takes the bytes of answers; ``pushes`` collects every push with its seat, over all
    seats. ``problem`` is set when the server says what no server may.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        answers: Answers,
        pushes: list[tuple["Seat", Message]],
    ) -> None:
        self.write = write
        self.inbox: list[Message] = []
        self.log = ""
        self.problem: str | None = None
        self.latest_request: Any = None
        self._answers = answers
        self._pushes = pushes
        self._half = b""
        self._spoken = b""
        self._taken_in = [0, 0]
        self._open: collections.Counter[str] = collections.Counter()
        self._used: set[str] = set()

    # The host speaks ------------------------------------------------------------------------------

    def spoke(self, data: bytes) -> None:
        """Note what requests the host has sent, so that replies can be told from inventions."""
        *lines, self._spoken = (self._spoken + data).split(b"\n")
        for line in lines:
            if len(line) <= UNREAD:
                value = exact.read_leniently(line.decode("utf-8-sig", "replace"))
                for item in value if isinstance(value, list) else [value]:
                    if isinstance(item, dict) and "id" in item and not item.keys() & _ANSWER:
                        self._open[_key(item["id"])] += 1
                        if "method" in item:
                            self.latest_request = item["id"]

    # The server speaks ----------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take in what the server wrote to its standard output; answers what it asks."""
        *lines, self._half = (self._half + data).split(b"\n")
        if len(self._half) > LONGEST_LINE:
            self._complain(f"wrote a line of more than {LONGEST_LINE} bytes")
        for line in lines:
            if self.problem is None:
                self._line(line)

    def logged(self, text: str) -> None:
        """Take in what the server wrote to its standard error; only the latest part is kept."""
        self.log = (self.log + text)[-LONGEST_LOG:]

    def end(self) -> None:
        """Take in that the server's output has ended."""
        if self._half and self.problem is None:
            self._complain(f"ended in the middle of a line: {_cut(self._half)}")

    def _line(self, line: bytes) -> None:
        self._taken_in[0] += 1
        self._taken_in[1] += len(line)
        if self._taken_in[0] > MOST_MESSAGES or self._taken_in[1] > MOST_BYTES:
            return self._complain(_FLOOD)
        try:
            text = line.decode("utf-8")
            value = exact.read(text)
        except ValueError as error:
            return self._complain(f"wrote what is no line of JSON ({error}): {_cut(line)}")
        message = Message(value, text)
        for item in value if isinstance(value, list) and value else [value]:
            self._check(item, text)
        self.inbox.append(message)
        if self.problem is None and isinstance(value, dict) and "method" in value:
            self._asked(message)
        return None

    def _check(self, item: Any, line: str) -> None:
        if not isinstance(item, dict) or item.get("jsonrpc") != "2.0":
            return self._complain(f"wrote what is no JSON-RPC 2.0 message: {_cut(line)}")
        if "method" in item:
            return None
        if "id" not in item or len(item.keys() & _ANSWER) != 1:
            return self._complain(f"wrote what is neither request nor reply: {_cut(line)}")
        if item["id"] is not None:
            key = _key(item["id"])
            if self._open[key] < 1:
                return self._complain(f"replied to what nobody asks (any more): {_cut(line)}")
            self._open[key] -= 1
        return None

    def _asked(self, message: Message) -> None:
        if "id" in message.value:
            key = _key(message.value["id"])
            if key in self._used:
                return self._complain(f"asks with an id it has used already: {_cut(message.line)}")
            self._used.add(key)
            if len(self._used) > MOST_ASKED:
                return self._complain(_FLOOD)
        if not message.is_push:
            return self.answer(message, None)
        self._pushes.append((self, message))
        answer = self._answers.next()
        if answer not in ("never", "later"):
            self.answer(message, answer)
        return None

    def answer(self, message: Message, answer: Any) -> None:
        """Answer a request of the server, whether or not it was answered before."""
        if "id" in message.value:
            self.write(answer_to(message.line, answer).encode() + b"\n")

    def _complain(self, text: str) -> None:
        if self.problem is None:
            self.problem = f"The server {text}"


_ANSWER = {"result", "error"}


def _key(id: Any) -> str:
    """Tell ids apart by type and value: ``1`` and ``1.0`` are one number, ``"1"`` is none."""
    if not isinstance(id, int | Decimal) or isinstance(id, bool):
        return exact.write(id)
    sign, digits, exponent = Decimal(id).as_tuple()
    text = "".join(map(str, digits))
    short = text.rstrip("0")
    assert isinstance(exponent, int), "JSON has no infinity"
    return f"number {sign} {short} {exponent + len(text) - len(short) if short else 0}"


def _cut(line: bytes | str) -> str:
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return text if len(text) <= 300 else f"{text[:297]}…"
