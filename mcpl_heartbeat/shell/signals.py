"""The signals that end a process, caught while it runs."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

import trio

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextlib.contextmanager
def caught(noticed: Callable[[int], None], stop: Callable[[], None]) -> Iterator[None]:
    """At each signal call ``noticed`` with its number at once, and ``stop`` inside trio.

    A signal that was ignored when we were started stays ignored.
    """
    token = trio.lowlevel.current_trio_token()

    def handle(number: int, frame: FrameType | None) -> None:
        noticed(number)
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(stop, idempotent=True)

    before = {
        number: signal.signal(number, handle)
        for number in ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
