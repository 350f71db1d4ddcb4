"""A server process on real pipes, for tests from outside.

It spawns the server command as a host does (an allowlisted environment, three pipes), reads every
line in a thread and keeps a record of everything. It shares no code with the package.

Every wait is bounded (``PATIENCE``) and none asserts that something was quick. The command is
``python -m mcpl_heartbeat --stdio``; ``HEARTBEAT_TEST_COMMAND`` names another one, whole.
"""

import contextlib
import importlib.metadata
import json
import os
import select
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.e2e.wire import Message

PATIENCE = 30.0
"""Seconds after which a wait is given up: far more than a busy machine needs."""


INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR")
"""Variables that agent-framework's host passes on to a child."""


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def command() -> list[str]:
    """Return the server command under test."""
    given = os.environ.get("HEARTBEAT_TEST_COMMAND")
    return shlex.split(given) if given else [sys.executable, "-m", "mcpl_heartbeat", "--stdio"]


def _installed() -> bool:
    """Tell whether the package is installed here; a bare checkout is put on the path instead."""
    try:
        importlib.metadata.version("mcpl-heartbeat")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


class Pipes:
    """One server process, its three pipes, and a record of what came out of them."""

    def __init__(
        self,
        folder: Path,
        *,
        env: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        stdin: int | None = None,
        read_stderr: bool = True,
        config: Path | None = None,
        reminders: Path | None = None,
    ) -> None:
        self.folder = folder
        self.config = config or folder / "heartbeat-config.json"
        self.reminders = reminders or folder / "heartbeat-reminders.json"
        self.batches = False
        self.lines: list[bytes] = []
        self.messages: list[Message] = []
        self.violations: list[str] = []
        self.stderr = ""
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._may_read = threading.Event()
        self._may_read.set()
        self._ended = False
        self._killed = False
        self._closing = False
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment |= {
            "HEARTBEAT_CONFIG_FILE": str(self.config),
            "HEARTBEAT_REMINDERS_FILE": str(self.reminders),
            "AGENT_TIMEZONE": "America/Los_Angeles",
        }
        if not _installed():
            environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        environment |= env or {}
        folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [*prefix, *command()],
            stdin=subprocess.PIPE if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: value for name, value in environment.items() if value != ""},
            cwd=folder,
            bufsize=0,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._out = self.process.stdout
        self._err = self.process.stderr
        self._threads = [threading.Thread(target=self._read_stdout, daemon=True)]
        if read_stderr:
            self._threads.append(threading.Thread(target=self._read_stderr, daemon=True))
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        if exc[0] is None:
            self.check()

    # Reading

    def _read_stdout(self) -> None:
        waiting = b""
        with contextlib.suppress(OSError, ValueError):
            while not self._closing:
                self._may_read.wait()
                # A thread blocked in a read would keep the pipe open after a close.
                if not select.select([self._out], [], [], 0.1)[0]:
                    continue
                chunk = os.read(self._out.fileno(), 1 << 16)
                if not chunk:
                    break
                *lines, waiting = (waiting + chunk).split(b"\n")
                for line in lines:
                    self._take(line)
        with self._changed:
            if waiting and not self._killed:
                self.violations.append(f"stdout ended inside a line: {waiting[:200]!r}")
            self._ended = True
            self._changed.notify_all()

    def _read_stderr(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._err.fileno(), 1 << 16):
                with self._changed:
                    self.stderr += chunk.decode("utf-8", "replace")
                    self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line.decode("utf-8"), parse_constant=_constant)
        except (ValueError, RecursionError) as problem:
            with self._changed:
                self.violations.append(f"not one JSON value: {line[:200]!r} ({problem})")
                self._changed.notify_all()
            return
        many = found if isinstance(found, list) and self.batches else [found]
        with self._changed:
            self.lines.append(line)
            for one in many:
                if not isinstance(one, dict) or one.get("jsonrpc") != "2.0":
                    self.violations.append(f"not a JSON-RPC 2.0 object: {line[:200]!r}")
                else:
                    one["_at"] = time.monotonic()
                    self.messages.append(one)
            self._changed.notify_all()
        for one in many:
            if isinstance(one, dict) and "method" in one:
                self.asked(one)

    def asked(self, message: Message) -> None:
        """Take a Request or Notification of the server's."""

    def stop_reading(self) -> None:
        """Leave the server's stdout unread until ``read_again``."""
        self._may_read.clear()

    def read_again(self) -> None:
        """Read the server's stdout again."""
        self._may_read.set()

    # Writing

    def write(self, data: bytes) -> None:
        """Write raw bytes to the server."""
        assert self.process.stdin is not None
        with self._writing:
            view = memoryview(data)
            while view:
                view = view[os.write(self.process.stdin.fileno(), view) :]

    def send(self, *messages: Any) -> None:
        """Write messages in one write, a line each."""
        lines = [json.dumps(m).encode() if not isinstance(m, bytes) else m for m in messages]
        self.write(b"".join(line + b"\n" for line in lines))

    # Waiting

    def wait(self, what: str, found: Callable[[], Any], timeout: float = PATIENCE) -> Any:
        """Wait until ``found()`` is true and return it; fail with the record otherwise."""
        limit = time.monotonic() + timeout
        with self._changed:
            while True:
                value = found()
                if value:
                    return value
                left = limit - time.monotonic()
                if left <= 0 or (self._ended and self.process.poll() is not None):
                    value = found()
                    if value:
                        return value
                    raise AssertionError(f"no {what}\n{self.record()}")
                self._changed.wait(min(left, 0.5))

    def wait_log(self, text: str, timeout: float = PATIENCE) -> str:
        """Wait until stderr holds ``text``; return all of stderr."""
        self.wait(f"log {text!r}", lambda: text in self.stderr, timeout)
        return self.stderr

    # Ending

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self.process.pid

    def end(self, timeout: float = 10.0) -> int:
        """Close stdin and wait for the exit; return the status."""
        self.close_stdin()
        return self.exit_status(timeout)

    def close_stdin(self) -> None:
        """Close the server's stdin."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def exit_status(self, timeout: float = 10.0) -> int:
        """Wait for the exit and for the last lines; return the status."""
        self.read_again()
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s\n{self.record()}") from None
        self._join()
        return status

    def close_stdout(self) -> None:
        """Close the host's end of the server's stdout."""
        self._closing = True
        self._threads[0].join(PATIENCE)
        self._out.close()

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the server outright and close everything."""
        if self.process.poll() is None:
            self._killed = True
            self.process.kill()
        self.process.wait(PATIENCE)
        self.read_again()
        self._join()
        self.close_stdin()
        for pipe in (self._out, self._err):
            with contextlib.suppress(OSError):
                pipe.close()

    def _join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)

    def check(self) -> None:
        """Fail when stdout held anything but JSON-RPC objects, or stderr a traceback."""
        assert not self.violations, self.violations
        assert "Traceback" not in self.stderr, self.stderr

    def record(self) -> str:
        """Return the record, for a failure's message."""
        lines = "\n".join(line[:300].decode("utf-8", "replace") for line in self.lines[-20:])
        return f"stdout:\n{lines}\nstderr:\n{self.stderr[-3000:]}"
