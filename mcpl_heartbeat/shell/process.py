"""The process around a server: its streams taken, its signals caught, its end always in time."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec
import trio

from mcpl_heartbeat.shell import environment, signals, stderr, streams
from mcpl_heartbeat.shell.clock import SystemClock
from mcpl_heartbeat.shell.ports import Core, Files, Watching
from mcpl_heartbeat.shell.server import Server

TIME_TO_BE_GONE = 1.9
"""Seconds after which the process ends, whatever still hangs (issue 2, section 1: within 2 s)."""

_log = logging.getLogger("mcpl_heartbeat")


class Parts(msgspec.Struct, frozen=True):
    """What a server is made of."""

    core: Core
    files: Files
    watching: Watching | None = None


Assemble = Callable[[environment.Environment], Parts]
"""Makes the parts from what the environment says."""


def run(assemble: Assemble) -> int:
    """Serve on the standard streams until the host is gone.

    Returns the exit status: 0, or 1 when there was nothing to serve on. After a signal it does not
    return: the process dies of it.
    """
    try:
        taken = streams.take_standard_streams()
    except (streams.StreamClosedError, OSError) as error:
        stderr.install()
        _log.error("%s: a host has to start this server with both streams connected.", error)
        return 1
    stderr.install()
    ending = Ending(taken.restore)
    status = 0
    try:
        trio.run(_serve, assemble, taken, ending)
    except Exception as error:
        _log.error("The server ends: %s", stderr.describe(error))
        status = 1
    ending.finish()
    return status


async def _serve(assemble: Assemble, taken: streams.Streams, ending: "Ending") -> None:
    found = environment.read(os.environ)
    for warning in found.warnings:
        _log.warning("%s", warning)
    parts = assemble(found)
    source, sink = streams.Source(taken.source), streams.Sink(taken.sink)
    server = Server(parts.core, source, sink, parts.files, SystemClock(), parts.watching)
    with ending.on_signals(server.stop):
        await server.run(leaving=ending.within_time)


class Ending:
    """How the process ends: by the end of input or a signal, and in time."""

    def __init__(self, restore: Callable[[], None]) -> None:
        """``restore`` puts the descriptors' flags back; it is called on every way out."""
        self._restore = restore
        self._watched = False
        self.signal: int | None = None

    def on_signals(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``stop``, inside trio, at the first SIGTERM, SIGINT or SIGHUP."""

        def noticed(number: int) -> None:
            self.signal = self.signal or number
            self.within_time()

        return signals.caught(noticed, stop)

    def within_time(self) -> None:
        """Leave the process ``TIME_TO_BE_GONE`` seconds from now, whatever it still waits for."""
        if not self._watched:
            self._watched = True
            threading.Thread(target=self._end_by_force, daemon=True).start()

    def _end_by_force(self) -> None:
        time.sleep(TIME_TO_BE_GONE)
        self._restore()
        # Only the main thread may set a signal's default again; a shell shows this status for it.
        os._exit(128 + self.signal if self.signal else 0)

    def finish(self) -> None:
        """Restore; after a signal, die of it, so that whoever waits for us sees which."""
        self._restore()
        if self.signal is not None:
            signal.signal(self.signal, signal.SIG_DFL)
            signal.raise_signal(self.signal)
