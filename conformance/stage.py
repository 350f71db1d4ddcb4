"""Where a transcript is played: against a process in real time, or in process with time in hand."""

from collections.abc import Callable, Mapping
from typing import Protocol

from conformance.host import Seat


class StageError(Exception):
    """The server cannot be played against (any more); the text says why."""


class Peer(Protocol):
    """One server, alive or gone."""

    def write(self, data: bytes) -> None:
        """Hand it bytes; they are with it when ``written`` says so."""
        ...

    @property
    def written(self) -> bool:
        """Whether it (or its pipe) has taken all bytes, or never will, being gone."""
        ...

    def close(self, end: str) -> None:
        """Close the host's end of ``"stdin"`` or ``"stdout"``."""
        ...

    def signal(self, name: str) -> None:
        """Send it a signal such as ``"SIGTERM"``."""
        ...

    @property
    def status(self) -> int | None:
        """How it ended: its exit status, or minus the signal; ``None`` while it runs."""
        ...

    @property
    def ended(self) -> bool:
        """Whether it is gone and all that it wrote has been read."""
        ...


class Stage(Protocol):
    """Time, and the servers in it."""

    def now(self) -> int:
        """Return the wall time in milliseconds."""
        ...

    def start(self, seat: Seat, environment: Mapping[str, str], folder: str) -> Peer:
        """Start a server that speaks to ``seat``, or raise ``CannotStartError``."""
        ...

    def let_pass(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let time go by until ``until()`` is true, but no longer than so; return whether it is."""
        ...

    def between_writes(self) -> None:
        """Make sure that what is written now arrives apart from what was written before."""
        ...

    def step_clock(self, ms: int) -> None:
        """Set the wall clock by so much (virtual only)."""
        ...

    def suspend(self, ms: int) -> None:
        """Let the machine sleep (virtual only)."""
        ...

    def close(self) -> None:
        """End every server that is still there."""
        ...
