"""The briefing of whoever takes the work on a scope up."""

from collections.abc import Sequence

from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.results import EntryView, GapView, ResumePacketResult
from mcpl_heartbeat.watch.rows import Checkpoint, Entry, Envelope, Lease, Switch


def packet(  # noqa: PLR0913, PLR0917 - each is one part of the briefing
    scope: str,
    switch: Switch | None,
    checkpoint: Checkpoint | None,
    leases: Sequence[Lease],
    arrivals: Sequence[Envelope],
    arrivals_total: int,
    entries: Sequence[Entry],
    tail: int,
    gaps: Sequence[Gap],
    now: Reading,
) -> ResumePacketResult:
    """Brief on ``scope``; ``entries`` are the oldest first, ``tail`` of them are shown."""
    raise NotImplementedError


def gap_views(gaps: Sequence[Gap], now: Reading) -> tuple[GapView, ...]:
    """Show watch gaps."""
    raise NotImplementedError


def entry_view(entry: Entry, now: Reading) -> EntryView:
    """Show a line of the journal."""
    raise NotImplementedError
