"""Tool calls: which tool, are the arguments right, and whose reply has to wait for what.

A call of a tool that only reads is answered in the pass that read it, and one that is asked again
in the same words is not weighed anew. Any other may have to wait: for its save, for the files to be
read at start, or for the shared store.
"""

from collections.abc import Callable

from msgspec import Raw

from mcpl_heartbeat.actions import Action, Level, Log, Moment
from mcpl_heartbeat.jsonrpc.messages import Refusal, Request
from mcpl_heartbeat.jsonrpc.replies import ReplySlot, single_slot
from mcpl_heartbeat.mcp import arguments, tools
from mcpl_heartbeat.waiting import Later, WaitingCalls
from mcpl_heartbeat.wake.calls import WakeCalls
from mcpl_heartbeat.wake.tools import TOOLS
from mcpl_heartbeat.wake.wing import WakeWing
from mcpl_heartbeat.wings import Annex, Calls, Wing

QUESTIONS_KNOWN = 64
LONGEST_QUESTION = 256


def _never(result: tools.ToolResult) -> None:
    raise AssertionError("a tool that only reads answers at once")


class ToolCalls:
    """The tools of every wing, as one list. ``wings`` are those beside ``wake``."""

    def __init__(
        self,
        wake: WakeWing,
        calls: WakeCalls,
        wings: tuple[tuple[Annex, Wing], ...],
        emit: Callable[[Action], None],
    ) -> None:
        self._wake = wake
        self._calls = calls
        self._tools = TOOLS + tuple(tool for annex, _ in wings for tool in annex.tools)
        self._elsewhere: dict[str, Calls] = {
            tool.name: wing for annex, wing in wings for tool in annex.tools
        }
        self._emit = emit
        self._version = ""
        # Hosts ask the same in the same words; those words are read and weighed once.
        self._questions: dict[bytes, tuple[tools.Tool, arguments.Accepted]] = {}
        self._told: dict[bytes, object] = {}
        self._early: list[Callable[[Moment], None]] = []
        self.waiting = WaitingCalls(emit)
        self.stirred = True
        """Whether anything in this pass may have changed what there is to do."""

    def speak(self, version: str, *, structured: bool) -> None:
        """From now on answer as this protocol version has it."""
        self._version = version
        self._calls.structured = structured

    def begin(self, stirred: bool) -> None:
        """A pass begins; it is one instant, so equal questions get one answer."""
        self.stirred = stirred
        self._told = {}

    def listed(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        """Answer ``tools/list``."""
        return tools.encoded_tools_list(self._tools, self._version)

    def call(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        """Answer ``tools/call``: a result, a ``Refusal``, or ``None``: the reply comes later."""
        asked = bytes(request.params or b"")
        known = self._questions.get(asked)
        if known is not None and self._wake.ready:
            # A pass is one instant: until something changes in it, the answer is the same.
            told = None if self.stirred else self._told.get(asked)
            if told is None:
                told = self._told[asked] = self._look(*known, now)
            return told
        call = tools.read_call(request.params, self._tools)
        if isinstance(call, Refusal):
            return call
        tool = call.tool
        calls: Calls = self._elsewhere.get(tool.name, self._calls)
        if calls is self._calls and tool.read_only and self._wake.ready:
            checked = arguments.check(tool, call.arguments, self._tools)
            if type(checked) is arguments.Accepted:
                if len(self._questions) < QUESTIONS_KNOWN and len(asked) < LONGEST_QUESTION:
                    self._questions[asked] = (tool, checked)
                return self._look(tool, checked, now)
        else:
            self.stirred = True
            rules = calls.rules_at(tool, now)
            checked = arguments.check(tool, call.arguments, self._tools, rules)
        if isinstance(checked, Refusal):
            return checked
        return self._carry_out(calls, tool, checked, request.id, slot, now)

    def opened(self, now: Moment) -> None:
        """The files were read: carry out the calls that came before, in their order."""
        early, self._early = self._early, []
        for call in early:
            try:
                call(now)
            except Exception as fault:  # it costs its own reply, not those of the others
                self._emit(Log(Level.WARNING, f"internal error in a tool call: {fault!r}"))

    def _look(self, tool: tools.Tool, checked: arguments.Accepted, now: Moment) -> object:
        """A call of a wake tool that only reads, which is answered at once."""
        result = self._calls.call(tool, checked, now, _never)
        return None if result is None else tools.call_result(result, self._version)

    def _carry_out(  # noqa: PLR0913, PLR0917 - one call, in its parts
        self,
        calls: Calls,
        tool: tools.Tool,
        checked: arguments.Accepted | arguments.Refused,
        id: Raw,
        slot: ReplySlot | None,
        now: Moment,
    ) -> object:
        """A call that may have to wait."""
        later = Later(self.waiting, id, slot or single_slot(), self._version)

        def carry_out(at: Moment) -> tools.ToolResult | None:
            if isinstance(checked, arguments.Accepted):
                return calls.call(tool, checked, at, later.answer)
            return calls.refused(tool, checked, at)

        result = None
        if calls is not self._calls or self._wake.ready:
            result = carry_out(now)
        else:
            self._early.append(lambda at: later.settle(carry_out(at)))
        if result is None:
            later.wait()
            return None
        return tools.call_result(result, self._version)
