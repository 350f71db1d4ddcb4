"""The routes under ``/v1``: one for each tool, its arguments the body, its result the answer."""

from typing import Protocol

import msgspec

from mcpl_heartbeat.jsonrpc.messages import Refusal
from mcpl_heartbeat.mcp import arguments
from mcpl_heartbeat.mcp.tools import Tool
from mcpl_heartbeat.shell.http import replies, requests
from mcpl_heartbeat.shell.http.replies import Receive, Reply, Scope, Send
from mcpl_heartbeat.watch.arguments import Arguments
from mcpl_heartbeat.watch.failures import Failure, failure, refused
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.tools import TOOLS

PATHS = {
    "/v1/heartbeat": "heartbeat",
    "/v1/switches": "switch_status",
    "/v1/register": "register",
    "/v1/whoami": "whoami",
    "/v1/send": "send",
    "/v1/inbox/poll": "inbox_poll",
    "/v1/inbox/ack": "inbox_ack",
    "/v1/inbox/nack": "inbox_nack",
    "/v1/lease": "lease",
    "/v1/lease/renew": "lease_renew",
    "/v1/lease/release": "lease_release",
    "/v1/checkpoint": "checkpoint_put",
    "/v1/resume": "resume_packet",
}
"""Which tool a path is the door of (issue 4 §5)."""

TOOL_OF = {path: next(tool for tool in TOOLS if tool.name == name) for path, name in PATHS.items()}


class Desk(Protocol):
    """What the doors need of ``shell/desk.py``."""

    async def call(self, tool: str, arguments: Arguments, secret: str | None) -> Result | Failure:
        """Carry a call out."""


class Door:
    """An ASGI endpoint for one tool."""

    def __init__(self, tool: Tool, desk: Desk) -> None:
        self._tool = tool
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await replies.send_reply(await self._answer(scope, receive), send)

    async def _answer(self, scope: Scope, receive: Receive) -> Reply:
        headers = scope["headers"]
        if (refused := requests.wrong_type(headers)) is not None:
            return replies.of_failure(refused)
        try:
            body = await replies.read_body(scope, receive)
        except replies.TooLongError:
            return replies.too_long()
        weighed = weigh(self._tool, body)
        if isinstance(weighed, Failure):
            return replies.of_failure(weighed)
        secret = requests.secret_of(self._tool, headers, weighed)
        if isinstance(secret, Failure):
            return replies.of_failure(secret)
        return replies.of_outcome(await self._desk.call(self._tool.name, weighed, secret.value))


def weigh(tool: Tool, body: bytes) -> Arguments | Failure:
    """Read a body by the rules for the arguments, every problem at once; an empty one is ``{}``."""
    sent = body.strip()
    if sent == b"null":
        return _no_object("must be a JSON object, not null")
    checked = arguments.check(tool, msgspec.Raw(sent) if sent else None, TOOLS)
    if isinstance(checked, Refusal):
        return _no_object(checked.message.partition(": ")[2])
    if isinstance(checked, arguments.Refused):
        return refused(tool, checked)
    taken: Arguments = checked.arguments
    return taken


def _no_object(rule: str) -> Failure:
    return failure(
        "invalid_arguments",
        f"The body {rule}.",
        "Send the arguments as one JSON object.",
        problems=(f"body: {rule}",),
    )
