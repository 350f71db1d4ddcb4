"""``/openapi.json``: the routes as OpenAPI 3.1, made from the Structs that they enforce."""

from typing import Any

import mcpl_heartbeat
from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.shell.http import replies
from mcpl_heartbeat.shell.http.health import HealthReport
from mcpl_heartbeat.shell.http.replies import Receive, Scope, Send
from mcpl_heartbeat.shell.http.routes import TOOL_OF
from mcpl_heartbeat.watch.failures import STATUS, Failure

_OF_A_FAILURE = ("code", "message", "next", "problems")
"""Members of a result's schema that only MCP needs, where one schema is for both."""

_FAILURES = {
    400: "Something in the body is wrong; `problems` names all of it at once.",
    401: "There is no secret, or none that is known here.",
    403: "A web page of another host, or a name that is not this server's.",
    404: "What an argument names is not there.",
    409: "It cannot be done as things stand.",
    413: "The body is over 1 MiB.",
    415: "The body says that it is something else than JSON.",
    500: "Internal error.",
    503: "The store cannot be used: state unknown, do not proceed.",
}
_ONLY = {401: {"register"}, 404: {"heartbeat", "send"}, 409: {"send", "register"}}
"""Which tools can answer with a status; with 401 all but these."""


class Description:
    """The ASGI endpoint of ``/openapi.json``."""

    def __init__(self) -> None:
        self._reply = replies.of_value(description())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the whole description."""
        await replies.send_reply(self._reply, send)


def description() -> dict[str, Any]:
    """Make the description as plain data."""
    paths: dict[str, Any] = {path: {"post": _operation(tool)} for path, tool in TOOL_OF.items()}
    paths["/healthz"] = {"get": _health()}
    paths["/metrics"] = {"get": _metrics()}
    paths["/openapi.json"] = {"get": _itself()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mcpl-heartbeat watch",
            "version": mcpl_heartbeat.__version__,
            "description": "A dead-man switch for agents, with the leases, mail and briefing it "
            "acts on. Refusals that are ordinary answers are 200 with their flag false; a flag "
            "that is null says that the state is unknown. The same tools are at POST /mcp, as MCP "
            "Streamable HTTP, which describes itself.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": {str(status): _failed(status, text) for status, text in _FAILURES.items()},
            "securitySchemes": {
                "agentSecret": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The agent_secret that register returned. Where this header "
                    "cannot be set, the argument agent_key does the same.",
                }
            },
        },
    }


def _operation(tool: Tool) -> dict[str, Any]:
    needs_body = bool(schema(tool.arguments).get("required"))
    operation: dict[str, Any] = {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "requestBody": {
            "required": needs_body,
            "content": {"application/json": {"schema": _ref(f"{tool.name}_arguments")}},
        },
        "responses": {
            "200": {
                "description": tool.title,
                "content": {"application/json": {"schema": _ref(f"{tool.name}_result")}},
            },
            **{
                str(status): {"$ref": f"#/components/responses/{status}"}
                for status in _FAILURES
                if _can_answer(tool.name, status)
            },
        },
    }
    if _can_answer(tool.name, 401):
        operation["security"] = [{"agentSecret": []}]
    return operation


def _can_answer(name: str, status: int) -> bool:
    if status == 401:
        return name not in _ONLY[401]
    return status not in _ONLY or name in _ONLY[status]


def _schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for tool in TOOL_OF.values():
        schemas[f"{tool.name}_arguments"] = schema(tool.arguments)
        schemas[f"{tool.name}_result"] = _of_success(schema(tool.result))
    failed = dict(schema(Failure))
    failed["properties"] = {**failed["properties"], "code": {"enum": sorted(STATUS)}}
    schemas["failure"] = failed
    schemas["health"] = schema(HealthReport)
    return schemas


def _of_success(result: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: rule for name, rule in result["properties"].items() if name not in _OF_A_FAILURE
    }
    return {**result, "properties": properties}


def _failed(status: int, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": text,
        "content": {"application/json": {"schema": _ref("failure")}},
    }
    if status == 401:
        answer["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    if status == 503:
        answer["headers"] = {
            "Retry-After": {"description": "Seconds.", "schema": {"type": "string"}}
        }
    return answer


def _health() -> dict[str, Any]:
    content = {"application/json": {"schema": _ref("health")}}
    return {
        "operationId": "health",
        "summary": "Whether the store can be used",
        "responses": {
            "200": {"description": "It can.", "content": content},
            "403": {"$ref": "#/components/responses/403"},
            "503": {"description": "It cannot; `reason` says why.", "content": content},
        },
    }


def _metrics() -> dict[str, Any]:
    return {
        "operationId": "metrics",
        "summary": "Metrics in the Prometheus text format",
        "responses": {
            "200": {
                "description": "The metrics.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            "403": {"$ref": "#/components/responses/403"},
        },
    }


def _itself() -> dict[str, Any]:
    return {
        "operationId": "openapi",
        "summary": "This description",
        "responses": {
            "200": {
                "description": "OpenAPI 3.1.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            "403": {"$ref": "#/components/responses/403"},
        },
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
