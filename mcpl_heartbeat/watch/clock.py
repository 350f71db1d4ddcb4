"""The store's time: what a deadline is measured in, and how it is told.

A store keeps two times, both in milliseconds. *Real* time rises like the clock on the wall but
never steps: it is anchored to the wall once and then follows a steady clock. *Watched* time is real
time less the watch gaps, the stretches in which no server watched the store: it stands still in a
gap. The deadlines of switches and the expiries of leases are in watched time, so that nobody is
declared dead for a time in which nobody was watching (F.2, "Watch gap"); everything else (what
happened, mail, checkpoints) is in real time. People and agents read neither: they are told wall
time, ISO 8601 in UTC with milliseconds.
"""

import msgspec

from mcpl_heartbeat.times import utc_time


class Gap(msgspec.Struct, frozen=True):
    """A stretch of real time (ms) in which nobody watched; ``cut``: the sum of those before."""

    began: int
    ended: int
    cut: int

    @property
    def length(self) -> int:
        """How much it holds deadlines back (ms)."""
        return self.ended - self.began

    @property
    def watched(self) -> int:
        """The watched time (ms) at which it stood still."""
        return self.began - self.cut


class Reading(msgspec.Struct, frozen=True):
    """The store's time at one instant, taken once for each transaction."""

    real: int
    """Milliseconds of real time."""
    cut: int = 0
    """The length (ms) of all gaps together."""
    shift: int = 0
    """The wall clock less real time (ms): what a step of the wall clock has left between them."""
    gaps: tuple[Gap, ...] = ()
    """The newest gaps, oldest first."""

    @property
    def watched(self) -> int:
        """Milliseconds of watched time."""
        return self.real - self.cut

    def tell(self, real: int) -> str:
        """Give a real time (ms) as an agent reads it."""
        return utc_time(real + self.shift)

    def tell_watched(self, watched: int) -> str:
        """Give a watched time (ms), past or to come, as an agent reads it."""
        return self.tell(self.real_of(watched))

    def real_of(self, watched: int) -> int:
        """The real time (ms) at which the store's watched time was, or will be, ``watched``."""
        later = sum(gap.length for gap in self.gaps if gap.watched >= watched)
        return watched + self.cut - later

    @property
    def server_time(self) -> str:
        """This instant as an agent reads it."""
        return self.tell(self.real)
