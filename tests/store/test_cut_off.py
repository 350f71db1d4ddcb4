"""The store cut off from its database or killed, and calls that cannot be done."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from mcpl_heartbeat.storage.store import leases, operations
from mcpl_heartbeat.storage.store.ports import Ask, Outcome, StoreError
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.failures import Failure
from tests.postgres import Server
from tests.store.world import World, ask, beat, call, register


@pytest.fixture
def postgres_world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url)
    yield made
    made.close()


# PostgreSQL's connections


def cut_off(world: World) -> None:
    """End every connection of the product's."""
    world.rows(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'mcpl-heartbeat' AND datname = current_database()"
    )


@pytest.mark.requirement("watch.store.cut-off")
def test_a_connection_that_was_ended_is_made_again_unnoticed(postgres_world: World) -> None:
    store = postgres_world.store()
    register(store)
    store.stats()
    cut_off(postgres_world)
    assert beat(store).state == "armed"
    cut_off(postgres_world)
    assert store.stats().armed == 1
    cut_off(postgres_world)
    postgres_world.advance(1_000)
    store.sweep(10)


@pytest.mark.requirement("watch.store.cut-off")
def test_a_transaction_that_was_cut_off_before_its_end_is_done_again_once(
    postgres_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres_world.store()
    register(store)
    plain, calls = operations.carry_out, 0

    def carry_out(tx: Transaction, asks: Sequence[Ask]) -> list[Outcome]:
        nonlocal calls
        calls += 1
        outcomes = plain(tx, asks)
        if calls == 1:
            cut_off(postgres_world)
        tx.conn.exec_driver_sql("SELECT 1")
        return outcomes

    monkeypatch.setattr(operations, "carry_out", carry_out)
    assert beat(store).generation == 1
    assert calls == 2
    assert postgres_world.rows("SELECT beats FROM switches") == [(1,)]


@pytest.mark.requirement("watch.store.unknown-commit")
def test_a_commit_of_which_nobody_knows_is_not_done_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = world.store()
    register(store)
    commits = 0
    plain = sa.Connection.commit

    def commit(conn: sa.Connection) -> None:
        nonlocal commits
        commits += 1
        plain(conn)
        raise OperationalError("COMMIT", None, OSError("the line broke"))

    with monkeypatch.context() as patch:
        patch.setattr(sa.Connection, "commit", commit)
        with pytest.raises(StoreError, match="the line broke"):
            beat(store)
    assert commits == 1
    assert world.rows("SELECT beats FROM switches") == [(1,)]
    assert beat(store).generation == 1


@pytest.mark.requirement("watch.store.gone", "field.49.unavailable")
def test_a_database_that_is_away_is_said_and_used_again_when_it_is_back(
    postgres_server: Server, postgres_world: World
) -> None:
    store = postgres_world.store()
    register(store)
    beat(store, seconds=5)
    name = sa.make_url(postgres_world.url).database
    postgres_server.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    postgres_server.execute(
        f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'"
    )
    for use in (lambda: beat(store), lambda: store.sweep(10), store.stats):
        with pytest.raises(StoreError, match="not currently accepting connections"):
            use()
    postgres_server.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    postgres_world.advance(60_000)
    assert beat(store, seconds=5).generation == 1
    assert store.stats().gaps == 1


@pytest.mark.requirement("watch.store.gone")
def test_a_server_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="connection"):
        Store(f"postgresql+psycopg://me@/db?host={tmp_path}").open()


# Processes


@pytest.mark.requirement("watch.gap.killed", "watch.store.durable")
def test_a_killed_server_leaves_what_it_said_and_no_lock(store_url: str) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from mcpl_heartbeat.storage.store.store import Store
from tests.store.world import beat, register
store = Store({store_url!r})
store.open()
register(store)
print(beat(store, seconds=60).generation, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        os.kill(process.pid, signal.SIGKILL)
    store = Store(store_url)
    store.open()
    try:
        assert call(store, "switch_status").total == 1
        assert beat(store, seconds=60).generation == 1
    finally:
        store.close()


# Faults of our own


@pytest.mark.requirement("watch.store.one-call-alone")
def test_a_call_that_cannot_be_done_costs_only_itself(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = world.store()
    register(store)
    plain = operations.carry_out

    def carry_out(tx: Transaction, asks: Sequence[Ask]) -> list[Outcome]:
        outcomes = plain(tx, asks)
        if any(isinstance(each.arguments, HeartbeatArguments) for each in asks) and any(
            getattr(each.arguments, "scope", "") in {"bad", "worse"} for each in asks
        ):
            raise RuntimeError("secret detail")
        return outcomes

    monkeypatch.setattr(operations, "carry_out", carry_out)
    scopes = ["a", "bad", "b", "c", "worse", "d", "a"]
    outcomes = store.answer(
        [ask("heartbeat", scope=scope, expect_within_seconds=60) for scope in scopes]
    )
    codes = [each.code if isinstance(each, Failure) else each.scope for each in outcomes]
    assert codes == ["a", "internal", "b", "c", "internal", "d", "a"]
    assert all("secret" not in str(each) for each in outcomes)
    assert "secret detail" in caplog.text
    assert sorted(world.rows("SELECT scope, beats FROM switches")) == [
        ("a", 2),
        ("b", 1),
        ("c", 1),
        ("d", 1),
    ]


@pytest.mark.requirement("watch.store.one-call-alone")
def test_a_look_that_cannot_be_done_is_a_fault_of_the_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = world.store()
    register(store)

    def look(tx: Transaction, each: Ask) -> Outcome:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(operations, "look", look)
    outcome = store.look(ask("whoami"))
    assert isinstance(outcome, Failure)
    assert outcome.code == "internal"


@pytest.mark.requirement("watch.store.log-without-words")
def test_the_log_tells_of_a_fault_and_nothing_of_what_agents_said(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = world.store()
    register(store)
    # The database itself refuses it, and shows the row that it refuses.
    monkeypatch.setattr(leases.rows, "lease_values", lambda lease: {**_plain(lease), "held": None})
    outcome = call(store, "lease", key="private key", holder="private holder")
    assert isinstance(outcome, Failure)
    assert outcome.code == "internal"
    assert "lease failed: IntegrityError: " in caplog.text
    assert "private" not in caplog.text
    assert "fence_" not in caplog.text


_plain = leases.rows.lease_values


@pytest.mark.requirement("watch.store.closed")
def test_a_store_that_is_not_open_only_answers_once_it_is(store_url: str) -> None:
    store = Store(store_url)
    with pytest.raises(StoreError, match="not open yet"):
        store.stats()
    store.close()
    store.open()
    store.open()
    assert store.stats().armed == 0
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.stats()
    store.close()
    store.open()
    assert store.stats().gaps == 0
    store.close()
