"""Queues of tasks to measure on, filled at once, and what SQLite alone takes for the same."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from msgspec import Raw

from mcpl_heartbeat.tasks.arguments import FieldArguments
from tests.benchmarks.shelf import Shelf

OUTPUTS = '{"n":{"value":1}}'
_ID = "printf('00000000-0000-4000-8000-%012x', {})"


def id_of(number: int) -> str:
    """The id of a task that was filled in."""
    return f"00000000-0000-4000-8000-{number:012x}"


def fill(shelf: Shelf, count: int, first: int, *, closed: bool = False) -> None:
    """Make ``count`` tasks as rows, numbered from ``first``; ``closed``: their result is in."""
    made = shelf.told(
        "create_agent_task",
        input_snapshot=Raw(b'{"document":"permit 4711","pages":12}'),
        output_contract=[FieldArguments(key="n", data_type="integer")],
        instructions="Count the pages.",
    )
    over = {"status": "'submitted'", "epoch": "2", "claimable_at": "NULL"}
    over |= {"claimed_at": "created_at", "submitted_at": "created_at"}
    conn = sqlite3.connect(shelf.path, isolation_level=None)
    conn.execute("PRAGMA synchronous = OFF")
    number = f"{first} + i"
    _copy(
        conn,
        "tasks",
        f"id = '{made['id']}'",
        {"id": _ID.format(number), "seq": f"seq + 1 + {number}", **(over if closed else {})},
        count,
    )
    result = {"outputs": f"'{OUTPUTS}'"} if closed else {}
    of = f"task = '{made['id']}'"
    _copy(conn, "task_payloads", of, {"task": _ID.format(number), **result}, count)
    if closed:
        conn.execute(
            "INSERT INTO task_epochs (task, epoch, namespace, agent_id, claimed_at, beats, "
            "ended_at, cause) SELECT id, 2, namespace, 'worker', claimed_at, 3, submitted_at, "
            "'submitted' FROM tasks WHERE status = 'submitted'"
        )
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
    os.sync()  # or the first commits measured wait for all this


def _copy(
    conn: sqlite3.Connection, table: str, row: str, values: dict[str, str], count: int
) -> None:
    columns = [column[1] for column in conn.execute(f"PRAGMA table_info({table})")]
    chosen = ", ".join(values.get(name, name) for name in columns)
    conn.execute(
        "WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers "
        f"WHERE i < {count - 1}) INSERT INTO {table} ({', '.join(columns)}) "
        f"SELECT {chosen} FROM numbers, {table} WHERE {row}"
    )


class BareQueue:
    """The same rows in SQLite with nothing around it; each call here is one commit."""

    def __init__(self, folder: Path, count: int, closed: int = 0) -> None:
        """``closed``: so many more that are over."""
        folder.mkdir(parents=True, exist_ok=True)
        self.conn = sqlite3.connect(folder / "bare.db", isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self.conn.execute(f"PRAGMA {pragma}")
        self.conn.execute(
            "CREATE TABLE tasks (id TEXT PRIMARY KEY, seq INTEGER, status TEXT, epoch INTEGER, "
            "expires INTEGER, timeout INTEGER, rest TEXT) STRICT"
        )
        self.conn.execute("CREATE INDEX listed ON tasks (status, seq)")
        self.conn.execute("CREATE TABLE payloads (task TEXT PRIMARY KEY, input TEXT, outputs TEXT)")
        self.conn.execute(
            "CREATE TABLE epochs (task TEXT, epoch INTEGER, claimed INTEGER, beats INTEGER, "
            "ended INTEGER, cause TEXT, PRIMARY KEY (task, epoch)) STRICT"
        )
        self.conn.execute("BEGIN")
        self.conn.executemany(
            "INSERT INTO tasks VALUES (?, ?, ?, 1, NULL, 9, ?)",
            (
                (id_of(i), i, "available" if i < count else "submitted", "r" * 60)
                for i in range(count + closed)
            ),
        )
        self.conn.executemany(
            "INSERT INTO payloads VALUES (?, ?, NULL)",
            ((id_of(i), "i" * 60) for i in range(count + closed)),
        )
        self.conn.execute("COMMIT")
        self.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        os.sync()

    def claim(self, numbers: Sequence[int]) -> None:
        """Take these, and read what is in them."""
        self._all(
            numbers,
            "SELECT input FROM payloads WHERE task = :id",
            "UPDATE tasks SET status = 'claimed', epoch = epoch + 1, expires = :i "
            "WHERE id = :id AND status = 'available'",
            "INSERT INTO epochs VALUES (:id, 2, :i, 0, NULL, NULL)",
        )

    def heartbeat(self, numbers: Sequence[int]) -> None:
        """Hold them for longer."""
        self._all(
            numbers,
            "UPDATE tasks SET expires = expires + 1 WHERE id = :id AND epoch = 2 "
            "AND status = 'claimed' AND timeout > 1",
            "UPDATE epochs SET beats = beats + 1 WHERE task = :id AND epoch = 2",
        )

    def submit(self, numbers: Sequence[int]) -> None:
        """Take the results."""
        self._all(
            numbers,
            "UPDATE tasks SET status = 'submitted', expires = NULL WHERE id = :id AND epoch = 2 "
            "AND status = 'claimed' AND timeout > 1",
            "UPDATE payloads SET outputs = :outputs WHERE task = :id",
            "UPDATE epochs SET ended = :i, cause = 'submitted' WHERE task = :id AND epoch = 2",
        )

    def _all(self, numbers: Sequence[int], *statements: str) -> None:
        self.conn.execute("BEGIN IMMEDIATE")
        for number in numbers:
            values = {"id": id_of(number), "i": number, "outputs": OUTPUTS}
            for statement in statements:
                self.conn.execute(statement, values).fetchall()
        self.conn.execute("COMMIT")

    def close(self) -> None:
        """Done."""
        self.conn.close()
