"""The host's side of the demo: a child process, its pipes, and answers to what it asks.

What the server asks of a host is answered by jsonrpcserver, so the two sides share no JSON-RPC
code. Plain blocking pipes: one thread reads the server's messages and answers its requests at once,
as a host must, while the story in ``main`` waits for an answer or a wake.
"""

import collections
import contextlib
import itertools
import json
import os
import queue
import subprocess
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from mcpl_heartbeat.demo.screen import Screen

ANSWER_SECONDS = 10.0
"""How long the server may take to answer before the demo gives up."""
EXIT_SECONDS = 5.0
CAPABILITY_DENIED = -32002


class Failure(Exception):
    """A step went otherwise than it should; the text says which and how, for a person."""


class Host:
    """One server as a child process, with this process as its host.

    ``command`` is started with ``environment`` in ``folder``. Use it as a context manager: leaving
    it ends the server whatever happened.
    """

    def __init__(
        self, command: Sequence[str], environment: dict[str, str], folder: Path, screen: Screen
    ) -> None:
        # Loaded here, since it takes longer than all the rest: nobody but a host needs it.
        with warnings.catch_warnings():
            # It reads its files in a way that Python 3.11 and 3.12 call out of date.
            warnings.simplefilter("ignore", DeprecationWarning)
            import jsonrpcserver  # noqa: PLC0415 - see above

        self._rpc = jsonrpcserver
        self._screen = screen
        self._ids = itertools.count()
        self._waiting: dict[int, str] = {}
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._wakes: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._log: collections.deque[str] = collections.deque(maxlen=5)
        self._writing = threading.Lock()
        self._taken: dict[str, Any] | None = None
        self.granted: frozenset[str] = frozenset()
        try:
            # A session of its own: Ctrl-C is for the demo, which then closes the server's stdin.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=folder,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise Failure(f"the server could not be started: {error}") from None
        self._threads = [
            threading.Thread(target=self._read_messages, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_log, args=(self._process.stderr,), daemon=True),
        ]
        assert self._process.stdin is not None
        self._stdin = self._process.stdin
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._stdin.close()
        for thread in self._threads:
            thread.join(EXIT_SECONDS)

    # What the story does.

    def request(
        self, method: str, params: dict[str, Any], seconds: float = ANSWER_SECONDS
    ) -> dict[str, Any]:
        """Send a request and return its result. Raises ``Failure`` for an error or no answer.

        ``seconds`` is how long the answer may take.
        """
        number = next(self._ids)
        self._waiting[number] = method
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise Failure(f"the server did not answer {method} within {seconds:g} s") from None
            if answer is None:
                raise Failure(f"the server ended before it answered {method}" + self._last_words())
            if answer.get("id") != number:
                continue
            if "error" in answer:
                raise Failure(f"the server refused {method}: {answer['error'].get('message')}")
            result = answer.get("result")
            if not isinstance(result, dict):
                raise Failure(f"the server answered {method} with no result object")
            return result

    def notify(self, method: str) -> None:
        """Send a notification without params."""
        self._send({"jsonrpc": "2.0", "method": method})

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Call a tool as the agent would; return what it reads, and whether it is an error."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        content = result.get("content") or [{}]
        return str(content[0].get("text", "")), bool(result.get("isError"))

    def next_wake(self, seconds: float) -> dict[str, Any] | None:
        """Wait for the next ``push/event`` that was accepted and return its params, or ``None``."""
        try:
            wake = self._wakes.get(timeout=seconds)
        except queue.Empty:
            return None
        if wake is None:
            raise Failure("the server ended while a wake was awaited" + self._last_words())
        return wake

    def close(self) -> int:
        """Close the server's stdin, as a host that stops does; return its exit code."""
        self._stdin.close()
        try:
            return self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(
                f"the server was still there {EXIT_SECONDS:g} s after its stdin was closed"
            ) from None

    # What the server asks.

    def _push_event(self, **event: Any) -> Any:
        if "pushEvents" not in self.granted:
            data = {"capability": "pushEvents"}
            return self._rpc.Error(CAPABILITY_DENIED, "Capability denied: pushEvents", data)
        self._taken = event
        return self._rpc.Success({"accepted": True})

    def _read_messages(self, stream: IO[bytes]) -> None:
        try:
            with stream:
                for raw in stream:
                    self._read_message(raw.decode("utf-8", "replace").rstrip("\n"))
        finally:
            # Whatever ended it: nobody may be left waiting.
            self._answers.put(None)
            self._wakes.put(None)

    def _read_message(self, line: str) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._screen.logged(f"not a message, but on stdout: {line[:200]}")
        elif "method" in message:
            self._screen.received(line, message)
            self._taken = None
            answer = self._rpc.dispatch(line, methods={"push/event": self._push_event})
            if answer:
                self._send(json.loads(answer), str(message["method"]))
            if self._taken is not None:
                # The agent wakes only now: what it does then must find the push answered.
                self._wakes.put(self._taken)
        else:
            identity = message.get("id")
            method = self._waiting.get(identity, "") if isinstance(identity, int) else ""
            self._screen.received(line, message, method)
            self._answers.put(message)

    def _read_log(self, stream: IO[bytes]) -> None:
        with stream:
            for raw in stream:
                line = raw.decode("utf-8", "replace").rstrip()
                self._log.append(line)
                self._screen.logged(line)

    def _send(self, message: dict[str, Any], answered: str = "") -> None:
        line = json.dumps(message, ensure_ascii=False)
        with self._writing:
            self._screen.sent(line, message, answered)
            try:
                self._stdin.write(line.encode() + b"\n")
                self._stdin.flush()
            except (OSError, ValueError):
                # A closed pipe: the reading thread sees the end and tells the story.
                return

    def _last_words(self) -> str:
        try:
            code = f" (exit code {self._process.wait(1.0)})"
        except subprocess.TimeoutExpired:
            code = ""
        self._threads[1].join(1.0)
        return code + (". Its last words: " + " | ".join(self._log) if self._log else "")
