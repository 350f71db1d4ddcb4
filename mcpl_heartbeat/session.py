"""One connection, without its I/O: the protocol around the wings.

``Session`` is handed bytes, moments and outcomes and returns the actions that follow, in order::

    receive(data, now)   tick(now)   opened(opening, now)   saved(document, outcome, now)
    told(id, outcome, now)   news(news, asked, now)

It never waits and never raises over what a peer sent. A reply that speaks of a save comes out of a
later call, when the save has ended, and one that asks the shared store when that has answered;
everything else is answered in the pass that read it (law 3).
"""

import itertools
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
from mcpl_heartbeat.calling import ToolCalls
from mcpl_heartbeat.jsonrpc.encoding import encode_error, encode_result
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
    parse,
)
from mcpl_heartbeat.jsonrpc.outgoing import Outgoing
from mcpl_heartbeat.jsonrpc.replies import ReplySlot, batch_slots
from mcpl_heartbeat.mcp import lifecycle, tools
from mcpl_heartbeat.policy.grant import Policy
from mcpl_heartbeat.policy.manifest import HEARTBEAT, manifest, wants_array
from mcpl_heartbeat.times import Zone
from mcpl_heartbeat.wake.calls import WakeCalls
from mcpl_heartbeat.wake.wing import WakeWing
from mcpl_heartbeat.wings import Annex, Connection, Sent

POLICY_WITHIN_MS = 5_000
"""How long (ms) after ``initialize`` the log waits for the host's policy before it warns (seed)."""
SERVER = lifecycle.ServerInfo("mcpl-heartbeat", "Heartbeat", mcpl_heartbeat.__version__)
INSTRUCTIONS = (
    "Wakes you on a schedule and at reminders you set. heartbeat_status says when the next wake "
    "comes and whether wakes can be delivered; reminder_add sets one, reminder_list shows them."
)
QUESTIONS = frozenset({"ping", "tools/list", "tools/call", "mcpl/manifest"})
"""Methods that change nothing by themselves; of the tools, only some do not either."""
NO_OBJECT = Raw(b"0")
BEFORE_INITIALIZE = frozenset({"initialize", "ping"})


class Session:
    """See the module.

    ``token`` is a random string unique to this process, for the ids of its own requests;
    ``random_id()`` gives a fresh short one each time. ``annexes`` are the further wings.
    """

    def __init__(
        self,
        *,
        zone: Zone,
        token: str,
        random_id: Callable[[], str],
        annexes: tuple[Annex, ...] = (),
    ) -> None:
        self._out: list[Action] = []
        self._buffer = LineBuffer()
        self._feature_sets = (HEARTBEAT, *(annex.feature_set for annex in annexes))
        self._instructions = " ".join((INSTRUCTIONS, *(annex.instructions for annex in annexes)))
        self._policy = Policy(self._feature_sets)
        self._outgoing: Outgoing[Any] = Outgoing(token)
        self._wing = WakeWing(
            zone=zone,
            random_id=random_id,
            gate=self._policy,
            outgoing=self._outgoing,
            emit=self._emit,
        )
        asks = itertools.count(1)
        connection = Connection(
            zone, self._policy, self._outgoing, self._emit, ask_id=lambda: next(asks)
        )
        self._others = tuple(annex.make(connection) for annex in annexes)
        self._calls = WakeCalls(self._wing)
        self._tool_calls = ToolCalls(
            self._wing, self._calls, tuple(zip(annexes, self._others, strict=True)), self._emit
        )
        self._version: str | None = None
        self._client_name = ""
        self._speaks_mcpl = False
        self._policy_by: int | None = None
        self._alarm = WakeAt(None, None)
        self._methods: dict[str, Callable[[Request, ReplySlot | None, Moment], object]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._tool_calls.listed,
            "tools/call": self._tool_calls.call,
            "featureSets/update": self._policy_request,
            "mcpl/manifest": self._manifest,
        }

    # What the shell calls -------------------------------------------------------------------------

    def start(self, now: Moment) -> list[Action]:
        """Begin; the files are being read meanwhile."""
        return self._pass(now)

    def receive(self, data: bytes, now: Moment) -> list[Action]:
        """Take bytes as they came from the host, cut anywhere."""
        self._tool_calls.begin(self._wing.begin(now) or _is_reached(self._alarm, now))
        for line in self._buffer.feed(data):
            self._line(line, now)
        if self._tool_calls.stirred:
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
        for wing in self._others:
            wing.leave()
        return self._pass(now)

    def tick(self, now: Moment) -> list[Action]:
        """A moment has come that ``WakeAt`` asked for, or 30 s have passed."""
        self._wing.begin(now)
        return self._pass(now)

    def opened(self, opening: Opening, now: Moment) -> list[Action]:
        """The files were read; calls that came before are carried out now, in their order."""
        self._wing.begin(now)
        self._wing.opened(opening, now)
        self._tool_calls.opened(now)
        return self._pass(now)

    def saved(self, document: Document, outcome: SaveOutcome, now: Moment) -> list[Action]:
        """The save that ``Save`` asked for has ended."""
        self._wing.begin(now)
        self._wing.saved(document, outcome, now)
        return self._pass(now)

    def told(self, id: int, outcome: Any, now: Moment) -> list[Action]:
        """The store has answered the ``Ask`` with this id."""
        self._wing.begin(now)
        for wing in self._others:
            wing.told(id, outcome, now)
        return self._pass(now)

    def news(self, news: Any, asked: Moment, now: Moment) -> list[Action]:
        """The store has something to push; ``asked`` is a moment just before it was looked at."""
        self._wing.begin(now)
        for wing in self._others:
            wing.news(news, asked, now)
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
        for wing in self._others:
            wing.pump(now)
            moment = wing.next_alarm()
            if moment is not None:
                monotonic = moment if monotonic is None else min(monotonic, moment)
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
        self._tool_calls.stirred = True
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
                self._policy_came(as_request=False)
            self._fill(slot, encode_error(message.id, message.refusal))
        elif isinstance(message, Notification):
            self._notification(message)
        elif isinstance(message, Answer):
            sent = self._outgoing.settle(message)
            if type(sent) is Sent:
                sent.wing.answered(sent.subject, message, now)
            elif sent is not None:
                self._wing.answered(sent, message, now)

    def _request(self, request: Request, slot: ReplySlot | None, now: Moment) -> None:
        method = self._methods.get(request.method)
        if request.method not in QUESTIONS:
            self._tool_calls.stirred = True
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
        self._tool_calls.speak(
            self._version, structured=lifecycle.supports_structured_content(self._version)
        )
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
            self._instructions,
        )

    def _declared(self) -> dict[str, Any]:
        return manifest(self._feature_sets, as_array=wants_array(self._client_name))

    def _ping(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        return {}

    def _manifest(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        if not self._speaks_mcpl:
            return Refusal(
                METHOD_NOT_FOUND, "mcpl/manifest belongs to MCPL, which this host did not ask for."
            )
        return self._declared()

    def _policy_request(self, request: Request, slot: ReplySlot | None, now: Moment) -> object:
        answer = self._policy.request(request.params)
        if isinstance(answer, Refusal):
            self._emit(Log(Level.WARNING, answer.message))
        self._policy_came(as_request=not isinstance(answer, Refusal))
        return answer

    def _policy_came(self, *, as_request: bool) -> None:
        self._wing.policy_came(as_request=as_request)
        for wing in self._others:
            wing.policy_came(as_request=as_request)

    # Notifications --------------------------------------------------------------------------------

    def _notification(self, message: Notification) -> None:
        if message.method == "notifications/cancelled":
            self._tool_calls.waiting.cancel(message.params)
        elif message.method == "featureSets/update" and self._speaks_mcpl:
            for line in self._policy.notification(message.params):
                self._emit(Log(Level.WARNING, line))
            self._policy_came(as_request=False)


def _is_reached(alarm: WakeAt, now: Moment) -> bool:
    wall, monotonic = alarm.wall, alarm.monotonic
    return (wall is not None and wall <= now.wall) or (
        monotonic is not None and monotonic <= now.monotonic
    )
