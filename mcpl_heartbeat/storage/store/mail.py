"""Mail in the store: boxes that are put into, handed out of, and counted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import rows, schema
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.storage.store.sql import ALERT, PENDING, ByKeys
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch import mail
from mcpl_heartbeat.watch.arguments import (
    InboxAckArguments,
    InboxNackArguments,
    InboxPollArguments,
)
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import (
    BoxView,
    InboxAckResult,
    InboxNackResult,
    InboxPollResult,
)
from mcpl_heartbeat.watch.rows import BoxLoad, Envelope, Identity

KEPT_MS = 7 * 86_400_000
"""How long (ms) an envelope that is done stays, so that a second ack still knows it."""
TOKEN_BYTES = 16

Of = tuple[str, str, int]
"""Of which namespace, scope and generation an alert is."""
REVIEW = 0
"""What stands for the generation where it is the review of a task, of the scope of its guards."""
Resolution = Literal["recovered", "disarmed"]

_TABLE = schema.envelopes
_IN_BOX = sa.and_(
    PENDING, _TABLE.c.agent == sa.bindparam("agent"), _TABLE.c.box == sa.bindparam("box")
)
_VISIBLE = _TABLE.c.visible_at <= sa.bindparam("real")
_INSERT = sa.insert(_TABLE)
_BY_ID = _TABLE.c.task_id == sa.bindparam("of_task_id")
_LOAD = sa.select(*rows.ENVELOPE).where(_BY_ID)
_OF = (_TABLE.c.of_namespace, _TABLE.c.of_scope, _TABLE.c.of_generation)
_LOAD_OF = ByKeys((*rows.ENVELOPE, *_OF), _OF, PENDING)
_CHANGING = (
    "objective",
    "alert",
    "due_at",
    "visible_at",
    "attempts",
    "token",
    "state",
    "result",
    "pushed_at",
)
_CHANGE = (
    sa.update(_TABLE)
    .where(_BY_ID)
    .values({name: sa.bindparam(name) for name in (*_CHANGING, "settled_at")})
)
_UNCLAIM = sa.update(_TABLE).where(_BY_ID).values(push_token=None, push_until=None)
_SET_ASIDE = (
    sa.update(_TABLE).where(_BY_ID).values(state="corrupt", settled_at=sa.bindparam("real"))
)
_FILL = (
    sa.select(_TABLE.c.kind, _TABLE.c.sender == _TABLE.c.agent, sa.func.count())
    .where(_IN_BOX)
    .group_by(_TABLE.c.kind, _TABLE.c.sender == _TABLE.c.agent)
)
_NEWEST_ALERT = (
    sa.select(*rows.ENVELOPE).where(_IN_BOX, ALERT).order_by(_TABLE.c.seq.desc()).limit(1)
)
_BOXES = sa.select(sa.func.count(sa.distinct(_TABLE.c.box))).where(
    PENDING, _TABLE.c.agent == sa.bindparam("agent")
)
_NEXT = (
    sa.select(*rows.ENVELOPE)
    .where(_IN_BOX, _VISIBLE)
    .order_by(sa.case((ALERT, 0), else_=1), _TABLE.c.due_at, _TABLE.c.seq)
    .limit(1)
)
_WAITING = sa.select(sa.func.count()).where(_IN_BOX, _VISIBLE)
_NEXT_DUE = sa.select(sa.func.min(_TABLE.c.visible_at)).where(
    _IN_BOX, sa.not_(_VISIBLE), _TABLE.c.task_id != sa.bindparam("of_task_id")
)
_BOX_COUNTS = (
    sa.select(
        _TABLE.c.box,
        sa.func.count(),
        sa.func.sum(sa.case((_VISIBLE, 1), else_=0)),
        sa.func.min(sa.case((_VISIBLE, None), else_=_TABLE.c.visible_at)),
    )
    .where(PENDING, _TABLE.c.agent == sa.bindparam("agent"))
    .group_by(_TABLE.c.box)
    .order_by(_TABLE.c.box)
)
_DEAD = sa.select(sa.func.count()).where(
    _TABLE.c.state == sa.literal_column("'failed'"), _TABLE.c.agent == sa.bindparam("agent")
)
_OF_SCOPE = (
    sa.select(*rows.ENVELOPE)
    .where(_IN_BOX, _TABLE.c.scope == sa.bindparam("scope"))
    .order_by(sa.case((ALERT, 0), else_=1), _TABLE.c.due_at, _TABLE.c.seq)
    .limit(sa.bindparam("most"))
)
_OF_SCOPE_COUNT = sa.select(sa.func.count()).where(_IN_BOX, _TABLE.c.scope == sa.bindparam("scope"))
_OLD = sa.delete(_TABLE).where(
    _TABLE.c.seq.in_(
        sa.select(_TABLE.c.seq)
        .where(_TABLE.c.settled_at < sa.bindparam("before"))
        .limit(sa.bindparam("most"))
    )
)


def task_id(tx: Transaction) -> str:
    """Make the name of a new envelope."""
    return f"task_{tx.random(TOKEN_BYTES).hex()}"


class Placed(msgspec.Struct, frozen=True):
    """Where an envelope found its place. ``folded``: an alert there has taken it in."""

    box: str
    folded: bool = False


class Post:
    """What one transaction puts into boxes. How full a box is, is counted once and then kept up.

    Nothing is written before ``flush``.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._loads: dict[tuple[str, str], BoxLoad] = {}
        self._opened: Counter[str] = Counter()
        self._new: dict[str, tuple[Envelope, Of | None]] = {}
        self._changed: dict[str, Envelope] = {}

    def put(
        self, envelope: Envelope, of: Of | None = None, review: str | None = None
    ) -> Placed | Failure:
        """Put it into its box, or where it can be put. ``review`` as in ``watch.mail.place``."""
        box = (envelope.agent, envelope.box)
        load = self._loads.get(box) or self._load(*box)
        placed = mail.place(load, envelope, own=envelope.sender == envelope.agent, review=review)
        if isinstance(placed, Failure):
            return placed
        if isinstance(placed, mail.Fold):
            self._change(placed.envelope)
            self._loads[box] = msgspec.structs.replace(load, newest_alert=placed.envelope)
            return Placed(envelope.box, folded=True)
        if isinstance(placed, mail.Elsewhere):
            return self.put(placed.envelope, of)
        self._new[placed.task_id] = (placed, of)
        self._loads[box] = _with(load, placed)
        self._opened[envelope.agent] += load.pending == 0
        return Placed(envelope.box)

    def _load(self, agent: str, box: str) -> BoxLoad:
        load = _load_of(self._tx, agent, box)
        return msgspec.structs.replace(load, boxes=load.boxes + self._opened[agent])

    def _change(self, envelope: Envelope) -> None:
        if envelope.task_id in self._new:
            self._new[envelope.task_id] = (envelope, self._new[envelope.task_id][1])
        else:
            self._changed[envelope.task_id] = envelope

    def flush(self) -> None:
        """Write it all."""
        if self._new:
            self._tx.conn.execute(_INSERT, [_new_row(*new) for new in self._new.values()])
        if self._changed:
            write(self._tx, self._changed.values())
            # Whoever is pushing one of these now pushes what it was before.
            unclaimed = [{"of_task_id": name} for name in self._changed]
            self._tx.conn.execute(_UNCLAIM, unclaimed)


def _new_row(envelope: Envelope, of: Of | None) -> dict[str, Any]:
    namespace, scope, generation = of or (None, None, None)
    return {
        **rows.envelope_values(envelope),
        "of_namespace": namespace,
        "of_scope": scope,
        "of_generation": generation,
    }


def _load_of(tx: Transaction, agent: str, box: str) -> BoxLoad:
    """Count how full a box is."""
    sought = {"agent": agent, "box": box}
    pending = own = foreign = 0
    for kind, is_own, count in tx.conn.execute(_FILL, sought):
        pending += count
        if kind == "alert":
            own, foreign = (own + count, foreign) if is_own else (own, foreign + count)
    newest = None
    if own or foreign:
        newest = _readable(tx.conn.execute(_NEWEST_ALERT, sought).first())
    # Only a box that would be a further one has to be weighed against the others.
    boxes = 1 if pending else int(tx.conn.execute(_BOXES, {"agent": agent}).scalar_one())
    return BoxLoad(
        pending=pending, own_alerts=own, foreign_alerts=foreign, newest_alert=newest, boxes=boxes
    )


def _readable(row: Sequence[Any] | None) -> Envelope | None:
    try:
        return None if row is None else rows.envelope(row)
    except CorruptRow:
        return None


def _with(load: BoxLoad, envelope: Envelope) -> BoxLoad:
    load = msgspec.structs.replace(
        load, pending=load.pending + 1, boxes=load.boxes + (load.pending == 0)
    )
    if envelope.kind != "alert":
        return load
    own = envelope.sender == envelope.agent
    return msgspec.structs.replace(
        load,
        own_alerts=load.own_alerts + own,
        foreign_alerts=load.foreign_alerts + (not own),
        newest_alert=envelope,
    )


def write(tx: Transaction, envelopes: Iterable[Envelope]) -> None:
    """Write envelopes that exist."""
    changed = []
    for envelope in envelopes:
        values = rows.envelope_values(envelope)
        row = {name: values[name] for name in _CHANGING}
        row["of_task_id"] = envelope.task_id
        row["settled_at"] = None if envelope.state == "pending" else tx.now.real
        changed.append(row)
    if changed:
        tx.conn.execute(_CHANGE, changed)


def resolve(tx: Transaction, alerts: Mapping[Of, Resolution]) -> None:
    """Mark the alerts of these fires that still wait as resolved, each with its resolution."""
    if not alerts:
        return
    changed = []
    for row in _LOAD_OF(tx, alerts):
        envelope = _readable(row[:-3])
        if envelope is not None:
            changed.append(mail.resolve(envelope, alerts[row[-3], row[-2], row[-1]], tx.now))
    write(tx, changed)


def poll(tx: Transaction, who: Identity, arguments: InboxPollArguments) -> InboxPollResult:
    """Hand out the next envelope of a box, which hides it for a while."""
    sought: dict[str, Any] = {"agent": who.agent, "box": arguments.box, "real": tx.now.real}
    envelope, notes = _next(tx, sought)
    if envelope is not None:
        token = f"dt_{tx.random(TOKEN_BYTES).hex()}"
        visible_ms = arguments.visibility_timeout_seconds * 1000
        envelope = mail.hand_out(envelope, visible_ms, token, tx.now)
        write(tx, [envelope])
    waiting = int(tx.conn.execute(_WAITING, sought).scalar_one())
    but = "" if envelope is None else envelope.task_id
    next_due = tx.conn.execute(_NEXT_DUE, {**sought, "of_task_id": but}).scalar()
    result = mail.poll_result(envelope, waiting, next_due, tx.now)
    return msgspec.structs.replace(result, notes=(*result.notes, *notes)) if notes else result


def _next(tx: Transaction, sought: dict[str, Any]) -> tuple[Envelope | None, list[str]]:
    """Find the next one that can be read; those that cannot are set aside, and told of."""
    notes: list[str] = []
    while True:
        row = tx.conn.execute(_NEXT, sought).first()
        if row is None:
            return None, notes
        try:
            return rows.envelope(row), notes
        except CorruptRow as wrong:
            tx.conn.execute(_SET_ASIDE, {"of_task_id": wrong.key[0], "real": tx.now.real})
            notes.append(f"The envelope {wrong.key[0]} cannot be read and was set aside.")


def _own(tx: Transaction, who: Identity, name: str) -> Envelope | None:
    row = tx.conn.execute(_LOAD, {"of_task_id": name}).first()
    envelope = _readable(row)
    return envelope if envelope is not None and envelope.agent == who.agent else None


def ack(tx: Transaction, who: Identity, arguments: InboxAckArguments) -> InboxAckResult:
    """Take an envelope as dealt with."""
    changed, result = mail.ack(_own(tx, who, arguments.task_id), arguments, tx.now)
    write(tx, [] if changed is None else [changed])
    return result


def nack(tx: Transaction, who: Identity, arguments: InboxNackArguments) -> InboxNackResult:
    """Take an envelope back."""
    changed, result = mail.nack(_own(tx, who, arguments.task_id), arguments, tx.now)
    write(tx, [] if changed is None else [changed])
    return result


def boxes(tx: Transaction, agent: str) -> tuple[list[BoxView], int | None]:
    """Count what waits in each box of an agent, and say when (real ms) more comes due."""
    found = list(tx.conn.execute(_BOX_COUNTS, {"agent": agent, "real": tx.now.real}))
    views = [BoxView(box=row[0], total=row[1], due=int(row[2])) for row in found]
    return views, min((row[3] for row in found if row[3] is not None), default=None)


def dead(tx: Transaction, agent: str) -> int:
    """Count the envelopes that an agent acknowledged as failed, of those that are kept."""
    return int(tx.conn.execute(_DEAD, {"agent": agent}).scalar_one())


def of_scope(
    tx: Transaction, agent: str, box: str, scope: str, most: int
) -> tuple[list[Envelope], int]:
    """Give the first of the envelopes that wait in a box for a scope, and how many there are."""
    sought = {"agent": agent, "box": box, "scope": scope}
    found = map(_readable, tx.conn.execute(_OF_SCOPE, {**sought, "most": most}))
    total = int(tx.conn.execute(_OF_SCOPE_COUNT, sought).scalar_one())
    return [envelope for envelope in found if envelope is not None], total


def forget_old(tx: Transaction, most: int) -> bool:
    """Delete up to ``most`` of what was done with long enough ago; whether there may be more."""
    sought = {"before": tx.now.real - KEPT_MS, "most": most}
    return tx.conn.execute(_OLD, sought).rowcount == most
