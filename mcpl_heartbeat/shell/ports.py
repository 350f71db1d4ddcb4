"""What the server is put together from: the core that decides, its files, and the shared store.

All are given as protocols, so that tests drive the server with their own.
"""

from collections.abc import Callable
from typing import Any, Protocol

from mcpl_heartbeat.actions import (
    Action,
    Document,
    ForStore,
    Moment,
    NotSaved,
    Opening,
    SaveOutcome,
)


class Taken(NotSaved, frozen=True, kw_only=True):
    """Another server has taken the files meanwhile: what they hold now, for show."""

    opening: Opening


class Core(Protocol):
    """The part of ``session.Session`` that is driven from here."""

    def start(self, now: Moment) -> list[Action]:
        """Begin."""
        ...

    def opened(self, opening: Opening, now: Moment) -> list[Action]:
        """Take in what the files hold."""
        ...

    def receive(self, data: bytes, now: Moment) -> list[Action]:
        """Take in bytes from the host."""
        ...

    def end_of_input(self, now: Moment) -> list[Action]:
        """Take in that the host sends no more."""
        ...

    def tick(self, now: Moment) -> list[Action]:
        """Do what is due."""
        ...

    def saved(self, document: Document, outcome: SaveOutcome, now: Moment) -> list[Action]:
        """Take in how a save ended."""
        ...

    def told(self, id: int, outcome: Any, now: Moment) -> list[Action]:
        """Take in what the store answered to an ``Ask``."""
        ...

    def news(self, news: Any, asked: Moment, now: Moment) -> list[Action]:
        """Take in what the store has to push."""
        ...

    @property
    def unsettled(self) -> bool:
        """Whether a save is under way."""
        ...

    @property
    def standby(self) -> bool:
        """Whether another server holds the files."""
        ...


class Files(Protocol):
    """The two documents and their locks. Each method may block and is called in a thread."""

    @property
    def undisturbed(self) -> bool:
        """Whether nothing calls for ``check``; asked at every tick, and in no thread."""
        ...

    def open(self) -> Opening:
        """Take the locks and read both documents."""
        ...

    def take_over(self) -> Opening | None:
        """Open them if the server that held them is gone; ``None`` while it is there."""
        ...

    def check(self) -> Opening | None:
        """See to the locks: what the files hold if another server has taken them, told once."""
        ...

    def save(self, document: Document, value: Any) -> SaveOutcome:
        """Make ``value`` the content of ``document``; ``Taken``: what ``check`` would have told."""
        ...


Tell = Callable[[int, Any], None]
"""Takes the id of an ``Ask`` and its outcome."""
Report = Callable[[Any, Moment], None]
"""Takes news of the store, and a moment just before they were looked for."""


class Watching(Protocol):
    """The shared store, for a server that has one."""

    async def run(self, tell: Tell, report: Report) -> None:
        """Carry out what is taken until ``aclose``, or until cancelled. Never raises."""
        ...

    def take(self, action: ForStore) -> None:
        """Do this, in the order in which it came; never blocks."""
        ...

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an outcome."""
        ...

    async def aclose(self) -> None:
        """Leave the store in good order."""
        ...
