"""The shared store of a virtual server: the real one, on the stage's clocks, with nothing waiting.

What ``shell/watching.py`` and the desk do with tasks and threads is done here at once, in the same
order: a sweep and a look for news twice a second, calls when they come.
"""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mcpl_heartbeat.actions import (
    Ask,
    ForStore,
    Listen,
    Moment,
    Seek,
    Settle,
    Unsent,
    Woken,
)
from mcpl_heartbeat.shell import agent_key
from mcpl_heartbeat.shell.environment import Environment
from mcpl_heartbeat.shell.identity import registration, unknown_key
from mcpl_heartbeat.shell.watching import POLL_EVERY, PRESENT_EVERY
from mcpl_heartbeat.storage.store import engine, migrate, ports, urls
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.failures import failure, unavailable
from mcpl_heartbeat.watch.rows import Identity

_TURN = round(POLL_EVERY * 1000)
_PRESENCE = round(PRESENT_EVERY * 1000)
_MOST = 200


def _provide(url: str) -> None:
    """Have a file with nothing but its tables where there is none: making them takes longest."""
    path = urls.read(url).path
    if path is not None and not Path(path).exists():
        engine.make_file(path)
        Path(path).write_bytes(_blank())


@functools.cache
def _blank() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "blank.db")
        migrate.upgrade(f"sqlite:///{path}")
        return path.read_bytes()


class Time(Protocol):
    """The stage's clocks, in milliseconds."""

    wall: int
    monotonic: int


class VirtualClock:
    """A host's clocks, read off the stage."""

    source = "stage"

    def __init__(self, time: Time) -> None:
        self._time = time

    def steady(self) -> int:
        """Count up, through suspends too."""
        return self._time.monotonic

    def wall(self) -> int:
        """Milliseconds since 1970."""
        return self._time.wall


class VirtualStore:
    """One server's part in the watch. ``told`` and ``report`` take what the session is to hear."""

    def __init__(
        self,
        found: Environment,
        time: Time,
        token: str,
        told: Callable[[int, Any], None],
        report: Callable[[Any, Moment], None],
    ) -> None:
        assert found.store is not None
        self._found = found
        self._time = time
        self._token = token
        self._told = told
        self._report = report
        self._listening = Listen(None, here=False)
        self._seek = Seek(False)
        self._present = (False, False)
        self._present_at: int | None = None
        self._me: Identity | None = None
        self._why = ""
        self._store: Store | None = None
        self.turn_at: int | None = None
        """When (monotonic) ``turn`` is to be called next."""
        try:
            _provide(found.store)
            self._store = Store(found.store, clock=VirtualClock(time))
            self._store.open()
            self.turn_at = time.monotonic
        except StoreError as error:
            self._why = str(error)

    def do(self, action: ForStore) -> None:
        """Carry it out."""
        match action:
            case Ask(id, tool, arguments, secret):
                self._told(id, self._call(tool, arguments, secret))
            case Listen():
                self._listening = action
                self._show_presence()
            case Settle(seqs, taken) if self._store is not None:
                self._store.pushed(self._token, seqs, taken=taken)
            case Seek():
                self._seek = action
                self._show_presence()
            case Woken(work, taken) if self._store is not None and (me := self._identity()):
                self._store.woken(me.namespace, self._token, work, taken=taken)
            case Unsent(ids) if self._store is not None and (me := self._identity()):
                self._store.unsent(me.namespace, ids)

    def turn(self) -> None:
        """Fire what is due, and hand on what is to be pushed."""
        assert self._store is not None
        self.turn_at = self._time.monotonic + _TURN
        while self._store.sweep(_MOST).more:
            pass
        self._show_presence()
        most, seek = self._listening.alerts, self._seek
        wanted = most is not None or seek.wanted or seek.reviews
        if wanted and (me := self._identity()) is not None:
            held = self._listening.held
            asked = Moment(self._time.wall, self._time.monotonic)
            self._report(
                self._store.news(
                    me.agent, me.namespace, self._token, most, seek.wanted, seek.reviews, held
                ),
                asked,
            )

    def close(self) -> None:
        """Leave the watch."""
        if self._store is not None:
            self._store.close()
        self._store = self.turn_at = None

    def _call(self, tool: str, arguments: Any, secret: str | None) -> ports.Outcome:
        if self._store is None:
            return unavailable(tool, self._why)
        if secret is None and tool != "register":
            try:
                secret = self._key().secret
            except agent_key.NoKeyError as error:
                return failure("unauthorized", str(error), error.remedy)
            if self._identity() is None:
                return unknown_key(self._store.shown, secret)
        return self._store.answer([ports.Ask(tool, arguments, secret)])[0]

    def _key(self) -> agent_key.Key:
        return agent_key.find(self._found.agent_key, self._found.config_file)

    def _identity(self) -> Identity | None:
        if self._me is None and self._store is not None:
            try:
                key = self._key()
            except agent_key.NoKeyError:
                return None
            self._me = self._store.identify(key.secret)
            if self._me is None and key.path is not None:
                self._store.answer([ports.Ask("register", registration(key))])
                self._me = self._store.identify(key.secret)
        return self._me

    def _show_presence(self) -> None:
        present, now = (self._listening.here, self._seek.here), self._time.monotonic
        last = self._present_at
        fresh = present == self._present and last is not None and now - last < _PRESENCE
        if self._store is None or (any(present) and fresh):
            return
        if (any(present) or last is not None) and (me := self._identity()) is not None:
            self._store.present(me.agent, self._token, here=present[0], work=present[1])
            self._present, self._present_at = present, now if any(present) else None
