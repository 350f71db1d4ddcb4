"""The host's side of the wire: children on pipes, and a quick MCPL host.

Standard library only, and nothing of the server's own code: what is measured here is a command.

Everything between reading a clock and writing or reading a pipe is kept to the bare system call,
since a host that dawdles would be measured in the server's name.
"""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

CHUNK = 1 << 20
HOUR = 3_600_000

ABOVE_OUR_IDS = 1_000_000
"""Where the ids of timed calls begin, far above those of the handshake."""

KEPT_ENVIRONMENT = frozenset(
    {
        *(
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "TERM",
            "LANG",
            "TZ",
            "TMPDIR",
            "TMP",
            "TEMP",
        ),
        *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"),
    }
)
"""What agent-framework passes on to a child. No ``PYTHON*``: a server must do without."""

PUSH_ID = re.compile(rb'"id":\s*("[^"\\]*"|-?\d+)')


class Unmeasurable(Exception):
    """The command did not do what the figure needs; the text says what it did instead."""


def milliseconds() -> int:
    """Wall time, milliseconds since 1970-01-01T00:00Z, as in the reminders file."""
    return time.time_ns() // 1_000_000


@contextlib.contextmanager
def at_most(seconds: float, what: str) -> Iterator[None]:
    """Raise ``Unmeasurable`` when the block takes longer, also in the middle of a blocking read.

    A timer signal, because a time-out on each read would cost a system call inside what is timed.
    """

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise Unmeasurable(f"no end of {what} within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def environment(entry: Mapping[str, str]) -> dict[str, str]:
    """The environment a host gives a stdio child: its short list, then the entry's own ``env``."""
    kept = {k: v for k, v in os.environ.items() if k in KEPT_ENVIRONMENT or k.startswith("LC_")}
    return kept | dict(entry)


class Child:
    """A process on two pipes, spoken to a line at a time. Its stderr goes to a file."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.command = list(command)
        self.errors = folder / "stderr.txt"
        self.spawned = time.perf_counter()
        with self.errors.open("wb") as stderr:
            try:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env=environment(env),
                    bufsize=0,
                )
            except OSError as error:
                raise Unmeasurable(f"{command[0]} cannot be started: {error.strerror}") from None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.into = self.process.stdin.fileno()
        self.out_of = self.process.stdout.fileno()

    def write(self, data: bytes) -> None:
        """Write all of ``data``, waiting for room."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.into, view) :]
        except BrokenPipeError:
            raise self._gone() from None

    def read(self) -> bytes:
        """Whatever is there, at least one byte."""
        data = os.read(self.out_of, CHUNK)
        if not data:
            raise self._gone()
        return data

    def ask(self, line: bytes) -> bytes:
        """Write one line, read until a line is whole."""
        os.write(self.into, line)
        data = os.read(self.out_of, CHUNK)
        while not data.endswith(b"\n"):
            data += self.read()
        return data

    def stream(self, blob: bytes, lines: int) -> tuple[float, bytes]:
        """Write ``blob`` while reading; seconds until ``lines`` lines are back, and those lines."""
        begun = time.perf_counter()
        wire = Wire(self)
        wire.send(blob)
        chunks: list[bytes] = []
        seen = 0
        try:
            while seen < lines:
                chunk = wire.turn()
                seen += chunk.count(b"\n")
                chunks.append(chunk)
            return time.perf_counter() - begun, b"".join(chunks)
        finally:
            wire.close()

    def close(self) -> None:
        """End the process as a host does: end of stdin, then SIGTERM, then SIGKILL."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for impatient in (self.process.terminate, self.process.kill, None):
            try:
                self.process.wait(3)
                return
            except subprocess.TimeoutExpired:
                if impatient is not None:
                    impatient()

    def _gone(self) -> Unmeasurable:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        last = self.errors.read_text("utf-8", "replace").strip().splitlines()[-3:]
        return Unmeasurable(
            f"{self.command[0]} closed its output (exit {self.process.returncode})"
            + (": " + " / ".join(last) if last else "")
        )


class Wire:
    """A child's pipes without blocking: reads go on while something is left to write."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._waiting = memoryview(b"")
        os.set_blocking(child.into, False)
        os.set_blocking(child.out_of, False)

    def send(self, data: bytes) -> None:
        """Queue ``data`` behind what is still unwritten, and write what goes now."""
        self._waiting = (
            memoryview(bytes(self._waiting) + data) if self._waiting else memoryview(data)
        )
        self._write()

    def turn(self, seconds: float | None = None) -> bytes:
        """Wait until something can be read or written, do it, return what was read (or nothing)."""
        into, out_of = self._child.into, self._child.out_of
        readable, writable, _ = select.select(
            [out_of], [into] if self._waiting else [], [], seconds
        )
        if writable:
            self._write()
        return self._child.read() if readable else b""

    def close(self) -> None:
        """Make the pipes blocking again."""
        os.set_blocking(self._child.into, True)
        os.set_blocking(self._child.out_of, True)

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._waiting:
                self._waiting = self._waiting[os.write(self._child.into, self._waiting) :]


def line(message: Mapping[str, object]) -> bytes:
    """One JSON-RPC message as a host writes it."""
    body = {"jsonrpc": "2.0", **message}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def call(number: int, tool: str, arguments: Mapping[str, object]) -> bytes:
    """A ``tools/call`` request."""
    params = {"name": tool, "arguments": dict(arguments)}
    return line({"id": number, "method": "tools/call", "params": params})


INITIALIZE: Mapping[str, object] = {
    "protocolVersion": "2024-11-05",
    "clientInfo": {"name": "agent-framework", "version": "1.0.0"},
    "capabilities": {
        "experimental": {
            "mcpl": {
                "version": "0.5",
                "pushEvents": True,
                "eventCoalescing": {"pushEvents": True, "retryWindowMs": 3_600_000},
                "contextHooks": {"beforeInference": True},
                "inferenceLifecycle": True,
                "featureSets": True,
            }
        }
    },
}
POLICY: Mapping[str, object] = {
    "effectiveCapabilities": ["pushEvents", "tools"],
    "enabled": ["heartbeat"],
}


class Host(Child):
    """A server under measurement, and the host it believes it is talking to."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.reminders = folder / "heartbeat-reminders.json"
        super().__init__(
            command,
            folder,
            {
                "HEARTBEAT_CONFIG_FILE": str(folder / "heartbeat-config.json"),
                "HEARTBEAT_REMINDERS_FILE": str(self.reminders),
                "AGENT_TIMEZONE": "America/Los_Angeles",
            },
        )
        self._number = 0

    def initialize(self) -> None:
        """The first exchange, up to and without the policy."""
        self.request("initialize", INITIALIZE)
        self.write(line({"method": "notifications/initialized"}))

    def grant(self) -> None:
        """The policy as a Request, and its receipt."""
        receipt = self.request("featureSets/update", POLICY)
        if receipt.get("mode") not in {None, "full"}:
            raise Unmeasurable(f"the policy was not taken in full: {json.dumps(receipt)}")

    def connect(self) -> None:
        """Everything a host does before the agent's first turn, in a host's order."""
        self.initialize()
        self.grant()
        self.request("tools/list", {})

    def request(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """One request, its result."""
        self._number += 1
        answer = self.ask(line({"id": self._number, "method": method, "params": dict(params)}))
        return result_of(self.own(answer, self._number), self._number)

    def text(self, tool: str, arguments: Mapping[str, object]) -> str:
        """One tool call, the text of its result."""
        self._number += 1
        answer = self.ask(call(self._number, tool, arguments))
        return text_of(self.own(answer, self._number), self._number)

    def own(self, data: bytes, number: int) -> bytes:
        """The line that answers request ``number``; pushes that came with it are taken."""
        while True:
            for found in data.splitlines():
                if b'"method"' not in found:
                    return found
                self.write(taken(found))
            data = self.read()
            while not data.endswith(b"\n"):
                data += self.read()


def taken(push: bytes) -> bytes:
    """The answer that accepts a push, ``b""`` for a notification."""
    found = PUSH_ID.search(push)
    if found is None:
        return b""
    return b'{"jsonrpc":"2.0","id":' + found[1] + b',"result":{"accepted":true}}\n'


def result_of(answer: bytes, number: int) -> Mapping[str, Any]:
    """The result in an answer to ``number``, or ``Unmeasurable`` with what came instead."""
    try:
        message = json.loads(answer)
        if message["id"] == number and isinstance(message["result"], dict):
            return dict(message["result"])
    except (ValueError, LookupError, TypeError):
        pass
    raise Unmeasurable(f"request {number} was answered {answer[:300].decode('utf-8', 'replace')}")


def text_of(answer: bytes, number: int) -> str:
    """The text of a tool result that is no error."""
    result = result_of(answer, number)
    if result.get("isError"):
        raise Unmeasurable(f"a tool call failed: {json.dumps(result)[:300]}")
    return str(result["content"][0]["text"])


def stored(count: int, first_due: int, apart: int) -> list[dict[str, object]]:
    """``count`` rows as the Node server keeps them, due from ``first_due`` on."""
    set_at = first_due - 86_400_000
    return [
        {
            "id": f"rem_{number * 2654435761 % 0x1000000:06x}{number:06x}",
            "message": f"Reminder {number}: see whether the long job has finished",
            "createdAt": set_at,
            "fireAt": first_due + number * apart,
            "everySeconds": None,
        }
        for number in range(count)
    ]


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """The reminders file, indented as the Node server writes it."""
    path.write_text(json.dumps(rows, indent=2), "utf-8")
