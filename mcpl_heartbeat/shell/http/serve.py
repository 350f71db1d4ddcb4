"""``mcpl-heartbeat serve``: the process around the HTTP doors.

It starts, says in one line where it listens and on which store, and serves until SIGTERM, SIGINT or
SIGHUP. Then it takes no new connection, finishes the requests that run, leaves the watch and ends
with status 0, within ``TIME_TO_BE_GONE``. The store need not be there: until it is, every call is
answered with 503.
"""

# What the extra "serve" brings is imported only once it is known to be there.
# ruff: noqa: PLC0415

import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from mcpl_heartbeat.shell import chosen, signals, stderr
from mcpl_heartbeat.shell.http import listening
from mcpl_heartbeat.shell.http.listening import Address, NotListening
from mcpl_heartbeat.storage.store import extras, urls
from mcpl_heartbeat.storage.store.ports import StoreError

if TYPE_CHECKING:
    from mcpl_heartbeat.shell.http.connections import Connections

FINISH, LEAVE = 3.0, 1.0
"""Seconds that running requests, and then the store, are given after a signal."""
TIME_TO_BE_GONE = 4.5
"""Seconds after which the process ends, whatever still hangs (issue 4 §5: within 5 s)."""

_log = logging.getLogger("mcpl_heartbeat")


class Serving(msgspec.Struct, frozen=True):
    """What is to be served."""

    address: Address
    place: urls.Place


def run(listen: str, store: str | None, *, allow_remote: bool) -> int:
    """Serve until told to stop; the exit status: 0, 1 for a failure, 2 for wrong use."""
    try:
        address = listening.read(listen, allow_remote=allow_remote)
    except NotListening as error:
        return _failed(str(error), 2)
    try:
        place = chosen.store(store, os.environ)
        extras.need(*extras.SERVE, *(extras.POSTGRES if place.path is None else ()))
    except StoreError as error:
        return _failed(f"{error}.", 1)
    stderr.install()
    logging.getLogger("alembic").setLevel(logging.WARNING)
    status = 0
    try:
        status = trio.run(_serve, Serving(address, place))
    except Exception as error:
        _log.error("The server ends: %s", stderr.describe(error))
        status = 1
    return status


def _failed(text: str, status: int) -> int:
    print(f"mcpl-heartbeat: {text}", file=sys.stderr)
    return status


async def _serve(what: Serving) -> int:
    stop = trio.Event()
    with _on_signals(stop.set):
        from mcpl_heartbeat.shell.desk import Desk
        from mcpl_heartbeat.shell.http.app import application
        from mcpl_heartbeat.shell.http.connections import Connections
        from mcpl_heartbeat.storage.store.store import Store

        try:
            taken, address = await listening.listeners(what.address)
        except NotListening as error:
            _log.error("%s", error)
            return 1
        desk = Desk(Store(what.place.url))
        connections = Connections(application(desk, address.host))
        async with trio.open_nursery() as nursery:
            await nursery.start(desk.run)
            _log.info("Listening on %s, on the store %s", address.url, what.place.shown)
            gc.collect()
            gc.freeze()  # what is loaded by now stays, and need not be looked at again
            await _answer(connections, taken, stop)
            await desk.aclose(LEAVE)
            nursery.cancel_scope.cancel()
    return 0


async def _answer(
    connections: "Connections", taken: list[trio.SocketListener], stop: trio.Event
) -> None:
    """Serve connections until ``stop``, then finish what runs, within reason."""
    async with trio.open_nursery() as open_ones:
        async with trio.open_nursery() as accepting:
            accepting.start_soon(
                partial(trio.serve_listeners, connections.serve, taken, handler_nursery=open_ones)
            )
            await stop.wait()
            accepting.cancel_scope.cancel()
        await connections.close()
        open_ones.cancel_scope.deadline = trio.current_time() + FINISH


def _on_signals(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """Call ``stop``, inside trio, at the first signal; the second ends the process at once."""
    told = False

    def noticed(number: int) -> None:
        nonlocal told
        if told:
            os._exit(128 + number)
        told = True
        threading.Thread(target=_end_by_force, daemon=True).start()

    return signals.caught(noticed, stop)


def _end_by_force() -> None:
    time.sleep(TIME_TO_BE_GONE)
    _log.warning("The store did not answer in time; leaving without it.")
    os._exit(0)
