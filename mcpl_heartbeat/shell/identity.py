"""Whom this server acts for in the shared store: its key, and the identity that goes with it."""

import logging
from collections.abc import Callable

import trio

from mcpl_heartbeat.shell.agent_key import Key, NoKeyError
from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.watch.arguments import RegisterArguments
from mcpl_heartbeat.watch.failures import Failure, failure
from mcpl_heartbeat.watch.rows import Identity

KEY_PAUSE = 2.0
"""Seconds after which a key that could not be used is looked for again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds between two tries to register while the store does not answer."""

_log = logging.getLogger("mcpl_heartbeat")


class Own:
    """This server's own identity. ``find_key`` may block, and raises ``NoKeyError``."""

    def __init__(self, desk: Desk, find_key: Callable[[], Key]) -> None:
        self._desk = desk
        self._find_key = find_key
        self._turn = trio.Lock()
        self._key: Key | None = None
        self._identity: Identity | None = None
        self._trouble: NoKeyError | None = None
        self._look_again = -float("inf")
        self._said = ""

    @property
    def note(self) -> str | None:
        """What the agent has to be told of its key."""
        return None if self._key is None else self._key.note

    async def secret(self) -> str | Failure:
        """Give the key, known to the store if that can be had now; or why there is none."""
        await self.identity()
        if self._key is not None:
            return self._key.secret
        assert self._trouble is not None
        return failure("unauthorized", str(self._trouble), self._trouble.remedy)

    async def identity(self) -> Identity | None:
        """Who we are to the store; registers us where it does not know us. ``None``: not now."""
        if self._identity is not None:
            return self._identity
        async with self._turn:
            if self._identity is None and await self._has_key():
                self._identity = await self._known_or_registered()
            return self._identity

    def forget(self) -> None:
        """The store does not know us (any more): look again."""
        self._identity = None

    async def keep_trying(self) -> None:
        """Have an identity as soon as there can be one, whether or not anybody asks."""
        pause = FIRST_PAUSE
        while await self.identity() is None:
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _has_key(self) -> bool:
        if self._key is not None:
            return True
        if trio.current_time() < self._look_again:
            return False
        try:
            self._key = await trio.to_thread.run_sync(self._find_key, abandon_on_cancel=True)
        except NoKeyError as error:
            self._trouble = error
            self._look_again = trio.current_time() + KEY_PAUSE
            self._say(f"{error} {error.remedy}")
            return False
        if self._key.note is not None:
            self._say(self._key.note)
        return True

    async def _known_or_registered(self) -> Identity | None:
        assert self._key is not None
        secret = self._key.secret
        try:
            known = await self._desk.identify(secret)
            if known is None:
                # The secret is on disk, or in the environment, by now: nothing can be lost.
                arguments = RegisterArguments(agent_secret=secret)
                outcome = await self._desk.call("register", arguments, None)
                if isinstance(outcome, Failure) and outcome.code != "unavailable":
                    self._say(f"The store does not take this server's key: {outcome.message}")
                known = await self._desk.identify(secret)
        except StoreError:
            return None
        return known

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            _log.warning("%s", text)
