"""What issue 5 calls done, for real: ``python -m tests.task_histories.done``; see ``--help``.

Four workers drain a thousand tasks while one after another is killed, or stopped until its lease
of 30 seconds is over. With ``--quick`` the server's clock is in our hand and nobody waits.
"""

import argparse
import contextlib
import json
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.load import Served
from tests.postgres import Server, server
from tests.task_histories.crew import Crew
from tests.watch_histories.databases import shared_folder, with_clock
from tests.watch_histories.fileclock import FileClock

STEP_MS = 2_000
"""As much time as may pass between two calls without counting as one in which nobody watched."""


@contextlib.contextmanager
def crew(folder: Path, postgres: Server | None, seconds: float, *, quick: bool) -> Iterator[Crew]:
    """Workers to be, and the servers that they ask: one, or two on PostgreSQL."""
    with contextlib.ExitStack() as stack:
        clock = FileClock.make(folder / "clock")
        if postgres is None:
            store = f"sqlite:///{folder}/store.db"
        elif quick:
            store = stack.enter_context(with_clock(postgres, clock))
        else:
            store = stack.enter_context(postgres.database())
        on_file = [str(Path(__file__).with_name("clocked.py")), clock.path]
        command = [sys.executable, *(on_file if quick else ["-m", "mcpl_heartbeat"])]
        urls = []
        for number in range(1 if postgres is None else 2):
            (folder / str(number)).mkdir()
            served = Served(command, store, folder / str(number))
            stack.callback(served.stop)
            urls.append("http://{}:{}".format(*served.address))

        def step() -> None:
            if not quick:
                time.sleep(1)
                return
            clock.advance(STEP_MS)
            beat(urls[0], made.secret)

        made = Crew(urls, folder, seconds, step)
        stack.callback(made.close)
        yield made


def beat(url: str, secret: str) -> None:
    """Something that a server writes for, so that it is seen to be there."""
    body = json.dumps({"scope": "clock", "expect_within_seconds": 86_400}).encode()
    request = urllib.request.Request(f"{url}/v1/heartbeat", body)
    request.add_header("Authorization", f"Bearer {secret}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60):
        pass


def main(arguments: list[str]) -> int:
    """Run it once and say what happened."""
    parser = argparse.ArgumentParser(prog="python -m tests.task_histories.done")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.5, help="that each task takes")
    parser.add_argument("--every", type=int, default=100, help="tasks done between disturbances")
    parser.add_argument("--postgresql", action="store_true", help="with two servers, not SQLite")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(server()) if options.postgresql else None
        folder = stack.enter_context(shared_folder())
        hands = stack.enter_context(crew(folder, postgres, options.seconds, quick=options.quick))
        hands.begin(options.tasks, options.workers)
        made = time.monotonic()
        hands.drain(options.tasks, options.every)
        drained = time.monotonic()
        epochs = hands.audit(options.tasks)
    ends = Counter(end for *_, end in epochs)
    print(f"{options.tasks} tasks, {dict(hands.done)}, {len(epochs)} epochs: {dict(ends)}")
    print(f"made in {made - begun:.1f} s, drained in {drained - made:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
