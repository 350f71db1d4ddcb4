"""Histories by hand: ``python -m tests.watch_histories --seconds 120``; see ``--help``."""

import argparse
import sys

from tests.postgres import Server
from tests.watch_histories.by_hand import ByHand
from tests.watch_histories.history import History
from tests.watch_histories.points import Points, kill_at_each, scenes
from tests.watch_histories.reckoning import Reckoning


def said(reckoning: Reckoning) -> str:
    """What came of a history."""
    return f"{len(reckoning.fires)} fires"


def kill(name: str, postgres: Server | None, options: argparse.Namespace) -> int:
    """Kill a call at its points; how often."""
    with scenes(postgres) as make:
        return kill_at_each(name, make, options.seed % options.every, options.every)


BY_HAND = ByHand(
    module="tests.watch_histories",
    doc=__doc__,
    history=History,
    reckoning=Reckoning,
    said=said,
    calls=list(Points.SCRIPTS),
    kill=kill,
)

if __name__ == "__main__":
    sys.exit(BY_HAND.main(sys.argv[1:]))
