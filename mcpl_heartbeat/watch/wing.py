"""The watch wing on one MCPL connection: its tools, and what wakes the agent of it. Pure.

What the tools come to is the store's affair (``Ask``); this wing says when to look for alerts and
nudges (``Listen``), pushes them, and tells the store what the host took (``Settle``).
"""

from typing import Any, Protocol

from mcpl_heartbeat.actions import Listen, Moment, Push
from mcpl_heartbeat.jsonrpc.messages import Answer
from mcpl_heartbeat.mcp.arguments import Accepted, Refused
from mcpl_heartbeat.mcp.tools import Rules, Tool, ToolResult
from mcpl_heartbeat.policy.manifest import WATCH
from mcpl_heartbeat.policy.pushing import Taken, read_answer
from mcpl_heartbeat.watch import nudges, pushes
from mcpl_heartbeat.watch.calls import TELLING, WatchCalls
from mcpl_heartbeat.watch.calls import Answer as Give
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.reach import Reach
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.rows import Envelope
from mcpl_heartbeat.watch.tools import TOOLS
from mcpl_heartbeat.watch.words import counted
from mcpl_heartbeat.wings import Annex, Connection, Sent

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
    def standing(self) -> tuple[nudges.Told, ...]:
        """Of the nudges asked about (``Listen.held``): those that are still to be sent."""

    @property
    def void(self) -> tuple[nudges.Told, ...]:
        """And those that are not: a beat came by another door."""

    @property
    def nudges(self) -> tuple[nudges.Told, ...]:
        """Switches of the agent that are due soon."""

    @property
    def quiet(self) -> frozenset[str]:
        """What was looked for and is not there: ``alerts``, ``reviews``, ``work``."""


class WatchWing:
    """See the module, and ``wings.Wing``."""

    def __init__(self, connection: Connection) -> None:
        self._gate = connection.gate
        self._outgoing = connection.outgoing
        self._emit = connection.emit
        self._calls = WatchCalls(
            emit=connection.emit, ask_id=connection.ask_id, troubles=connection.troubles
        )
        connection.troubles.append(self._troubles_of)
        parts: dict[str, Any] = {
            "zone": connection.zone,
            "send": self._send,
            "forget": connection.outgoing.forget,
            "emit": connection.emit,
        }
        self._alerts = pushes.AlertPushes(**parts)
        self._nudges = nudges.NudgePushes(**parts)
        self._listening = Listen(None, here=False)
        self._alarm: int | None = None
        self._reach = Reach()
        self._left = False

    # Tools ----------------------------------------------------------------------------------------

    def call(self, tool: Tool, accepted: Accepted, now: Moment, answer: Give) -> None:
        """Carry out a call of one of the tools; ``answer`` is called later."""
        self._calls.call(tool, accepted, now, answer)

    def refused(self, tool: Tool, why: Refused, now: Moment) -> ToolResult:
        """The error result of a call whose arguments were refused."""
        return self._calls.refused(tool, why, now)

    def rules_at(self, tool: Tool, now: Moment) -> Rules | None:
        """The argument rules that hold only now: none, since the store knows what time it is."""
        return None

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
        self._nudges.checked(news.standing, news.void)
        self._nudges.news(news.nudges, news.now, asked, now)

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
        moments = (self._alerts.next_moment(now), self._nudges.next_moment(blocked))
        self._alarm = min((moment for moment in moments if moment is not None), default=None)

    def next_alarm(self) -> int | None:
        """When (monotonic ms) ``pump`` next has something to do."""
        return self._alarm

    def leave(self) -> None:
        """The host is gone: another server may push what it did not take."""
        self._left = True
        self._alerts.leave()

    @property
    def _blocked(self) -> str | None:
        """Why nothing can be pushed now, as a clause."""
        if self._left:
            return "the host is gone"
        denied = self._gate.verdict(pushes.FEATURE_SET)
        return None if denied is None else denied.reason

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
                f"The host does not take {counted(len(held.marks), 'alert')} for you, so "
                f"inbox_poll is the way to it: {held.reason}."
            )
        nudges = self._nudges.held
        if nudges is not None:
            said.append(f"The host does not take {counted(nudges[0], 'nudge')}: {nudges[1]}.")
        return tuple(said)

    def _send(self, event: dict[str, Any], about: Any) -> str:
        id, line = self._outgoing.open("push/event", event, Sent(self, (self._reach.policy, about)))
        self._emit(Push(line, event["eventId"]))
        return id


WATCH_WING = Annex(WATCH, TOOLS, INSTRUCTIONS, WatchWing)
"""The watch wing, for a session that has a store."""
