"""What a store is asked and what it answers: the border between it and the doors.

Everything here is plain values; the store itself (``store.py``) is synchronous and is called from
worker threads by ``shell/desk.py``.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from mcpl_heartbeat.watch.arguments import Arguments
from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import Result
from mcpl_heartbeat.watch.rows import Envelope, Identity, Nudge

Outcome = Result | Failure


class StoreError(Exception):
    """The store cannot be used now. The text is one clause for replies and the log."""


class NeedsUpgrade(StoreError):
    """The store is of an older version, and has to be upgraded by hand first."""


class Unsettled(Exception):
    """What only reads met what is to be written: it has to be done again by whoever may write.

    A call that ``look`` was given met what is due and not done: ``answer`` it, which settles first.
    """


class Ask(msgspec.Struct, frozen=True):
    """One call of a tool, its arguments checked; ``secret`` says for whom (``None``: nobody)."""

    tool: str
    arguments: Arguments
    secret: str | None = None


class Swept(msgspec.Struct, frozen=True):
    """What one sweep came to. ``more``: it stopped at its bound and should go on soon."""

    fired: int = 0
    late_ms: tuple[int, ...] = ()
    """For each fire how long after its deadline it was noticed."""
    called_late_ms: tuple[int, ...] = ()
    """The same for the fires that calls have found and done since the sweep before."""
    more: bool = False
    gap: Gap | None = None
    corrupt: tuple[str, ...] = ()
    """Scopes that were set aside just now, for the log."""
    timed_out: int = 0
    """Tasks whose timeout was carried out."""
    corrupt_tasks: tuple[str, ...] = ()
    """Ids of tasks that were set aside just now."""


class Work(msgspec.Struct, frozen=True):
    """Claimable tasks of which the agent was not told yet."""

    of: str
    """Tells whose namespace's it is apart from others', and nothing more of that."""
    claimable: int
    """How many there are in all."""
    number: int
    """Counts the namespace's wakes from 1: this one, however often it is sent."""
    real: int
    watched: int
    """Up to when, in both times (ms), it tells of all that there was."""


Kind = Literal["alerts", "reviews", "work"]


class News(msgspec.Struct, frozen=True):
    """What is to be pushed to one agent. All but nudges is claimed for the server that asked."""

    now: Reading
    alerts: tuple[Envelope, ...] = ()
    """Not pushed yet, the oldest first."""
    nudges: tuple[Nudge, ...] = ()
    """Of switches of the agent's own."""
    work: Work | None = None
    reviews: tuple[Envelope, ...] = ()
    """Of tasks that timed out; claimed and settled as alerts are."""
    standing: tuple[Nudge, ...] = ()
    void: tuple[Nudge, ...] = ()
    """Of the nudges that the server holds: whose deadline still stands, and whose does not."""
    quiet: frozenset[Kind] = frozenset()
    """Of which kinds there is nothing for this server, though they were looked for."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to push, and nothing to say of what is held."""
        told = self.alerts or self.nudges or self.reviews or self.standing or self.void
        return not told and self.work is None


class Stats(msgspec.Struct, frozen=True):
    """Counts for ``/metrics``."""

    armed: int
    mail_waiting: int
    gaps: int
    tasks_available: int = 0
    """By what their rows say: what is overdue or lapsed counts as it did."""
    tasks_claimed: int = 0


class StorePort(Protocol):
    """The synchronous store. Every method may block, and raises ``StoreError`` when it cannot.

    ``answer``, ``sweep``, ``news`` and what is told of pushes are called from one thread at a time
    (the writer's); ``look`` and ``stats`` from another.
    """

    def open(self) -> None:
        """Connect, bring the tables up to date, take part in the watch. May be called again."""

    def close(self) -> None:
        """Leave the watch, noting when, so that what follows counts as a gap from now on."""

    def answer(self, asks: Sequence[Ask]) -> list[Outcome]:
        """Carry out calls in their order, all in one durable transaction; outcomes in that order.

        One that fails on its own costs only itself. Whatever is due on the scopes they name is
        settled first.
        """

    def look(self, ask: Ask) -> Outcome:
        """Carry out a call of a tool that only reads.

        Raises ``Unsettled`` when a switch that it would show is due and has not fired yet: then the
        call goes to ``answer``, by the writer's thread.
        """

    def sweep(self, most: int) -> Swept:
        """Fire switches and time out tasks that are due, together up to ``most``, the oldest first.

        It is noted that we watch.
        """

    def identify(self, secret: str) -> Identity | None:
        """Whose secret it is."""

    def news(  # noqa: PLR0913, PLR0917 - for whom, by whom, of what
        self,
        agent: str,
        namespace: str,
        token: str,
        most: int | None,
        work: bool = False,
        reviews: int = 0,
        held: Sequence[Nudge] = (),
    ) -> News:
        """Claim what is to be pushed to ``agent`` by the server ``token``, for a minute.

        ``most`` bounds the alerts and may be 0, nudges are given in any case; with ``None`` neither
        is. ``work``: whether claimable tasks are told of; ``reviews`` bounds those. ``held``:
        nudges that it was given and has not got pushed, to hear which of them still stand.
        """

    def pushed(self, token: str, seqs: Sequence[int], *, taken: bool) -> None:
        """A host took the push of this mail, or did not: then another server may try."""

    def woken(self, namespace: str, token: str, work: Work, *, taken: bool) -> None:
        """A host took the push of ``work``, or did not: then another server may try."""

    def unsent(self, namespace: str, nudges: Sequence[Nudge]) -> None:
        """A server leaves, and no host took these nudges: another may push those that stand."""

    def present(self, agent: str, token: str, *, here: bool, work: bool = False) -> None:
        """Say that the server ``token`` can push to ``agent`` for the next 60 s, or no longer.

        ``here``: alerts and nudges; ``work``: what there is to say of tasks.
        """

    def stats(self) -> Stats:
        """Count."""

    def housekeeping(self) -> bool:
        """Drop a piece of what nobody needs any more; whether there may be more of it.

        By the writer's thread, once an hour, and again soon while there may be more.
        """
