"""The wake wing: what is due, what is sent, what the host said, what is saved.

``WakeWing`` owns the schedule, the reminders and the two documents. A pass starts with ``begin``,
which looks for a step of the clock, and ends with ``pump``, which sends what can be sent and begins
the saves that are due; ``next_alarm`` then says when to come back. Between them four verbs change
state: ``opened``, ``answered``, ``policy_came`` and ``saved`` (tool calls are in ``calls.py``). A
due wake takes the same road whether its moment came by the clock, a policy, a restart or a clock
step (design: "A due reminder").
"""

from collections.abc import Callable
from typing import Any

import msgspec

from mcpl_heartbeat.actions import (
    Action,
    Changed,
    Document,
    Level,
    Log,
    Moment,
    NotSaved,
    Opening,
    Saved,
    SaveOutcome,
    Trouble,
)
from mcpl_heartbeat.jsonrpc.messages import Answer
from mcpl_heartbeat.jsonrpc.outgoing import Outgoing
from mcpl_heartbeat.times import Zone
from mcpl_heartbeat.wake import delivery, schedule, texts
from mcpl_heartbeat.wake import reminders as book
from mcpl_heartbeat.wake.clock_steps import ClockSteps, Step
from mcpl_heartbeat.wake.files import Config, Reminder, merge_config, merge_reminders
from mcpl_heartbeat.wake.ledger import Ledger
from mcpl_heartbeat.wake.pushes import Gate, Pushes, Sent, SentReminder, SentTick

BURST = 64
"""How many reminders leave in one pass, so that calls are answered between passes."""
PROBE_EVERY_MS = 60_000
"""How often (ms) a reminder that falls due is tried at a host that denies them all."""


class WakeWing:
    """See the module. ``emit`` takes each action as it arises, in order."""

    def __init__(
        self,
        *,
        zone: Zone,
        random_id: Callable[[], str],
        gate: Gate,
        outgoing: Outgoing[Sent],
        emit: Callable[[Action], None],
    ) -> None:
        self.zone = zone
        self.random_id = random_id
        self.gate = gate
        self.emit = emit
        self.settings = Config()
        self.schedule = schedule.Schedule(texts.interval_ms(self.settings), random_id)
        self.reminders = book.ReminderBook()
        self.config_ledger = Ledger(Document.CONFIG)
        self.reminders_ledger = Ledger(Document.REMINDERS)
        self.ready = False
        self.held_by: str | None = None
        self.refusal: str | None = None
        self._probe_at = 0
        self.silent_refused = False
        self.out_since: int | None = None
        self.tick_refused: tuple[int, str] | None = None
        """When (wall ms) and why the host did not take the last heartbeat it answered."""
        self._pushes = Pushes(outgoing=outgoing, host=gate, zone=zone, emit=emit)
        self._steps = ClockSteps()
        self._known_config = self.settings
        self._warned_of_silence = False
        self._stranded_due = False

    # What may be pushed ---------------------------------------------------------------------------

    def blocked(self) -> str | None:
        """Why no wake can be pushed now, as a clause; ``None`` when one can."""
        if not self.ready:
            return "the files are still being read"
        if self.held_by is not None:
            return texts.standby(self.held_by)
        denied = self.gate.verdict(delivery.FEATURE_SET)
        return None if denied is None else denied.reason

    def config(self) -> Config:
        """The settings with the schedule's place in them, as the file is to hold them."""
        occurrence = self.schedule.occurrence
        return msgspec.structs.replace(
            self.settings,
            next_at=occurrence.scheduled if occurrence else None,
            next_event_id=occurrence.event_id if occurrence else None,
        )

    # The verbs ------------------------------------------------------------------------------------

    def begin(self, now: Moment) -> bool:
        """A pass begins: see whether the clock was stepped before anything is reckoned with it.

        True when it was, so that the pass has to end with ``pump``.
        """
        step = self._steps.observe(now)
        if step is None or not self.ready:
            return False
        self._clock_stepped(step, now)
        return True

    def opened(self, opening: Opening, now: Moment) -> None:
        """The files were read, at start or when this server takes over from another."""
        took_over = self.ready and opening.held_by is None
        self.ready = True
        self.held_by = opening.held_by
        standby = opening.held_by is not None
        config: Config = opening.config.value or Config()
        rows: tuple[Reminder, ...] = opening.reminders.value or ()
        self.config_ledger.opened(opening.config.value, opening.config.trouble, standby)
        self.reminders_ledger.opened(rows, opening.reminders.trouble, standby)
        self.schedule.ahead = self._steps.ahead
        self.reminders = book.ReminderBook(rows, self._steps.ahead)
        self._known_config = config
        self._take_settings(config, now)
        self._warn_of(opening.config.trouble, opening.reminders.trouble)
        if opening.held_by is not None:
            self.log(Level.WARNING, texts.standby(opening.held_by))
        elif took_over:
            self.log(Level.INFO, "the other server is gone: this one has taken over its files")
        if opening.config.value is None and not standby:
            self.config_ledger.change()
        self._stranded_due = True

    def policy_came(self, *, as_request: bool) -> None:
        """The host sent a policy (or took one away): what it allows now is sent by ``pump``."""
        if as_request:
            self.refusal = None
            self.tick_refused = None
            self._pushes.policy += 1
            self.schedule.policy_came()
            if self.blocked() is None:
                self.reminders.retry()
        self._stranded_due = True

    def answered(self, sent: Sent, answer: Answer, now: Moment) -> None:
        """The host answered a push of ours, however late."""
        outcome = delivery.read_answer(answer)
        if isinstance(outcome, delivery.Taken):
            self.refusal = None
        elif outcome.blocking and sent.policy == self._pushes.policy:
            self.refusal = outcome.reason
            self._probe_at = now.monotonic + PROBE_EVERY_MS
        if isinstance(sent, SentTick):
            self._tick_answered(sent, outcome, now)
        else:
            self._reminder_answered(sent, str(answer.id), outcome, now)

    def saved(self, document: Document, outcome: SaveOutcome, now: Moment) -> None:
        """The save that was under way ended."""
        ledger = self.config_ledger if document is Document.CONFIG else self.reminders_ledger
        if isinstance(outcome, Changed):
            self._merge(ledger, outcome, now)
            return
        failed_before = ledger.failure
        ledger.settle(outcome, now.monotonic)
        if isinstance(outcome, NotSaved):
            if outcome.reason != failed_before:
                reason = outcome.reason
                self.log(Level.WARNING, f"the {document} file could not be saved: {reason}")
        elif failed_before is not None:
            self.log(Level.INFO, f"the {document} file is saved again")
        if isinstance(outcome, Saved) and outcome.note is not None:
            self.log(Level.WARNING, outcome.note)

    def pump(self, now: Moment) -> None:
        """Do what is due at ``now``. Ends every pass."""
        if not self.ready:
            return
        if self.held_by is None:
            self._pass_time(now)
            self._send_due(now)
            self.note_config()
        for ledger, value in (
            (self.config_ledger, self.config),
            (self.reminders_ledger, self.reminders.snapshot),
        ):
            save = ledger.begin(value)
            if save is not None:
                self.emit(save)
        if self._stranded_due:
            self._stranded_due = False
            blocked = self.blocked() or self.refusal
            if blocked is not None and len(self.reminders):
                self.log(Level.WARNING, texts.stranded(len(self.reminders), blocked))

    def next_alarm(self) -> tuple[int | None, int | None]:
        """When (wall ms, monotonic ms) ``pump`` next has something to do."""
        if not self.ready or self.held_by is not None:
            return None, None
        wall = None if self.schedule.state is schedule.Tick.PAUSED else self.schedule.slot
        monotonic = self.reminders.next_monotonic()
        waiting = self.reminders.next_waiting()
        if waiting is not None and self.blocked() is None:
            if self.refusal is None:
                wall = _sooner(wall, waiting)
            else:
                monotonic = _sooner(monotonic, self._probe_at)
        monotonic = _sooner(monotonic, self.config_ledger.next_monotonic)
        return wall, _sooner(monotonic, self.reminders_ledger.next_monotonic)

    # Heartbeats -----------------------------------------------------------------------------------

    def push_tick(
        self,
        occurrence: schedule.Occurrence,
        now: Moment,
        *,
        manual: bool = False,
        fallback: bool = False,
    ) -> None:
        """Send a heartbeat as the settings say; ``fallback``: as a message whatever they say."""
        if not manual:
            self.out_since = now.wall
        self._pushes.heartbeat(
            occurrence, self.settings, now.wall, manual=manual, fallback=fallback
        )

    def _tick_answered(
        self, sent: SentTick, outcome: delivery.Taken | delivery.Refused, now: Moment
    ) -> None:
        if isinstance(outcome, delivery.Taken):
            self.tick_refused = None
            if sent.silent:
                self.silent_refused = False
            if not sent.manual:
                self.schedule.taken(sent.occurrence)
            return
        current = sent.manual or self.schedule.awaits(sent.occurrence)
        if sent.silent and outcome.empty:
            self.silent_refused = True
            if not self._warned_of_silence:
                self._warned_of_silence = True
                self.log(Level.WARNING, f"{texts.SILENT_REFUSED} ({outcome.reason})")
            if current and self.blocked() is None:
                self.push_tick(sent.occurrence, now, manual=sent.manual, fallback=True)
                return
        if not sent.manual:
            self.schedule.refused(sent.occurrence)
        self.tick_refused = (now.wall, outcome.reason)
        kind = "the heartbeat fired by hand" if sent.manual else "a heartbeat"
        self.log(Level.WARNING, f"the host did not take {kind}: {outcome.reason}")

    def _send_due(self, now: Moment) -> None:
        blocked = self.blocked()
        slot = self.schedule.slot
        verdict = self.schedule.tick(now.wall, now.monotonic, blocked is None)
        if verdict is schedule.Verdict.SEND:
            assert self.schedule.occurrence is not None
            self.push_tick(self.schedule.occurrence, now)
        elif verdict is schedule.Verdict.SUPPRESSED:
            self.log_suppressed(blocked or "")
        elif verdict is schedule.Verdict.SKIPPED:
            self.log(Level.WARNING, texts.skipped(slot, self.out_since, self.zone))
        if blocked is None:
            for row in self._due_reminders(now):
                request_id = self._pushes.reminder(row, now.wall)
                self.reminders.sent(row, request_id, now.wall, now.monotonic)

    # Reminders ------------------------------------------------------------------------------------

    def _due_reminders(self, now: Moment) -> list[Reminder]:
        """What to send now: all that is due; at a host that denies wakes, retries and a probe."""
        if self.refusal is None:
            return self.reminders.due(now.wall, BURST)
        again = self.reminders.due_again(BURST)
        if again or now.monotonic < self._probe_at:
            return again
        self._probe_at = now.monotonic + PROBE_EVERY_MS
        return self.reminders.due(now.wall, 1)

    def _reminder_answered(
        self,
        sent: SentReminder,
        request_id: str,
        outcome: delivery.Taken | delivery.Refused,
        now: Moment,
    ) -> None:
        self._stranded_due = True
        occurrence = sent.occurrence
        if isinstance(outcome, delivery.Taken):
            if self.reminders.taken(occurrence, now.wall):
                self._pushes.settled(occurrence.id)
                self.reminders_ledger.change()
        elif self.reminders.refused(
            occurrence, request_id, outcome.reason, now.wall, now.monotonic
        ):
            self.log(Level.WARNING, f"reminder {occurrence.id} is held: {outcome.reason}")

    def forget_reminder(self, id: str) -> None:
        """A reminder was cancelled: what the host still answers to its pushes is passed over."""
        self._pushes.settled(id)

    # Time, files, words ---------------------------------------------------------------------------

    def note_config(self) -> None:
        """Mark the config as changed when the settings or the schedule's place in it have moved."""
        config = self.config()
        if config != self._known_config:
            self._known_config = config
            self.config_ledger.change()

    def save_again(self) -> None:
        """The server is about to leave: what could not be saved is tried once more."""
        self.config_ledger.save_again()
        self.reminders_ledger.save_again()

    def strand(self) -> None:
        """Have the log say at the end of this pass which reminders cannot fire, if any."""
        self._stranded_due = True

    def log_suppressed(self, reason: str) -> None:
        """A heartbeat could not be sent: say why in the log (seed)."""
        self.log(Level.WARNING, texts.suppressed(reason))

    def log(self, level: Level, text: str) -> None:
        """One line for the operator."""
        self.emit(Log(level, text))

    def _pass_time(self, now: Moment) -> None:
        for row in self.reminders.pass_time(now.wall, now.monotonic):
            self.log(Level.WARNING, f"reminder {row.id} is held: {book.UNANSWERED}")
        self.config_ledger.pass_time(now.monotonic)
        self.reminders_ledger.pass_time(now.monotonic)

    def _clock_stepped(self, step: Step, now: Moment) -> None:
        self.log(Level.INFO, texts.CLOCK_STEPPED)
        self.schedule.shift(step, now.wall)
        if self.reminders.shift(step, now.wall) and self.held_by is None:
            self.reminders_ledger.change()

    def _take_settings(self, config: Config, now: Moment) -> None:
        self.settings = config
        self.schedule.restore(
            texts.interval_ms(config),
            config.paused,
            (config.next_at, config.next_event_id),
            now.wall,
        )

    def _merge(self, ledger: Ledger, outcome: Changed, now: Moment) -> None:
        theirs: Any = outcome.opened.value
        whole = outcome.opened.trouble is None
        if ledger is self.config_ledger:
            ours = self.config()
            merged = merge_config(ledger.base or Config(), theirs, ours, whole=whole)
            if merged.took is not None:
                self._take_hand_edit(merged.value, ours, now)
        else:
            rows = self.reminders.snapshot()
            merged = merge_reminders(ledger.base, theirs, rows, whole=whole)
            self.reminders.replace(merged.value)
        self._warn_of(outcome.opened.trouble)
        took = None if merged.took is None else texts.foreign(ledger.document, merged.took)
        if took is not None:
            self.log(Level.WARNING, took)
        ledger.merged(theirs, outcome.opened.trouble, took)

    def _take_hand_edit(self, config: Config, ours: Config, now: Moment) -> None:
        """Run on a config changed by another hand; the schedule moves only where that says so."""
        self._known_config = config
        self.settings = config
        if texts.interval_ms(config) != texts.interval_ms(ours) and not config.paused:
            self.schedule.rearm(texts.interval_ms(config), now.wall)
        elif (config.paused, config.next_at) != (ours.paused, ours.next_at):
            self._take_settings(config, now)

    def _warn_of(self, *troubles: Trouble | None) -> None:
        for trouble in troubles:
            if trouble is not None:
                self.log(Level.WARNING, trouble.text)


def _sooner(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one if one <= other else other
