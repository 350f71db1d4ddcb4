"""A disk that fails: faults below SQLAlchemy, in the connections of stores, wherever one wants.

A call that is refused for one is looked into, and made again: nothing of it may be kept, unless the
fault was one of those after which nobody knows.
"""

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mcpl_heartbeat.storage.store.ports import Ask, Outcome, StoreError, Swept
from mcpl_heartbeat.storage.store.store import Store
from tests.watch_histories.drive import WATCH, Drive

How = Literal["statement", "ended", "room", "commit", "kept"]
FULL = (sqlite3.SQLITE_FULL, "database or disk is full")
BROKEN = (sqlite3.SQLITE_IOERR_WRITE, "disk I/O error")
FAULT = st.tuples(
    st.sampled_from(["statement", "ended", "ended", "room", "commit", "kept"]),
    st.sampled_from([0, 2, 5, 7, 9, 11, 14, 20]),
)
FAULTS = st.lists(FAULT, min_size=3, max_size=8)
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


@dataclass
class Fault:
    """How it fails, and after how many statements (a fifth as many transactions).

    ``statement``: it is refused, and the transaction goes on. ``ended``: SQLite takes back the
    whole transaction by itself. ``room``: the file may grow no further from that transaction on,
    and SQLite finds out. ``commit``: it is refused, and taken back. ``kept``: it is refused, and
    kept.
    """

    how: How
    after: int


class Disk:
    """What all connections to a store run into."""

    def __init__(self) -> None:
        self.full = False
        """Whether nothing can be written."""
        self.struck: Fault | None = None
        self.strikes = 0
        self._coming: list[Fault] = []

    def plan(self, faults: Iterable[tuple[How, int]], *, first: bool = False) -> None:
        """Fail in these ways, one after another, before or after what is planned already."""
        new = [
            Fault(how, after // 5 if how in {"commit", "kept", "room"} else after)
            for how, after in faults
        ]
        self._coming = [*new, *self._coming] if first else [*self._coming, *new]

    @property
    def sound(self) -> bool:
        """Whether nothing is planned."""
        return not self._coming and not self.full

    def over(self) -> None:
        """The fault is over; the next one, if any, comes."""
        self.struck = None
        if self._coming and self._coming[0].how == "room":
            self._coming.pop(0)

    def under(self, store: Store) -> None:
        """Put it under a store that has not been opened yet."""
        for line in (store._transactions._writer, store._transactions._noter):
            sa.event.listen(line._engine, "do_connect", self._connect)

    def _connect(self, _dialect: object, _record: object, _args: object, how: Any) -> None:
        how["factory"] = lambda *args, **more: _Connection(self, *args, **more)

    def statement(self, conn: "_Connection", text: str) -> None:
        """Before a statement."""
        if self.full:
            if text.startswith(_WRITES):
                self._fail(conn, FULL, end=True)
            return
        if text.startswith("BEGIN"):
            self._set_room(conn)
        if (fault := self._next("statement", "ended")) is not None:
            self._fail(conn, BROKEN if self.strikes % 2 else FULL, end=fault.how == "ended")

    def commit(self, conn: "_Connection", commit: Callable[[], None]) -> None:
        """Instead of a commit."""
        fault = self._next("commit", "kept") if conn.in_transaction and not self.full else None
        if fault is None or fault.how == "kept":
            commit()
        if fault is not None:
            self._fail(conn, BROKEN, end=True)

    def _next(self, *hows: How) -> Fault | None:
        """Count down the coming fault, if it is one of these; that it strikes now."""
        if not self._coming or self._coming[0].how not in hows:
            return None
        fault = self._coming[0]
        fault.after -= 1
        if fault.after >= 0:
            return None
        self.struck = self._coming.pop(0)
        return fault

    def _set_room(self, conn: "_Connection") -> None:
        fault = self._coming[0] if self._coming else None
        if fault is not None and fault.how == "room":
            fault.after -= 1
            if fault.after < 0:
                conn.plainly("PRAGMA max_page_count = 1")
                return
        conn.plainly("PRAGMA max_page_count = 1073741823")

    def _fail(self, conn: "_Connection", why: tuple[int, str], *, end: bool) -> None:
        self.strikes += not self.full
        if end and conn.in_transaction:
            conn.plainly("ROLLBACK")
        error = sqlite3.OperationalError(why[1])
        error.sqlite_errorcode = why[0]
        raise error


class _Connection(sqlite3.Connection):
    def __init__(self, disk: Disk, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.disk = disk

    def cursor(self, *_: object) -> sqlite3.Cursor:
        return super().cursor(_Cursor)

    def commit(self) -> None:
        self.disk.commit(self, super().commit)

    def plainly(self, text: str) -> None:
        """Carry out a statement that cannot fail."""
        sqlite3.Cursor(self).execute(text).fetchall()


class _Cursor(sqlite3.Cursor):
    connection: _Connection

    def execute(self, text: str, *args: Any) -> sqlite3.Cursor:
        self.connection.disk.statement(self.connection, text)
        return super().execute(text, *args)

    def executemany(self, text: str, *args: Any) -> sqlite3.Cursor:
        self.connection.disk.statement(self.connection, text)
        return super().executemany(text, *args)


class Patient:
    """A server, for callers that try again when they are refused."""

    def __init__(self, store: Store, disk: Disk, path: str) -> None:
        self.store = store
        self._disk = disk
        self._path = path
        self._plainly = store._transactions.write
        store._transactions.write = self._write  # type: ignore[method-assign]
        self._begun: Any = None
        self._done = False

    def open(self) -> None:
        self._try(self.store.open)

    def close(self) -> None:
        self.store.close()
        self._disk.over()

    def look(self, ask: Ask) -> Outcome:
        return self._try(lambda: self.store.look(ask))

    def answer(self, asks: Sequence[Ask]) -> list[Outcome]:
        found = self._try(lambda: self.store.answer(asks))
        # What could not be told is the work's own result, with what it notes beside.
        return found[0] if isinstance(found, tuple) else found

    def sweep(self, most: int) -> Swept:
        return self._try(lambda: self.store.sweep(most))

    def rows(self) -> dict[str, list[Any]]:
        """All that is in the store, but for its time."""
        with contextlib.closing(sqlite3.connect(self._path)) as conn:
            names = conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return {
                name: conn.execute(f"SELECT * FROM {name}").fetchall()
                for (name,) in sorted(names)
                if name != "clock"
            }

    def _write(self, work: Callable[..., Any], **more: Any) -> Any:
        """Remember what was about to be told."""

        def noted(tx: Any) -> Any:
            self._begun = work(tx)
            return self._begun

        done = self._plainly(noted, **more)
        self._done = True
        return done

    def _try(self, work: Callable[[], Any]) -> Any:
        while True:
            before = None if self._disk.sound else self.rows()
            self._begun, self._done = None, False
            try:
                return work()
            except StoreError:
                assert before is not None, "refused, though nothing was wrong"
                unknown = self._disk.struck is not None and self._disk.struck.how == "kept"
                self._disk.over()
                if self._begun is not None and (self._done or unknown):
                    return self._begun
                after = self.rows()
                # A gap is kept by itself, before the work.
                if not before or after["gaps"] == before["gaps"]:
                    assert after == before, "something is left of what was refused"


class FailingDrive(Drive):
    """Servers on a disk that fails; goes before the drive that it is of."""

    disk: Disk
    leaving = False

    def made(self) -> Store:
        if not hasattr(self, "disk"):
            self.disk = Disk()
            # Small pages: it often has to grow.
            with contextlib.closing(sqlite3.connect(self.path)) as conn:
                conn.execute("PRAGMA page_size = 512")
                conn.execute("PRAGMA user_version = 1")
        store = super().made()
        self.disk.under(store)
        return Patient(store, self.disk, self.path)  # type: ignore[return-value]

    def learn(self, limit: int) -> None:
        with contextlib.closing(sqlite3.connect(self.path)) as conn:
            [(seen,)] = conn.execute("SELECT seen FROM clock")
        if self.leaving and seen != self.model.real:
            # The last word of whoever left could not be written.
            self.take_gaps()
        else:
            super().learn(limit)

    def stop(self, slot: int) -> None:
        self.leaving = True
        super().stop(slot)
        self.leaving = False

    @property
    def path(self) -> str:
        return self.url.removeprefix("sqlite:///")


class FailingDisk:
    """What a disk does, beside the rules of a history; goes before the history."""

    drive: FailingDrive

    @rule(faults=FAULTS)
    def the_disk_will_fail(self, faults: list[tuple[How, int]]) -> None:
        self.drive.disk.plan(faults)

    @rule(ms=st.sampled_from([2_000, 12_000, 31_000]), fault=FAULT)
    def it_fails_at_what_is_due(self, ms: int, fault: tuple[How, int]) -> None:
        self.drive.let_pass(ms - WATCH)
        self.drive.advance(WATCH)
        self.drive.disk.plan([fault], first=True)
        self.drive.sweep(self.drive.running[0])

    @rule(ms=st.sampled_from([2_000, 6_000, 32_000]))
    def the_disk_is_full_for_a_while(self, ms: int) -> None:
        disk = self.drive.disk
        servers = [self.drive.stores[slot] for slot in self.drive.running]
        before = servers[0].rows()  # type: ignore[union-attr]
        disk.full = True
        for server in itertools.chain.from_iterable(servers for _ in range(0, ms, WATCH)):
            self.drive.advance(WATCH // len(servers))
            with contextlib.suppress(StoreError):
                server.store.sweep(200)  # type: ignore[union-attr]
        assert servers[0].rows() == before  # type: ignore[union-attr]
        disk.full = False
        for slot in self.drive.running:
            self.drive.sweep(slot)
