"""One measurement: who takes part, whose turn it is, and what came of it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.benchmarks.bare import Bare, middle
from tests.benchmarks.bench import Child, Host, at_most, write_rows


@dataclass(frozen=True)
class Goal:
    """What section 7 of the wake server's issue asks of a figure."""

    of: Literal["ratio", "value"]
    sense: Literal["<=", "<", ">="]
    bound: float

    def reached(self, value: float) -> bool:
        """Whether ``value`` is on the right side."""
        if self.sense == ">=":
            return value >= self.bound
        return value <= self.bound if self.sense == "<=" else value < self.bound


@dataclass
class Row:
    """One line of the table. ``rounds``: a series for the bare program, then one a server."""

    name: str
    unit: str
    rounds: list[list[float]]
    goal: Goal | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def bare(self) -> float | None:
        """The bare program's median over the rounds, ``None`` where it has no such figure."""
        return middle(self.rounds[0]) if self.rounds[0] else None

    def value(self, seat: int) -> float:
        """A server's median over the rounds."""
        return middle(self.rounds[1 + seat])

    def ratio(self, seat: int) -> float | None:
        """Median to median, ``None`` where the bare program's is nothing to divide by."""
        return self.value(seat) / self.bare if self.bare else None

    def reached(self) -> bool | None:
        """Whether the first server is within the goal; ``None`` without one."""
        if self.faults:
            return False
        figure = None
        if self.goal is not None:
            figure = self.ratio(0) if self.goal.of == "ratio" else self.value(0)
        return None if self.goal is None or figure is None else self.goal.reached(figure)


@dataclass
class Bench:
    """What is measured, with what, where, and how long."""

    commands: Sequence[Sequence[str]]
    bare: Bare
    folder: Path
    quick: bool
    pin: bool
    say: Callable[[str], None]

    @property
    def seats(self) -> range:
        """The places of the commands: 0, and 1 for the one after ``--versus``."""
        return range(len(self.commands))

    @contextmanager
    def host(self, seat: int, rows: Sequence[dict[str, object]] = ()) -> Iterator[Host]:
        """A server just spawned in a folder of its own, with these reminders on disk."""
        folder = self.folder / f"server-{seat}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if rows:
            write_rows(folder / "heartbeat-reminders.json", rows)
        host = Host(self.commands[seat], folder)
        try:
            yield host
        finally:
            host.close()

    def rounds(
        self, name: str, count: int, *turns: Callable[[], float], seconds: float = 120
    ) -> list[list[float]]:
        """Each of ``turns`` once to warm up, then ``count`` times in turn."""
        series: list[list[float]] = [[] for _ in turns]
        for number in range(count + 1):
            self.say(f"{name}: round {number} of {count}" if number else f"{name}: warming up")
            for turn, kept in zip(turns, series, strict=True):
                with at_most(seconds, f"{name}, round {number}"):
                    figure = turn()
                if number:
                    kept.append(figure)
        return series


@contextmanager
def opened(
    bench: Bench, program: str, *arguments: str, rows: Sequence[dict[str, object]] = ()
) -> Iterator[list[Child]]:
    """The bare program, then every server, connected, all running at once."""
    with ExitStack() as stack:
        plain = bench.bare.start(program, *arguments)
        stack.callback(plain.close)
        children: list[Child] = [plain]
        for seat in bench.seats:
            host = stack.enter_context(bench.host(seat, rows))
            with at_most(30, "the handshake"):
                host.connect()
            children.append(host)
        yield children
