"""What the wings whose tools are the store's have in common on one MCPL connection. Pure."""

from typing import Any

from mcpl_heartbeat.actions import Moment, Push
from mcpl_heartbeat.mcp.arguments import Accepted, Refused
from mcpl_heartbeat.mcp.tools import Rules, Tool, ToolResult
from mcpl_heartbeat.policy.manifest import FeatureSet
from mcpl_heartbeat.watch.calls import Answer as Give
from mcpl_heartbeat.watch.calls import WatchCalls
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.reach import Reach
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.wings import Connection, Sent, Wing


class StoreWing(Wing):
    """Half of a wing: tool calls, and the way out for pushes of ``feature_set``."""

    def __init__(self, connection: Connection, calls: WatchCalls, feature_set: FeatureSet) -> None:
        self._gate = connection.gate
        self._outgoing = connection.outgoing
        self._emit = connection.emit
        self._calls = calls
        self._feature_set = feature_set.name
        self._reach = Reach()
        self._alarm: int | None = None
        self._left = False
        self._ways_out: dict[str, Any] = {
            "zone": connection.zone,
            "send": self._send,
            "forget": connection.outgoing.forget,
            "emit": connection.emit,
        }
        """What everything that pushes is given."""

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
        self._calls.told(id, outcome, now)

    def next_alarm(self) -> int | None:
        """When (monotonic ms) ``pump`` next has something to do."""
        return self._alarm

    def leave(self) -> None:
        """The host is gone."""
        self._left = True

    @property
    def _blocked(self) -> str | None:
        """Why nothing can be pushed now, as a clause."""
        if self._left:
            return "the host is gone"
        denied = self._gate.verdict(self._feature_set)
        return None if denied is None else denied.reason

    def _wake_at(self, *moments: int | None) -> None:
        """Have ``pump`` called at the first of these (monotonic ms)."""
        self._alarm = min((moment for moment in moments if moment is not None), default=None)

    def _send(self, event: dict[str, Any], about: Any) -> str:
        id, line = self._outgoing.open("push/event", event, Sent(self, (self._reach.policy, about)))
        self._emit(Push(line, event["eventId"]))
        return id
