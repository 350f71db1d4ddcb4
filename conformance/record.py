"""Stands between a host and its server, and lets everything through: bytes, signals, the status.

Neither side can tell. What passed is kept, and written as a transcript whenever nothing passes for
a moment, so that a host that kills its server loses at most that moment.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from conformance import recording
from conformance.recording import Event, Session

_CHUNK = 65_536
_PIECE = select.PIPE_BUF
"""Bytes that a pipe takes without waiting once it says that it has room."""
_MOST_HELD = 1024 * 1024
_QUIET_MS = 300
_TIME_TO_DRAIN = 1.0
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FILES = {"config": "HEARTBEAT_CONFIG_FILE", "reminders": "HEARTBEAT_REMINDERS_FILE"}


def run(command: Sequence[str], out: Path, title: str) -> int:
    """Run ``command`` in the place of this process; return its status, or die of its signal."""
    paths = {
        name: Path(os.environ.get(variable) or f"heartbeat-{name}.json").absolute()
        for name, variable in _FILES.items()
    }
    session = Session(
        title=title,
        began=_now(),
        environment=dict(os.environ),
        paths={name: str(path) for name, path in paths.items()},
        before=_contents(paths),
    )
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127
    between = Between(process, session, out)
    status = between.run()
    session.after = _contents(paths)
    session.events.append(Event(_now(), "exit", status=status))
    between.write_down()
    if status < 0:
        number = -status
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return status


class Between:
    """The three streams of ``process``, joined to our own."""

    def __init__(self, process: subprocess.Popen[bytes], session: Session, out: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._session = session
        self._out = out
        self._written = 0
        self._woken, self._wake = os.pipe()
        for descriptor in (self._woken, self._wake, process.stdin.fileno()):
            os.set_blocking(descriptor, False)
        self._streams = [
            Stream(0, process.stdin.fileno(), "host"),
            Stream(process.stdout.fileno(), 1, "server"),
            Stream(process.stderr.fileno(), 2, "log"),
        ]

    def run(self) -> int:
        """Pass everything on until the process is gone and its output has been passed on."""
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for name in _FORWARDED:
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._forward)
        drain_until: float | None = None
        while True:
            if self._process.poll() is not None:
                drain_until = drain_until or time.monotonic() + _TIME_TO_DRAIN
                host_in = self._streams[0]
                if not host_in.done:
                    host_in.close()
                if all(stream.done for stream in self._streams[1:]):
                    break
                if time.monotonic() > drain_until:  # something it started still holds its output
                    break
            self._pass_on(_QUIET_MS)
        return self._process.wait()

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)
            self._session.events.append(Event(_now(), "signal", signal.Signals(number).name))

    def _pass_on(self, timeout: int) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        by_descriptor: dict[int, list[Stream]] = {}
        for stream in self._streams:
            for descriptor, events in stream.interests():
                by_descriptor.setdefault(descriptor, []).append(stream)
                poll.register(descriptor, events)
        ready = poll.poll(timeout)
        if not ready:
            self.write_down()
        for descriptor, events in ready:
            if descriptor == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, _CHUNK)
            for stream in by_descriptor.get(descriptor, []):
                data = stream.serve(descriptor, events)
                if data is not None and stream.name != "log":
                    self._session.events.append(Event(_now(), stream.name, data))

    def write_down(self) -> None:
        """Write the transcript as it stands, unless nothing has passed since the last time."""
        if len(self._session.events) == self._written:
            return
        self._written = len(self._session.events)
        draft = self._out.with_name(f".{self._out.name}.draft")
        try:
            draft.write_text(recording.transcript_of(self._session), "utf-8")
            draft.replace(self._out)
        except Exception as error:  # no recording is worth the session that it records
            text = f"The recording could not be written: {type(error).__name__}: {error}\n"
            with contextlib.suppress(OSError):
                os.write(2, text.encode())


class Stream:
    """Bytes on their way from one descriptor to another; no more than so many are held."""

    def __init__(self, source: int, sink: int, name: str) -> None:
        self.name = name
        self.done = False
        self._source: int | None = source
        self._sink = sink
        self._held = bytearray()

    def interests(self) -> list[tuple[int, int]]:
        """Return what to wait for; a sink that nobody reads any more always reports itself."""
        if self.done:
            return []
        interests = [(self._sink, select.POLLOUT if self._held else 0)]
        if self._source is not None and len(self._held) < _MOST_HELD:
            interests.append((self._source, select.POLLIN))
        return interests

    def serve(self, descriptor: int, events: int) -> bytes | None:
        """Do what can be done at once; return what was read, empty at its end."""
        if self.done:
            return None
        if descriptor == self._sink:
            self._write(events)
            return None
        data = self._read()
        if data:
            self._held += data
            self._write(0)
        elif not self._held:
            self.close()
        return data

    def close(self) -> None:
        """Pass the end on, in both directions."""
        self.done = True
        for descriptor in (self._source, self._sink):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)

    def _read(self) -> bytes:
        assert self._source is not None
        try:
            data = os.read(self._source, _CHUNK)
        except OSError:
            data = b""
        if not data:
            with contextlib.suppress(OSError):
                os.close(self._source)
            self._source = None
        return data

    def _write(self, events: int) -> None:
        poll = select.poll()
        poll.register(self._sink, select.POLLOUT)
        try:
            while self._held and poll.poll(0):
                del self._held[: os.write(self._sink, self._held[:_PIECE])]
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        gone = events & (select.POLLERR | select.POLLNVAL | select.POLLHUP)
        if gone or (self._source is None and not self._held):
            self.close()


def _contents(paths: dict[str, Path]) -> dict[str, bytes]:
    found = {}
    for name, path in paths.items():
        with contextlib.suppress(OSError):
            found[name] = path.read_bytes()
    return found


def _now() -> int:
    return time.time_ns() // 1_000_000
