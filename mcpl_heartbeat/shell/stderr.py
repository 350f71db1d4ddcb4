"""Log lines on descriptor 2 that never make the server wait.

A host need not read stderr, and one that does not must not stop the server once the pipe is full
(issue 2, section 1). So a line is written only when the descriptor has room, is short enough for a
pipe to take it whole, and is counted when it had to be dropped.
"""

import contextlib
import io
import logging
import os
import select
import stat
import sys
import time

LONGEST_LINE = 4000
"""Bytes, LF included. Below ``PIPE_BUF``, so that a pipe takes a line whole or not at all."""

_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_ESCAPES |= {0x09: "\t", 0x0A: "\\n", 0x0D: "\\r", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class StderrHandler(logging.Handler):
    """Writes ``2026-12-01T20:56:58.123Z WARNING: text`` to a descriptor, or drops it.

    Lines of level INFO carry no level word. Control characters in the text are escaped, so one
    record is one line. When room comes again, a line says how many were dropped. Never raises.
    """

    def __init__(self, descriptor: int) -> None:
        """Write to ``descriptor``; it is left in the mode it is in."""
        super().__init__()
        self._descriptor = _without_waiting(descriptor)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line if there is room now."""
        try:
            if self._dropped and self._write(_line(time.time(), _missed(self._dropped))):
                self._dropped = 0
            text = record.getMessage()
            if record.levelno >= logging.WARNING:
                text = f"{record.levelname}: {text}"
            if self._dropped or not self._write(_line(record.created, text)):
                self._dropped += 1
        except Exception:  # a log line is never worth the server
            self._dropped += 1

    def _write(self, line: bytes) -> bool:
        try:
            events = self._poll.poll(0)
            if not events or not events[0][1] & select.POLLOUT:
                return False
            return os.write(self._descriptor, line) > 0
        except OSError:
            return False


class StrayText(io.TextIOBase):
    """Stands in for ``sys.stdout`` and ``sys.stderr``: what is printed becomes log lines.

    The server prints nothing; a library might. Its text must neither reach the host nor wait on a
    full pipe.
    """

    def __init__(self) -> None:
        """Start with no half line."""
        super().__init__()
        self._half = ""

    def writable(self) -> bool:
        """Say yes: text can be printed here."""
        return True

    def write(self, text: str) -> int:
        """Log each whole line; keep a half one until its end comes."""
        *lines, rest = (self._half + text).split("\n")
        self._half = rest[:LONGEST_LINE]
        for line in filter(str.strip, lines):
            logging.getLogger("mcpl_heartbeat").info("%s", line)
        return len(text)


def install(descriptor: int = 2) -> None:
    """Send all logging, and whatever is printed, to ``descriptor`` as log lines.

    A descriptor that is closed is left alone: then nothing is logged anywhere.
    """
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    with contextlib.suppress(OSError):
        os.fstat(descriptor)
        root.handlers[:] = [StderrHandler(descriptor)]
    sys.stdout = sys.stderr = StrayText()


def describe(error: BaseException) -> str:
    """Say in one line what broke and where: type, message, innermost file and line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    try:
        text = str(error)
    except Exception:
        text = "(no message)"
    where = "an unknown place"
    if trace is not None:
        where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__}: {text[:500]} (at {where})"


def _line(created: float, text: str) -> bytes:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))
    shown = text.translate(_ESCAPES)
    line = f"{stamp}.{int(created * 1000) % 1000:03d}Z {shown}".encode("utf-8", "replace")
    if len(line) >= LONGEST_LINE:
        # Dropping what does not decode drops at most the character that the cut went through.
        line = line[: LONGEST_LINE - 4].decode("utf-8", "ignore").encode() + "…".encode()
    return line + b"\n"


def _missed(count: int) -> str:
    lines = "1 log line was" if count == 1 else f"{count} log lines were"
    return f"WARNING: {lines} dropped because standard error was full."


def _without_waiting(descriptor: int) -> int:
    # Between asking for room and writing, another process may fill the pipe. An opening of our own
    # can be made non-blocking without doing that to the others who share this one.
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{descriptor}", flags)
    except OSError:
        pass
    return descriptor
