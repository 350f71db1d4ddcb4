"""The files of a SQLite store, and whether those that are open are those that lie there.

Beside the store's own file lie the two of its log, ``-wal`` and ``-shm``, while anybody has it
open. SQLite does not notice when one of the three is taken away or replaced: it goes on writing
into what nobody else will ever see, and whoever comes then begins a log of their own. So what lies
there is compared before and after each transaction. When it differs, all that this process has
open is let go of.

* The log was taken away: whoever notices brings what it holds into the store's file, for the last
  one to let go, of whom SQLite would do it, may be killed. Only when they all have let go may the
  store be opened again; it is seen by a lock that nobody gets while another has it open.
* The store's file was: SQLite brings nothing anywhere then, and leaves the log where it lies. So
  what it holds is brought into the file that is open before that is let go of, and the log removed
  before another file in its place is opened.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from mcpl_heartbeat.storage.store.ports import StoreError

START_S, AGAIN_S = 5.0, 0.3
"""How long (s) to wait for others to make the files, or to let go: at first, and later."""
_PAUSE_S = 0.02

Identity = tuple[int, int]


class Found(msgspec.Struct, frozen=True):
    """Which files lie there; ``None``: none."""

    main: Identity | None
    log: Identity | None = None
    index: Identity | None = None

    @property
    def whole(self) -> bool:
        """Whether none is missing, as it is while somebody has the store open."""
        return None not in {self.main, self.log, self.index}


class Files:
    """What this process has open of the store at ``path``; nothing at first."""

    def __init__(self, path: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._path = Path(path)
        self._beside = self._names_beside()
        self._pause = pause
        self._open: Found | None = None
        self._left: Found | None = None
        self._saved = self._overtaken = False

    @property
    def main(self) -> Identity | None:
        """Which file is open; ``None``: none."""
        return None if self._open is None else self._open.main

    def took(self) -> None:
        """Note what was just opened, and written to."""
        self._beside = self._names_beside()
        self._open, self._left = self._find(), None

    def trouble(self) -> str | None:
        """Say what became of what is open, one clause; ``None``: it lies there as it should."""
        if self._open is None:
            return None
        found = self._find()
        if found == self._open:
            return None
        if found.main is None:
            return self._unseen()
        if found.main != self._open.main:
            return "another file has taken its place"
        gone = self._names(found.log != self._open.log, found.index != self._open.index)
        return f"{gone} was taken away"

    def _unseen(self) -> str:
        try:
            self._path.stat()
        except FileNotFoundError:
            pass
        except OSError as error:
            return f"its file cannot be looked at any more ({error.strerror})"
        return "its file is gone"

    @property
    def moved(self) -> bool:
        """Whether what is open is not at the store's place any more."""
        return self._open is not None and self._open.main != self._find().main

    @property
    def orphaned(self) -> bool:
        """Whether nobody who comes now will find the log that is open, or one of their own."""
        return self._open is not None and self._find().log is None

    def left(self, *, trouble: bool, saved: bool = False) -> None:
        """Note that nothing is open any more. ``trouble``: there was some.

        ``saved``: all that the log held is in the file that was open, wherever that is now.
        """
        if self._open is None:
            return
        self._left, self._open, self._saved = self._open, None, saved
        found = self._find()
        # Nobody begins a new log while we have the old one, but who knows nothing of all this.
        self._overtaken = trouble and found.whole and found.main == self._left.main

    def weigh(self) -> None:
        """Raise ``StoreError`` where the store must not be opened now, ``OSError`` without it."""
        self._path.stat()
        if self._overtaken:
            self._overtaken = False
            raise StoreError(
                "its log was taken away while it was in use, and another program has begun a new "
                "one: what was done last may be lost, look whether it is there"
            )
        deadline = time.monotonic() + (START_S if self._left is None else AGAIN_S)
        while (why := self._why_not()) is not None:
            if time.monotonic() >= deadline:
                raise StoreError(why)
            self._pause(_PAUSE_S)

    def _why_not(self) -> str | None:
        found, left = self._find(), self._left
        if left is not None and found.main != left.main and found.log == left.log is not None:
            # SQLite would take it for the log of the file that lies there now.
            if not self._saved:
                return (
                    f"another file was put in its place, and {self._names(True, True)} beside it "
                    "are of the one before: stop every server on it, move those away, and start "
                    "them again"
                )
            log, index = self._beside
            log.unlink(missing_ok=True)
            if found.index == left.index:
                index.unlink(missing_ok=True)
            found = self._find()
        if found.whole or _alone(self._path):
            return None
        gone = self._names(found.log is None, found.index is None)
        return (
            f"{gone} was taken away while it is in use: stop every server and program that has "
            "the store open, then start the servers again"
        )

    def _names(self, log: bool, index: bool) -> str:
        named = zip(self._beside, (log, index), strict=True)
        return " and ".join(path.name for path, wanted in named if wanted)

    def _names_beside(self) -> tuple[Path, Path]:
        """Where the log and its index are, which is beside what a link leads to."""
        real = Path(os.path.realpath(self._path))
        return real.with_name(f"{real.name}-wal"), real.with_name(f"{real.name}-shm")

    def _find(self) -> Found:
        log, index = self._beside
        return Found(_identity(self._path), _identity(log), _identity(index))


def weigh(path: str) -> None:
    """Do as ``Files.weigh`` does, for somebody who has not had it open."""
    Files(path).weigh()


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _alone(path: Path) -> bool:
    """Whether nobody has the store open, in this process or another."""
    if path.stat().st_size == 0:
        # There is nothing in it that could be lost, and it may just be made.
        return True
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as conn:
            # So it needs no index of the log, and no other connection gets in beside it.
            conn.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            conn.execute("BEGIN IMMEDIATE")
            conn.execute("ROLLBACK")
    except sqlite3.Error as error:
        # Whatever else is wrong with it, whoever opens it is told.
        return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
    return True
