"""The push that wakes an agent when claimable tasks have appeared (``wake_on_tasks``).

The store offers each wake under a number of its own until one host has taken it, so there is
nothing to keep here but the one push that is out. It tells how many tasks can be claimed, however
many have appeared; the next one leaves ``REST_MS`` after it at the earliest. A push that the host
refuses, or leaves unanswered for ``ANSWER_WITHIN_MS``, is let go, so that another server may try,
and *held*: it is sent again at the next policy, and once a minute. A late answer counts.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from mcpl_heartbeat.actions import Action, Level, Log, Moment, Woken
from mcpl_heartbeat.policy import pushing
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.watch.pushes import (
    ANSWER_WITHIN_MS,
    PROBE_EVERY_MS,
    REMEMBERED,
    REST_MS,
    UNANSWERED,
    Send,
)
from mcpl_heartbeat.watch.words import counted

FEATURE_SET = "tasks"
COALESCE_KEY = "tasks"


class Work(Protocol):
    """Claimable tasks as the store tells of them (``storage.store.ports.Work``)."""

    @property
    def of(self) -> str:
        """Of which namespace, as a short hash."""

    @property
    def claimable(self) -> int:
        """How many tasks can be claimed."""

    @property
    def number(self) -> int:
        """Which wake of this namespace it is, counted up."""


class WorkPush(msgspec.Struct, frozen=True):
    """A push that left: what it told of, and when (monotonic ms)."""

    work: Any
    left_at: int


class WorkPushes:
    """See the module. ``forget`` takes the id of a request to whose answer nobody listens now."""

    def __init__(
        self,
        *,
        zone: Zone,
        send: Send,
        forget: Callable[[str], None],
        emit: Callable[[Action], None],
    ) -> None:
        self._zone = zone
        self._send = send
        self._forget = forget
        self._emit = emit
        self._out: WorkPush | None = None
        self._left: deque[str] = deque()
        self._taken: Work | None = None
        self._rest_until = 0
        self._probe_at = 0
        self.held: str | None = None
        """Why the host did not take the last one."""

    def seeks(self, blocked: bool, now: Moment) -> bool:
        """Whether one could leave at once, if there were any."""
        return not blocked and self._out is None and now.monotonic >= self._rest_until

    def next_moment(self, now: Moment) -> int | None:
        """When (monotonic ms) that or what is out next changes by itself."""
        if self._out is not None:
            return self._out.left_at + ANSWER_WITHIN_MS
        return self._rest_until if now.monotonic < self._rest_until else None

    def news(self, work: Work, blocked: bool, coalesces: bool, now: Moment) -> None:
        """Work has appeared of which the agent was not told, and is claimed for this server."""
        taken = self._taken
        if taken is not None and (taken.of, taken.number) == (work.of, work.number):
            # The store had not heard of it yet. What has appeared since was not told.
            self._emit(Woken(taken, taken=True))
        elif not self.seeks(blocked, now):
            # It was looked for before the last push left, or before the policy changed.
            if self._out is None or self._out.work.number != work.number:
                self._emit(Woken(work, taken=False))
        elif self.held is not None and now.monotonic < self._probe_at:
            self._emit(Woken(work, taken=False))
            self._rest_until = now.monotonic + REST_MS
        else:
            self._push(work, coalesces, now)

    def quiet(self) -> None:
        """There is nothing to tell of any more, or another server does."""
        self.held = None

    def answered(
        self, push: WorkPush, outcome: pushing.Taken | pushing.Refused, now: Moment
    ) -> None:
        """The host answered this push, however late."""
        current = push is self._out
        if current:
            self._out = None
        if isinstance(outcome, pushing.Taken):
            self._emit(Woken(push.work, taken=True))
            self._taken = push.work
            self.held = None
        elif current:
            self._hold(push, outcome.reason, now)

    def pass_time(self, now: Moment) -> None:
        """Hold what has been out for too long."""
        push = self._out
        if push is not None and now.monotonic >= push.left_at + ANSWER_WITHIN_MS:
            self._out = None
            self._hold(push, UNANSWERED, now)

    def retry(self) -> None:
        """A policy came: what is held may be sent again."""
        self._probe_at = 0

    def leave(self) -> None:
        """The host is gone: another server may push what it did not take."""
        if self._out is not None:
            self._emit(Woken(self._out.work, taken=False))
            self._out = None

    def _push(self, work: Work, coalesces: bool, now: Moment) -> None:
        push = WorkPush(work, now.monotonic)
        self._out = push
        self._rest_until = now.monotonic + REST_MS
        event = work_event(work, self._zone, now.wall)
        if coalesces:
            event["coalesce"] = {"key": COALESCE_KEY}
        self._left.append(self._send(event, push))
        if len(self._left) > REMEMBERED:
            self._forget(self._left.popleft())

    def _hold(self, push: WorkPush, reason: str, now: Moment) -> None:
        self._emit(Woken(push.work, taken=False))
        if self.held != reason:
            self._emit(Log(Level.WARNING, f"the wake for claimable tasks is held: {reason}"))
        self.held = reason
        self._probe_at = now.monotonic + PROBE_EVERY_MS
        self._rest_until = max(self._rest_until, now.monotonic + REST_MS)


def work_event(work: Work, zone: Zone, now: int) -> dict[str, Any]:
    """The params of the ``push/event``, sent at wall ``now``; the same wake has the same id."""
    text = (
        f"[{local_time(now, zone)}] {counted(work.claimable, 'task')} can be claimed: "
        "list_agent_tasks with status available shows what waits, claim_agent_task takes one. You "
        "asked to be woken with wake_on_tasks; the next such wake comes when further work appears."
    )
    origin = {"source": "tasks", "claimable": work.claimable}
    params = pushing.event(FEATURE_SET, f"tasks_{work.of}_{work.number}", now, origin, text)
    params["tags"] = ["tasks:available"]
    return params
