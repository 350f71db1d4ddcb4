"""Firing what is due: everything that a fire does, for any number of switches at once.

What has to be done before is the affair of ``due.py``, by which everybody comes here.
All of it goes into the transaction that is open, so either the whole of a fire is in the store or
nothing of it. There is one writer at a time, and rows are read in the transaction that writes them:
a beat that came first has moved the deadline, and one that comes later finds the switch fired.
"""

from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec

from mcpl_heartbeat.storage.store import (
    epochs,
    identities,
    journal,
    leases,
    mail,
    rows,
    schema,
    switches,
    tasks,
)
from mcpl_heartbeat.storage.store.engine import Kind, judge
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.storage.store.sql import ByKeys, Key
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.machine import GivenBack
from mcpl_heartbeat.tasks.rows import Task, guard_scope
from mcpl_heartbeat.watch.identity import agent_of
from mcpl_heartbeat.watch.mail import alert_envelope
from mcpl_heartbeat.watch.rows import Checkpoint, Entry, FreedTask, Switch
from mcpl_heartbeat.watch.switches import Fired, fire, is_due

_CHECKPOINTS = ByKeys(rows.CHECKPOINT, (schema.checkpoints.c.namespace, schema.checkpoints.c.scope))


class Settled(msgspec.Struct):
    """What firing came to."""

    fired: list[Switch] = []
    late_ms: list[int] = []
    aside: list[Key] = []
    """Those that could not be fired and were set aside."""
    timed_out: int = 0
    """How many tasks timed out before."""
    tasks_aside: list[str] = []
    """Those that could not be timed out and were set aside."""


def fire_all(tx: Transaction, due: Sequence[Switch]) -> Settled:
    """Fire switches that are due, each of them whole; one that cannot be costs only itself.

    The earliest takes a task from its worker. Where that leaves a guard with nothing to guard, it
    is disarmed, though it may be among them.
    """
    settled = Settled()
    if not due:
        return settled
    due = sorted(due, key=_order)
    try:
        with tx.part():
            settled.fired = _fire(tx, due)
    except Exception as wrong:
        if judge(wrong).kind is not Kind.OURS:
            raise
        _fire_apart(tx, due, settled)
    settled.late_ms = [tx.now.watched - switch.deadline_watched for switch in settled.fired]
    tx.late_ms.extend(settled.late_ms)
    return settled


def _fire_apart(tx: Transaction, due: Sequence[Switch], settled: Settled) -> None:
    for switch in due:
        key = (switch.namespace, switch.scope)
        try:
            with tx.part():
                # One before it may have disarmed it.
                now = switches.load(tx, [key]).switches.get(key)
                if now is not None and is_due(now, tx.now):
                    settled.fired += _fire(tx, [now])
        except Exception as wrong:
            if judge(wrong).kind is not Kind.OURS:
                raise
            why = f"cannot be fired: {type(wrong).__name__}"
            switches.put_aside(tx, key, why, switch.generation)
            settled.aside.append(key)


def _order(switch: Switch) -> tuple[int, bool, str, str]:
    """Sort by deadline; of two at once the guard of a single task comes second."""
    guards = switch.scope.startswith(tasks.GUARD)
    return switch.deadline_watched, guards, switch.namespace, switch.scope


def _fire(tx: Transaction, due: Sequence[Switch]) -> list[Switch]:
    freed, guards = _give_back(tx, due)
    switches.stand_down(tx, guards)
    due = [switch for switch in due if (switch.namespace, switch.scope) not in guards]
    keys = [(switch.namespace, switch.scope) for switch in due]
    namespaces = {switch.namespace for switch in due}
    scoped = leases.of_scopes(tx, keys)
    unscoped = leases.unscoped(tx, namespaces)
    points = checkpoints(tx, keys)
    fires = [
        fire(
            switch,
            scoped.get(key, ()),
            unscoped.get(switch.namespace, 0),
            points.get(key),
            tx.now,
            freed[key],
        )
        for switch, key in zip(due, keys, strict=True)
    ]
    switches.write(tx, [fired.switch for fired in fires])
    leases.let_go(tx, [lease for fired in fires for lease in fired.leases])
    told = _tell(tx, fires)
    journal.write(tx, [entry for fired in fires for entry in fired.entries])
    journal.write(tx, told)
    return [fired.switch for fired in fires]


def _give_back(
    tx: Transaction, due: Sequence[Switch]
) -> tuple[dict[Key, list[FreedTask]], set[Key]]:
    """Take the tasks that are claimed under these switches from their workers.

    Also gives the guards that have nothing to guard then, which do not fire.
    """
    deadlines = {(switch.namespace, switch.scope): switch.deadline_watched for switch in due}
    freed: dict[Key, list[FreedTask]] = {}
    guards: set[Key] = set()
    back: dict[str, tuple[Task, GivenBack]] = {}
    for key, claimed in tasks.under(tx, deadlines).items():
        if key in guards:
            continue
        freed[key] = []
        for task in claimed:
            if task.id in back:
                continue
            guard = (task.namespace, guard_scope(task.id))
            if task.guard and guard != key:
                guards.add(guard)
            given = machine.give_back(task, deadlines[key], tx.now)
            back[task.id] = (task, given)
            if given.freed is not None:
                freed[key].append(given.freed)
    tasks.write_all(tx, [(task, given.task) for task, given in back.values()])
    epochs.end_all(tx, [(task, given.ends, given.ended_at) for task, given in back.values()])
    return freed, guards


def _tell(tx: Transaction, fires: Sequence[Fired]) -> list[Entry]:
    """Put the alerts into their boxes; what became of each is for the journal."""
    known = identities.registered(tx, {fired.notify[0] for fired in fires if fired.notify})
    post = mail.Post(tx)
    told = []
    for fired in fires:
        if fired.alert is None or fired.notify is None:
            continue
        switch = fired.switch
        detail: dict[str, Any] = {"to": switch.notify}
        kind: Literal["alerted", "alert_folded"] = "alerted"
        if fired.notify[0] not in known:
            detail["undelivered"] = "the address is not registered any more"
        else:
            sender = agent_of(tx.salt, switch.namespace)
            envelope = alert_envelope(fired.alert, fired.notify, sender, mail.task_id(tx), tx.now)
            of = (switch.namespace, switch.scope, switch.generation)
            placed = post.put(envelope, of)
            # An alert is never refused.
            assert isinstance(placed, mail.Placed)
            kind = "alert_folded" if placed.folded else "alerted"
            if placed.box != envelope.box:
                detail["placed_in"] = placed.box
        told.append(
            Entry(
                namespace=switch.namespace,
                scope=switch.scope,
                at=tx.now.real,
                kind=kind,
                generation=switch.generation,
                detail=detail,
            )
        )
    post.flush()
    return told


def checkpoints(tx: Transaction, keys: Collection[Key]) -> dict[Key, Checkpoint]:
    """Read the checkpoints of these scopes; one that cannot be read is none."""
    found = {}
    for row in _CHECKPOINTS(tx, keys):
        try:
            checkpoint = rows.checkpoint(row)
        except (CorruptRow, RecursionError):
            continue
        found[checkpoint.namespace, checkpoint.scope] = checkpoint
    return found
