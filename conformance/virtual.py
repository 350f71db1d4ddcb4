"""A stage with time in hand: this checkout's session in process, with its real files.

The only part of the suite that imports the server. It does what the server's shell does, but for
the pipes: alarms ring when ``let_pass`` comes by them, saves end at once.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from conformance import moments
from conformance.host import Seat
from conformance.stage import StageError
from mcpl_heartbeat.actions import (
    Action,
    ForStore,
    Level,
    Log,
    Moment,
    Push,
    Reply,
    Save,
    WakeAt,
)
from mcpl_heartbeat.session import Session
from mcpl_heartbeat.shell import environment as surroundings
from mcpl_heartbeat.shell.files import WakeFiles
from mcpl_heartbeat.shell.server import TAKE_OVER_PAUSE
from mcpl_heartbeat.wings import Annex

if TYPE_CHECKING:
    from conformance.virtual_store import VirtualStore

LONGEST_PAUSE = 30_000
"""Milliseconds after a step of the clock until the shell looks at it at the latest."""
MOST_RINGS = 300_000
"""Alarms in one step after which it is taken that there is no end to them."""
_TAKE_OVER = round(TAKE_OVER_PAUSE * 1000)
_SIGNALS = {"SIGTERM": 15, "SIGKILL": 9, "SIGINT": 2, "SIGHUP": 1}


class VirtualStage:
    """Both clocks, and the sessions that live by them. ``wall`` is the wall time it begins at."""

    def __init__(self, wall: int) -> None:
        self.wall = wall
        self.monotonic = 1_000_000
        self._peers: list[VirtualPeer] = []
        self._ids = itertools.count(1)
        self._work: deque[Callable[[], None]] = deque()
        self._working = False

    def now(self) -> int:
        """Return the wall time."""
        return self.wall

    def start(self, seat: Seat, environment: Mapping[str, str], folder: str) -> "VirtualPeer":
        """Begin one more session, on the files in ``folder``."""
        peer = VirtualPeer(self, seat, environment, Path(folder), self._ids)
        self._peers.append(peer)
        self.do(peer.begin)
        return peer

    def let_pass(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Move both clocks on, alarm by alarm, until ``until()`` or ``seconds`` are over."""
        end = self.monotonic + round(seconds * 1000)
        rings = 0
        while not until():
            waits = [wait for peer in self._peers if (wait := peer.sleeps()) is not None]
            wait = min(waits, default=end - self.monotonic + 1)
            if self.monotonic + wait > end:
                self._move(end - self.monotonic)
                return until()
            self._move(wait)
            for peer in self._peers:
                if peer.sleeps() == 0:
                    self.do(peer.ring)
            rings += 1
            if rings > MOST_RINGS:
                raise StageError(f"the server rang {MOST_RINGS} alarms within {seconds:g} s")
        return True

    def between_writes(self) -> None:
        """Do nothing: each write is taken in by itself."""

    def step_clock(self, ms: int) -> None:
        """Set the wall clock by ``ms``; the sessions notice within their longest pause."""
        self.wall += ms
        for peer in self._peers:
            peer.look_by = self.monotonic + LONGEST_PAUSE

    def suspend(self, ms: int) -> None:
        """Move both clocks while nothing runs; what was missed is served on waking."""
        self._move(ms)
        self.let_pass(0)

    def close(self) -> None:
        """End what is left, as by SIGKILL."""
        for peer in self._peers:
            peer.signal("SIGKILL")

    def do(self, work: Callable[[], None]) -> None:
        """Carry out ``work`` after what is under way: an answer comes in a pass of its own."""
        self._work.append(work)
        if not self._working:
            self._working = True
            try:
                while self._work:
                    self._work.popleft()()
            finally:
                self._working = False
                self._work.clear()

    def moment(self) -> Moment:
        """Read both clocks."""
        return Moment(self.wall, self.monotonic)

    def _move(self, ms: int) -> None:
        self.wall += ms
        self.monotonic += ms


class VirtualPeer:
    """One session, and its shell."""

    written = True

    def __init__(
        self,
        stage: VirtualStage,
        seat: Seat,
        environment: Mapping[str, str],
        folder: Path,
        ids: Iterator[int],
    ) -> None:
        found = surroundings.read(environment)
        token = f"process{next(ids)}"
        self._stage = stage
        self._seat = seat
        self._warnings = found.warnings
        self._files = WakeFiles(str(folder / found.config_file), str(folder / found.reminders_file))
        self._session = Session(
            zone=found.zone,
            token=token,
            random_id=lambda: f"{next(ids):08x}",
            annexes=_annexes(found),
        )
        self._store: VirtualStore | None = None
        if found.store:
            # What a store needs is not there in every installation.
            from conformance import virtual_store  # noqa: PLC0415

            found = msgspec.structs.replace(found, config_file=str(folder / found.config_file))
            self._store = virtual_store.VirtualStore(found, stage, token, self._told, self._report)
        self._alarm = WakeAt(None, None)
        self._try_at: int | None = None
        self._stopped: list[Callable[[], None]] | None = None
        self._status: int | None = None
        self.look_by: int | None = None

    def begin(self) -> None:
        """Start the session and open its files."""
        for warning in self._warnings:
            self._logged(Log(Level.WARNING, warning))
        self._perform(self._session.start(self._stage.moment()))
        self._perform(self._session.opened(self._files.open(), self._stage.moment()))
        self._try_again()

    # What the player does -------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Hand the session bytes."""
        self._when_running(lambda: self._perform(self._session.receive(data, self._stage.moment())))

    def close(self, end: str) -> None:
        """Take in the end of the host's input, or of its patience with our output."""
        if end == "stdin":
            self._when_running(lambda: self._leave(0))
        else:
            self._seat = Seat(lambda data: None, self._seat._answers, [])
            self._when_running(lambda: self._leave(0))

    def signal(self, name: str) -> None:
        """Do as the process would."""
        if self._status is not None:
            return
        if name == "SIGSTOP":
            self._stopped = [] if self._stopped is None else self._stopped
        elif name == "SIGCONT":
            waiting, self._stopped = self._stopped or [], None
            for work in waiting:
                self._stage.do(work)
        elif name == "SIGKILL":
            self._gone(-_SIGNALS[name])
        else:
            self._when_running(lambda: self._leave(-_SIGNALS[name]))

    @property
    def status(self) -> int | None:
        """How it ended."""
        return self._status

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._status is not None

    # Time -----------------------------------------------------------------------------------------

    def sleeps(self) -> int | None:
        """Return the milliseconds until it has something to do; ``None``: never."""
        if self._status is not None or self._stopped is not None:
            return None
        stage = self._stage
        waits = [
            moment - clock
            for moment, clock in (
                (self._alarm.wall, stage.wall),
                (self._alarm.monotonic, stage.monotonic),
                (self.look_by, stage.monotonic),
                (self._try_at, stage.monotonic),
                (None if self._store is None else self._store.turn_at, stage.monotonic),
            )
            if moment is not None
        ]
        return max(0, min(waits)) if waits else None

    def ring(self) -> None:
        """Do what is due."""
        now = self._stage.moment()
        store = self._store
        if store is not None and store.turn_at is not None and store.turn_at <= now.monotonic:
            store.turn()
        if self._try_at is not None and self._try_at <= now.monotonic:
            opening = self._files.take_over()
            if opening is not None:
                self._perform(self._session.opened(opening, now))
            self._try_again()
        # As in the shell: a moment that is reached is used up.
        self._alarm = WakeAt(
            _unless_reached(self._alarm.wall, now.wall),
            _unless_reached(self._alarm.monotonic, now.monotonic),
        )
        self.look_by = _unless_reached(self.look_by, now.monotonic)
        self._perform(self._session.tick(now))

    def _try_again(self) -> None:
        standby = self._session.standby
        self._try_at = self._stage.monotonic + _TAKE_OVER if standby else None

    # What the session asks for --------------------------------------------------------------------

    def _perform(self, actions: list[Action]) -> None:
        waiting = deque(actions)
        lines = []
        while waiting:
            match waiting.popleft():
                case Reply(line=line) | Push(line=line):
                    lines.append(line)
                case Save(document=document, value=value):
                    outcome = self._files.save(document, value)
                    waiting.extend(self._session.saved(document, outcome, self._stage.moment()))
                case WakeAt() as alarm:
                    self._alarm = alarm
                case Log() as log:
                    self._logged(log)
                case action:
                    self._when_running(partial(self._ask, action))
        if lines and self._status is None:
            self._seat.feed(b"".join(lines))

    def _ask(self, action: ForStore) -> None:
        if self._store is not None:
            self._store.do(action)

    def _told(self, id: int, outcome: Any) -> None:
        self._perform(self._session.told(id, outcome, self._stage.moment()))

    def _report(self, news: Any, asked: Moment) -> None:
        self._perform(self._session.news(news, asked, self._stage.moment()))

    def _logged(self, log: Log) -> None:
        level = "WARNING: " if log.level is Level.WARNING else ""
        self._seat.logged(f"{moments.to_text(self._stage.wall, 'iso')} {level}{log.text}\n")

    def _when_running(self, work: Callable[[], None]) -> None:
        if self._status is not None:
            return
        if self._stopped is not None:
            self._stopped.append(work)
        else:
            self._stage.do(work)

    def _leave(self, status: int) -> None:
        if self._status is None:
            self._perform(self._session.end_of_input(self._stage.moment()))
            self._gone(status)

    def _gone(self, status: int) -> None:
        if self._status is None:
            self._status = status
            if self._store is not None:
                self._store.close()
            for lock in self._files._locks:
                lock.release()


def _annexes(found: surroundings.Environment) -> tuple[Annex, ...]:
    if not found.store:
        return ()
    # As the server does it.
    from mcpl_heartbeat.tasks.wing import TASKS_WING  # noqa: PLC0415
    from mcpl_heartbeat.watch.wing import WATCH_WING  # noqa: PLC0415

    return (WATCH_WING, TASKS_WING)


def _unless_reached(moment: int | None, clock: int) -> int | None:
    return moment if moment is not None and moment > clock else None
