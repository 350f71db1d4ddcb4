"""Servers that lose a reminder, send it twice, or send it as something else."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

import collections
from typing import Any

import msgspec

from conformance.mutants import Patch, mutant
from mcpl_heartbeat import times
from mcpl_heartbeat.wake import calls, delivery, due, reminders, texts
from mcpl_heartbeat.wake.pushes import Pushes
from mcpl_heartbeat.wake.reminders import Event, Held, Life, Out, ReminderBook


@mutant(
    "A reminder that the host refuses is dropped.",
    caught_by=("agent-framework-0.20/host-is-stopping", "misbehaving/refusing"),
)
def dropped_on_refusal(patch: Patch) -> None:
    def dropped(self: ReminderBook, occurrence: Any, *rest: Any) -> bool:
        return self.cancel(occurrence.id) is not None

    patch(ReminderBook, "refused", dropped)


@mutant(
    "Sent again, an occurrence has a new eventId.",
    caught_by=(
        "agent-framework-0.20/host-is-stopping",
        "agent-framework-0.9/held-until-the-next-add",
    ),
)
def new_event_id_on_retry(patch: Patch) -> None:
    event_id = delivery.event_id
    sent: collections.Counter[str] = collections.Counter()

    def counted(row: Any) -> str:
        id = event_id(row)
        sent[id] += 1
        return id if sent[id] == 1 else f"{id}_{sent[id]}"

    patch(delivery, "event_id", counted)


@mutant(
    "accepted:false with reason duplicate counts as a refusal.",
    caught_by="agent-framework-0.20/duplicate-is-taken",
)
def duplicate_not_taken(patch: Patch) -> None:
    read_answer = delivery.read_answer

    def literal(answer: Any) -> Any:
        if answer.result is not None and b'"duplicate"' in bytes(answer.result):
            return delivery.Refused("duplicate")
        return read_answer(answer)

    patch(delivery, "read_answer", literal)


@mutant(
    "The reason duplicate counts in small letters only.",
    caught_by={"agent-framework-0.20/duplicate-in-another-case": "Capital, and taken."},
)
def duplicate_by_the_letter(patch: Patch) -> None:
    read_answer = delivery.read_answer

    def strict(answer: Any) -> Any:
        result = bytes(answer.result or b"")
        if b"duplicate" in result.lower() and b'"duplicate"' not in result:
            return delivery.Refused("Duplicate")
        return read_answer(answer)

    patch(delivery, "read_answer", strict)


@mutant(
    "Any answer without an error counts as taken.",
    caught_by=("misbehaving/refusing-with-odd-errors", "mcpl-cc-bridge/not-admitted"),
)
def any_answer_taken(patch: Patch) -> None:
    read_answer = delivery.read_answer

    def trusting(answer: Any) -> Any:
        return read_answer(answer) if answer.error is not None else delivery.Taken()

    patch(delivery, "read_answer", trusting)


@mutant(
    "An answer that comes after 30 s is ignored.",
    caught_by="agent-framework-0.20/pushes-held-for-hours",
)
def late_answer_ignored(patch: Patch) -> None:
    taken = ReminderBook.taken

    def punctual(self: ReminderBook, occurrence: Any, now: int) -> bool:
        return isinstance(self.state(occurrence.id), Out) and taken(self, occurrence, now)

    patch(ReminderBook, "taken", punctual)


@mutant(
    "The host's answer brings back a reminder that was cancelled while its push was out.",
    caught_by="agent-framework-0.20/cancelled-by-the-woken-agent",
)
def cancelled_still_fires(patch: Patch) -> None:
    cancel, taken = ReminderBook.cancel, ReminderBook.taken
    buried: dict[str, Any] = {}

    def shallow(self: ReminderBook, id: str) -> Any:
        row = cancel(self, id)
        if row is not None:
            buried[id] = row
        return row

    def risen(self: ReminderBook, occurrence: Any, now: int) -> bool:
        row = buried.pop(occurrence.id, None)
        if row is not None:
            self.add(msgspec.structs.replace(row, fire_at=reminders.next_due(row, now)))
        return taken(self, occurrence, now)

    patch(Pushes, "settled", lambda self, id: None)
    patch(ReminderBook, "cancel", shallow)
    patch(ReminderBook, "taken", risen)


@mutant(
    "A recurring reminder fires once for each period it missed.",
    caught_by=(
        "time/down-for-days",
        "time/suspended-for-the-night",
        "time/blocked-over-many-slots",
        "files/missed-reminders-in-the-file",
    ),
)
def each_missed_period(patch: Patch) -> None:
    def following(row: Any, now: int) -> int:
        return int(row.fire_at + (reminders.every_ms(row) or 0))

    patch(reminders, "next_due", following)


@mutant(
    "A recurring reminder that was missed is not caught up with: it comes at its next time.",
    caught_by={
        "files/missed-reminders-in-the-file": "rem_often_${due}",
        "time/down-for-days": "${daily}_1790036000000",
    },
)
def no_catch_up(patch: Patch) -> None:
    due = ReminderBook.due

    def ahead_only(self: ReminderBook, now: int, limit: int) -> Any:
        for row in list(self.rows.values()):
            if row.every_seconds is not None and row.fire_at < now - 1000:
                self.taken(reminders.Occurrence(row.id, row.fire_at), now)
        return due(self, now, limit)

    patch(ReminderBook, "due", ahead_only)


@mutant(
    "A one-shot that was missed is dropped.",
    caught_by={"files/missed-reminders-in-the-file": '"reminderId":"rem_once"'},
)
def missed_one_shot_dropped(patch: Patch) -> None:
    due = ReminderBook.due

    def punctual(self: ReminderBook, now: int, limit: int) -> Any:
        for row in list(self.rows.values()):
            if row.every_seconds is None and row.fire_at < now - 1000:
                self.cancel(row.id)
        return due(self, now, limit)

    patch(ReminderBook, "due", punctual)


@mutant(
    "The next time counts from the host's answer, so it drifts.",
    caught_by=("time/no-drift", "time/suspended-for-the-night"),
)
def drift(patch: Patch) -> None:
    def drifting(row: Any, now: int) -> int:
        return now + (reminders.every_ms(row) or 0)

    patch(reminders, "next_due", drifting)


@mutant("Reminders due at once leave in the order of the file.", caught_by="time/due-in-order")
def file_order(patch: Patch) -> None:
    def as_filed(self: ReminderBook, now: int, limit: int) -> list[Any]:
        due = [row for row in self.rows.values() if row.fire_at <= now]
        return [row for row in due if self.state(row.id) is None][:limit]

    patch(ReminderBook, "due", as_filed)


@mutant(
    "A reminder's words arrive without the header that says what they are.",
    caught_by=("agent-framework-0.20/one-shot-reminder", "agent-framework-0.20/recurring-reminder"),
)
def no_header(patch: Patch) -> None:
    patch(delivery, "reminder_text", lambda row, zone, now: row.message)


@mutant(
    "A late reminder does not say when it was due.",
    caught_by=("misbehaving/wakes-before-initialize", "time/down-for-days"),
)
def late_without_a_word(patch: Patch) -> None:
    patch(delivery, "LATE_MS", 10**15)


@mutant(
    "A one-shot is removed when it is sent, before the host has taken it.",
    caught_by=("misbehaving/slow", "agent-framework-0.20/host-is-stopping"),
)
def gone_before_taken(patch: Patch) -> None:
    sent = ReminderBook.sent

    def eager(self: ReminderBook, row: Any, *rest: Any) -> None:
        sent(self, row, *rest)
        if row.every_seconds is None:
            self.cancel(row.id)

    patch(ReminderBook, "sent", eager)


@mutant(
    "A recurring reminder advances when it is sent, whatever the host says.",
    caught_by=("files/killed-with-a-push-out", "time/recurring-refused"),
)
def advanced_before_taken(patch: Patch) -> None:
    sent = ReminderBook.sent

    def eager(self: ReminderBook, row: Any, request_id: str, wall: int, monotonic: int) -> None:
        sent(self, row, request_id, wall, monotonic)
        if row.every_seconds is not None:
            self.taken(reminders.Occurrence(row.id, row.fire_at), wall)

    patch(ReminderBook, "sent", eager)


@mutant(
    "An unanswered reminder is never held.",
    caught_by=(
        "agent-framework-0.9/unanswered-for-thirty-seconds",
        "agent-framework-0.20/pushes-held-for-hours",
    ),
)
def never_held(patch: Patch) -> None:
    patch(reminders, "ANSWER_WITHIN_MS", 10**12)


@mutant(
    "What was refused is not tried again before a restart.",
    caught_by=(
        "agent-framework-0.9/held-until-the-next-add",
        "agent-framework-0.9/held-until-the-next-cancel",
        "agent-framework-0.20/host-is-stopping",
    ),
)
def held_for_ever(patch: Patch) -> None:
    patch(ReminderBook, "retry", lambda self: None)


@mutant(
    "A refused reminder is pressed on the host again and again.", caught_by="misbehaving/refusing"
)
def pesters_the_host(patch: Patch) -> None:
    hold = ReminderBook._hold

    def impatient(self: ReminderBook, row: Any, event: Any, reason: str, *clocks: int) -> Any:
        life = hold(self, row, event, reason, *clocks)
        state = self._states.get(row.id)
        if isinstance(state, Held) and state.retry_at is None:
            again = clocks[1] + 300
            self._states[row.id] = msgspec.structs.replace(state, retry_at=again)
            self._retries.add((again, row.id))
        return life

    patch(ReminderBook, "_hold", impatient)


@mutant(
    "A recurring reminder that was refused once never comes again by itself.",
    caught_by="time/recurring-refused",
)
def no_retry_after_an_interval(patch: Patch) -> None:
    hold = ReminderBook._hold

    def resigned(self: ReminderBook, row: Any, *rest: Any) -> Any:
        once = msgspec.structs.replace(row, every_seconds=None)
        return hold(self, once, *rest)

    patch(ReminderBook, "_hold", resigned)


@mutant(
    "A policy sends what is already out once more.",
    caught_by=(
        "misbehaving/two-policies-at-once",
        "agent-framework-0.20/policy-while-pushes-are-out",
    ),
)
def policy_sends_twice(patch: Patch) -> None:
    def everything(self: ReminderBook) -> None:
        for id in list(self._states):
            self._move(self.rows[id], Event.RETRY)

    patch(
        reminders, "TRANSITIONS", {**reminders.TRANSITIONS, (Life.OUT, Event.RETRY): Life.WAITING}
    )
    patch(ReminderBook, "retry", everything)


@mutant(
    "The list does not say why a reminder waits.",
    caught_by="agent-framework-0.20/without-push-events",
)
def list_without_why(patch: Patch) -> None:
    patch(texts, "waits_because", lambda reason: "")


@mutant(
    "On a host that takes no wake a reminder is set as if it would fire.",
    caught_by=("agent-framework-0.1/notification-only", "mcpl-cc-bridge/configured-as-plain"),
)
def never_fires_unsaid(patch: Patch) -> None:
    patch(texts, "never_fires", lambda reason: "")


@mutant(
    "A second reminder like the first is not told of it.",
    caught_by="plain-mcp/twins-and-unknown-ids",
)
def twin_unsaid(patch: Patch) -> None:
    patch(ReminderBook, "twins", lambda self, row: [])


@mutant("A long list is not cut.", caught_by="plain-mcp/long-list")
def list_without_end(patch: Patch) -> None:
    patch(texts, "LIST_CHARACTERS", 10**9)


@mutant(
    "A moment without an offset is read in UTC, not in the agent's zone.",
    caught_by=("plain-mcp/local-time", "time/dst-gap", "time/dst-fold"),
)
def moments_read_in_utc(patch: Patch) -> None:
    patch(due, "read_instant", lambda text, zone: times.read_instant(text, times.UTC))


@mutant("Lengths are cut to whole seconds.", caught_by="plain-mcp/units-add-up")
def whole_seconds_only(patch: Patch) -> None:
    patch(calls, "_seconds", lambda ms: ms // 1000)
