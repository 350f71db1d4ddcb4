"""The store's tools as an agent calls them: each becomes an ``Ask`` and, later, its outcome."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.actions import Action, Ask, Level, Log, Moment
from mcpl_heartbeat.mcp.arguments import Accepted, Refused, refusal_text
from mcpl_heartbeat.mcp.tools import Tool, ToolResult
from mcpl_heartbeat.times import utc_time
from mcpl_heartbeat.watch.failures import Failure, refused
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.texts import text_of as watch_text_of

TELLING = frozenset({"switch_status", "whoami", "inbox_poll"})
"""The tools whose replies say why a push does not reach the agent, whatever they came to."""

UNWORDED = (
    "Internal error after the store was asked: what the call changed is kept. Look with "
    "{looks}; this server's log has the details."
)

Answer = Callable[[ToolResult], None]


class _Asked(msgspec.Struct, frozen=True):
    tool: str
    arguments: object
    own: bool
    answer: Answer


class WatchCalls:
    """The calls that are under way.

    ``troubles`` give sentences on pushes that do not arrive, for what an own call came to.
    ``text_of`` words what came of one; ``looks`` names tools that show it, should that fail.
    """

    def __init__(
        self,
        *,
        emit: Callable[[Action], None],
        ask_id: Callable[[], int],
        troubles: Sequence[Callable[[str, Result], tuple[str, ...]]] = (),
        text_of: Callable[[str, Result | Failure], str] = watch_text_of,
        looks: str = "switch_status, whoami or resume_packet",
    ) -> None:
        self._emit = emit
        self._ask_id = ask_id
        self._troubles = troubles
        self._text_of = text_of
        self._unworded = UNWORDED.format(looks=looks)
        self._asked: dict[int, _Asked] = {}

    def call(self, tool: Tool, accepted: Accepted, now: Moment, answer: Answer) -> None:
        """Ask the store; ``answer`` is called with what came of it."""
        id = self._ask_id()
        arguments = accepted.arguments
        key = getattr(arguments, "agent_key", UNSET)
        secret = None if key is UNSET else key
        self._asked[id] = _Asked(tool.name, arguments, secret is None, answer)
        self._emit(Ask(id, tool.name, arguments, secret))

    def refused(self, tool: Tool, why: Refused, now: Moment) -> ToolResult:
        """The error result of a call whose arguments were refused."""
        failure = msgspec.structs.replace(refused(tool, why), server_time=utc_time(now.wall))
        return ToolResult(refusal_text(tool, why), failure, is_error=True)

    def told(self, id: int, outcome: Result | Failure, now: Moment) -> str | None:
        """An ask has ended; gives the scope whose switch was beaten by it with the own key."""
        asked = self._asked.pop(id, None)
        if asked is None:
            return None
        try:
            asked.answer(self._worded(asked, outcome, now))
        except Exception as fault:  # it must cost no more than this call's words
            self._emit(Log(Level.WARNING, f"internal error in {asked.tool}: {fault!r}"))
            asked.answer(ToolResult(self._unworded, is_error=True))
        beaten = asked.own and asked.tool == "heartbeat" and not isinstance(outcome, Failure)
        return getattr(asked.arguments, "scope", None) if beaten else None

    def _worded(self, asked: _Asked, outcome: Result | Failure, now: Moment) -> ToolResult:
        if isinstance(outcome, Failure):
            if outcome.server_time is UNSET:
                outcome = msgspec.structs.replace(outcome, server_time=utc_time(now.wall))
            return ToolResult(self._text_of(asked.tool, outcome), outcome, is_error=True)
        if asked.own:
            troubles = [said for each in self._troubles for said in each(asked.tool, outcome)]
            outcome = msgspec.structs.replace(outcome, notes=(*outcome.notes, *troubles))
        return ToolResult(self._text_of(asked.tool, outcome), outcome)
