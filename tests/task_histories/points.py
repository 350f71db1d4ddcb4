"""kill -9 at each point of each call on a task: before and after every statement and commit.

A scene is set in which a task is overdue and a switch due that holds another one, and neither has
been noticed. Then a process makes one call and is killed at one point of it; what it left is
looked at as it lies there, and by a server that comes after it and goes on to the end.
"""

import contextlib
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from tests.postgres import Server as Postgres
from tests.task_histories.calls import CONTRACT, answer, outputs
from tests.task_histories.history import STEP_MS, TaskHistory
from tests.task_histories.reckoning import TaskReckoning
from tests.watch_histories.audit import audit
from tests.watch_histories.databases import shared_folder, with_clock
from tests.watch_histories.facts import Disagrees, expect
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.history import Broken
from tests.watch_histories.worker import Server

NEW = {"input_snapshot": {}, "output_contract": CONTRACT, "lease_seconds": 30}
OVER_MS = 90_000
"""More than what any task has left of its time."""


class TaskPoints:
    """A store with tasks, and what becomes of them."""

    def __init__(self, url: str, clock: FileClock, name: str) -> None:
        self.url = url
        self.clock = clock
        self.name = name
        self.history = TaskHistory(url, clock, clock.folder, seed=0)

    def run(self, point: int) -> bool:
        """Kill at this one; whether there was no such point any more."""
        self.history.alone("scene", self.scene)
        child = self.history.fork(
            "victim", lambda server: self.SCRIPTS[self.name](self, server), point, opened=True
        )
        while os.read(child.pipe, 4096):
            pass
        os.close(child.pipe)
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        if code not in (0, -signal.SIGKILL):
            raise Broken(f"the process ended with {code}")
        # As it lies there, nothing may be half done.
        audit(self.url)
        self.history.alone("survivor", self.survive)
        reckoning = TaskReckoning(self.url, self.history.logs, self.history.addresses)
        reckoning.run()
        guarded, scoped, overdue = (reckoning.lives[id] for id in self.ids)
        expect("the overdue one", (overdue.row["status"], overdue.epochs), ("timed_out", []))
        expect("the one whose switch was due", scoped.epochs[0]["cause"], "switch_fired")
        expect("what the fire gave back", len(reckoning.shelf.fires()) >= 1, True)
        expect("who had the first one", guarded.epochs[0]["agent_id"], "worker")
        return code == 0

    # What is called

    def call(self, server: Server, tool: str, **args: Any) -> dict[str, Any]:
        """One call of the first agent."""
        calls = [(tool, 0, args)]
        told = server.run("call", calls, lambda: answer(server.store, calls))
        assert told, tool
        found: dict[str, Any] = told[0]
        return found

    @property
    def ids(self) -> list[str]:
        """The tasks of the scene."""
        return (self.clock.folder / "ids").read_text(encoding="ascii").split()

    def scene(self, server: Server) -> None:
        """One worker holds two tasks, and has stopped beating the switch that one is under."""
        self.history.begin(server)
        ids = [
            self.call(server, "create_agent_task", timeout_seconds=seconds, **NEW)["id"]
            for seconds in (90, 90, 40)
        ]
        (self.clock.folder / "ids").write_text("\n".join(ids), encoding="ascii")
        guard = {"on_expiry": ["mark_failed"]}
        self.call(server, "claim_agent_task", task_id=ids[0], agent_id="worker", guard=guard)
        for _ in range(20):
            self.clock.advance(STEP_MS)
            server.sweep()
        # It lapsed, its guard has fired: so once more.
        self.call(server, "claim_agent_task", task_id=ids[0], agent_id="worker", guard=guard)
        self.call(server, "claim_agent_task", task_id=ids[1], agent_id="worker", scope="build")
        self.call(server, "heartbeat", scope="build", expect_within_seconds=2)
        self.clock.advance(1_000)
        server.sweep()
        self.clock.advance(1_500)

    def survive(self, server: Server) -> None:
        """Another server takes over; the task that was given back is done, the other is not."""
        server.sweep()
        told = self.call(
            server, "claim_agent_task", task_id=self.ids[1], agent_id="next", idempotency_key="k"
        )
        if "code" not in told:
            epoch = told["execution_epoch"]
            for result in (1, 1, 2):
                self.call(
                    server,
                    "submit_agent_task",
                    task_id=self.ids[1],
                    execution_epoch=epoch,
                    outputs=outputs(result),
                )
        for _ in range(OVER_MS // STEP_MS):
            self.clock.advance(STEP_MS)
            server.sweep()
        self.call(server, "list_agent_tasks", limit=100)

    def sweep(self, server: Server) -> None:
        server.sweep()

    def create(self, server: Server) -> None:
        self.call(server, "create_agent_task", timeout_seconds=30, dedupe_key="once", **NEW)

    def claim(self, server: Server) -> None:
        guard = {"on_expiry": ["mark_failed"]}
        self.call(server, "claim_agent_task", task_id=self.ids[1], agent_id="v", guard=guard)

    def claim_overdue(self, server: Server) -> None:
        self.call(server, "claim_agent_task", task_id=self.ids[2], agent_id="v")

    def heartbeat(self, server: Server) -> None:
        self._under(server, "heartbeat_agent_task", note="half way")

    def submit(self, server: Server) -> None:
        self._under(server, "submit_agent_task", outputs=outputs(1))

    def release(self, server: Server) -> None:
        self._under(server, "release_agent_task", note="half way")

    def fail(self, server: Server) -> None:
        self._under(server, "release_agent_task", final=True, reason="no use")

    def cancel(self, server: Server) -> None:
        self.call(server, "create_agent_task", cancel_task_id=self.ids[0])

    def look(self, server: Server) -> None:
        self.call(server, "list_agent_tasks", status="available")

    def _under(self, server: Server, tool: str, **args: Any) -> None:
        self.call(server, tool, task_id=self.ids[0], execution_epoch=3, **args)

    SCRIPTS: ClassVar[dict[str, Callable[["TaskPoints", Server], None]]] = {
        "sweep": sweep,
        "create": create,
        "claim": claim,
        "claim overdue": claim_overdue,
        "heartbeat": heartbeat,
        "submit": submit,
        "release": release,
        "fail": fail,
        "cancel": cancel,
        "list": look,
    }


@contextlib.contextmanager
def trial(name: str, on: Postgres | None) -> Iterator[TaskPoints]:
    """An empty store for one call to be killed in."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(shared_folder())
        clock = FileClock.make(folder / "clock")
        url = f"sqlite:///{folder}/store.db"
        if on is not None:
            url = stack.enter_context(with_clock(on, clock))
        yield TaskPoints(url, clock, name)


def kill_at_each(name: str, on: Postgres | None, first: int = 0, every: int = 1) -> int:
    """Kill one call at each ``every``th of its points; how often it was killed."""
    for killed in itertools.count():
        point = 1 + first + killed * every
        with trial(name, on) as points:
            try:
                over = points.run(point)
            except (Disagrees, Broken) as error:
                raise Disagrees(f"{name}, killed at point {point}: {error}") from error
        if over:
            break
    return killed
