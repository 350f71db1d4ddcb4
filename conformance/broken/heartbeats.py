"""Servers whose heartbeat comes too often, too late, in the wrong form, or not at all."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from typing import Any

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.mcp.tools import ToolResult
from mcpl_heartbeat.wake import clock_steps, delivery, files, schedule, status, texts
from mcpl_heartbeat.wake.calls import WakeCalls
from mcpl_heartbeat.wake.schedule import Schedule, Tick
from mcpl_heartbeat.wake.wing import WakeWing


@mutant(
    "A silent wake that the host refuses as empty is lost.",
    caught_by=(
        "agent-framework-0.20/silent-under-another-id",
        "agent-framework-0.9/empty-push-refused",
    ),
)
def silent_without_fallback(patch: Patch) -> None:
    read_answer = delivery.read_answer

    def never_empty(answer: Any) -> Any:
        outcome = read_answer(answer)
        if isinstance(outcome, delivery.Refused):
            return delivery.Refused(outcome.reason, blocking=outcome.blocking)
        return outcome

    patch(delivery, "read_answer", never_empty)


@mutant(
    "Any error at all turns a silent wake into a message.",
    caught_by="agent-framework-0.20/silent-and-another-error",
)
def fallback_after_any_error(patch: Patch) -> None:
    read_answer = delivery.read_answer

    def always_empty(answer: Any) -> Any:
        outcome = read_answer(answer)
        if isinstance(outcome, delivery.Refused):
            return delivery.Refused(outcome.reason, empty=True, blocking=outcome.blocking)
        return outcome

    patch(delivery, "read_answer", always_empty)


@mutant("A silent wake brings words.", caught_by="agent-framework-0.20/silent-marker")
def silent_with_words(patch: Patch) -> None:
    heartbeat_event = delivery.heartbeat_event

    def wordy(**facts: Any) -> Any:
        event = heartbeat_event(**facts)
        if facts["silent"]:
            event["payload"]["content"] = [{"type": "text", "text": facts["message"]}]
        return event

    patch(delivery, "heartbeat_event", wordy)


@mutant(
    "The fallback goes out under the eventId that the host has just refused.",
    caught_by="agent-framework-0.20/silent-under-another-id",
)
def fallback_under_the_old_id(patch: Patch) -> None:
    heartbeat_event = delivery.heartbeat_event

    def same_id(**facts: Any) -> Any:
        event = heartbeat_event(**facts)
        if facts["fallback"]:
            event["eventId"] = event["eventId"].removesuffix("m")
        return event

    patch(delivery, "heartbeat_event", same_id)


@mutant(
    "The refused silent wake is warned of each time.",
    caught_by=(
        "agent-framework-0.20/silent-under-another-id",
        "agent-framework-0.9/empty-push-refused",
    ),
)
def warns_each_time(patch: Patch) -> None:
    tick_answered = WakeWing._tick_answered

    def forgetful(self: WakeWing, *args: Any) -> None:
        self._warned_of_silence = False
        tick_answered(self, *args)

    patch(WakeWing, "_tick_answered", forgetful)


@mutant(
    "Refused once, silent mode is never tried again.",
    caught_by="agent-framework-0.20/silent-under-another-id",
)
def silent_given_up(patch: Patch) -> None:
    push_tick = WakeWing.push_tick

    def resigned(self: WakeWing, *args: Any, fallback: bool = False, **rest: Any) -> None:
        push_tick(self, *args, fallback=fallback or self.silent_refused, **rest)

    patch(WakeWing, "push_tick", resigned)


@mutant(
    "A heartbeat does not say what time it is.",
    caught_by="agent-framework-0.20/heartbeat-by-hand",
)
def tick_without_time(patch: Patch) -> None:
    heartbeat_event = delivery.heartbeat_event

    def timeless(**facts: Any) -> Any:
        event = heartbeat_event(**facts)
        if not facts["silent"]:
            event["payload"]["content"][0]["text"] = facts["message"]
        return event

    patch(delivery, "heartbeat_event", timeless)


@mutant(
    "Heartbeats pile up at a host that has not answered the last one.",
    caught_by="time/host-busy-over-five-intervals",
)
def ticks_pile_up(patch: Patch) -> None:
    patch(Schedule, "_lost", lambda self, monotonic: True)


@mutant(
    "One refusal ends the schedule.",
    caught_by="agent-framework-0.9/heartbeats-go-on-after-failures",
)
def refusal_ends_the_schedule(patch: Patch) -> None:
    def ended(self: Schedule, occurrence: Any) -> None:
        if self.awaits(occurrence):
            self.pause()

    patch(Schedule, "refused", ended)


@mutant(
    "The next wake is not saved, so each restart begins the interval anew.",
    caught_by={
        "time/restarted-all-the-time": "",
        "time/down-for-days": "",
        "files/next-wake-from-the-file": '"push":{"origin"',
    },
)
def next_wake_not_saved(patch: Patch) -> None:
    restore = Schedule.restore

    def anew(self: Schedule, interval_ms: int, paused: bool, saved: Any, now: int) -> None:
        restore(self, interval_ms, paused, (None, None), now)

    patch(Schedule, "restore", anew)


@mutant(
    "The file is left with the wake that has been sent.",
    caught_by={"files/next-wake-from-the-file": '"nextAt":{"$now":3600}'},
)
def next_wake_not_written(patch: Patch) -> None:
    note_config = WakeWing.note_config

    def lazy(self: WakeWing, *args: Any) -> None:
        if self.schedule.state is not Tick.ARMED:
            note_config(self, *args)

    patch(WakeWing, "note_config", lazy)


@mutant(
    "A wake missed while the server was down is forgotten.",
    caught_by={"time/down-for-days": "", "files/missed-wake-in-the-file": '"push":{'},
)
def missed_wake_forgotten(patch: Patch) -> None:
    restore = Schedule.restore

    def ahead_only(self: Schedule, interval_ms: int, paused: bool, saved: Any, now: int) -> None:
        at, event_id = saved
        if at is not None and at < now:
            at, event_id = at + ((now - at) // interval_ms + 1) * interval_ms, None
        restore(self, interval_ms, paused, (at, event_id), now)

    patch(Schedule, "restore", ahead_only)


@mutant(
    "A heartbeat that was out at a crash comes back under a new eventId.",
    caught_by="time/missed-tick-keeps-its-id",
)
def tick_renamed_by_a_restart(patch: Patch) -> None:
    restore = Schedule.restore

    def renamed(self: Schedule, interval_ms: int, paused: bool, saved: Any, now: int) -> None:
        restore(self, interval_ms, paused, (saved[0], None), now)

    patch(Schedule, "restore", renamed)


@mutant("A heartbeat by hand moves the schedule.", caught_by="time/trigger-moves-nothing")
def trigger_moves_the_schedule(patch: Patch) -> None:
    push_tick = WakeWing.push_tick

    def moving(self: WakeWing, occurrence: Any, now: Any, **rest: Any) -> None:
        push_tick(self, occurrence, now, **rest)
        if rest.get("manual"):
            self.schedule.rearm(texts.interval_ms(self.settings), now.wall)

    patch(WakeWing, "push_tick", moving)


@mutant(
    "The same interval saved again begins a new one.", caught_by="time/re-armed-by-a-new-interval"
)
def same_interval_rearms(patch: Patch) -> None:
    configure = WakeCalls._configure

    def rearming(self: WakeCalls, arguments: Any, extra: Any, now: Any, answer: Any) -> Any:
        reply = configure(self, arguments, extra, now, answer)
        if not self._wing.settings.paused:
            self._wing.schedule.rearm(texts.interval_ms(self._wing.settings), now.wall)
            self._wing.note_config()
        return reply

    patch(WakeCalls, "_configure", rearming)


@mutant(
    "A new interval counts from the last wake, so the old one still comes first.",
    caught_by="time/re-armed-by-a-new-interval",
)
def new_interval_waits_for_the_old(patch: Patch) -> None:
    def lazy(self: Schedule, interval_ms: int, now: int) -> None:
        self.interval_ms = interval_ms
        if self.state is Tick.PAUSED:
            self._move(schedule.Event.REARM)
            self._arm(now + interval_ms)

    patch(Schedule, "rearm", lazy)


@mutant("Heartbeats come while paused.", caught_by="time/paused")
def paused_still_fires(patch: Patch) -> None:
    patch(Schedule, "pause", lambda self: None)


@mutant(
    "The schedule loses a pause over a restart.",
    caught_by=("time/paused", "plain-mcp/settings-in-the-status"),
)
def pause_not_saved(patch: Patch) -> None:
    encode_config = files.encode_config

    def awake(config: Any) -> bytes:
        return encode_config(config).replace(b'"paused": true', b'"paused": false')

    patch(files, "encode_config", awake)


@mutant(
    "The status names a next wake while none can be delivered.",
    caught_by=("agent-framework-0.20/without-push-events", "agent-framework-0.1/notification-only"),
)
def status_promises_a_wake(patch: Patch) -> None:
    line = status.Status.line

    def hopeful(self: Any, now: Any) -> str:
        said = line(self, now)
        return said if "next in" in said else said.replace(" | rem", " | next in ~60s | rem", 1)

    patch(status.Status, "line", hopeful)


@mutant(
    "The trigger says fired when nothing could be sent.",
    caught_by=(
        "agent-framework-0.20/without-push-events",
        "agent-framework-0.1/no-policy-at-all",
        "mcpl-harness/no-policy-until-told",
    ),
)
def trigger_lies(patch: Patch) -> None:
    trigger = WakeCalls._trigger

    def cheerful(self: WakeCalls, *args: Any) -> Any:
        trigger(self, *args)
        return ToolResult("Heartbeat fired")

    patch(WakeCalls, "_trigger", cheerful)


@mutant(
    "A wall clock that is set back stalls what was to come for as long.",
    caught_by=("time/clock-set-back", "time/heartbeat-when-the-clock-goes-back"),
)
def clock_steps_unseen(patch: Patch) -> None:
    patch(clock_steps.ClockSteps, "observe", lambda self, now: None)


@mutant(
    "The log does not say why a heartbeat was dropped.",
    caught_by=("agent-framework-0.1/notification-only", "agent-framework-0.1/no-policy-at-all"),
)
def drops_in_silence(patch: Patch) -> None:
    patch(WakeWing, "log_suppressed", lambda self, reason: None)
