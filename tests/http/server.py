"""``mcpl-heartbeat serve`` as a process, for tests from outside."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which a wait is given up: far more than a busy machine needs."""
COMMAND = [sys.executable, "-m", "mcpl_heartbeat"]


class Server:
    """The process, and what it has said."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), **environ},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._fresh: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._fresh.put(line.rstrip("\n"))
        self._fresh.put(None)

    def said(self, pattern: str) -> re.Match[str]:
        """Wait for a line with ``pattern``."""
        while True:
            line = self._fresh.get(timeout=PATIENCE)
            assert line is not None, self.lines
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found

    @property
    def url(self) -> str:
        """Where it listens, once it does."""
        return self.said(r"Listening on (http://\S+), ")[1]

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Tell it to stop; the exit status, and how many seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        return status, time.monotonic() - began

    def ended(self) -> tuple[int, str, str]:
        """Wait for its end: the exit status, and all of stdout and stderr."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        while (line := self._fresh.get(timeout=PATIENCE)) is not None:
            self.lines.append(line)
        assert self.process.stdout is not None
        return status, self.process.stdout.read(), "\n".join(self.lines)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def server(folder: Path, *arguments: str, **environ: str) -> Iterator[Server]:
    """Start one, on any free port unless told otherwise."""
    chosen = arguments if "--listen" in arguments else ("--listen", "127.0.0.1:0", *arguments)
    started = Server(folder, *chosen, **environ)
    try:
        yield started
    finally:
        started.close()
