"""Switches in the store: read strictly, and written with no more than what has changed.

A beat is the hot path. What it changes touches no index: ``check_watched``, by which a sweep finds
a switch, stays where it was, which is earlier than the new deadline; the sweep that comes there
moves it on. Only a deadline earlier than it, or another state, writes it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import journal, rows, schema
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.storage.store.sql import ByKeys, Key
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch import switches as decide
from mcpl_heartbeat.watch.rows import DEFAULT_ACTIONS, Entry, Switch

CORRUPT = "corrupt"
"""The state of a row that was set aside."""

_TABLE = schema.switches
_LOAD = ByKeys((*rows.SWITCH, _TABLE.c.check_watched), (_TABLE.c.namespace, _TABLE.c.scope))
_INSERT = sa.insert(_TABLE)
_ONE = sa.and_(
    _TABLE.c.namespace == sa.bindparam("of_namespace"), _TABLE.c.scope == sa.bindparam("of_scope")
)
_BEATEN = (
    "deadline_watched",
    "window_ms",
    "agent_id",
    "other_agent_id",
    "other_at",
    "last_beat_at",
    "beats",
)
_BEAT = sa.update(_TABLE).where(_ONE).values({name: sa.bindparam(name) for name in _BEATEN})
_REST = [column.name for column in _TABLE.columns if column.name not in ("namespace", "scope")]
_CHANGE = sa.update(_TABLE).where(_ONE).values({name: sa.bindparam(name) for name in _REST})
_SET_ASIDE = sa.update(_TABLE).where(_ONE).values(state=CORRUPT)


class Loaded(msgspec.Struct):
    """The switches of some scopes, as the store holds them."""

    switches: dict[Key, Switch] = {}
    checks: dict[Key, int] = {}
    """``check_watched`` of each row."""
    corrupt: dict[Key, CorruptRow] = {}
    """Those that cannot be read and are not set aside yet."""
    aside: dict[Key, Switch] = {}
    """Those that are, with what could be saved of them: a disarmed switch, whose next beat arms it
    anew."""


def load(tx: Transaction, keys: Collection[Key]) -> Loaded:
    """Read the switches of these scopes; those that have none are missing in the answer."""
    found = Loaded()
    if not keys:
        return found
    for row in _LOAD(tx, keys):
        key = (row[0], row[1])
        found.checks[key] = row[-1]
        if row[2] == CORRUPT:
            found.aside[key] = _saved(row)
            continue
        try:
            found.switches[key] = rows.switch(row)
        except CorruptRow as wrong:
            found.corrupt[key] = wrong
            found.aside[key] = _saved(row)
    return found


def set_aside(tx: Transaction, found: Loaded) -> None:
    """Take rows that cannot be read out of the way: they fire nothing and hold nothing up."""
    for key, wrong in found.corrupt.items():
        put_aside(tx, key, wrong.why, found.aside[key].generation)
    found.corrupt.clear()


def put_aside(tx: Transaction, key: Key, why: str, generation: int) -> None:
    """Set one row aside, and say why in the journal."""
    namespace, scope = key
    tx.conn.execute(_SET_ASIDE, {"of_namespace": namespace, "of_scope": scope})
    entry = Entry(
        namespace=namespace,
        scope=scope,
        at=tx.now.real,
        kind="quarantined",
        generation=generation,
        detail={"why": why},
    )
    journal.write(tx, [entry])


def save(tx: Transaction, found: Loaded, switches: Mapping[Key, Switch]) -> None:
    """Write those of ``switches`` that differ from what was ``found``."""
    new: list[dict[str, Any]] = []
    beaten: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for key, switch in switches.items():
        before = found.switches.get(key)
        if before is switch:
            continue
        if key not in found.checks:
            new.append(rows.switch_values(switch))
        elif (
            before is not None
            and _only_beaten(before, switch)
            and switch.deadline_watched >= found.checks[key]
        ):
            beaten.append(_of(key, {name: getattr(switch, name) for name in _BEATEN}))
        else:
            changed.append(_of(key, rows.switch_values(switch)))
    if new:
        tx.conn.execute(_INSERT, new)
    if beaten:
        tx.conn.execute(_BEAT, beaten)
    if changed:
        tx.conn.execute(_CHANGE, changed)


def write(tx: Transaction, switches: Iterable[Switch]) -> None:
    """Write rows that exist, the whole of each."""
    changed = [_of((s.namespace, s.scope), rows.switch_values(s)) for s in switches]
    if changed:
        tx.conn.execute(_CHANGE, changed)


def stand_down(tx: Transaction, keys: Collection[Key]) -> None:
    """Disarm those of these that are armed, though their deadline may have passed."""
    armed = [each for each in load(tx, keys).switches.values() if each.state == "armed"]
    down = [decide.stand_down(each, tx.now) for each in armed]
    write(tx, [switch for switch, _ in down])
    journal.write(tx, [entry for _, entry in down])


def _of(key: Key, values: dict[str, Any]) -> dict[str, Any]:
    values.pop("namespace", None)
    values.pop("scope", None)
    values["of_namespace"], values["of_scope"] = key
    return values


def _only_beaten(before: Switch, after: Switch) -> bool:
    """Whether nothing but what ``_BEATEN`` names differs."""
    return (
        before.generation == after.generation
        and before.state == after.state
        and before.on_expiry == after.on_expiry
        and before.notify == after.notify
        and before.nudge_ms == after.nudge_ms
        and before.nudged == after.nudged
        and before.wake_on_tasks == after.wake_on_tasks
    )


def _saved(row: Sequence[Any]) -> Switch:
    """Save of an unreadable row what must not be lost: how far its generations had come."""
    values = dict(zip(Switch.__struct_fields__, row, strict=False))

    def number(name: str) -> int:
        value = values[name]
        return max(value, 0) if isinstance(value, int) else 0

    last = number("fired_generation")
    return Switch(
        namespace=values["namespace"],
        scope=values["scope"],
        state="disarmed",
        generation=max(number("generation"), last),
        deadline_watched=number("deadline_watched"),
        window_ms=max(number("window_ms"), 1000),
        on_expiry=DEFAULT_ACTIONS,
        armed_at=number("armed_at"),
        last_beat_at=number("last_beat_at"),
        beats=number("beats"),
        fires=number("fires"),
        fired_generation=last or None,
        failed=values["failed"] == 1,
    )
