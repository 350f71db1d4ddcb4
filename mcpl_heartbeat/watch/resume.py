"""The briefing of whoever takes up the work on a scope.

Two kinds of knowledge stand side by side: what the last checkpoint says, which is the word of the
agent that wrote it, and what the server saw by itself: beats that did not come, leases that are
held, mail that came since, times in which nobody watched.

A death is *recovered* once a later beat has armed the scope again. The present state of that is the
switch's to say, whose counts never lapse; the deaths themselves are read from the journal, of which
only the newest lines are kept.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.leases import is_held
from mcpl_heartbeat.watch.results import (
    ArrivalView,
    DeathView,
    EntryView,
    GapView,
    HeldLeaseView,
    HeldTaskView,
    ResumePacketResult,
)
from mcpl_heartbeat.watch.rows import LISTED, Checkpoint, Entry, Envelope, Lease, Switch
from mcpl_heartbeat.watch.switches import view

MAX_DEATHS = 20
"""How many deaths are told, the newest ones; the journal's size bounds the rest."""
_NONE_SUCH = (
    "This namespace has no such scope: it put no checkpoint, armed no switch and took no lease or "
    "task under that name. Another agent's is not seen here: its alert tells where to resume."
)
_PERHAPS = "If it is your own, check its spelling; if the work is new, start it."
_TAKEN_UP = frozenset({"armed", "recovered"})


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a ``fired`` line of the journal holds; ``switches.py`` writes it."""

    deadline: str
    noticed_at: str
    last_beat_at: str
    agent_id: str | None
    marked_failed: bool
    released: tuple[dict[str, Any], ...]
    released_count: int = 0
    released_tasks: tuple[dict[str, Any], ...] = ()
    released_tasks_count: int = 0
    unreachable: int


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
    tasks: Sequence[HeldTaskView] = (),
    tasks_total: int = 0,
) -> ResumePacketResult:
    """Brief on ``scope``.

    ``entries`` are all lines of its journal, the oldest first, of which the last ``tail`` are
    shown; ``arrivals`` are the first of ``arrivals_total`` envelopes that wait; ``tasks`` of
    ``tasks_total`` that are claimed under the scope.
    """
    held = [lease for lease in leases if is_held(lease, now)]
    known = bool(switch or checkpoint or held or entries or tasks)
    notes: list[str] = []
    deaths = _deaths(entries, now, notes)
    failed, recovered = _standing(switch, deaths)
    content = {} if checkpoint is None else checkpoint.content
    if not known:
        notes.append(_NONE_SUCH if arrivals_total else f"{_NONE_SUCH} {_PERHAPS}")
    if len(deaths) > MAX_DEATHS:
        notes.append(f"Of {len(deaths)} deaths the last {MAX_DEATHS} are shown.")
    return ResumePacketResult(
        server_time=now.server_time,
        notes=tuple(notes),
        scope=scope,
        empty=not known and not arrivals_total,
        known=known,
        objective=content.get("objective"),
        next_action=content.get("next_action"),
        checkpoint=None if checkpoint is None else _checkpoint_view(checkpoint, now),
        switch=None if switch is None else view(switch, now),
        failed=failed,
        recovered=recovered,
        deaths=tuple(deaths[-MAX_DEATHS:]),
        leases=tuple(_lease_view(lease, now) for lease in held[:LISTED]),
        leases_total=len(held),
        tasks=tuple(tasks),
        tasks_total=tasks_total,
        arrivals=tuple(_arrival_view(envelope, now) for envelope in arrivals),
        arrivals_total=arrivals_total,
        watch_gaps=gap_views(gaps, now),
        journal=tuple(entry_view(entry, now) for entry in entries[max(0, len(entries) - tail) :]),
    )


def gap_views(gaps: Sequence[Gap], now: Reading) -> tuple[GapView, ...]:
    """Show the times in which nobody watched."""
    return tuple(
        GapView(
            began_at=now.tell(gap.began), ended_at=now.tell(gap.ended), seconds=gap.length / 1000
        )
        for gap in gaps
    )


def entry_view(entry: Entry, now: Reading) -> EntryView:
    """Show a line of the journal."""
    return EntryView(
        at=now.tell(entry.at),
        kind=entry.kind,
        generation=entry.generation,
        detail=_shown(entry.detail),
    )


def _shown(detail: dict[str, Any]) -> dict[str, Any]:
    """Cut the lists of a line that was written before they had a bound, and count them."""
    long = [name for name, value in detail.items() if isinstance(value, list)]
    long = [name for name in long if len(detail[name]) > LISTED]
    if not long:
        return detail
    counts = {f"{name}_count": len(detail[name]) for name in long}
    return {**counts, **detail, **{name: detail[name][:LISTED] for name in long}}


def _deaths(entries: Sequence[Entry], now: Reading, notes: list[str]) -> list[DeathView]:
    deaths: list[DeathView] = []
    unreadable = 0
    taken_up: str | None = None
    # From the newest back, so that what came after a death is known when it is met.
    for entry in reversed(entries):
        if entry.kind in _TAKEN_UP:
            taken_up = now.tell(entry.at)
        elif entry.kind == "fired":
            try:
                seen = msgspec.convert(entry.detail, _Seen)
            except msgspec.ValidationError:
                unreadable += 1
            else:
                deaths.append(_death_view(entry.generation, seen, taken_up))
    if unreadable:
        notes.append(f"Deaths left out because their line of the journal is damaged: {unreadable}.")
    deaths.reverse()
    return deaths


def _death_view(generation: int, seen: _Seen, recovered_at: str | None) -> DeathView:
    return DeathView(
        generation=generation,
        agent_id=seen.agent_id,
        last_beat_at=seen.last_beat_at,
        deadline=seen.deadline,
        noticed_at=seen.noticed_at,
        marked_failed=seen.marked_failed,
        released=seen.released[:LISTED],
        # A line of before they had a bound names all of them, and does not count them.
        released_count=max(seen.released_count, len(seen.released)),
        released_tasks=seen.released_tasks[:LISTED],
        released_tasks_count=max(seen.released_tasks_count, len(seen.released_tasks)),
        unreachable=seen.unreachable,
        recovered_at=recovered_at,
    )


def _standing(switch: Switch | None, deaths: Sequence[DeathView]) -> tuple[bool, bool]:
    """Say whether the work stands marked failed, and whether it died and was taken up again."""
    if switch is not None:
        died = switch.fired_generation is not None
        recovered = died and switch.fired_generation != switch.generation
        return died and switch.failed and not recovered, recovered
    # A switch whose row was set aside still has its journal.
    if not deaths:
        return False, False
    recovered = deaths[-1].recovered_at is not None
    return deaths[-1].marked_failed and not recovered, recovered


def _checkpoint_view(checkpoint: Checkpoint, now: Reading) -> dict[str, Any]:
    return {
        **checkpoint.content,
        "version": checkpoint.version,
        "saved_at": now.tell(checkpoint.saved_at),
    }


def _lease_view(lease: Lease, now: Reading) -> HeldLeaseView:
    return HeldLeaseView(
        key=lease.key,
        holder=lease.holder,
        generation=lease.generation,
        expires_at=now.tell_watched(lease.expires_watched),
    )


def _arrival_view(envelope: Envelope, now: Reading) -> ArrivalView:
    return ArrivalView(
        task_id=envelope.task_id,
        box=envelope.box,
        kind=envelope.kind,
        objective=envelope.objective,
        sent_at=now.tell(envelope.sent_at),
    )
