"""What is due, done in the order in which it came, whoever comes by first.

A switch that fires takes tasks from their workers, and what takes a task from its worker, its
timeout too, ends the guard of its claim: that must not tell of the same death again. So before a
switch fires or a task times out, whatever came earlier and bears on the same tasks is done. What a
call or a sweep happens to look at then makes no difference.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from mcpl_heartbeat.storage.store import fires, switches, tasks, timeouts
from mcpl_heartbeat.storage.store.fires import Settled
from mcpl_heartbeat.storage.store.ports import Unsettled
from mcpl_heartbeat.storage.store.sql import Key
from mcpl_heartbeat.storage.store.switches import Loaded
from mcpl_heartbeat.storage.store.timeouts import Ended
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.rows import Task, guard_scope
from mcpl_heartbeat.watch.rows import Switch
from mcpl_heartbeat.watch.switches import is_due


def settle(tx: Transaction, keys: Collection[Key]) -> Loaded:
    """Do what is due on these scopes, and give their switches as they are then.

    That is: fire their switches; and where a scope is that of the guard of a task, time that out.
    """
    overdue = tasks.past(tx, keys)
    if overdue:
        to_end, unread = tasks.to_end(tx, overdue)
        tasks.put_aside(tx, unread)
        end(tx, to_end)
    found = switches.load(tx, keys)
    switches.set_aside(tx, found)
    due = [switch for switch in found.switches.values() if is_due(switch, tx.now)]
    if not due:
        return found
    fire(tx, due)
    return switches.load(tx, keys)


def peek(tx: Transaction, keys: Collection[Key]) -> Loaded:
    """Give the switches of these scopes without writing anything; ``Unsettled`` if one is due.

    So it is where ``settle`` would time a task out.
    """
    found = switches.load(tx, keys)
    if any(is_due(switch, tx.now) for switch in found.switches.values()) or tasks.past(tx, keys):
        raise Unsettled
    return found


def fire(tx: Transaction, due: Sequence[Switch]) -> Settled:
    """Fire switches that are due, after what came before them; one that cannot costs only itself.

    A guard whose task was taken from its worker by something earlier is disarmed instead.
    """
    switches_due, claimed = _with_beside(tx, due)
    earlier = [
        task.id
        for task in claimed
        if machine.is_overdue(task, tx.now) and not _fires_first(tx, task, switches_due)
    ]
    ended = Ended()
    if earlier:
        overdue, unread = tasks.to_end(tx, earlier)
        tasks.put_aside(tx, unread)
        ended = timeouts.end(tx, overdue)
        ended.aside += unread
        now = switches.load(tx, switches_due).switches
        switches_due = {key: each for key, each in now.items() if is_due(each, tx.now)}
    settled = fires.fire_all(tx, list(switches_due.values()))
    return msgspec.structs.replace(settled, timed_out=len(ended.tasks), tasks_aside=ended.aside)


def end(tx: Transaction, overdue: Sequence[Task]) -> Ended:
    """Time out tasks that are overdue, after the fires that came before that."""
    due = _due(tx, takers(overdue))
    earlier = {
        key: due[key]
        for task in overdue
        if _fires_first(tx, task, due)
        for key in takers([task])
        if key in due
    }
    if not earlier:
        return timeouts.end(tx, overdue)
    settled = fire(tx, list(earlier.values()))
    fresh, unread = _anew(tx, overdue)
    ended = timeouts.end(tx, [task for task in fresh if machine.is_overdue(task, tx.now)])
    # Where several were asked for, one of them may have come before the fire of another.
    ended.tasks |= {task.id: task for task in fresh if task.status == "timed_out"}
    ended.aside += [*settled.tasks_aside, *unread]
    return ended


def takers(found: Iterable[Task]) -> list[Key]:
    """Name the switches that can take these tasks from their workers."""
    keys: dict[Key, None] = {}
    for task in found:
        if task.scope is not None:
            keys[task.namespace, task.scope] = None
        if task.guard:
            keys[task.namespace, guard_scope(task.id)] = None
    return list(keys)


def _with_beside(tx: Transaction, due: Sequence[Switch]) -> tuple[dict[Key, Switch], list[Task]]:
    """Give the tasks that these switches take, and with them what else is due and takes one."""
    found = {(switch.namespace, switch.scope): switch for switch in due}
    claimed: dict[str, Task] = {}
    looked = set(found)
    new: Collection[Key] = found
    while new:
        more = [task for under in tasks.under(tx, new).values() for task in under]
        claimed |= {task.id: task for task in more}
        beside = [key for key in takers(more) if key not in looked]
        looked.update(beside)
        new = _due(tx, beside)
        found |= new
    return found, list(claimed.values())


def _due(tx: Transaction, keys: Collection[Key]) -> dict[Key, Switch]:
    loaded = switches.load(tx, keys).switches
    return {key: switch for key, switch in loaded.items() if is_due(switch, tx.now)}


def _fires_first(tx: Transaction, task: Task, due: Mapping[Key, Switch]) -> bool:
    """Whether one of these that takes the task came due before its timeout."""
    mine = [due[key].deadline_watched for key in takers([task]) if key in due]
    return bool(mine) and tx.now.real_of(min(mine)) < task.timeout_at


def _anew(tx: Transaction, read: Sequence[Task]) -> tuple[list[Task], list[str]]:
    """Read tasks again, keeping what never changes while they are open; unread ones come apart."""
    fresh, unread = tasks.to_end(tx, [task.id for task in read])
    tasks.put_aside(tx, unread)
    before = {task.id: task for task in read}
    whole = [
        msgspec.structs.replace(
            task,
            input_snapshot=before[task.id].input_snapshot,
            output_contract=before[task.id].output_contract,
        )
        for task in fresh
    ]
    return whole, unread
