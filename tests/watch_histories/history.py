"""A history: several processes on one store, disturbed at random, then looked through.

The processes are forked from this one, which therefore has no threads and opens no store. Nothing
waits for a clock: time goes on with what the processes do, and so do the disturbances.
"""

import os
import random
import select
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.watch_histories.doom import Doom
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.worker import SECRETS, Agents, Server

ATTEMPTS = 20
"""How often a server tries to open a store that others keep busy; each takes seconds."""
ENOUGH = 8
"""After so many acts a process has surely made a transaction."""
PATIENCE_S = 60
"""So long without a sign of life from any process is a failure."""


class Broken(AssertionError):
    """A process ended as it must not, or none gets on."""


@dataclass
class Child:
    """A process of ours; it writes a byte into ``pipe`` for each thing it did."""

    pid: int
    pipe: int


@dataclass
class History:
    """One history on the store at ``url``, its logs in ``folder``."""

    url: str
    clock: FileClock
    folder: Path
    seed: int
    workers: int = 4
    acts: int = 400
    steps: bool = False
    """The database's clock is set again and again, and nobody is killed or stopped: only who has
    been there can tell a step from time, and only when no time passes while they look."""
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.children: dict[int, Child] = {}
        self.stopped: Child | None = None
        self.acted: Counter[int] = Counter()
        """How much each has done, by its pipe, since the database's clock was last set."""
        self.born = 0
        self.stop = self.folder / "stop"

    @property
    def logs(self) -> list[Path]:
        """What each process wrote down."""
        return sorted(self.folder.glob("*.log"))

    @property
    def addresses(self) -> list[str]:
        """Those of the agents."""
        return (self.folder / "addresses").read_text(encoding="ascii").split()

    def run(self) -> None:
        """All of it."""
        self.alone("first", self.begin)
        addresses = self.addresses
        for _ in range(self.workers):
            self.spawn(addresses)
        acts = 0
        while acts < self.acts:
            acts += self.listen(addresses)
            if self.chance.random() < (0.4 if self.steps else 0.1):
                self.disturb()
        self.stop.touch()
        self.resume()
        while self.children:
            self.listen(None)
        self.alone("last", self.end)
        self.done["acts"] = acts

    # Processes

    def begin(self, server: Server) -> None:
        """The agents come."""
        told = [
            server.call(("register", who, {"agent_secret": secret}))
            for who, secret in enumerate(SECRETS)
        ]
        addresses = [answer[0]["address"] for answer in told if answer]
        (self.folder / "addresses").write_text("\n".join(addresses), encoding="ascii")

    def end(self, server: Server) -> None:
        """Nobody beats any more, and every switch fires that is not disarmed."""
        for _ in range(70):
            self.clock.advance(1_000)
            server.sweep()

    def fork(
        self,
        name: str,
        body: Callable[[Server], None],
        doom: int | None = None,
        opened: bool = False,
    ) -> Child:
        """A new process that runs ``body`` with a server of its own, and ends at a point of it.

        ``opened``: the points are counted from when the store is open.
        """
        reading, writing = os.pipe()
        pid = os.fork()
        if pid:
            os.close(writing)
            return Child(pid, reading)
        status = 3
        try:
            os.close(reading)
            for other in self.children.values():
                os.close(other.pipe)
            self.tell = writing
            fate = Doom(None if opened else doom)
            server = Server(self.url, self.clock, self.folder / f"{name}.log", still=self.steps)
            for _ in range(ATTEMPTS):
                if server.open():
                    break
                os.write(writing, b".")
            else:
                raise Broken("the store does not open")
            if opened:
                fate.passed, fate.at = 0, doom
            body(server)
            server.close()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def alone(self, name: str, body: Callable[[Server], None]) -> None:
        """A process that nothing disturbs, to its end."""
        child = self.fork(name, body)
        while os.read(child.pipe, 4096):
            pass
        os.close(child.pipe)
        _, status = os.waitpid(child.pid, 0)
        if status:
            raise Broken(f"{name} ended with {os.waitstatus_to_exitcode(status)}")

    def spawn(self, addresses: list[str]) -> None:
        """One more worker, perhaps with its end before it."""
        self.born += 1
        seed = self.chance.random()
        doomed = self.chance.random() < 0.5 and not self.steps
        doom = self.chance.randrange(1, 1000) if doomed else None

        def work(server: Server) -> None:
            agents = Agents(server, addresses, random.Random(seed))
            while not self.stop.exists():
                agents.act()
                os.write(self.tell, b".")

        child = self.fork(f"worker-{self.born:03}", work, doom)
        self.children[child.pipe] = child

    def listen(self, addresses: list[str] | None) -> int:
        """Wait until somebody has done something; how much. New ones come for those that died."""
        wait = 0.25 if self.stopped else PATIENCE_S
        ready, _, _ = select.select(list(self.children), [], [], wait)
        if not ready:
            if self.stopped is None:
                raise Broken(f"no process got on for {PATIENCE_S} s")
            self.resume()
        heard = 0
        for pipe in ready:
            said = os.read(pipe, 4096)
            heard += len(said)
            self.acted[pipe] += len(said)
            if not said:
                self.bury(self.children.pop(pipe))
                if addresses is not None:
                    self.spawn(addresses)
        return heard

    def bury(self, child: Child) -> None:
        """It ended: killed, or in good order."""
        os.close(child.pipe)
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self.done["killed" if code == -signal.SIGKILL else "ended"] += 1
        if code not in (0, -signal.SIGKILL):
            raise Broken(f"a worker ended with {code}")
        if self.stopped is child:
            self.stopped = None

    # Disturbances

    def disturb(self) -> None:
        """Something that a server has to live through."""
        if self.steps:
            kinds = {self.set_database: 1, self.sleep: 1}
        else:
            kinds = {self.kill: 3, self.pause: 4, self.resume: 4, self.sleep: 1, self.set_wall: 1}
        (chosen,) = self.chance.choices(list(kinds), list(kinds.values()))
        if self.steps and any(self.acted[pipe] < ENOUGH for pipe in self.children):
            return
        self.done[chosen.__name__] += 1
        chosen()

    def kill(self) -> None:
        """kill -9, wherever it is."""
        child = self.chance.choice(list(self.children.values()))
        if child is self.stopped:
            self.stopped = None
        os.kill(child.pid, signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP, one at a time, so that the others get on."""
        if self.stopped is None:
            self.stopped = self.chance.choice(list(self.children.values()))
            os.kill(self.stopped.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """And SIGCONT."""
        if self.stopped is not None:
            os.kill(self.stopped.pid, signal.SIGCONT)
            self.stopped = None

    def sleep(self) -> None:
        """The machine sleeps for a while."""
        self.clock.advance(self.chance.choice((3_000, 30_000, 3_600_000)))

    def set_wall(self) -> None:
        """The clock on the wall is set."""
        self.clock.set(wall=self.chance.choice((-3_600_000, 0, 3_600_000)))

    def set_database(self) -> None:
        """The clock of the database's machine is set, once everybody has seen the last time."""
        self.acted.clear()
        self.clock.set(database=self.chance.choice((-3_600_000, 0, 3_600_000)))
