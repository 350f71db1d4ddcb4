"""Turns what passed between a host and a server into a transcript; pure.

What the server said becomes patterns: ids and times of this session are replaced by their form, and
an id that comes back, in either direction, by a reference to its first place. Secrets are replaced
by placeholders of the same length, wherever they stand.
"""

import base64
from collections.abc import Iterator
from typing import Any

import msgspec

from conformance import exact
from conformance.forms import Forms
from conformance.secrets import Secrets

SLACK = 5.0
"""Seconds that a replay waits longer for what the session waited for."""
LONGEST_REAL = 30.0
_ANSWER = {"result", "error"}


class Event(msgspec.Struct, frozen=True):
    """Something that passed at wall time ``at`` (ms).

    ``kind`` is ``"host"`` or ``"server"`` with ``data`` (empty: its end), ``"signal"`` with its
    name as ``data``, or ``"exit"`` with ``status``.
    """

    at: int
    kind: str
    data: bytes | str = b""
    status: int = 0


class Session(msgspec.Struct):
    """One recorded session: where it ran, what was in its files, and all that passed."""

    title: str
    began: int
    environment: dict[str, str]
    paths: dict[str, str]
    before: dict[str, bytes]
    after: dict[str, bytes] | None = None
    events: list[Event] = []


def transcript_of(session: Session) -> str:
    """Return the session as the text of a transcript."""
    return Transcriber(session).text()


class Transcriber:
    """Works through a session from its beginning to its end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._secrets = Secrets(session.environment)
        self._forms = Forms(session.paths, session.environment.get("AGENT_TIMEZONE"))
        self._half = {"host": b"", "server": b""}
        self._pushes: dict[str, str] = {}
        self._initialized_by = ""
        self._heard_at = session.began
        self._longest = 0.0
        self._learn_secrets()

    def _learn_secrets(self) -> None:
        """Look at everything once: a secret may show before it can be told to be one."""
        for kind in ("host", "server"):
            pieces = (event.data for event in self._session.events if event.kind == kind)
            whole = b"".join(piece for piece in pieces if isinstance(piece, bytes))
            for line in [*self._session.before.values(), *whole.split(b"\n")]:
                self._secrets.hide(exact.read_leniently(line.decode("utf-8", "replace")))
                self._secrets.hide_in_bytes(line)

    def text(self) -> str:
        """Return the whole transcript."""
        before = {name: self._content(data) for name, data in self._session.before.items()}
        steps = list(self._steps())
        zone = self._session.environment.get("AGENT_TIMEZONE")
        head: dict[str, Any] = {
            "transcript": self._session.title,
            "host": self._initialized_by or "unknown",
            "rules": [],
            "clock": "virtual" if self._longest > LONGEST_REAL else "either",
            "env": {"AGENT_TIMEZONE": zone} if zone else {},
            "files": before,
            "answer": "later",
        }
        return "".join(f"{exact.write(line)}\n" for line in (head, *steps))

    def _content(self, data: bytes) -> Any:
        try:
            value = exact.read(data.decode("utf-8"))
        except ValueError:
            return {"$bytes": base64.b64encode(data).decode()}
        value = self._secrets.hide(value)
        self._forms.known_to_host(value)
        return self._forms.said(value, self._session.began)

    def _steps(self) -> Iterator[dict[str, Any]]:
        for event in self._session.events:
            if isinstance(event.data, str):
                yield {"signal": event.data}
            elif event.kind == "exit":
                yield {"exit": {"within": 2, "status": [event.status]}}
            else:
                yield from self._stream(event, event.data)
        for name, data in (self._session.after or {}).items():
            value = exact.read_leniently(data.decode("utf-8", "replace"))
            yield {"file": name, "is": self._forms.heard(self._secrets.hide(value))}

    def _stream(self, event: Event, data: bytes) -> Iterator[dict[str, Any]]:
        kind = event.kind
        *lines, self._half[kind] = (self._half[kind] + data).split(b"\n")
        for line in lines:
            if kind == "host":
                yield self._host(line, b"\n", event.at)
            else:
                yield from self._server(line, event.at)
        if not data and kind == "host":
            if self._half[kind]:
                yield self._host(self._half[kind], b"", event.at)
            yield {"close": "stdin"}

    # The host -------------------------------------------------------------------------------------

    def _host(self, line: bytes, end: bytes, at: int) -> dict[str, Any]:
        message = _plain_message(line)
        if message is None or not end:
            return _raw(self._secrets.hide_in_bytes(line + end))
        message = self._secrets.hide(message)
        self._forms.known_to_host(message)
        if isinstance(message, dict):
            if "method" in message:
                return self._host_asks(message, at)
            push = self._pushes.get(exact.write(message.get("id")))
            answer = {name: message[name] for name in message if name in _ANSWER}
            if push is not None and len(answer) == 1 and len(message) == 3:
                said = self._forms.said(answer, at)
                return {"answer_push": {"$ref": push}, "with": said}
        return {"host": self._forms.said(message, at)}

    def _host_asks(self, message: dict[str, Any], at: int) -> dict[str, Any]:
        if message["method"] == "initialize":
            self._initialized_by = _client(message)
        rest = {"jsonrpc", "method", "id", "params"} - message.keys()
        ordinary = len(message) + len(rest) == 4 and message.get("jsonrpc") == "2.0"
        id, params = message.get("id"), message.get("params")
        if not ordinary or isinstance(id, bool | list | dict) or ("id" in message and id is None):
            return {"host": self._forms.said(message, at)}
        said: dict[str, Any] = {}
        if "params" in message:
            said["params"] = self._forms.said(params, at)
        if "id" not in message:
            return {"notify": message["method"], **said}
        if message["method"] == "tools/call" and params is not None and _is_call(params):
            arguments = self._forms.said(params.get("arguments", {}), at)
            return {"call": params["name"], "arguments": arguments, "id": id}
        return {"request": message["method"], **said, "id": id}

    # The server -----------------------------------------------------------------------------------

    def _server(self, line: bytes, at: int) -> Iterator[dict[str, Any]]:
        message = exact.read_leniently(line.decode("utf-8", "replace"))
        if message is None:
            return
        message = self._secrets.hide(message)
        waited = (at - self._heard_at) / 1000
        self._heard_at = at
        self._longest = max(self._longest, waited)
        within = {"within": round(waited + SLACK)} if waited > 1 else {}
        if not isinstance(message, dict) or message.get("id") is None:
            yield {"server": self._forms.heard(message), **within}
        elif message.get("method") == "push/event":
            name = f"push{len(self._pushes)}"
            self._pushes[exact.write(message["id"])] = name
            params = self._forms.heard(message.get("params"))
            yield {"push": params, "id": {"$bind": name}, **within}
        elif "method" in message:
            heard = {name: self._forms.heard(message[name]) for name in message if name != "id"}
            yield {"server": heard, **within}
        else:
            reply = {name: self._forms.heard(message[name]) for name in message if name in _ANSWER}
            yield {"reply": reply, "to": message["id"], **within}


def _plain_message(line: bytes) -> Any:
    """Return the message on a line, unless a replay would write another one in its place."""
    try:
        return exact.read_without_twins(line.decode("utf-8"))
    except ValueError:
        return None


def _raw(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "${"
    if "${" in text:
        return {"host": {"$bytes": base64.b64encode(data).decode()}}
    return {"host": {"$text": text}}


def _is_call(params: Any) -> bool:
    return (
        isinstance(params, dict)
        and isinstance(params.get("name"), str)
        and params.keys() <= {"name", "arguments"}
    )


def _client(message: dict[str, Any]) -> str:
    params = message.get("params")
    info = params.get("clientInfo") if isinstance(params, dict) else None
    if not isinstance(info, dict):
        return ""
    return " ".join(str(info[name]) for name in ("name", "version") if name in info)
