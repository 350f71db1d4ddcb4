"""Where a store lies, how it is connected to, and what the database's errors mean."""

import importlib.util
import re
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError

from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import extras, urls
from mcpl_heartbeat.storage.store.engine import Kind, Trouble, judge
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.store import Store
from tests.postgres import Server
from tests.store.world import World


@pytest.mark.requirement("watch.store.url")
@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/x/store.db", "/var/lib/x/store.db"),
        ("sqlite:////tmp/a b%20c.db", "/tmp/a b%20c.db"),
        ("postgresql+psycopg://me@host/db", None),
        ("postgresql+psycopg://me:secret@/db?host=/run/pg", None),
    ],
)
def test_urls_that_are_taken(url: str, path: str | None) -> None:
    assert urls.read(url) == urls.Place(url, path)
    scheme, colon, rest = url.partition(":")
    assert urls.read(scheme.upper() + colon + rest) == urls.Place(url, path)


@pytest.mark.requirement("watch.store.url")
@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("sqlite:///", "names no file"),
        ("sqlite:", "names no file"),
        ("sqlite:////var/store.db?mode=ro", "plain path"),
        ("/var/store.db?mode=ro", "no URL"),
        ("me@host", "no URL"),
        ("mysql://host/db", "'mysql' is not taken"),
        ("", "empty"),
    ],
)
def test_any_other_url_is_refused_with_the_rule(url: str, word: str) -> None:
    with pytest.raises(StoreError, match=word) as raised:
        urls.read(url)
    assert "sqlite:////absolute/path/to/store.db" in str(raised.value)
    assert "postgresql+psycopg://" in str(raised.value)
    with pytest.raises(StoreError):
        Store(url)


@pytest.mark.requirement("watch.store.url-advice")
@pytest.mark.parametrize(
    ("url", "right"),
    [
        ("sqlite:{tmp}/a.db", "sqlite:///{tmp}/a.db"),
        ("sqlite:/{tmp}/a.db", "sqlite:///{tmp}/a.db"),
        ("sqlite://{rest}/a.db", "sqlite:///{tmp}/a.db"),
        ("sqlite:///{rest}/a.db", "sqlite:///{tmp}/a.db"),
        ("SQLite+pysqlite:///{tmp}/a.db", "sqlite:///{tmp}/a.db"),
        ("sqlite:///a.db", "sqlite:///{tmp}/a.db"),
        ("sqlite:///no such/a.db", "sqlite:///{tmp}/no such/a.db"),
        ("sqlite:a.db", "sqlite:///{tmp}/a.db"),
        ("sqlite:///~/a.db", "sqlite:///{tmp}/home/a.db"),
        ("sqlite:////~/a.db", "sqlite:///{tmp}/home/a.db"),
        ("sqlite:///{tmp}/", "sqlite:///{tmp}/store.db"),
        ("{tmp}/a.db", "sqlite:///{tmp}/a.db"),
        ("{tmp}/", "sqlite:///{tmp}/store.db"),
        ("./a.db", "sqlite:///{tmp}/a.db"),
        ("a.db", "sqlite:///{tmp}/a.db"),
        ("~/a.db", "sqlite:///{tmp}/home/a.db"),
    ],
)
def test_of_a_file_that_is_named_wrongly_the_right_url_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, right: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    parts = {"tmp": str(tmp_path), "rest": str(tmp_path)[1:]}
    with pytest.raises(StoreError) as raised:
        urls.read(url.format_map(parts))
    said = str(raised.value)
    assert right.format_map(parts) in said
    assert "begins with" not in said
    told = next(word for word in said.split(" sqlite:")[1:] if word.startswith("////"))
    assert urls.read(f"sqlite:{told.partition(' (')[0]}").path is not None


@pytest.mark.requirement("watch.store.url-advice")
@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "POSTGRES"])
def test_of_another_driver_s_url_the_right_beginning_is_told(scheme: str) -> None:
    with pytest.raises(StoreError) as raised:
        urls.read(f"{scheme}://me:hunter2@host/db")
    assert f"{scheme}://; write postgresql+psycopg:// instead" in str(raised.value)
    assert "hunter2" not in str(raised.value)


@pytest.mark.requirement("watch.store.url")
def test_a_postgresql_url_that_cannot_be_read_is_refused_without_its_password() -> None:
    with pytest.raises(StoreError, match="cannot be read") as raised:
        Store("postgresql+psycopg://me:hunter2@host:port/db")
    assert "hunter2" not in str(raised.value)


@pytest.mark.requirement("watch.store.url")
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+psycopg://me:p@ss@host/db?password=x", "postgresql+psycopg://me@host/db"),
        ("postgresql+psycopg://me:p?s/s@host/db?a=b@c", "postgresql+psycopg://me@host/db"),
        ("postgresql+psycopg://host/db", "postgresql+psycopg://host/db"),
        ("postgresql+psycopg:///db?user=a@b&password=x", "postgresql+psycopg:///db"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert urls.read(url).shown == shown


@pytest.mark.requirement("watch.store.default-place")
def test_the_default_store_is_in_the_platform_s_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    found = urls.read(urls.default_url())
    assert found.path is not None
    assert found.path.endswith("mcpl-heartbeat/store.db")


@pytest.mark.requirement("watch.store.extras")
@pytest.mark.parametrize(
    ("missing", "url", "command"),
    [
        ("sqlalchemy", "sqlite:////a/b", "pip install 'mcpl-heartbeat[serve]'"),
        ("alembic", "sqlite:////a/b", "pip install 'mcpl-heartbeat[serve]'"),
        ("psycopg", "postgresql+psycopg://h/d", "pip install 'mcpl-heartbeat[serve,postgres]'"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, missing: str, url: str, command: str
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else there(name)
    )
    with pytest.raises(StoreError) as raised:
        urls.need_extras(urls.read(url))
    checkout = command.replace("mcpl-heartbeat", ".")
    said = f"{missing} is not installed: {command}, or from a checkout: {checkout}"
    assert str(raised.value) == said


@pytest.mark.requirement("watch.store.extras")
def test_all_that_is_missing_is_named_whichever_part_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        extras_of = tomllib.load(file)["project"]["optional-dependencies"]
    names = {
        extra: [re.split(r"[\[>]", each)[0] for each in extras_of[extra]] for extra in extras_of
    }
    assert list(extras.SERVE.values()) == names["serve"]
    assert list(extras.POSTGRES.values()) == names["postgres"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    asks: list[Callable[[], object]] = [
        urls.default_url,
        lambda: urls.need_extras(urls.read("sqlite:////a/b")),
        lambda: extras.need(*extras.SERVE),
    ]
    said = set()
    for ask in asks:
        with pytest.raises(StoreError) as raised:
            ask()
        said.add(str(raised.value))
    [text] = said
    assert text.startswith("sqlalchemy, alembic, starlette, hypercorn, prometheus-client and ")
    assert "platformdirs are not installed: pip install 'mcpl-heartbeat[serve]'" in text


@pytest.mark.requirement("watch.store.sqlite-file")
def test_a_sqlite_store_is_its_owner_s_alone_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "store.db"
    store = Store(f"sqlite:///{path}")
    store.open()
    try:
        for file in path.parent.iterdir():
            assert file.stat().st_mode & 0o777 == 0o600, file
        assert path.parent.stat().st_mode & 0o777 == 0o700
    finally:
        store.close()


@pytest.mark.requirement("watch.store.durable")
def test_a_sqlite_store_syncs_every_commit_but_the_note_of_the_watch(tmp_path: Path) -> None:
    place = urls.read(f"sqlite:///{tmp_path}/store.db")
    engines.make_file(str(place.path))
    for relaxed, synchronous in ((False, 2), (True, 1)):
        with engines.make_engine(place, relaxed=relaxed).connect() as conn:
            assert conn.exec_driver_sql("PRAGMA synchronous").scalar() == synchronous
            assert conn.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


@pytest.mark.requirement("watch.store.durable")
def test_a_postgresql_store_syncs_likewise_and_waits_for_nothing_for_ever(
    postgres_url: str,
) -> None:
    place = urls.read(postgres_url)
    for relaxed, synchronous in ((False, "on"), (True, "off")):
        with engines.make_engine(place, relaxed=relaxed).connect() as conn:
            wanted = {
                "synchronous_commit": synchronous,
                "idle_in_transaction_session_timeout": "3s",
                "lock_timeout": "5s",
                "statement_timeout": "10s",
                "application_name": "mcpl-heartbeat",
            }
            for name, value in wanted.items():
                assert conn.exec_driver_sql(f"SHOW {name}").scalar() == value


@pytest.mark.requirement("watch.store.durable")
@pytest.mark.parametrize(("default", "found"), [("off", "on"), ("local", "local")])
def test_a_postgresql_store_syncs_whatever_the_database_s_default_is(
    postgres_url: str, default: str, found: str
) -> None:
    place = urls.read(postgres_url)
    name = sa.make_url(postgres_url).database
    with engines.make_engine(place).begin() as conn:
        conn.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = {default}")
    with engines.make_engine(place).connect() as conn:
        assert conn.exec_driver_sql("SHOW synchronous_commit").scalar() == found


@pytest.mark.requirement("watch.store.one-writer")
def test_there_is_one_writer_at_a_time(
    store_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.store()
    monkeypatch.setattr(engines, "BUSY_MS", 50)
    engine = engines.make_engine(urls.read(world.url))
    with engine.connect() as one, engine.connect() as other:
        engines.begin_writing(one)
        with pytest.raises(OperationalError) as raised:
            engines.begin_writing(other)
        assert judge(raised.value).kind is Kind.BUSY
        other.rollback()
        one.rollback()
        engines.begin_writing(other)
        other.rollback()


@pytest.mark.requirement("watch.store.one-writer")
def test_readers_wait_for_no_writer_and_see_nothing_half_done(world: World) -> None:
    store = world.store()
    place = urls.read(world.url)
    engine = engines.make_engine(place)
    with engine.connect() as writer:
        engines.begin_writing(writer)
        writer.exec_driver_sql("INSERT INTO identities VALUES ('n', 'a', NULL, 0)")
        assert store.stats().armed == 0
        with engines.reading(engine).connect() as reader, reader.begin():
            count = sa.text("SELECT count(*) FROM identities")
            assert reader.execute(count).scalar() == 0
            writer.commit()
            assert reader.execute(count).scalar() == 0


@pytest.mark.requirement("watch.store.stopped-writer")
def test_a_writer_that_was_stopped_half_way_is_cut_off(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(postgres_url)
    store.open()
    monkeypatch.setattr(engines, "IDLE_MS", 20)
    with engines.make_engine(urls.read(postgres_url)).connect() as stopped:
        engines.begin_writing(stopped)
        store.sweep(10)
        with pytest.raises(DBAPIError) as raised:
            stopped.exec_driver_sql("SELECT 1")
    assert judge(raised.value).kind is Kind.LOST
    store.close()


def _sqlite_error(code: int, text: str = "some text") -> OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return OperationalError("x", None, error)


@pytest.mark.requirement("watch.store.errors")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, Kind.BUSY),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, Kind.BUSY),
        (sqlite3.SQLITE_LOCKED, Kind.BUSY),
        (sqlite3.SQLITE_FULL, Kind.STORE),
        (sqlite3.SQLITE_IOERR_WRITE, Kind.STORE),
        (sqlite3.SQLITE_CORRUPT, Kind.STORE),
        (sqlite3.SQLITE_READONLY_DBMOVED, Kind.STORE),
        (sqlite3.SQLITE_NOTADB, Kind.STORE),
        (sqlite3.SQLITE_CANTOPEN, Kind.STORE),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Kind.OURS),
        (sqlite3.SQLITE_ERROR, Kind.OURS),
    ],
)
def test_what_sqlite_s_errors_mean(code: int, kind: Kind) -> None:
    assert judge(_sqlite_error(code)).kind is kind


@pytest.mark.requirement("watch.store.errors")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.SerializationFailure, Kind.BUSY),
        (psycopg.errors.DeadlockDetected, Kind.BUSY),
        (psycopg.errors.LockNotAvailable, Kind.BUSY),
        (psycopg.errors.AdminShutdown, Kind.LOST),
        (psycopg.errors.IdleInTransactionSessionTimeout, Kind.LOST),
        (psycopg.errors.ConnectionFailure, Kind.LOST),
        (psycopg.OperationalError, Kind.LOST),
        (psycopg.InterfaceError, Kind.LOST),
        (psycopg.errors.CannotConnectNow, Kind.STORE),
        (psycopg.errors.DiskFull, Kind.STORE),
        (psycopg.errors.TooManyConnections, Kind.STORE),
        (psycopg.errors.ReadOnlySqlTransaction, Kind.STORE),
        (psycopg.errors.QueryCanceled, Kind.STORE),
        (psycopg.errors.InsufficientPrivilege, Kind.STORE),
        (psycopg.errors.UndefinedTable, Kind.STORE),
        (psycopg.errors.DataCorrupted, Kind.STORE),
        (psycopg.errors.UniqueViolation, Kind.OURS),
        (psycopg.errors.SyntaxError, Kind.OURS),
    ],
)
def test_what_postgresql_s_errors_mean(error: type[psycopg.Error], kind: Kind) -> None:
    assert judge(OperationalError("x", None, error("text"))).kind is kind


@pytest.mark.requirement("watch.store.errors")
def test_the_reason_is_one_clause() -> None:
    text = "database or disk is full.\n  and more\n"
    assert judge(_sqlite_error(sqlite3.SQLITE_FULL, text)).text == "database or disk is full"
    assert judge(FileNotFoundError(2, "x")).text == "its file is gone"
    assert judge(PermissionError(13, "Permission denied")).text == "Permission denied"
    assert judge(ValueError("why")).kind is Kind.OURS
    assert judge(MemoryError()) == Trouble(Kind.STORE, "this server is out of memory")


@pytest.mark.requirement("watch.store.one-writer")
def test_a_postgresql_writer_sees_what_the_writer_before_it_wrote(postgres_url: str) -> None:
    """Whatever the database's default is: under a snapshot it would wait and see nothing."""
    place = urls.read(postgres_url)
    name = sa.make_url(postgres_url).database
    with engines.make_engine(place).connect() as conn:
        conn.exec_driver_sql(
            f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"
        )
        conn.commit()
    with engines.make_engine(place).connect() as conn:
        engines.begin_writing(conn)
        assert conn.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"


@pytest.mark.requirement("watch.store.postgres-tests")
def test_a_given_server_is_used_in_place_of_a_private_one(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.postgres import GIVEN, server

    monkeypatch.setenv(GIVEN, postgres_server.url)
    with server() as given, given.database() as url:
        assert given.url == postgres_server.url
        store = Store(url)
        store.open()
        assert store.stats().armed == 0
        store.close()
