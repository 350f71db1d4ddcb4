"""The shared store as one stdio server uses it: its calls in order, its identity, its news.

Whatever is wrong with the store is told to whoever asks it and written to the log; nothing of the
wake wing waits for it or learns of it.
"""

import logging
import math
from collections.abc import Callable

import msgspec
import trio

from mcpl_heartbeat.actions import Ask, ForStore, Listen, Seek, Settle, Unsent, Woken
from mcpl_heartbeat.shell import agent_key, chosen, stderr
from mcpl_heartbeat.shell.clock import Clock, SystemClock
from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.shell.environment import STORE, Environment
from mcpl_heartbeat.shell.identity import Own
from mcpl_heartbeat.shell.ports import Report, Tell
from mcpl_heartbeat.storage.store import urls
from mcpl_heartbeat.storage.store.ports import Kind, News, Outcome, StoreError
from mcpl_heartbeat.watch.calls import TELLING
from mcpl_heartbeat.watch.failures import Failure, unavailable

POLL_EVERY = 0.5
"""Seconds between two looks for what is to be pushed."""
PRESENT_EVERY = 20.0
"""Seconds after which the store is told again that pushes reach the agent; it holds for 60."""
TIME_TO_LEAVE = 1.0
"""Seconds for leaving the store in good order."""
_FAULT = "a fault of the server is in the way"
_CORRECT = (
    "State unknown: do not proceed. Tell this server's operator: the store has to be set right, "
    "and the server started again."
)

_log = logging.getLogger("mcpl_heartbeat")


def on(found: Environment, token: str) -> "StoreWatching":
    """Make it for the store that the environment names; ``token`` names this process."""
    url = found.store
    assert url is not None

    def open_desk() -> Desk:
        with chosen.named(STORE):
            place = urls.read(url)
        urls.need_extras(place)
        # It takes longer to import than a host should wait for the handshake.
        from mcpl_heartbeat.storage.store.store import Store  # noqa: PLC0415

        with chosen.named(STORE):
            return Desk(Store(place.url))

    def find_key() -> agent_key.Key:
        return agent_key.find(found.agent_key, found.config_file)

    return StoreWatching(open_desk, find_key, token, SystemClock(), _shown(url))


def _shown(url: str) -> str:
    try:
        return urls.read(url).shown
    except StoreError:
        # Nobody will get as far as to name it.
        return "of HEARTBEAT_STORE"


class StoreWatching:
    """See the module, and ``ports.Watching``. ``open_desk`` and ``find_key`` may block.

    ``store`` is its URL, without a password.
    """

    def __init__(
        self,
        open_desk: Callable[[], Desk],
        find_key: Callable[[], agent_key.Key],
        token: str,
        clock: Clock,
        store: str,
    ) -> None:
        self._open_desk = open_desk
        self._find_key = find_key
        self._token = token
        self._clock = clock
        self._store = store
        self._put, self._asks = trio.open_memory_channel[Ask](math.inf)
        self._unanswered: dict[int, Ask] = {}
        self._settles: list[Settle | Woken | Unsent] = []
        self._listening = Listen(None, here=False)
        self._seek = Seek(False)
        self._poked = trio.Event()
        self._present_since: float | None = None
        self._present: tuple[bool, bool] | None = None
        self._looking = trio.CancelScope()
        self._heard: frozenset[Kind] = frozenset()
        self._desk: Desk | None = None
        self._own: Own | None = None

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an outcome."""
        return bool(self._unanswered)

    def take(self, action: ForStore) -> None:
        """Do this, in the order in which it came."""
        if isinstance(action, Ask):
            self._unanswered[action.id] = action
            self._put.send_nowait(action)
        else:
            if isinstance(action, Settle | Woken | Unsent):
                self._settles.append(action)
            elif isinstance(action, Seek):
                self._seek = action
            else:
                self._listening = action
            self._poked.set()

    async def run(self, tell: Tell, report: Report) -> None:
        """Work on the store until cancelled, and answer for it when that cannot be done."""
        self._tell, self._report = tell, report
        try:
            why = await self._work()
        except Exception as error:
            _log.error("The watch wing stops working: %s", stderr.describe(error))
            why = _FAULT
        for ask in list(self._unanswered.values()):
            self._give(ask, _hopeless(ask.tool, why))
        async for ask in self._asks:
            if ask.id in self._unanswered:
                self._give(ask, _hopeless(ask.tool, why))

    async def aclose(self) -> None:
        """Leave the store in good order, as far as there is time for it."""
        desk = self._desk
        if desk is None:
            return
        with trio.move_on_after(TIME_TO_LEAVE):
            self._looking.cancel()
            try:
                await self._settle(desk)
                await self._show_presence(desk, False, False)
            except StoreError:
                # What we claimed, and that we are here, lapses by itself.
                pass
            await desk.aclose(TIME_TO_LEAVE)

    async def _work(self) -> str:
        """Returns only where the store is none that can be opened, with the reason."""
        try:
            desk = self._desk = await trio.to_thread.run_sync(
                self._open_desk, abandon_on_cancel=True
            )
        except (StoreError, ImportError) as error:
            _log.warning("The watch tools cannot be used: %s.", error)
            return str(error)
        self._own = Own(desk, self._find_key, self._store)
        async with trio.open_nursery() as nursery:
            await nursery.start(desk.run)
            nursery.start_soon(self._own.keep_trying)
            nursery.start_soon(self._look_for_news, desk)
            async for ask in self._asks:
                # Not on to the next one before this one stands in the desk's queue.
                await nursery.start(self._carry_out, desk, ask)
        raise AssertionError("the channel is never closed")

    # Calls ----------------------------------------------------------------------------------------

    async def _carry_out(self, desk: Desk, ask: Ask, *, task_status: trio.TaskStatus[None]) -> None:
        assert self._own is not None
        if ask.secret is not None or ask.tool == "register":
            task_status.started()
            self._give(ask, await desk.call(ask.tool, ask.arguments, ask.secret))
            return
        secret = await self._own.secret()
        task_status.started()
        if isinstance(secret, Failure):
            self._give(ask, secret)
            return
        outcome = await desk.call(ask.tool, ask.arguments, secret)
        if isinstance(outcome, Failure) and outcome.code == "unauthorized":
            # The store is another one than it was, and does not know us.
            self._own.forget()
            secret = await self._own.secret()
            if isinstance(secret, Failure):
                outcome = secret
            else:
                outcome = await desk.call(ask.tool, ask.arguments, secret)
        notes = self._own.notes(ask.tool) if ask.tool in TELLING else ()
        if notes and not isinstance(outcome, Failure):
            outcome = msgspec.structs.replace(outcome, notes=(*outcome.notes, *notes))
        self._give(ask, outcome)

    def _give(self, ask: Ask, outcome: Outcome) -> None:
        del self._unanswered[ask.id]
        self._tell(ask.id, outcome)

    # News -----------------------------------------------------------------------------------------

    async def _look_for_news(self, desk: Desk) -> None:
        with self._looking:
            while True:
                # Before the look, so that what is asked for during it is not waited with.
                self._poked = trio.Event()
                try:
                    await self._settle(desk)
                    await self._show_presence(desk, self._listening.here, self._seek.here)
                    await self._look(desk)
                except StoreError:
                    # The desk has said so, and goes on trying to open the store.
                    pass
                with trio.move_on_after(self._rest()):
                    await self._poked.wait()

    def _rest(self) -> float:
        seeking = self._seek.wanted or self._seek.reviews
        if self._settles or seeking or self._listening.alerts is not None:
            return POLL_EVERY
        return PRESENT_EVERY

    async def _look(self, desk: Desk) -> None:
        most, work, reviews = self._listening.alerts, self._seek.wanted, self._seek.reviews
        if (most is None and not work and not reviews) or self._own is None:
            return
        me = await self._own.identity()
        if me is None:
            return
        asked = self._clock.now()
        news = await desk.news(
            me.agent,
            me.namespace,
            self._token,
            most,
            work=work,
            reviews=reviews,
            held=self._listening.held,
        )
        # One look for a kind that finds none says that what was held is no longer there.
        over = self._heard & news.quiet
        self._heard = (self._heard - news.quiet) | _kinds(news)
        if over or not news.empty:
            self._report(news, asked)

    async def _settle(self, desk: Desk) -> None:
        while self._settles:
            settle = self._settles[0]
            try:
                if isinstance(settle, Settle):
                    await desk.pushed(self._token, settle.seqs, taken=settle.taken)
                else:
                    await self._tell_namespace(desk, settle)
            except StoreError:
                if not isinstance(settle, Unsent) and not settle.taken:
                    # The claim lapses by itself.
                    self._settles.pop(0)
                raise
            self._settles.pop(0)

    async def _tell_namespace(self, desk: Desk, told: Woken | Unsent) -> None:
        me = None if self._own is None else await self._own.identity()
        if me is None:
            return
        if isinstance(told, Woken):
            await desk.woken(me.namespace, self._token, told.work, taken=told.taken)
        else:
            await desk.unsent(me.namespace, told.nudges)

    async def _show_presence(self, desk: Desk, here: bool, work: bool) -> None:
        now = trio.current_time()
        since = self._present_since
        present = here or work
        if self._own is None or (not present and since is None):
            return
        if present and since is not None and self._present == (here, work):
            if now - since < PRESENT_EVERY:
                return
            # The store may have been put in another's place meanwhile.
            self._own.forget()
        me = await self._own.identity()
        if me is not None:
            # Perhaps it is told even where this is cancelled; it is to be taken back then.
            self._present_since, self._present = now if since is None else since, None
            await desk.present(me.agent, self._token, here=here, work=work)
            self._present_since = now if present else None
            self._present = (here, work)


def _kinds(news: News) -> frozenset[Kind]:
    """Name what there is to push, as ``News.quiet`` does of what there is not."""
    found: dict[Kind, object] = {
        "alerts": news.alerts,
        "reviews": news.reviews,
        "work": news.work,
    }
    return frozenset(kind for kind, told in found.items() if told)


def _hopeless(tool: str, why: str) -> Failure:
    return msgspec.structs.replace(unavailable(tool, why), next=_CORRECT)
