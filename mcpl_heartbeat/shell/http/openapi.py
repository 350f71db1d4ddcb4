"""``/openapi.json``: the routes as OpenAPI 3.1, made from the Structs that they enforce."""

from typing import Any

import mcpl_heartbeat
from mcpl_heartbeat.catalogue import REQUIRES_SECRET
from mcpl_heartbeat.mcp.tools import schema
from mcpl_heartbeat.shell.http import replies
from mcpl_heartbeat.shell.http.health import HealthReport
from mcpl_heartbeat.shell.http.replies import Receive, Scope, Send
from mcpl_heartbeat.shell.http.routes import ROUTES, Route
from mcpl_heartbeat.watch.failures import STATUS, Failure

_OF_A_FAILURE = ("code", "message", "next", "problems")
"""Members of a result's schema that only MCP needs, where one schema is for both."""

_FAILURES = {
    400: "Something in the request is wrong; `problems` names all of it at once.",
    401: "There is no secret, or none that is known here.",
    403: "A web page of another host, or a name that is not this server's.",
    404: "What an argument names is not there.",
    409: "It cannot be done as things stand. Of a task that was claimed: stop, discard the work.",
    413: "The body is over 1 MiB.",
    415: "The body says that it is something else than JSON.",
    422: "The outputs are not what the task asks for; `problems` names all of it, the claim stays.",
    500: "Internal error.",
    503: "The store cannot be used: state unknown, do not proceed.",
}
_OF_A_CLAIM = {"heartbeat_agent_task", "submit_agent_task", "release_agent_task"}
_ONLY = {
    404: {"heartbeat", "send", "create_agent_task", "get_agent_task", "claim_agent_task"}
    | _OF_A_CLAIM,
    409: {"send", "register", "create_agent_task", "claim_agent_task"} | _OF_A_CLAIM,
    422: {"submit_agent_task"},
}
"""Which tools can answer with a status."""
_OF_A_BODY = {413, 415}
_IN_A_HEADER = "agent_key"


class Description:
    """The ASGI endpoint of ``/openapi.json``."""

    def __init__(self) -> None:
        self._reply = replies.of_value(description())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the whole description."""
        await replies.send_reply(self._reply, send)


def description() -> dict[str, Any]:
    """Make the description as plain data."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    paths["/healthz"] = {"get": _health()}
    paths["/metrics"] = {"get": _metrics()}
    paths["/openapi.json"] = {"get": _itself()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mcpl-heartbeat",
            "version": mcpl_heartbeat.__version__,
            "description": "A dead-man switch for agents, with the leases, mail and briefing it "
            "acts on, and a queue of tasks that are claimed under a lease. Refusals that are "
            "ordinary answers are 200 with their flag false; a flag that is null says that the "
            "state is unknown. The same tools are at POST /mcp, as MCP Streamable HTTP, which "
            "describes itself.",
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
                    "cannot be set, the argument agent_key of a body does the same.",
                }
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    tool = route.tool
    operation: dict[str, Any] = {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "responses": {
            "200": {
                "description": tool.title,
                "content": {"application/json": {"schema": _ref(f"{tool.name}_result")}},
            },
            **{
                str(status): {"$ref": f"#/components/responses/{status}"}
                for status in _FAILURES
                if _can_answer(route, status)
            },
        },
    }
    if parameters := _parameters(route):
        operation["parameters"] = parameters
    if route.method == "POST":
        operation["requestBody"] = {
            "required": bool(_body(route).get("required")),
            "content": {"application/json": {"schema": _ref(f"{tool.name}_arguments")}},
        }
    if _can_answer(route, 401):
        operation["security"] = [{"agentSecret": []}]
    return operation


def _can_answer(route: Route, status: int) -> bool:
    if status == 401:
        return route.tool.name in REQUIRES_SECRET
    if status in _OF_A_BODY:
        return route.method == "POST"
    return status not in _ONLY or route.tool.name in _ONLY[status]


def _is_in_path(route: Route, name: str) -> bool:
    return f"{{{name}}}" in route.path


def _parameters(route: Route) -> list[dict[str, Any]]:
    """List what of the arguments is in the path, and with GET what is in the query."""
    listed = []
    for name, rule in schema(route.tool.arguments)["properties"].items():
        in_path = _is_in_path(route, name)
        if not in_path and (route.method == "POST" or name == _IN_A_HEADER):
            continue
        bare = {key: value for key, value in rule.items() if key != "description"}
        listed.append(
            {
                "name": name,
                "in": "path" if in_path else "query",
                "required": in_path,
                "description": rule["description"],
                "schema": bare,
            }
        )
    return listed


def _body(route: Route) -> dict[str, Any]:
    """Give the arguments but for those in the path."""
    whole = schema(route.tool.arguments)
    required = [name for name in whole.get("required", ()) if not _is_in_path(route, name)]
    properties = {
        name: rule for name, rule in whole["properties"].items() if not _is_in_path(route, name)
    }
    body = {**whole, "properties": properties, "required": required}
    if not required:
        del body["required"]
    return body


def _schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for route in ROUTES:
        if route.method == "POST":
            schemas[f"{route.tool.name}_arguments"] = _body(route)
        schemas[f"{route.tool.name}_result"] = _of_success(schema(route.tool.result))
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
