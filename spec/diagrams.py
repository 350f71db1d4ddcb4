"""Mermaid state diagrams, drawn from the tables that the code runs on."""

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from mcpl_heartbeat.policy import grant
from mcpl_heartbeat.tasks import states as tasks
from mcpl_heartbeat.wake import ledger, reminders, schedule
from mcpl_heartbeat.watch import switches

Table = Mapping[Any, enum.Enum]
"""(state, event) → state. The keys are as many types of enums as there are tables."""


class Machine(msgspec.Struct, frozen=True):
    """One state machine: its table, where it starts and where it ends."""

    table: Table
    start: enum.Enum
    end: enum.Enum | None = None


def _leading_out(table: Table) -> Table:
    """Leave out the states that are ends: an arrow for each event would hide the others."""
    after: dict[Any, set[enum.Enum]] = {}
    for (state, _), to in table.items():
        after.setdefault(state, set()).add(to)
    return {(state, event): to for (state, event), to in table.items() if after[state] != {state}}


MACHINES = {
    "policy": Machine(grant.TABLE, grant.START),
    "tick": Machine(schedule.TRANSITIONS, schedule.Tick.ARMED),
    "reminder": Machine(reminders.TRANSITIONS, reminders.Life.WAITING, reminders.Life.GONE),
    "switch": Machine(switches.TABLE, switches.State.UNARMED),
    "task": Machine(_leading_out(tasks.TABLE), tasks.State.AVAILABLE),
    "document": Machine(ledger.TRANSITIONS, ledger.Disk.OPENING),
}
"""The diagrams by the name of the block that holds them."""

BETWEEN_EVENTS = "<br/>"


def label(event: enum.Enum) -> str:
    """Word an event for an arrow; Mermaid ends a label at a semicolon or another colon."""
    return str(event.value).replace(";", ",").replace(":", ",")


def diagram(machine: Machine) -> str:
    """Draw every transition of the table; events with the same way share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, event), after in machine.table.items():
        arrows.setdefault((state.value, after.value), []).append(label(event))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {machine.start.value}"]
    lines += [
        f"    {state} --> {after}: {BETWEEN_EVENTS.join(events)}"
        for (state, after), events in arrows.items()
    ]
    if machine.end is not None:
        lines.append(f"    {machine.end.value} --> [*]")
    return "\n".join([*lines, "```"])
