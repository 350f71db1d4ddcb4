"""What the model of the watch wing is made of: plain facts, and how a rule is held against them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

DEFAULT = ("mark_failed",)
Told = Mapping[str, Any]


class Disagrees(AssertionError):
    """The store told something that the rules do not say."""


def expect(what: str, told: object, rule: object) -> None:
    """Hold what was told against the rule."""
    if told != rule:
        raise Disagrees(f"{what}: told {told!r}, but the rules say {rule!r}")


def instant(text: str | None) -> int | None:
    """The milliseconds of an ISO time as told; the form itself is part of the rules."""
    if text is None:
        return None
    if len(text) != 24 or text[-1] != "Z" or text[-5] != ".":
        raise Disagrees(f"not a UTC time with milliseconds: {text!r}")
    moment = datetime.fromisoformat(text)
    return round(moment.timestamp() * 1000)


def freed(views: Iterable[Told]) -> frozenset[tuple[str, str, int]]:
    """What was released, as told."""
    return frozenset((view["key"], view["holder"], view["generation"]) for view in views)


@dataclass
class Arming:
    """A dead-man switch."""

    generation: int = 0
    state: str = "unarmed"
    deadline: int = 0
    window: int = 0
    actions: tuple[str, ...] = DEFAULT
    notify: tuple[int, str] | None = None
    nudge: int | None = None
    label: str | None = None
    beats: int = 0
    beat_at: int = 0
    fires: int = 0
    fired_generation: int | None = None
    failed: bool = False
    deaths: list["Death"] = field(default_factory=list)


@dataclass
class Death:
    """A fire, as it has to be told afterwards."""

    scope: str
    generation: int
    deadline: int
    noticed: int
    last_beat: int
    actions: tuple[str, ...]
    released: frozenset[tuple[str, str, int]]
    unreachable: int
    recovered: int | None = None
    resolution: str | None = None


@dataclass
class Lock:
    """A lease by name; it stays when it is free."""

    holder: str = ""
    scope: str | None = None
    fence: str = ""
    generation: int = 0
    expires: int = 0
    ttl: int = 60_000
    held: bool = False


@dataclass
class Mail:
    """An envelope, and where it lies."""

    owner: int
    box: str
    due: int
    visible: int
    order: int
    objective: str | None = None
    scope: str | None = None
    of: tuple[int, Death] | None = None
    task_id: str | None = None
    attempts: int = 0
    token: str | None = None
    state: str = "pending"


class Ground:
    """The time of a store, and who lives on it: agents, known by number."""

    def __init__(self, real: int) -> None:
        self.real = real
        """Real time now."""
        self.shift = 0
        """What told times differ from real ones by."""
        self.gaps: list[tuple[int, int]] = []
        self.watched_until = real
        """When a server was last there for certain."""
        self.addresses: list[str] = []

    @property
    def watched(self) -> int:
        """Watched time now."""
        return self.real - sum(ended - began for began, ended in self.gaps)

    def real_of(self, watched: int) -> int:
        """When watched time first was, or will be, that."""
        real = watched
        for began, ended in self.gaps:
            if real <= began:
                break
            real += ended - began
        return real

    def told(self, real: int) -> int:
        """A real time as it has to be told now."""
        return real + self.shift

    def owner(self, address: str | None) -> tuple[int, str] | None:
        """Whose box an address is."""
        if address is None:
            return None
        agent, _, box = address.partition("/")
        known = agent in self.addresses
        return (self.addresses.index(agent), box or "inbox") if known else None
