"""The figures of the watch wing (issue 4, section 7)."""

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.watch.failures import Failure
from tests.benchmarks.bare import middle
from tests.benchmarks.bench import Unmeasurable, at_most
from tests.benchmarks.load import Served, load, one, request
from tests.benchmarks.rounds import Goal, Row
from tests.benchmarks.shelf import SECRET, Bare, Shelf
from tests.benchmarks.system import resident

SCOPES = 1_000
BATCH = 256
CONNECTIONS = 32


@dataclass
class Watch:
    """What is measured, with what, where, and how long."""

    command: Sequence[str]
    folder: Path
    quick: bool
    say: Callable[[str], None]

    @contextmanager
    def shelf(self, armed: int = 0) -> Iterator[Shelf]:
        """A store with so many armed."""
        self.say(f"arming {armed:,}" if armed else "making a store")
        shutil.rmtree(self.folder / "shelf", ignore_errors=True)
        shelf = Shelf(self.folder / "shelf")
        try:
            if armed:
                shelf.fill(armed)
            yield shelf
        finally:
            shelf.close()

    @contextmanager
    def bare(self, armed: int) -> Iterator[Bare]:
        """SQLite alone with as many rows."""
        shutil.rmtree(self.folder / "bare", ignore_errors=True)
        bare = Bare(self.folder / "bare", armed)
        try:
            yield bare
        finally:
            bare.close()

    @contextmanager
    def served(self, shelf: Shelf) -> Iterator[Served]:
        """A server on that store, which nobody else uses then."""
        shelf.close()
        served = Served(self.command, shelf.url, self.folder)
        try:
            yield served
        finally:
            served.stop()

    def rounds(self, name: str, count: int, *turns: Callable[[], float]) -> list[list[float]]:
        """Each in turn, once to warm up and then ``count`` times."""
        series: list[list[float]] = [[] for _ in turns]
        for number in range(count + 1):
            self.say(f"{name}: round {number} of {count}" if number else f"{name}: warming up")
            for turn, kept in zip(turns, series, strict=True):
                with at_most(300, f"{name}, round {number}"):
                    figure = turn()
                if number:
                    kept.append(figure)
        return series


def through_the_store(watch: Watch) -> list[Row]:
    """Beats that wait side by side and share commits, against updates with as many a commit."""
    count = 4_096 if watch.quick else 20_480
    with watch.shelf(SCOPES) as shelf, watch.bare(SCOPES) as bare:
        asks = [
            shelf.ask("heartbeat", scope=f"scope-{i:07}", expect_within_seconds=86_400)
            for i in range(SCOPES)
        ]

        def alone() -> float:
            begun = time.perf_counter()
            for number in range(count // BATCH):
                first = number * BATCH % (SCOPES - BATCH)
                bare.beats(range(first, first + BATCH))
            return count / (time.perf_counter() - begun)

        async def beaten() -> float:
            desk = Desk(shelf.store)

            async def beat(first: int) -> None:
                for number in range(first, count, BATCH):
                    ask = asks[number % SCOPES]
                    told = await desk.call(ask.tool, ask.arguments, ask.secret)
                    if isinstance(told, Failure):
                        raise Unmeasurable(told.message)

            async with trio.open_nursery() as nursery:
                await nursery.start(desk.run)
                begun = time.perf_counter()
                async with trio.open_nursery() as callers:
                    for first in range(BATCH):
                        callers.start_soon(beat, first)
                spent = time.perf_counter() - begun
                await desk.aclose()
            return count / spent

        def by_desk() -> float:
            return trio.run(beaten)

        series = watch.rounds("beats", 3 if watch.quick else 7, alone, by_desk)
    return [Row("beats through the store", "beats/s", series, Goal("value", ">=", 5_000))]


def through_http(watch: Watch) -> list[Row]:
    """Beats over connections that stay, against updates with one commit for each round of them."""
    count = 2_048 if watch.quick else 8_192
    with watch.shelf(SCOPES) as shelf, watch.bare(SCOPES) as bare:
        requests = [
            request(
                "/v1/heartbeat",
                {"scope": f"scope-{i:07}", "expect_within_seconds": 86_400},
                SECRET,
            )
            for i in range(SCOPES)
        ]
        slow: list[float] = []

        def alone() -> float:
            begun = time.perf_counter()
            for number in range(count // CONNECTIONS):
                first = number * CONNECTIONS % (SCOPES - CONNECTIONS)
                bare.beats(range(first, first + CONNECTIONS))
            return count / (time.perf_counter() - begun)

        with watch.served(shelf) as served:

            def loaded() -> float:
                spent, took = load(served.address, requests, count, CONNECTIONS)
                slow.append(middle(took, 0.99))
                return count / spent

            series = watch.rounds("beats over HTTP", 3 if watch.quick else 7, alone, loaded)
    return [
        Row("beats through HTTP", "beats/s", series, Goal("value", ">=", 1_500)),
        Row("a beat through HTTP, p99", "ms", [[], slow[1:]]),
    ]


def alerts(watch: Watch) -> list[Row]:
    """From a deadline to its alert in the box, with so many armed that are not due."""
    few, many = (1_000, 10_000) if watch.quick else (1_000, 100_000)
    return [alerts_among(watch, few), alerts_among(watch, many)]


def alerts_among(watch: Watch, armed: int) -> Row:
    """Some switches run out over some seconds; the box is looked at as rows, all the time."""
    count = 100 if watch.quick else 300
    name = f"deadline to alert, p99, {armed:,} armed"
    with watch.shelf(armed) as shelf, watch.served(shelf) as served:
        rows = sqlite3.connect(shelf.path, isolation_level=None)
        seen: dict[str, float] = {}
        last = 0

        def look() -> None:
            nonlocal last
            now = time.time() * 1000
            found = "SELECT seq, of_scope FROM envelopes WHERE seq > ? ORDER BY seq"
            for seq, scope in rows.execute(found, (last,)).fetchall():
                seen[scope] = now
                last = seq

        watch.say(name)
        with at_most(120, name):
            for number in range(count):
                beat = {
                    "scope": f"dies-{number}",
                    "expect_within_seconds": 2 + number % 4,
                    "on_expiry": ["release_leases", "mark_failed", "queue_alert"],
                    "notify_address": shelf.address,
                }
                one(served.address, request("/v1/heartbeat", beat, SECRET))
                look()
            while len(seen) < count:
                look()
                time.sleep(0.005)
        stalled = rows.execute(
            "SELECT count(*) FROM gaps WHERE ended > "
            "(SELECT min(armed_at) FROM switches WHERE scope LIKE 'dies-%')"
        ).fetchone()
        if stalled[0]:
            raise Unmeasurable("the server stood still for seconds, which held deadlines back")
        # Nobody sets the clock meanwhile: real time is the one on the wall.
        deadlines = rows.execute(
            "SELECT scope, deadline_watched + (SELECT cut FROM clock) FROM switches "
            "WHERE scope LIKE 'dies-%'"
        ).fetchall()
        rows.close()
    late = [seen[scope] - deadline for scope, deadline in deadlines]
    if min(late) < 0:
        raise Unmeasurable(f"an alert {-min(late):.0f} ms before its deadline")
    return Row(name, "ms", [[], [middle(late, 0.99)]], Goal("value", "<=", 1_000))


def sweep(watch: Watch) -> list[Row]:
    """A sweep that finds nothing, against the same look without anything around it."""
    few, many = (1_000, 100_000) if watch.quick else (1_000, 1_000_000)
    return [sweep_among(watch, few), sweep_among(watch, many)]


def sweep_among(watch: Watch, armed: int) -> Row:
    """With so many armed."""
    times = 20

    def timed(look: Callable[[], object]) -> Callable[[], float]:
        def once() -> float:
            spent = []
            for _ in range(times):
                begun = time.perf_counter()
                look()
                spent.append((time.perf_counter() - begun) * 1000)
            return middle(spent)

        return once

    with watch.shelf(armed) as shelf, watch.bare(armed) as bare:
        name = f"sweep, nothing due, {armed:,} armed"
        turns = (timed(bare.sweep), timed(lambda: shelf.store.sweep(200)))
        series = watch.rounds(name, 5 if watch.quick else 15, *turns)
    return Row(name, "ms", series, Goal("value", "<=", 2))


def written(watch: Watch) -> list[Row]:
    """What a beat writes, to the log and to the file, among many rows beaten in no order."""
    armed = 10_000 if watch.quick else 100_000
    found = []
    with watch.shelf(armed) as shelf, watch.bare(armed) as bare:
        for batch in (1, BATCH):
            total = (512 if watch.quick else 4_096) if batch > 1 else 256

            def scattered(batch: int = batch, total: int = total) -> Iterator[list[int]]:
                order = [number * 7_919 % armed for number in range(total)]
                for first in range(0, total, batch):
                    yield order[first : first + batch]

            def alone(total: int = total, batches: object = scattered) -> float:
                begun = wrote()
                for numbers in batches():
                    bare.beats(numbers)
                return (wrote() - begun) / total

            def ours(total: int = total, batches: object = scattered) -> float:
                begun = wrote()
                for numbers in batches():
                    shelf.store.answer(
                        [
                            shelf.ask(
                                "heartbeat", scope=f"scope-{i:07}", expect_within_seconds=86_400
                            )
                            for i in numbers
                        ]
                    )
                return (wrote() - begun) / total

            name = f"written a beat, {batch} a commit"
            series = watch.rounds(name, 3, alone, ours)
            found.append(Row(name, "bytes", series))
    return found


def wrote() -> int:
    """Bytes that this process has written so far."""
    try:
        said = Path("/proc/self/io").read_text()
    except OSError as error:
        raise Unmeasurable(f"the system does not count what is written: {error}") from None
    return int(said.partition("wchar: ")[2].split()[0])


def memory(watch: Watch) -> list[Row]:
    """Resident when many are armed and some calls were answered."""
    armed = 10_000 if watch.quick else 100_000
    with watch.shelf(armed) as shelf, watch.served(shelf) as served:
        asked = request("/v1/switches", {"limit": 100}, SECRET)
        beat = {"scope": "scope-0000001", "expect_within_seconds": 86_400}
        load(served.address, [asked, request("/v1/heartbeat", beat, SECRET)], 200, 8)
        time.sleep(2)
        answer = json.dumps(one(served.address, asked))
        if f'"total": {armed + 1}' not in answer:
            raise Unmeasurable(f"not all are armed: {answer[:200]}")
        size = resident(served.process.pid)
    return [Row(f"memory of serve, {armed:,} armed", "MiB", [[], [size]])]


FIGURES: dict[str, Callable[[Watch], list[Row]]] = {
    "store": through_the_store,
    "http": through_http,
    "alerts": alerts,
    "sweep": sweep,
    "written": written,
    "memory": memory,
}
