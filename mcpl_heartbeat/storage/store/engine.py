"""Connections to the store, how they are set up, and what their errors mean.

SQLite: WAL and ``synchronous`` FULL, so that what was said to be kept survives a power cut.
PostgreSQL: one writer at a time by an advisory lock, as SQLite has one; a writer that was stopped
in the middle of it (SIGSTOP, a suspended machine) is cut off by the database after 3 s.
"""

import contextlib
import enum
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.urls import RULE, Place

BUSY_MS = 5_000
"""How long a writer waits for another."""
IDLE_MS = 3_000
"""How long a transaction on PostgreSQL may stand still before the database ends it."""
LONG_IDLE_MS = 60_000
"""The same for one that has to decide on very many rows between two statements."""
STATEMENT_MS = 10_000
"""How long a single statement on PostgreSQL may take."""
WRITER_LOCK = 0x6D63_706C_0001
"""The key of the writers' advisory lock on PostgreSQL."""

_BEGIN = "heartbeat_begin"
_MAGIC = b"SQLite format 3\0"


class Kind(enum.Enum):
    """What an error of the database means for whoever ran into it."""

    BUSY = "another writer was in the way: the transaction can be tried again"
    LOST = "the connection is gone: it can be tried again on a new one"
    STORE = "the store cannot be used now"
    OURS = "what was asked for is wrong"


class Trouble(msgspec.Struct, frozen=True):
    """An error of the database, weighed; ``text`` is one clause."""

    kind: Kind
    text: str


class Line:
    """One connection to the store, made when it is first used and again once it was lost."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._conn: sa.Connection | None = None

    def get(self) -> sa.Connection:
        """Give the connection. Raises what ``judge`` weighs."""
        if self._conn is None:
            self._conn = self._engine.connect()
        return self._conn

    @property
    def connected(self) -> bool:
        """Whether there is a connection, broken or not."""
        return self._conn is not None

    @property
    def stands(self) -> bool:
        """Whether it is connected."""
        conn = self._conn
        return conn is not None and not conn.closed and not conn.invalidated

    def drop(self) -> None:
        """Let the connection go; the next ``get`` makes another."""
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(SQLAlchemyError, sqlite3.Error, OSError):
                conn.close()


def make_file(path: str) -> None:
    """Make the file of a SQLite store and its folder, for its owner alone, if it is not there.

    Raises ``OSError``, or ``StoreError`` where it cannot lie there, and for a file of another kind:
    a short one SQLite would take for an empty store, and write over it.
    """
    folder = Path(path).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = "a file is in its place" if isinstance(error, FileExistsError) else error.strerror
        raise StoreError(f"its folder {folder} cannot be made: {why}") from error
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        file = os.open(path, flags, 0o600)
    except FileNotFoundError as error:
        raise StoreError(f"its file cannot be made in {folder}") from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            # A pipe would be waited for without an end.
            raise StoreError("it is no regular file")
        head = os.read(file, len(_MAGIC))
    finally:
        os.close(file)
    if head not in {b"", _MAGIC}:
        raise StoreError("its file is not a database of SQLite's")


def make_engine(place: Place, *, relaxed: bool = False) -> sa.Engine:
    """Set up connections to ``place``; none is made yet. Raises ``StoreError`` for a bad URL.

    ``relaxed``: commits do not wait for the disk. They are still whole, and in order.
    """
    return _sqlite(place, relaxed) if place.path is not None else _postgresql(place, relaxed)


def reading(engine: sa.Engine) -> sa.Engine:
    """Give the same engine for transactions that only read, each from one snapshot."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(**{_BEGIN: "BEGIN"})
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def begin_writing(conn: sa.Connection, patience_ms: int | None = None) -> None:
    """Begin a transaction and take the store's one writer's place. Raises ``DBAPIError``.

    ``patience_ms``: wait so long on PostgreSQL, instead of ``BUSY_MS``.
    """
    conn.begin()
    if conn.dialect.name != "sqlite":
        if patience_ms is not None:
            conn.exec_driver_sql(f"SET LOCAL lock_timeout = {patience_ms}")
            conn.exec_driver_sql(f"SET LOCAL statement_timeout = {patience_ms}")
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITER_LOCK})")


def empty_log(line: Line) -> bool:
    """Bring all that SQLite's log holds into the file that ``line`` is of; whether that is done."""
    if not line.stands:
        return False
    try:
        # On the connection below, since SQLAlchemy would begin a transaction.
        raw = line.get().connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        [(busy, *_)] = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (SQLAlchemyError, sqlite3.Error):
        return False
    return not busy


def judge(error: BaseException) -> Trouble:
    """Weigh what came of using the store."""
    if isinstance(error, DBAPIError):
        original = error.orig
        if isinstance(original, sqlite3.Error):
            return _judge_sqlite(original)
        return _judge_postgresql(error)
    if isinstance(error, FileNotFoundError):
        return Trouble(Kind.STORE, "its file is gone")
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return Trouble(Kind.STORE, _clause(f"{error.strerror or error}{where}"))
    if isinstance(error, StoreError):
        return Trouble(Kind.STORE, str(error))
    if isinstance(error, MemoryError):
        # SQLite's too. Whatever was being done is not to blame, and must not be set aside for it.
        return Trouble(Kind.STORE, "this server is out of memory")
    return Trouble(Kind.OURS, _clause(str(error)) or type(error).__name__)


def _sqlite(place: Place, relaxed: bool) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=place.path),
        poolclass=sa.NullPool,
        connect_args={"check_same_thread": False, "timeout": BUSY_MS / 1000},
        hide_parameters=True,
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # The module's own idea of transactions is in the way of BEGIN IMMEDIATE.
        connection.isolation_level = None
        synchronous = f"synchronous = {'NORMAL' if relaxed else 'FULL'}"
        for pragma in ("journal_mode = WAL", synchronous, "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    @sa.event.listens_for(engine, "begin")
    def begin(conn: sa.Connection) -> None:
        conn.exec_driver_sql(conn.get_execution_options().get(_BEGIN, "BEGIN IMMEDIATE"))

    return engine


_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)


def _postgresql(place: Place, relaxed: bool) -> sa.Engine:
    try:
        url = sa.make_url(place.url)
    except (SQLAlchemyError, ValueError):
        # What is wrong with it could be told only together with the password.
        raise StoreError(f"the store's URL cannot be read: {RULE}") from None
    ours = {
        "application_name": "mcpl-heartbeat",
        "connect_timeout": "5",
        # A database whose machine has gone is noticed, rather than waited for.
        "keepalives_idle": "10",
        "keepalives_interval": "3",
        "keepalives_count": "3",
        "tcp_user_timeout": "10000",
    }
    arguments = {name: value for name, value in ours.items() if name not in url.query}
    # Not the database's own default, which may be one snapshot for the whole transaction: a
    # writer's would be taken before the lock is granted, and not show what was written before it.
    engine = sa.create_engine(
        url,
        poolclass=sa.NullPool,
        connect_args=arguments,
        isolation_level="READ COMMITTED",
        hide_parameters=True,
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_MS}")
            cursor.execute(f"SET lock_timeout = {BUSY_MS}")
            cursor.execute(f"SET statement_timeout = {STATEMENT_MS}")
            if relaxed:
                cursor.execute("SET synchronous_commit = off")
            else:
                # A database or role may have it off, and what is said would not be done.
                cursor.execute(_DURABLE)
        connection.commit()

    return engine


_SQLITE = {
    sqlite3.SQLITE_BUSY: Kind.BUSY,
    sqlite3.SQLITE_LOCKED: Kind.BUSY,
    sqlite3.SQLITE_SCHEMA: Kind.BUSY,
    sqlite3.SQLITE_PROTOCOL: Kind.BUSY,
    sqlite3.SQLITE_PERM: Kind.STORE,
    sqlite3.SQLITE_NOMEM: Kind.STORE,
    sqlite3.SQLITE_READONLY: Kind.STORE,
    sqlite3.SQLITE_IOERR: Kind.STORE,
    sqlite3.SQLITE_CORRUPT: Kind.STORE,
    sqlite3.SQLITE_FULL: Kind.STORE,
    sqlite3.SQLITE_CANTOPEN: Kind.STORE,
    sqlite3.SQLITE_AUTH: Kind.STORE,
    sqlite3.SQLITE_NOTADB: Kind.STORE,
}


def _judge_sqlite(error: sqlite3.Error) -> Trouble:
    code = getattr(error, "sqlite_errorcode", None)
    text = _clause(str(error))
    if code is None:
        closed = isinstance(error, sqlite3.ProgrammingError) and "closed" in text
        return Trouble(Kind.LOST if closed else Kind.OURS, text)
    if code == sqlite3.SQLITE_ERROR and text.startswith("no such table"):
        return Trouble(Kind.STORE, text)
    return Trouble(_SQLITE.get(code & 0xFF, Kind.OURS), text)


_LOST_STATES = frozenset({"57P01", "57P02", "57P05", "25P03"})
_BUSY_STATES = frozenset({"40001", "40P01", "55P03"})
_STORE_STATES = frozenset({"57P03", "57P04", "57014", "25006", "42501", "42P01", "3D000"})
_STORE_CLASSES = frozenset({"28", "53", "54", "58", "F0", "XX"})


def _judge_postgresql(error: DBAPIError) -> Trouble:
    original = error.orig
    text = _clause(str(original))
    state = getattr(original, "sqlstate", None)
    if state in _BUSY_STATES:
        return Trouble(Kind.BUSY, text)
    if state in _LOST_STATES:
        return Trouble(Kind.LOST, text)
    if state is None:
        # No answer of the database: it could not be reached, or the line broke.
        name = type(original).__name__
        lost = error.connection_invalidated or name in {"OperationalError", "InterfaceError"}
        return Trouble(Kind.LOST if lost else Kind.OURS, text)
    if state[:2] == "08":
        return Trouble(Kind.LOST, text)
    if state in _STORE_STATES or state[:2] in _STORE_CLASSES:
        return Trouble(Kind.STORE, text)
    return Trouble(Kind.OURS, text)


def _clause(text: str) -> str:
    """One line of ``text``, as it stands inside a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else "no reason was given").rstrip(".")[:300]
