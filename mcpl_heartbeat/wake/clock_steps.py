"""Steps of the wall clock, told apart from time that passes (law 6).

Appointments live on the wall clock; intervals and delays are lengths of real time. While the clocks
run together the two agree. When the wall clock is set back, a wall-clock due time would keep an
interval waiting for the size of the step, so lengths are moved back with it. When the clock is put
right again, they are moved forward by what they had been moved back, so that nothing fires twice.
A step forward that undoes nothing is taken at its word: what has become due is due. A suspend is no
step, since the monotonic clock handed in counts it; where it does not, a suspend looks like a step
forward, and the same rule fires what was missed.
"""

from mcpl_heartbeat.actions import Moment

STEP_MS = 1_000
"""Smaller differences (ms) are the two readings drifting apart, not a step."""


class ClockSteps:
    """Watches the pairs of readings that the core is handed."""

    def __init__(self) -> None:
        self._last: Moment | None = None
        self._moved_back = 0

    def observe(self, now: Moment) -> int:
        """Return by how many ms lengths of time must be moved on the wall clock (0: not at all)."""
        last, self._last = self._last, now
        if last is None:
            return 0
        step = (now.wall - last.wall) - (now.monotonic - last.monotonic)
        if abs(step) < STEP_MS:
            return 0
        if step < 0:
            self._moved_back -= step
            return step
        undone = min(step, self._moved_back)
        self._moved_back -= undone
        return undone
