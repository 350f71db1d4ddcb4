"""What the operations on the rows are given: one open transaction, and the time it counts at."""

import contextlib
from collections.abc import Callable, Iterator

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store.engine import LONG_IDLE_MS, Kind, judge
from mcpl_heartbeat.storage.store.ports import Unsettled
from mcpl_heartbeat.watch.clock import Reading

MANY = 5_000
"""Of how many rows the decisions may take long enough for PostgreSQL to think that we are gone."""


class Transaction(msgspec.Struct, frozen=True):
    """A transaction that is open, holds the store's only writer's place, or reads one snapshot.

    The store begins and ends it; operations neither commit nor roll back. ``now`` is the one
    instant that every decision in it counts from.
    """

    conn: sa.Connection
    now: Reading
    salt: bytes
    """The key of the namespaces' hash."""
    random: Callable[[int], bytes]
    """So many random bytes."""
    late_ms: list[int] = msgspec.field(default_factory=list)
    """For each switch that was fired in it how long after its deadline that was."""
    reads: bool = False
    """Whether nothing can be written in it."""

    def to_write(self) -> None:
        """Say that something is to be written. Raises ``Unsettled`` where that cannot be."""
        if self.reads:
            raise Unsettled

    @property
    def sqlite(self) -> bool:
        """Whether the store is SQLite; else it is PostgreSQL."""
        return self.conn.dialect.name == "sqlite"

    def weigh(self, rows: int) -> None:
        """Say how many rows are to be decided on at once; with very many the database is patient.

        Else it would end the transaction in the midst of that, each time that it is tried.
        """
        if rows > MANY and not self.sqlite:
            text = f"SET LOCAL idle_in_transaction_session_timeout = {LONG_IDLE_MS}"
            self.conn.exec_driver_sql(text)

    @contextlib.contextmanager
    def part(self) -> Iterator[sa.NestedTransaction]:
        """Do what is done within whole or not at all, whatever becomes of the rest.

        When it is the database that fails, all of the transaction is lost, and SQLite has ended it
        already: taking back a part would fail in its turn and hide why, and what is done after that
        would be kept at once, each statement for itself.
        """
        part = self.conn.begin_nested()
        try:
            yield part
        except Exception as wrong:
            if judge(wrong).kind is Kind.OURS:
                part.rollback()
            raise
        if part.is_active:
            part.commit()
