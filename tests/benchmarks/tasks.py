"""Measure the tasks wing on SQLite: ``tasks.py [options]``.

Claims, heartbeats and submits a second, by 1, 4 and 16 workers that contend on 10,000 tasks, each
beside SQLite alone doing the same with as many a commit; and what a claim and a list cost with
1,000,000 closed tasks, beside the same with none. Nothing is asserted: a figure over its goal is
printed as "over" and the exit code stays 0. It is 1 only when a figure could not be taken.
"""

import argparse
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import trio
from msgspec import Raw

from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.storage.store.ports import Ask
from mcpl_heartbeat.watch.failures import Failure
from tests.benchmarks import report
from tests.benchmarks.bench import Unmeasurable
from tests.benchmarks.queues import OUTPUTS, BareQueue, fill, id_of
from tests.benchmarks.rounds import Goal, Row
from tests.benchmarks.shelf import Shelf
from tests.benchmarks.watched import Watch, wrote

TASKS = 10_000
PHASES = ("claim", "heartbeat", "submit")


def asked(shelf: Shelf, phase: str, number: int) -> Ask:
    """One call of a worker."""
    more: dict[str, object] = {"agent_id": "worker"}
    if phase != "claim":
        more = {"execution_epoch": 2}
    if phase == "submit":
        more["outputs"] = Raw(OUTPUTS.encode())
    return shelf.ask(f"{phase}_agent_task", task_id=id_of(number), **more)


def by_desk(shelf: Shelf, phase: str, numbers: Sequence[int], workers: int) -> float:
    """All of them, by so many at a time who take the next from one queue; calls a second."""
    asks = iter([asked(shelf, phase, number) for number in numbers])

    async def worker(desk: Desk) -> None:
        for ask in asks:
            told = await desk.call(ask.tool, ask.arguments, ask.secret)
            if isinstance(told, Failure):
                raise Unmeasurable(told.message)

    async def all_of_them() -> float:
        desk = Desk(shelf.store)
        async with trio.open_nursery() as nursery:
            await nursery.start(desk.run)
            begun = time.perf_counter()
            async with trio.open_nursery() as crew:
                for _ in range(workers):
                    crew.start_soon(worker, desk)
            spent = time.perf_counter() - begun
            await desk.aclose()
        return len(numbers) / spent

    return trio.run(all_of_them)


def by_sql(bare: BareQueue, phase: str, numbers: Sequence[int], workers: int) -> float:
    """The same, with as many a commit as there are workers."""
    do: Callable[[Sequence[int]], None] = getattr(bare, phase)
    begun = time.perf_counter()
    for first in range(0, len(numbers), workers):
        do(numbers[first : first + workers])
    return len(numbers) / (time.perf_counter() - begun)


def contended(watch: Watch) -> list[Row]:
    """Claims, heartbeats and submits a second, by few and by many workers."""
    found = []
    for workers in (1, 4, 16):
        rounds = 3 if watch.quick else 7
        each = min(100 * workers, TASKS // (rounds + 1))
        series: dict[str, list[list[float]]] = {phase: [[], []] for phase in PHASES}
        bare = BareQueue(watch.folder / f"bare-{workers}", TASKS)
        with watch.shelf() as shelf:
            fill(shelf, TASKS, 0)
            for number in range(rounds + 1):
                name = f"{workers} workers"
                watch.say(
                    f"{name}: round {number} of {rounds}" if number else f"{name}: warming up"
                )
                # Neighbours in no order, as a queue that many take from is.
                numbers = [(each * number + i) * 7_919 % TASKS for i in range(each)]
                for phase in PHASES:
                    alone = by_sql(bare, phase, numbers, workers)
                    ours = by_desk(shelf, phase, numbers, workers)
                    if number:
                        series[phase][0].append(alone)
                        series[phase][1].append(ours)
        bare.close()
        found += [
            Row(f"{phase}s, {workers} worker{'s'[: workers > 1]}", "/s", series[phase])
            for phase in PHASES
        ]
    return found


def among_closed(watch: Watch) -> list[Row]:
    """What calls cost among many closed tasks, beside the same among none; and a claim's time."""
    closed = 50_000 if watch.quick else 1_000_000
    with watch.shelf() as shelf:
        fill(shelf, 3 * CALLS, 0)
        few = costs(shelf, 0)
        watch.say(f"closing {closed:,}")
        fill(shelf, closed, TASKS, closed=True)
        many = costs(shelf, CALLS)
        bare = BareQueue(watch.folder / "bare-closed", 2 * CALLS, closed)
        turns: list[list[float]] = [[], []]
        for number in range(CALLS):
            asks = [asked(shelf, "claim", 2 * CALLS + number)]
            begun = time.perf_counter()
            bare.claim([number])
            between = time.perf_counter()
            shelf.store.answer(asks)
            turns[0].append((between - begun) * 1000)
            turns[1].append((time.perf_counter() - between) * 1000)
        bare.close()
    among = f"{closed:,} closed (bare: none)"
    flat = [
        Row(f"{name}, {among}", unit, [few[name], many[name]], Goal("ratio", "<=", 1.25))
        for name, unit in COSTS.items()
    ]
    return [*flat, Row(f"a claim, {closed:,} closed on both", "ms", turns)]


CALLS = 500
COSTS = {
    "CPU of a claim": "ms",
    "written a claim": "bytes",
    "CPU of a list of 50": "ms",
    "CPU of a sweep": "ms",
}
"""What does not depend on who else uses the disk."""


def costs(shelf: Shelf, first: int) -> dict[str, list[float]]:
    """What calls cost, one at a time, each figure over ten of them."""
    found: dict[str, list[float]] = {name: [] for name in COSTS}
    look = shelf.ask("list_agent_tasks", status="available")

    def ten(name: str, do: Callable[[int], object]) -> None:
        begun = time.process_time()
        told = [do(number) for number in range(10)]
        found[name].append((time.process_time() - begun) * 100)
        for each in told:
            if isinstance(each, Failure):
                raise Unmeasurable(each.message)

    for number in range(first, first + CALLS, 10):
        asks = [asked(shelf, "claim", number + i) for i in range(10)]
        begun = wrote()
        ten("CPU of a claim", lambda i, asks=asks: shelf.store.answer([asks[i]])[0])
        found["written a claim"].append((wrote() - begun) / 10)
        ten("CPU of a list of 50", lambda _: shelf.store.look(look))
        ten("CPU of a sweep", lambda _: shelf.store.sweep(200))
    return {name: series[5:] for name, series in found.items()}


FIGURES: dict[str, Callable[[Watch], list[Row]]] = {
    "contended": contended,
    "closed": among_closed,
}


def main(arguments: Sequence[str]) -> int:
    """Run the figures asked for and print them; the exit code."""
    parser = argparse.ArgumentParser(
        prog="tasks.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_options(parser, FIGURES)
    options = parser.parse_args(arguments)
    bare = f"SQLite {sqlite3.sqlite_version} in {platform.python_version()}"

    def watch(folder: Path) -> Watch:
        return Watch((), folder, options.quick, report.progress)

    return report.run(FIGURES, options, watch, {"bare_python": bare})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
