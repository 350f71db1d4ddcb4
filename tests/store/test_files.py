"""The files of a SQLite store, taken away or replaced while servers have them open."""

import contextlib
import itertools
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import files, migrate, operations
from mcpl_heartbeat.storage.store.files import Files
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.store import Store
from tests.store.world import World, abandon, ask, beat, call, register

LOG = [["-wal"], ["-shm"], ["-wal", "-shm"]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(files, "START_S", 0.0)
    monkeypatch.setattr(files, "AGAIN_S", 0.0)
    made = World(f"sqlite:///{tmp_path}/store.db")
    yield made
    made.close()


def path_of(world: World) -> Path:
    return Path(world.url.removeprefix("sqlite:///"))


def take_away(world: World, ends: list[str]) -> None:
    for end in ends:
        path_of(world).with_name(f"store.db{end}").unlink()


OTHER_SERVER = """
from tests.store.world import World, beat
store = World(sys.argv[1]).store()
for line in sys.stdin:
    print(beat(store, line.strip()).state, flush=True)
"""
STRANGER = """
import sqlite3
conn = sqlite3.connect(sys.argv[1].removeprefix("sqlite:///"))
for line in sys.stdin:
    conn.execute("SELECT count(*) FROM sqlite_master").fetchall()
    print("looked", flush=True)
"""


DIES = (
    STRANGER.rstrip()
    + """
    sys.stdin.readline()
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""
)
"""Whoever is killed lets go of a log without bringing it anywhere."""
READER = STRANGER.replace("for line", 'conn.execute("BEGIN")\nfor line')
"""It stays where it is, and so in the way of whoever would empty the log."""


@contextlib.contextmanager
def another_process(program: str, world: World) -> Iterator[Callable[[str], str]]:
    """Run it beside; what it is asked is a line, and so is what it answers."""
    program = f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\n{program}"
    with subprocess.Popen(
        [sys.executable, "-c", program, world.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        asks, answers = other.stdin, other.stdout
        assert answers is not None

        def ask_it(line: str) -> str:
            print(line, file=asks, flush=True)
            return answers.readline().strip()

        try:
            yield ask_it
        finally:
            asks.close()


def scopes(store: Store) -> list[str]:
    return [view.scope for view in call(store, "switch_status").switches]


@pytest.mark.requirement("watch.store.log-taken")
@pytest.mark.parametrize("ends", LOG)
def test_a_log_that_was_taken_away_is_brought_into_the_file_before_anything_else(
    world: World, caplog: pytest.LogCaptureFixture, ends: list[str]
) -> None:
    store = world.store()
    register(store)
    beat(store, "before")
    store.look(ask("whoami"))
    take_away(world, ends)
    with pytest.raises(StoreError, match=r"store\.db-(wal|shm).* was taken away"):
        store.look(ask("whoami"))
    assert store.sweep(10).fired == 0
    assert "was taken away while it was in use" in caplog.text
    beat(store, "after")
    assert store.look(ask("switch_status")).total == 2  # type: ignore[union-attr]
    assert world.rows("SELECT scope FROM switches ORDER BY scope") == [("after",), ("before",)]
    abandon(store)
    assert scopes(world.store()) == ["after", "before"]


@pytest.mark.requirement("watch.store.log-taken")
@pytest.mark.parametrize("ends", LOG)
def test_what_was_done_in_a_log_that_goes_meanwhile_is_not_acknowledged(
    world: World, monkeypatch: pytest.MonkeyPatch, ends: list[str]
) -> None:
    store = world.store()
    register(store)
    plain = operations.carry_out

    def carry_out(*given: Any) -> Any:
        outcomes = plain(*given)
        take_away(world, ends)
        return outcomes

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(operations, "carry_out", carry_out)
        with pytest.raises(StoreError, match=r"while that was done, .* was taken away"):
            beat(store, "unknown")
    assert scopes(store) == ["unknown"]


@pytest.mark.requirement("watch.store.log-taken")
@pytest.mark.parametrize("ends", LOG)
def test_while_another_server_has_the_old_log_open_the_store_is_refused(
    world: World, ends: list[str]
) -> None:
    first, second = world.store(), world.store()
    register(first)
    beat(first, "first")
    beat(second, "second")
    take_away(world, ends)
    uses: list[Callable[[], object]] = [
        lambda: beat(first),
        lambda: first.sweep(10),
        first.open,
        world.store,
        lambda: migrate.upgrade(world.url),
    ]
    for use in uses:
        with pytest.raises(StoreError, match="stop every server and program"):
            use()
    with pytest.raises(StoreError, match="stop every server and program"):
        first.look(ask("whoami"))
    second.sweep(10)
    assert scopes(first) == scopes(second) == ["first", "second"]


@pytest.mark.requirement("watch.store.log-taken")
def test_servers_in_processes_of_their_own_let_go_of_it_together(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, "here")
    with another_process(OTHER_SERVER, world) as other:
        assert other("there") == "armed"
        take_away(world, ["-wal"])
        with pytest.raises(StoreError, match=r"store\.db-wal was taken away while it is in use"):
            store.sweep(10)
        assert other("there again") == "armed"
        assert scopes(store) == ["here", "there", "there again"]


@pytest.mark.requirement("watch.store.log-taken")
@pytest.mark.parametrize("ends", LOG)
def test_nothing_is_lost_with_a_log_whose_last_holder_is_killed(
    world: World, ends: list[str]
) -> None:
    store = world.store()
    register(store)
    store.close()
    with another_process(DIES, world) as other:
        store = world.store()
        assert other("look") == "looked"
        beat(store, "here")
        take_away(world, ends)
        with pytest.raises(StoreError, match="was taken away while it is in use"):
            beat(store, "refused")
        assert other("die") == ""
        assert scopes(store) == ["here"]


@pytest.mark.requirement("watch.store.log-taken")
@pytest.mark.parametrize("to_itself", [True, False])
def test_a_place_that_cannot_be_looked_at_is_said_and_used_again(
    world: World, tmp_path: Path, to_itself: bool
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "store.db"
    store = World(f"sqlite:///{path}").store()
    register(store)
    beat(store, "here")
    away = tmp_path / "away"
    if to_itself:
        path.rename(away)
        path.symlink_to(path)
    else:
        folder.rename(away)
        folder.touch()
    for use in (lambda: beat(store, "no"), lambda: store.look(ask("whoami")), store.open):
        with pytest.raises(StoreError, match=r"symbolic links|Not a directory"):
            use()
    if to_itself:
        path.unlink()
        away.rename(path)
    else:
        folder.unlink()
        away.rename(folder)
    beat(store, "again")
    assert scopes(store) == ["again", "here"]
    store.close()


@pytest.mark.requirement("watch.store.log-taken")
def test_a_new_log_by_a_program_that_knows_nothing_of_it_is_told_once(world: World) -> None:
    store = world.store()
    register(store)
    with contextlib.closing(sqlite3.connect(path_of(world))) as conn:
        conn.execute("PRAGMA wal_checkpoint").fetchall()
    beat(store)
    take_away(world, ["-wal", "-shm"])
    with another_process(STRANGER, world) as stranger:
        assert stranger("look") == "looked"
        with pytest.raises(StoreError, match="what was done last may be lost"):
            store.sweep(10)
        assert scopes(store) == []


@pytest.mark.requirement("watch.store.log-taken", "watch.store.gone", "watch.store.reconnect")
def test_a_file_put_in_its_place_is_not_opened_with_the_log_of_the_one_before(
    world: World, tmp_path: Path
) -> None:
    other_path = tmp_path / "other" / "store.db"
    other = World(f"sqlite:///{other_path}").store()
    register(other)
    beat(other, "of the other")
    other.close()
    first, second = world.store(), world.store()
    register(first)
    beat(first, "of the first")
    beat(second, "of the second")
    path_of(world).rename(tmp_path / "before.db")
    with pytest.raises(StoreError, match="gone"):
        first.sweep(10)
    other_path.rename(path_of(world))
    first.sweep(10)
    beat(first, "after it")
    assert scopes(second) == scopes(first) == ["after it", "of the other"]
    abandon(first)
    abandon(second)
    assert scopes(world.store()) == ["after it", "of the other"]
    # What was acknowledged before is in the file before.
    assert scopes(World(f"sqlite:///{tmp_path}/before.db").store()) == [
        "of the first",
        "of the second",
    ]


@pytest.mark.requirement("watch.store.log-taken")
def test_where_the_log_of_the_file_before_could_not_be_emptied_the_store_is_refused(
    world: World, tmp_path: Path
) -> None:
    store = world.store()
    register(store)
    other_path = tmp_path / "other" / "store.db"
    other = World(f"sqlite:///{other_path}").store()
    other.close()
    with another_process(READER, world) as reader:
        assert reader("look") == "looked"
        beat(store)
        engine = store._transactions._writer._engine
        sa.event.listen(engine, "connect", lambda conn, _: conn.execute("PRAGMA busy_timeout = 0"))
        store._transactions._drop("to connect anew")
        store.open()
        other_path.rename(path_of(world))
        for _ in range(2):
            with pytest.raises(StoreError, match=r"store\.db-wal and store\.db-shm beside it are"):
                store.open()


@pytest.mark.requirement("watch.store.log-taken")
def test_a_store_that_others_are_making_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL").fetchall()
        other.execute("CREATE TABLE x (y)")
        Path(f"{path}-shm").rename(tmp_path / "away")
        waited = itertools.count()

        def pause(_seconds: float) -> None:
            if next(waited) == 3:
                (tmp_path / "away").rename(f"{path}-shm")

        Files(str(path), pause).weigh()
        assert next(waited) == 4


@pytest.mark.requirement("watch.store.log-taken")
def test_a_link_to_a_store_is_watched_where_it_leads(world: World, tmp_path: Path) -> None:
    store = world.store()
    register(store)
    link = tmp_path / "in another place" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path_of(world))
    linked = World(f"sqlite:///{link}").store()
    beat(linked)
    take_away(world, ["-wal"])
    with pytest.raises(StoreError, match=r"store\.db-wal was taken away"):
        linked.sweep(10)
    store.sweep(10)
    assert scopes(linked) == ["work"]
    linked.close()
