"""Steps of the wall clock, told apart from time that passes (law 6).

Appointments live on the wall clock; intervals and delays are lengths of real time. While the clocks
run together the two agree. A step parts them:

* Set back, the wall clock would keep a length waiting for the size of the step, so lengths are
  moved back with it; put right again, they are moved forward by what they had been moved back, so
  that nothing fires twice.
* Set ahead, the wall clock is taken at its word: what has become due is due. Set back after that,
  it only undoes the error: what was reckoned before it stands as it was, and what was reckoned
  while the clock was ahead is moved back by as much as it was ahead.

A suspend is no step, since the monotonic clock handed in counts it; where it does not, a suspend
looks like a step ahead, and the same rule fires what was missed.
"""

import msgspec

from mcpl_heartbeat.actions import Moment

STEP_MS = 1_000
"""Smaller differences (ms) are the two readings drifting apart, not a step."""


class Step(msgspec.Struct, frozen=True):
    """One step of the wall clock, as lengths of time have to follow it (ms)."""

    size: int
    """The step itself."""
    by: int
    """How far to move on the wall clock what was reckoned on a clock that was not ahead."""
    ahead: int
    """How far the clock is ahead of where it began, as far as steps taken at their word tell."""

    def shift(self, reckoned_ahead: int) -> int:
        """How far (ms) to move what was reckoned while the clock was ahead by so much."""
        return self.by - max(0, reckoned_ahead - self.ahead)


class ClockSteps:
    """Watches the pairs of readings that the core is handed."""

    def __init__(self) -> None:
        self._last: Moment | None = None
        self._moved_back = 0
        self._ahead = 0

    @property
    def ahead(self) -> int:
        """How far (ms) the clock is ahead now, as far as its steps tell."""
        return self._ahead

    def observe(self, now: Moment) -> Step | None:
        """Return the step since the last reading, ``None`` when time only passed."""
        last, self._last = self._last, now
        if last is None:
            return None
        step = (now.wall - last.wall) - (now.monotonic - last.monotonic)
        if abs(step) < STEP_MS:
            return None
        if step > 0:
            undone = min(step, self._moved_back)
            self._moved_back -= undone
            self._ahead += step - undone
            return Step(step, undone, self._ahead)
        undone = min(-step, self._ahead)
        self._ahead -= undone
        self._moved_back += -step - undone
        return Step(step, step + undone, self._ahead)
