"""When a wake first comes, and what is wrong with a time that cannot be.

These are the argument rules that need the present moment and the agent's zone: whether an ``atIso``
can be read and lies ahead, and whether a length ends while there are still dates to show it with.
"""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.mcp.tools import Problem
from mcpl_heartbeat.times import Zone, local_time, read_instant, shows
from mcpl_heartbeat.wake.arguments import (
    DELAY,
    EVERY,
    INTERVAL,
    AddArguments,
    ConfigureArguments,
    sent_names,
)
from mcpl_heartbeat.wake.files import LATEST

PAST_GRACE_MS = 60_000
"""An ``atIso`` this far (ms) in the past still counts as now: calls take time to arrive."""


class FirstTime(msgspec.Struct, frozen=True):
    """When a reminder first fires (wall ms), and what to say about how that was read."""

    at: int
    note: str | None = None


def first_time(arguments: AddArguments, now: int, zone: Zone) -> FirstTime | Problem | None:
    """When a reminder set ``now`` (wall ms) first fires; ``None`` when nothing says so."""
    if arguments.at_iso is not UNSET:
        instant = read_instant(arguments.at_iso, zone)
        if isinstance(instant, str):
            return Problem("atIso", instant)
        if instant.wall_ms < now - PAST_GRACE_MS:
            then, present = local_time(instant.wall_ms, zone), local_time(now, zone)
            return Problem("atIso", f"{then} is in the past; now is {present}. Send a later moment")
        return FirstTime(instant.wall_ms, instant.note)
    delay = arguments.delay_ms if arguments.delay_ms is not None else arguments.every_ms
    if delay is None:
        return None
    if not _can_be_shown(now + delay, zone):
        names = DELAY if arguments.delay_ms is not None else EVERY
        return _too_far(sent_names(arguments, names))
    return FirstTime(now + delay)


def add_rules(
    arguments: AddArguments, bad: frozenset[str], now: int, zone: Zone
) -> Iterable[Problem]:
    """Check that the first time lies ahead, and that it and the second can be shown."""
    if not bad.isdisjoint({"atIso", *DELAY, *EVERY}):
        return
    first = first_time(arguments, now, zone)
    every = arguments.every_ms
    if isinstance(first, Problem):
        yield first
    elif first is not None and every is not None and not _can_be_shown(first.at + every, zone):
        yield _too_far(sent_names(arguments, EVERY))


def configure_rules(
    arguments: ConfigureArguments, bad: frozenset[str], now: int, zone: Zone
) -> Iterable[Problem]:
    """Check that the next heartbeat can be shown."""
    interval = arguments.interval_ms if bad.isdisjoint(INTERVAL) else None
    if interval is not None and not _can_be_shown(now + interval, zone):
        yield _too_far(sent_names(arguments, INTERVAL))


def _can_be_shown(wall_ms: int, zone: Zone) -> bool:
    return wall_ms <= LATEST and shows(wall_ms, zone)


def _too_far(names: tuple[str, ...]) -> Problem:
    return Problem(
        " + ".join(names), "is out of range: it ends in the year 10000 or later; send less"
    )
