"""How work on the store becomes a transaction: at one moment, tried again where that can help.

Before anything else a transaction reads the time and looks whether the store went unwatched; a gap
is kept in a transaction of its own, and then the work begins. So no call, on whichever server, acts
on a time in which nobody watched.
"""

import contextlib
import logging
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
from mcpl_heartbeat.storage.store.files import Files, Identity
from mcpl_heartbeat.storage.store.ports import StoreError, Unsettled
from mcpl_heartbeat.storage.store.timekeeper import Look, Timekeeper
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.storage.store.urls import Place
from mcpl_heartbeat.storage.store.watchers import FileWatch, NoWatch, SessionWatch, Watchers
from mcpl_heartbeat.watch.clock import Gap

_log = logging.getLogger("mcpl_heartbeat")
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
        self._writer = Line(engine)
        self._noter = Line(engines.make_engine(place, relaxed=True))
        self._reader = Line(engines.reading(engine))
        self._files = None if place.path is None else Files(place.path, pause)
        self._watchers = _watchers(place, engine, pause) if watch else NoWatch()
        self._turn = threading.RLock()
        self._reading = threading.Lock()
        """Also of whoever opens or lets go of a SQLite store's files."""
        self._open = False
        self._file: Identity | None = None
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
            self._drop("it was closed", reader=True)
            self._watchers.leave()

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

    def read(self, work: Callable[[Transaction], T], *, settled: bool = False) -> T:
        """Do ``work``, which only reads, on one snapshot. Raises as ``write`` does.

        ``settled``: raise ``Unsettled`` where the time is not right as it is kept, as after a gap.
        """
        if not self._readable:
            raise StoreError(self._why)
        with self._reading:
            for again in (True, False):
                try:
                    return self._read(work, settled=settled)
                except (SQLAlchemyError, OSError) as error:
                    trouble = engines.judge(error)
                    if trouble.kind is Kind.OURS:
                        raise
                    self._drop_reader()
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
        trouble = None if self._files is None else self._files.trouble()
        if self._open and self._writer.stands and trouble is None:
            return
        self._open = False
        if trouble is not None:
            self._drop(trouble)
        if self._files is not None:
            self._weigh(self._files)
        try:
            conn = self._writer.get()
            # Where we have worked, an empty store is one that was lost, or is being put back.
            migrate.bring_up(conn, self._place, anew=not self._known)
            engines.begin_writing(conn)
            if self._files is not None:
                self._take(self._files)
            self._time.begin(conn, self._random(32))
            conn.commit()
            alone = self._watchers.join()
            gap_ms = clocks.ALONE_GAP_MS if alone else clocks.GAP_MS
            self._attempt(_nothing, gap_ms=gap_ms)
            if alone:
                self._watchers.settle()
        except BaseException:
            self._drop(self._why)
            self._watchers.leave()
            raise
        if trouble is not None:
            _log.warning("The store was opened anew: %s while it was in use.", trouble)
        self._open = self._known = self._readable = True

    def _weigh(self, files: Files) -> None:
        """See to it that a SQLite store may be opened."""
        if not self._known:
            engines.make_file(str(self._place.path))
        with self._reading:
            if files.main is None:
                files.weigh()

    def _take(self, files: Files) -> None:
        with self._reading:
            files.took()
        if files.main != self._file:
            # Another store lies there now, and what is remembered is of the one before.
            self._file, self._time = files.main, self._new_time()

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
        if self._files is not None and (trouble := self._files.trouble()) is not None:
            raise StoreError(f"while that was done, {trouble}")

    def _transaction(self, conn: sa.Connection, look: Look, *, reads: bool = False) -> Transaction:
        now = self._time.reading(conn, look)
        return Transaction(conn, now, look.salt, self._random, reads=reads)

    def _read(self, work: Callable[[Transaction], T], *, settled: bool) -> T:
        if self._files is not None:
            self._look_at(self._files)
        conn = self._reader.get()
        with conn.begin():
            look = self._time.look(conn)
            if settled and not look.settled:
                raise Unsettled
            return work(self._transaction(conn, look, reads=True))

    def _look_at(self, files: Files) -> None:
        """See to it that what is read is what was written."""
        if files.main is None:
            files.weigh()
            self._reader.get()
            files.took()
        elif (trouble := files.trouble()) is not None:
            raise StoreError(trouble)
        if files.main != self._file:
            raise StoreError("another file has taken its place")

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

    def _drop(self, why: str, *, reader: bool = False) -> None:
        """Let go of the connections; of the reader's too where the files are not what they were."""
        self._open, self._why = False, why
        trouble = self._files is not None and self._files.trouble() is not None
        if self._files is None and not reader:
            self._writer.drop()
            self._noter.drop()
            return
        with self._reading:
            self._noter.drop()
            if reader or trouble:
                self._reader.drop()
            saved = self._save_log()
            self._writer.drop()
            if self._files is not None and not self._reader.connected:
                self._files.left(trouble=trouble, saved=saved)

    def _save_log(self) -> bool:
        """Bring the log into the file that is open if nobody would find it; whether all is in."""
        files = self._files
        return (
            files is not None
            and (files.moved or files.orphaned)
            and engines.empty_log(self._writer)
        )

    def _drop_reader(self) -> None:
        self._reader.drop()
        if self._files is not None and not self._writer.connected:
            self._files.left(trouble=self._files.trouble() is not None)


def _watchers(place: Place, engine: sa.Engine, pause: Callable[[float], None]) -> Watchers:
    if place.path is not None:
        return FileWatch(place, pause)
    return SessionWatch(Line(engine), pause)


def _nothing(_: Transaction) -> None:
    """Take part, and do nothing else."""
