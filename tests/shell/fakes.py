"""A core and files that do one thing per line of input, so that the shell can be seen at work."""

import os
import threading
from collections.abc import Callable
from typing import Any

import trio

from mcpl_heartbeat.actions import (
    Action,
    Ask,
    Document,
    Level,
    Log,
    Moment,
    NotSaved,
    Opened,
    Opening,
    Reply,
    Save,
    Saved,
    SaveOutcome,
    WakeAt,
)
from mcpl_heartbeat.shell.ports import Taken


class FakeCore:
    """Answers ``ping``, asks for saves, floods, prints, breaks: whatever a line tells it to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.heard: list[str] = []
        self.ticks: list[Moment] = []
        self.outcomes: list[SaveOutcome] = []
        self.openings: list[Opening] = []
        self.on_tick: Callable[[Moment], list[Action]] = lambda now: []
        self.standby = False
        self._saving = 0
        self._half = b""
        self.chunks = 0

    @property
    def unsettled(self) -> bool:
        return self._saving > 0

    def start(self, now: Moment) -> list[Action]:
        self.calls.append("start")
        return []

    def opened(self, opening: Opening, now: Moment) -> list[Action]:
        self.heard.append("opened")
        self.openings.append(opening)
        self.standby = opening.held_by is not None
        return []

    def receive(self, data: bytes, now: Moment) -> list[Action]:
        self.chunks += 1
        *lines, self._half = (self._half + data).split(b"\n")
        return [action for line in lines for action in self._one(line.decode(), now)]

    def end_of_input(self, now: Moment) -> list[Action]:
        self.calls.append("end")
        return self._one(self._half.decode(), now) if self._half else []

    def tick(self, now: Moment) -> list[Action]:
        self.ticks.append(now)
        return self.on_tick(now)

    def saved(self, document: Document, outcome: SaveOutcome, now: Moment) -> list[Action]:
        self._saving -= 1
        self.outcomes.append(outcome)
        self.heard.append(type(outcome).__name__)
        return [Reply(b"not saved\n" if isinstance(outcome, NotSaved) else b"saved\n")]

    def told(self, id: int, outcome: Any, now: Moment) -> list[Action]:
        return [Reply(f"told {id} {outcome}\n".encode())]

    def news(self, news: Any, asked: Moment, now: Moment) -> list[Action]:
        return [Reply(f"news {news}\n".encode())]

    def _one(self, line: str, now: Moment) -> list[Action]:
        word, _, rest = line.partition(" ")
        match word:
            case "ping":
                return [Reply(b"pong\n")]
            case "save":
                self._saving += 1
                return [Save(Document.CONFIG, rest)]
            case "flood":
                return [Reply(b"x" * int(rest) + b"\n")]
            case "wake":
                return [WakeAt(now.wall + int(rest), None)]
            case "log":
                return [Log(Level.WARNING, rest)]
            case "ask":
                return [Ask(int(rest), "tool", None)]
            case "print":
                print(rest)
                return []
            case "raw":
                os.write(1, rest.encode() + b"\n")
                return []
            case "break":
                raise LookupError(rest)
        return []


class FakeFiles:
    """Remembers what was saved. ``gate`` holds saves up; ``held_by`` is another server."""

    def __init__(self) -> None:
        self.content: list[Any] = []
        self.gate = threading.Event()
        self.gate.set()
        self.held_by: str | None = None
        self.tries = 0
        self.breaks = False
        self.slow_open = False
        self.undisturbed = True
        self.taken = False
        self.checks = 0

    def open(self) -> Opening:
        if self.slow_open:
            self.gate.wait()
        if self.breaks:
            raise LookupError("no files today")
        return Opening(config=Opened(), reminders=Opened(), held_by=self.held_by)

    def take_over(self) -> Opening | None:
        self.tries += 1
        return None if self.held_by else self.open()

    def check(self) -> Opening | None:
        self.checks += 1
        self.undisturbed = True
        self.taken, taken = False, self.taken
        return Opening(config=Opened(), reminders=Opened(), held_by=self.held_by) if taken else None

    def save(self, document: Document, value: Any) -> SaveOutcome:
        self.gate.wait()
        if (opening := self.check()) is not None:
            return Taken("taken", opening=opening)
        if self.held_by is not None:
            return NotSaved("taken")
        if value == "breaks":
            raise LookupError("the disk is made of cheese")
        self.content.append(value)
        return Saved()


class FakeClock:
    """Monotonic time is trio's own, so ``MockClock`` drives it; the wall clock can be stepped."""

    def __init__(self, wall: int = 1_800_000_000_000) -> None:
        self.step = wall - round(trio.current_time() * 1000)

    def now(self) -> Moment:
        # Rounded first: a mock clock's sum of floats can fall short of a whole millisecond.
        monotonic = int(round(trio.current_time() * 1000, 3))
        return Moment(wall=monotonic + self.step, monotonic=monotonic)
