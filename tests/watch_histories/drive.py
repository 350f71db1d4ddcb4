"""Real stores on a clock of the test's own, every answer of theirs judged by the model."""

import contextlib
import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store.ports import Ask, Unsettled
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.tools import READS
from tests.watch_histories.fileclock import WALL, FileClock
from tests.watch_histories.model import Model
from tests.watch_histories.worker import ARGUMENTS, SECRETS

WATCH = 2_000
"""Servers look at least this often (ms), or nobody watches."""
STALLED = 2_500
STOPPED = 1_000
"""So long (ms) without a look is a gap: while a server runs, and while none does."""


class Drive:
    """Up to two servers on one store, and the model beside them."""

    def __init__(self, url: str, clock: FileClock) -> None:
        self.url = url
        self.clock = clock
        self.model = Model(WALL)
        self.stores: list[Store | None] = [None, None]
        self.seed = itertools.count(1)
        self.engine = sa.create_engine(url, poolclass=sa.NullPool)
        self.known_gaps = 0
        self.open(0)
        for secret in SECRETS:
            told = self.ask(0, "register", None, agent_secret=secret)
            self.model.addresses.append(told["address"])

    def close(self) -> None:
        """Stop everything."""
        for slot, store in enumerate(self.stores):
            if store is not None:
                self.stop(slot)
        self.engine.dispose()

    # Servers

    @property
    def running(self) -> list[int]:
        """Which of them are there."""
        return [slot for slot, store in enumerate(self.stores) if store is not None]

    def open(self, slot: int) -> None:
        """Start a server, if it is not there."""
        if self.stores[slot] is None:
            limit = STALLED if self.running else STOPPED
            store = self.made()
            store.open()
            self.stores[slot] = store
            self.sweep(slot, limit)

    def made(self) -> Store:
        """Make one, not opened yet."""
        return Store(self.url, clock=self.clock, random=self.random)

    def stop(self, slot: int) -> None:
        """Stop a server as it is stopped in good order."""
        store = self.stores[slot]
        assert store is not None
        store.close()
        self.stores[slot] = None
        self.learn(STALLED)

    def random(self, count: int) -> bytes:
        """Bytes that no two calls get alike."""
        return next(self.seed).to_bytes(count, "big")

    # Time

    def let_pass(self, ms: int) -> None:
        """Time in which the servers do what they do all the time."""
        while ms > 0:
            step = min(ms, WATCH)
            self.advance(step)
            ms -= step
            if step == WATCH:
                for slot in self.running:
                    self.sweep(slot)

    def advance(self, ms: int) -> None:
        """Time in which nobody does anything."""
        self.clock.advance(ms)
        self.model.real += ms

    def set_wall(self, off: int) -> None:
        """Somebody sets the clock on the wall, or the database's, to so much (ms) off.

        Who is there sees it before anybody else comes, who could not tell it from a gap.
        """
        self.clock.set(off)
        self.model.shift = off if abs(off) > 2_000 else 0
        for slot in self.running:
            self.sweep(slot)

    def learn(self, limit: int) -> None:
        """Take in the gaps that were noted, and see whether one is missing."""
        self.take_gaps()
        self.model.attended(limit)

    def take_gaps(self) -> None:
        """Take in the gaps that were noted."""
        with self.engine.connect() as conn:
            rows = conn.execute(sa.text("SELECT began, ended FROM gaps ORDER BY began")).all()
        for began, ended in rows[self.known_gaps :]:
            self.model.gap(began, ended)
        self.known_gaps = len(rows)

    # Calls

    def sweep(self, slot: int, limit: int = STALLED) -> None:
        """One sweep by one server."""
        store = self.stores[slot]
        assert store is not None
        swept = store.sweep(200)
        self.learn(limit)
        self.model.swept(swept.fired)
        assert not swept.more
        assert not swept.corrupt

    def ask(self, slot: int, tool: str, who: int | None, **args: Any) -> dict[str, Any]:
        """One call, as its caller gets it."""
        return self.ask_all(slot, [(tool, who, args)])[0]

    def ask_all(
        self, slot: int, calls: list[tuple[str, int | None, Mapping[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Calls in one transaction, or one that only reads."""
        store = self.stores[slot]
        assert store is not None
        asks = [
            Ask(tool, ARGUMENTS[tool](**args), None if who is None else SECRETS[who])
            for tool, who, args in calls
        ]
        outcomes = None
        # Who only reads notes no gap: what it tells of one is not to be learned.
        watched = self.model.real - self.model.watched_until < STALLED - STOPPED
        if len(asks) == 1 and asks[0].tool in READS and watched:
            with contextlib.suppress(Unsettled):
                outcomes = [store.look(asks[0])]
        if outcomes is None:
            outcomes = store.answer(asks)
            self.learn(STALLED)
        return [msgspec.json.decode(msgspec.json.encode(outcome)) for outcome in outcomes]
