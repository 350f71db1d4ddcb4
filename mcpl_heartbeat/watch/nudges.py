"""Nudges: a push to an agent whose switch is near its deadline, to beat or to disarm.

The store gives each to one server, once; a server whose host is gone gives back what that did not
take. All that wait leave in one push, which is an agent's one wake for them (F.2, "Wake storms").
The next push leaves ``REST_MS`` after it, but none waits for others longer than a tenth of the time
that it has.

What the host does not take is held with the reason and sent again at the next policy, once the host
takes pushes again, and once a minute. Before that, and after a rest, the store has to say that it
still stands, for a beat may have come by another door, and how long it has: a watch gap puts its
deadline off. Nothing leaves after its deadline, of which it would speak too late; but only the
store, which knows of gaps, can say that one is over. The eventId follows from the deadlines that a
push tells of, so it stays the same however often they are sent together.
"""

import enum
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.actions import Action, Level, Log, Moment, Unsent
from mcpl_heartbeat.policy import pushing
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.watch import words
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.pushes import (
    ANSWER_WITHIN_MS,
    FEATURE_SET,
    PROBE_EVERY_MS,
    REST_MS,
    SHOWN_SCOPES,
    UNANSWERED,
    Send,
)
from mcpl_heartbeat.watch.rows import Nudge

MOST = 500
"""How many are remembered; of more the oldest are dropped."""
REMEMBERED = 32
"""How many pushes are remembered for a late answer."""


class _State(enum.Enum):
    """WAITING to be sent, OUT and not answered, HELD after the host did not take it, or ASKED about
    before it is sent again."""

    WAITING = "waiting"
    OUT = "out"
    HELD = "held"
    ASKED = "asked"


_KEPT = (_State.HELD, _State.ASKED)


class NudgePush(msgspec.Struct, frozen=True, eq=False):
    """A push that left: of what it told, and when (monotonic ms)."""

    ids: tuple[Nudge, ...]
    left_at: int


class Due(msgspec.Struct):
    """A nudge that is to be sent, or is out."""

    id: Nudge
    deadline: int
    """Monotonic ms, never later than the true one: before that only where a gap came since."""
    deadline_wall: int
    leaves_by: int
    """Until when (monotonic ms) it may wait for others."""
    state: _State = _State.WAITING
    fresh: bool = True
    """Whether the store said in this pass that it stands."""
    push: NudgePush | None = None
    """The last that told of it."""
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
        self._nudges: dict[Nudge, Due] = {}
        self._left: deque[str] = deque()
        self._rest_until = 0
        self._probe_at = 0

    @property
    def held(self) -> tuple[int, str] | None:
        """How many nudges the host has not taken, and why the last of them."""
        reasons = [n.reason for n in self._nudges.values() if n.state in _KEPT and n.reason]
        return (len(reasons), reasons[-1]) if reasons else None

    @property
    def doubtful(self) -> tuple[Nudge, ...]:
        """Those of which the store is to say whether they still stand."""
        return tuple(nudge.id for nudge in self._nudges.values() if nudge.state in _KEPT)

    def news(self, nudges: Iterable[Nudge], reading: Reading, asked: Moment, now: Moment) -> None:
        """Switches that are near their deadline. ``asked``: a moment not later than ``reading``."""
        for id in nudges:
            if id not in self._nudges:
                self.beaten(id.scope)
                deadline, wall = _deadline(id, reading, asked)
                leaves_by = now.monotonic + max(deadline - now.monotonic, 0) // 10
                self._nudges[id] = Due(id, deadline, wall, leaves_by)
        while len(self._nudges) > MOST:
            self._drop(next(iter(self._nudges)))

    def checked(
        self, standing: Iterable[Nudge], void: Iterable[Nudge], reading: Reading, asked: Moment
    ) -> None:
        """The store says which of the doubtful ones still stand. ``asked`` as in ``news``."""
        for id in standing:
            nudge = self._nudges.get(id)
            if nudge is not None and nudge.state is _State.ASKED:
                nudge.deadline, nudge.deadline_wall = _deadline(id, reading, asked)
                nudge.state, nudge.fresh = _State.WAITING, True
        for id in void:
            if id in self._nudges:
                self._drop(id)

    def beaten(self, scope: str) -> None:
        """The agent beat, or disarmed: what there is to say of this scope's switch is said."""
        for id in [id for id in self._nudges if id.scope == scope]:
            self._drop(id)

    def answered(
        self, push: NudgePush, outcome: pushing.Taken | pushing.Refused, now: Moment
    ) -> None:
        """The host answered this push, however late."""
        told = [self._nudges[id] for id in push.ids if id in self._nudges]
        if isinstance(outcome, pushing.Taken):
            for nudge in told:
                self._drop(nudge.id)
        else:
            self._hold(_out(told, push), outcome.reason, now)

    def policy_came(self) -> None:
        """What is held may be sent, and at once: what the host refused was no wake."""
        self._rest_until = 0
        self.retry()

    def retry(self) -> None:
        """The host takes pushes again: what is held may be sent."""
        for nudge in self._in(_State.HELD):
            nudge.state = _State.ASKED

    def leave(self) -> None:
        """The host is gone: another server may push what it did not take."""
        if self._nudges:
            self._emit(Unsent(tuple(self._nudges)))
        for id in list(self._nudges):
            self._drop(id)

    def pump(self, blocked: bool, coalesces: bool, now: Moment) -> None:
        """Send what can be sent, and have the store asked about what may be void."""
        late = [push for push in self._pushes() if now.monotonic >= _answer_by(push)]
        for push in late:
            self._hold(_out(self._nudges.values(), push), UNANSWERED, now)
        for nudge in self._in(_State.WAITING):
            if blocked or now.monotonic >= nudge.deadline:
                nudge.state = _State.ASKED
        if blocked:
            return
        held = self._in(_State.HELD)
        if held and now.monotonic >= self._probe_at:
            self._probe_at = now.monotonic + PROBE_EVERY_MS
            for nudge in held:
                nudge.state = _State.ASKED
        waiting = self._in(_State.WAITING)
        leaves = bool(waiting) and now.monotonic >= self._leaves_at(waiting)
        if leaves and all(nudge.fresh for nudge in waiting):
            self._push(waiting, coalesces, now)
            return
        for nudge in waiting:
            nudge.fresh = False
            if leaves:
                nudge.state = _State.ASKED

    def next_moment(self, blocked: bool) -> int | None:
        """When (monotonic ms) ``pump`` next has something to do."""
        moments = [_answer_by(push) for push in self._pushes()]
        if not blocked:
            if self._in(_State.HELD):
                moments.append(self._probe_at)
            if waiting := self._in(_State.WAITING):
                moments.append(self._leaves_at(waiting))
        return min(moments, default=None)

    def _in(self, state: _State) -> list[Due]:
        return [nudge for nudge in self._nudges.values() if nudge.state is state]

    def _pushes(self) -> list[NudgePush]:
        """The pushes that are out and not answered."""
        pushes = (nudge.push for nudge in self._in(_State.OUT))
        return list(dict.fromkeys(push for push in pushes if push is not None))

    def _leaves_at(self, waiting: Sequence[Due]) -> int:
        return min(self._rest_until, *(nudge.leaves_by for nudge in waiting))

    def _push(self, waiting: Sequence[Due], coalesces: bool, now: Moment) -> None:
        soonest = sorted(waiting, key=lambda nudge: (nudge.deadline, nudge.id.scope))
        push = NudgePush(tuple(nudge.id for nudge in soonest), now.monotonic)
        event = nudges_event(soonest, self._zone, now)
        if coalesces and len(soonest) == 1:
            event["coalesce"] = {"key": nudge_key(soonest[0].id.scope)}
        for nudge in soonest:
            nudge.state, nudge.push = _State.OUT, push
        self._rest_until = now.monotonic + REST_MS
        self._left.append(self._send(event, push))
        if len(self._left) > REMEMBERED:
            self._forget(self._left.popleft())

    def _hold(self, nudges: Sequence[Due], reason: str, now: Moment) -> None:
        if nudges and self._probe_at <= now.monotonic:
            self._probe_at = now.monotonic + PROBE_EVERY_MS
        if any(nudge.reason != reason for nudge in nudges):
            which = f"the nudge for scope {words.quoted(nudges[0].id.scope)} is"
            if len(nudges) > 1:
                which = f"{len(nudges)} nudges are"
            self._emit(Log(Level.WARNING, f"{which} held: {reason}"))
        for nudge in nudges:
            nudge.state, nudge.reason = _State.HELD, reason

    def _drop(self, id: Nudge) -> None:
        del self._nudges[id]
        while not self._nudges and self._left:
            self._forget(self._left.popleft())


def _deadline(id: Nudge, reading: Reading, asked: Moment) -> tuple[int, int]:
    """Its deadline in monotonic and in wall time (ms), by what the store says."""
    left = id.deadline_watched - reading.watched
    wall = reading.real_of(id.deadline_watched) + reading.shift
    return asked.monotonic + left, wall


def _out(nudges: Iterable[Due], push: NudgePush) -> list[Due]:
    """Those that are out by this push, and by no later one."""
    return [nudge for nudge in nudges if nudge.state is _State.OUT and nudge.push is push]


def _answer_by(push: NudgePush) -> int:
    return push.left_at + ANSWER_WITHIN_MS


# --- what is sent ------------------------------------------------------------------------------


def nudges_event(nudges: Sequence[Due], zone: Zone, now: Moment) -> dict[str, Any]:
    """The params of the ``push/event`` for these nudges, the soonest first."""
    told = [
        (
            nudge.id.scope,
            nudge.id.generation,
            local_time(nudge.deadline_wall, zone),
            (nudge.deadline - now.monotonic) / 1000,
        )
        for nudge in nudges
    ]
    first = nudges[0].id
    if len(nudges) == 1:
        id = f"nudge_{_hash(first.scope)}_{first.generation}_{first.deadline_watched}"
        origin = {"source": "nudge", "scope": first.scope, "generation": first.generation}
        text = words.nudge_text(*told[0], local_time(now.wall, zone))
    else:
        every = sorted((n.id.scope, n.id.generation, n.id.deadline_watched) for n in nudges)
        id = f"nudges_{_hash(repr(every))}_{len(nudges)}"
        scopes = [nudge.id.scope for nudge in nudges[:SHOWN_SCOPES]]
        origin = {"source": "nudge", "count": len(nudges), "scopes": scopes}
        text = words.nudges_text(told, local_time(now.wall, zone))
    params = pushing.event(FEATURE_SET, id, now.wall, origin, text)
    params["tags"] = ["watch:nudge"]
    return params


def nudge_key(scope: str) -> str:
    """By what a host replaces an unread nudge: the scope, or its hash where that is too long.

    A push of several has none: what replaced it would not tell of all of them.
    """
    key = f"nudge:{scope}"
    if len(key.encode()) <= pushing.MAX_COALESCE_KEY_BYTES:
        return key
    return f"nudge:{hashlib.sha256(scope.encode()).hexdigest()}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
