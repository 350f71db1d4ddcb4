"""The sentences that agents and operators read (issue §6: the words that are fixed).

Each is written for a language model: one fact a sentence, the reason, what to do.
"""

from collections.abc import Iterable

from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.wake.delivery import seconds, shorten
from mcpl_heartbeat.wake.files import Config, Reminder
from mcpl_heartbeat.wake.ledger import Note
from mcpl_heartbeat.wake.reminders import Held, Out, every_ms

LIST_CHARACTERS = 20_000
"""How long the text of ``reminder_list`` may become (issue §4)."""
SHOWN_MESSAGE = 1_000
"""How much of the heartbeat's own message the status line shows (characters)."""

SILENT_REFUSED = (
    "the host refused a silent wake, so each tick it refuses is sent again as a message; silent "
    "mode needs agent-framework 0.20.0 or later and this server configured under the id `heartbeat`"
)


CLOCK_STEPPED = (
    "the wall clock was stepped: intervals and delays keep to the time that has passed, "
    "appointments and what has become due keep to the clock"
)
FIRED = (
    "It was sent to the host; that you were woken shows only when the wake reaches you. The "
    "schedule is as it was."
)


def status_head(config: Config, *, silent_refused: bool) -> str:
    """How the first line of ``heartbeat_status`` begins."""
    mode: str = config.delivery_mode
    if mode == "silent" and silent_refused:
        mode = f"silent ({SILENT_REFUSED})"
    interval = interval_ms(config)
    state = "PAUSED" if config.paused else "ACTIVE"
    hours = f"{interval / 3_600_000:.2f}h"
    return f"Heartbeat {state} | mode={mode} | interval={seconds(interval)}s ({hours})"


def status_tail(config: Config) -> str:
    """How it ends."""
    return f" | message={quoted(config.message, SHOWN_MESSAGE)}"


def interval_ms(config: Config) -> int:
    """The heartbeat's interval in ms."""
    return round(config.interval_seconds * 1000)


def about(ms: int) -> int:
    """A length of ``ms`` in whole seconds, as it is said with a ``~``."""
    return max(0, round(ms / 1000))


def quoted(message: str, limit: int | None = None) -> str:
    """A message in quotation marks on one line; longer than ``limit`` characters, its beginning."""
    line = message.replace("\r", "\\r").replace("\n", "\\n")
    if limit is None or len(line) <= limit:
        return f'"{line}"'
    return f'"{line[:limit]}…" ({len(message)} characters)'


def repeats(row: Reminder) -> str:
    """``one-shot`` or ``repeats every Ns``."""
    every = every_ms(row)
    return "one-shot" if every is None else f"repeats every {seconds(every)}s"


def added(row: Reminder, zone: Zone, now: int) -> str:
    """The first line of the answer to ``reminder_add``."""
    when = f"next {local_time(row.fire_at, zone)} (~{about(row.fire_at - now)}s)"
    return f"Reminder {row.id} set: {when} | {repeats(row)} | {quoted(row.message, SHOWN_MESSAGE)}"


def listed(
    row: Reminder, state: Out | Held | None, zone: Zone, now: int, limit: int | None = None
) -> str:
    """One line of ``reminder_list``."""
    left = row.fire_at - now
    when = f"(~{about(left)}s)" if left > 0 else "(overdue)"
    parts = [row.id, f"next {local_time(row.fire_at, zone)} {when}"]
    if isinstance(state, Held):
        parts.append(f"held since {local_time(state.since, zone)}: {state.reason}")
    elif isinstance(state, Out):
        parts.append(f"sent {local_time(state.since, zone)}, not answered yet")
    parts += [repeats(row), quoted(row.message, limit)]
    return " | ".join(parts)


def unsaved(document: str, note: Note) -> tuple[str, ...]:
    """The sentences on a change whose save ``note`` is about: none when it is on disk as asked."""
    said = list(note.took)
    if not note.saved:
        reason = (note.reason or "").rstrip(".")
        said.insert(
            0,
            f"NOT SAVED to the {document} file: {reason}. The change holds in memory and is "
            "lost when this server stops.",
        )
    return tuple(said)


def foreign(document: str, took: str) -> str:
    """What is said when another hand's changes to a file were merged."""
    return (
        f"The {document} file was changed by another hand while this server ran; what was written "
        f"there was kept: {took}."
    )


def behind(document: str, failure: str) -> str:
    """What is said while the last save of a file has failed."""
    return (
        f"The last save of the {document} file failed ({failure}): changes since hold in memory "
        "only, and are tried again every 30 s."
    )


def twin_of(twins: tuple[str, ...]) -> str:
    """What ``reminder_add`` says of pending reminders that say and do the same."""
    shown = ", ".join(twins[:5]) + (f" and {len(twins) - 5} more" if len(twins) > 5 else "")
    return (
        f"Pending already with the same message and schedule: {shown}. Both will fire; "
        "reminder_cancel takes one away."
    )


def more(count: int, offset: int) -> str:
    """How a cut list goes on."""
    return f"{count} more: call reminder_list with offset {offset}."


def standby(held_by: str) -> str:
    """Why a server that shares its files with another does nothing."""
    return (
        f"another server ({held_by}) holds these files: this one fires nothing and saves nothing, "
        "and takes over when that one is gone"
    )


def suppressed(reason: str) -> str:
    """The log line for a heartbeat that could not be sent (seed)."""
    return f"suppressed heartbeat push/event — {reason}"


def skipped(slot: int, out_since: int | None, zone: Zone) -> str:
    """The log line for a heartbeat that was not sent because the last one is still out."""
    since = "" if out_since is None else f" sent {local_time(out_since, zone)}"
    return (
        f"skipped the heartbeat due {local_time(slot, zone)}: the host has not answered the "
        f"one{since} yet, and at most one is out"
    )


def unanswered(out_since: int, zone: Zone) -> str:
    """What the status says while a heartbeat waits for its answer."""
    return (
        f"The host has not answered the heartbeat sent {local_time(out_since, zone)} yet; one that "
        "falls due meanwhile is skipped."
    )


def tick_refused(since: int, reason: str, zone: Zone) -> str:
    """What the status says while the last heartbeat that was answered was not taken."""
    return (
        f"The last heartbeat was not taken ({local_time(since, zone)}: {reason}); the next is "
        "tried at its time, or at the host's next policy."
    )


def some_held(count: int) -> str:
    """What the status says of reminders that the host has not taken."""
    which = "1 reminder is" if count == 1 else f"{count} reminders are"
    return f"{which} held, not taken by the host: reminder_list says why and since when."


def stranded(count: int, reason: str) -> str:
    """The log line for reminders that cannot fire (seed)."""
    subject = "1 reminder will" if count == 1 else f"{count} reminders will"
    return f"{subject} not fire: no wake can be delivered ({reason})"


def waits_because(reason: str) -> str:
    """Why an overdue reminder waits: the last line of ``reminder_list``."""
    return f"No wake can be delivered ({reason}); reminders wait and fire once when one can."


def never_fires(reason: str) -> str:
    """What ``reminder_add`` and ``reminder_list`` say on a host that takes no wake (seed)."""
    return f"No reminder will fire on this host: {reason}."


def not_sent(reason: str, *, by_host: bool) -> str:
    """Why ``heartbeat_trigger`` sent nothing, and what to do where it is the host's doing."""
    said = f"Heartbeat not sent: {reason}."
    if not by_host:
        return said
    return (
        f"{said} Wakes need the host to grant pushEvents and tools and to "
        "enable the feature set `heartbeat` in a featureSets/update Request; tell its operator."
    )


def cancelled(row: Reminder) -> str:
    """The first line of the answer to ``reminder_cancel``."""
    return f"Reminder {row.id} cancelled: {repeats(row)} | {quoted(row.message, 200)}"


def brought_back(row: Reminder) -> str:
    """Why a reminder is still pending although it was to be cancelled."""
    return (
        f"Reminder {row.id} was not cancelled: another hand changed its row in the file meanwhile, "
        "and that was kept. Call reminder_cancel again if it is to go."
    )


def no_such_reminder(id: str, pending: int) -> str:
    """Why ``reminder_cancel`` cancelled nothing, and what to do."""
    return (
        f"No pending reminder has the id {quoted(shorten(id, 80))}; nothing was cancelled. "
        f"{pending} pending: reminder_list shows their ids. A one-shot that fired is gone already."
    )


def lines(first: str, notes: Iterable[str]) -> str:
    """A reply: its first line, then one note a line."""
    return "\n".join((first, *notes))
