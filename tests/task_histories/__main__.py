"""Histories by hand: ``python -m tests.task_histories --seconds 120``; see ``--help``."""

import argparse
import sys
from collections import Counter

from tests.postgres import Server
from tests.task_histories.history import TaskHistory
from tests.task_histories.points import TaskPoints, kill_at_each
from tests.task_histories.reckoning import TaskReckoning
from tests.watch_histories.by_hand import ByHand


def said(reckoning: TaskReckoning) -> str:
    """What came of a history."""
    ends = Counter(life.row["status"] for life in reckoning.lives.values())
    causes = Counter(held["cause"] for life in reckoning.lives.values() for held in life.epochs)
    refusals = Counter(
        act.told["code"]
        for act in reckoning.acts
        if isinstance(act.told, dict) and "code" in act.told
    )
    return f"tasks {dict(ends)}, epochs {dict(causes)}, refused {dict(refusals)}"


def kill(name: str, postgres: Server | None, options: argparse.Namespace) -> int:
    """Kill a call at its points; how often."""
    return kill_at_each(name, postgres, options.seed % options.every, options.every)


BY_HAND = ByHand(
    module="tests.task_histories",
    doc=__doc__,
    history=TaskHistory,
    reckoning=TaskReckoning,
    said=said,
    calls=list(TaskPoints.SCRIPTS),
    kill=kill,
)

if __name__ == "__main__":
    sys.exit(BY_HAND.main(sys.argv[1:]))
