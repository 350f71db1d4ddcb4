"""The shared store: what it is asked, each as a transaction (``StorePort``)."""

import logging
import os
from collections.abc import Callable, Sequence

import msgspec

from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import identities, news, operations, sweep, urls, wakes
from mcpl_heartbeat.storage.store.clock import HostClock, SteadyClock
from mcpl_heartbeat.storage.store.ports import (
    Ask,
    News,
    Outcome,
    Stats,
    StoreError,
    Swept,
    Unsettled,
    Work,
)
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.storage.store.transactions import Transactions
from mcpl_heartbeat.watch.failures import Failure, failure
from mcpl_heartbeat.watch.rows import Identity, Nudge

_log = logging.getLogger(__name__)


class Store:
    """The store at ``url``. ``watch``: it takes part in the watch while it is open.

    Raises ``StoreError`` for a URL that is not taken.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: SteadyClock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        watch: bool = True,
    ) -> None:
        place = urls.read(url)
        urls.need_extras(place)
        self.shown = place.shown
        """The URL without a password."""
        self._transactions = Transactions(
            place, clock or HostClock(), random, sweep.after_gap, watch=watch
        )
        self._called_late_ms: list[int] = []
        self._tidied = ("", "")

    def open(self) -> None:
        """Connect, bring the tables up to date, take part in the watch."""
        self._transactions.open()

    def close(self) -> None:
        """Leave the watch, noting when."""
        self._transactions.close()

    def answer(self, asks: Sequence[Ask]) -> list[Outcome]:
        """Carry out calls in their order in one transaction.

        When that fails for a reason of our own they are done in halves, so that the call which
        cannot be done costs only itself.
        """
        try:
            outcomes, late_ms = self._transactions.write(
                lambda tx: (operations.carry_out(tx, asks), tx.late_ms)
            )
        except StoreError:
            raise
        except Exception as error:
            if len(asks) == 1:
                return [_internal(asks[0], error)]
        else:
            self._called_late_ms += late_ms
            return outcomes
        middle = len(asks) // 2
        return [*self.answer(asks[:middle]), *self.answer(asks[middle:])]

    def look(self, ask: Ask) -> Outcome:
        """Carry out a call that only reads."""
        try:
            return self._transactions.read(lambda tx: operations.look(tx, ask))
        except (StoreError, Unsettled):
            raise
        except Exception as error:
            return _internal(ask, error)

    def sweep(self, most: int) -> Swept:
        """Fire and time out what is due, the oldest first, and note that we watch."""
        swept = self._transactions.write(lambda tx: sweep.sweep(tx, most), note=False)
        self._transactions.watch()
        called, self._called_late_ms = tuple(self._called_late_ms), []
        return msgspec.structs.replace(
            swept, called_late_ms=called, gap=self._transactions.take_gap()
        )

    def identify(self, secret: str) -> Identity | None:
        """Whose secret it is."""
        return self._transactions.read(lambda tx: identities.identify(tx, secret))

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
        """Claim what is to be pushed."""

        def look(tx: Transaction) -> News:
            return news.news(
                tx, agent, namespace, token, most, work=work, reviews=reviews, held=held
            )

        try:
            # Nearly always there is nothing, and every server asks twice a second.
            return self._transactions.read(look, settled=True)
        except Unsettled:
            return self._transactions.write(look, note=False)

    def pushed(self, token: str, seqs: Sequence[int], *, taken: bool) -> None:
        """Say what became of a push."""
        self._transactions.write(lambda tx: news.pushed(tx, token, seqs, taken=taken))

    def woken(self, namespace: str, token: str, work: Work, *, taken: bool) -> None:
        """Say what became of the push of ``work``."""
        self._transactions.write(
            lambda tx: wakes.woken(tx, namespace, token, work, taken=taken), note=False
        )

    def unsent(self, namespace: str, nudges: Sequence[Nudge]) -> None:
        """Say that these nudges were not pushed."""
        self._transactions.write(lambda tx: news.unsent(tx, namespace, nudges))

    def present(self, agent: str, token: str, *, here: bool, work: bool = False) -> None:
        """Say whether the server ``token`` can push to ``agent``."""
        self._transactions.write(lambda tx: news.present(tx, agent, token, here=here, work=work))

    def stats(self) -> Stats:
        """Count."""
        return self._transactions.read(operations.stats)

    def housekeeping(self) -> bool:
        """Drop a piece of what nobody needs any more; whether there may be more of it."""
        rest = self._transactions.write(lambda tx: operations.housekeeping(tx, self._tidied))
        self._tidied = rest or ("", "")
        return rest is not None


def _internal(ask: Ask, error: Exception) -> Failure:
    # No more of it than its clause: the database tells the words of agents in the rest.
    why = engines.judge(error).text
    _log.error("%s failed: %s: %s", ask.tool, type(error).__name__, why)
    return failure(
        "internal",
        "This call failed through a fault of the server and changed nothing.",
        "Try something else; the server's log says more.",
    )
