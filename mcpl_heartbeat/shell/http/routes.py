"""The routes under ``/v1``: one for each tool, its arguments the request, its result the answer.

A POST has the arguments in its body, a GET in its query, and ``task_id`` is in the path where the
path has a place for it. Whichever it is, they are weighed together by the tool's own rules.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Protocol
from urllib.parse import parse_qsl

import msgspec

from mcpl_heartbeat.catalogue import BY_NAME, TOOLS
from mcpl_heartbeat.jsonrpc.messages import Refusal
from mcpl_heartbeat.mcp import arguments
from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.shell.http import replies, requests
from mcpl_heartbeat.shell.http.replies import Receive, Reply, Scope, Send
from mcpl_heartbeat.watch.arguments import Arguments
from mcpl_heartbeat.watch.failures import Failure, failure, invalid, refused
from mcpl_heartbeat.watch.results import Result

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
"""Which tool of the watch wing a path is the door of (issue 4 §5); all of them take POST."""

TASKS, TASK = "/v1/agent-tasks", "/v1/agent-tasks/{task_id}"
MAX_QUERY = 1_000
"""The most parameters of a query that are read."""


class Route(msgspec.Struct, frozen=True):
    """The door of one tool."""

    method: str
    """``GET`` or ``POST``."""
    path: str
    tool: Tool


ROUTES = (
    *(Route("POST", path, BY_NAME[name]) for path, name in PATHS.items()),
    Route("POST", TASKS, BY_NAME["create_agent_task"]),
    Route("GET", TASKS, BY_NAME["list_agent_tasks"]),
    Route("GET", TASK, BY_NAME["get_agent_task"]),
    Route("POST", f"{TASK}/claim", BY_NAME["claim_agent_task"]),
    Route("POST", f"{TASK}/heartbeat", BY_NAME["heartbeat_agent_task"]),
    Route("POST", f"{TASK}/submit", BY_NAME["submit_agent_task"]),
    Route("POST", f"{TASK}/release", BY_NAME["release_agent_task"]),
)
"""Every one of them (issue 4 §5, issue 5 §1)."""


class Desk(Protocol):
    """What the doors need of ``shell/desk.py``."""

    async def call(self, tool: str, arguments: Arguments, secret: str | None) -> Result | Failure:
        """Carry a call out."""


class Doors:
    """An ASGI endpoint for a path: the tools that it is the door of, by their methods."""

    def __init__(self, routes: Iterable[Route], desk: Desk) -> None:
        self._tools = {route.method: route.tool for route in routes}
        self._desk = desk

    @property
    def methods(self) -> list[str]:
        """The methods that it takes."""
        return list(self._tools)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await replies.send_reply(await self._answer(scope, receive), send)

    async def _answer(self, scope: Scope, receive: Receive) -> Reply:
        headers, in_path = scope["headers"], scope.get("path_params", {})
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        tool = self._tools[method]
        if method == "GET":
            asked = weigh_query(tool, scope["query_string"], in_path)
        else:
            if (wrong := requests.wrong_type(headers)) is not None:
                return replies.of_failure(wrong)
            try:
                body = await replies.read_body(scope, receive)
            except replies.TooLongError:
                return replies.too_long()
            asked = weigh(tool, body, in_path, scope["query_string"])
        if isinstance(asked, Failure):
            return replies.of_failure(asked)
        secret = requests.secret_of(tool, headers, asked)
        if isinstance(secret, Failure):
            return replies.of_failure(secret)
        return replies.of_outcome(await self._desk.call(tool.name, asked, secret.value))


def by_path(desk: Desk) -> dict[str, Doors]:
    """Make the endpoints of all paths."""
    routes: dict[str, list[Route]] = {}
    for route in ROUTES:
        routes.setdefault(route.path, []).append(route)
    return {path: Doors(here, desk) for path, here in routes.items()}


def weigh(
    tool: Tool, body: bytes, in_path: Mapping[str, str], query: bytes = b""
) -> Arguments | Failure:
    """Read a body by the rules for the arguments, every problem at once; an empty one is ``{}``."""
    if query:
        # Nothing that was sent is passed over in silence.
        problem = "query: a POST has its arguments in the body alone"
        return invalid(tool.name, (problem,), reads=tool.read_only)
    sent = body.strip()
    if sent == b"null":
        return _no_object("must be a JSON object, not null")
    if in_path and (not sent or sent.startswith(b"{")):
        sent = _beside(in_path, sent)
    return _checked(tool, msgspec.Raw(sent) if sent else None)


def weigh_query(tool: Tool, query: bytes, in_path: Mapping[str, str]) -> Arguments | Failure:
    """Read a query by the same rules; where the tool takes a number, its text is one."""
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_QUERY)
    except ValueError:
        return invalid(
            tool.name,
            (f"arguments: sends more than {MAX_QUERY} parameters",),
            reads=tool.read_only,
        )
    if any(name == "agent_key" for name, _ in pairs):
        return invalid(
            tool.name,
            (
                "agent_key: a secret does not belong into a URL, which others log; send the header "
                "Authorization: Bearer <agent_secret>",
            ),
            reads=tool.read_only,
        )
    members = ",".join(f"{json.dumps(name)}:{_value(tool, name, text)}" for name, text in pairs)
    return _checked(tool, msgspec.Raw(_beside(in_path, f"{{{members}}}".encode())))


def _beside(in_path: Mapping[str, str], sent: bytes) -> bytes:
    """Put what the path says in front of what an object says; a name in both is sent twice."""
    if not in_path:
        return sent
    named = json.dumps(dict(in_path)).encode()
    if not sent or sent[1:].lstrip() == b"}":
        return named
    return named[:-1] + b"," + sent[1:]


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _value(tool: Tool, name: str, text: str) -> str:
    rule = schema(tool.arguments)["properties"].get(name, {})
    if rule.get("type") in {"integer", "number"} and _NUMBER.fullmatch(text):
        return text
    return json.dumps(text)


def _checked(tool: Tool, raw: msgspec.Raw | None) -> Arguments | Failure:
    checked = arguments.check(tool, raw, TOOLS)
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
