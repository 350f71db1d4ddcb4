"""Several processes that work on the tasks of one store, disturbed as those of the watch are."""

import os
import random

from tests.task_histories.worker import Worker
from tests.watch_histories.history import History
from tests.watch_histories.worker import Server

ALL_OVER_MS = 260_000
"""More than the longest timeout of a task."""
STEP_MS = 1_900


class TaskHistory(History):
    """The same, but for what the processes do, and for how long the end takes."""

    def spawn(self, addresses: list[str]) -> None:
        """One more worker, perhaps with its end before it."""
        self.born += 1
        label, seed = f"worker-{self.born:03}", self.chance.random()
        doomed = self.chance.random() < 0.5 and not self.steps
        doom = self.chance.randrange(1, 1000) if doomed else None

        def work(server: Server) -> None:
            worker = Worker(server, label, random.Random(seed))
            while not self.stop.exists():
                worker.act()
                os.write(self.tell, b".")

        child = self.fork(label, work, doom)
        self.children[child.pipe] = child

    def sleep(self) -> None:
        """The machine sleeps, but not so long that all tasks time out every time."""
        self.clock.advance(self.chance.choice((3_000, 30_000, 100_000)))

    def end(self, server: Server) -> None:
        """Nobody works any more, and every task times out that has not ended."""
        for _ in range(ALL_OVER_MS // STEP_MS):
            self.clock.advance(STEP_MS)
            server.sweep()
