"""MCP over HTTP: the Streamable HTTP transport, without sessions and with JSON answers only.

A POST holds one message, or a batch under 2025-03-26, and is answered in its own response. Nothing
is ever sent by the server's own accord, so there is no stream to GET and no session to DELETE. It
is no push path: alerts and nudges wake agents on stdio servers only.
"""

import logging

from msgspec import Raw

import mcpl_heartbeat
from mcpl_heartbeat.catalogue import TOOLS, text_of
from mcpl_heartbeat.jsonrpc.encoding import encode_batch, encode_error, encode_result
from mcpl_heartbeat.jsonrpc.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Batch,
    Invalid,
    Message,
    Refusal,
    Request,
    parse,
)
from mcpl_heartbeat.mcp import arguments, lifecycle, tools
from mcpl_heartbeat.shell import stderr
from mcpl_heartbeat.shell.http import replies, requests
from mcpl_heartbeat.shell.http.replies import Receive, Reply, Scope, Send
from mcpl_heartbeat.shell.http.requests import Headers
from mcpl_heartbeat.shell.http.routes import Desk
from mcpl_heartbeat.watch.failures import Failure, failure, refused
from mcpl_heartbeat.watch.results import Result

VERSIONS = tuple(version for version in lifecycle.VERSIONS if version >= "2025-03-26")
"""The protocol versions that have this transport."""
UNSAID = "2025-03-26"
"""What a request speaks that does not say (MCP 2025-06-18, transports)."""
SERVER = lifecycle.ServerInfo("mcpl-heartbeat", "Heartbeat watch", mcpl_heartbeat.__version__)
INSTRUCTIONS = (
    "A dead-man switch for agents: call register once and keep agent_secret, then heartbeat within "
    "the time you announce. A late beat frees your leases, marks the work failed and alerts whom "
    "you named. resume_packet tells whoever takes the work up what is known; inbox_poll collects "
    "alerts and mail. And a queue of tasks: create_agent_task puts work into it; a worker claims "
    "it, keeps the claim with heartbeat_agent_task and submits the result."
)

MAX_BATCH_REPLY = 4_194_304
"""Bytes of replies after which a batch's further requests are refused: a body of 1 MiB can ask for
far more than that, all of which is in memory at once."""

_BATCH_FULL = Refusal(
    INVALID_REQUEST,
    f"Not carried out: the replies to this batch are over {MAX_BATCH_REPLY} bytes already. "
    "Send this request again in another POST.",
)
_log = logging.getLogger("mcpl_heartbeat")
_ACCEPTED = Reply(202, b"")


class McpDoor:
    """The ASGI endpoint of ``/mcp``."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST."""
        await replies.send_reply(await self._answer(scope, receive), send)

    async def _answer(self, scope: Scope, receive: Receive) -> Reply:
        headers = scope["headers"]
        version = requests.header(headers, b"mcp-protocol-version") or UNSAID
        if (wrong := _wrong_headers(headers, version)) is not None:
            return replies.of_failure(wrong)
        try:
            body = await replies.read_body(scope, receive)
        except replies.TooLongError:
            return replies.too_long()
        message = parse(body, "The body")
        if isinstance(message, Batch):
            return await self._batch(message, headers, version)
        line = await self._reply(message, headers, version)
        if line is None:
            return _ACCEPTED
        return _json(line, 400 if isinstance(message, Invalid) else 200)

    async def _batch(self, batch: Batch, headers: Headers, version: str) -> Reply:
        """Answer item by item, and carry out no more once the replies are long enough together."""
        if not lifecycle.supports_batches(version):
            text = f"There are no batches in MCP {version}; send one message in each POST."
            return _json(encode_error(None, Refusal(INVALID_REQUEST, text)), 400)
        lines: list[bytes] = []
        size = 0
        for item in batch.items:
            if isinstance(item, Request) and size > MAX_BATCH_REPLY:
                line: bytes | None = encode_error(item.id, _BATCH_FULL)
            else:
                line = await self._reply(item, headers, version, in_batch=True)
            if line is not None:
                lines.append(line)
                size += len(line)
        return _json(encode_batch(lines)) if lines else _ACCEPTED

    async def _reply(
        self, message: Message, headers: Headers, version: str, *, in_batch: bool = False
    ) -> bytes | None:
        if isinstance(message, Invalid):
            return encode_error(message.id, message.refusal)
        if not isinstance(message, Request):
            return None
        try:
            answer = await self._request(message, headers, version, in_batch)
        except Exception as fault:  # one call of a batch must not cost the others
            _log.error("%s over HTTP failed: %s", message.method, stderr.describe(fault))
            answer = Refusal(INTERNAL_ERROR, "Internal error; this server's log has the details.")
        if isinstance(answer, Refusal):
            return encode_error(message.id, answer)
        return encode_result(message.id, answer)

    async def _request(
        self, request: Request, headers: Headers, version: str, in_batch: bool
    ) -> object:
        if request.method == "tools/call":
            return await self._call(request.params, headers, version)
        if request.method == "tools/list":
            return tools.encoded_tools_list(TOOLS, version)
        if request.method == "ping":
            return {}
        if request.method == "initialize":
            if in_batch:
                return Refusal(INVALID_REQUEST, "initialize cannot be part of a batch.")
            return _initialize(request.params)
        return Refusal(METHOD_NOT_FOUND, f"There is no method {tools.shown(request.method)}.")

    async def _call(self, params: Raw | None, headers: Headers, version: str) -> object:
        call = tools.read_call(params, TOOLS)
        if isinstance(call, Refusal):
            return call
        checked = arguments.check(call.tool, call.arguments, TOOLS)
        if isinstance(checked, Refusal):
            return checked
        if isinstance(checked, arguments.Refused):
            text = arguments.refusal_text(call.tool, checked)
            result = tools.ToolResult(text, refused(call.tool, checked), is_error=True)
            return tools.call_result(result, version)
        secret = requests.secret_of(call.tool, headers, checked.arguments)
        if isinstance(secret, Failure):
            outcome: Result | Failure = secret
        else:
            outcome = await self._desk.call(call.tool.name, checked.arguments, secret.value)
        text = text_of(call.tool.name, outcome)
        result = tools.ToolResult(text, outcome, is_error=isinstance(outcome, Failure))
        return tools.call_result(result, version)


def _initialize(params: Raw | None) -> object:
    asked = lifecycle.read_initialize(params)
    if isinstance(asked, Refusal):
        return asked
    version = asked.protocol_version
    if version not in VERSIONS:
        version = lifecycle.NEWEST
    return lifecycle.initialize_result(version, SERVER, instructions=INSTRUCTIONS)


def _wrong_headers(headers: Headers, version: str) -> Failure | None:
    if (wrong := requests.wrong_type(headers)) is not None:
        return wrong
    if not _takes_json(requests.header(headers, b"accept")):
        return failure(
            "not_acceptable",
            "Accept: answers are application/json.",
            "Send Accept: application/json, text/event-stream.",
        )
    if version not in VERSIONS:
        return failure(
            "invalid_arguments",
            f"MCP-Protocol-Version: must be one of {', '.join(VERSIONS)}.",
            "Send the version that initialize agreed on.",
        )
    return None


def _takes_json(accept: str | None) -> bool:
    if not accept:
        return True
    for part in accept.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        refused_by_weight = any(p.startswith("q=") and not p[2:].strip("0.") for p in parameters)
        if kind in {"application/json", "application/*", "*/*"} and not refused_by_weight:
            return True
    return False


def _json(line: bytes, status: int = 200) -> Reply:
    return Reply(status, line, ((b"content-type", b"application/json"),))
