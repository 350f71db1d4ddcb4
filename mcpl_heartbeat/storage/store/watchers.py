"""Who watches a store: whether the server that comes now is the first one, or others are there.

Everybody who watches holds a shared lock that dies with them: on SQLite a ``flock`` on the file
``<store>.watch``, on PostgreSQL an advisory lock of a session. Who gets it exclusively is alone, so
nobody has watched since the store was last seen; it is kept exclusively until that gap is noted,
so that no second server can act before.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from typing import Protocol

import sqlalchemy as sa

from mcpl_heartbeat.storage.store.engine import Line
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.urls import Place

WATCH_LOCK = 0x6D63_706C_0002
"""The key of the watchers' advisory lock on PostgreSQL."""
PATIENCE_S = 10.0
"""How long to wait for another server that is just coming."""
_PAUSE_S = 0.02
_STARTING = "another server is starting on it, and does not get done"


class Watchers(Protocol):
    """Our part in the watch."""

    def join(self) -> bool:
        """Take part: whether we are alone, for then ``settle`` has to follow.

        Raises ``StoreError``, ``OSError`` or what the database raises.
        """

    def settle(self) -> None:
        """Let others in: what we found on coming alone is noted."""

    def keep(self) -> None:
        """See to it that we still take part; raises as ``join`` does."""

    def leave(self) -> None:
        """Take part no longer. Raises nothing."""


class NoWatch:
    """For those who only look on, such as a command for people."""

    def join(self) -> bool:
        """Take no part."""
        return False

    def settle(self) -> None:
        """Nothing was held."""

    def keep(self) -> None:
        """Nothing is held."""

    def leave(self) -> None:
        """Nothing is held."""


class FileWatch:
    """The watch of a SQLite store; the file stays, which is what makes its lock safe."""

    def __init__(self, place: Place, pause: Callable[[float], None] = time.sleep) -> None:
        self._path = f"{place.path}.watch"
        self._pause = pause
        self._file: int | None = None

    def join(self) -> bool:
        """Lock the file."""
        if self._file is not None:
            return False
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self._path, flags, 0o600)
        try:
            kind = self._lock(file, fcntl.LOCK_EX, fcntl.LOCK_SH)
            self._file = file
            return kind == fcntl.LOCK_EX
        finally:
            if self._file is None:
                os.close(file)

    def settle(self) -> None:
        """Share the lock from now on."""
        if self._file is not None:
            # In between it is nobody's, and another that comes may be faster.
            self._lock(self._file, fcntl.LOCK_SH)

    def keep(self) -> None:
        """Nothing but closing it takes a file's lock away."""

    def _lock(self, file: int, *kinds: int) -> int:
        """Get the first of these locks that can be had, and say which; nothing is waited in."""
        for _ in range(int(PATIENCE_S / _PAUSE_S)):
            for kind in kinds:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                    return kind
            self._pause(_PAUSE_S)
        raise StoreError(_STARTING)

    def leave(self) -> None:
        """Unlock the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class SessionWatch:
    """The watch of a PostgreSQL store, on a connection that does nothing else."""

    def __init__(self, line: Line, pause: Callable[[float], None] = time.sleep) -> None:
        self._line = line
        self._pause = pause
        self._joined = False
        self._kept = 0.0

    def join(self) -> bool:
        """Take the advisory lock."""
        if self._joined and self._line.stands:
            return False
        conn = self._line.get()
        for _ in range(int(PATIENCE_S / _PAUSE_S)):
            for alone, function in (
                (True, "pg_try_advisory_lock"),
                (False, "pg_try_advisory_lock_shared"),
            ):
                if self._ask(conn, function):
                    self._joined = True
                    self._kept = time.monotonic()
                    return alone
            self._pause(_PAUSE_S)
        raise StoreError(_STARTING)

    def settle(self) -> None:
        """Take it shared too, and let go of the exclusive one."""
        conn = self._line.get()
        self._ask(conn, "pg_try_advisory_lock_shared")
        self._ask(conn, "pg_advisory_unlock")

    def keep(self) -> None:
        """Ask the database every 10 s whether the connection stands."""
        if self._joined and time.monotonic() - self._kept >= 10:
            self._kept = time.monotonic()
            with self._line.get().begin() as _:
                self._line.get().execute(sa.text("SELECT 1"))

    def leave(self) -> None:
        """End the session, and the lock with it."""
        self._joined = False
        self._line.drop()

    @staticmethod
    def _ask(conn: sa.Connection, function: str) -> bool:
        with conn.begin():
            return bool(conn.exec_driver_sql(f"SELECT {function}({WATCH_LOCK})").scalar())
