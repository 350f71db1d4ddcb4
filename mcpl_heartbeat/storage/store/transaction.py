"""What the operations on the rows are given: one open transaction, and the time it counts at."""

from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.watch.clock import Reading


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

    @property
    def sqlite(self) -> bool:
        """Whether the store is SQLite; else it is PostgreSQL."""
        return self.conn.dialect.name == "sqlite"
