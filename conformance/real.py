"""A stage in real time: the server is any command, started as a host starts it, on pipes.

One thread plays one transcript: what the server writes is read, and answered, whenever the player
lets time pass, which it does at every step.
"""

import codecs
import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.host import Seat
from conformance.stage import StageError

_CHUNK = 65_536
_LOOK_AGAIN = 0.02
"""Seconds after which files and exit statuses are looked at again."""
_BLOCK = 512
_LIMITED = 'trap "" XFSZ; ulimit -f "$0"; exec "$@"'


class RealStage:
    """Processes of ``command``. ``file_size`` (bytes) limits the files they may write."""

    def __init__(self, command: Sequence[str], file_size: int | None = None) -> None:
        self._command = [_from_anywhere(word) for word in command]
        if file_size is not None:
            blocks = str(-(-file_size // _BLOCK))
            self._command = ["/bin/sh", "-c", _LIMITED, blocks, *self._command]
        self._selector = selectors.DefaultSelector()
        self._peers: list[RealPeer] = []

    def now(self) -> int:
        """Return the system's wall time."""
        return time.time_ns() // 1_000_000

    def start(self, seat: Seat, environment: Mapping[str, str], folder: str) -> "RealPeer":
        """Start one more process."""
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                cwd=folder,
                # A session of its own, so that all it starts can be ended with it.
                start_new_session=True,
            )
        except OSError as error:
            raise StageError(f"{self._command[0]} cannot be started: {error}") from None
        peer = RealPeer(process, seat, self._selector)
        self._peers.append(peer)
        return peer

    def let_pass(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Read, write and answer until ``until()`` or ``seconds`` are over."""
        deadline = time.monotonic() + seconds
        pause = 0.0
        while True:
            self._serve(pause)
            if until():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            pause = min(left, _LOOK_AGAIN)

    def _serve(self, pause: float) -> None:
        if not self._selector.get_map():
            time.sleep(pause)
            return
        for key, _ in self._selector.select(pause):
            key.data()

    def between_writes(self) -> None:
        """Leave the server time to read what it has."""
        self.let_pass(_LOOK_AGAIN)

    def step_clock(self, ms: int) -> None:
        """Refuse: the system's clock is not ours to set."""
        raise NotImplementedError("only a virtual run can step the clock")

    def suspend(self, ms: int) -> None:
        """Refuse: the machine is not ours to suspend."""
        raise NotImplementedError("only a virtual run can suspend the machine")

    def close(self) -> None:
        """Kill what is left, with whatever it has started."""
        for peer in self._peers:
            peer.destroy()
        self._selector.close()


class RealPeer:
    """One process and its three pipes."""

    def __init__(
        self, process: subprocess.Popen[bytes], seat: Seat, selector: selectors.BaseSelector
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._seat = seat
        self._selector = selector
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unwritten = bytearray()
        self._watched: set[int] = set()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._watch(self._stdout.fileno(), selectors.EVENT_READ, self._read_messages)
        self._watch(self._stderr.fileno(), selectors.EVENT_READ, self._read_log)

    def write(self, data: bytes) -> None:
        """Queue bytes, and write as many as the pipe takes now."""
        if not self._stdin.closed:
            self._unwritten += data
            self._flush()

    @property
    def written(self) -> bool:
        """Whether nothing is queued."""
        return not self._unwritten

    def close(self, end: str) -> None:
        """Close our end of one of its pipes."""
        pipe = self._stdin if end == "stdin" else self._stdout
        self._unwatch(pipe.fileno())
        pipe.close()
        if end == "stdin":
            self._unwritten.clear()

    def signal(self, name: str) -> None:
        """Send the process a signal; one that is gone gets none."""
        self._process.send_signal(getattr(signal, name))

    @property
    def status(self) -> int | None:
        """How it ended."""
        return self._process.poll()

    @property
    def ended(self) -> bool:
        """Whether it is gone and its output read to the end."""
        unread = not self._stdout.closed and self._stdout.fileno() in self._watched
        return not unread and self.status is not None

    def destroy(self) -> None:
        """Kill it and all of its session, and close the pipes."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for pipe in (self._stdin, self._stdout, self._stderr):
            if not pipe.closed:
                self._unwatch(pipe.fileno())
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read_messages(self) -> None:
        data = self._read(self._stdout.fileno())
        if data is not None:
            self._seat.feed(data) if data else self._seat.end()

    def _read_log(self) -> None:
        data = self._read(self._stderr.fileno())
        if data is not None:
            self._seat.logged(self._decoder.decode(data, final=not data))

    def _read(self, descriptor: int) -> bytes | None:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return None
        if not data:
            self._unwatch(descriptor)
        return data

    def _flush(self) -> None:
        descriptor = self._stdin.fileno()
        try:
            while self._unwritten:
                del self._unwritten[: os.write(descriptor, self._unwritten[:_CHUNK])]
        except BlockingIOError:
            self._watch(descriptor, selectors.EVENT_WRITE, self._flush)
            return
        except OSError:
            # It reads no more; the steps see for themselves what that means.
            self._unwritten.clear()
        self._unwatch(descriptor)

    def _watch(self, descriptor: int, events: int, act: Callable[[], None]) -> None:
        if descriptor not in self._watched:
            self._watched.add(descriptor)
            self._selector.register(descriptor, events, act)

    def _unwatch(self, descriptor: int) -> None:
        if descriptor in self._watched:
            self._watched.remove(descriptor)
            self._selector.unregister(descriptor)


def _from_anywhere(word: str) -> str:
    """Return a word of the command so that it means the same in another working directory."""
    path = Path(word)
    is_ours = not path.is_absolute() and not word.startswith("-") and path.exists()
    # Not resolved: a Python in a virtual environment is a link, and must stay one.
    return str(Path.cwd() / path) if is_ours and "/" in word else word
