"""How work on the store becomes a transaction: at one moment, tried again where that can help.

Before anything else a transaction reads the time and looks whether the store went unwatched; a gap
is kept in a transaction of its own, and then the work begins. So no call, on whichever server, acts
on a time in which nobody watched.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from mcpl_heartbeat.storage.store import clock as clocks
from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import migrate
from mcpl_heartbeat.storage.store.clock import SteadyClock
from mcpl_heartbeat.storage.store.engine import Kind, Line
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.timekeeper import Look, Timekeeper
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.storage.store.urls import Place
from mcpl_heartbeat.storage.store.watchers import FileWatch, NoWatch, SessionWatch, Watchers
from mcpl_heartbeat.watch.clock import Gap

T = TypeVar("T")

PATIENCE_S = 5.0
"""How long work is tried again while others are in its way."""
_ROUNDS = 5
"""How often in a row the clock may have to be mended before work can begin."""


class Transactions:
    """Carries out work on one store; ``after_gap`` is done wherever a gap is kept.

    ``write`` may be called from any thread, one at a time gets on; ``read`` runs beside it.
    """

    def __init__(  # noqa: PLR0913 - the outside, all named
        self,
        place: Place,
        clock: SteadyClock,
        random: Callable[[int], bytes],
        after_gap: Callable[[Transaction], None],
        *,
        watch: bool = True,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._place = place
        self._random = random
        self._after_gap = after_gap
        self._pause = pause
        self._clock = clock
        self._time = self._new_time()
        engine = engines.make_engine(place)
        self._writer = Line(place, engine)
        self._noter = Line(place, engines.make_engine(place, relaxed=True))
        self._reader = Line(place, engines.reading(engine))
        self._watchers = _watchers(place, engine, pause) if watch else NoWatch()
        self._turn = threading.RLock()
        self._reading = threading.Lock()
        self._open = False
        self._file: tuple[int, int] | None = None
        self._known = self._readable = False
        self._why = "it is not open yet"
        self._gap: Gap | None = None

    def open(self) -> None:
        """Connect, bring the tables up to date, take part in the watch. Raises ``StoreError``."""
        with self._turn:
            try:
                self._patiently(self._come)
            except (SQLAlchemyError, OSError) as error:
                raise StoreError(engines.judge(error).text) from error

    def close(self) -> None:
        """Note until when we watched, and leave. Never raises ``StoreError``."""
        with self._turn:
            if self._open:
                with contextlib.suppress(StoreError):
                    self._patiently(lambda: self._attempt(_nothing, exact=True))
            self._readable = False
            self._drop("it was closed")
            self._watchers.leave()
        with self._reading:
            self._reader.drop()

    def write(self, work: Callable[[Transaction], T], *, note: bool = True) -> T:
        """Do ``work`` in one durable transaction, perhaps more than once, and give what it gave.

        ``note``: it is kept, with the work, that somebody watches. Raises ``StoreError`` when the
        store cannot be used or nobody knows whether the work is kept, else what ``work`` raised.
        """
        with self._turn:

            def attempt() -> T:
                self._come()
                return self._attempt(work, note=note)

            return self._patiently(attempt)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Do ``work``, which only reads, on one snapshot. Raises as ``write`` does."""
        if not self._readable:
            raise StoreError(self._why)
        with self._reading:
            for again in (True, False):
                try:
                    return self._read(work)
                except (SQLAlchemyError, OSError) as error:
                    trouble = engines.judge(error)
                    if trouble.kind is Kind.OURS:
                        raise
                    self._reader.drop()
                    if trouble.kind is Kind.STORE or not again:
                        raise StoreError(trouble.text) from error
        raise AssertionError("unreachable")

    def watch(self) -> None:
        """Note that we watch, where the note has grown old; a power cut may lose that note."""
        with self._turn:
            self._patiently(self._note)

    def take_gap(self) -> Gap | None:
        """Give the last gap that we found, once."""
        with self._turn:
            gap, self._gap = self._gap, None
            return gap

    def _patiently(self, attempt: Callable[[], T]) -> T:
        began, lost = time.monotonic(), False
        while True:
            try:
                return attempt()
            except StoreError as error:
                self._drop(str(error))
                raise
            except (SQLAlchemyError, OSError) as error:
                trouble = engines.judge(error)
                if trouble.kind is Kind.OURS:
                    raise
                if trouble.kind is not Kind.BUSY:
                    self._drop(trouble.text)
                late = time.monotonic() - began >= PATIENCE_S
                if trouble.kind is Kind.STORE or (late if trouble.kind is Kind.BUSY else lost):
                    raise StoreError(trouble.text) from error
                lost = lost or trouble.kind is Kind.LOST
                self._pause(0.01)

    def _come(self) -> None:
        if self._open and self._writer.stands:
            return
        self._open = False
        if self._place.path is not None and not self._known:
            engines.make_file(self._place.path)
        try:
            conn = self._writer.get()
            if self._writer.file != self._file:
                # Another store lies there now, and what is remembered is of the one before.
                self._file, self._time = self._writer.file, self._new_time()
            # Where we have worked, an empty store is one that was lost, or is being put back.
            migrate.bring_up(conn, self._place, anew=not self._known)
            engines.begin_writing(conn)
            self._time.begin(conn, self._random(32))
            conn.commit()
            alone = self._watchers.join()
            gap_ms = clocks.ALONE_GAP_MS if alone else clocks.GAP_MS
            self._attempt(_nothing, gap_ms=gap_ms)
            if alone:
                self._watchers.settle()
        except BaseException:
            self._writer.drop()
            self._watchers.leave()
            raise
        self._open = self._known = self._readable = True

    def _attempt(
        self,
        work: Callable[[Transaction], T],
        *,
        note: bool = True,
        exact: bool = False,
        gap_ms: int = clocks.GAP_MS,
    ) -> T:
        conn = self._writer.get()
        try:
            look = self._begin(conn, gap_ms)
            result = work(self._transaction(conn, look))
            if exact or (note and look.stale):
                self._time.note(conn, look)
            self._commit(conn)
        finally:
            if conn.in_transaction():
                with contextlib.suppress(SQLAlchemyError):
                    conn.rollback()
        self._time.remember(look, watched=note or not look.stale)
        return result

    def _begin(self, conn: sa.Connection, gap_ms: int) -> Look:
        """Begin a writer's transaction at a moment that needs no mending of the clock."""
        for _ in range(_ROUNDS):
            engines.begin_writing(conn)
            look = self._time.look(conn, gap_ms)
            if look.settled:
                return look
            self._time.keep(conn, look)
            if look.tick.gap is not None:
                self._after_gap(self._transaction(conn, look))
            self._commit(conn)
            self._time.remember(look, watched=True)
            self._gap = look.tick.gap or self._gap
        raise StoreError("its clock does not stand still long enough to be read")

    def _commit(self, conn: sa.Connection) -> None:
        try:
            conn.commit()
        except SQLAlchemyError as error:
            # Whether it is kept cannot be told from here, so it must not be done again.
            raise StoreError(engines.judge(error).text) from error
        if not self._writer.stands:
            raise StoreError("its file was taken away meanwhile")

    def _transaction(self, conn: sa.Connection, look: Look) -> Transaction:
        return Transaction(conn, self._time.reading(conn, look), look.salt, self._random)

    def _read(self, work: Callable[[Transaction], T]) -> T:
        conn = self._reader.get()
        if self._reader.file != self._file:
            raise StoreError("another file has taken its place")
        with conn.begin():
            return work(self._transaction(conn, self._time.look(conn)))

    def _note(self) -> None:
        self._watchers.keep()
        self._come()
        conn = self._noter.get()
        with conn.begin():
            look = self._time.look(conn)
            if not look.stale or not look.settled:
                return
            self._time.note(conn, look)
        self._time.remember(look, watched=True)

    def _new_time(self) -> Timekeeper:
        return Timekeeper(self._clock, database=self._place.path is None)

    def _drop(self, why: str) -> None:
        self._open, self._why = False, why
        self._writer.drop()
        self._noter.drop()


def _watchers(place: Place, engine: sa.Engine, pause: Callable[[float], None]) -> Watchers:
    if place.path is not None:
        return FileWatch(place, pause)
    return SessionWatch(Line(place, engine), pause)


def _nothing(_: Transaction) -> None:
    """Take part, and do nothing else."""
