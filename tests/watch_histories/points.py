"""kill -9 at each point of each kind of call: before and after every statement and commit.

A scene is set in which a switch is due and not fired yet. Then a process does one thing and is
killed at one point of it; what it left is looked at as it lies there, and by a server that comes
after it. A call has no further points when its process gets to its end.
"""

import contextlib
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from tests import postgres
from tests.watch_histories.audit import audit
from tests.watch_histories.databases import shared_folder, with_clock
from tests.watch_histories.facts import Disagrees, expect
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.history import Broken, History
from tests.watch_histories.reckoning import Reckoning
from tests.watch_histories.worker import Server

ALL = ["release_leases", "mark_failed", "queue_alert"]
Script = Callable[["Points", Server], None]


class Points:
    """A store with a switch that is due, and what becomes of it."""

    def __init__(self, url: str, clock: FileClock, folder: Path, name: str) -> None:
        self.url = url
        self.clock = clock
        self.history = History(url, clock, folder, seed=0)
        self.name = name

    def run(self, point: int) -> bool:
        """Kill at this one; whether there was no such point any more."""
        if self.name != "create" and not (self.history.folder / "scene.log").exists():
            self.history.alone("scene", self.scene)
        child = self.history.fork(
            "victim", lambda server: self.SCRIPTS[self.name](self, server), point, self.opened
        )
        while os.read(child.pipe, 4096):
            pass
        os.close(child.pipe)
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, -signal.SIGKILL):
            raise Broken(f"the process ended with {code}")
        if self.name == "create":
            self.history.alone("scene", self.scene)
        # As it lies there, nothing may be half done.
        audit(self.url)
        self.history.alone("survivor", self.survive)
        reckoning = Reckoning(self.url, self.history.logs, self.history.addresses)
        reckoning.run()
        dead = reckoning.namespaces[0]
        deaths = [
            (fire["generation"], sorted(one["key"] for one in fire["detail"]["released"]))
            for fire in reckoning.fires
            if (fire["namespace"], fire["scope"]) == (dead, "build")
        ]
        expect("the death of build", deaths[0], (1, ["db", "disk"]))
        return code == 0

    @property
    def opened(self) -> bool:
        """Whether the points are counted once the store is open only."""
        return self.name not in ("create", "open")

    def scene(self, server: Server) -> None:
        """An agent with leases, a checkpoint and mail has stopped beating."""
        if not (self.history.folder / "addresses").exists():
            self.history.begin(server)
        alert = {"on_expiry": ALL, "notify_address": self.history.addresses[1]}
        checkpoint = {"scope": "build", "objective": "build it", "next_action": "go on"}
        server.call(("checkpoint_put", 0, checkpoint))
        for key, scope in (("db", {"scope": "build"}), ("disk", {"scope": "build"}), ("key", {})):
            lease = {"key": key, "holder": "first", "ttl_seconds": 3600, **scope}
            server.call(("lease", 0, lease))
        server.call(("heartbeat", 0, {"scope": "build", "expect_within_seconds": 2, **alert}))
        server.call(("heartbeat", 0, {"scope": "review", "expect_within_seconds": 5, **alert}))
        server.call(("send", 1, {"to": self.history.addresses[0], "objective": "hurry"}))
        self.clock.advance(1_500)
        server.sweep()
        self.clock.advance(900)

    def survive(self, server: Server) -> None:
        """Another server takes over, and an agent looks."""
        server.sweep()
        server.call(("resume_packet", 0, {"scope": "build"}))
        server.call(("inbox_poll", 1, {"visibility_timeout_seconds": 5}))
        server.call(("inbox_poll", 0, {"visibility_timeout_seconds": 5}))
        for _ in range(7):
            self.clock.advance(1_000)
            server.sweep()

    def nothing(self, server: Server) -> None:
        """To start is enough."""

    def register(self, server: Server) -> None:
        self.history.begin(server)

    def sweep(self, server: Server) -> None:
        server.sweep()

    def late_beat(self, server: Server) -> None:
        server.call(("heartbeat", 0, {"scope": "build", "expect_within_seconds": 5}))

    def beats(self, server: Server) -> None:
        beats = [
            ("heartbeat", 0, {"scope": scope, "expect_within_seconds": 5})
            for scope in ("review", "build", "review", "ship")
        ]
        server.call(*beats)

    def disarm(self, server: Server) -> None:
        args = {"scope": "build", "expect_within_seconds": 2, "disarm": True}
        server.call(("heartbeat", 0, args))

    def take_over(self, server: Server) -> None:
        lease = {"key": "db", "holder": "next", "ttl_seconds": 60, "scope": "build"}
        server.call(("lease", 0, lease))

    def renew(self, server: Server) -> None:
        told = server.call(("lease", 0, {"key": "new", "holder": "first", "ttl_seconds": 9}))
        assert told
        held = {"key": "new", "holder": "first", "fence": told[0]["fence"]}
        server.call(("lease_renew", 0, {**held, "ttl_seconds": 30}))
        server.call(("lease_release", 0, held))

    def mail(self, server: Server) -> None:
        server.call(("send", 1, {"to": self.history.addresses[0], "objective": "stop"}))
        told = server.call(("inbox_poll", 0, {"visibility_timeout_seconds": 5}))
        assert told
        args = {"task_id": told[0]["envelope"]["task_id"]}
        server.call(("inbox_nack", 0, {**args, "delay_seconds": 0}))
        server.call(("inbox_poll", 0, {"visibility_timeout_seconds": 5}))
        server.call(("inbox_ack", 0, args))

    def checkpoint(self, server: Server) -> None:
        args = {"scope": "build", "objective": "build it", "next_action": "the rest"}
        server.call(("checkpoint_put", 0, args))

    SCRIPTS: ClassVar[dict[str, Script]] = {
        "create": register,
        "open": nothing,
        "sweep": sweep,
        "late beat": late_beat,
        "beats": beats,
        "disarm": disarm,
        "take over": take_over,
        "lease": renew,
        "mail": mail,
        "checkpoint": checkpoint,
    }


@contextlib.contextmanager
def scenes(on: postgres.Server | None) -> Iterator[Callable[[str], "Trial"]]:
    """Give what makes a store with the scene on it, or an empty one, for each kind of call."""
    with shared_folder() as first:
        if on is None:
            # A file can be copied, which is quicker than to play the scene each time.
            url = f"sqlite:///{first}/store.db"
            points = Points(url, FileClock.make(first / "clock"), first, "sweep")
            points.history.alone("scene", points.scene)

        @contextlib.contextmanager
        def trial(name: str) -> Iterator[Points]:
            with contextlib.ExitStack() as stack:
                folder = stack.enter_context(shared_folder())
                if on is None and name != "create":
                    shutil.copytree(first, folder, dirs_exist_ok=True)
                    clock = FileClock(folder / "clock")
                else:
                    clock = FileClock.make(folder / "clock")
                url = f"sqlite:///{folder}/store.db"
                if on is not None:
                    url = stack.enter_context(with_clock(on, clock, empty=name == "create"))
                yield Points(url, clock, folder, name)

        yield trial


Trial = contextlib.AbstractContextManager[Points]


def kill_at_each(name: str, make: Callable[[str], Trial], first: int = 0, every: int = 1) -> int:
    """Kill one kind of call at each ``every``th of its points; how often it was killed."""
    for killed in itertools.count():
        point = 1 + first + killed * every
        with make(name) as trial:
            try:
                over = trial.run(point)
            except (Disagrees, Broken) as error:
                raise Disagrees(f"{name}, killed at point {point}: {error}") from error
        if over:
            break
    return killed
