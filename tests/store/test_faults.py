"""The store in trouble: full, locked, gone, replaced, cut off; and a call that cannot be done."""

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec import Raw

from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import fires, operations, timeouts, transactions, urls
from mcpl_heartbeat.storage.store.ports import Ask, Outcome, StoreError
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks.arguments import CreateAgentTaskArguments
from tests.store.world import SECRET, World, ask, beat, call, register


@pytest.fixture
def sqlite_world(tmp_path: Path) -> Iterator[World]:
    made = World(f"sqlite:///{tmp_path}/store.db")
    yield made
    made.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up at once what others are in the way of."""
    monkeypatch.setattr(engines, "BUSY_MS", 1)
    monkeypatch.setattr(transactions, "PATIENCE_S", 0.0)


def path_of(world: World) -> Path:
    return Path(world.url.removeprefix("sqlite:///"))


# SQLite's file


@pytest.mark.requirement("watch.store.full")
def test_a_full_disk_is_said_and_costs_nothing_but_the_call(
    sqlite_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = True
    plain = engines.make_engine

    def small(place: urls.Place, **more: Any) -> sa.Engine:
        engine = plain(place, **more)

        @sa.event.listens_for(engine, "connect")
        def limit(connection: Any, _record: object) -> None:
            if full:
                pages = connection.execute("PRAGMA page_count").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {max(pages, 80)}")

        return engine

    monkeypatch.setattr(engines, "make_engine", small)
    store = sqlite_world.store()
    register(store)
    beat(store, seconds=60)
    long = Raw(b'"%s"' % (b"x" * 60_000))
    address = register(store).address
    with pytest.raises(StoreError, match="database or disk is full"):
        for _ in range(20):
            call(store, "send", to=address, objective="o", context=long)
    assert store.look(ask("switch_status")).total == 1
    full = False
    assert beat(store, seconds=60).state == "armed"
    assert call(store, "inbox_poll").envelope.context == long


@pytest.mark.requirement("watch.store.full-at-fire")
@pytest.mark.parametrize("how", ["sweep", "beat", "timeout"])
def test_a_disk_that_is_full_at_a_fire_takes_back_all_of_it_and_sets_nothing_aside(
    sqlite_world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """SQLite ends the whole transaction by itself then, with whatever parts it has."""
    store = sqlite_world.store()
    address = register(store).address
    for number in range(30):
        beat(
            store,
            scope=f"s{number}",
            seconds=60,
            on_expiry=("mark_failed", "queue_alert"),
            notify_address=address,
        )
        made = CreateAgentTaskArguments(
            input_snapshot=Raw(b"{}"),
            output_contract=(),
            instructions="x" * 2_000,
            timeout_seconds=60,
            timeout_fallthrough="route_to_review",
        )
        store.answer([Ask("create_agent_task", made, SECRET)])
    sqlite_world.watch(store, ms=59_500)
    tables = ("switches", "envelopes", "journal", "tasks", "task_epochs")
    before = [sqlite_world.rows(f"SELECT * FROM {table}") for table in tables]
    sqlite_world.advance(500)

    def fill(tx: Transaction) -> None:
        pages = tx.conn.exec_driver_sql("PRAGMA page_count").scalar()
        tx.conn.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with monkeypatch.context() as full:
        module, name = (timeouts, "_end") if how == "timeout" else (fires, "_fire")
        plain = getattr(module, name)
        full.setattr(module, name, lambda tx, due: (fill(tx), plain(tx, due))[1])
        with pytest.raises(StoreError, match="database or disk is full"):
            if how == "beat":
                store.answer(
                    [
                        ask("heartbeat", scope=f"s{number}", expect_within_seconds=60)
                        for number in range(30)
                    ]
                )
            else:
                store.sweep(200)
        assert [sqlite_world.rows(f"SELECT * FROM {table}") for table in tables] == before
    assert store.sweep(200).fired == 30
    assert sqlite_world.rows("SELECT state, count(*) FROM switches GROUP BY state") == [
        ("fired", 30)
    ]
    assert sqlite_world.rows("SELECT status, count(*) FROM tasks GROUP BY status") == [
        ("timed_out", 30)
    ]


@pytest.mark.requirement("watch.store.full")
def test_a_file_that_may_not_grow_is_said(tmp_path: Path) -> None:
    """The system refuses the write itself, as on a full disk; in a process of its own."""
    program = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from mcpl_heartbeat.tasks.arguments import CreateAgentTaskArguments
from tests.store.world import SECRET, World, beat, register
from mcpl_heartbeat.storage.store.ports import StoreError
world = World("sqlite:///{tmp_path}/store.db")
store = world.store()
register(store)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
try:
    for number in range(5_000):
        beat(store, scope=str(number))
except StoreError as error:
    said = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(said, "|", beat(store, scope=str(number)).state)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said, state = done.stdout.strip().split(" | ")
    assert said in {"disk I/O error", "database or disk is full"}
    assert state == "armed"


@pytest.mark.requirement("watch.store.locked", "watch.gap.no-writing")
def test_a_locked_store_is_said_and_the_time_counts_for_nobody(
    sqlite_world: World, impatient: None
) -> None:
    store = sqlite_world.store()
    register(store)
    beat(store, seconds=5)
    engine = engines.make_engine(urls.read(sqlite_world.url))
    with engine.connect() as other:
        engines.begin_writing(other)
        for _ in range(20):
            sqlite_world.advance(500)
            with pytest.raises(StoreError, match="locked"):
                beat(store, seconds=5)
        other.rollback()
    assert beat(store, seconds=5).generation == 1


@pytest.mark.requirement("watch.store.locked")
def test_a_writer_in_the_way_is_waited_for(
    sqlite_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "BUSY_MS", 1)
    store = sqlite_world.store()
    register(store)
    engine = engines.make_engine(urls.read(sqlite_world.url))
    waited: list[float] = []
    with engine.connect() as other:
        engines.begin_writing(other)

        def pause(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) == 3:
                other.rollback()

        monkeypatch.setattr(store._transactions, "_pause", pause)
        assert beat(store).state == "armed"
    assert len(waited) == 3


@pytest.mark.requirement("watch.store.gone")
def test_a_file_that_is_gone_is_said_never_made_anew_and_taken_up_when_it_is_back(
    sqlite_world: World,
) -> None:
    store = sqlite_world.store()
    register(store)
    beat(store, seconds=60)
    path = path_of(sqlite_world)
    store.look(ask("whoami"))
    folder, away = path.parent, path.parent.with_name("away")
    folder.rename(away)
    for _ in range(2):
        for use in (
            lambda: beat(store),
            lambda: store.sweep(10),
            lambda: store.look(ask("whoami")),
            store.open,
        ):
            with pytest.raises(StoreError, match="gone"):
                use()
    assert not folder.exists()
    away.rename(folder)
    store.open()
    assert beat(store, seconds=60).generation == 1
    assert store.look(ask("switch_status")).total == 1


@pytest.mark.requirement("watch.store.emptied")
def test_a_store_that_was_emptied_is_not_taken_for_a_new_one(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=60)
    if not world.postgres:
        path = path_of(world)
        with contextlib.closing(sqlite3.connect(path)) as conn:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        os.truncate(path, 0)
    else:
        with engines.make_engine(urls.read(world.url)).begin() as conn:
            conn.exec_driver_sql("DROP SCHEMA public CASCADE")
            conn.exec_driver_sql("CREATE SCHEMA public")
    with pytest.raises(StoreError):
        beat(store)
    for _ in range(2):
        with pytest.raises(StoreError, match="emptied"):
            store.open()
        with pytest.raises(StoreError):
            store.look(ask("whoami"))
    register(world.store())
    store.open()
    assert beat(store, seconds=60).generation == 1


@pytest.mark.requirement("watch.store.not-a-store")
def test_a_pipe_is_no_store_and_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    os.mkfifo(path)
    with pytest.raises(StoreError, match="no regular file"):
        Store(f"sqlite:///{path}").open()


@pytest.mark.requirement("watch.store.gone")
def test_a_file_that_goes_while_a_call_is_carried_out_is_no_success(
    sqlite_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sqlite_world.store()
    register(store)
    plain = operations.carry_out
    path = path_of(sqlite_world)

    def carry_out(tx: Transaction, asks: Sequence[Ask]) -> list[Outcome]:
        outcomes = plain(tx, asks)
        path.rename(path.with_name("away.db"))
        return outcomes

    monkeypatch.setattr(operations, "carry_out", carry_out)
    with pytest.raises(StoreError, match="while that was done, its file is gone"):
        beat(store)


@pytest.mark.requirement("watch.store.gone")
def test_another_store_in_its_place_is_used_from_then_on(
    sqlite_world: World, tmp_path: Path
) -> None:
    store = sqlite_world.store()
    register(store)
    beat(store)
    other_path = tmp_path / "other" / "store.db"
    other = World(f"sqlite:///{other_path}").store()
    register(other)
    beat(other, scope="of the other")
    other.close()
    path = path_of(sqlite_world)
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    other_path.rename(path)
    with pytest.raises(StoreError, match="taken its place"):
        store.look(ask("switch_status"))
    [view] = call(store, "switch_status").switches
    assert view.scope == "of the other"
    found = store.look(ask("switch_status"))
    assert found.switches[0].scope == "of the other"


@pytest.mark.requirement("watch.store.not-a-store")
@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 200, b"x"])
def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a database"):
        Store(f"sqlite:///{path}").open()
    assert path.read_bytes() == content


@pytest.mark.requirement("watch.store.not-a-store")
def test_a_place_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "store.db", tmp_path):
        with pytest.raises(StoreError) as raised:
            Store(f"sqlite:///{path}").open()
        assert str(tmp_path) in str(raised.value)


@pytest.mark.requirement("watch.store.no-room")
def test_where_no_file_can_be_made_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere" / "store.db")
    said = {}
    for name in ("file/store.db", "file/in/store.db", "link.db"):
        with pytest.raises(StoreError) as raised:
            Store(f"sqlite:///{tmp_path}/{name}").open()
        said[name] = str(raised.value)
    assert said == {
        "file/store.db": f"its folder {tmp_path}/file cannot be made: a file is in its place",
        "file/in/store.db": f"its folder {tmp_path}/file/in cannot be made: Not a directory",
        "link.db": f"its file cannot be made in {tmp_path}",
    }


@pytest.mark.requirement("watch.store.not-a-store")
def test_a_clock_row_that_cannot_be_read_is_said(world: World) -> None:
    store = world.store()
    engine = engines.make_engine(urls.read(world.url))
    with engine.begin() as conn:
        conn.exec_driver_sql("UPDATE clock SET salt = 'no hex'")
    with pytest.raises(StoreError, match="clock cannot be read"):
        store.sweep(10)
    with engine.begin() as conn:
        conn.exec_driver_sql("UPDATE clock SET salt = '00ff'")
    store.sweep(10)
