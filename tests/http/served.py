"""A real server on a real port and a real store, in a thread of its own."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import trio

from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.shell.http.app import application
from mcpl_heartbeat.shell.http.connections import Connections
from mcpl_heartbeat.storage.store.clock import SteadyClock
from mcpl_heartbeat.storage.store.store import Store


@contextmanager
def served(store_url: str, clock: SteadyClock | None = None) -> Iterator[str]:
    """Serve ``store_url`` by ``clock`` and give the URL of the server."""
    ready: queue.Queue[tuple[str, trio.lowlevel.TrioToken, trio.CancelScope] | Exception]
    ready = queue.Queue()

    async def serve() -> None:
        desk = Desk(Store(store_url, clock=clock))
        connections = Connections(application(desk, "127.0.0.1"))
        async with trio.open_nursery() as nursery:
            await nursery.start(desk.run)
            taken = await nursery.start(
                partial(trio.serve_tcp, connections.serve, 0, host="127.0.0.1")
            )
            port = taken[0].socket.getsockname()[1]
            token = trio.lowlevel.current_trio_token()
            ready.put((f"http://127.0.0.1:{port}", token, nursery.cancel_scope))
            await trio.sleep_forever()

    def run() -> None:
        try:
            trio.run(serve)
        except Exception as error:
            ready.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    begun = ready.get(timeout=30)
    if isinstance(begun, Exception):
        raise begun
    url, token, scope = begun
    try:
        yield url
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(timeout=30)
    assert not thread.is_alive()
