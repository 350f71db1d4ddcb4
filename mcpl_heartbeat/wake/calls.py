"""The six tool calls: what each changes, and what it answers.

``WakeCalls.call`` carries out a call whose arguments have passed the rules. A call that changes
nothing on disk is answered by what it returns. One that does returns ``None``, and ``answer`` is
called once its save has ended, with whatever came of it (law 4). A call that cannot be carried out
is answered with an error and changes nothing.
"""

from collections.abc import Callable, Iterable

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.actions import Moment
from mcpl_heartbeat.mcp.arguments import Accepted, ignored_text
from mcpl_heartbeat.mcp.tools import Tool, ToolResult
from mcpl_heartbeat.times import local_time, read_instant, shows
from mcpl_heartbeat.wake import delivery, schedule, texts, tools
from mcpl_heartbeat.wake.files import LATEST, Reminder
from mcpl_heartbeat.wake.ledger import Ledger, Note
from mcpl_heartbeat.wake.reminders import Held
from mcpl_heartbeat.wake.status import Status
from mcpl_heartbeat.wake.wing import WakeWing

Answer = Callable[[ToolResult], None]

PAST_GRACE_MS = 60_000
"""An ``atIso`` this far (ms) in the past still counts as now: calls take time to arrive."""
SHOWN_LINE = 4_000
"""How much of one reminder's message a list shows (characters)."""


class WakeCalls:
    """The tools of a ``WakeWing``."""

    def __init__(self, wing: WakeWing) -> None:
        self._wing = wing
        self._status_of = Status(wing)
        self._handlers: dict[str, Callable[..., ToolResult | None]] = {
            "heartbeat_status": self._status,
            "heartbeat_configure": self._configure,
            "heartbeat_trigger": self._trigger,
            "reminder_add": self._add,
            "reminder_list": self._list,
            "reminder_cancel": self._cancel,
        }

    def call(
        self, tool: Tool, accepted: Accepted, now: Moment, answer: Answer
    ) -> ToolResult | None:
        """Carry out a call of ``tool``; see the module."""
        extra = (ignored_text(tool, accepted.ignored),) if accepted.ignored else ()
        return self._handlers[tool.name](accepted.arguments, extra, now, answer)

    def refused(self, tool: Tool, text: str, problems: Iterable[str], now: Moment) -> ToolResult:
        """The error result of a call of ``tool`` that changed nothing."""
        return self._error(tool.name, text, tuple(problems), now)

    # heartbeat_* ----------------------------------------------------------------------------------

    def _status(
        self, arguments: object, extra: tuple[str, ...], now: Moment, answer: Answer
    ) -> ToolResult:
        wing = self._wing
        notes = self._troubles(wing.config_ledger, wing.reminders_ledger) + extra
        notes = self._status_of.unanswered(now) + notes
        return ToolResult(
            texts.lines(self._status_of.line(now), notes),
            self._status_of.values(tools.StatusResult, now, notes),
        )

    def _configure(
        self,
        arguments: tools.ConfigureArguments,
        extra: tuple[str, ...],
        now: Moment,
        answer: Answer,
    ) -> ToolResult | None:
        wing = self._wing
        standing_by = self._standing_by("heartbeat_configure", now)
        if standing_by is not None:
            return standing_by
        settings = wing.settings
        interval = arguments.interval_ms
        if interval is None:
            interval = texts.interval_ms(settings)
        paused = settings.paused if arguments.paused is UNSET else arguments.paused
        new_interval = interval != texts.interval_ms(settings)
        wing.settings = msgspec.structs.replace(
            settings,
            interval_seconds=_seconds(interval) if new_interval else settings.interval_seconds,
            paused=paused,
            message=settings.message if arguments.message is UNSET else arguments.message,
            delivery_mode=(
                settings.delivery_mode
                if arguments.delivery_mode is UNSET
                else arguments.delivery_mode
            ),
        )
        if paused:
            wing.schedule.pause()
        elif settings.paused or new_interval:
            wing.schedule.rearm(interval, now.wall)
        wing.note_config()

        def finish(note: Note) -> None:
            said = texts.unsaved("config", note)
            notes = (*said, *self._troubles(wing.config_ledger, wing.reminders_ledger), *extra)
            first = self._status_of.line(now) + (" | saved" if note.saved else "")
            structured = self._status_of.values(tools.ConfigureResult, now, notes, saved=note.saved)
            answer(ToolResult(texts.lines(first, notes), structured))

        wing.config_ledger.when_saved(finish)
        return None

    def _trigger(
        self, arguments: object, extra: tuple[str, ...], now: Moment, answer: Answer
    ) -> ToolResult | None:
        wing = self._wing
        blocked = wing.blocked()
        if blocked is not None:
            wing.log_suppressed(blocked)
            text = texts.lines(texts.not_sent(blocked), extra)
            return self._error("heartbeat_trigger", text, (blocked,), now)
        occurrence = schedule.Occurrence(now.wall, f"heartbeat_{now.wall}_{wing.random_id()}")
        wing.push_tick(occurrence, now, manual=True)
        notes = (texts.FIRED, *extra)
        return ToolResult(
            texts.lines(f"Heartbeat fired | event {occurrence.event_id}", notes),
            tools.TriggerResult(sent=True, event_id=occurrence.event_id, notes=notes),
        )

    # reminder_* -----------------------------------------------------------------------------------

    def _add(
        self, arguments: tools.AddArguments, extra: tuple[str, ...], now: Moment, answer: Answer
    ) -> ToolResult | None:
        wing = self._wing
        standing_by = self._standing_by("reminder_add", now)
        if standing_by is not None:
            return standing_by
        due = self._due(arguments, now)
        if isinstance(due, str):
            text = f"reminder_add was refused and changed nothing:\n- {due}"
            return self._error("reminder_add", text, (due,), now)
        fire_at, resolved = due
        every = arguments.every_ms
        row = Reminder(
            id=self._fresh_id(),
            message=arguments.message,
            created_at=now.wall,
            fire_at=fire_at,
            every_seconds=None if every is None else _seconds(every),
            by_clock=arguments.at_iso is not UNSET,
        )
        twins = tuple(wing.reminders.twins(row))
        wing.reminders.add(row)
        self._reminders_changed()
        asides = (
            *((resolved,) if resolved else ()),
            *((texts.twin_of(twins),) if twins else ()),
            *self._cannot_fire(),
        )

        def finish(note: Note) -> None:
            said = texts.unsaved("reminders", note)
            notes = (*asides, *said, *self._troubles(wing.reminders_ledger), *extra)
            structured = tools.AddResult(
                added=True,
                reminder=self._view(row, now),
                saved=note.saved,
                twins=twins,
                notes=notes,
            )
            answer(
                ToolResult(texts.lines(texts.added(row, wing.zone, now.wall), notes), structured)
            )

        wing.reminders_ledger.when_saved(finish)
        return None

    def _list(
        self, arguments: tools.ListArguments, extra: tuple[str, ...], now: Moment, answer: Answer
    ) -> ToolResult | None:
        wing = self._wing
        total, offset = len(wing.reminders), min(arguments.offset, len(wing.reminders))
        first = f"{total} reminder(s):" if total else "0 reminder(s)."
        notes = [*self._cannot_fire(), *self._troubles(wing.reminders_ledger), *extra]
        room = texts.LIST_CHARACTERS - len(first) - sum(len(note) + 1 for note in notes) - 200
        shown: list[str] = []
        views: list[tools.ReminderView] = []
        for row in wing.reminders.in_order(offset):
            state = wing.reminders.state(row.id)
            line = texts.listed(row, state, wing.zone, now.wall)
            if len(line) > SHOWN_LINE and (shown or len(line) > room):
                line = texts.listed(row, state, wing.zone, now.wall, SHOWN_LINE)
            room -= len(line) + 1
            if room < 0 and shown:
                break
            shown.append(line)
            views.append(self._view(row, now))
        more = total - offset - len(shown)
        if total and not shown:
            notes.insert(0, f"offset {arguments.offset} is past the last of them.")
        if more:
            notes.insert(0, texts.more(more, offset + len(shown)))
        return ToolResult(
            "\n".join((first, *shown, *notes)),
            tools.ListResult(
                total=total,
                offset=offset,
                reminders=tuple(views),
                more=more,
                notes=tuple(notes),
            ),
        )

    def _cancel(
        self, arguments: tools.CancelArguments, extra: tuple[str, ...], now: Moment, answer: Answer
    ) -> ToolResult | None:
        wing = self._wing
        standing_by = self._standing_by("reminder_cancel", now)
        if standing_by is not None:
            return standing_by
        row = wing.reminders.cancel(arguments.id)
        if row is None:
            text = texts.no_such_reminder(arguments.id, len(wing.reminders))
            notes = (*self._troubles(wing.reminders_ledger), *extra)
            return self._error("reminder_cancel", texts.lines(text, notes), (text,), now)
        wing.forget_reminder(row.id)
        self._reminders_changed()

        def finish(note: Note) -> None:
            said = texts.unsaved("reminders", note)
            notes = (*said, *self._troubles(wing.reminders_ledger), *extra)
            first = texts.cancelled(row)
            structured = tools.CancelResult(
                id=row.id, cancelled=True, saved=note.saved, notes=notes
            )
            answer(ToolResult(texts.lines(first, notes), structured))

        wing.reminders_ledger.when_saved(finish)
        return None

    # What they share ------------------------------------------------------------------------------

    def _due(self, arguments: tools.AddArguments, now: Moment) -> tuple[int, str | None] | str:
        """When it first fires (wall ms) and a note on how that was read, or what is wrong."""
        zone = self._wing.zone
        if arguments.at_iso is not UNSET:
            instant = read_instant(arguments.at_iso, zone)
            if isinstance(instant, str):
                return f"atIso: {instant}"
            if instant.wall_ms < now.wall - PAST_GRACE_MS:
                return texts.is_past(instant.wall_ms, now.wall, zone)
            return instant.wall_ms, instant.note
        delay = arguments.delay_ms if arguments.delay_ms is not None else arguments.every_ms
        assert delay is not None, "the argument rules let no reminder through without a time"
        due = now.wall + delay
        if due > LATEST or not shows(due, zone):
            names = "the delay" if arguments.delay_ms is not None else "the interval"
            return f"{names} is out of range: it ends after the year 9999; send a shorter one"
        return due, None

    def _reminders_changed(self) -> None:
        """An add or a cancel: save it, and what is held may be tried once more (seed)."""
        wing = self._wing
        if wing.blocked() is None:
            wing.reminders.retry()
        wing.reminders_ledger.change()
        wing.strand()

    def _fresh_id(self) -> str:
        while (id := f"rem_{self._wing.random_id()}") in self._wing.reminders.rows:
            pass
        return id

    def _standing_by(self, name: str, now: Moment) -> ToolResult | None:
        """A server that stands by changes nothing: the error that says so."""
        held_by = self._wing.held_by
        if held_by is None:
            return None
        text = f"{name} changed nothing: {texts.standby(held_by)}. Try again later."
        return self._error(name, text, (text,), now)

    def _cannot_fire(self) -> tuple[str, ...]:
        wing = self._wing
        blocked = wing.blocked()
        if blocked is None:
            return ()
        denied = wing.gate.verdict(delivery.FEATURE_SET)
        if wing.held_by is None and denied is not None and denied.never:
            return (texts.never_fires(blocked),)
        return (texts.waits_because(blocked),)

    def _troubles(self, *ledgers: Ledger) -> tuple[str, ...]:
        """What is wrong with the files whose content a reply speaks of."""
        said = []
        for ledger in ledgers:
            if ledger.trouble is not None:
                said.append(ledger.trouble.text)
            elif ledger.failure is not None:
                said.append(texts.behind(ledger.document, ledger.failure))
        if self._wing.held_by is not None:
            said.append(f"Note: {texts.standby(self._wing.held_by)}.")
        return tuple(said)

    def _view(self, row: Reminder, now: Moment) -> tools.ReminderView:
        wing = self._wing
        state = wing.reminders.state(row.id)
        held = state if isinstance(state, Held) else None
        return tools.ReminderView(
            id=row.id,
            message=row.message,
            next=local_time(row.fire_at, wing.zone),
            due_at=row.fire_at,
            seconds_to_next=(row.fire_at - now.wall) / 1000,
            every_seconds=UNSET if row.every_seconds is None else row.every_seconds,
            overdue=row.fire_at <= now.wall,
            held_since=UNSET if held is None else local_time(held.since, wing.zone),
            held_because=UNSET if held is None else held.reason,
        )

    def _error(self, name: str, text: str, problems: tuple[str, ...], now: Moment) -> ToolResult:
        """An error result with structured content that fits the tool's schema."""
        structured: msgspec.Struct
        if name == "heartbeat_status":
            structured = self._status_of.values(tools.StatusResult, now, problems=problems)
        elif name == "heartbeat_configure":
            structured = self._status_of.values(
                tools.ConfigureResult, now, saved=False, problems=problems
            )
        elif name == "heartbeat_trigger":
            structured = tools.TriggerResult(sent=False, reason=problems[0], problems=problems)
        elif name == "reminder_add":
            structured = tools.AddResult(added=False, saved=False, problems=problems)
        elif name == "reminder_list":
            total = len(self._wing.reminders)
            structured = tools.ListResult(
                total=total, offset=0, reminders=(), more=total, problems=problems
            )
        else:
            structured = tools.CancelResult(cancelled=False, saved=False, problems=problems)
        return ToolResult(text, structured, is_error=True)


def _seconds(ms: int) -> int | float:
    """A length of ``ms`` in seconds, whole where it is."""
    return ms // 1000 if ms % 1000 == 0 else ms / 1000
