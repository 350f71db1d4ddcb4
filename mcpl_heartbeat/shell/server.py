"""The server's tasks: they carry out what the session asks for, and decide nothing.

One task reads: a chunk goes through the session in one pass, and all lines that come of it leave in
one write. One task keeps time. A task of its own is only for what has to wait: a save, the files
being opened, a host that does not take its bytes.
"""

import gc
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import trio

from mcpl_heartbeat.actions import (
    Action,
    Ask,
    Document,
    Level,
    Listen,
    Log,
    Moment,
    NotSaved,
    Opened,
    Opening,
    Push,
    Reply,
    Save,
    Seek,
    Settle,
    Trouble,
    Unsent,
    WakeAt,
    Woken,
)
from mcpl_heartbeat.shell import stderr, streams
from mcpl_heartbeat.shell.clock import Clock
from mcpl_heartbeat.shell.ports import Core, Files, Taken, Watching

LONGEST_PAUSE = 30.0
"""Seconds until both clocks are read again at the latest (design, law 6)."""
TAKE_OVER_PAUSE = 2.0
"""Seconds between tries for files that another server holds."""
LOOK_AFTER = 1.0
"""Seconds after which what the host says is not acted on before the locks are looked at again."""
TIME_TO_LEAVE = 1.5
"""Seconds for saves, replies and bytes under way, once the host is gone."""
TIME_FOR_THE_STORE = 1.0
"""Of these, seconds for what the shared store has been asked."""

_log = logging.getLogger("mcpl_heartbeat")
_LEVELS = {Level.INFO: logging.INFO, Level.WARNING: logging.WARNING}


class Server:
    """One session, carried out on two streams, two files, a clock, and a store if it has one."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that is outside
        self,
        session: Core,
        source: streams.Source,
        sink: streams.Sink,
        files: Files,
        clock: Clock,
        watching: Watching | None = None,
    ) -> None:
        """Put the parts together; ``run`` starts them."""
        self._session = session
        self._source = source
        self._sink = sink
        self._files = files
        self._clock = clock
        self._watching = watching
        self._life = trio.CancelScope()
        self._opened = False
        self._progress = trio.lowlevel.ParkingLot()
        self._saves: dict[Document, deque[Save]] = {document: deque() for document in Document}
        self._wake = WakeAt(None, None)
        self._pause = trio.CancelScope()
        self._latest = 0.0
        self._looked = 0.0

    def stop(self) -> None:
        """Leave as at the end of input: what is under way is finished first, within limits."""
        self._life.cancel()

    async def run(self, leaving: Callable[[], None] = lambda: None) -> None:
        """Serve until the input ends, the host closes our output, or ``stop`` is called.

        ``leaving`` is called when the end begins. From then on this takes ``TIME_TO_LEAVE`` seconds
        at most; a save that takes longer is abandoned, its file being whole either way.
        """
        async with trio.open_nursery() as work:
            self._work = work
            work.start_soon(self._sink.run)
            work.start_soon(self._sink.watch)
            self._rest(self._clock.now())
            self._perform(self._session.start)
            work.start_soon(self._open_files)
            if self._watching is not None:
                work.start_soon(self._watching.run, self._tell, self._report)
            with self._life:
                async with trio.open_nursery() as life:
                    life.start_soon(self._until_gone)
                    life.start_soon(self._keep_time)
                    await self._read()
                    self.stop()
            leaving()
            with trio.move_on_after(TIME_TO_LEAVE):
                self._perform(self._session.end_of_input)
                await self._until_answered()
                while self._session.unsettled or not self._opened:
                    await self._progress.park()
                async with trio.open_nursery() as last:
                    last.start_soon(self._sink.room, 0)
                    if self._watching is not None:
                        last.start_soon(self._watching.aclose)
            work.cancel_scope.cancel()

    async def _until_answered(self) -> None:
        with trio.move_on_after(TIME_FOR_THE_STORE):
            while self._watching is not None and self._watching.busy:
                await self._progress.park()

    def _tell(self, id: int, outcome: Any) -> None:
        self._perform(self._session.told, id, outcome)
        self._progress.unpark_all()

    def _report(self, news: Any, asked: Moment) -> None:
        self._perform(self._session.news, news, asked)

    async def _read(self) -> None:
        linger = False
        while data := await self._source.read(linger):
            if self._opened and trio.current_time() - self._looked >= LOOK_AFTER:
                await self._see_to_locks()
            self._perform(self._session.receive, data)
            linger = self._opened and not self._sink.waiting and not self._session.unsettled
            if self._sink.waiting > streams.LIMIT:
                await self._until_it_pays_to_read()

    async def _until_it_pays_to_read(self) -> None:
        # A host that is gone takes no bytes, so its going counts as well: what it left in the pipe
        # is little, and behind that is the end of input.
        async with trio.open_nursery() as either:

            async def first(wait: Callable[[], Any]) -> None:
                await wait()
                either.cancel_scope.cancel()

            either.start_soon(first, self._sink.room)
            either.start_soon(first, lambda: streams.hang_up(self._source.descriptor))

    async def _until_gone(self) -> None:
        await self._sink.lost.wait()
        self.stop()

    async def _keep_time(self) -> None:
        while True:
            with self._pause:
                await trio.sleep_forever()
            if self._sink.waiting > streams.LIMIT:
                # A host that does not read gets no more wakes to keep for it than it can hold.
                await self._sink.room()
            await self._see_to_locks()
            now = self._clock.now()
            # A moment that is reached is used up; the session sets the next one if there is any.
            self._wake = WakeAt(
                _unless_reached(self._wake.wall, now.wall),
                _unless_reached(self._wake.monotonic, now.monotonic),
            )
            self._rest(now)
            self._perform(self._session.tick)

    async def _see_to_locks(self) -> None:
        # Before anything is sent: another server may be sending it by now.
        self._looked = trio.current_time()
        if not self._files.undisturbed:
            opening = await self._in_thread(self._files.check)
            if isinstance(opening, Opening):
                self._stand_by(opening)

    def _rest(self, now: Moment) -> None:
        self._latest = trio.current_time() + LONGEST_PAUSE
        self._pause = trio.CancelScope()
        self._set_alarm(now)

    def _set_alarm(self, now: Moment) -> None:
        left = [
            moment - clock
            for moment, clock in (
                (self._wake.wall, now.wall),
                (self._wake.monotonic, now.monotonic),
            )
            if moment is not None
        ]
        alarm = trio.current_time() + max(min(left), 1) / 1000 if left else self._latest
        self._pause.deadline = min(alarm, self._latest)

    async def _open_files(self) -> None:
        opening = await self._in_thread(self._files.open)
        if isinstance(opening, Exception):
            trouble = Trouble(f"Opening the files failed: {stderr.describe(opening)}", False)
            opening = Opening(config=Opened(trouble=trouble), reminders=Opened(trouble=trouble))
        self._opened = True
        self._perform(self._session.opened, opening)
        # What is there by now mostly stays, so the collector need not look at it (see cli.py).
        gc.freeze()
        gc.enable()
        self._progress.unpark_all()
        await self._take_over()

    def _stand_by(self, opening: Opening) -> None:
        self._perform(self._session.opened, opening)
        self._work.start_soon(self._take_over)

    async def _take_over(self) -> None:
        while self._session.standby:
            await trio.sleep(TAKE_OVER_PAUSE)
            opening = await self._in_thread(self._files.take_over)
            if isinstance(opening, Opening):
                self._perform(self._session.opened, opening)

    def _begin_save(self, action: Save) -> None:
        waiting = self._saves[action.document]
        waiting.append(action)
        if len(waiting) == 1:
            self._work.start_soon(self._save, waiting)

    async def _save(self, waiting: deque[Save]) -> None:
        while waiting:
            action = waiting[0]
            outcome = await self._in_thread(self._files.save, action.document, action.value)
            if isinstance(outcome, Exception):
                outcome = NotSaved(stderr.describe(outcome))
            self._perform(self._session.saved, action.document, outcome)
            if isinstance(outcome, Taken):
                self._stand_by(outcome.opening)
            # Only now, so that a save asked for by ``saved`` lands in this loop.
            waiting.popleft()
            self._progress.unpark_all()

    async def _in_thread(self, call: Callable[..., Any], *args: Any) -> Any:
        # What is thrown is given back, so that no mistake in a file's handling ends the server.
        try:
            return await trio.to_thread.run_sync(call, *args, abandon_on_cancel=True)
        except Exception as error:
            _log.error("%s", stderr.describe(error))
            return error

    def _perform(self, call: Callable[..., list[Action]], *args: Any) -> None:
        now = self._clock.now()
        try:
            actions = call(*args, now)
        except Exception as error:  # our mistake, and no reason to leave the agent without wakes
            _log.error("%s", stderr.describe(error))
            return
        lines = []
        for action in actions:
            # Nearly all are lines, and there can be thousands: those are told apart the quick way.
            if type(action) is Reply or type(action) is Push:
                lines.append(action.line)
                continue
            match action:
                case Save():
                    self._begin_save(action)
                case WakeAt():
                    self._wake = action
                    self._set_alarm(now)
                case Log(level, text):
                    _log.log(_LEVELS[level], "%s", text)
                case Ask() | Listen() | Settle() | Seek() | Woken() | Unsent():
                    assert self._watching is not None
                    self._watching.take(action)
        if lines:
            self._sink.write(b"".join(lines))


def _unless_reached(moment: int | None, clock: int) -> int | None:
    return moment if moment is not None and moment > clock else None
