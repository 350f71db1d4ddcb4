"""The life of a heartbeat, and the grid it keeps.

A heartbeat is due at the slots of a grid: one slot, and every interval before and after it. What
travels through the states below is an *occurrence*: the slot that is to be delivered next, with the
eventId it will be sent under. It is on disk from the moment it is armed until the host has taken
it, so a restart or a crash neither loses it nor gives it a second eventId (issue §3, law 5).

* ``PAUSED``  no heartbeat is coming.
* ``ARMED``   the occurrence lies ahead.
* ``OWED``    its slot came and it could not be sent (no policy, or one that denies wakes). However
  many more slots pass meanwhile, it stays one occurrence: one wake is sent when one can be.
* ``OUT``     sent, and the host has not answered. A slot that comes now is skipped and said, so
  that at most one is out.
* ``HELD``    the host refused it. It is sent again, under the same eventId, at the next policy; the
  next slot replaces it.

A push whose answer never comes would silence the schedule for ever, so one that has been out for
``LOST_AFTER_MS`` and has cost a slot already is given up: the next slot is sent in its place.
"""

import enum
from collections.abc import Callable

import msgspec

from mcpl_heartbeat.wake.clock_steps import Step
from mcpl_heartbeat.wake.files import LATEST

LOST_AFTER_MS = 3_600_000
"""How long (ms) an unanswered heartbeat keeps later ones back: what hosts remember eventIds for."""


class Tick(enum.StrEnum):
    """The states of the current occurrence."""

    PAUSED = "paused"
    ARMED = "armed"
    OWED = "owed"
    OUT = "out"
    HELD = "held"


class Event(enum.StrEnum):
    """What can happen to it."""

    SLOT_OPEN = "slot came, wakes can be delivered"
    SLOT_BLOCKED = "slot came, no wake can be delivered"
    OPENED = "wakes can be delivered"
    POLICY = "a policy came"
    TAKEN = "the host took it"
    REFUSED = "the host refused it"
    LOST = "unanswered too long"
    PAUSE = "paused"
    REARM = "resumed, or given another interval"


TRANSITIONS: dict[tuple[Tick, Event], Tick] = {
    (Tick.ARMED, Event.SLOT_OPEN): Tick.OUT,
    (Tick.ARMED, Event.SLOT_BLOCKED): Tick.OWED,
    (Tick.OWED, Event.OPENED): Tick.OUT,
    (Tick.OWED, Event.SLOT_OPEN): Tick.OUT,
    (Tick.OWED, Event.SLOT_BLOCKED): Tick.OWED,
    (Tick.OWED, Event.TAKEN): Tick.ARMED,
    (Tick.OUT, Event.TAKEN): Tick.ARMED,
    (Tick.OUT, Event.REFUSED): Tick.HELD,
    (Tick.OUT, Event.LOST): Tick.HELD,
    (Tick.HELD, Event.POLICY): Tick.OWED,
    (Tick.HELD, Event.SLOT_OPEN): Tick.OUT,
    (Tick.HELD, Event.SLOT_BLOCKED): Tick.OWED,
    (Tick.HELD, Event.TAKEN): Tick.ARMED,
    **{(state, Event.PAUSE): Tick.PAUSED for state in Tick},
    **{(state, Event.REARM): Tick.ARMED for state in Tick},
}
"""(state, event) → state; a pair that is not listed changes nothing."""


class Occurrence(msgspec.Struct, frozen=True):
    """One wake of the schedule: when it is due (wall ms) and the eventId it is sent under."""

    scheduled: int
    event_id: str


class Verdict(enum.StrEnum):
    """What ``Schedule.tick`` asks of its caller."""

    NOTHING = "nothing"
    SEND = "send"
    SUPPRESSED = "suppressed"
    SKIPPED = "skipped"


class Schedule:
    """The grid and the occurrence on it. Times are wall ms unless named otherwise."""

    def __init__(self, interval_ms: int, random_id: Callable[[], str]) -> None:
        self.interval_ms = interval_ms
        self.state = Tick.PAUSED
        self.slot = 0
        self.occurrence: Occurrence | None = None
        self._random_id = random_id
        self.unanswered: Occurrence | None = None
        """The one that was sent and not answered, also after a pause or on another grid."""
        self._sent_monotonic = 0
        self._skipped = 0
        self.ahead = 0
        """How far (ms) the wall clock is ahead, as far as its steps tell."""
        self._reckoned_ahead: int | None = 0

    def restore(
        self, interval_ms: int, paused: bool, saved: tuple[int | None, str | None], now: int
    ) -> None:
        """Take up the schedule where the file left it: ``saved`` is ``nextAt`` and ``nextEventId``.

        A saved wake in the past was missed and is owed. One further ahead than an interval (the
        clock was wrong when it was saved) is brought back to one interval from now.
        """
        self.interval_ms = interval_ms
        if paused:
            self.pause()
            return
        at, event_id = saved
        if at is None or at > now + interval_ms:
            self.rearm(interval_ms, now)
            return
        self.slot = at
        self.occurrence = Occurrence(at, event_id or self._event_id(at))
        self._reckoned_ahead = None
        self._move(Event.REARM)

    def rearm(self, interval_ms: int, now: int) -> None:
        """Start a new grid: its first slot is one interval from ``now``."""
        self.interval_ms = interval_ms
        self._move(Event.REARM)
        self._reckoned_ahead = self.ahead
        self._arm(min(now + interval_ms, LATEST))

    def pause(self) -> None:
        """No heartbeat is coming until ``rearm``; one that is owed or held is dropped."""
        self._move(Event.PAUSE)
        self.occurrence = None

    def tick(self, now: int, monotonic: int, deliverable: bool) -> Verdict:
        """Say what is due at ``now``. ``SEND`` means: send ``occurrence``, it counts as out."""
        if self.state is Tick.PAUSED:
            return Verdict.NOTHING
        came = self.slot if now >= self.slot else None
        if came is not None:
            self.slot = min(self._next_slot(now), LATEST)
            self._reckoned_ahead = self.ahead
        if self.state is Tick.OWED and deliverable and self.unanswered is None:
            return self._send(Event.OPENED, monotonic)
        if came is None:
            return Verdict.NOTHING
        if self.unanswered is not None:
            if not self._lost(monotonic):
                self._skipped += 1
                if self.state is Tick.ARMED:
                    self._arm(self.slot)
                return Verdict.SKIPPED
            self.unanswered = None
            self._move(Event.LOST)
        if self.state is Tick.HELD:
            self.occurrence = Occurrence(came, self._event_id(came))
        if deliverable:
            return self._send(Event.SLOT_OPEN, monotonic)
        self._move(Event.SLOT_BLOCKED)
        return Verdict.SUPPRESSED

    def taken(self, occurrence: Occurrence) -> bool:
        """The host took ``occurrence``: arm the next slot. False when it is not the current one."""
        self._answered(occurrence)
        if occurrence != self.occurrence or (self.state, Event.TAKEN) not in TRANSITIONS:
            return False
        self._move(Event.TAKEN)
        self._arm(self.slot)
        return True

    def awaits(self, occurrence: Occurrence) -> bool:
        """Whether ``occurrence`` is the current one and out."""
        return self.state is Tick.OUT and occurrence == self.occurrence

    def refused(self, occurrence: Occurrence) -> None:
        """The host refused ``occurrence``."""
        if self.awaits(occurrence):
            self._move(Event.REFUSED)
        self._answered(occurrence)

    def policy_came(self) -> None:
        """A policy Request came into force: what is held may be sent again."""
        self._move(Event.POLICY)

    def shift(self, step: Step, now: int) -> None:
        """The wall clock was stepped, to ``now``: move what lies ahead with it (law 6).

        A slot taken up from the file may have been reckoned by any clock, so it stays where it is
        on the wall, but never waits for more than an interval.
        """
        # Also while paused: the resume reckons with it.
        self.ahead = step.ahead
        if self.state is Tick.PAUSED:
            return
        slot = self.slot
        if self._reckoned_ahead is None:
            slot -= (
                max(0, -(-(slot - now - self.interval_ms) // self.interval_ms)) * self.interval_ms
            )
        else:
            slot += step.shift(self._reckoned_ahead)
            self._reckoned_ahead = min(self._reckoned_ahead, step.ahead)
        if slot != self.slot:
            self.slot = slot
            if self.state is Tick.ARMED:
                self.occurrence = Occurrence(slot, self._event_id(slot))

    def _answered(self, occurrence: Occurrence) -> None:
        if occurrence == self.unanswered:
            self.unanswered = None

    def _send(self, event: Event, monotonic: int) -> Verdict:
        self._move(event)
        self.unanswered = self.occurrence
        self._sent_monotonic = monotonic
        self._skipped = 0
        return Verdict.SEND

    def _lost(self, monotonic: int) -> bool:
        return self._skipped > 0 and monotonic - self._sent_monotonic >= LOST_AFTER_MS

    def _next_slot(self, now: int) -> int:
        return self.slot + ((now - self.slot) // self.interval_ms + 1) * self.interval_ms

    def _arm(self, slot: int) -> None:
        self.slot = slot
        self.occurrence = Occurrence(slot, self._event_id(slot))

    def _event_id(self, scheduled: int) -> str:
        return f"heartbeat_{scheduled}_{self._random_id()}"

    def _move(self, event: Event) -> None:
        self.state = TRANSITIONS.get((self.state, event), self.state)
