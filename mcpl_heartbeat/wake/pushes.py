"""The pushes that are out: each is a Request of ours, and this is who remembers what it was about.

A late answer still counts (issue §4), so unanswered requests are remembered; but a host that never
answers must not fill the memory, so only the newest few of each reminder and of the heartbeat are.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from mcpl_heartbeat.actions import Action, Push
from mcpl_heartbeat.jsonrpc.outgoing import Outgoing
from mcpl_heartbeat.times import Zone
from mcpl_heartbeat.wake import delivery, reminders, schedule
from mcpl_heartbeat.wake.files import Config, Reminder

REMEMBERED_PER_REMINDER = 4
REMEMBERED_HEARTBEATS = 100


class Coalescing(Protocol):
    """What a push needs to know of the host."""

    @property
    def coalesces(self) -> bool:
        """Whether the host replaces unread pushes of one key (RFC-006)."""


class Denied(Protocol):
    """Why no wake may be pushed (``policy.grant``)."""

    @property
    def reason(self) -> str:
        """One clause."""

    @property
    def never(self) -> bool:
        """Whether this host, as it is, never lets one through."""


class Gate(Coalescing, Protocol):
    """What the wing needs to know of the negotiated policy."""

    def verdict(self, feature_set: str) -> Denied | None:
        """``None`` when a wake of this feature set may be pushed."""


class SentTick(msgspec.Struct, frozen=True):
    """A heartbeat that was pushed."""

    occurrence: schedule.Occurrence
    manual: bool
    silent: bool
    policy: int
    """Which policy it was sent under, counted from 0."""


class SentReminder(msgspec.Struct, frozen=True):
    """A reminder that was pushed."""

    occurrence: reminders.Occurrence
    policy: int
    """Which policy it was sent under, counted from 0."""


Sent = SentTick | SentReminder


class Pushes:
    """Sends wakes and remembers them. ``emit`` takes each ``Push`` as it arises."""

    def __init__(
        self,
        *,
        outgoing: Outgoing[Sent],
        host: Coalescing,
        zone: Zone,
        emit: Callable[[Action], None],
    ) -> None:
        self._outgoing = outgoing
        self._host = host
        self._zone = zone
        self._emit = emit
        self._heartbeats: deque[str] = deque()
        self._reminders: dict[str, deque[str]] = {}
        self.policy = 0
        """How many policies have come into force so far."""

    def heartbeat(
        self,
        occurrence: schedule.Occurrence,
        settings: Config,
        now: int,
        *,
        manual: bool,
        fallback: bool,
    ) -> None:
        """Send a heartbeat, silently when the mode says so and this is no fallback."""
        silent = settings.delivery_mode == "silent" and not fallback
        event = delivery.heartbeat_event(
            event_id=occurrence.event_id + ("m" if fallback else ""),
            manual=manual,
            silent=silent,
            fallback=fallback,
            message=settings.message,
            coalesces=self._host.coalesces,
            zone=self._zone,
            now=now,
        )
        self._heartbeats.append(
            self._push(event, SentTick(occurrence, manual, silent, self.policy))
        )
        if len(self._heartbeats) > REMEMBERED_HEARTBEATS:
            self._outgoing.forget(self._heartbeats.popleft())

    def reminder(self, row: Reminder, now: int) -> str:
        """Send a due reminder; the id of its request."""
        event = delivery.reminder_event(
            row, coalesces=self._host.coalesces, zone=self._zone, now=now
        )
        occurrence = reminders.Occurrence(row.id, row.fire_at)
        request_id = self._push(event, SentReminder(occurrence, self.policy))
        requests = self._reminders.setdefault(row.id, deque())
        requests.append(request_id)
        if len(requests) > REMEMBERED_PER_REMINDER:
            self._outgoing.forget(requests.popleft())
        return request_id

    def settled(self, id: str) -> None:
        """The reminder was taken or is gone: what is still answered to its pushes is no matter."""
        for request_id in self._reminders.pop(id, ()):
            self._outgoing.forget(request_id)

    def _push(self, event: dict[str, Any], sent: Sent) -> str:
        request_id, line = self._outgoing.open("push/event", event, sent)
        self._emit(Push(line, event["eventId"]))
        return request_id
