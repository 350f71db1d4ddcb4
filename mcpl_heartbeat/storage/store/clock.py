"""Keeping the store's time: a steady clock anchored to real time, and the gaps in the watch.

One row of the store (``schema.clock``) says how real time is made of a raw clock's count: of the
host's steady clock on SQLite, of the database's own clock on PostgreSQL. Whoever reads that
row together with the raw clock knows the time, whichever process it is. ``tick`` is all of the
decision:

* Another raw clock than the row's (the host was restarted, the file was moved): it is anchored
  anew, to the wall, but never behind the last time that was seen.
* A raw clock that fell behind what was seen was set back: the anchor moves, so that time goes on.
* The database's clock is compared with this process's steady one between two readings; where they
  part by over two seconds, the database's was set, and the anchor takes the step out again.
* Nobody noted for over 2.5 s that they watch: a gap. So a forward step that nobody could compare is
  a gap too, which errs on the side of the living.
"""

import time
from pathlib import Path
from typing import Protocol

import msgspec

from mcpl_heartbeat.watch.clock import Gap

GAP_MS = 2_500
"""So long unwatched is a gap."""
ALONE_GAP_MS = 1_000
"""So long for the first server to come, which knows that no other was there."""
SEEN_EVERY_MS = 1_000
"""How old the note of the last watch may grow before it is made again."""
STEP_MS = 2_000
"""By how much two clocks must part before it counts as a step."""
_WALL = "wall"


class SteadyClock(Protocol):
    """A host's clocks, in whole milliseconds."""

    source: str
    """Names the steady clock: the same name, the same count. ``wall``: it names no boot."""

    def steady(self) -> int:
        """Count up, through suspends too where the system can."""

    def wall(self) -> int:
        """Milliseconds since 1970."""


class HostClock:
    """This host's: ``CLOCK_BOOTTIME``, named by the boot and the time namespace it counts in."""

    def __init__(self) -> None:
        self._clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        self.source = _WALL if self._clock == time.CLOCK_MONOTONIC else _boot()

    def steady(self) -> int:
        """Count from the boot on."""
        return time.clock_gettime_ns(self._clock) // 1_000_000

    def wall(self) -> int:
        """Read the system's wall clock."""
        return time.time_ns() // 1_000_000


class ClockRow(msgspec.Struct, frozen=True):
    """The row of ``schema.clock`` without its salt."""

    source: str
    offset_ms: int
    cut: int
    seen: int


class Sample(msgspec.Struct, frozen=True):
    """The raw clock and those around it, read at one time."""

    source: str
    raw: int
    wall: int
    early: int
    """This process's steady clock just before ``raw`` was read, and just after."""
    late: int


class Tick(msgspec.Struct, frozen=True):
    """What a sample comes to: ``row`` as it has to be kept before anything else is done."""

    row: ClockRow
    real: int
    gap: Gap | None = None


class Memory(msgspec.Struct, frozen=True):
    """What a process remembers of its last transaction, to compare with."""

    sample: Sample
    offset_ms: int
    real: int
    watched: int
    """The real time (ms) at which it last showed that it could act on the store."""


def sample_host(clock: SteadyClock) -> Sample:
    """Read the host's clock as the raw one."""
    steady, wall = clock.steady(), clock.wall()
    raw = wall if clock.source == _WALL else steady
    return Sample(clock.source, raw, wall, steady, steady)


def first_row(sample: Sample) -> ClockRow:
    """Begin a store's time."""
    return ClockRow(sample.source, sample.wall - sample.raw, 0, sample.wall)


def tick(row: ClockRow, sample: Sample, memory: Memory | None, gap_ms: int = GAP_MS) -> Tick:
    """Decide what time it is; ``row`` comes back changed where the store has to note it first."""
    if row.source != sample.source:
        real = max(sample.wall, row.seen)
        offset = real - sample.raw
    else:
        offset = row.offset_ms
        # Where the anchor is not the one remembered, another server has taken the step out.
        if memory is not None and memory.offset_ms == offset:
            offset -= _step(memory.sample, sample)
        real = sample.raw + offset
        if real < row.seen:
            real = row.seen if memory is None else max(row.seen, memory.real)
            offset = real - sample.raw
    if memory is not None:
        real = max(real, memory.real)
    since = row.seen if memory is None else max(row.seen, memory.watched)
    if real - since >= gap_ms:
        gap = Gap(since, real, row.cut)
        return Tick(ClockRow(sample.source, offset, row.cut + gap.length, real), real, gap)
    if (sample.source, offset) != (row.source, row.offset_ms):
        return Tick(ClockRow(sample.source, offset, row.cut, real), real)
    return Tick(row, real)


def shift(wall: int, real: int, before: int) -> int:
    """Give ``Reading.shift``, held still while the wall only drifts, so that told times do too."""
    now = wall - real
    if abs(now - before) <= STEP_MS:
        return before
    return 0 if abs(now) <= STEP_MS else round(now, -1)


def _step(before: Sample, now: Sample) -> int:
    """By how much (ms) the raw clock was set between the two, if it was; forward is positive."""
    if before.source != now.source:
        return 0
    passed = now.raw - before.raw
    most, least = now.late - before.early, now.early - before.late
    if passed > most + STEP_MS:
        return passed - most
    if passed < least - STEP_MS:
        return passed - least
    return 0


def _boot() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        space = Path("/proc/self/ns/time")
        return f"{boot} {space.readlink()}" if space.is_symlink() else boot
    except (OSError, ValueError):
        return _WALL
