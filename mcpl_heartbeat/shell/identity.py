"""Whom this server acts for in the shared store: its key, and the identity that goes with it.

A key of the server's own making is registered wherever it is not known. One that was given, in
``HEARTBEAT_AGENT_KEY``, names an agent that exists: where the store does not know it, something is
wrong, and acting for a new agent in its place would look like a life that goes on.
"""

import logging
from collections.abc import Callable

import trio
from msgspec import UNSET

from mcpl_heartbeat.shell.agent_key import Key, NoKeyError
from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.shell.environment import AGENT_KEY, shown
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.watch.arguments import RegisterArguments
from mcpl_heartbeat.watch.failures import Failure, failure
from mcpl_heartbeat.watch.identity import address
from mcpl_heartbeat.watch.results import RegisterResult
from mcpl_heartbeat.watch.rows import Identity

KEY_PAUSE = 2.0
"""Seconds after which a key that could not be used, or is not known, is looked for again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds between two tries to register while the store does not answer."""
_QUOTES = "\"'`"

_log = logging.getLogger("mcpl_heartbeat")


def unknown_key(store: str, secret: str) -> Failure:
    """Say that the key which was given is nobody's in ``store``, a URL without its password."""
    quotes = ""
    if secret[0] in _QUOTES or secret[-1] in _QUOTES:
        quotes = " It stands in quotation marks, which count as part of it: take them away."
    return failure(
        "unauthorized",
        f"{AGENT_KEY} is not known in the store {store}: no agent is registered there with that "
        f"secret, and this server registers none for it.{quotes}",
        "Tell this server's operator: use the store in which it was registered (HEARTBEAT_STORE), "
        f"correct {AGENT_KEY}, or register it in this store, with register (over HTTP POST "
        "/v1/register) and that secret as agent_secret. Then call again; nothing has to be "
        "restarted for the last.",
    )


def registration(key: Key) -> RegisterArguments:
    """Ask for an agent of the key that this server made."""
    return RegisterArguments(agent_secret=key.secret, label=key.label or UNSET)


class Own:
    """This server's own identity in ``store``, a URL without its password.

    ``find_key`` may block, and raises ``NoKeyError``.
    """

    def __init__(self, desk: Desk, find_key: Callable[[], Key], store: str) -> None:
        self._desk = desk
        self._find_key = find_key
        self._store = store
        self._turn = trio.Lock()
        self._key: Key | None = None
        self._new = False
        self._identity: Identity | None = None
        self._trouble: Failure | None = None
        self._look_again = -float("inf")
        self._anew: str | None = None
        self._said = ""

    def notes(self, tool: str) -> tuple[str, ...]:
        """What the agent has to be told of its key in the reply of a ``tool`` that tells it."""
        found = None if self._key is None else self._key.note
        anew = self._anew if tool == "whoami" else None
        return tuple(note for note in (found, anew) if note is not None)

    async def secret(self) -> str | Failure:
        """Give the key, known to the store if that can be had now; or why there is none."""
        if self._key is not None:
            # Whoever asks is told what holds now.
            self._look_again = -float("inf")
        await self.identity()
        if self._trouble is not None:
            return self._trouble
        assert self._key is not None
        return self._key.secret

    async def identity(self) -> Identity | None:
        """Who we are to the store; registers us where it may. ``None``: not now."""
        if self._identity is not None:
            return self._identity
        async with self._turn:
            waits = trio.current_time() < self._look_again
            if self._identity is None and not waits and await self._has_key():
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
        try:
            self._key = await trio.to_thread.run_sync(self._find_key, abandon_on_cancel=True)
        except NoKeyError as error:
            self._trouble = failure("unauthorized", str(error), error.remedy)
            self._look_again = trio.current_time() + KEY_PAUSE
            self._say(f"{error} {error.remedy}")
            return False
        self._trouble = None
        self._new = self._key.new
        if self._key.note is not None:
            self._say(self._key.note)
        return True

    async def _known_or_registered(self) -> Identity | None:
        assert self._key is not None
        self._trouble = None
        try:
            known = await self._desk.identify(self._key.secret)
            if known is None and self._key.path is None:
                self._refuse(self._key)
            elif known is None:
                known = await self._register(self._key)
        except StoreError:
            return None
        if known is not None:
            # From here on a store that does not know it is another one, and that is said.
            self._new = False
            self._said = ""
        return known

    def _refuse(self, key: Key) -> None:
        self._trouble = unknown_key(self._store, key.secret)
        self._look_again = trio.current_time() + KEY_PAUSE
        self._say(f"{self._trouble.message} {self._trouble.next}")

    async def _register(self, key: Key) -> Identity | None:
        # The secret is on disk by now: nothing can be lost.
        outcome = await self._desk.call("register", registration(key), None)
        if isinstance(outcome, Failure) and outcome.code != "unavailable":
            self._say(f"The store does not take this server's key: {outcome.message}")
        known = await self._desk.identify(key.secret)
        created = isinstance(outcome, RegisterResult) and outcome.created is True
        if known is not None and created and not self._new:
            self._anew = (
                f"The store {self._store} did not know the key in {shown(key.path or '')}, so it "
                f"was registered there anew: the address is {address(known.agent)} now. If it was "
                "registered in another store before, mail, switches and leases are there still: "
                "set HEARTBEAT_STORE to that one, or tell the new address to whoever needs it."
            )
            self._say(self._anew)
        return known

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            _log.warning("%s", text)
