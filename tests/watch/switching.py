"""What the tests of switches and leases share: moments, calls, and a world in which time passes."""

from typing import Any

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.watch import leases, switches
from mcpl_heartbeat.watch.arguments import (
    HeartbeatArguments,
    LeaseArguments,
    LeaseReleaseArguments,
    LeaseRenewArguments,
)
from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import HeartbeatResult
from mcpl_heartbeat.watch.rows import Entry, Lease, Switch
from mcpl_heartbeat.watch.switches import Beaten, Fired

START = 1_790_000_000_000
"""A real time (ms)."""
NAMESPACE = "ns"
SCOPE = "permit-review"
ADDRESS = "agent:abcdefghijklmnop"
ALL = ["release_leases", "mark_failed", "queue_alert"]


def at(ms: int = 0, *, cut: int = 0, shift: int = 0, gaps: tuple[Gap, ...] = ()) -> Reading:
    """The store's time ``ms`` after ``START``."""
    return Reading(START + ms, cut, shift, gaps)


def call(**arguments: Any) -> HeartbeatArguments:
    """Arguments of ``heartbeat``: a window of 60 s on ``SCOPE`` unless told otherwise."""
    return HeartbeatArguments(**{"scope": SCOPE, "expect_within_seconds": 60, **arguments})


def disarming(**arguments: Any) -> HeartbeatArguments:
    """Arguments of ``heartbeat`` that end the beats."""
    return call(expect_within_seconds=UNSET, disarm=True, **arguments)


def beaten(before: Switch | None, now: Reading, **arguments: Any) -> Beaten:
    """A beat that is taken."""
    outcome = switches.beat(before, NAMESPACE, call(**arguments), now)
    assert isinstance(outcome, Beaten), outcome
    return outcome


def armed(now: Reading, **arguments: Any) -> Switch:
    """A switch of one beat."""
    switch = beaten(None, now, **arguments).switch
    assert switch is not None
    return switch


def disarmed(before: Switch | None, **arguments: Any) -> Beaten:
    """A disarm, 1 s after ``START``."""
    outcome = switches.beat(before, NAMESPACE, disarming(**arguments), at(1_000))
    assert isinstance(outcome, Beaten)
    return outcome


def fired(switch: Switch, now: Reading, *scoped: Lease, unscoped: int = 0) -> Fired:
    """A fire, without a checkpoint."""
    return switches.fire(switch, scoped, unscoped, None, now)


def refused(before: Switch | None, now: Reading, **arguments: Any) -> tuple[str, ...]:
    """The problems of a beat that is refused."""
    outcome = switches.beat(before, NAMESPACE, call(**arguments), now)
    assert isinstance(outcome, Failure), outcome
    assert outcome.code == "invalid_arguments"
    assert outcome.status == 400
    assert outcome.problems is not UNSET
    assert outcome.problems
    assert all(problem in outcome.message for problem in outcome.problems)
    return outcome.problems


def lease(**fields: Any) -> Lease:
    """A lease of ``SCOPE``, held for 60 s from ``START``."""
    row = Lease(
        namespace=NAMESPACE,
        key="db",
        holder="worker-1",
        scope=SCOPE,
        fence="fence-1",
        generation=4,
        expires_watched=START + 60_000,
    )
    return msgspec.structs.replace(row, **fields)


def taking(**arguments: Any) -> LeaseArguments:
    return LeaseArguments(**{"key": "db", "holder": "worker-1", **arguments})


def renewing(**arguments: Any) -> LeaseRenewArguments:
    return LeaseRenewArguments(
        **{"key": "db", "holder": "worker-1", "fence": "fence-1", **arguments}
    )


def releasing(**arguments: Any) -> LeaseReleaseArguments:
    return LeaseReleaseArguments(
        **{"key": "db", "holder": "worker-1", "fence": "fence-1", **arguments}
    )


def plain(value: object) -> Any:
    """A Struct as it reads in JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


class World:
    """One scope and the time around it, carried on as a store does: what is due fires first."""

    def __init__(self) -> None:
        self.now = at()
        self.switch: Switch | None = None
        self.leases: list[Lease] = []
        self.fires: list[tuple[Reading, Switch, Fired]] = []
        """When, the switch before, and what was done."""
        self.journal: list[Entry] = []

    def pass_ms(self, ms: int) -> None:
        self.now = msgspec.structs.replace(self.now, real=self.now.real + ms)

    def gap(self, ms: int) -> None:
        """Nobody watches for ``ms``; then watching goes on."""
        now = self.now
        gap = Gap(now.real, now.real + ms, now.cut)
        self.now = Reading(gap.ended, now.cut + ms, now.shift, (*now.gaps, gap))
        if self.switch is not None and self.switch.state == "armed":
            deadline = switches.after_gap(
                self.switch.deadline_watched, self.switch.window_ms, self.now
            )
            self.switch = msgspec.structs.replace(self.switch, deadline_watched=deadline)

    def step_wall(self, ms: int) -> None:
        self.now = msgspec.structs.replace(self.now, shift=self.now.shift + ms)

    def sweep(self) -> None:
        if self.switch is not None and switches.is_due(self.switch, self.now):
            held = [each for each in self.leases if leases.is_held(each, self.now)]
            done = switches.fire(self.switch, held, 0, None, self.now)
            self.fires.append((self.now, self.switch, done))
            self.switch = done.switch
            self.journal += done.entries

    def call(self, arguments: HeartbeatArguments) -> HeartbeatResult:
        self.sweep()
        outcome = switches.beat(self.switch, NAMESPACE, arguments, self.now)
        assert isinstance(outcome, Beaten), outcome
        if outcome.switch is not None:
            self.switch = outcome.switch
        self.journal += outcome.entries
        return outcome.result
