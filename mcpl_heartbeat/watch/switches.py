"""The life of a dead-man switch: a beat arms it, and a beat that does not come in time fires it.

A switch belongs to a scope, the unit of work whose liveness it tells.

* ``UNARMED``   nothing has beaten here yet; there is no row, and nothing can fire.
* ``ARMED``     it fires at its deadline unless a beat moves that on.
* ``FIRED``     the deadline passed and its actions were done, once; so it stays till someone comes.
* ``DISARMED``  the work is finished; no deadline is kept.

A beat that finds it armed moves the deadline and changes nothing else; any other beat begins the
next *generation*, which takes over neither times nor the label of who beat, nor what is to be done
at expiry. Only the history goes on: how often it fired, when last, and whether that marked the work
failed, which neither a beat nor ``disarm`` takes back.

"Late" is decided by the deadline and never by whoever looks: a switch is due from the very
millisecond of its deadline, and whoever has a call for its scope fires it first. So ``beat`` is
never handed one that is due. Deadlines are in watched time (``clock.py``).

Sources: the seed (``heartbeat``); `liveness-surfaces` F.2 and F.4; issue 4 §3, §4.
"""

import enum
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.watch import beats
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.checkpoints import is_private, resume_point
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure, invalid
from mcpl_heartbeat.watch.leases import free, is_held
from mcpl_heartbeat.watch.results import HeartbeatResult, SwitchView
from mcpl_heartbeat.watch.rows import (
    LISTED,
    Alert,
    Checkpoint,
    Entry,
    Freed,
    FreedTask,
    Lease,
    Switch,
)

GRACE_MS = 60_000
"""What a deadline is at least ahead (ms) when watching begins again, if its window is that long."""
DEFAULT_BOX = "inbox"


class State(enum.StrEnum):
    """Where a scope's switch stands."""

    UNARMED = "unarmed"
    ARMED = "armed"
    FIRED = "fired"
    DISARMED = "disarmed"


class Event(enum.StrEnum):
    """What can happen to it."""

    BEAT = "a beat"
    DISARM = "a call with disarm"
    EXPIRE = "the deadline passes"


TABLE: dict[tuple[State, Event], State] = {
    (State.UNARMED, Event.BEAT): State.ARMED,
    (State.UNARMED, Event.DISARM): State.UNARMED,
    (State.UNARMED, Event.EXPIRE): State.UNARMED,
    (State.ARMED, Event.BEAT): State.ARMED,
    (State.ARMED, Event.DISARM): State.DISARMED,
    (State.ARMED, Event.EXPIRE): State.FIRED,
    (State.FIRED, Event.BEAT): State.ARMED,
    (State.FIRED, Event.DISARM): State.DISARMED,
    (State.FIRED, Event.EXPIRE): State.FIRED,
    (State.DISARMED, Event.BEAT): State.ARMED,
    (State.DISARMED, Event.DISARM): State.DISARMED,
    (State.DISARMED, Event.EXPIRE): State.DISARMED,
}
"""(state, event) → state."""


class Beaten(msgspec.Struct, frozen=True):
    """What a call of ``heartbeat`` came to."""

    switch: Switch | None
    """The row to keep; ``None``: what there is stays as it is."""
    entries: tuple[Entry, ...]
    resolves: int | None
    """The generation whose alert, if it still waits, is to be marked resolved."""
    resolution: Literal["recovered", "disarmed"] | None
    result: HeartbeatResult
    """Without what ``beats.with_delivery`` adds."""


class Fired(msgspec.Struct, frozen=True):
    """What a fire does, all in one transaction."""

    switch: Switch
    leases: tuple[Lease, ...]
    """The rows that were let go, to be written back."""
    alert: Alert | None
    notify: tuple[str, str] | None
    """Agent id and box that the alert is for."""
    entries: tuple[Entry, ...]


_KEPT: dict[State, Literal["armed", "fired", "disarmed"]] = {
    State.ARMED: "armed",
    State.FIRED: "fired",
    State.DISARMED: "disarmed",
}


def state_of(switch: Switch | None) -> State:
    """Give the state of a scope's switch; without a row it is unarmed."""
    return State.UNARMED if switch is None else State(switch.state)


def is_due(switch: Switch, now: Reading) -> bool:
    """Whether it has to fire before anything else is done with its scope."""
    return switch.state == "armed" and switch.deadline_watched <= now.watched


def after_gap(deadline_watched: int, window_ms: int, now: Reading) -> int:
    """Give the deadline (watched ms) that holds once watching goes on after a gap.

    One that lies ahead is at least ``GRACE_MS`` ahead, or its window if that is shorter, so that
    whoever could not beat in the gap can now. One that had passed before the gap fires as it would
    have (F.2).
    """
    if deadline_watched <= now.watched:
        return deadline_watched
    return max(deadline_watched, now.watched + min(window_ms, GRACE_MS))


def split_address(address: str) -> tuple[str, str]:
    """Take ``agent:<id>`` or ``agent:<id>/<box>`` apart: the id, and the box or the default one."""
    agent, _, box = address.removeprefix("agent:").partition("/")
    return agent, box or DEFAULT_BOX


def beat(
    before: Switch | None,
    namespace: str,
    arguments: HeartbeatArguments,
    now: Reading,
    label: str | None = None,
) -> Beaten | Failure:
    """Take a beat, or with ``disarm`` the end of them. ``before`` must not be due any more.

    ``label`` is the one that the agent registered with: a generation begins under it where the
    beat names none.
    """
    assert before is None or not is_due(before, now)
    if arguments.disarm:
        return _disarm(before, arguments, now)
    current = before if before is not None and before.state == "armed" else None
    problems = beats.problems(current, arguments)
    if problems:
        return invalid("heartbeat", problems)
    if current is None:
        return _arm(before, namespace, arguments, now, label)
    nudge_ms, notes = beats.nudge(current, arguments)
    switch = _beaten(current, arguments, nudge_ms, now)
    warnings = beats.alternation(current, arguments, now)
    return Beaten(switch, (), None, None, beats.armed(switch, now, notes, warnings))


def stand_down(switch: Switch, now: Reading) -> tuple[Switch, Entry]:
    """Disarm the guard of what has ended by something else, even past its own deadline."""
    assert switch.state == "armed"
    down = msgspec.structs.replace(switch, state=_next(switch, Event.DISARM))
    return down, _entry(down, "disarmed", now, agent_id=switch.agent_id, had_fired=False)


def fire(  # noqa: PLR0913, PLR0917 - each is one part of what there is to free and tell
    switch: Switch,
    scoped: Sequence[Lease],
    unscoped: int,
    checkpoint: Checkpoint | None,
    now: Reading,
    tasks: Sequence[FreedTask] = (),
) -> Fired:
    """Do what is to be done when a beat is late, in the order release, mark, alert.

    ``scoped`` are the leases of the switch's scope, of which those that have lapsed are left as
    they are; ``unscoped`` counts those of the namespace that are held and name no scope. ``tasks``
    were claimed under the scope, or are guarded by it, and go back whatever ``on_expiry`` says.
    """
    assert is_due(switch, now)
    releases = "release_leases" in switch.on_expiry
    held = tuple(lease for lease in scoped if is_held(lease, now)) if releases else ()
    failed = "mark_failed" in switch.on_expiry
    fired = msgspec.structs.replace(
        switch,
        state=_next(switch, Event.EXPIRE),
        fires=switch.fires + 1,
        fired_generation=switch.generation,
        failed=failed,
    )
    alert = Alert(
        scope=switch.scope,
        generation=switch.generation,
        agent_id=switch.agent_id,
        last_beat_at=now.tell(switch.last_beat_at),
        deadline=now.tell_watched(switch.deadline_watched),
        noticed_at=now.server_time,
        on_expiry=switch.on_expiry,
        released=tuple(
            Freed(key=lease.key, holder=lease.holder, generation=lease.generation)
            for lease in held[:LISTED]
        ),
        released_more=max(len(held) - LISTED, 0),
        unreachable=unscoped,
        marked_failed=failed,
        resume=resume_point(checkpoint, now),
        resume_private=is_private(checkpoint),
        released_tasks=tuple(tasks[:LISTED]),
        released_tasks_more=max(len(tasks) - LISTED, 0),
    )
    tells = "queue_alert" in switch.on_expiry and switch.notify is not None
    return Fired(
        switch=fired,
        leases=tuple(free(lease) for lease in held),
        alert=alert if tells else None,
        notify=split_address(switch.notify) if tells and switch.notify else None,
        entries=(_entry(fired, "fired", now, **_facts(alert)),),
    )


def view(switch: Switch, now: Reading) -> SwitchView:
    """Show a switch as it stands."""
    armed = switch.state == "armed"
    return SwitchView(
        scope=switch.scope,
        state=switch.state,
        generation=switch.generation,
        deadline=now.tell_watched(switch.deadline_watched),
        seconds_left=beats.seconds_left(switch, now) if armed else None,
        expect_within_seconds=switch.window_ms // 1000,
        on_expiry=switch.on_expiry,
        notify_address=switch.notify,
        nudge_seconds=beats.seconds(switch.nudge_ms),
        wake_on_tasks=switch.wake_on_tasks,
        agent_id=switch.agent_id,
        beats=switch.beats,
        armed_at=now.tell(switch.armed_at),
        last_beat_at=now.tell(switch.last_beat_at),
        fires=switch.fires,
        fired_generation=switch.fired_generation,
        failed=switch.failed,
    )


def _notify(current: Switch | None, arguments: HeartbeatArguments) -> str | None:
    if arguments.notify_address is not UNSET:
        agent, box = split_address(arguments.notify_address)
        return f"agent:{agent}/{box}"
    return current.notify if current is not None and arguments.on_expiry is UNSET else None


def _next(switch: Switch | None, event: Event) -> Literal["armed", "fired", "disarmed"]:
    return _KEPT[TABLE[state_of(switch), event]]


def _arm(
    before: Switch | None,
    namespace: str,
    arguments: HeartbeatArguments,
    now: Reading,
    label: str | None,
) -> Beaten:
    """Begin the next generation."""
    window_ms = beats.window_ms(arguments)
    switch = Switch(
        namespace=namespace,
        scope=arguments.scope,
        state=_next(before, Event.BEAT),
        generation=1 if before is None else before.generation + 1,
        deadline_watched=now.watched + window_ms,
        window_ms=window_ms,
        on_expiry=beats.actions(None, arguments),
        notify=_notify(None, arguments),
        agent_id=label if arguments.agent_id is UNSET else arguments.agent_id,
        armed_at=now.real,
        last_beat_at=now.real,
        nudge_ms=beats.nudge(None, arguments)[0],
        wake_on_tasks=beats.wakes(None, arguments),
        fires=0 if before is None else before.fires,
        fired_generation=None if before is None else before.fired_generation,
        failed=before is not None and before.failed,
    )
    armed = _entry(
        switch,
        "armed",
        now,
        agent_id=switch.agent_id,
        expect_within_seconds=arguments.expect_within_seconds,
        on_expiry=list(switch.on_expiry),
        notify_address=switch.notify,
    )
    if before is None or before.state != "fired":
        return Beaten(switch, (armed,), None, None, beats.armed(switch, now))
    recovered = _entry(
        before, "recovered", now, agent_id=switch.agent_id, armed_generation=switch.generation
    )
    notes = (beats.had_fired(before, now), f"This beat arms generation {switch.generation}.")
    result = beats.armed(switch, now, notes, fired=True)
    return Beaten(switch, (recovered, armed), before.generation, "recovered", result)


def _beaten(
    before: Switch, arguments: HeartbeatArguments, nudge_ms: int | None, now: Reading
) -> Switch:
    """Move the deadline of an armed switch on."""
    window_ms = beats.window_ms(arguments)
    label, other, other_at = before.agent_id, before.other_agent_id, before.other_at
    if arguments.agent_id is not UNSET and arguments.agent_id != label:
        if label is not None:
            other, other_at = label, before.last_beat_at
        label = arguments.agent_id
    return msgspec.structs.replace(
        before,
        deadline_watched=now.watched + window_ms,
        window_ms=window_ms,
        on_expiry=beats.actions(before, arguments),
        notify=_notify(before, arguments),
        agent_id=label,
        other_agent_id=other,
        other_at=other_at,
        last_beat_at=now.real,
        beats=before.beats + 1,
        nudge_ms=nudge_ms,
        nudged=False,
        wake_on_tasks=beats.wakes(before, arguments),
    )


def _disarm(before: Switch | None, arguments: HeartbeatArguments, now: Reading) -> Beaten:
    notes = beats.without_effect(arguments)
    if before is None:
        notes.append("No switch was ever armed for this scope: there was nothing to disarm.")
        return Beaten(None, (), None, None, beats.at_rest(arguments.scope, None, now, notes))
    if before.state == "disarmed":
        notes.append("It was disarmed already; nothing has changed.")
        return Beaten(None, (), None, None, beats.at_rest(before.scope, before, now, notes))
    fired = before.state == "fired"
    if fired:
        notes.insert(0, beats.had_fired(before, now))
    switch = msgspec.structs.replace(before, state=_next(before, Event.DISARM))
    label = before.agent_id if arguments.agent_id is UNSET else arguments.agent_id
    return Beaten(
        switch,
        (_entry(switch, "disarmed", now, agent_id=label, had_fired=fired),),
        before.generation if fired else None,
        "disarmed" if fired else None,
        beats.at_rest(switch.scope, switch, now, notes, fired=fired),
    )


def _facts(alert: Alert) -> dict[str, object]:
    """What the journal keeps of a fire; ``resume.py`` reads it."""
    tasks = {
        "released_tasks": [msgspec.structs.asdict(task) for task in alert.released_tasks],
        "released_tasks_count": alert.released_tasks_count,
    }
    return {
        "deadline": alert.deadline,
        "noticed_at": alert.noticed_at,
        "last_beat_at": alert.last_beat_at,
        "agent_id": alert.agent_id,
        "marked_failed": alert.marked_failed,
        "released": [msgspec.structs.asdict(freed) for freed in alert.released],
        "released_count": alert.released_count,
        "unreachable": alert.unreachable,
        "on_expiry": list(alert.on_expiry),
        **(tasks if alert.released_tasks else {}),
    }


def _entry(
    switch: Switch,
    kind: Literal["armed", "fired", "disarmed", "recovered"],
    now: Reading,
    **detail: object,
) -> Entry:
    return Entry(
        namespace=switch.namespace,
        scope=switch.scope,
        at=now.real,
        kind=kind,
        generation=switch.generation,
        detail=detail,
    )
