"""The application: every route, and what goes for all of them."""

import logging
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mcpl_heartbeat.shell import stderr
from mcpl_heartbeat.shell.http import replies
from mcpl_heartbeat.shell.http.health import Health, Watched
from mcpl_heartbeat.shell.http.mcp_door import McpDoor
from mcpl_heartbeat.shell.http.metrics import Metrics, Traffic
from mcpl_heartbeat.shell.http.openapi import Description
from mcpl_heartbeat.shell.http.replies import App, Receive, Reply, Scope, Send
from mcpl_heartbeat.shell.http.requests import Guard
from mcpl_heartbeat.shell.http.routes import by_path
from mcpl_heartbeat.watch.failures import failure

_log = logging.getLogger("mcpl_heartbeat")


def application(desk: Watched, host: str) -> App:
    """Make the ASGI application over ``desk``, for a server that listens on ``host``."""
    traffic = Traffic()
    routes = [
        *(Route(path, doors, methods=doors.methods) for path, doors in by_path(desk).items()),
        Route("/mcp", McpDoor(desk), methods=["POST"]),
        Route("/openapi.json", Description(), methods=["GET"]),
        Route("/healthz", Health(desk), methods=["GET"]),
        Route("/metrics", Metrics(desk, traffic), methods=["GET"]),
    ]
    inner = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: _refused,
            replies.ClientGoneError: _unheard,
            Exception: _at_fault,
        },
    )
    inner.router.redirect_slashes = False
    return Outermost(inner, Guard(host), traffic)


class Outermost:
    """Around all routes: who may not call, and what a caller gets when we are at fault."""

    def __init__(self, inner: App, guard: Guard, traffic: Traffic) -> None:
        self._inner = inner
        self._guard = guard
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; never raises over what was sent, or over a fault of ours."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        if scope["type"] != "http":
            return
        if (refused := self._guard.refusal(scope["headers"])) is not None:
            await replies.send_reply(replies.of_failure(refused), send)
            return
        self._traffic.running += 1
        try:
            await self._inner(scope, receive, send)
        except Exception as fault:  # the caller was told already, by _at_fault
            _log.error("%s %s failed: %s", scope["method"], scope["path"], stderr.describe(fault))
        finally:
            self._traffic.running -= 1


async def _refused(request: Request, error: Exception) -> Response:
    """Give Starlette's own refusals, 404 and 405, the one shape."""
    assert isinstance(error, HTTPException)
    headers: Sequence[tuple[str, str]] = ()
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "POST")
        failed = failure(
            "method_not_allowed",
            f"{request.method} is no method of this path; it takes {allowed}.",
            f"Send {allowed}.",
        )
        headers = (("Allow", allowed),)
    else:
        failed = failure(
            "not_found",
            "There is no such path.",
            "GET /openapi.json lists the paths; a path has no slash at its end.",
        )
    reply: Reply = replies.of_failure(failed)
    return Response(reply.body, reply.status, dict(headers), media_type="application/json")


async def _unheard(request: Request, error: Exception) -> Response:
    """Answer a client that left before its request was whole, for nobody."""
    return Response(status_code=400)


async def _at_fault(request: Request, error: Exception) -> Response:
    """Say that the fault is ours, and no more."""
    reply = replies.INTERNAL
    return Response(reply.body, reply.status, media_type="application/json")
