"""The tasks wing on one MCPL connection: its tools. Pure.

What the tools come to is the store's affair (``Ask``). That work has appeared is told by the watch
wing, which alone looks into the store for what is to be pushed.
"""

from typing import Any

from mcpl_heartbeat.actions import Moment
from mcpl_heartbeat.jsonrpc.messages import Answer
from mcpl_heartbeat.mcp.arguments import Accepted, Refused
from mcpl_heartbeat.mcp.tools import Rules, Tool, ToolResult
from mcpl_heartbeat.policy.manifest import TASKS
from mcpl_heartbeat.tasks.texts import text_of
from mcpl_heartbeat.tasks.tools import TOOLS
from mcpl_heartbeat.watch.calls import Answer as Give
from mcpl_heartbeat.watch.calls import WatchCalls
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.wings import Annex, Connection

INSTRUCTIONS = (
    "It keeps a queue of tasks too: create_agent_task puts work into it; a worker finds it with "
    "list_agent_tasks, takes it with claim_agent_task, holds it with heartbeat_agent_task and "
    "ends it with submit_agent_task."
)


class TasksWing:
    """See the module, and ``wings.Wing``."""

    def __init__(self, connection: Connection) -> None:
        self._calls = WatchCalls(
            emit=connection.emit,
            ask_id=connection.ask_id,
            text_of=text_of,
            looks="list_agent_tasks or get_agent_task",
        )

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

    # It pushes nothing itself.

    def news(self, news: Any, asked: Moment, now: Moment) -> None:
        """What the store has to push."""

    def answered(self, subject: Any, answer: Answer, now: Moment) -> None:
        """The host answered a push."""

    def policy_came(self, *, as_request: bool) -> None:
        """The host sent a policy, or took one away."""

    def pump(self, now: Moment) -> None:
        """Do what is due."""

    def next_alarm(self) -> int | None:
        """When ``pump`` next has something to do: never."""
        return None

    def leave(self) -> None:
        """The host is gone."""


TASKS_WING = Annex(TASKS, TOOLS, INSTRUCTIONS, TasksWing)
"""The tasks wing, for a session that has a store."""
