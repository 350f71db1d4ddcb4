"""What the log is told of the store: troubles, once each, and what a sweep met."""

import logging

import trio

from mcpl_heartbeat.storage.store.ports import Swept
from mcpl_heartbeat.times import utc_time

QUIET = 60.0
"""Seconds in which the same trouble is not logged again."""

_log = logging.getLogger("mcpl_heartbeat")


class DeskLog:
    """The lines of one desk."""

    def __init__(self) -> None:
        self._last: tuple[str, float] | None = None
        self._told = False  # that the store cannot be used

    def unusable(self, why: str) -> None:
        """Say that the store cannot be used."""
        if self._is_new(why):
            self._told = True
            _log.warning("The store cannot be used now: %s. It is tried again.", why)

    def usable(self) -> None:
        """Say that it can be used again, if the contrary was said."""
        if self._told:
            self._told = False
            _log.info("The store can be used again.")

    def fault(self, what: str, error: Exception) -> None:
        """Say that ``what`` failed by a fault of ours."""
        # The first line: in the rest a database tells the words of agents.
        why = str(error).partition("\n")[0]
        if self._is_new(f"{what}: {why}"):
            _log.error("%s failed: %s: %s", what, type(error).__name__, why)

    def swept(self, swept: Swept) -> None:
        """Say what a sweep set aside, and for how long nobody watched."""
        for scope in swept.corrupt:
            _log.error("A switch cannot be read and was set aside: %r", scope)
        for id in swept.corrupt_tasks:
            _log.error("A task cannot be read and was set aside: %s", id)
        if (gap := swept.gap) is not None:
            _log.warning(
                "Nobody watched the store for %.1f s, until %s: deadlines were put off by that.",
                gap.length / 1000,
                utc_time(gap.ended),
            )

    def _is_new(self, text: str) -> bool:
        """Whether ``text`` is worth a line: not when it was the last one, just now."""
        now = trio.current_time()
        if self._last is not None and self._last[0] == text and now - self._last[1] < QUIET:
            return False
        self._last = text, now
        return True
