"""What the heartbeat's status says: the line with its fixed words, and the same as values.

A status is what hosts and agents ask for most, so what changes only with the settings is worded
once.
"""

from typing import Any, TypeVar

from msgspec import UNSET

from mcpl_heartbeat.actions import Moment
from mcpl_heartbeat.times import local_time
from mcpl_heartbeat.wake import texts
from mcpl_heartbeat.wake.files import Config
from mcpl_heartbeat.wake.reminders import ANSWER_WITHIN_MS
from mcpl_heartbeat.wake.results import StatusResult
from mcpl_heartbeat.wake.wing import WakeWing

Result = TypeVar("Result", bound=StatusResult)


class Status:
    """The status of a ``WakeWing``."""

    def __init__(self, wing: WakeWing) -> None:
        self._wing = wing
        self._worded: tuple[Config, bool] | None = None
        self._head = self._tail = ""
        self._slot = (-1, "")

    def line(self, now: Moment) -> str:
        """The first line of ``heartbeat_status`` (issue §6)."""
        wing = self._wing
        config = wing.settings
        worded = self._worded
        if worded is None or worded[0] is not config or worded[1] is not wing.silent_refused:
            self._worded = (config, wing.silent_refused)
            self._head = texts.status_head(config, silent_refused=wing.silent_refused)
            self._tail = texts.status_tail(config)
        blocked = wing.blocked() or wing.refusal
        coming = "" if blocked or config.paused else f" | next in ~{texts.about(self._left(now))}s"
        delivery = f"BLOCKED ({blocked})" if blocked else "ok"
        count = len(wing.reminders.rows)
        return f"{self._head}{coming} | reminders={count} | delivery={delivery}{self._tail}"

    def values(
        self,
        kind: type[Result],
        now: Moment,
        notes: tuple[str, ...] = (),
        **others: Any,
    ) -> Result:
        """The same as an instance of ``kind``, which may have members of its own."""
        wing = self._wing
        config = wing.settings
        blocked = wing.blocked() or wing.refusal
        coming = not blocked and not config.paused
        return kind(
            state="paused" if config.paused else "active",
            delivery_mode=config.delivery_mode,
            interval_seconds=config.interval_seconds,
            next_at=self._next_at() if coming else UNSET,
            seconds_to_next=self._left(now) / 1000 if coming else UNSET,
            reminders=len(wing.reminders.rows),
            deliverable=not blocked,
            blocked_because=blocked or UNSET,
            message=config.message,
            notes=notes,
            **others,
        )

    def notes(self, now: Moment) -> tuple[str, ...]:
        """The sentences on what the host has refused, held up or not answered."""
        return self._unanswered(now) + self._refused()

    def _refused(self) -> tuple[str, ...]:
        wing = self._wing
        held = wing.reminders.held
        if not held and wing.tick_refused is None:
            return ()
        said = []
        if wing.tick_refused is not None:
            since, reason = wing.tick_refused
            said.append(texts.tick_refused(since, reason, wing.zone))
        if held:
            said.append(texts.some_held(held))
        return tuple(said)

    def _unanswered(self, now: Moment) -> tuple[str, ...]:
        wing = self._wing
        since = wing.out_since
        if wing.schedule.unanswered is None or since is None or now.wall - since < ANSWER_WITHIN_MS:
            return ()
        return (texts.unanswered(since, wing.zone),)

    def _left(self, now: Moment) -> int:
        return max(0, self._wing.schedule.slot - now.wall)

    def _next_at(self) -> str:
        slot = self._wing.schedule.slot
        if self._slot[0] != slot:
            self._slot = (slot, local_time(slot, self._wing.zone))
        return self._slot[1]
