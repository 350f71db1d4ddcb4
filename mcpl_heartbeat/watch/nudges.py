"""Nudges: a push to an agent whose switch is near its deadline, to beat or to disarm.

The store gives each once. It is sent at once, or held with the reason and sent again at the next
policy, or once the host takes pushes again, which one of them tries once a minute. Before that the
store has to say that it still stands, for a beat may have come by another door. It never leaves
after its deadline, of which it would speak too late. Its eventId names the deadline, so it stays
the same however often it is sent.
"""

import enum
import hashlib
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from mcpl_heartbeat.actions import Action, Level, Log, Moment
from mcpl_heartbeat.policy import pushing
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.watch import words
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.pushes import (
    ANSWER_WITHIN_MS,
    FEATURE_SET,
    PROBE_EVERY_MS,
    REMEMBERED,
    UNANSWERED,
    Send,
)

MOST = 500
"""How many are remembered; of more the oldest are dropped."""
BURST = 32
"""How many leave in one pass."""


class Told(Protocol):
    """A nudge as the store gives it (``storage.store.ports.Nudge``)."""

    @property
    def scope(self) -> str:
        """The scope of the switch."""

    @property
    def generation(self) -> int:
        """Its generation."""

    @property
    def deadline_watched(self) -> int:
        """The deadline (watched ms) before which to beat."""


class NudgeId(msgspec.Struct, frozen=True):
    """Which nudge: one for each deadline of a switch."""

    scope: str
    generation: int
    deadline_watched: int


class _State(enum.Enum):
    """WAITING to be sent, OUT and not answered, HELD after the host did not take it, or ASKED about
    before it is sent again."""

    WAITING = "waiting"
    OUT = "out"
    HELD = "held"
    ASKED = "asked"


_KEPT = (_State.HELD, _State.ASKED)


class _Nudge(msgspec.Struct):
    id: NudgeId
    deadline: int
    """Monotonic ms, never later than the true one."""
    deadline_wall: int
    state: _State = _State.WAITING
    left_at: int = 0
    """When (monotonic ms) it was sent."""
    requests: list[str] = []
    reason: str | None = None


class NudgePushes:
    """See the module."""

    def __init__(
        self,
        *,
        zone: Zone,
        send: Send,
        forget: Callable[[str], None],
        emit: Callable[[Action], None],
    ) -> None:
        self._zone = zone
        self._send = send
        self._forget = forget
        self._emit = emit
        self._nudges: dict[NudgeId, _Nudge] = {}
        self._probe_at = 0

    @property
    def held(self) -> tuple[int, str] | None:
        """How many nudges the host has not taken, and why the last of them."""
        reasons = [n.reason for n in self._nudges.values() if n.state in _KEPT and n.reason]
        return (len(reasons), reasons[-1]) if reasons else None

    @property
    def doubtful(self) -> tuple[NudgeId, ...]:
        """Those of which the store is to say whether they still stand."""
        return tuple(nudge.id for nudge in self._nudges.values() if nudge.state in _KEPT)

    def news(self, nudges: Iterable[Told], reading: Reading, asked: Moment, now: Moment) -> None:
        """Switches that are near their deadline. ``asked``: a moment not later than ``reading``."""
        for told in nudges:
            id = _id(told)
            left = told.deadline_watched - reading.watched
            deadline = asked.monotonic + left
            wall = reading.real_of(told.deadline_watched) + reading.shift
            if now.monotonic < deadline and id not in self._nudges:
                self.beaten(told.scope)
                self._nudges[id] = _Nudge(id, deadline, wall, requests=[])
        while len(self._nudges) > MOST:
            self._drop(next(iter(self._nudges)))

    def checked(self, standing: Iterable[Told], void: Iterable[Told]) -> None:
        """The store says which of the doubtful ones still stand."""
        for told in standing:
            nudge = self._nudges.get(_id(told))
            if nudge is not None and nudge.state is _State.ASKED:
                nudge.state = _State.WAITING
        for told in void:
            if _id(told) in self._nudges:
                self._drop(_id(told))

    def beaten(self, scope: str) -> None:
        """The agent beat, or disarmed: what there is to say of this scope's switch is said."""
        for id in [id for id in self._nudges if id.scope == scope]:
            self._drop(id)

    def answered(self, id: NudgeId, outcome: pushing.Taken | pushing.Refused, now: Moment) -> None:
        """The host answered this nudge, however late."""
        nudge = self._nudges.get(id)
        if nudge is None:
            return
        if isinstance(outcome, pushing.Taken):
            self._drop(id)
            self.retry()
        elif nudge.state is _State.OUT:
            self._hold(nudge, outcome.reason, now)

    def retry(self) -> None:
        """A policy came, or the host takes pushes again: what is held may be sent."""
        for nudge in self._in(_State.HELD):
            nudge.state = _State.ASKED

    def pump(self, blocked: bool, coalesces: bool, now: Moment) -> None:
        """Drop what has become void, and send what can be sent."""
        for nudge in list(self._nudges.values()):
            if now.monotonic >= nudge.deadline:
                self._drop(nudge.id)
            elif nudge.state is _State.OUT and now.monotonic >= nudge.left_at + ANSWER_WITHIN_MS:
                self._hold(nudge, UNANSWERED, now)
        if blocked:
            for nudge in self._in(_State.WAITING):
                nudge.state = _State.ASKED
            return
        held = self._in(_State.HELD)
        if held and now.monotonic >= self._probe_at:
            self._probe_at = now.monotonic + PROBE_EVERY_MS
            min(held, key=lambda nudge: nudge.deadline).state = _State.ASKED
        for nudge in self._in(_State.WAITING)[:BURST]:
            self._push(nudge, coalesces, now)

    def next_moment(self, blocked: bool) -> int | None:
        """When (monotonic ms) ``pump`` next has something to do."""
        moments = []
        for nudge in self._nudges.values():
            moments.append(nudge.deadline)
            if nudge.state is _State.OUT:
                moments.append(nudge.left_at + ANSWER_WITHIN_MS)
            elif not blocked and nudge.state is not _State.ASKED:
                moments.append(self._probe_at if nudge.state is _State.HELD else 0)
        return min(moments, default=None)

    def _in(self, state: _State) -> list[_Nudge]:
        return [nudge for nudge in self._nudges.values() if nudge.state is state]

    def _push(self, nudge: _Nudge, coalesces: bool, now: Moment) -> None:
        seconds = (nudge.deadline - now.monotonic) / 1000
        event = nudge_event(nudge.id, nudge.deadline_wall, seconds, self._zone, now.wall)
        if coalesces:
            event["coalesce"] = {"key": nudge_key(nudge.id.scope)}
        nudge.requests.append(self._send(event, nudge.id))
        if len(nudge.requests) > REMEMBERED:
            self._forget(nudge.requests.pop(0))
        nudge.state, nudge.left_at = _State.OUT, now.monotonic

    def _hold(self, nudge: _Nudge, reason: str, now: Moment) -> None:
        nudge.state = _State.HELD
        if self._probe_at <= now.monotonic:
            self._probe_at = now.monotonic + PROBE_EVERY_MS
        if nudge.reason != reason:
            nudge.reason = reason
            scope = words.quoted(nudge.id.scope)
            self._emit(Log(Level.WARNING, f"the nudge for scope {scope} is held: {reason}"))

    def _drop(self, id: NudgeId) -> None:
        for request_id in self._nudges.pop(id).requests:
            self._forget(request_id)


def _id(told: Told) -> NudgeId:
    return NudgeId(told.scope, told.generation, told.deadline_watched)


# --- what is sent ------------------------------------------------------------------------------


def nudge_event(
    nudge: NudgeId, deadline: int, seconds: float, zone: Zone, now: int
) -> dict[str, Any]:
    """The params of the ``push/event`` for this nudge; ``deadline`` and ``now`` are wall ms."""
    scope = hashlib.sha256(nudge.scope.encode()).hexdigest()[:16]
    origin = {"source": "nudge", "scope": nudge.scope, "generation": nudge.generation}
    text = words.nudge_text(
        nudge.scope, nudge.generation, local_time(deadline, zone), seconds, local_time(now, zone)
    )
    id = f"nudge_{scope}_{nudge.generation}_{nudge.deadline_watched}"
    params = pushing.event(FEATURE_SET, id, now, origin, text)
    params["tags"] = ["watch:nudge"]
    return params


def nudge_key(scope: str) -> str:
    """By what a host replaces an unread nudge: the scope, or its hash where that is too long."""
    key = f"nudge:{scope}"
    if len(key.encode()) <= pushing.MAX_COALESCE_KEY_BYTES:
        return key
    return f"nudge:{hashlib.sha256(scope.encode()).hexdigest()}"
