"""The worker of ``recipes/tasks.md``, started as it is written there, and what happens to it.

Whoever is to be killed or to sleep is stopped first, and holds a task for certain then. The others
have to take that over; one that wakes up has to find out that it lost it.
"""

import itertools
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

WORKER = Path(__file__).parents[2] / "recipes" / "task_worker.py"
PATIENCE_S = 120.0
"""So long without a word from any worker is a failure."""
HELD = re.compile(r"(\S+) +(\d+)  (\S+) +\S+ +\S+ +(\w+)")


class Crew:
    """Workers, by their names, and what they say."""

    def __init__(
        self, urls: list[str], folder: Path, seconds: float, pass_time: Callable[[], None]
    ) -> None:
        """``pass_time``: lets some seconds pass, less than a lease."""
        self.urls = urls
        self.folder = folder
        self.seconds = seconds
        self.pass_time = pass_time
        self.secret = ""
        self.workers: dict[str, subprocess.Popen[str]] = {}
        self.lines: queue.Queue[tuple[str, str | None]] = queue.Queue()
        self.listeners: list[threading.Thread] = []
        self.done: Counter[str] = Counter()
        self.born = 0

    # Processes

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run the script to its end; what it printed."""
        done = subprocess.run(
            [sys.executable, str(WORKER), *arguments],
            env=self._environ(self.urls[0]),
            capture_output=True,
            text=True,
            timeout=10 * PATIENCE_S,
            check=False,
        )
        assert done.returncode == status, done.stdout[-2000:] + done.stderr
        return done.stdout

    def _environ(self, url: str) -> dict[str, str]:
        return {**os.environ, "HEARTBEAT_URL": url, "HEARTBEAT_SECRET": self.secret}

    def begin(self, tasks: int, workers: int) -> None:
        """Register, make the tasks, start the workers."""
        self.secret = self.run("--register").strip()
        made = self.run("--create", str(tasks))
        assert made.startswith(f"{tasks} tasks made"), made
        for _ in range(workers):
            self.start()

    def start(self) -> None:
        """One more worker."""
        self.born += 1
        name = f"worker-{self.born}"
        command = [str(WORKER), "--name", name, "--work-seconds", str(self.seconds)]
        with (self.folder / f"{name}.txt").open("w") as stderr:
            worker = subprocess.Popen(
                [sys.executable, *command],
                env=self._environ(self.urls[self.born % len(self.urls)]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self.workers[name] = worker
        listener = threading.Thread(target=self._listen, args=(name, worker.stdout), daemon=True)
        listener.start()
        self.listeners.append(listener)

    def _listen(self, name: str, said: IO[str]) -> None:
        with said:
            for line in said:
                self.lines.put((name, line.rstrip("\n")))
        self.lines.put((name, None))

    def close(self) -> None:
        """Kill whoever is left."""
        for worker in self.workers.values():
            worker.kill()
            worker.wait(PATIENCE_S)
        for listener in self.listeners:
            listener.join(PATIENCE_S)

    # What they say

    def hear(self) -> str:
        """The next line; whoever ends, ends well."""
        while True:
            name, line = self.lines.get(timeout=PATIENCE_S)
            if line is not None:
                for what in ("is done", "is lost, discarded", "comes from"):
                    self.done[what] += what in line
                return line
            if name in self.workers:
                status = self.workers.pop(name).wait(PATIENCE_S)
                assert status == 0, (self.folder / f"{name}.txt").read_text()
                if not self.workers:
                    return ""

    def hear_of(self, pattern: str) -> None:
        """Hear on until somebody says that."""
        while not re.search(pattern, line := self.hear()):
            assert line, f"all are gone, and nobody said {pattern}"

    def ask(self, path: str) -> dict[str, Any]:
        """Look for ourselves."""
        request = urllib.request.Request(self.urls[0] + path)
        request.add_header("Authorization", f"Bearer {self.secret}")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    # What happens to them

    def stop_one(self) -> tuple[str, str]:
        """Stop somebody in the middle of a task; who, and which task."""
        for number in range(10_000):
            name = list(self.workers)[number % len(self.workers)]
            self.workers[name].send_signal(signal.SIGSTOP)
            for task in self.ask("/v1/agent-tasks?status=claimed")["data"]:
                if task["agent_id"] == name:
                    return name, task["id"]
            self.workers[name].send_signal(signal.SIGCONT)
            assert self.hear(), "all are gone"
        raise AssertionError("nobody ever holds a task")

    def past_its_lease(self, name: str, id: str) -> bool:
        """Let time pass until the claim of a stopped one has lapsed and another has the task.

        False when its submit was under way already, and came in time.
        """
        while (task := self.ask(f"/v1/agent-tasks/{id}"))["agent_id"] == name:
            if task["status"] == "submitted":
                return False
            if task["claimable"]:
                break
            self.pass_time()
        self.hear_of(rf"{id} comes from {name} \(lapsed\)")
        return True

    def kill_one(self) -> bool:
        """kill -9 in the middle of a task; a new one comes."""
        name, id = self.stop_one()
        worker = self.workers.pop(name)
        worker.kill()
        worker.wait(PATIENCE_S)
        self.start()
        return self.past_its_lease(name, id)

    def pause_one(self) -> bool:
        """SIGSTOP in the middle of a task until another has it; then SIGCONT."""
        name, id = self.stop_one()
        lost = self.past_its_lease(name, id)
        self.workers[name].send_signal(signal.SIGCONT)
        if lost:
            self.hear_of(rf"^{name}: {id} is lost, discarded: (stale_epoch|task_closed)$")
        return lost

    def drain(self, tasks: int, every: int) -> None:
        """Disturb one after another, each time ``every`` more tasks are done, until all are."""
        kinds = itertools.cycle((self.kill_one, self.pause_one))
        what, due = next(kinds), every
        while self.hear():
            # Near the end it may be that nobody holds anything any more.
            if due <= self.done["is done"] < tasks - 2 * len(self.workers):
                disturbed = what()
                if disturbed:
                    self.done[what.__name__] += 1
                    what = next(kinds)
                # One whose submit came in time was no disturbance: the next task will do.
                due = self.done["is done"] + (every if disturbed else 1)

    def audit(self, tasks: int) -> list[tuple[str, int, str, str]]:
        """Have the script look whether all is well; task, epoch, worker, end of every epoch."""
        said = self.run("--audit")
        assert f"{tasks} submitted\n" in said, said[-500:]
        held = [HELD.match(line) for line in said.splitlines()]
        return [
            (id, int(epoch), who, end) for id, epoch, who, end in (m.groups() for m in held if m)
        ]
