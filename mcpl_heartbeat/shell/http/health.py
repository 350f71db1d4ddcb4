"""``/healthz``: whether the store can be used, for whoever restarts or routes."""

from typing import Literal, Protocol

import msgspec

import mcpl_heartbeat
from mcpl_heartbeat.shell.counters import Counters
from mcpl_heartbeat.shell.http import replies
from mcpl_heartbeat.shell.http.replies import Receive, Scope, Send
from mcpl_heartbeat.shell.http.routes import Desk
from mcpl_heartbeat.storage.store.ports import Stats


class Watched(Desk, Protocol):
    """What the doors for operators need of ``shell/desk.py``."""

    @property
    def counters(self) -> Counters:
        """What this server has done so far."""

    @property
    def trouble(self) -> str | None:
        """Why the store cannot be used now, one clause; ``None`` while it can."""

    async def stats(self) -> Stats | None:
        """Count; ``None`` while the store cannot be used."""


class HealthReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of ``/healthz``."""

    status: Literal["ok", "unavailable"]
    version: str
    reason: str | None = None


class Health:
    """The ASGI endpoint of ``/healthz``."""

    def __init__(self, desk: Watched) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say it: 200, or 503 with the reason."""
        trouble = self._desk.trouble
        version = mcpl_heartbeat.__version__
        if trouble is None:
            reply = replies.of_value(HealthReport("ok", version))
        else:
            reply = replies.of_value(HealthReport("unavailable", version, trouble), 503)
        await replies.send_reply(reply, send)
