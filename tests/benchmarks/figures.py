"""The figures: what is done to a server and to its bare counterpart, round by round in turn."""

import functools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from tests.benchmarks import bare
from tests.benchmarks.bare import middle
from tests.benchmarks.bench import (
    ABOVE_OUR_IDS,
    HOUR,
    Child,
    Host,
    Unmeasurable,
    call,
    milliseconds,
    result_of,
    stored,
    text_of,
    write_rows,
)
from tests.benchmarks.bursts import burst, overdue
from tests.benchmarks.rounds import Bench, Goal, Row, opened
from tests.benchmarks.system import apart, processor, resident, switches

REMINDER = re.compile(r"rem_\w+")


def start(bench: Bench) -> list[Row]:
    """Spawn to ``tools/list`` answered, against the bare import from spawn to exit."""

    def once(seat: int) -> float:
        with bench.host(seat) as host:
            host.connect()
            return (time.perf_counter() - host.spawned) * 1000

    series = bench.rounds(
        "start",
        5 if bench.quick else 21,
        lambda: bench.bare.run(bare.IMPORT),
        *(functools.partial(once, seat) for seat in bench.seats),
    )
    return [Row("start", "ms", series, Goal("ratio", "<=", 1.25))]


def memory(bench: Bench) -> list[Row]:
    """Resident after ``tools/list``, against the bare import that then waits."""

    def once(seat: int) -> float:
        with bench.host(seat) as host:
            host.connect()
            return resident(host.process.pid)

    def imported() -> float:
        child = bench.bare.start(bare.HOLD)
        try:
            child.read()
            return resident(child.process.pid)
        finally:
            child.close()

    turns = (functools.partial(once, seat) for seat in bench.seats)
    series = bench.rounds("memory", 3, imported, *turns)
    return [Row("memory", "MiB", series, Goal("value", "<=", 34))]


def calls(bench: Bench) -> list[Row]:
    """Status calls one after the other, against the echo loop on the same lines."""
    share = 100 if bench.quick else 500
    lines = [call(ABOVE_OUR_IDS + n, "heartbeat_status", {}) for n in range(share)]
    slow: list[list[float]] = [[] for _ in range(1 + len(bench.commands))]

    def once(child: Child, place: int) -> float:
        spent: list[float] = []
        for asked in lines:
            begun = time.perf_counter_ns()
            answer = child.ask(asked)
            spent.append((time.perf_counter_ns() - begun) / 1000)
        if isinstance(child, Host):
            text_of(answer, ABOVE_OUR_IDS + share - 1)
        slow[place].append(middle(spent, 0.99))
        return middle(spent)

    with opened(bench, bare.ECHO) as children, ExitStack() as stack:
        if bench.pin:
            stack.enter_context(apart([child.process.pid for child in children]))
        turns = (functools.partial(once, child, place) for place, child in enumerate(children))
        series = bench.rounds("call", 5 if bench.quick else 15, *turns)
    return [
        Row("call p50", "us", series, Goal("ratio", "<=", 1.5)),
        Row("call p99", "us", [kept[1:] for kept in slow]),
    ]


def pipeline(bench: Bench) -> list[Row]:
    """Status calls written as fast as the server takes them, against the echo loop."""
    count = 4_000 if bench.quick else 20_000
    wanted = range(ABOVE_OUR_IDS, ABOVE_OUR_IDS + count)
    blob = b"".join(call(number, "heartbeat_status", {}) for number in wanted)

    def once(child: Child) -> float:
        spent, answers = child.stream(blob, count)
        if isinstance(child, Host):
            for number, answer in zip(wanted, answers.splitlines(), strict=True):
                result_of(answer, number)
        return count / spent

    with opened(bench, bare.ECHO) as children:
        turns = (functools.partial(once, child) for child in children)
        series = bench.rounds("pipeline", 3 if bench.quick else 9, *turns)
    return [Row("pipeline", "calls/s", series, Goal("value", ">=", 100_000))]


def add(bench: Bench) -> Iterator[Row]:
    """``reminder_add`` with so many pending, against the plain save of as many rows."""
    for pending in (0, 1_000, 10_000):
        yield add_to(bench, pending)


def add_to(bench: Bench, pending: int) -> Row:
    """Each one added is cancelled again, untimed, so that the number pending stays."""
    rows = stored(pending, milliseconds() + 24 * HOUR, 1000)
    plain = bench.folder / "plain.json"
    write_rows(plain, rows)
    row = json.dumps(stored(1, 0, 0)[0]).encode() + b"\n"
    share = 5 if bench.quick else 10
    series = iter(range(ABOVE_OUR_IDS, 2 * ABOVE_OUR_IDS))

    def saved(child: Child) -> float:
        spent = []
        for _ in range(share):
            begun = time.perf_counter()
            child.ask(row)
            spent.append((time.perf_counter() - begun) * 1000)
        return middle(spent)

    def added(host: Host) -> float:
        spent = []
        for _ in range(share):
            number = next(series)
            asked = call(number, "reminder_add", {"message": f"Look in ({number})", "inHours": 30})
            begun = time.perf_counter()
            answer = host.ask(asked)
            spent.append((time.perf_counter() - begun) * 1000)
            found = REMINDER.search(text_of(host.own(answer, number), number))
            on_disk = host.reminders.read_bytes() if host.reminders.exists() else b""
            if found is None or found[0].encode() not in on_disk:
                raise Unmeasurable(f"answered before it was on disk: {answer[:300]!r}")
            host.text("reminder_cancel", {"id": found[0]})
        return middle(spent)

    with opened(bench, bare.SAVE, str(plain), rows=rows) as children:
        turns: list[Callable[[], float]] = [
            functools.partial(added, child)
            if isinstance(child, Host)
            else functools.partial(saved, child)
            for child in children
        ]
        figures = bench.rounds(f"add to {pending:,}", 3 if bench.quick else 15, *turns)
    goal = Goal("ratio", "<=", 1.0) if pending else None
    return Row(f"add to {pending:,}", "ms", figures, goal)


def load(bench: Bench) -> list[Row]:
    """Spawn to the first status answered with many stored; the bare one does ``json.load``."""
    count = 10_000 if bench.quick else 100_000
    rows = stored(count, milliseconds() + 24 * HOUR, 1000)
    plain = bench.folder / "plain.json"
    write_rows(plain, rows)

    def once(seat: int) -> float:
        with bench.host(seat, rows) as host:
            host.connect()
            said = host.text("heartbeat_status", {})
            spent = (time.perf_counter() - host.spawned) * 1000
        if f"reminders={count}" not in said:
            raise Unmeasurable(f"not all were loaded: {said}")
        return spent

    turns = (functools.partial(once, seat) for seat in bench.seats)
    loaded = functools.partial(bench.bare.run, bare.LOAD, str(plain))
    series = bench.rounds("load", 3 if bench.quick else 9, loaded, *turns)
    return [Row(f"load {count:,}", "ms", series, Goal("value", "<=", 400))]


def idle(bench: Bench) -> list[Row]:
    """CPU time and context switches with many pending and nothing to do, all at the same time."""
    seconds = 5 if bench.quick else 30
    rows = stored(10_000, milliseconds() + 24 * HOUR, 1000)
    with opened(bench, bare.HOLD, rows=rows) as children:
        bench.say("idle: settling for 2 s")
        time.sleep(2)
        pids = [child.process.pid for child in children]
        spent, switched = [-processor(pid) for pid in pids], [switches(pid) for pid in pids]
        for passed in range(seconds):
            bench.say(f"idle: {passed} of {seconds} s")
            time.sleep(1)
        cpu = [[processor(pid) + negative] for pid, negative in zip(pids, spent, strict=True)]
        counts = [
            [float(sum(count - before.get(task, 0) for task, count in switches(pid).items()))]
            for pid, before in zip(pids, switched, strict=True)
        ]
    figures = [Row(f"idle {seconds} s, CPU", "ms", cpu, Goal("value", "<=", 10))]
    return [*figures, Row(f"idle {seconds} s, switches", "", counts)] if switched[0] else figures


FIGURES: dict[str, Callable[[Bench], Iterable[Row]]] = {
    "start": start,
    "memory": memory,
    "call": calls,
    "pipeline": pipeline,
    "add": add,
    "burst": burst,
    "overdue": overdue,
    "load": load,
    "idle": idle,
}
