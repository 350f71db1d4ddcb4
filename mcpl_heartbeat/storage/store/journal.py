"""The journal: a line for each change of a scope, never for a mere beat."""

from collections.abc import Iterable

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import rows, schema
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.storage.store.sql import Key
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch.rows import Entry

KEPT = 500
"""How many lines a scope keeps; older ones go with the next housekeeping."""

_JOURNAL = schema.journal
_INSERT = sa.insert(_JOURNAL)
_OF_SCOPE = sa.and_(
    _JOURNAL.c.namespace == sa.bindparam("namespace"), _JOURNAL.c.scope == sa.bindparam("scope")
)
_NEWEST = (
    sa.select(*rows.ENTRY)
    .where(_OF_SCOPE)
    .order_by(_JOURNAL.c.seq.desc())
    .limit(sa.bindparam("most"))
)
_GENERATION = sa.select(sa.func.max(_JOURNAL.c.generation)).where(_OF_SCOPE)
_SCOPE = (_JOURNAL.c.namespace, _JOURNAL.c.scope)
_LENGTHS = (
    sa.select(*_SCOPE, sa.func.count())
    .where(sa.tuple_(*_SCOPE) > sa.tuple_(sa.bindparam("namespace"), sa.bindparam("scope")))
    .group_by(*_SCOPE)
    .order_by(*_SCOPE)
    .limit(sa.bindparam("most"))
)
_OLDEST_KEPT = (
    sa.select(_JOURNAL.c.seq)
    .where(_OF_SCOPE)
    .order_by(_JOURNAL.c.seq.desc())
    .limit(1)
    .offset(KEPT - 1)
    .scalar_subquery()
)
_TRIM = sa.delete(_JOURNAL).where(_OF_SCOPE, _JOURNAL.c.seq < _OLDEST_KEPT)


def write(tx: Transaction, entries: Iterable[Entry]) -> None:
    """Add lines, in their order."""
    values = [rows.entry_values(entry) for entry in entries]
    if values:
        tx.conn.execute(_INSERT, values)


def newest(tx: Transaction, namespace: str, scope: str, most: int) -> list[Entry]:
    """Give the last lines of a scope, oldest first; those that cannot be read are left out."""
    found: list[Entry] = []
    for row in tx.conn.execute(_NEWEST, {"namespace": namespace, "scope": scope, "most": most}):
        try:
            found.append(rows.entry(row))
        except CorruptRow:
            continue
    found.reverse()
    return found


def generation(tx: Transaction, namespace: str, scope: str) -> int:
    """Give the highest generation that the journal names, 0 where it names none."""
    key = {"namespace": namespace, "scope": scope}
    return int(tx.conn.execute(_GENERATION, key).scalar() or 0)


def trim(tx: Transaction, after: Key, most: int) -> Key | None:
    """Drop what is older than the newest ``KEPT`` lines of its scope, in ``most`` scopes.

    Those are the first beyond ``after``; the last of them comes back, or ``None`` at the end.
    """
    sought = {"namespace": after[0], "scope": after[1], "most": most}
    lengths = tx.conn.execute(_LENGTHS, sought).all()
    long = [{"namespace": row[0], "scope": row[1]} for row in lengths if row[2] > KEPT]
    if long:
        tx.conn.execute(_TRIM, long)
    return (lengths[-1][0], lengths[-1][1]) if len(lengths) == most else None
