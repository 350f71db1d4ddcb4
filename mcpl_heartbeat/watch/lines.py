"""Lines that several answers have in common: switches, the journal, watch gaps."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET

from mcpl_heartbeat.watch.results import EntryView, GapView, SwitchView
from mcpl_heartbeat.watch.words import counted, json_line, quoted, span

OPAQUE = 4_000
"""How much of an opaque value (characters) the text shows; all of it is in the structure."""
LINES = 50
"""How many lines of one kind the text shows at most."""


def actions(r: Any) -> str:
    """What is done at expiry, and how whoever is told learns of it."""
    done = ", ".join(r.on_expiry)
    if r.notify_address is None:
        return done
    how = {"push": ", who is woken by it", "inbox": ", who has to poll for it"}
    delivery = getattr(r, "alert_delivery", UNSET)
    return f"{done} to {r.notify_address}{'' if delivery is UNSET else how[delivery]}"


def switch_line(view: SwitchView) -> str:
    """One switch."""
    parts = [f"{quoted(view.scope)}: {view.state}, generation {view.generation}"]
    if view.state == "armed":
        parts.append(f"fires in {span(view.seconds_left or 0)}, at {view.deadline}")
        parts.append(f"then {actions(view)}")
    elif view.state == "fired":
        parts.append(f"no beat came by {view.deadline}")
    if view.agent_id is not None:
        parts.append(f"beaten by {quoted(view.agent_id)}")
    parts.append(f"last beat {view.last_beat_at}")
    if view.fires:
        parts.append(f"fired {counted(view.fires, 'time')} so far")
    return " | ".join(parts)


def entry_line(entry: EntryView) -> str:
    """One line of the journal."""
    detail = f" {json_line(entry.detail, 300)}" if entry.detail else ""
    return f"- {entry.at} {entry.kind}, generation {entry.generation}{detail}"


def gap_lines(gaps: Sequence[GapView]) -> list[str]:
    """The times in which nobody watched."""
    return some(
        gaps,
        lambda gap: (
            f"Nobody watched from {gap.began_at} to {gap.ended_at} "
            f"({span(gap.seconds)}); for that time nobody is declared dead."
        ),
    )


def some(items: Sequence[Any], line: Callable[[Any], str]) -> list[str]:
    """A line for each, of the first ``LINES``, and how many more there are."""
    lines = [line(item) for item in items[:LINES]]
    if len(items) > LINES:
        lines.append(f"({len(items) - LINES} more in structuredContent)")
    return lines
