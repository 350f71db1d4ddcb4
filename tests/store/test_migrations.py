"""The tables: made, brought up to date, and refused when they are somebody else's."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import migrate, schema, urls
from mcpl_heartbeat.storage.store.ports import NeedsUpgrade, StoreError
from mcpl_heartbeat.storage.store.store import Store
from tests.postgres import Server
from tests.store.tasks.queue import guard, new
from tests.store.world import SECRET, World, beat, call, register

NEXT = '''"""A step that does not exist yet."""

import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{last}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table("of_the_future", sa.Column("id", sa.Integer, primary_key=True))
'''


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that has no tables yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server: Server = request.getfixturevalue("postgres_server")
    with server.database(empty=True) as url:
        yield url


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make this program one that has a further revision."""
    steps = tmp_path / "steps"
    shutil.copytree(migrate.STEPS, steps)
    (steps / "versions" / "next.py").write_text(NEXT.format(last=migrate.REVISIONS[-1]))
    monkeypatch.setattr(migrate, "STEPS", steps)
    monkeypatch.setattr(migrate, "REVISIONS", (*migrate.REVISIONS, "9999"))


def opened(url: str) -> None:
    store = Store(url)
    store.open()
    store.close()


def tables(url: str) -> set[str]:
    with engines.make_engine(urls.read(url)).connect() as conn:
        return set(sa.inspect(conn).get_table_names())


def revision(url: str) -> str:
    with engines.make_engine(urls.read(url)).connect() as conn:
        return str(conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())


@pytest.mark.requirement("watch.store.migrations-match")
def test_the_steps_lead_to_the_tables_of_the_schema(empty_url: str) -> None:
    opened(empty_url)
    with engines.make_engine(urls.read(empty_url)).connect() as conn:
        context = MigrationContext.configure(conn, opts={"compare_server_default": True})
        assert compare_metadata(context, schema.metadata) == []


@pytest.mark.requirement("watch.store.migrations-match")
def test_on_sqlite_they_are_the_same_to_the_letter(tmp_path: Path) -> None:
    """Conditions of indexes and strictness too, which the comparison above does not see."""
    migrated, made = (urls.read(f"sqlite:///{tmp_path}/{name}.db") for name in "ab")
    migrate.upgrade(migrated.url)
    engines.make_file(str(made.path))
    schema.metadata.create_all(engines.make_engine(made))

    def statements(place: urls.Place) -> dict[str, str]:
        with engines.make_engine(place).connect() as conn:
            rows = conn.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL")
            return {row[0]: "".join(row[1].split()) for row in rows}

    found = statements(migrated)
    del found["alembic_version"]
    assert found == statements(made)


@pytest.mark.requirement("watch.store.migrations-match")
def test_on_postgresql_the_indexes_are_the_same_to_the_letter(postgres_server: Server) -> None:
    def indexes(url: str) -> set[tuple[str, str]]:
        with engines.make_engine(urls.read(url)).connect() as conn:
            rows = conn.exec_driver_sql(
                "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            )
            return {(row[0], row[1]) for row in rows if "alembic" not in row[0]}

    with postgres_server.database() as migrated, postgres_server.database(empty=True) as made:
        schema.metadata.create_all(engines.make_engine(urls.read(made)))
        assert indexes(migrated) == indexes(made)


@pytest.mark.requirement("watch.store.migrations-match")
def test_every_step_is_listed() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrate.STEPS))
    found = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(step.revision for step in reversed(list(found))) == migrate.REVISIONS


@pytest.mark.requirement("watch.store.upgrade-by-itself")
def test_an_empty_store_gets_its_tables_by_being_opened(empty_url: str) -> None:
    opened(empty_url)
    assert revision(empty_url) == migrate.REVISIONS[-1]
    opened(empty_url)


@pytest.mark.requirement("watch.store.upgrade-by-itself")
def test_an_older_sqlite_store_is_brought_up_to_date(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    opened(url)
    request.getfixturevalue("next_version")
    opened(url)
    assert revision(url) == "9999"
    assert "of_the_future" in tables(url)


@pytest.mark.requirement("watch.store.upgrade-by-hand")
def test_an_older_postgresql_store_waits_for_the_command(
    postgres_url: str, request: pytest.FixtureRequest
) -> None:
    before = revision(postgres_url)
    request.getfixturevalue("next_version")
    with pytest.raises(NeedsUpgrade, match="mcpl-heartbeat store upgrade --store postgresql"):
        Store(postgres_url).open()
    assert "of_the_future" not in tables(postgres_url)
    assert migrate.upgrade(postgres_url) == (before, "9999")
    assert migrate.upgrade(postgres_url) == ("9999", "9999")
    opened(postgres_url)


@pytest.mark.requirement("watch.store.upgrade-by-hand")
def test_the_command_makes_an_empty_store(empty_url: str) -> None:
    assert migrate.upgrade(empty_url) == (None, migrate.REVISIONS[-1])
    opened(empty_url)


@pytest.mark.requirement("watch.store.newer")
def test_a_newer_store_is_refused_and_left_alone(empty_url: str) -> None:
    opened(empty_url)
    with engines.make_engine(urls.read(empty_url)).begin() as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '8888'")
    with pytest.raises(StoreError, match="newer than this program") as raised:
        Store(empty_url).open()
    assert not isinstance(raised.value, NeedsUpgrade)
    with pytest.raises(StoreError, match="newer than this program"):
        migrate.upgrade(empty_url)
    assert revision(empty_url) == "8888"


@pytest.mark.requirement("watch.store.foreign-tables")
def test_tables_of_somebody_else_are_not_touched(empty_url: str) -> None:
    place = urls.read(empty_url)
    if place.path is not None:
        engines.make_file(place.path)
    with engines.make_engine(place).begin() as conn:
        conn.exec_driver_sql("CREATE TABLE journal (x integer)")
    with pytest.raises(StoreError, match="journal"):
        Store(empty_url).open()
    assert tables(empty_url) == {"journal"}


@pytest.mark.requirement("watch.store.upgrade-by-itself")
def test_a_step_that_fails_leaves_the_store_as_it_was(
    empty_url: str, request: pytest.FixtureRequest
) -> None:
    opened(empty_url)
    request.getfixturevalue("next_version")
    path = migrate.STEPS / "versions" / "next.py"
    path.write_text(path.read_text() + '    op.create_table("journal")\n')
    with pytest.raises(StoreError):
        migrate.upgrade(empty_url)
    assert revision(empty_url) != "9999"
    assert "of_the_future" not in tables(empty_url)


@pytest.mark.requirement("watch.store.upgrade-by-itself")
def test_two_that_open_an_empty_store_at_once_make_it_once(empty_url: str) -> None:
    together = threading.Barrier(4)
    failures: list[BaseException] = []

    def come() -> None:
        store = Store(empty_url)
        together.wait()
        try:
            store.open()
            store.sweep(10)
        except BaseException as error:
            failures.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=come) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with engines.make_engine(urls.read(empty_url)).connect() as conn:
        assert conn.exec_driver_sql("SELECT count(*) FROM clock").scalar() == 1


@pytest.mark.requirement("watch.store.light-opening")
def test_a_store_that_is_up_to_date_is_opened_without_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    opened(url)
    program = (
        "import sys\n"
        "from mcpl_heartbeat.storage.store.store import Store\n"
        f"store = Store({url!r})\n"
        "store.open(); store.close()\n"
        "sys.exit(any(name.partition('.')[0] == 'alembic' for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


BEFORE_TASKS = ("clock", "identities", "switches", "leases", "envelopes", "checkpoints", "journal")
WITH_TASKS = (*BEFORE_TASKS, "tasks", "task_payloads", "task_epochs", "task_wakes")
HELD = {"0001": BEFORE_TASKS, "0002": WITH_TASKS}
"""In which tables something is that a store of each revision is filled with."""
SINCE = {"0001": {"switches": {"wake_on_tasks": 0}}, "0002": {}}
"""What the rows have after an upgrade that they could not have before."""


@pytest.mark.requirement("tasks.store.migration")
@pytest.mark.parametrize("before", migrate.REVISIONS[:-1])
def test_a_store_of_an_older_program_keeps_all_that_is_in_it(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    held = _held(f"sqlite:///{tmp_path}/source.db", before)
    with monkeypatch.context() as older:
        older.setattr(
            migrate, "REVISIONS", migrate.REVISIONS[: migrate.REVISIONS.index(before) + 1]
        )
        migrate.upgrade(empty_url)
    with engines.make_engine(urls.read(empty_url)).begin() as conn:
        for name, rows in held.items():
            conn.execute(sa.insert(schema.metadata.tables[name]), rows)
    assert ("tasks" in tables(empty_url)) == ("tasks" in held)
    assert migrate.upgrade(empty_url) == (before, migrate.REVISIONS[-1])
    for name, rows in held.items():
        since = SINCE[before].get(name, {})
        assert _rows(empty_url, name) == [row | since for row in rows]
    if "tasks" not in held:
        assert _rows(empty_url, "tasks") == []


def _held(url: str, revision: str) -> dict[str, list[dict[str, Any]]]:
    """Fill a store as one could at that revision, and give the rows of its tables."""
    world = World(url)
    store = world.store()
    me = str(register(store).address)
    beat(store, on_expiry=["release_leases", "queue_alert"], notify_address=me, seconds=2)
    beat(store, "other", nudge_seconds=10)
    call(store, "lease", key="k", holder="h", scope="work", ttl_seconds=60)
    call(store, "checkpoint_put", scope="work", objective="o", next_action="n")
    call(store, "send", to=me, objective="mail")
    call(store, "inbox_ack", task_id=call(store, "inbox_poll").envelope.task_id)
    if "tasks" in HELD[revision]:
        _fill_tasks(world, store)
    world.watch(store, ms=3_000)
    world.close()
    held = {name: _rows(url, name) for name in HELD[revision]}
    assert all(held.values())
    assert any(row["settled_at"] for row in held["envelopes"])
    for name, since in SINCE[revision].items():
        for row in held[name]:
            for column in since:
                del row[column]
    return held


def _fill_tasks(world: World, store: Store) -> None:
    """Leave one task open and one claimed, and have somebody woken for them."""
    beat(store, "worker", seconds=60, wake_on_tasks=True)
    ids = [call(store, "create_agent_task", **new()).id for _ in range(2)]
    call(store, "claim_agent_task", task_id=ids[0], scope="worker", guard=guard())
    world.watch(store, ms=500)
    me = store.identify(SECRET)
    assert me is not None
    work = store.news(me.agent, me.namespace, "server", None, work=True).work
    assert work is not None
    store.woken(me.namespace, "server", work, taken=True)


def _rows(url: str, name: str) -> list[dict[str, Any]]:
    table = schema.metadata.tables[name]
    with engines.make_engine(urls.read(url)).connect() as conn:
        query = sa.select(table).order_by(*table.primary_key)
        return [dict(row._mapping) for row in conn.execute(query)]
