"""Histories by hand: ``python -m tests.task_histories --seconds 120``; see ``--help``."""

import argparse
import contextlib
import random
import sys
import time
from collections import Counter

from tests.postgres import Server, server
from tests.task_histories.history import TaskHistory
from tests.task_histories.points import TaskPoints, kill_at_each
from tests.task_histories.reckoning import TaskReckoning
from tests.watch_histories.__main__ import store
from tests.watch_histories.facts import Disagrees
from tests.watch_histories.history import Broken


def main(arguments: list[str]) -> int:
    """Run histories until the time or the count is over; 1 when one of them went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.task_histories", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the first history; the next ones count on")
    parser.add_argument("--count", type=int, default=1, help="how many histories")
    parser.add_argument("--seconds", type=float, help="go on for so long instead")
    parser.add_argument("--acts", type=int, default=400, help="how much is done in each")
    parser.add_argument("--workers", type=int, help="how many processes (default: 2 to 8)")
    parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
    parser.add_argument("--points", metavar="CALL", help="instead, kill this call at its points")
    parser.add_argument("--every", type=int, default=1, help="at each such point only")
    parser.add_argument("--keep", action="store_true", help="leave what a failure left behind")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = random.randrange(10**6)
    until = time.monotonic() + (options.seconds or 0)
    number = 0
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(server()) if options.postgresql else None
        if options.points:
            return 0 if points(options, postgres) else 1
        while number < options.count if options.seconds is None else time.monotonic() < until:
            if not once(options, options.seed + number, postgres):
                return 1
            number += 1
    return 0


def once(options: argparse.Namespace, seed: int, postgres: Server | None) -> bool:
    """One history."""
    workers = options.workers or random.Random(seed).randint(2, 8)
    begun = time.monotonic()
    with store(postgres) as (url, clock):
        steps = postgres is not None and seed % 2 == 0
        history = TaskHistory(url, clock, clock.folder, seed, workers, options.acts, steps)
        try:
            history.run()
            reckoning = TaskReckoning(url, history.logs, history.addresses)
            reckoning.run()
        except (Disagrees, Broken) as error:
            print(f"seed {seed}, {workers} workers: {error}", file=sys.stderr)
            if options.keep:
                input(f"{url} and {clock.folder} are there until you press Enter.")
            return False
    unknown = sum(not act.known for act in reckoning.acts)
    ends = Counter(life.row["status"] for life in reckoning.lives.values())
    causes = Counter(held["cause"] for life in reckoning.lives.values() for held in life.epochs)
    refusals = Counter(
        act.told["code"]
        for act in reckoning.acts
        if isinstance(act.told, dict) and "code" in act.told
    )
    print(
        f"seed {seed}: {workers} workers, {len(reckoning.acts)} calls ({unknown} unanswered), "
        f"tasks {dict(ends)}, epochs {dict(causes)}, refused {dict(refusals)}, "
        f"{len(reckoning.shelf.gaps)} gaps, {dict(history.done)}, {time.monotonic() - begun:.1f} s",
        flush=True,
    )
    return True


def points(options: argparse.Namespace, postgres: Server | None) -> bool:
    """A kind of call, or all of them, killed at each point or at some."""
    names = list(TaskPoints.SCRIPTS) if options.points == "all" else [options.points]
    for name in names:
        try:
            killed = kill_at_each(name, postgres, options.seed % options.every, options.every)
        except Disagrees as error:
            print(error, file=sys.stderr)
            return False
        print(f"{name}: killed {killed} times", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
