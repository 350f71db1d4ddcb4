"""Standard input and output: moved aside, never waited on by blocking, left as they were found.

Input is waited for and then read, so its descriptor's mode is never touched. Output must not block:
a terminal and a pipe are opened once more for that, which leaves alone the opening that others
share; a socket is switched and switched back at the end. (trio's ``FdStream`` would leave a user's
terminal non-blocking.)
"""

import contextlib
import fcntl
import os
import select
import stat
import sys

import trio

CHUNK = 65_536
"""Bytes asked for at once: what a Linux pipe holds."""
LIMIT = 64 * 1024 * 1024
"""Bytes that may wait for a host that does not read before reading from it stops."""
_FIRST_FREE = 10
"""Descriptors from here on are ours; the low ones are where strays look."""


class StreamClosedError(Exception):
    """A standard stream was closed before this program started; the message names it."""


class Streams:
    """The two descriptors in use, and the way back to the flags they had."""

    def __init__(self, source: int, sink: int) -> None:
        """Use ``source`` and ``sink``; ``sink`` is made non-blocking where that can be done."""
        self.source = source
        self.sink = sink
        self._switched: int | None = None
        self._make_sink_ready()

    def _make_sink_ready(self) -> None:
        mode = os.fstat(self.sink).st_mode
        if stat.S_ISFIFO(mode) or os.isatty(self.sink):
            again = _opened_again(self.sink)
            if again is not None:
                os.close(self.sink)
                self.sink = again
                return
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            flags = fcntl.fcntl(self.sink, fcntl.F_GETFL)
            if not flags & os.O_NONBLOCK:
                fcntl.fcntl(self.sink, fcntl.F_SETFL, flags | os.O_NONBLOCK)
                self._switched = flags

    def restore(self) -> None:
        """Give the output the flags it had. May be called at any time, from any thread, twice."""
        flags, self._switched = self._switched, None
        if flags is not None:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.sink, fcntl.F_SETFL, flags)


def take_standard_streams() -> Streams:
    """Move descriptors 0 and 1 aside and put harmless ones in their place.

    From then on 0 is ``/dev/null`` and 1 is standard error, so that nothing printed by accident can
    reach the host. Raises ``StreamClosedError`` when there is no input or no output to take.
    """
    moved = []
    for descriptor, name in ((0, "input"), (1, "output")):
        try:
            moved.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE))
        except OSError as error:
            raise StreamClosedError(f"standard {name} is closed") from error
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    # 2 is standard error or, if that was closed, what has just been opened in its place.
    os.dup2(2, 1)
    if null > 2:
        os.close(null)
    return Streams(*moved)


def _opened_again(descriptor: int) -> int | None:
    try:
        path = os.ttyname(descriptor)
    except OSError:
        path = f"/proc/self/fd/{descriptor}"
    flags = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        again = os.open(path, flags)
    except OSError:
        return None
    # A name can lead elsewhere, as a terminal's does inside another mount namespace.
    if os.path.samestat(os.fstat(again), os.fstat(descriptor)):
        return again
    os.close(again)
    return None


LINGER_MS = 1
PATIENCE = 8
"""How often in a row ``read`` may linger."""


class Source:
    """Bytes from the host."""

    def __init__(self, descriptor: int) -> None:
        """Read from ``descriptor`` without changing its mode."""
        self.descriptor = descriptor
        self._ready_at_once = False
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._patience = PATIENCE

    async def read(self, linger: bool = False) -> bytes:
        """Wait for bytes and return them; ``b""`` at the end, or when the other side is gone.

        ``linger``: nothing else is under way, and a host that has just asked may ask again at once.
        Then a millisecond's wait in the kernel saves a round of the scheduler; a few times in a row
        at most, so that alarms are never kept for longer.
        """
        while True:
            if linger and self._patience and self._poll.poll(LINGER_MS):
                self._patience -= 1
                linger = False
            elif self._ready_at_once:
                await trio.lowlevel.checkpoint()
            else:
                self._patience = PATIENCE
                try:
                    await trio.lowlevel.wait_readable(self.descriptor)
                except OSError:  # regular files and /dev/null cannot be waited on, and need not be
                    self._ready_at_once = True
            try:
                return os.read(self.descriptor, CHUNK)
            except BlockingIOError:  # another reader of the same pipe was quicker
                await trio.lowlevel.checkpoint()
            except OSError:
                return b""


class Sink:
    """Bytes to the host, in order. ``write`` never blocks: what is not taken at once waits here."""

    def __init__(self, descriptor: int) -> None:
        """Write to ``descriptor``, which is non-blocking if it is of a kind that could block."""
        self._descriptor = descriptor
        self._waiting = bytearray()
        self._more = trio.Event()
        self._less = trio.lowlevel.ParkingLot()
        self.lost = trio.Event()
        """Set once nothing can be written any more: the host is gone."""

    @property
    def waiting(self) -> int:
        """How many bytes the host has not taken yet."""
        return len(self._waiting)

    def write(self, data: bytes) -> None:
        """Hand over ``data``: to the host as far as it takes it, the rest to ``run``."""
        if self.lost.is_set() or not data:
            return
        if not self._waiting:
            data = data[self._push(data) :]
        if data and not self.lost.is_set():
            self._waiting += data
            self._more.set()

    async def run(self) -> None:
        """Write what waits whenever the host takes bytes again. Returns when the host is gone."""
        while not self.lost.is_set():
            await self._more.wait()
            try:
                await trio.lowlevel.wait_writable(self._descriptor)
            except OSError:  # a regular file: writable, or it fails in the write itself
                await trio.lowlevel.checkpoint()
            del self._waiting[: self._push(self._waiting)]
            if not self._waiting:
                self._more = trio.Event()
            self._less.unpark_all()

    async def room(self, limit: int = LIMIT) -> None:
        """Return when at most ``limit`` bytes wait (0: all is written), or the host is gone."""
        while len(self._waiting) > limit and not self.lost.is_set():
            await self._less.park()

    async def watch(self) -> None:
        """Notice that the host closed our output, also while there is nothing to write."""
        await hang_up(self._descriptor)
        self.give_up()

    def give_up(self) -> None:
        """Treat the host as gone: what waits is dropped."""
        self._waiting.clear()
        self.lost.set()
        self._more.set()
        self._less.unpark_all()

    def _push(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:  # EPIPE, EIO: the reader is gone. ENOSPC on a file: nobody to tell.
            self.give_up()
            return 0


async def hang_up(descriptor: int) -> None:
    """Return once the other side of ``descriptor`` is gone; never, where that cannot be told.

    An epoll with an empty mask reports errors and hang-ups alone, and can itself be waited on, so
    this costs nothing while the other side is there. Elsewhere the next read or write has to tell.
    """
    if sys.platform == "linux":
        # A regular file, which nobody hangs up, is refused here.
        with contextlib.suppress(OSError), select.epoll() as poll:
            poll.register(descriptor, 0)
            await trio.lowlevel.wait_readable(poll.fileno())
            return
    await trio.sleep_forever()
