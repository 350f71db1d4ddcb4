"""One clock for several processes, in a file. It goes only when somebody moves it on.

The file holds the steady clock, the one on the wall and the database's, in milliseconds. It is
replaced whole, so that nobody reads half a time; who moves it holds a lock beside it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

STEADY, WALL = 5_000_000, 1_700_000_000_000
OFFSET = WALL - STEADY
"""What a store that is made at the beginning adds to the steady clock to get real time."""


class FileClock:
    """The clock of a store, as ``SteadyClock`` wants it."""

    source = "virtual"

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)

    @classmethod
    def make(cls, path: str | Path) -> "FileClock":
        """Set a new clock to the beginning."""
        clock = cls(path)
        clock._write(STEADY, WALL, WALL)
        return clock

    @property
    def folder(self) -> Path:
        """Where its file is."""
        return Path(self.path).parent

    def steady(self) -> int:
        """Milliseconds that only rise."""
        return self._read()[0]

    def wall(self) -> int:
        """Milliseconds as people have them."""
        return self._read()[1]

    @property
    def real(self) -> int:
        """Real time (ms) in a store that was made at the beginning."""
        return self.steady() + OFFSET

    def advance(self, ms: int) -> None:
        """Let time pass."""
        with self._lock(fcntl.LOCK_EX):
            steady, wall, database = self._read()
            self._write(steady + ms, wall + ms, database + ms)

    def set(self, wall: int | None = None, database: int | None = None) -> None:
        """Set the clock on the wall, or the database's, to so much (ms) beside the right time."""
        with self._lock(fcntl.LOCK_EX):
            steady, *before = self._read()
            offs = zip((wall, database), before, strict=True)
            after = [kept if off is None else steady + OFFSET + off for off, kept in offs]
            self._write(steady, *after)

    def still(self) -> contextlib.AbstractContextManager[None]:
        """No time passes, for anybody."""
        return self._lock(fcntl.LOCK_SH)

    def _read(self) -> tuple[int, int, int]:
        steady, wall, database = Path(self.path).read_bytes().split()
        return int(steady), int(wall), int(database)

    def _write(self, *values: int) -> None:
        temp = f"{self.path}.{os.getpid()}"
        Path(temp).write_text(" ".join(map(str, values)), encoding="ascii")
        Path(temp).rename(self.path)

    @contextlib.contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, kind)
            yield
        finally:
            os.close(lock)
