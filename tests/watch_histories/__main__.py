"""Histories by hand: ``python -m tests.watch_histories --seconds 120``; see ``--help``."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.watch_histories.facts import Disagrees
from tests.watch_histories.history import Broken, History
from tests.watch_histories.reckoning import Reckoning


def main(arguments: list[str]) -> int:
    """Run histories until the time or the count is over; 1 when one of them went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.watch_histories", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the first history; the next ones count on")
    parser.add_argument("--count", type=int, default=1, help="how many histories")
    parser.add_argument("--seconds", type=float, help="go on for so long instead")
    parser.add_argument("--acts", type=int, default=400, help="how much is done in each")
    parser.add_argument("--workers", type=int, help="how many processes (default: 2 to 8)")
    parser.add_argument("--folder", type=Path, help="for stores, logs and clocks")
    parser.add_argument("--store", help="the URL of an empty store for one history")
    parser.add_argument("--database-clock", action="store_true", help="the store goes by its own")
    options = parser.parse_args(arguments)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    until = time.monotonic() + (options.seconds or 0)
    number = 0
    while number < options.count if options.seconds is None else time.monotonic() < until:
        if not once(options, seed + number):
            return 1
        number += 1
    return 0


def once(options: argparse.Namespace, seed: int) -> bool:
    """One history; what it left is kept when it went wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"history-{seed}-", dir=options.folder))
    url = options.store or f"sqlite:///{folder}/store.db"
    workers = options.workers or random.Random(seed).randint(2, 8)
    history = History(url, folder, seed, workers, options.acts, options.database_clock)
    begun = time.monotonic()
    try:
        history.run()
        reckoning = Reckoning(url, history.logs, (folder / "addresses").read_text().split())
        reckoning.run()
    except (Disagrees, Broken) as error:
        print(f"seed {seed}, {workers} workers, in {folder}: {error}", file=sys.stderr)
        return False
    shutil.rmtree(folder)
    unknown = sum(not act.known for act in reckoning.acts)
    print(
        f"seed {seed}: {workers} workers, {len(reckoning.acts)} calls ({unknown} unanswered), "
        f"{len(reckoning.fires)} fires, {len(reckoning.shelf.gaps)} gaps, "
        f"{dict(history.done)}, {time.monotonic() - begun:.1f} s",
        flush=True,
    )
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
