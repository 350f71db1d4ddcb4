"""Both clocks, read together."""

import time
from typing import Protocol

from mcpl_heartbeat.actions import Moment


class Clock(Protocol):
    """What the server reads time from; tests hand in their own."""

    def now(self) -> Moment:
        """Give the wall time and the monotonic time, both in milliseconds."""
        ...


class SystemClock:
    """The system's clocks: real time, and the one that goes on counting while the machine sleeps.

    Where there is no ``CLOCK_BOOTTIME`` the plain monotonic clock stands in: macOS's also counts
    sleep.
    """

    def __init__(self) -> None:
        """Choose the monotonic clock once."""
        self._monotonic: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        try:
            time.clock_gettime_ns(self._monotonic)
        except OSError:
            self._monotonic = time.CLOCK_MONOTONIC

    def now(self) -> Moment:
        """Give the wall time and the monotonic time, both in whole milliseconds, rounded down."""
        return Moment(
            wall=time.time_ns() // 1_000_000,
            monotonic=time.clock_gettime_ns(self._monotonic) // 1_000_000,
        )
