"""What a server counts of its own work, for ``/metrics``."""

import bisect

import msgspec

from mcpl_heartbeat.storage.store.ports import Swept


class Histogram(msgspec.Struct):
    """How often which values came: ``counts[i]`` is of those up to ``bounds[i]``, not below it."""

    bounds: tuple[float, ...]
    counts: list[int] = []
    """One more than there are bounds: the last is of those above all of them."""
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value


def _late() -> Histogram:
    return Histogram((0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0))


def _sweeps() -> Histogram:
    return Histogram((0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0))


class Counters(msgspec.Struct):
    """Counts since this server started; seconds."""

    beats: int = 0
    """Beats that were kept."""
    fires: int = 0
    """Switches that this server fired."""
    late: Histogram = msgspec.field(default_factory=_late)
    """How long after its deadline each of them was noticed."""
    sweeps: Histogram = msgspec.field(default_factory=_sweeps)
    """How long each sweep took."""

    def count(self, swept: Swept, seconds: float) -> None:
        """Count a sweep, how long it took, and what was fired in it and since the one before."""
        self.sweeps.observe(seconds)
        self.fires += swept.fired + len(swept.called_late_ms)
        for late in (*swept.late_ms, *swept.called_late_ms):
            self.late.observe(late / 1000)
