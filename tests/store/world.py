"""A store with its time in the test's hand, on either kind of database.

On PostgreSQL the database's own clock is what counts, so the test puts a function of that name in
front of the one that the database has.
"""

from typing import Any

import sqlalchemy as sa

from mcpl_heartbeat.catalogue import TOOLS
from mcpl_heartbeat.storage.store.ports import Ask
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.results import RegisterResult

START = 1_800_000_000_000
ARGUMENTS = {tool.name: tool.arguments for tool in TOOLS}
SECRET = "s" * 40

_FAKE_CLOCK = """
CREATE SCHEMA fake;
CREATE TABLE fake.now (ms bigint);
INSERT INTO fake.now VALUES ({start});
CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT to_timestamp(ms / 1000.0) FROM fake.now'
"""


class HandClock:
    """A host's clocks, which go when the test says so."""

    def __init__(self, source: str = "boot 1") -> None:
        self.source = source
        self.now = 5_000_000
        self.on_the_wall = START

    def steady(self) -> int:
        return self.now

    def wall(self) -> int:
        return self.on_the_wall


class World:
    """A store's URL, its clocks, and the servers on it."""

    def __init__(self, url: str) -> None:
        self.postgres = url.startswith("postgresql")
        self.clock = HandClock()
        self.url = url
        # One connection for all of it: to make one costs a server process each time.
        self._hand: sa.Connection | None = None
        self._stores: list[Store] = []
        if self.postgres:
            hand = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
            self._hand = hand.connect()
            self._by_hand(_FAKE_CLOCK.format(start=START))
            self.url = f"{url}&options=-csearch_path%3Dpublic,fake,pg_catalog"

    def store(self, *, clock: HandClock | None = None, watch: bool = True) -> Store:
        """Start a server on it."""
        made = Store(self.url, clock=clock or self.clock, watch=watch)
        made.open()
        self._stores.append(made)
        return made

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self.clock.now += ms
        self.step(ms)

    def step(self, ms: int) -> None:
        """Set the clock on the wall, which on PostgreSQL is the database's."""
        self.clock.on_the_wall += ms
        if self.postgres:
            self._by_hand(f"UPDATE fake.now SET ms = ms + {ms}")

    def watch(self, *stores: Store, ms: int, every: int = 500) -> None:
        """Let time pass with these servers watching."""
        for _ in range(ms // every):
            self.advance(every)
            for store in stores:
                store.sweep(200)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Read behind the store's back."""
        if self._hand is not None:
            return [tuple(row) for row in self._hand.exec_driver_sql(statement)]
        with sa.create_engine(self.url, poolclass=sa.NullPool).connect() as conn:
            return [tuple(row) for row in conn.exec_driver_sql(statement)]

    def close(self) -> None:
        for store in self._stores:
            store.close()
        if self._hand is not None:
            self._hand.close()

    def _by_hand(self, statements: str) -> None:
        assert self._hand is not None
        for statement in statements.split(";"):
            try:
                self._hand.exec_driver_sql(statement)
            except sa.exc.DBAPIError as error:
                # Some tests end every session on the database, this one too.
                if not error.connection_invalidated:
                    raise
                self._hand.rollback()
                self._hand.exec_driver_sql(statement)


def abandon(store: Store) -> None:
    """Have a server die as by ``kill -9``: its locks and connections go, and it says nothing."""
    transactions = store._transactions
    transactions._drop("killed")
    transactions._reader.drop()
    transactions._watchers.leave()


def ask(tool: str, **arguments: Any) -> Ask:
    """Make a call of the agent that ``register`` makes."""
    return Ask(tool, ARGUMENTS[tool](**arguments), SECRET)


def call(store: Store, tool: str, **arguments: Any) -> Any:
    """Call a tool and give what came of it."""
    [outcome] = store.answer([ask(tool, **arguments)])
    return outcome


def beat(store: Store, scope: str = "work", seconds: int = 30, **more: Any) -> Any:
    return call(store, "heartbeat", scope=scope, expect_within_seconds=seconds, **more)


def register(store: Store) -> RegisterResult:
    result = call(store, "register", agent_secret=SECRET)
    assert isinstance(result, RegisterResult)
    return result
