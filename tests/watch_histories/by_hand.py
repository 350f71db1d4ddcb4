"""Histories by hand: the command line that those of switches and those of tasks share."""

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from tests.postgres import Server, server
from tests.watch_histories.databases import shared_folder, with_clock
from tests.watch_histories.facts import Disagrees
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.history import Broken

Kill = Callable[[str, Server | None, argparse.Namespace], int]


class ByHand(msgspec.Struct, frozen=True):
    """What a kind of history is made of."""

    module: str
    doc: str
    history: Callable[..., Any]
    reckoning: Callable[..., Any]
    said: Callable[[Any], str]
    """A reckoning in words."""
    calls: list[str]
    """The names of the calls that can be killed at their points."""
    kill: Kill
    """Kills one of them at its points; how often."""

    def main(self, arguments: list[str]) -> int:
        """Run histories until the time or the count is over; 1 when one of them went wrong."""
        options = self._parse(arguments)
        until = time.monotonic() + (options.seconds or 0)
        number = 0
        with contextlib.ExitStack() as stack:
            postgres = stack.enter_context(server()) if options.postgresql else None
            if options.points:
                return 0 if self._points(options, postgres) else 1
            while number < options.count if options.seconds is None else time.monotonic() < until:
                if not self._once(options, options.seed + number, postgres):
                    return 1
                number += 1
        return 0

    def _parse(self, arguments: list[str]) -> argparse.Namespace:
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=self.doc)
        parser.add_argument("--seed", type=int, help="of the first history; the next ones count on")
        parser.add_argument("--count", type=int, default=1, help="how many histories")
        parser.add_argument("--seconds", type=float, help="go on for so long instead")
        parser.add_argument("--acts", type=int, default=400, help="how much is done in each")
        parser.add_argument("--workers", type=int, help="how many processes (default: 2 to 8)")
        parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
        parser.add_argument(
            "--points", metavar="CALL", help="instead, kill this call at its points"
        )
        parser.add_argument("--every", type=int, default=1, help="at each such point only")
        parser.add_argument("--keep", action="store_true", help="leave what a failure left behind")
        options = parser.parse_args(arguments)
        if options.seed is None:
            options.seed = random.randrange(10**6)
        return options

    def _once(self, options: argparse.Namespace, seed: int, postgres: Server | None) -> bool:
        """One history."""
        workers = options.workers or random.Random(seed).randint(2, 8)
        begun = time.monotonic()
        with _store(postgres) as (url, clock):
            steps = postgres is not None and seed % 2 == 0
            history = self.history(url, clock, clock.folder, seed, workers, options.acts, steps)
            try:
                history.run()
                reckoning = self.reckoning(url, history.logs, history.addresses)
                reckoning.run()
            except (Disagrees, Broken) as error:
                print(f"seed {seed}, {workers} workers: {error}", file=sys.stderr)
                if options.keep:
                    input(f"{url} and {clock.folder} are there until you press Enter.")
                return False
        unknown = sum(not act.known for act in reckoning.acts)
        print(
            f"seed {seed}: {workers} workers, {len(reckoning.acts)} calls ({unknown} unanswered), "
            f"{self.said(reckoning)}, {len(reckoning.shelf.gaps)} gaps, "
            f"{dict(history.done)}, {time.monotonic() - begun:.1f} s",
            flush=True,
        )
        return True

    def _points(self, options: argparse.Namespace, postgres: Server | None) -> bool:
        """A kind of call, or all of them, killed at each point or at some."""
        for name in self.calls if options.points == "all" else [options.points]:
            try:
                killed = self.kill(name, postgres, options)
            except Disagrees as error:
                print(error, file=sys.stderr)
                return False
            print(f"{name}: killed {killed} times", flush=True)
        return True


@contextlib.contextmanager
def _store(postgres: Server | None) -> Iterator[tuple[str, FileClock]]:
    """An empty store, and its clock in a folder."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(shared_folder())
        clock = FileClock.make(folder / "clock")
        if postgres is None:
            yield f"sqlite:///{folder}/store.db", clock
        else:
            yield stack.enter_context(with_clock(postgres, clock)), clock
