"""What the statements share. Fixed words stand in them as literals, else no partial index serves.

Statements are made once, at import: then SQLAlchemy compiles each of them once as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.transaction import Transaction

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace and scope, or namespace and lease key."""

ARMED = schema.switches.c.state == sa.literal_column("'armed'")
HELD = schema.leases.c.held == sa.literal_column("1")
PENDING = schema.envelopes.c.state == sa.literal_column("'pending'")
ALERT = schema.envelopes.c.kind == sa.literal_column("'alert'")


_PIECE = 1_000


def pieces(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Part keys into so many that one statement can take them."""
    for at in range(0, len(keys), _PIECE):
        yield keys[at : at + _PIECE]


def among(column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Match rows whose ``column`` is among the parameter ``keys``, of which there are few."""
    keys: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
    return column.in_(keys)


class ByKeys:
    """Reads ``columns`` of the rows whose ``key``, of several columns, is among those given.

    A list of tuples after ``IN`` has SQLite walk the whole table, so the keys are a table of their
    own that is joined to the index: JSON on SQLite, arrays on PostgreSQL.
    """

    def __init__(
        self,
        columns: Sequence[sa.ColumnElement[Any]],
        key: Sequence[sa.Column[Any]],
        *where: sa.ColumnElement[bool],
    ) -> None:
        self._names = [f"key{at}" for at in range(len(key))]
        query = sa.select(*columns).where(*where)
        items = sa.func.json_each(sa.bindparam("keys")).table_valued("value", name="sought")
        self._sqlite = query.select_from(items).where(
            *(
                column == sa.func.json_extract(items.c.value, sa.literal_column(f"'$[{at}]'"))
                for at, column in enumerate(key)
            )
        )
        arrays = (
            sa.bindparam(name, type_=ARRAY(column.type))
            for name, column in zip(self._names, key, strict=True)
        )
        sought = sa.func.unnest(*arrays).table_valued(*self._names).render_derived(name="sought")
        self._postgresql = query.select_from(sought).where(
            *(column == sought.c[name] for name, column in zip(self._names, key, strict=True))
        )

    def __call__(
        self, tx: Transaction, keys: Iterable[tuple[Any, ...]], **parameters: Any
    ) -> Iterable[Sequence[Any]]:
        """Read the rows of these keys, each once, in no order."""
        sought = list(dict.fromkeys(keys))
        if tx.sqlite:
            parameters["keys"] = msgspec.json.encode(sought).decode()
            return tx.conn.execute(self._sqlite, parameters)
        for at, name in enumerate(self._names):
            parameters[name] = [key[at] for key in sought]
        return tx.conn.execute(self._postgresql, parameters)
