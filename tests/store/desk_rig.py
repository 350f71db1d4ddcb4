"""A desk that runs on a real store, with its clock and its troubles in the test's hand."""

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
import trio.testing

from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.storage.store.ports import Ask, Outcome, Swept
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.failures import Failure
from tests.store.world import ARGUMENTS, SECRET, HandClock


class Watched(Store):
    """A real store that notes how it is used, can be held up and made to fail."""

    def __init__(self, url: str) -> None:
        self.clock = HandClock()
        super().__init__(url, clock=self.clock)
        self.batches: list[list[str]] = []
        self.sweeps: list[Swept] = []
        self.opened = self.closed = self.tidied = self.pieces = 0
        self.trouble: Exception | None = None
        self.trouble_sweeping: Exception | None = None
        self.trouble_tidying: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.at_the_gate = threading.Event()

    def open(self) -> None:
        self.opened += 1
        self._fail()
        super().open()

    def close(self) -> None:
        self.closed += 1
        super().close()

    def answer(self, asks: Sequence[Ask]) -> list[Outcome]:
        self._pass()
        self._fail()
        self.batches.append([each.tool for each in asks])
        return super().answer(asks)

    def look(self, each: Ask) -> Outcome:
        self._fail()
        return super().look(each)

    def sweep(self, most: int) -> Swept:
        self._fail()
        if self.trouble_sweeping is not None:
            raise self.trouble_sweeping
        self.sweeps.append(super().sweep(most))
        return self.sweeps[-1]

    def present(self, agent: str, token: str, *, here: bool, work: bool = False) -> None:
        self._fail()
        super().present(agent, token, here=here, work=work)

    def housekeeping(self) -> bool:
        self.tidied += 1
        if self.trouble_tidying is not None:
            raise self.trouble_tidying
        return super().housekeeping() or self.tidied < self.pieces

    def _pass(self) -> None:
        self.at_the_gate.set()
        assert self.gate.wait(30)

    def _fail(self) -> None:
        if self.trouble is not None:
            raise self.trouble


class Rig:
    """A desk that runs, its store and its clock."""

    def __init__(self, store: Watched, desk: Desk, clock: trio.testing.MockClock) -> None:
        self.store, self.desk, self.clock = store, desk, clock

    async def call(self, tool: str, **arguments: Any) -> Any:
        if tool == "heartbeat":
            arguments = {"scope": "s", "expect_within_seconds": 60, **arguments}
        return await self.desk.call(tool, ARGUMENTS[tool](**arguments), SECRET)

    async def register(self) -> Any:
        return await self.call("register", agent_secret=SECRET)

    async def after(self, seconds: float) -> None:
        """Let so much time pass, for the store too, and see what was due done."""
        for _ in range(round(seconds / 0.5)):
            swept = self.swept
            self.store.clock.now += 500
            self.clock.jump(0.5)
            await until(lambda swept=swept: self.swept > swept)

    @property
    def swept(self) -> int:
        """How many sweeps the desk is done with."""
        return sum(self.desk.counters.sweeps.counts)


async def until(true: Callable[[], object]) -> None:
    """Let the other tasks and their threads go on until it is so."""
    with trio.testing.assert_checkpoints():
        await trio.lowlevel.checkpoint()
    while not true():
        await trio.to_thread.run_sync(lambda: None)


@asynccontextmanager
async def running(tmp_path: Path, clock: trio.testing.MockClock) -> AsyncIterator[Rig]:
    store = Watched(f"sqlite:///{tmp_path}/store.db")
    rig = Rig(store, Desk(store), clock)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.desk.run)
            yield rig
            nursery.cancel_scope.cancel()
    finally:
        store.gate.set()
        store.trouble = None
        store.close()


def failed(outcome: Any) -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert (outcome.code, outcome.status) == ("unavailable", 503)
    return outcome
