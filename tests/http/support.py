"""A desk that notes what it is asked, and a client that talks to the application itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from mcpl_heartbeat.shell.counters import Counters
from mcpl_heartbeat.shell.http.app import application
from mcpl_heartbeat.storage.store.ports import Outcome, Stats
from mcpl_heartbeat.watch.arguments import Arguments
from mcpl_heartbeat.watch.results import WhoamiResult

SECRET = "hb_" + "s" * 43
NOW = "2026-12-01T12:00:00.000Z"
ADDRESS = "agent:" + "a" * 16
WHO = WhoamiResult(
    server_time=NOW,
    address=ADDRESS,
    namespace_id="ns_" + "0" * 24,
    label=None,
    registered_at=NOW,
    total=0,
    due=0,
    next_due_at=None,
    dead_lettered=0,
    boxes=(),
    switches={},
    leases=0,
)


class NotingDesk:
    """Answers every call with ``outcome`` and keeps what it was asked."""

    def __init__(self, outcome: Outcome | Exception | None = None) -> None:
        self.outcome = outcome or WHO
        self.calls: list[tuple[str, Arguments, str | None]] = []
        self.trouble: str | None = None
        self.counters = Counters()

    async def call(self, tool: str, arguments: Arguments, secret: str | None) -> Outcome:
        self.calls.append((tool, arguments, secret))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def stats(self) -> Stats | None:
        return None if self.trouble else Stats(armed=3, mail_waiting=2, gaps=1)


@asynccontextmanager
async def client(
    desk: object, *, host: str = "127.0.0.1", base: str = "http://127.0.0.1:8765"
) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client of the application over ``desk``, without a socket between them."""
    app = application(desk, host)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url=base) as opened:
        yield opened


def bearer(secret: str = SECRET) -> dict[str, str]:
    """Give the header that says whose call it is."""
    return {"Authorization": f"Bearer {secret}"}
