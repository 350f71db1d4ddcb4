"""Many pushes at once: how soon they are out, in which order, and what else waits for them."""

import functools
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.benchmarks import bare
from tests.benchmarks.bench import (
    ABOVE_OUR_IDS,
    HOUR,
    POLICY,
    PUSH_ID,
    Child,
    Host,
    Unmeasurable,
    Wire,
    call,
    line,
    milliseconds,
    stored,
    taken,
)
from tests.benchmarks.rounds import Bench, Goal, Row


@dataclass
class Storm:
    """Pushes as they came. Times in milliseconds from the moment they were due."""

    first: float = 0
    last: float = 0
    pushes: list[bytes] = field(default_factory=list)
    status: float = 0


def storm(child: Child, count: int, due: float, opening: bytes = b"") -> Storm:
    """Take ``count`` pushes, answering each chunk at once, with a status call always under way."""
    seen, rest, asked = Storm(), b"", 0.0
    status = call(ABOVE_OUR_IDS, "heartbeat_status", {})
    mark = str(ABOVE_OUR_IDS).encode()
    wire = Wire(child)
    wire.send(opening)
    while len(seen.pushes) < count or asked:
        chunk = wire.turn()
        now = time.time() * 1000
        *lines, rest = (rest + chunk).split(b"\n")
        answers = []
        for found in lines:
            if b'"push/event"' in found:
                seen.first = seen.first or now - due
                seen.last = now - due
                seen.pushes.append(found)
                answers.append(taken(found))
            elif (number := PUSH_ID.search(found)) and number[1] == mark:
                seen.status, asked = max(seen.status, now - asked), 0.0
        if isinstance(child, Host) and 0 < len(seen.pushes) < count and not asked:
            asked = now
            answers.append(status)
        if answers:
            wire.send(b"".join(answers))
    wire.close()
    return seen


def out_of_order(pushes: Sequence[bytes], rows: Sequence[dict[str, object]]) -> list[str]:
    """What is wrong with the pushes: some missing, some twice, or not by due time."""
    due = {str(row["id"]): row["fireAt"] for row in rows}
    came = [json.loads(push)["params"]["origin"]["reminderId"] for push in pushes]
    if set(came) != set(due):
        return [f"{len(set(came))} of {len(due)} reminders came"]
    times = [int(str(due[one])) for one in came]
    return [] if times == sorted(times) else ["reminders left out of due order"]


def burst(bench: Bench) -> list[Row]:
    """Reminders due at one instant, pushed while the host answers and asks for the status."""
    count = 200 if bench.quick else 1_000
    faults: list[str] = []
    columns = 1 + len(bench.commands)
    firsts: list[list[float]] = [[] for _ in range(columns)]
    status: list[list[float]] = [[] for _ in range(columns)]

    def plain() -> float:
        due = milliseconds() + 1_000
        child = bench.bare.start(bare.BURST, str(due), str(count))
        try:
            seen = storm(child, count, due)
        finally:
            child.close()
        firsts[0].append(seen.first)
        return seen.last

    def once(seat: int) -> float:
        due = milliseconds() + 1_500
        rows = stored(count, due, 0)
        with bench.host(seat, rows) as host:
            host.connect()
            seen = storm(host, count, due)
            settle(host)
        faults.extend(out_of_order(seen.pushes, rows))
        firsts[1 + seat].append(seen.first)
        status[1 + seat].append(seen.status)
        return seen.last

    turns = (functools.partial(once, seat) for seat in bench.seats)
    series = bench.rounds("burst", 3 if bench.quick else 7, plain, *turns, seconds=30)
    return [
        Row("burst, first push", "ms", [kept[1:] for kept in firsts]),
        Row("burst, last push", "ms", series, Goal("value", "<=", 60), sorted(set(faults))),
        Row("burst, status call", "ms", [kept[1:] for kept in status], Goal("value", "<", 20)),
    ]


def overdue(bench: Bench) -> list[Row]:
    """Reminders long due, shuffled on disk, let go by the policy: by due time, each one once."""
    count = 200 if bench.quick else 1_000
    faults: list[str] = []

    def once(seat: int) -> float:
        rows = stored(count, milliseconds() - 24 * HOUR, 1000)
        random.Random(seat).shuffle(rows)
        with bench.host(seat, rows) as host:
            host.initialize()
            policy = line({"id": 2, "method": "featureSets/update", "params": dict(POLICY)})
            seen = storm(host, count, time.time() * 1000, policy)
            settle(host)
        faults.extend(out_of_order(seen.pushes, rows))
        return seen.last

    turns = (functools.partial(once, seat) for seat in bench.seats)
    series = bench.rounds("overdue", 3 if bench.quick else 7, *turns, seconds=30)
    return [Row("overdue, last push", "ms", [[], *series], None, sorted(set(faults)))]


def settle(host: Host) -> None:
    """Every reminder that was taken is gone, within ten seconds."""
    for _ in range(100):
        if "reminders=0" in host.text("heartbeat_status", {}):
            return
        time.sleep(0.1)
    raise Unmeasurable("reminders that were taken are still pending")
