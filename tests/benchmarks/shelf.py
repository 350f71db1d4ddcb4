"""Stores to measure on, filled at once, and what SQLite alone takes for the same."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcpl_heartbeat.catalogue import TOOLS
from mcpl_heartbeat.storage.store.clock import HostClock
from mcpl_heartbeat.storage.store.ports import Ask
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.failures import Failure
from tests.benchmarks.bench import Unmeasurable

SECRET = "a secret that only the benchmark has, 32 or more"
ARGUMENTS = {tool.name: tool.arguments for tool in TOOLS}
DAY = 86_400


class Shelf:
    """A store in ``folder``, its one agent, and scopes that it beats."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "store.db"
        self.url = f"sqlite:///{self.path}"
        self.store = Store(self.url, clock=HostClock())
        self.store.open()
        self.address: str = self.told("register", agent_secret=SECRET)["address"]

    def close(self) -> None:
        """Leave the store to others."""
        self.store.close()

    def ask(self, tool: str, **arguments: Any) -> Ask:
        """A call of the agent."""
        return Ask(tool, ARGUMENTS[tool](**arguments), None if tool == "register" else SECRET)

    def told(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Make it alone."""
        outcome = self.store.answer([self.ask(tool, **arguments)])[0]
        if isinstance(outcome, Failure):
            raise Unmeasurable(f"{tool}: {outcome.message}")
        return {name: getattr(outcome, name) for name in outcome.__struct_fields__}

    def fill(self, count: int) -> None:
        """Arm ``count`` switches that are due in a day or later, as rows."""
        self.told("heartbeat", scope="row to copy", expect_within_seconds=DAY)
        conn = sqlite3.connect(self.path, isolation_level=None)
        conn.execute("PRAGMA synchronous = OFF")
        columns = [row[1] for row in conn.execute("PRAGMA table_info(switches)")]
        values = {"scope": "printf('scope-%07d', i)"}
        for name in ("deadline_watched", "check_watched"):
            values[name] = f"{name} + (i * 7919) % 1000000"
        chosen = ", ".join(values.get(name, name) for name in columns)
        conn.execute(
            "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers "
            f"WHERE i < {count - 1}) INSERT INTO switches ({', '.join(columns)}) "
            f"SELECT {chosen} FROM numbers, switches WHERE scope = 'row to copy'"
        )
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        conn.close()


class Bare:
    """The same rows in SQLite with nothing around it."""

    def __init__(self, folder: Path, count: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.conn = sqlite3.connect(folder / "bare.db", isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self.conn.execute(f"PRAGMA {pragma}")
        self.conn.execute(
            "CREATE TABLE switches (namespace TEXT, scope TEXT, state TEXT, deadline INTEGER, "
            "checked INTEGER, beat INTEGER, beats INTEGER, rest TEXT, "
            "PRIMARY KEY (namespace, scope)) STRICT"
        )
        self.conn.execute("CREATE INDEX due ON switches (checked) WHERE state = 'armed'")
        self.conn.execute("BEGIN")
        self.conn.executemany(
            "INSERT INTO switches VALUES (?, ?, 'armed', ?, ?, 0, 0, ?)",
            (("n" * 64, f"scope-{i:07}", 10**13 + i, 10**13 + i, "r" * 60) for i in range(count)),
        )
        self.conn.execute("COMMIT")
        self.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def beats(self, numbers: Sequence[int]) -> None:
        """One update for each, and one commit."""
        self.conn.execute("BEGIN IMMEDIATE")
        self.conn.executemany(
            "UPDATE switches SET deadline = ?, beat = ?, beats = beats + 1 "
            "WHERE namespace = ? AND scope = ?",
            [(10**13 + i, i, "n" * 64, f"scope-{i:07}") for i in numbers],
        )
        self.conn.execute("COMMIT")

    def sweep(self) -> None:
        """Look whether anything is due."""
        self.conn.execute("BEGIN IMMEDIATE")
        self.conn.execute(
            "SELECT namespace, scope FROM switches WHERE state = 'armed' AND checked <= 1 "
            "ORDER BY checked LIMIT 200"
        ).fetchall()
        self.conn.execute("COMMIT")

    def close(self) -> None:
        """Done."""
        self.conn.close()
