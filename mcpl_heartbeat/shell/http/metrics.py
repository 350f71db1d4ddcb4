"""``/metrics``: counts for operators."""

from mcpl_heartbeat.shell.http import replies
from mcpl_heartbeat.shell.http.health import Watched
from mcpl_heartbeat.shell.http.replies import Receive, Scope, Send


class Metrics:
    """The ASGI endpoint of ``/metrics``."""

    def __init__(self, desk: Watched) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the metrics."""
        await replies.send_reply(replies.Reply(200, b""), send)
