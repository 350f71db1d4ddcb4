"""The operations on a real database, under a clock in the test's hand.

What the store adds (connections, retries, watchers) is left out; each ``call`` is one transaction.
"""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.catalogue import TOOLS
from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import news, operations, schema, sweep, urls, wakes
from mcpl_heartbeat.storage.store.ports import Ask, News, Outcome, Swept, Work
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch import identity
from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.rows import Envelope, Nudge

T = TypeVar("T")

START = 1_800_000_000_000
SALT = b"0123456789abcdef0123456789abcdef"
ARGUMENTS: dict[str, Any] = {tool.name: tool.arguments for tool in TOOLS}


class Agent:
    """Somebody who is registered; a tool's name is a method that calls it."""

    def __init__(self, rig: "Rig", secret: str) -> None:
        self._rig = rig
        self.secret = secret
        self.namespace = identity.namespace_of(SALT, secret)
        self.id = identity.agent_of(SALT, self.namespace)
        self.address = f"agent:{self.id}"

    def ask(self, tool: str, **arguments: Any) -> Ask:
        if tool == "heartbeat":
            arguments = {"scope": "s", "expect_within_seconds": 30, **arguments}
        return Ask(tool, ARGUMENTS[tool](**arguments), self.secret)

    def look(self, tool: str, **arguments: Any) -> Any:
        return self._rig.look(self.ask(tool, **arguments))

    def __getattr__(self, tool: str) -> Callable[..., Any]:
        if tool not in ARGUMENTS:
            raise AttributeError(tool)
        return lambda **arguments: self._rig.call(self.ask(tool, **arguments))


class Rig:
    """A store's database and its time, in ms since the start."""

    def __init__(self, url: str) -> None:
        self.engine = engines.make_engine(urls.read(url))
        if self.engine.dialect.name == "sqlite":
            sa.event.listen(self.engine, "connect", _hurry)
            schema.metadata.create_all(self.engine)
        else:
            sa.event.listen(self.engine, "connect", _wait)
        self._conn = self.engine.connect()
        self._reader = engines.reading(self.engine).connect()
        self._random = random.Random(0)
        self.real = START
        self.gaps: tuple[Gap, ...] = ()
        self.shift = 0
        self.statements: list[str] = []
        self.fail_at = 0
        """Which write from now on finds the database in trouble, once; 0: none."""
        sa.event.listen(self.engine, "before_cursor_execute", self._note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._conn.close()
        self._reader.close()
        self.engine.dispose()

    @property
    def now(self) -> Reading:
        return Reading(self.real, sum(gap.length for gap in self.gaps), self.shift, self.gaps)

    def advance(self, seconds: float) -> None:
        self.real += round(seconds * 1000)

    def gap(self, seconds: float) -> None:
        """Let time pass in which nobody watches, and have the store notice."""
        began, cut = self.real, self.now.cut
        self.advance(seconds)
        self.gaps = (*self.gaps, Gap(began, self.real, cut))
        self.do(sweep.after_gap)

    def do(self, work: Callable[[Transaction], T]) -> T:
        """Do ``work`` in a transaction."""
        with self._writing() as tx:
            return work(tx)

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        engines.begin_writing(self._conn)
        try:
            yield Transaction(self._conn, self.now, SALT, self._random.randbytes)
        except BaseException:
            self._conn.rollback()
            raise
        self._conn.commit()

    def batch(self, *asks: Ask) -> list[Outcome]:
        return self.do(lambda tx: operations.carry_out(tx, asks))

    def call(self, ask: Ask) -> Any:
        return self.batch(ask)[0]

    def look(self, ask: Ask) -> Any:
        with self._reader.begin():
            tx = Transaction(self._reader, self.now, SALT, self._random.randbytes)
            return operations.look(tx, ask)

    def agent(self, name: str = "a", **more: Any) -> Agent:
        """Register somebody."""
        agent = Agent(self, (name * 32)[:32])
        given = ARGUMENTS["register"](agent_secret=agent.secret, **more)
        result = self.call(Ask("register", given))
        assert result.address == agent.address
        return agent

    def sweep(self, most: int = 200) -> Swept:
        return self.do(lambda tx: sweep.sweep(tx, most))

    def news(self, agent: Agent, token: str = "server", most: int = 50, **more: Any) -> News:
        return self.do(lambda tx: news.news(tx, agent.id, agent.namespace, token, most, **more))

    def work(self, agent: Agent, token: str = "server") -> Work | None:
        return self.do(
            lambda tx: news.news(tx, agent.id, agent.namespace, token, None, work=True)
        ).work

    def reviews(self, agent: Agent, token: str = "server", most: int = 50) -> tuple[Envelope, ...]:
        return self.do(
            lambda tx: news.news(tx, agent.id, agent.namespace, token, None, reviews=most)
        ).reviews

    def woken(self, agent: Agent, work: Work, *, taken: bool, token: str = "server") -> None:
        self.do(lambda tx: wakes.woken(tx, agent.namespace, token, work, taken=taken))

    def pushed(self, seqs: list[int], *, taken: bool, token: str = "server") -> None:
        self.do(lambda tx: news.pushed(tx, token, seqs, taken=taken))

    def unsent(self, agent: Agent, *nudges: Nudge) -> None:
        self.do(lambda tx: news.unsent(tx, agent.namespace, nudges))

    def present(
        self, agent: Agent, token: str = "server", *, here: bool = True, work: bool = False
    ) -> None:
        self.do(lambda tx: news.present(tx, agent.id, token, here=here, work=work))

    def keep_house(self) -> None:
        self.do(operations.housekeeping)

    def sql(self, statement: str, **parameters: Any) -> None:
        """Change rows behind the store's back."""
        self.do(lambda tx: tx.conn.execute(sa.text(statement), parameters))

    def rows(self, table: sa.Table, **equal: Any) -> list[dict[str, Any]]:
        """Read rows of a table, in the order of their keys."""
        query = sa.select(table).order_by(*table.primary_key).filter_by(**equal)
        return self.do(lambda tx: [dict(row._mapping) for row in tx.conn.execute(query)])

    def dump(self) -> dict[str, list[dict[str, Any]]]:
        """Read all there is."""
        return {table.name: self.rows(table) for table in schema.metadata.sorted_tables}

    @property
    def sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    def plan(self, statement: str, parameters: tuple[Any, ...]) -> str:
        """Say how SQLite goes about a statement."""
        explained = f"EXPLAIN QUERY PLAN {statement}"
        rows = self.do(lambda tx: tx.conn.exec_driver_sql(explained, parameters).all())
        return "; ".join(row[3] for row in rows)

    def _note(self, _conn: object, _cursor: object, statement: str, *_: object) -> None:
        self.statements.append(statement)
        if self.fail_at and statement.startswith(("INSERT", "UPDATE", "DELETE")):
            self.fail_at -= 1
            if not self.fail_at:
                full = sqlite3.OperationalError("database or disk is full")
                full.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise sa.exc.OperationalError(statement, None, full)


def _hurry(connection: Any, _record: object) -> None:
    """No power cut comes in the middle of these tests."""
    connection.execute("PRAGMA synchronous = OFF")


def _wait(connection: Any, _record: object) -> None:
    """A busy machine may keep a test waiting in the middle of a transaction."""
    connection.execute("SET idle_in_transaction_session_timeout = 0")
    connection.commit()


def told(outcome: Any) -> dict[str, Any]:
    """Give an outcome as it goes over the wire."""
    values: dict[str, Any] = msgspec.to_builtins(outcome)
    return values


def refused(outcome: Any) -> Failure:
    assert isinstance(outcome, Failure), outcome
    return outcome
