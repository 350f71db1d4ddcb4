"""The bare programs that each figure is set against, and how they are started.

Each one is the shortest honest program of its kind, run by the interpreter the server runs on.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.bench import Child, Unmeasurable

IMPORT = "import trio, msgspec"

HOLD = "import sys, trio, msgspec; print(flush=True); sys.stdin.readline()"

ECHO = """
import json, sys
for line in iter(sys.stdin.readline, ""):
    sys.stdout.write(json.dumps(json.loads(line)) + "\\n")
    sys.stdout.flush()
"""
"""Blocking, one line at a time: read a line, ``json.loads``, ``json.dumps``, write, flush."""

SAVE = """
import json, os, sys
path, rows = sys.argv[1], json.load(open(sys.argv[1]))
for line in iter(sys.stdin.readline, ""):
    rows.append(json.loads(line))
    with open(path + ".new", "w") as file:
        file.write(json.dumps(rows))
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)
    rows.pop()
    print(len(rows), flush=True)
"""
"""A line in, the whole list out: dump, write, fsync, rename; then one line back.

``json.dumps`` and one write, since ``json.dump`` to a file never uses the C encoder and takes four
times as long. The folder is not synced.
"""

BURST = """
import json, sys, time
due, count = int(sys.argv[1]), int(sys.argv[2])
push = {"jsonrpc": "2.0", "id": "", "method": "push/event", "params": {
    "featureSet": "heartbeat", "eventId": "", "timestamp": "2026-12-01T00:00:00.000Z",
    "origin": {"source": "reminder", "reminderId": "rem_000000000000", "recurring": False},
    "tags": ["heartbeat:reminder"],
    "payload": {"content": [{"type": "text", "text": "x" * 220}]}}}
time.sleep(max(0, due / 1000 - time.time()))
for number in range(count):
    push["id"] = push["params"]["eventId"] = f"reminder_rem_{number:012x}_{due}"
    sys.stdout.write(json.dumps(push) + "\\n")
    sys.stdout.flush()
sys.stdin.readline()
"""
"""Sleeps until the moment, then dumps, writes and flushes push after push."""

LOAD = "import json, sys; json.load(open(sys.argv[1]))"


class Bare:
    """Starts bare programs with one interpreter."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python = python
        self.folder = folder

    def start(self, program: str, *arguments: str) -> Child:
        """A bare program on pipes."""
        return Child([self.python, "-c", program, *arguments], self.folder, {})

    def run(self, program: str, *arguments: str) -> float:
        """Milliseconds from spawn to exit."""
        child = self.start(program, *arguments)
        child.process.wait()
        spent = (time.perf_counter() - child.spawned) * 1000
        child.close()
        if child.process.returncode:
            said = child.errors.read_text("utf-8", "replace").strip().splitlines()
            raise Unmeasurable(f"{self.python} -c {program!r}: {said[-1] if said else 'failed'}")
        return spent


def middle(values: Sequence[float], share: float = 0.5) -> float:
    """The value below which ``share`` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
