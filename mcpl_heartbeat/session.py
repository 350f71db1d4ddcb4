"""One connection, without its I/O: the protocol around the wings.

``Session`` is handed bytes, moments and outcomes and returns the actions that follow, in order::

    receive(data, now)   tick(now)   opened(opening, now)   saved(document, outcome, now)

It never waits and never raises over what a peer sent. A reply that speaks of a save comes out of a
later call, when the save has ended; everything else is answered in the pass that read it (law 3).
"""

from collections.abc import Callable
from typing import Any

from msgspec import Raw

import mcpl_heartbeat
from mcpl_heartbeat.actions import (
    Action,
    Document,
    Level,
    Log,
    Moment,
    Opening,
    Reply,
    SaveOutcome,
    WakeAt,
)
from mcpl_heartbeat.jsonrpc.framing import LineBuffer, TooLong
from mcpl_heartbeat.jsonrpc.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Answer,
    Batch,
    Invalid,
    Message,
    Notification,
    Refusal,
    Request,
    encode_error,
    encode_result,
    parse,
)
from mcpl_heartbeat.jsonrpc.outgoing import Outgoing
from mcpl_heartbeat.jsonrpc.replies import ReplySlot, batch_slots, single_slot
from mcpl_heartbeat.mcp import arguments, lifecycle, tools
from mcpl_heartbeat.policy.grant import Policy
from mcpl_heartbeat.policy.manifest import HEARTBEAT, manifest, wants_array
from mcpl_heartbeat.times import Zone
from mcpl_heartbeat.waiting import Later, WaitingCalls
from mcpl_heartbeat.wake.calls import WakeCalls
from mcpl_heartbeat.wake.pushes import Sent
from mcpl_heartbeat.wake.tools import TOOLS
from mcpl_heartbeat.wake.wing import WakeWing

POLICY_WITHIN_MS = 5_000
"""How long (ms) after ``initialize`` the log waits for the host's policy before it warns (seed)."""
SERVER = lifecycle.ServerInfo("mcpl-heartbeat", "Heartbeat", mcpl_heartbeat.__version__)
INSTRUCTIONS = (
    "Wakes you on a schedule and at reminders you set. heartbeat_status says when the next wake "
    "comes and whether wakes can be delivered; reminder_add sets one, reminder_list shows them."
)
QUESTIONS = frozenset({"ping", "tools/list", "tools/call", "mcpl/manifest"})
"""Methods that change nothing by themselves; of the tools, only some do not either."""
QUESTIONS_KNOWN = 64
LONGEST_QUESTION = 256
NO_OBJECT = Raw(b"0")
BEFORE_INITIALIZE = frozenset({"initialize", "ping"})


def _never(result: tools.ToolResult) -> None:
    raise AssertionError("a tool that only reads answers at once")


class Session:
    """See the module.

    ``token`` is a random string unique to this process, for the ids of its own requests;
    ``random_id()`` gives a fresh short one each time.
    """

    def __init__(self, *, zone: Zone, token: str, random_id: Callable[[], str]) -> None:
        self._out: list[Action] = []
        self._stirred = True
        self._buffer = LineBuffer()
        self._policy = Policy((HEARTBEAT,))
        self._outgoing: Outgoing[Sent] = Outgoing(token)
        self._wing = WakeWing(
            zone=zone,
            random_id=random_id,
            gate=self._policy,
            outgoing=self._outgoing,
            emit=self._emit,
        )
        self._calls = WakeCalls(self._wing)
        self._version: str | None = None
        self._client_name = ""
        self._speaks_mcpl = False
        self._policy_by: int | None = None
        # Hosts ask the same in the same words; those words are read and weighed once.
        self._questions: dict[bytes, tuple[tools.Tool, arguments.Accepted]] = {}
        self._told: dict[bytes, object] = {}
        self._early: list[Callable[[Moment], None]] = []
        self._waiting = WaitingCalls(self._emit)
        self._alarm = WakeAt(None, None)
        self._methods: dict[str, Callable[[Request, ReplySlot | None, Moment], object]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._tools_list,
            "tools/call": self._tools_call,
            "featureSets/update": self._policy_request,
            "mcpl/manifest": self._manifest,
        }

    # What the shell calls -------------------------------------------------------------------------

    def start(self, now: Moment) -> list[Action]:
        """Begin; the files are being read meanwhile."""
        return self._pass(now)

    def receive(self, data: bytes, now: Moment) -> list[Action]:
        """Take bytes as they came from the host, cut anywhere."""
        self._stirred = self._wing.begin(now) or _is_reached(self._alarm, now)
        self._told = {}
        for line in self._buffer.feed(data):
            self._line(line, now)
        if self._stirred:
            return self._pass(now)
        # Only questions, and no moment has come: nothing can be due.
        out, self._out = self._out, []
        return out

    def end_of_input(self, now: Moment) -> list[Action]:
        """The host closed its end: a last line may lack its LF."""
        self._wing.begin(now)
        for line in self._buffer.end():
            self._line(line, now)
        self._wing.save_again()
        return self._pass(now)

    def tick(self, now: Moment) -> list[Action]:
        """A moment has come that ``WakeAt`` asked for, or 30 s have passed."""
        self._wing.begin(now)
        return self._pass(now)

    def opened(self, opening: Opening, now: Moment) -> list[Action]:
        """The files were read; calls that came before are carried out now, in their order."""
        self._wing.begin(now)
        self._wing.opened(opening, now)
        early, self._early = self._early, []
        for call in early:
            try:
                call(now)
            except Exception as fault:  # it costs its own reply, not those of the others
                self._emit(Log(Level.WARNING, f"internal error in a tool call: {fault!r}"))
        return self._pass(now)

    def saved(self, document: Document, outcome: SaveOutcome, now: Moment) -> list[Action]:
        """The save that ``Save`` asked for has ended."""
        self._wing.begin(now)
        self._wing.saved(document, outcome, now)
        return self._pass(now)

    @property
    def unsettled(self) -> bool:
        """Whether a save is under way: wait for it, within reason, before leaving."""
        return self._wing.config_ledger.saving or self._wing.reminders_ledger.saving

    @property
    def standby(self) -> bool:
        """Whether another server holds the files: try their locks again every few seconds."""
        return self._wing.held_by is not None

    # A pass ---------------------------------------------------------------------------------------

    def _emit(self, action: Action) -> None:
        self._out.append(action)

    def _pass(self, now: Moment) -> list[Action]:
        if self._policy_by is not None and now.monotonic >= self._policy_by:
            self._policy_by = None
            warning = self._policy.waiting_warning
            if warning is not None:
                self._emit(Log(Level.WARNING, warning))
        self._wing.pump(now)
        wall, monotonic = self._wing.next_alarm()
        if self._policy_by is not None:
            monotonic = self._policy_by if monotonic is None else min(monotonic, self._policy_by)
        alarm = WakeAt(wall, monotonic)
        # One that is reached already is used up, even where the next is for the same moment.
        if alarm != self._alarm or _is_reached(alarm, now):
            self._alarm = alarm
            self._emit(alarm)
        out, self._out = self._out, []
        return out

    def _line(self, line: bytes | TooLong, now: Moment) -> None:
        message = parse(line)
        # Nearly every message is a Request, and an isinstance that fails costs as much as a call.
        if type(message) is Request:
            self._request(message, None, now)
            return
        self._stirred = True
        if type(message) is Batch:
            self._batch(message, now)
        else:
            self._message(message, None, now)

    def _batch(self, batch: Batch, now: Moment) -> None:
        if self._version is None or not lifecycle.supports_batches(self._version):
            refusal = Refusal(
                INVALID_REQUEST,
                "Batches exist only under MCP 2024-11-05 and 2025-03-26; send one message a line.",
            )
            self._emit(Reply(encode_error(None, refusal)))
            return
        wanted = [item for item in batch.items if isinstance(item, Request | Invalid)]
        slots = iter(batch_slots(len(wanted)))
        for item in batch.items:
            slot = next(slots) if isinstance(item, Request | Invalid) else None
            self._message(item, slot, now)

    def _message(self, message: Message, slot: ReplySlot | None, now: Moment) -> None:
        if isinstance(message, Request):
            self._request(message, slot, now)
        elif isinstance(message, Invalid):
            if message.method == "featureSets/update" and self._version is not None:
                # Params of a shape that no policy has: malformed, so no grant may be held.
                self._policy.request(NO_OBJECT)
                self._wing.policy_came(as_request=False)
            self._fill(slot, encode_error(message.id, message.refusal))
        elif isinstance(message, Notification):
            self._notification(message)
        elif isinstance(message, Answer):
            sent = self._outgoing.settle(message)
            if sent is not None:
                self._wing.answered(sent, message, now)

    def _request(self, request: Request, slot: ReplySlot | None, now: Moment) -> None:
        method = self._methods.get(request.method)
        if request.method not in QUESTIONS:
            self._stirred = True
        if method is None:
            answer: object = Refusal(
                METHOD_NOT_FOUND, f"There is no method {tools.shown(request.method)}."
            )
        elif self._version is None and request.method not in BEFORE_INITIALIZE:
            answer = Refusal(
                INVALID_REQUEST, f"{request.method} comes after initialize; send initialize first."
            )
        else:
            try:
                answer = method(request, slot, now)
            except Exception as fault:  # a fault of ours must cost one call, not the night
                self._emit(Log(Level.WARNING, f"internal error in {request.method}: {fault!r}"))
                answer = Refusal(
                    INTERNAL_ERROR, "Internal error; this server's log has the details."
                )
        if type(answer) is dict:
            self._fill(slot, encode_result(request.id, answer))
        elif isinstance(answer, Refusal):
            self._fill(slot, encode_error(request.id, answer))
        elif answer is not None:
            self._fill(slot, encode_result(request.id, answer))

    def _fill(self, slot: ReplySlot | None, line: bytes) -> None:
        """Reply to a request: at once when it came alone (``None``), else with its batch."""
        ready = line if slot is None else slot.fill(line)
        if ready is not None:
            self._out.append(Reply(ready))

    # The methods: each returns a result, a Refusal, or None when the reply comes later ------------

    def _initialize(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        if self._version is not None:
            return Refusal(INVALID_REQUEST, "This connection is initialized already.")
        asked = lifecycle.read_initialize(request.params)
        if isinstance(asked, Refusal):
            return asked
        host = asked.experimental.get("mcpl")
        if host is True:
            host = {}
        self._version = asked.protocol_version
        self._calls.structured = lifecycle.supports_structured_content(self._version)
        self._client_name = asked.client_name
        self._speaks_mcpl = isinstance(host, dict)
        self._policy.initialized(host)
        self._wing.strand()
        if self._speaks_mcpl:
            self._policy_by = now.monotonic + POLICY_WITHIN_MS
        return lifecycle.initialize_result(
            self._version,
            SERVER,
            {"mcpl": self._declared()} if self._speaks_mcpl else None,
            INSTRUCTIONS,
        )

    def _declared(self) -> dict[str, Any]:
        return manifest((HEARTBEAT,), as_array=wants_array(self._client_name))

    def _ping(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        return {}

    def _manifest(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        if not self._speaks_mcpl:
            return Refusal(
                METHOD_NOT_FOUND, "mcpl/manifest belongs to MCPL, which this host did not ask for."
            )
        return self._declared()

    def _tools_list(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        assert self._version is not None
        return tools.encoded_tools_list(TOOLS, self._version)

    def _policy_request(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        answer = self._policy.request(request.params)
        if isinstance(answer, Refusal):
            self._emit(Log(Level.WARNING, answer.message))
        self._wing.policy_came(as_request=not isinstance(answer, Refusal))
        return answer

    def _tools_call(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        assert self._version is not None
        asked = bytes(request.params or b"")
        known = self._questions.get(asked)
        if known is not None and self._wing.ready:
            # A pass is one instant: until something changes in it, the answer is the same.
            told = None if self._stirred else self._told.get(asked)
            if told is None:
                told = self._told[asked] = self._look(*known, now)
            return told
        call = tools.read_call(request.params, TOOLS)
        if isinstance(call, Refusal):
            return call
        tool = call.tool
        if tool.read_only and self._wing.ready:
            checked = arguments.check(tool, call.arguments, TOOLS)
            if type(checked) is arguments.Accepted:
                if len(self._questions) < QUESTIONS_KNOWN and len(asked) < LONGEST_QUESTION:
                    self._questions[asked] = (tool, checked)
                return self._look(tool, checked, now)
        else:
            self._stirred = True
            rules = self._calls.rules_at(tool, now)
            checked = arguments.check(tool, call.arguments, TOOLS, rules)
        if isinstance(checked, Refusal):
            return checked
        return self._carry_out(tool, checked, request.id, slot, now)

    def _look(self, tool: tools.Tool, checked: arguments.Accepted, now: Moment) -> object:
        """A call of a tool that only reads, which is answered at once."""
        assert self._version is not None
        result = self._calls.call(tool, checked, now, _never)
        return None if result is None else tools.call_result(result, self._version)

    def _carry_out(
        self,
        tool: tools.Tool,
        checked: arguments.Accepted | arguments.Refused,
        id: Raw,
        slot: ReplySlot | None,
        now: Moment,
    ) -> object:
        """A call that may have to wait: for its save, or for the files to be read at start."""
        assert self._version is not None
        later = Later(self._waiting, id, slot or single_slot(), self._version)

        def carry_out(at: Moment) -> tools.ToolResult | None:
            if isinstance(checked, arguments.Accepted):
                return self._calls.call(tool, checked, at, later.answer)
            problems = [f"{problem.argument}: {problem.text}" for problem in checked.problems]
            text = arguments.refusal_text(tool, checked)
            return self._calls.refused(tool, text, problems, at)

        result = None
        if self._wing.ready:
            result = carry_out(now)
        else:
            self._early.append(lambda at: later.settle(carry_out(at)))
        if result is None:
            later.wait()
            return None
        return tools.call_result(result, self._version)

    # Notifications --------------------------------------------------------------------------------

    def _notification(self, message: Notification) -> None:
        if message.method == "notifications/cancelled":
            self._waiting.cancel(message.params)
        elif message.method == "featureSets/update" and self._speaks_mcpl:
            for line in self._policy.notification(message.params):
                self._emit(Log(Level.WARNING, line))
            self._wing.policy_came(as_request=False)


def _is_reached(alarm: WakeAt, now: Moment) -> bool:
    wall, monotonic = alarm.wall, alarm.monotonic
    return (wall is not None and wall <= now.wall) or (
        monotonic is not None and monotonic <= now.monotonic
    )
