"""The store as the rest of the server uses it: calls that are awaited, and the sweep beside them.

The store is synchronous. Everything that writes goes through one *lane*, a thread at a time, in the
order it came, as many calls to a transaction as wait then, so that they share one commit. Calls
that only read have a lane of their own and wait for no write. While the store cannot be used, calls
are answered at once with ``unavailable``; it is tried again and again, and at once after half a
second when somebody calls.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import trio

from mcpl_heartbeat.catalogue import READS
from mcpl_heartbeat.shell.counters import Counters
from mcpl_heartbeat.shell.desk_log import DeskLog
from mcpl_heartbeat.storage.store.ports import (
    Ask,
    News,
    Outcome,
    Stats,
    StoreError,
    StorePort,
    Swept,
    Unsettled,
    Work,
)
from mcpl_heartbeat.watch.arguments import Arguments, HeartbeatArguments
from mcpl_heartbeat.watch.failures import Failure, unavailable
from mcpl_heartbeat.watch.rows import Identity, Nudge

SWEEP_EVERY = 0.5
"""Seconds between two sweeps that find nothing more to do."""
FIRES = 200
"""The most that one sweep fires before calls that wait get their turn."""
BATCH = 256
"""The most calls in one transaction."""
WAITING = 10_000
"""The most calls that wait; further ones are refused."""
PATIENCE = 12.0
"""Seconds after which a call is told that nobody knows what became of it."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds between two tries while the store cannot be used."""
CHORES_EVERY, FIRST_CHORES = 3600.0, 60.0

_FAULT = "a fault of the server is in the way"
_SILENT = f"it has not answered for {PATIENCE:.0f} s"

T = TypeVar("T")


class _Waiting:
    """Somebody who waits for the lane: with a call, or with work of our own."""

    def __init__(self, ask: Ask | None, work: Callable[[], Any] | None = None) -> None:
        self.ask = ask
        self.work = work
        self.done = trio.Event()
        self.given_up = False
        self.outcome: Any = None
        self.error: StoreError | None = None

    def answer(self, outcome: Any) -> None:
        self.outcome = outcome
        self.done.set()

    def refuse(self, why: str) -> None:
        if self.ask is not None:
            self.outcome = unavailable(self.ask.tool, why)
        else:
            self.error = StoreError(why)
        self.done.set()


class Desk:
    """Runs ``store``; ``run`` is its task. Calls that come before the store is open wait for it."""

    def __init__(self, store: StorePort) -> None:
        self._store = store
        self._queue: deque[_Waiting] = deque()
        self._out: list[_Waiting] = []  # what the lane is at
        self._poke = trio.Event()
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._running = self._closing = self._usable = False
        self._why = "it is not open yet"
        self._log = DeskLog()
        self._lane_since: float | None = None
        self._pause = FIRST_PAUSE
        self._next_try = self._soonest_try = -float("inf")
        self._next_sweep = self._next_chores = -float("inf")
        self._writing = trio.CapacityLimiter(1)
        self._looking = trio.CapacityLimiter(1)
        self.counters = Counters()

    @property
    def trouble(self) -> str | None:
        """Why the store cannot be used now, one clause; ``None`` while it can."""
        return self._hung() if self._usable else self._why

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Open the store and work on it until ``aclose``, or until cancelled."""
        self._running = True
        task_status.started()
        try:
            with self._scope:
                while not (self._closing and not (self._usable and self._queue)):
                    await self._turn()
                await self._in_lane(self._store.close)
        finally:
            self._closing = True
            self._queue.extendleft(self._out)
            self._refuse_all("the server is leaving")
            self._over.set()

    async def aclose(self, seconds: float = 3.0) -> None:
        """Take no more calls, answer those that wait, leave the watch; give up in ``seconds``."""
        self._closing = True
        self._poke.set()
        if not self._running:
            return
        with trio.move_on_after(seconds):
            await self._over.wait()
        self._scope.cancel()

    async def call(self, tool: str, arguments: Arguments, secret: str | None) -> Outcome:
        """Carry out a call of a tool."""
        ask = Ask(tool, arguments, secret)
        if (why := self._refusal()) is not None:
            return unavailable(tool, why)
        with trio.move_on_after(PATIENCE):
            if tool in READS and self._usable:
                try:
                    return await self._look(partial(self._store.look, ask))
                except Unsettled:
                    pass
                except StoreError as error:
                    return unavailable(tool, str(error))
            if (why := self._hung()) is not None:
                return unavailable(tool, why)
            return cast("Outcome", await self._wait(_Waiting(ask)))
        return unavailable(tool, _SILENT)

    async def identify(self, secret: str) -> Identity | None:
        """Whose secret it is. Raises ``StoreError``."""
        return await self._work(partial(self._store.identify, secret))

    async def news(  # noqa: PLR0913, PLR0917 - for whom, by whom, of what
        self,
        agent: str,
        namespace: str,
        token: str,
        most: int | None,
        work: bool = False,
        reviews: int = 0,
        held: Sequence[Nudge] = (),
    ) -> News:
        """Claim for the server ``token`` what to push to ``agent``. Raises ``StoreError``."""
        ask = partial(self._store.news, agent, namespace, token, most, work, reviews, held)
        return await self._work(ask)

    async def pushed(self, token: str, seqs: Sequence[int], *, taken: bool) -> None:
        """Say what became of a push. Raises ``StoreError``."""
        await self._work(partial(self._store.pushed, token, seqs, taken=taken))

    async def woken(self, namespace: str, token: str, work: Work, *, taken: bool) -> None:
        """Say what became of the push of ``work``. Raises ``StoreError``."""
        await self._work(partial(self._store.woken, namespace, token, work, taken=taken))

    async def unsent(self, namespace: str, nudges: Sequence[Nudge]) -> None:
        """Say that these nudges were not pushed. Raises ``StoreError``."""
        await self._work(partial(self._store.unsent, namespace, nudges))

    async def present(self, agent: str, token: str, *, here: bool, work: bool = False) -> None:
        """Say for 60 s whether ``token`` can push to ``agent``. Raises ``StoreError``."""
        await self._work(partial(self._store.present, agent, token, here=here, work=work))

    async def stats(self) -> Stats | None:
        """Count; ``None`` while the store cannot be used."""
        if not self._usable:
            return None
        try:
            return await self._look(self._store.stats)
        except StoreError:
            return None

    # Those who call.

    def _refusal(self) -> str | None:
        """Why a call is refused at once, if it is."""
        if self._closing:
            return "the server is leaving"
        if not self._usable and trio.current_time() < self._soonest_try:
            return self._why
        if len(self._queue) >= WAITING:
            return "too many calls are waiting"
        return None

    def _hung(self) -> str | None:
        """Say so while what the lane is at does not end."""
        began = self._lane_since
        return _SILENT if began is not None and trio.current_time() - began >= PATIENCE else None

    async def _work(self, work: Callable[[], T]) -> T:
        if (why := self._refusal() or self._hung()) is not None:
            raise StoreError(why)
        with trio.move_on_after(PATIENCE):
            waiting = _Waiting(None, work)
            outcome: T = await self._wait(waiting)
            if waiting.error is not None:
                raise waiting.error
            return outcome
        raise StoreError(_SILENT)

    async def _wait(self, waiting: _Waiting) -> Any:
        self._queue.append(waiting)
        self._poke.set()
        try:
            await waiting.done.wait()
        finally:
            waiting.given_up = True
        return waiting.outcome

    async def _look(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work, limiter=self._looking, abandon_on_cancel=True)

    # The lane.

    async def _turn(self) -> None:
        """Do what comes next: open the store, some calls, a sweep; or wait for it."""
        now = trio.current_time()
        if not self._usable:
            at = self._soonest_try if self._queue else self._next_try
            if now >= at:
                await self._try()
            else:
                await self._rest(at)
            return
        await self._serve()
        if self._is_time(self._next_sweep):
            await self._sweep()
        if self._is_time(self._next_chores):
            await self._tidy()
        if self._usable and not self._queue:
            await self._rest(self._next_sweep)

    def _is_time(self, at: float) -> bool:
        return self._usable and not self._closing and trio.current_time() >= at

    async def _rest(self, until: float) -> None:
        """Wait until then, or until somebody comes."""
        if self._closing:
            return
        with trio.move_on_at(until):
            await self._poke.wait()
        self._poke = trio.Event()

    async def _try(self) -> None:
        try:
            await self._in_lane(self._store.open)
        except StoreError as error:
            self._fail(str(error))
            return
        except Exception as error:
            self._log.fault("Opening the store", error)
            self._fail(_FAULT)
            return
        self._next_chores = trio.current_time() + FIRST_CHORES
        # A store is usable only when it can be worked on.
        await self._sweep()

    async def _serve(self) -> None:
        """Carry out what waits in front: calls together, or one piece of our own work."""
        while self._queue and self._queue[0].given_up:
            self._queue.popleft()
        if not self._queue:
            return
        if self._queue[0].work is not None:
            self._out = [self._queue.popleft()]
            await self._serve_work(self._out[0])
            self._out = []
            return
        batch: list[_Waiting] = []
        self._out = batch
        while self._queue and self._queue[0].ask is not None and len(batch) < BATCH:
            waiting = self._queue.popleft()
            if not waiting.given_up:
                batch.append(waiting)
        await self._serve_calls(batch)
        self._out = []

    async def _serve_work(self, waiting: _Waiting) -> None:
        assert waiting.work is not None
        try:
            waiting.answer(await self._in_lane(waiting.work))
        except StoreError as error:
            waiting.refuse(str(error))
            self._fail(str(error))
        except Exception as error:
            waiting.refuse(_FAULT)
            self._log.fault("Work on the store", error)

    async def _serve_calls(self, batch: Sequence[_Waiting]) -> None:
        asks = [waiting.ask for waiting in batch if waiting.ask is not None]
        try:
            outcomes = await self._in_lane(partial(self._store.answer, asks))
        except StoreError as error:
            self._fail(str(error))
            for waiting in batch:
                waiting.refuse(str(error))
            return
        except Exception as error:
            self._log.fault("Calls", error)
            for waiting in batch:
                waiting.refuse(_FAULT)
            return
        for waiting, ask, outcome in zip(batch, asks, outcomes, strict=True):
            waiting.answer(outcome)
            beat = isinstance(ask.arguments, HeartbeatArguments) and not ask.arguments.disarm
            self.counters.beats += beat and not isinstance(outcome, Failure)

    async def _sweep(self) -> None:
        try:
            swept, seconds = await self._in_lane(partial(_timed, self._store.sweep, FIRES))
        except StoreError as error:
            self._fail(str(error))
            return
        except Exception as error:
            # What is due waits for the next one; the calls settle what they touch by themselves.
            self._log.fault("A sweep", error)
            more = False
        else:
            self.counters.count(swept, seconds)
            self._log.swept(swept)
            more = swept.more
        self._succeed()
        self._next_sweep = trio.current_time() + (0.0 if more else SWEEP_EVERY)

    async def _tidy(self) -> None:
        self._next_chores = trio.current_time() + CHORES_EVERY
        try:
            if await self._in_lane(self._store.housekeeping):
                self._next_chores = self._next_sweep
        except StoreError as error:
            self._fail(str(error))
        except Exception as error:
            self._log.fault("Housekeeping", error)

    async def _in_lane(self, work: Callable[[], T]) -> T:
        self._lane_since = trio.current_time()
        try:
            return await trio.to_thread.run_sync(
                work, limiter=self._writing, abandon_on_cancel=True
            )
        finally:
            self._lane_since = None

    def _succeed(self) -> None:
        if self._usable:
            return
        self._usable = True
        self._pause = FIRST_PAUSE
        self._log.usable()

    def _fail(self, why: str) -> None:
        """Take the store for unusable until a try shows otherwise."""
        now = trio.current_time()
        self._pause = FIRST_PAUSE if self._usable else min(self._pause * 2, LONGEST_PAUSE)
        self._usable, self._why = False, why
        self._log.unusable(why)
        self._soonest_try = now + FIRST_PAUSE
        self._next_try = now + self._pause
        self._refuse_all(self._why)

    def _refuse_all(self, why: str) -> None:
        while self._queue:
            self._queue.popleft().refuse(why)


def _timed(sweep: Callable[[int], Swept], most: int) -> tuple[Swept, float]:
    began = time.perf_counter()
    swept = sweep(most)
    return swept, time.perf_counter() - began
