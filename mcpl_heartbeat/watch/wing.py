"""The watch wing on one MCPL connection: its tools, and what wakes the agent of it. Pure.

What the tools come to is the store's affair (``Ask``); this wing says when to look for alerts and
nudges (``Listen``), pushes them, and tells the store what the host took (``Settle``)
or was not there to take (``Unsent``).
"""

from typing import Any, Protocol

from mcpl_heartbeat.actions import Listen, Moment
from mcpl_heartbeat.jsonrpc.messages import Answer
from mcpl_heartbeat.policy.manifest import WATCH
from mcpl_heartbeat.policy.pushing import Taken, read_answer
from mcpl_heartbeat.watch import nudges, pushes
from mcpl_heartbeat.watch.calls import TELLING, WatchCalls
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.rows import Envelope, Nudge
from mcpl_heartbeat.watch.store_wing import StoreWing
from mcpl_heartbeat.watch.tools import TOOLS
from mcpl_heartbeat.watch.words import counted
from mcpl_heartbeat.wings import Annex, Connection

INSTRUCTIONS = (
    "It also watches whether you live: heartbeat arms a dead-man switch that frees your leases, "
    "marks your work failed and alerts whom you name if your next beat is late; resume_packet "
    "briefs whoever takes the work up."
)


class News(Protocol):
    """What is to be pushed, as the store gives it (``storage.store.ports.News``)."""

    @property
    def now(self) -> Reading:
        """The time at which the store looked."""

    @property
    def alerts(self) -> tuple[Envelope, ...]:
        """Mail of switches that fired."""

    @property
    def standing(self) -> tuple[Nudge, ...]:
        """Of the nudges asked about (``Listen.held``): those that are still to be sent."""

    @property
    def void(self) -> tuple[Nudge, ...]:
        """And those that are not: a beat came by another door."""

    @property
    def nudges(self) -> tuple[Nudge, ...]:
        """Switches of the agent that are due soon."""

    @property
    def quiet(self) -> frozenset[str]:
        """What was looked for and is not there: ``alerts``, ``reviews``, ``work``."""


class WatchWing(StoreWing):
    """See the module, and ``wings.Wing``."""

    def __init__(self, connection: Connection) -> None:
        calls = WatchCalls(
            emit=connection.emit, ask_id=connection.ask_id, troubles=connection.troubles
        )
        super().__init__(connection, calls, WATCH)
        connection.troubles.append(self._troubles_of)
        self._alerts = pushes.AlertPushes(**self._ways_out)
        self._nudges = nudges.NudgePushes(**self._ways_out)
        self._listening = Listen(None, here=False)

    def told(self, id: int, outcome: Result | Failure, now: Moment) -> None:
        """The store has answered."""
        beaten = self._calls.told(id, outcome, now)
        if beaten is not None:
            self._nudges.beaten(beaten)

    # Pushes ---------------------------------------------------------------------------------------

    def news(self, news: News, asked: Moment, now: Moment) -> None:
        """What the store has to push; ``asked`` is a moment before it looked."""
        self._alerts.news(news.alerts, self._blocked is not None, now)
        if "alerts" in news.quiet:
            self._alerts.quiet()
        self._nudges.checked(news.standing, news.void, news.now, asked)
        self._nudges.news(news.nudges, news.now, asked, now)
        if self._left:
            # They were on their way when it went.
            self._nudges.leave()

    def answered(self, subject: Any, answer: Answer, now: Moment) -> None:
        """The host answered a push, however late."""
        policy, about = subject
        outcome = read_answer(answer)
        self._reach.heard(policy, outcome)
        if isinstance(outcome, Taken):
            self._nudges.retry()
        if isinstance(about, pushes.AlertPush):
            self._alerts.answered(about, outcome, now)
        else:
            self._nudges.answered(about, outcome, now)

    def policy_came(self, *, as_request: bool) -> None:
        """The host sent a policy, or took one away."""
        if as_request:
            self._reach.renew()
            self._alerts.retry()
            self._nudges.policy_came()

    def pump(self, now: Moment) -> None:
        """Send what can be sent, and say what to look for from here on."""
        blocked = self._blocked is not None
        self._alerts.pass_time(now)
        self._nudges.pump(blocked, self._gate.coalesces, now)
        wanted = None if blocked else self._alerts.wanted(blocked, now)
        here = not blocked and self._reach.refusal is None
        listening = Listen(wanted, here, () if blocked else self._nudges.doubtful)
        if listening != self._listening:
            self._listening = listening
            self._emit(listening)
        self._wake_at(self._alerts.next_moment(now), self._nudges.next_moment(blocked))

    def leave(self) -> None:
        """The host is gone: another server may push what it did not take."""
        super().leave()
        self._alerts.leave()
        self._nudges.leave()

    def _troubles_of(self, tool: str, result: Result) -> tuple[str, ...]:
        """Say what does not reach the agent, where it looks."""
        return self._troubles() if tool in TELLING else ()

    def _troubles(self) -> tuple[str, ...]:
        if self._blocked is not None:
            return (f"Alerts and nudges cannot wake you here, poll for them: {self._blocked}.",)
        said = []
        held = self._alerts.held
        if held is not None:
            said.append(
                f"The host does not take {counted(len(held.marks), 'alert')} for you, so poll with "
                f"inbox_poll: {held.reason}."
            )
        nudges = self._nudges.held
        if nudges is not None:
            said.append(f"The host does not take {counted(nudges[0], 'nudge')}: {nudges[1]}.")
        return tuple(said)


WATCH_WING = Annex(WATCH, TOOLS, INSTRUCTIONS, WatchWing)
"""The watch wing, for a session that has a store."""
