"""Tasks in the store: read strictly, listed by index, and written only over what was read.

A heartbeat is the hot path: what it changes touches no index.
"""

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import schema, tasks_rows
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.storage.store.sql import ByKeys, Key, among, pieces
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks.rows import Task, guard_scope

CORRUPT = "corrupt"
"""The status of a row that was set aside."""
GUARD = guard_scope("")
"""What the scopes of guards begin with."""

_TABLE = schema.tasks
_PAYLOADS = schema.task_payloads
_C = _TABLE.c
_REAL: sa.BindParameter[int] = sa.bindparam("real")
_WATCHED: sa.BindParameter[int] = sa.bindparam("watched")
_OF_NAMESPACE = _C.namespace == sa.bindparam("namespace")


def _is(status: str) -> sa.ColumnElement[bool]:
    return _C.status == sa.literal_column(f"'{status}'")


AVAILABLE, CLAIMED = _is("available"), _is("claimed")
OPEN = _C.status.in_([sa.literal_column("'available'"), sa.literal_column("'claimed'")])
IN_TIME = _C.timeout_at > _REAL
_LAPSED = _C.expires_watched <= _WATCHED
_LIVE = _C.expires_watched > _WATCHED

_BY_IDS = sa.select(*tasks_rows.TASK).where(among(_C.id))
_WITH_WORDS = sa.select(*tasks_rows.TASK, _PAYLOADS.c.instructions).join_from(
    _TABLE, _PAYLOADS, _PAYLOADS.c.task == _C.id, isouter=True
)
_TO_END = _WITH_WORDS.where(among(_C.id))
_OVERDUE = (
    _WITH_WORDS.where(OPEN, _C.timeout_at <= _REAL)
    .order_by(_C.timeout_at)
    .limit(sa.bindparam("most"))
)
_WHOLE = (
    sa.select(*tasks_rows.TASK, *tasks_rows.PAYLOAD)
    # Without its payload it is found all the same, and is one that cannot be read.
    .join_from(_TABLE, _PAYLOADS, _PAYLOADS.c.task == _C.id, isouter=True)
    .where(_OF_NAMESPACE, _C.id == sa.bindparam("of_id"))
)
_ONE = sa.select(*tasks_rows.TASK).where(_OF_NAMESPACE, _C.id == sa.bindparam("of_id"))
_PAST = sa.select(_C.namespace, _C.id).where(among(_C.id), OPEN, _C.timeout_at <= _REAL)
_KEYED = sa.select(_C.id).where(
    _OF_NAMESPACE, _C.dedupe_key == sa.bindparam("key"), _C.dedupe_key.is_not(None)
)
_OF_SCOPES = ByKeys(tasks_rows.TASK, (_C.namespace, _C.scope), CLAIMED)
_GUARDED = ByKeys(
    tasks_rows.TASK, (_C.namespace, _C.id), CLAIMED, _C.guard == sa.literal_column("1")
)

_INSERT = sa.insert(_TABLE)
_INSERT_PAYLOAD = sa.insert(_PAYLOADS)
_OUTPUTS = (
    sa.update(_PAYLOADS)
    .where(_PAYLOADS.c.task == sa.bindparam("of_id"))
    .values(outputs=sa.bindparam("outputs"))
)
# There is one writer at a time, so what was read in this transaction still stands; the conditions
# say so once more, that no fault elsewhere can ever let a stale claim write. All but the id are
# such that no index serves: before PostgreSQL has statistics it takes that of the namespace, and
# goes through all that it has for each row that is written.
_NO_INDEX: sa.ColumnElement[str] = sa.literal_column("''")
_AS_READ = sa.and_(
    _C.id == sa.bindparam("of_id"),
    _C.namespace.concat(_NO_INDEX) == sa.bindparam("of_namespace"),
    _C.status.concat(_NO_INDEX) == sa.bindparam("of_status"),
    _C.epoch == sa.bindparam("of_epoch"),
)
_FIXED = ("seq", "id", "namespace", "creator", "created_at", "lease_ms", "timeout_at", "dedupe_key")
_REST = tuple(column.name for column in _C if column.name not in _FIXED)
_BEATEN = ("updated_at", "expires_watched", "note", "step", "note_at", "note_epoch")


@functools.lru_cache(maxsize=32)
def _change(names: Sequence[str]) -> sa.Update:
    return sa.update(_TABLE).where(_AS_READ).values({name: sa.bindparam(name) for name in names})


_SET_ASIDE = (
    sa.update(_TABLE)
    .where(_C.id == sa.bindparam("of_id"))
    # Its dedupe key is free again, for it will never be done.
    .values(status=CORRUPT, dedupe_key=None)
)


class Corrupt(Exception):
    """A task cannot be read: its id, and why."""

    def __init__(self, id: str, why: str) -> None:
        super().__init__(f"task {id}: {why}")
        self.id = id


def load(tx: Transaction, namespace: str, id: str, *, whole: bool) -> Task | None:
    """Read a task, or the ``whole`` of it. ``None``: there is none, or it was set aside.

    Raises ``Corrupt``.
    """
    sought = {"namespace": namespace, "of_id": id}
    row = tx.conn.execute(_WHOLE if whole else _ONE, sought).first()
    if row is None or _status(row) == CORRUPT:
        return None
    try:
        return tasks_rows.task(row, whole=whole)
    except CorruptRow as wrong:
        raise Corrupt(id, wrong.why) from wrong


def to_end(tx: Transaction, ids: Collection[str]) -> tuple[list[Task], list[str]]:
    """Read tasks with what their timeout needs of them; those that cannot be read come apart."""
    rows: list[Sequence[Any]] = []
    for some in pieces(list(ids)):
        rows += tx.conn.execute(_TO_END, {"keys": some})
    return _with_words(rows)


def past(tx: Transaction, keys: Collection[Key]) -> list[str]:
    """Name those that are overdue of the tasks whose guards have one of these scopes."""
    named = {(of, scope.removeprefix(GUARD)) for of, scope in keys if scope.startswith(GUARD)}
    found: list[str] = []
    for some in pieces([id for _, id in named]):
        rows = tx.conn.execute(_PAST, {"keys": some, "real": tx.now.real})
        found += [id for of, id in rows if (of, id) in named]
    return found


def overdue(tx: Transaction, most: int) -> tuple[list[Task], list[str]]:
    """Read up to ``most`` that are overdue, the oldest first, as ``to_end`` does."""
    return _with_words(tx.conn.execute(_OVERDUE, {"real": tx.now.real, "most": most}))


def _with_words(rows: Iterable[Sequence[Any]]) -> tuple[list[Task], list[str]]:
    found: list[Task] = []
    corrupt: list[str] = []
    for row in rows:
        try:
            task = tasks_rows.task(row)
        except CorruptRow as wrong:
            corrupt.append(str(wrong.key[0]))
        else:
            found.append(msgspec.structs.replace(task, instructions=row[-1]))
    return found, corrupt


def keyed(tx: Transaction, namespace: str, dedupe_key: str) -> str | None:
    """Give the id of the task that this key names."""
    sought = {"namespace": namespace, "key": dedupe_key}
    return tx.conn.execute(_KEYED, sought).scalar_one_or_none()


def by_ids(
    tx: Transaction, namespace: str, ids: Collection[str]
) -> tuple[dict[str, Task], list[str]]:
    """Read tasks without their payload; the ids of those that cannot be read come apart."""
    found: dict[str, Task] = {}
    corrupt: list[str] = []
    if not ids:
        return found, corrupt
    # Were the namespace asked for as well, SQLite might go through all that it has.
    for row in tx.conn.execute(_BY_IDS, {"keys": list(ids)}):
        if _status(row) == CORRUPT or row[_AT_NAMESPACE] != namespace:
            continue
        try:
            task = tasks_rows.task(row)
        except CorruptRow as wrong:
            corrupt.append(str(wrong.key[0]))
        else:
            found[task.id] = task
    return found, corrupt


def under(tx: Transaction, keys: Collection[Key]) -> dict[Key, list[Task]]:
    """Read what is claimed under these scopes, or guarded by a switch on one; without payload.

    A task comes with each of ``keys`` that it is under; in the order of the ids.
    """
    guards = {
        (namespace, scope.removeprefix(GUARD)): (namespace, scope)
        for namespace, scope in keys
        if scope.startswith(GUARD)
    }
    rows = list(_OF_SCOPES(tx, keys))
    if guards:
        rows += _GUARDED(tx, guards)
    tx.weigh(len(rows))
    claims: dict[Key, dict[str, Task]] = defaultdict(dict)
    for row in rows:
        try:
            task = tasks_rows.task(row)
        except CorruptRow:
            # Its own calls, and its timeout, set it aside; no fire is held up by it.
            continue
        if task.scope is not None:
            claims[task.namespace, task.scope][task.id] = task
        if task.guard and (task.namespace, task.id) in guards:
            claims[guards[task.namespace, task.id]][task.id] = task
    return {key: [claims[key][id] for id in sorted(claims.get(key, ()))] for key in keys}


def insert(tx: Transaction, task: Task) -> None:
    """Keep a new task."""
    tx.conn.execute(_INSERT, tasks_rows.task_values(task))
    tx.conn.execute(_INSERT_PAYLOAD, tasks_rows.payload_values(task))


def write(tx: Transaction, before: Task, after: Task) -> None:
    """Write ``after`` over ``before``, as that was read in this transaction."""
    names = _BEATEN if _only_beaten(before, after) else _REST
    row = _row(before, after, names)
    written = tx.conn.execute(_change(names), row).rowcount
    assert written == 1, f"task {before.id} is not as it was read"
    if after.outputs is not None and before.outputs is None:
        outputs = bytes(after.outputs).decode()
        tx.conn.execute(_OUTPUTS, {"of_id": after.id, "outputs": outputs})


def write_all(tx: Transaction, changes: Sequence[tuple[Task, Task]]) -> None:
    """Write many, each the second over the first, as ``write`` does; none of them gets outputs."""
    if not changes:
        return
    names = tuple(
        name
        for name in _REST
        if any(getattr(before, name) is not getattr(after, name) for before, after in changes)
    )
    rows = [_row(*change, names) for change in changes]
    written = tx.conn.execute(_change(names), rows).rowcount
    assert written == len(changes), "of these tasks some are not as they were read"


def _row(before: Task, after: Task, names: Sequence[str]) -> dict[str, Any]:
    row = tasks_rows.task_values(after, names)
    row.update(
        of_id=before.id,
        of_namespace=before.namespace,
        of_status=before.status,
        of_epoch=before.epoch,
    )
    return row


def put_aside(tx: Transaction, ids: Iterable[str]) -> None:
    """Take rows that cannot be read out of the way."""
    for id in ids:
        tx.conn.execute(_SET_ASIDE, {"of_id": id})


def _status(row: Sequence[Any]) -> Any:
    return row[_AT_STATUS]


_NAMES = [column.name for column in tasks_rows.TASK]
_AT_STATUS, _AT_NAMESPACE = _NAMES.index("status"), _NAMES.index("namespace")


def _only_beaten(before: Task, after: Task) -> bool:
    """Whether nothing but what ``_BEATEN`` names differs."""
    return all(
        name in _BEATEN or getattr(before, name) is getattr(after, name)
        for name in Task.__struct_fields__
    )


# --- lists and counts --------------------------------------------------------------------------


def _page(*where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(_C.seq, _C.id)
        .where(_OF_NAMESPACE, _C.seq > sa.bindparam("after"), *where)
        .order_by(_C.seq)
        .limit(sa.bindparam("most"))
    )


_ALL = (_page(_C.status != sa.literal_column(f"'{CORRUPT}'")),)
_PAGES = {
    "available": (_page(AVAILABLE, IN_TIME), _page(CLAIMED, _LAPSED, IN_TIME)),
    "claimed": (_page(CLAIMED, _LIVE, IN_TIME),),
    "submitted": (_page(_is("submitted")),),
    # What is overdue has timed out, whether or not anybody has come by to note it.
    "timed_out": (
        _page(_is("timed_out")),
        _page(AVAILABLE, _C.timeout_at <= _REAL),
        _page(CLAIMED, _C.timeout_at <= _REAL),
    ),
    "cancelled": (_page(_is("cancelled")),),
    "failed": (_page(_is("failed")),),
}
_COUNT_AVAILABLE = sa.select(sa.func.count()).where(_OF_NAMESPACE, AVAILABLE, IN_TIME)
_COUNT_CLAIMED = sa.select(sa.func.count(), sa.func.sum(sa.case((_LAPSED, 1), else_=0))).where(
    _OF_NAMESPACE, CLAIMED, IN_TIME
)
_TOTALS = sa.select(sa.func.count(), sa.func.sum(sa.case((AVAILABLE, 1), else_=0))).where(
    # By the index of what is open, which SQLite takes only for a range of its own.
    OPEN,
    _C.timeout_at > sa.literal_column("0"),
)


def page(
    tx: Transaction, namespace: str, status: str | None, after: int, most: int
) -> list[tuple[int, str]]:
    """Give number and id of the first ``most`` tasks of that status beyond the number ``after``."""
    sought = {"namespace": namespace, "after": after, "most": most}
    sought |= {"real": tx.now.real, "watched": tx.now.watched}
    queries: Iterable[sa.Select[Any]] = _ALL if status is None else _PAGES[status]
    found: list[tuple[int, str]] = []
    for query in queries:
        found += [(row[0], row[1]) for row in tx.conn.execute(query, sought)]
    return sorted(found)[:most]


def counts(tx: Transaction, namespace: str) -> dict[str, int]:
    """Count what is open: what can be claimed now, and what is held.

    What is over is not counted: that would take the longer, the more there was.
    """
    sought = {"namespace": namespace, "real": tx.now.real, "watched": tx.now.watched}
    available = int(tx.conn.execute(_COUNT_AVAILABLE, sought).scalar_one())
    claimed, lapsed = tx.conn.execute(_COUNT_CLAIMED, sought).one()
    lapsed = int(lapsed or 0)
    return {"available": available + lapsed, "claimed": int(claimed) - lapsed}


def totals(tx: Transaction) -> tuple[int, int]:
    """Count the whole store's tasks by what their rows say: available, and claimed."""
    open_tasks, available = tx.conn.execute(_TOTALS).one()
    return int(available or 0), int(open_tasks) - int(available or 0)
