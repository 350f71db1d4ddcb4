"""What is to be pushed to an agent, and which server may push it."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import identities, journal, mail, rows, schema, wakes
from mcpl_heartbeat.storage.store.ports import Kind, News
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.storage.store.sql import ALERT, ARMED, PENDING, ByKeys, among
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks.reviews import task_of
from mcpl_heartbeat.watch.mail import is_over
from mcpl_heartbeat.watch.rows import Entry, Envelope, Nudge

CLAIM_MS = 60_000
"""How long (ms) a server has to get an alert pushed before another may try."""
MOST_NUDGES = 100
"""How many nudges are given at a time, however many alerts may go with them."""
PRESENT_MS = 60_000
"""How long (ms) the word of a server that it can push to an agent holds."""

_MAIL = schema.envelopes
_TOKEN: sa.BindParameter[str] = sa.bindparam("token")
_REAL: sa.BindParameter[int] = sa.bindparam("real")


def _unpushed(what: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(*rows.ENVELOPE, _MAIL.c.push_token, _MAIL.c.push_until)
        .where(
            PENDING,
            what,
            _MAIL.c.pushed_at.is_(None),
            _MAIL.c.agent == sa.bindparam("agent"),
            sa.or_(
                _MAIL.c.push_token.is_(None),
                _MAIL.c.push_token == _TOKEN,
                _MAIL.c.push_until <= _REAL,
            ),
        )
        .order_by(_MAIL.c.seq)
        .limit(sa.bindparam("most"))
    )


_ALERTS = _unpushed(ALERT)
_REVIEWS = _unpushed(_MAIL.c.of_generation == sa.literal_column(f"{mail.REVIEW}"))
_BY_SEQ = _MAIL.c.seq == sa.bindparam("of_seq")
_CLAIM = (
    sa.update(_MAIL)
    .where(_BY_SEQ)
    .values(push_token=sa.bindparam("by"), push_until=sa.bindparam("until"))
)
_CLAIMED = sa.select(
    _MAIL.c.seq, _MAIL.c.of_namespace, _MAIL.c.of_scope, _MAIL.c.of_generation
).where(among(_MAIL.c.seq), _MAIL.c.push_token == _TOKEN)
_PUSHED = (
    sa.update(_MAIL)
    .where(_BY_SEQ)
    .values(pushed_at=sa.bindparam("at"), push_token=None, push_until=None)
)

_SWITCH = schema.switches
_TO_NUDGE = (
    sa.select(
        _SWITCH.c.namespace, _SWITCH.c.scope, _SWITCH.c.generation, _SWITCH.c.deadline_watched
    )
    .where(
        ARMED,
        _SWITCH.c.nudge_ms.is_not(None),
        _SWITCH.c.nudged == sa.literal_column("0"),
        _SWITCH.c.namespace == sa.bindparam("of_namespace"),
        _SWITCH.c.deadline_watched > sa.bindparam("watched"),
        _SWITCH.c.deadline_watched - _SWITCH.c.nudge_ms <= sa.bindparam("watched"),
    )
    .order_by(_SWITCH.c.deadline_watched)
    .limit(sa.bindparam("most"))
)
_DEADLINES = ByKeys(
    (_SWITCH.c.scope, _SWITCH.c.generation, _SWITCH.c.deadline_watched),
    (_SWITCH.c.namespace, _SWITCH.c.scope),
    ARMED,
)
_NUDGED = (
    sa.update(_SWITCH)
    .where(
        _SWITCH.c.namespace == sa.bindparam("of_namespace"),
        _SWITCH.c.scope == sa.bindparam("of_scope"),
    )
    .values(nudged=1)
)
_NOT_NUDGED = (
    sa.update(_SWITCH)
    .where(
        ARMED,
        _SWITCH.c.namespace == sa.bindparam("of_namespace"),
        _SWITCH.c.scope == sa.bindparam("of_scope"),
        _SWITCH.c.generation == sa.bindparam("of_generation"),
        _SWITCH.c.deadline_watched == sa.bindparam("of_deadline"),
    )
    .values(nudged=0)
)

_PRESENCE = schema.presence
_HERE = sa.and_(_PRESENCE.c.agent == sa.bindparam("of_agent"), _PRESENCE.c.token == _TOKEN)
_GONE = sa.delete(_PRESENCE).where(_HERE)
_OVER = sa.delete(_PRESENCE).where(_PRESENCE.c.until <= _REAL)


def news(  # noqa: PLR0913 - for whom, by whom, of what
    tx: Transaction,
    agent: str,
    namespace: str,
    token: str,
    most: int | None,
    *,
    work: bool = False,
    reviews: int = 0,
    held: Sequence[Nudge] = (),
) -> News:
    """Claim what ``token`` may push to ``agent``, of alerts up to ``most``, which may be 0.

    Its own claims are given, and hold, anew. Where nothing is to be claimed, it only reads.
    ``most`` ``None``: neither alerts nor nudges.
    ``reviews`` bounds the reviews of tasks. ``held`` are nudges that it has not got pushed.
    """
    alerts = tuple(_claim(tx, _ALERTS, agent, token, most)) if most else ()
    told = wakes.work(tx, namespace, token) if work else None
    found = tuple(filter(task_of, _claim(tx, _REVIEWS, agent, token, reviews))) if reviews else ()
    standing = _standing(tx, namespace, held)
    looked: dict[Kind, tuple[object, object]] = {
        "alerts": (most, alerts),
        "reviews": (reviews, found),
        "work": (work, told),
    }
    return News(
        now=tx.now,
        alerts=alerts,
        nudges=() if most is None else tuple(_nudge(tx, namespace, MOST_NUDGES)),
        work=told,
        reviews=found,
        standing=tuple(nudge for nudge in held if nudge in standing),
        void=tuple(nudge for nudge in held if nudge not in standing),
        quiet=frozenset(kind for kind, (sought, got) in looked.items() if sought and not got),
    )


def _claim(
    tx: Transaction, query: sa.Select[Any], agent: str, token: str, most: int
) -> list[Envelope]:
    sought = {"agent": agent, "token": token, "real": tx.now.real, "most": most}
    found: list[Envelope] = []
    claims: list[dict[str, Any]] = []
    over: list[dict[str, Any]] = []
    for row in tx.conn.execute(query, sought):
        try:
            envelope = rows.envelope(row)
        except CorruptRow:
            # The reader is told of it, and it is set aside, when it comes to be polled.
            continue
        if envelope.alert is not None and is_over(envelope.alert):
            over.append({"of_seq": envelope.seq, "at": tx.now.real})
            continue
        found.append(envelope)
        held = row[-2] == token and row[-1] > tx.now.real + CLAIM_MS // 2
        if not held:
            until = tx.now.real + CLAIM_MS
            claims.append({"of_seq": envelope.seq, "by": token, "until": until})
    if claims or over:
        tx.to_write()
    if claims:
        tx.conn.execute(_CLAIM, claims)
    if over:
        # Nothing is to be pushed of it: it stays in its box for whoever looks there.
        tx.conn.execute(_PUSHED, over)
    return found


def _standing(tx: Transaction, namespace: str, held: Sequence[Nudge]) -> set[Nudge]:
    """Give those of these nudges whose deadline no beat has moved, and no gap."""
    if not held:
        return set()
    rows = _DEADLINES(tx, [(namespace, nudge.scope) for nudge in held])
    return {Nudge(scope=row[0], generation=row[1], deadline_watched=row[2]) for row in rows}


def _nudge(tx: Transaction, namespace: str, most: int) -> list[Nudge]:
    """Mark switches as nudged: whoever has them returned is the one to push."""
    sought = {"of_namespace": namespace, "watched": tx.now.watched, "most": most}
    due = tx.conn.execute(_TO_NUDGE, sought).all()
    if not due:
        return []
    tx.to_write()
    tx.conn.execute(_NUDGED, [{"of_namespace": row[0], "of_scope": row[1]} for row in due])
    journal.write(
        tx,
        [
            Entry(
                namespace=row[0],
                scope=row[1],
                at=tx.now.real,
                kind="nudged",
                generation=row[2],
                detail={"deadline": tx.now.tell_watched(row[3])},
            )
            for row in due
        ],
    )
    return [Nudge(scope=row[1], generation=row[2], deadline_watched=row[3]) for row in due]


def unsent(tx: Transaction, namespace: str, nudges: Sequence[Nudge]) -> None:
    """Note that no host took these nudges, so that another server is given those that stand."""
    if nudges:
        given = [
            {
                "of_namespace": namespace,
                "of_scope": each.scope,
                "of_generation": each.generation,
                "of_deadline": each.deadline_watched,
            }
            for each in nudges
        ]
        tx.conn.execute(_NOT_NUDGED, given)


def pushed(tx: Transaction, token: str, seqs: Sequence[int], *, taken: bool) -> None:
    """Note that a host took the push of this mail, or let it go for another try.

    Only of those that ``token`` still claims: what it lost may have changed since.
    """
    if not seqs:
        return
    mine = tx.conn.execute(_CLAIMED, {"keys": list(seqs), "token": token}).all()
    if not mine:
        return
    at = tx.now.real if taken else None
    tx.conn.execute(_PUSHED, [{"of_seq": row[0], "at": at} for row in mine])
    if taken:
        # A review is of no switch, so there is no journal for it.
        alerts = [row[1:] for row in mine if row[1] is not None and row[3] != mail.REVIEW]
        journal.write(tx, [_entry(tx, *of) for of in alerts])


def _entry(tx: Transaction, namespace: str, scope: str, generation: int) -> Entry:
    return Entry(
        namespace=namespace, scope=scope, at=tx.now.real, kind="pushed", generation=generation
    )


def present(tx: Transaction, agent: str, token: str, *, here: bool, work: bool) -> None:
    """Note that ``token`` can push to ``agent`` for a while, or no longer.

    ``here``: alerts and nudges; ``work``: what there is to say of tasks.
    """
    tx.conn.execute(_GONE, {"of_agent": agent, "token": token})
    sets = [identities.WATCH] * here + [identities.TASKS] * work
    if sets:
        row = {"agent": agent, "token": token, "until": tx.now.real + PRESENT_MS}
        tx.conn.execute(sa.insert(_PRESENCE), [{**row, "feature_set": each} for each in sets])


def forget_absent(tx: Transaction) -> None:
    """Delete what servers said that did not say it again."""
    tx.conn.execute(_OVER, {"real": tx.now.real})
