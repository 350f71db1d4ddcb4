"""The six tool calls: what each changes, and what it answers.

``WakeCalls.call`` carries out a call whose arguments have passed the rules. A call that changes
nothing on disk is answered by what it returns. One that does returns ``None``, and ``answer`` is
called once its save has ended, with whatever came of it (law 4). A call that cannot be carried out
is answered with an error and changes nothing.
"""

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.actions import Moment
from mcpl_heartbeat.mcp.arguments import Accepted, Refused, ignored_text, refusal_text
from mcpl_heartbeat.mcp.tools import Rules, Tool, ToolResult
from mcpl_heartbeat.times import local_time
from mcpl_heartbeat.wake import delivery, due, schedule, texts, tools
from mcpl_heartbeat.wake.files import Reminder
from mcpl_heartbeat.wake.ledger import Disk, Ledger, Note
from mcpl_heartbeat.wake.reminders import Held
from mcpl_heartbeat.wake.status import Status
from mcpl_heartbeat.wake.wing import WakeWing

Answer = Callable[[ToolResult], None]

SHOWN_LINE = 4_000
"""How much of one reminder's message a list shows (characters)."""


class WakeCalls:
    """The tools of a ``WakeWing``."""

    def __init__(self, wing: WakeWing) -> None:
        self._wing = wing
        self._status_of = Status(wing)
        self.structured = True
        """Whether the host's protocol version has structured content at all."""
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

    def refused(self, tool: Tool, why: Refused, now: Moment) -> ToolResult:
        """The error result of a call of ``tool`` that changed nothing."""
        problems = tuple(f"{problem.argument}: {problem.text}" for problem in why.problems)
        return self._error(tool.name, refusal_text(tool, why), problems, now)

    def rules_at(self, tool: Tool, now: Moment) -> Rules | None:
        """The argument rules of ``tool`` that hold only now."""
        zone = self._wing.zone
        if tool.name == "reminder_add":
            return lambda arguments, bad: due.add_rules(arguments, bad, now.wall, zone)
        if tool.name == "heartbeat_configure":
            return lambda arguments, bad: due.configure_rules(arguments, bad, now.wall, zone)
        return None

    # heartbeat_* ----------------------------------------------------------------------------------

    def _status(
        self, arguments: object, extra: tuple[str, ...], now: Moment, answer: Answer
    ) -> ToolResult:
        wing = self._wing
        notes = self._troubles(wing.config_ledger, wing.reminders_ledger, blocked_said=True)
        notes = self._status_of.notes(now) + notes + extra
        values = self._status_of.values(tools.StatusResult, now, notes) if self.structured else None
        return ToolResult(texts.lines(self._status_of.line(now), notes), values)

    def _configure(
        self,
        arguments: tools.ConfigureArguments,
        extra: tuple[str, ...],
        now: Moment,
        answer: Answer,
    ) -> ToolResult | None:
        wing = self._wing
        if arguments == tools.ConfigureArguments():
            return self._configured((), wing.config_ledger.state is Disk.CLEAN, extra, now)
        standing_by = self._standing_by("heartbeat_configure", now, extra)
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
        # Also where memory has it already: the file may not.
        wing.config_ledger.change()

        def finish(note: Note) -> None:
            if not note.kept:
                answer(self._dropped("heartbeat_configure", note, now, extra))
                return
            said = texts.unsaved("config", note)
            answer(self._configured(said, note.saved, extra, now))

        wing.config_ledger.when_saved(finish)
        return None

    def _configured(
        self, said: tuple[str, ...], saved: bool, extra: tuple[str, ...], now: Moment
    ) -> ToolResult:
        wing = self._wing
        notes = (*said, *self._troubles(wing.config_ledger, wing.reminders_ledger), *extra)
        first = self._status_of.line(now) + (" | saved" if saved else "")
        structured = self._status_of.values(tools.ConfigureResult, now, notes, saved=saved)
        return ToolResult(texts.lines(first, notes), structured)

    def _trigger(
        self, arguments: object, extra: tuple[str, ...], now: Moment, answer: Answer
    ) -> ToolResult | None:
        wing = self._wing
        blocked = wing.blocked()
        if blocked is not None:
            wing.log_suppressed(blocked)
            said = texts.not_sent(blocked, by_host=wing.held_by is None)
            return self._error("heartbeat_trigger", said, (blocked,), now, extra)
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
        standing_by = self._standing_by("reminder_add", now, extra)
        if standing_by is not None:
            return standing_by
        first = due.first_time(arguments, now.wall, wing.zone)
        if not isinstance(first, due.FirstTime):
            # Only a call that waited for the files to be read comes here: its time has passed.
            text = f"{first.argument}: {first.text}" if first else "no time was given"
            said = f"reminder_add was refused and changed nothing:\n- {text}"
            return self._error("reminder_add", said, (text,), now, extra)
        every = arguments.every_ms
        row = Reminder(
            id=self._fresh_id(),
            message=arguments.message,
            created_at=now.wall,
            fire_at=first.at,
            every_seconds=None if every is None else _seconds(every),
            by_clock=arguments.at_iso is not UNSET,
        )
        twins = tuple(wing.reminders.twins(row))
        wing.reminders.add(row)
        self._reminders_changed()
        asides = (
            *((first.note,) if first.note else ()),
            *((texts.twin_of(twins),) if twins else ()),
            *self._cannot_fire(),
        )

        def finish(note: Note) -> None:
            if not note.kept:
                answer(self._dropped("reminder_add", note, now, extra))
                return
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
        first = f"{total} reminder(s){':' if total else '.'}"
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
        standing_by = self._standing_by("reminder_cancel", now, extra)
        if standing_by is not None:
            return standing_by
        row = wing.reminders.cancel(arguments.id)
        if row is None:
            text = texts.no_such_reminder(arguments.id, len(wing.reminders))
            return self._error("reminder_cancel", text, (text,), now, extra)
        wing.forget_reminder(row.id)
        self._reminders_changed()

        def finish(note: Note) -> None:
            if not note.kept:
                answer(self._dropped("reminder_cancel", note, now, extra))
                return
            said = texts.unsaved("reminders", note)
            if row.id in wing.reminders.rows:
                text = texts.brought_back(row)
                answer(self._error("reminder_cancel", text, (text,), now, (*said, *extra)))
                return
            notes = (*said, *self._troubles(wing.reminders_ledger), *extra)
            structured = tools.CancelResult(
                id=row.id, cancelled=True, saved=note.saved, notes=notes
            )
            answer(ToolResult(texts.lines(texts.cancelled(row), notes), structured))

        wing.reminders_ledger.when_saved(finish)
        return None

    # What they share ------------------------------------------------------------------------------

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

    def _dropped(self, name: str, note: Note, now: Moment, extra: tuple[str, ...]) -> ToolResult:
        """A change that neither the file nor memory holds: another server has the files."""
        reason = note.reason or "another server holds the files"
        text = f"{name} changed nothing: {reason}. Call again once this server has the files."
        return self._error(name, text, (reason,), now, extra)

    def _standing_by(self, name: str, now: Moment, extra: tuple[str, ...]) -> ToolResult | None:
        """A server that stands by changes nothing: the error that says so."""
        held_by = self._wing.held_by
        if held_by is None:
            return None
        text = f"{name} changed nothing."
        return self._error(name, text, (texts.standby(held_by),), now, extra)

    def _cannot_fire(self) -> tuple[str, ...]:
        wing = self._wing
        blocked = wing.blocked() or wing.refusal
        if blocked is None:
            return ()
        denied = wing.gate.verdict(delivery.FEATURE_SET)
        if wing.held_by is None and denied is not None and denied.never:
            return (texts.never_fires(blocked),)
        return (texts.waits_because(blocked),)

    def _troubles(self, *ledgers: Ledger, blocked_said: bool = False) -> tuple[str, ...]:
        """What is wrong with the files whose content a reply speaks of.

        ``blocked_said``: the reply says already why nothing can be delivered.
        """
        said = []
        for ledger in ledgers:
            if ledger.trouble is not None:
                said.append(ledger.trouble.text)
            elif ledger.failure is not None:
                said.append(texts.behind(ledger.document, ledger.failure))
        if self._wing.held_by is not None and not blocked_said:
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

    def _error(
        self,
        name: str,
        text: str,
        problems: tuple[str, ...],
        now: Moment,
        extra: tuple[str, ...] = (),
    ) -> ToolResult:
        """An error result with structured content that fits the tool's schema."""
        wing = self._wing
        ledgers = [wing.reminders_ledger] if name.startswith("reminder_") else []
        if name in ("heartbeat_status", "heartbeat_configure"):
            ledgers = [wing.config_ledger, wing.reminders_ledger]
        notes = (*self._troubles(*ledgers, blocked_said=name == "heartbeat_trigger"), *extra)
        structured: msgspec.Struct
        if name == "heartbeat_status":
            structured = self._status_of.values(tools.StatusResult, now, notes, problems=problems)
        elif name == "heartbeat_configure":
            structured = self._status_of.values(
                tools.ConfigureResult, now, notes, saved=False, problems=problems
            )
        elif name == "heartbeat_trigger":
            structured = tools.TriggerResult(
                sent=False, reason=problems[0], notes=notes, problems=problems
            )
        elif name == "reminder_add":
            structured = tools.AddResult(added=False, saved=False, notes=notes, problems=problems)
        elif name == "reminder_list":
            total = len(wing.reminders)
            structured = tools.ListResult(
                total=total, offset=0, reminders=(), more=total, notes=notes, problems=problems
            )
        else:
            structured = tools.CancelResult(
                cancelled=False, saved=False, notes=notes, problems=problems
            )
        return ToolResult(texts.lines(text, notes), structured, is_error=True)


def _seconds(ms: int) -> int | float:
    """A length of ``ms`` in seconds, whole where it is."""
    return ms // 1000 if ms % 1000 == 0 else ms / 1000
