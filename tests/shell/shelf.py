"""A store that is a few lists, and a stdio server's part of the watch wing at work on it."""

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from mcpl_heartbeat.actions import Ask, Moment
from mcpl_heartbeat.shell.agent_key import Key
from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.shell.watching import StoreWatching
from mcpl_heartbeat.storage.store import ports
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.watch.arguments import (
    HeartbeatArguments,
    RegisterArguments,
    WhoamiArguments,
)
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import failure
from mcpl_heartbeat.watch.results import RegisterResult, Result
from mcpl_heartbeat.watch.rows import Identity, Nudge
from tests.shell.bench import settle, until
from tests.shell.fakes import FakeClock

SECRET = "s" * 40
OWN = Key(SECRET, path="/data/keeper.agent-key", new=True)
GIVEN = Key(SECRET)
NOTHING = ports.News(Reading(real=0))


class Shelf:
    """A ``StorePort`` that notes what it is asked. ``down`` is why it cannot be used."""

    def __init__(self) -> None:
        self.down: str | None = None
        self.known: dict[str, Identity] = {}
        self.asked: list[ports.Ask] = []
        self.did: list[tuple[Any, ...]] = []
        self.to_tell: deque[ports.News] = deque()
        self.gate = threading.Event()
        self.gate.set()

    def open(self) -> None:
        self._use()

    def close(self) -> None:
        self.did.append(("close",))

    def answer(self, asks: Sequence[ports.Ask]) -> list[ports.Outcome]:
        self._use()
        self.gate.wait()
        self.asked.extend(asks)
        return [self._one(ask) for ask in asks]

    def look(self, ask: ports.Ask) -> ports.Outcome:
        self._use()
        self.asked.append(ask)
        return self._one(ask)

    def sweep(self, most: int) -> ports.Swept:
        self._use()
        return ports.Swept()

    def identify(self, secret: str) -> Identity | None:
        self._use()
        return self.known.get(secret)

    def news(
        self,
        agent: str,
        namespace: str,
        token: str,
        most: int | None,
        work: bool = False,
        reviews: int = 0,
        held: Sequence[Nudge] = (),
    ) -> ports.News:
        self._use()
        more = (*(["work"] if work else []), *([reviews] if reviews else []), *held)
        self.did.append(("news", agent, namespace, token, most, *more))
        told = self.to_tell.popleft() if self.to_tell else NOTHING
        looked = [("alerts", most, told.alerts), ("reviews", reviews, told.reviews)]
        looked.append(("work", work, told.work))
        quiet = frozenset(kind for kind, sought, found in looked if sought and not found)
        return msgspec.structs.replace(told, quiet=quiet)

    def pushed(self, token: str, seqs: Sequence[int], *, taken: bool) -> None:
        self._use()
        self.did.append(("pushed", token, tuple(seqs), taken))

    def woken(self, namespace: str, token: str, work: ports.Work, *, taken: bool) -> None:
        self._use()
        self.did.append(("woken", namespace, token, work.number, taken))

    def unsent(self, namespace: str, nudges: Sequence[Nudge]) -> None:
        self._use()
        self.did.append(("unsent", namespace, *nudges))

    def present(self, agent: str, token: str, *, here: bool, work: bool = False) -> None:
        self._use()
        self.did.append(("present", agent, token, here, work))

    def stats(self) -> ports.Stats:
        return ports.Stats(0, 0, 0)

    def housekeeping(self) -> bool:
        return False

    def register(self, secret: str) -> None:
        self.known[secret] = Identity(namespace="n" * 64, agent="a" * 16, registered_at=0)

    def count(self, what: str) -> int:
        return sum(done[0] == what for done in list(self.did))

    def _use(self) -> None:
        if self.down is not None:
            raise StoreError(self.down)

    def _one(self, ask: ports.Ask) -> ports.Outcome:
        if ask.tool == "register":
            assert isinstance(ask.arguments, RegisterArguments)
            secret = str(ask.arguments.agent_secret)
            created = secret not in self.known
            self.register(secret)
            return RegisterResult(server_time=ask.tool, created=created)
        if ask.secret not in self.known:
            return failure("unauthorized", "Nobody has this key.", "Register.")
        return Result(server_time=ask.tool)


class Post:
    """The watch wing's part in a server, with what it was told to pass on."""

    def __init__(self, shelf: Shelf, find_key: Callable[[], Key]) -> None:
        self.shelf = shelf
        self.told: list[tuple[int, Any]] = []
        self.news: list[tuple[ports.News, Moment]] = []
        self.broken: StoreError | None = None
        self.watching = StoreWatching(self._open, find_key, "me", FakeClock(), "sqlite:////s.db")

    def _open(self) -> Desk:
        if self.broken is not None:
            raise self.broken
        return Desk(self.shelf)

    async def run(self) -> None:
        await self.watching.run(
            lambda id, outcome: self.told.append((id, outcome)),
            lambda news, asked: self.news.append((news, asked)),
        )

    def ask(self, id: int, *, secret: str | None = None, tool: str = "heartbeat") -> None:
        arguments: Any = WhoamiArguments()
        if tool == "heartbeat":
            arguments = HeartbeatArguments(scope=f"scope-{id}", expect_within_seconds=60)
        self.watching.take(Ask(id, tool, arguments, secret))

    def outcome(self, id: int) -> Any:
        return dict(self.told)[id]


@asynccontextmanager
async def posted(
    shelf: Shelf | None = None, find_key: Callable[[], Key] = lambda: OWN
) -> AsyncIterator[Post]:
    post = Post(shelf or Shelf(), find_key)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(post.run)
        yield post
        nursery.cancel_scope.cancel()


async def jump(clock: trio.testing.MockClock, seconds: float) -> None:
    """Let time pass in steps that no two waits fall into together."""
    for _ in range(round(seconds * 2)):
        clock.jump(0.5)
        await settle()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


async def answered(post: Post, *ids: int) -> None:
    await until(lambda: set(ids) <= dict(post.told).keys())
