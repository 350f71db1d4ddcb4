"""Servers that bend JSON-RPC, MCP or the byte stream."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

import json
from typing import Any

import msgspec
import trio

from conformance.mutants import Patch, mutant
from mcpl_heartbeat import session
from mcpl_heartbeat.actions import Reply
from mcpl_heartbeat.jsonrpc import encoding, messages
from mcpl_heartbeat.jsonrpc.encoding import encode_error
from mcpl_heartbeat.jsonrpc.framing import MAX_LINE_BYTES, LineBuffer
from mcpl_heartbeat.jsonrpc.messages import INVALID_REQUEST, PARSE_ERROR, Refusal
from mcpl_heartbeat.jsonrpc.outgoing import Outgoing
from mcpl_heartbeat.mcp import lifecycle, tools
from mcpl_heartbeat.session import Session
from mcpl_heartbeat.shell import process, streams
from mcpl_heartbeat.wake.wing import WakeWing


@mutant(
    "Every id comes back as a string.",
    caught_by=("agent-framework-0.20/first-contact", "plain-mcp/ids"),
)
def ids_as_strings(patch: Patch) -> None:
    encode_result = encoding.encode_result

    def quoted(id: Any, result: object) -> bytes:
        text = bytes(id).decode()
        return encode_result(msgspec.Raw(json.dumps(text.strip('"')).encode()), result)

    patch(session, "encode_result", quoted)


@mutant("Ids go through a 64-bit float.", caught_by="plain-mcp/ids")
def ids_rounded(patch: Patch) -> None:
    encode_result = encoding.encode_result

    def rounded(id: Any, result: object) -> bytes:
        value = json.loads(bytes(id))
        if isinstance(value, int):
            value = int(float(value))
        return encode_result(msgspec.Raw(json.dumps(value).encode()), result)

    patch(session, "encode_result", rounded)


@mutant(
    "id 0 is taken for no id, and gets no reply.",
    caught_by=("agent-framework-0.20/first-contact", "plain-mcp/lines"),
)
def zero_is_no_id(patch: Patch) -> None:
    fill = Session._fill

    def falsy(self: Session, slot: Any, line: bytes) -> None:
        if json.loads(line).get("id") != 0:
            fill(self, slot, line)

    patch(Session, "_fill", falsy)


@mutant("A request with id null is carried out.", caught_by="plain-mcp/bad-ids")
def null_id_taken(patch: Patch) -> None:
    patch(messages, "_ID_STARTS", messages._ID_STARTS | {ord("n")})


@mutant(
    "ping is not answered while a push is out.",
    caught_by=("agent-framework-0.20/policy-while-pushes-are-out", "misbehaving/silent"),
)
def ping_waits_for_answers(patch: Patch) -> None:
    def waiting(self: Any, *args: Any) -> Any:
        return None if self._outgoing._waiting else {}

    patch(Session, "_ping", waiting)


@mutant(
    "A batch gets a batch of replies under every version.",
    caught_by=("plain-mcp/batch-2025-06-18", "plain-mcp/batch-2025-11-25"),
)
def batches_for_ever(patch: Patch) -> None:
    patch(lifecycle, "supports_batches", lambda version: True)


@mutant(
    "A batch is refused under every version.",
    caught_by=("plain-mcp/batch-2024-11-05", "plain-mcp/batch-2025-03-26"),
)
def batches_never(patch: Patch) -> None:
    patch(lifecycle, "supports_batches", lambda version: False)


@mutant(
    "An unknown notification gets an error.",
    caught_by="plain-mcp/unknown-tools-and-methods",
)
def error_for_a_notification(patch: Patch) -> None:
    notification = Session._notification

    def strict(self: Session, message: Any) -> None:
        if not message.method.startswith(("notifications/initialized", "featureSets/")):
            refusal = Refusal(messages.METHOD_NOT_FOUND, "There is no such method.")
            self._emit(Reply(encode_error(None, refusal)))
        notification(self, message)

    patch(Session, "_notification", strict)


@mutant("What is not JSON gets no answer.", caught_by="plain-mcp/not-json")
def noise_swallowed(patch: Patch) -> None:
    message = Session._message

    def deaf(self: Session, said: Any, slot: Any, now: Any) -> None:
        if not (isinstance(said, messages.Invalid) and said.refusal.code == PARSE_ERROR):
            message(self, said, slot, now)

    patch(Session, "_message", deaf)


@mutant(
    "Asked for any version, the server answers its newest.",
    caught_by=("plain-mcp/version-2024-11-05", "agent-framework-0.20/first-contact"),
)
def newest_version_always(patch: Patch) -> None:
    patch(lifecycle, "VERSIONS", (lifecycle.NEWEST,))


@mutant("An unknown version is echoed.", caught_by="plain-mcp/unknown-versions")
def any_version_echoed(patch: Patch) -> None:
    read_initialize = lifecycle.read_initialize

    def echoed(params: Any) -> Any:
        asked = read_initialize(params)
        if isinstance(asked, Refusal):
            return asked
        version = json.loads(bytes(params))["protocolVersion"]
        return msgspec.structs.replace(asked, protocol_version=version)

    patch(lifecycle, "read_initialize", echoed)


@mutant("A second initialize begins anew.", caught_by="plain-mcp/initialize-twice")
def initialized_twice(patch: Patch) -> None:
    initialize = Session._initialize

    def again(self: Session, *args: Any) -> object:
        self._version = None
        return initialize(self, *args)

    patch(Session, "_initialize", again)


@mutant(
    "server/discover is answered as any early call, so that newest clients do not fall back.",
    caught_by=("newest-clients/discover-first", "newest-clients/garbage-first"),
)
def discover_told_off(patch: Patch) -> None:
    request = Session._request

    def strict(self: Session, message: Any, slot: Any, now: Any) -> None:
        if message.method == "server/discover":
            refusal = Refusal(INVALID_REQUEST, "Send initialize first.")
            self._fill(slot, encode_error(message.id, refusal))
        else:
            request(self, message, slot, now)

    patch(Session, "_request", strict)


@mutant(
    "Structured results and output schemas go to clients that are too old for them.",
    caught_by=("plain-mcp/version-2024-11-05", "plain-mcp/version-2025-03-26"),
)
def structure_for_all(patch: Patch) -> None:
    patch(tools, "supports_structured_content", lambda version: True)


@mutant(
    "Results are never structured.",
    caught_by=("newest-clients/structured-results", "plain-mcp/version-2025-06-18"),
)
def structure_for_none(patch: Patch) -> None:
    patch(tools, "supports_structured_content", lambda version: False)


@mutant(
    "A call that failed looks like one that worked.",
    caught_by=("plain-mcp/arguments-of-wrong-types", "newest-clients/structured-results"),
)
def errors_not_marked(patch: Patch) -> None:
    call_result = tools.call_result

    def unmarked(result: Any, version: str) -> dict[str, Any]:
        reply = call_result(result, version)
        reply.pop("isError", None)
        return reply

    patch(tools, "call_result", unmarked)


@mutant(
    "Each input schema has a combinator at its root, over which clients drop the tool.",
    caught_by="plain-mcp/tool-schemas",
)
def combinator_at_the_root(patch: Patch) -> None:
    def combined(declared: Any, version: str) -> msgspec.Raw:
        page = tools.tools_list(declared, version)
        for tool in page["tools"]:
            tool["inputSchema"] = {**tool["inputSchema"], "anyOf": [{}]}
        return msgspec.Raw(msgspec.json.encode(page))

    patch(tools, "encoded_tools_list", combined)


@mutant(
    "Line separators leave as they are, and readers that split there see half a message.",
    caught_by="plain-mcp/odd-characters",
)
def raw_line_separators(patch: Patch) -> None:
    patch(encoding, "_line", lambda body: body + b"\n")


@mutant(
    "Half a character costs the whole call.",
    caught_by="plain-mcp/odd-characters",
)
def lone_surrogates_refused(patch: Patch) -> None:
    patch(messages, "_without_lone_surrogates", lambda line: line)


def _limit(patch: Patch, limit: int) -> None:
    begin = LineBuffer.__init__
    patch(LineBuffer, "__init__", lambda self: begin(self, limit))


@mutant(
    "The longest line that is served is one byte shorter than it may be.",
    caught_by={"plain-mcp/a-line-of-16-mib": "To the last byte."},
)
def limit_one_byte_short(patch: Patch) -> None:
    _limit(patch, MAX_LINE_BYTES - 1)


@mutant(
    "A line one byte too long is served all the same.",
    caught_by={"plain-mcp/a-line-of-16-mib": r"\"id\":82"},
)
def limit_one_byte_over(patch: Patch) -> None:
    _limit(patch, MAX_LINE_BYTES + 1)


@mutant(
    "A line of more than 64 KiB is too long.",
    caught_by={"plain-mcp/a-line-of-16-mib": "To the last byte."},
)
def limit_of_64_kib(patch: Patch) -> None:
    _limit(patch, 64 * 1024)


@mutant("While half a line is waiting nothing is sent.", caught_by="misbehaving/half-a-line")
def half_a_line_stops_all(patch: Patch) -> None:
    receive, tick = Session.receive, Session.tick
    waiting: set[int] = set()

    def noting(self: Session, data: bytes, now: Any) -> Any:
        (waiting.discard if data.endswith(b"\n") else waiting.add)(id(self))
        return receive(self, data, now)

    def patient(self: Session, now: Any) -> Any:
        return [] if id(self) in waiting else tick(self, now)

    patch(Session, "receive", noting)
    patch(Session, "tick", patient)


@mutant(
    "Any answer settles the oldest push, whatever its id.",
    caught_by="misbehaving/answering-another-id",
)
def answers_unmatched(patch: Patch) -> None:
    def settle(self: Any, answer: Any) -> Any:
        oldest = next(iter(self._waiting), None)
        return None if oldest is None else self._waiting.pop(oldest)

    patch(Outgoing, "settle", settle)


@mutant("The second answer to a push counts as well.", caught_by="misbehaving/answering-twice")
def second_answer_counts(patch: Patch) -> None:
    reminder_answered = WakeWing._reminder_answered

    def settle(self: Any, answer: Any) -> Any:
        return self._waiting.get(answer.id)

    def again(self: WakeWing, sent: Any, request_id: str, outcome: Any, now: Any) -> None:
        row = self.reminders.rows.get(sent.occurrence.id)
        if row is not None:
            occurrence = msgspec.structs.replace(sent.occurrence, due=row.fire_at)
            sent = msgspec.structs.replace(sent, occurrence=occurrence)
            if self.reminders.state(row.id) is None:
                self.reminders.sent(row, request_id, now.wall, now.monotonic)
        reminder_answered(self, sent, request_id, outcome, now)

    patch(Outgoing, "settle", settle)
    patch(Outgoing, "forget", lambda self, id: None)
    patch(WakeWing, "_reminder_answered", again)


@mutant(
    "Ids of our own requests are small numbers that every process counts anew.",
    caught_by="agent-framework-0.20/respawned-with-a-push-out",
)
def request_ids_counted_anew(patch: Patch) -> None:
    begin = Outgoing.__init__
    patch(Outgoing, "__init__", lambda self, prefix: begin(self, "push"))


@mutant(
    "A banner stands on stdout before the first message.",
    caught_by=("agent-framework-0.20/stopped-with-sigterm", "misbehaving/closes-stdin"),
)
def stray_print(patch: Patch) -> None:
    write = streams.Sink.write
    greeted: set[int] = set()

    def chatty(self: streams.Sink, data: bytes) -> None:
        if id(self) not in greeted:
            greeted.add(id(self))
            data = b"heartbeat server ready\n" + data
        write(self, data)

    patch(streams.Sink, "write", chatty)


@mutant(
    "The end of stdin does not end the server.",
    caught_by=("misbehaving/closes-stdin", "misbehaving/gone-before-it-spoke"),
)
def stays_after_stdin(patch: Patch) -> None:
    read = streams.Source.read

    async def endless(self: streams.Source) -> bytes:
        data = await read(self)
        if not data:
            await trio.sleep_forever()
        return data

    patch(streams.Source, "read", endless)


@mutant(
    "That nobody listens any more is noticed only when there is something to say.",
    caught_by={"misbehaving/closes-stdout-while-idle": '"exit"'},
)
def closed_stdout_unseen(patch: Patch) -> None:
    async def unwatched(self: streams.Sink) -> None:
        await trio.sleep_forever()

    patch(streams.Sink, "watch", unwatched)


@mutant("SIGTERM does not end the server.", caught_by="agent-framework-0.20/stopped-with-sigterm")
def sigterm_ignored(patch: Patch) -> None:
    on_signals = process.Ending.on_signals

    def ignoring(self: process.Ending, stop: Any) -> Any:
        return on_signals(self, lambda: None)

    patch(process.Ending, "on_signals", ignoring)
    patch(process.Ending, "within_time", lambda self: None)
