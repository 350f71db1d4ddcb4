"""The pushes of the watch wing: alerts that wake an agent, and nudges to beat.

*Alerts.* Every alert is a row of the store until it is acknowledged, and is asked for only when it
could leave at once; so there is nothing to keep here but the one push that is out. It carries all
that wait. The next one leaves ``REST_MS`` after it at the earliest, and what comes meanwhile goes
together (F.2, "Wake storms"). A push that the host refuses, or leaves unanswered for
``ANSWER_WITHIN_MS``, is let go, so that another server may push its alerts, and *held*: it is sent
again when a further alert has come, at the next policy, and once a minute. A late answer counts.

*Nudges.* The store gives each once. It is sent at once, or held with the reason and sent again at
the next policy, or once the host takes pushes again, which one of them tries once a minute. It
never leaves after its deadline, of which it would speak too late.

The eventId of a push follows from what it says, so it stays the same however often it is sent. An
alert that takes in another one, because its box is full, says something new and is sent again.
"""

import enum
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from mcpl_heartbeat.actions import Action, Level, Log, Moment, Settle
from mcpl_heartbeat.policy import pushing
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.watch import words
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.rows import Envelope

FEATURE_SET = "watch"
MOST = 100
"""How many alerts are taken into one push; more wait for the next."""
REST_MS = 5_000
"""How long (ms) after an alert push the next one may leave, to one address."""
ANSWER_WITHIN_MS = 30_000
"""How long (ms) a push may be unanswered before it is held (issue 2 §4)."""
PROBE_EVERY_MS = 60_000
"""How often (ms) what is held is sent again without a further cause."""
REMEMBERED = 8
"""How many alert pushes are remembered for a late answer."""
KNOWN_TAKEN = 2_000
"""How many taken alerts are known here, should the store not have heard of it yet."""
MOST_NUDGES = 500
BURST = 32
"""How many nudges leave in one pass."""
SHOWN_SCOPES = 20

UNANSWERED = "the host has not answered within 30 s"


class Told(Protocol):
    """A nudge as the store gives it (``storage.store.ports.Nudge``)."""

    @property
    def scope(self) -> str: ...  # noqa: D102
    @property
    def generation(self) -> int: ...  # noqa: D102
    @property
    def deadline_watched(self) -> int: ...  # noqa: D102


Mark = tuple[int, int]
"""What there is to say of an alert: its ``seq``, and how many it has taken in."""


class AlertPush(msgspec.Struct, frozen=True):
    """An alert push that left: what it was about, and when (monotonic ms)."""

    marks: tuple[Mark, ...]
    left_at: int

    @property
    def seqs(self) -> tuple[int, ...]:
        """Which alerts."""
        return tuple(seq for seq, _ in self.marks)


class NudgeId(msgspec.Struct, frozen=True):
    """Which nudge: one for each deadline of a switch."""

    scope: str
    generation: int
    deadline_watched: int


class Held(msgspec.Struct, frozen=True):
    """What the host does not take: which alerts, and why."""

    marks: frozenset[Mark]
    reason: str


Send = Callable[[dict[str, Any], Any], str]
"""Sends a ``push/event`` with these params, about this subject; gives the id of its request."""


class AlertPushes:
    """See the module. ``forget`` takes the id of a request to whose answer nobody listens now."""

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
        self._out: AlertPush | None = None
        self._left: deque[str] = deque()
        self._taken: dict[Mark, None] = {}
        self._rest_until = 0
        self._probe_at = 0
        self.held: Held | None = None

    def wanted(self, blocked: bool, now: Moment) -> int:
        """How many alerts could leave at once, if there were any."""
        return 0 if blocked or self._out is not None or now.monotonic < self._rest_until else MOST

    def next_moment(self, now: Moment) -> int | None:
        """When (monotonic ms) that or what is out next changes by itself."""
        if self._out is not None:
            return self._out.left_at + ANSWER_WITHIN_MS
        return self._rest_until if now.monotonic < self._rest_until else None

    def news(self, alerts: Sequence[Envelope], blocked: bool, now: Moment) -> None:
        """All alerts that wait and are claimed for this server, the oldest first."""
        known = tuple(one.seq for one in alerts if _mark(one) in self._taken)
        if known:
            self._emit(Settle(known, taken=True))
        waiting = [one for one in alerts if one.seq not in known and one.alert is not None]
        if not self.wanted(blocked, now):
            # It was asked for before the last push left, or before the policy changed.
            out = () if self._out is None else self._out.seqs
            self._let_go(one.seq for one in waiting if one.seq not in out)
        elif not waiting:
            self.held = None
        elif (
            self.held is not None
            and now.monotonic < self._probe_at
            and self.held.marks.issuperset(map(_mark, waiting))
        ):
            self._let_go(one.seq for one in waiting)
            self._rest_until = now.monotonic + REST_MS
        else:
            self._push(waiting, now)

    def answered(
        self, push: AlertPush, outcome: pushing.Taken | pushing.Refused, now: Moment
    ) -> None:
        """The host answered this push, however late."""
        current = push is self._out
        if current:
            self._out = None
        if isinstance(outcome, pushing.Refused):
            if current:
                self._hold(push, outcome.reason, now)
            return
        self._emit(Settle(push.seqs, taken=True))
        self._taken |= dict.fromkeys(push.marks)
        while len(self._taken) > KNOWN_TAKEN:
            del self._taken[next(iter(self._taken))]
        if self.held is not None:
            left = self.held.marks.difference(push.marks)
            self.held = msgspec.structs.replace(self.held, marks=left) if left else None

    def pass_time(self, now: Moment) -> None:
        """Hold what has been out for too long."""
        push = self._out
        if push is not None and now.monotonic >= push.left_at + ANSWER_WITHIN_MS:
            self._out = None
            self._hold(push, UNANSWERED, now)

    def retry(self) -> None:
        """A policy came: what is held may be sent again."""
        self._probe_at = 0

    def leave(self) -> None:
        """The host is gone: another server may push what it did not take."""
        if self._out is not None:
            self._let_go(self._out.seqs)
            self._out = None

    def _push(self, waiting: Sequence[Envelope], now: Moment) -> None:
        push = AlertPush(tuple(map(_mark, waiting)), now.monotonic)
        self._out = push
        self._rest_until = now.monotonic + REST_MS
        self._left.append(self._send(alert_event(waiting, self._zone, now.wall), push))
        if len(self._left) > REMEMBERED:
            self._forget(self._left.popleft())

    def _hold(self, push: AlertPush, reason: str, now: Moment) -> None:
        self._let_go(push.seqs)
        if self.held is None or self.held.reason != reason:
            many = words.counted(len(push.marks), "alert")
            self._emit(Log(Level.WARNING, f"{many} held: {reason}"))
        self.held = Held(frozenset(push.marks), reason)
        self._probe_at = now.monotonic + PROBE_EVERY_MS
        self._rest_until = max(self._rest_until, now.monotonic + REST_MS)

    def _let_go(self, seqs: Iterable[int]) -> None:
        those = tuple(seqs)
        if those:
            self._emit(Settle(those, taken=False))


class _State(enum.Enum):
    """WAITING to be sent, OUT and not answered, or HELD after the host did not take it."""

    WAITING = "waiting"
    OUT = "out"
    HELD = "held"


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
        reasons = [n.reason for n in self._nudges.values() if n.state is _State.HELD and n.reason]
        return (len(reasons), reasons[-1]) if reasons else None

    def news(self, nudges: Iterable[Told], reading: Reading, asked: Moment, now: Moment) -> None:
        """Switches that are near their deadline. ``asked``: a moment not later than ``reading``."""
        for told in nudges:
            id = NudgeId(told.scope, told.generation, told.deadline_watched)
            left = told.deadline_watched - reading.watched
            deadline = asked.monotonic + left
            wall = reading.real_of(told.deadline_watched) + reading.shift
            if now.monotonic < deadline and id not in self._nudges:
                self.beaten(told.scope)
                self._nudges[id] = _Nudge(id, deadline, wall, requests=[])
        while len(self._nudges) > MOST_NUDGES:
            self._drop(next(iter(self._nudges)))

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
        for nudge in self._nudges.values():
            if nudge.state is _State.HELD:
                nudge.state = _State.WAITING

    def pump(self, blocked: bool, coalesces: bool, now: Moment) -> None:
        """Drop what has become void, and send what can be sent."""
        for nudge in list(self._nudges.values()):
            if now.monotonic >= nudge.deadline:
                self._drop(nudge.id)
            elif nudge.state is _State.OUT and now.monotonic >= nudge.left_at + ANSWER_WITHIN_MS:
                self._hold(nudge, UNANSWERED, now)
        if blocked or not self._nudges:
            return
        held = self._in(_State.HELD)
        if held and now.monotonic >= self._probe_at:
            self._probe_at = now.monotonic + PROBE_EVERY_MS
            min(held, key=lambda nudge: nudge.deadline).state = _State.WAITING
        for nudge in self._in(_State.WAITING)[:BURST]:
            self._push(nudge, coalesces, now)

    def next_moment(self, blocked: bool) -> int | None:
        """When (monotonic ms) ``pump`` next has something to do."""
        moments = []
        for nudge in self._nudges.values():
            moments.append(nudge.deadline)
            if nudge.state is _State.OUT:
                moments.append(nudge.left_at + ANSWER_WITHIN_MS)
            elif not blocked:
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


# --- what is sent ------------------------------------------------------------------------------


def _mark(envelope: Envelope) -> Mark:
    return envelope.seq, 0 if envelope.alert is None else envelope.alert.folded


def alert_event(waiting: Sequence[Envelope], zone: Zone, now: int) -> dict[str, Any]:
    """The params of the ``push/event`` for these alerts, the oldest first, sent at wall ``now``."""
    newest = waiting[-1]
    alert = newest.alert
    assert alert is not None
    count = sum(1 + folded for _, folded in map(_mark, waiting))
    if len(waiting) == 1:
        id = f"alert_{newest.task_id}" + (f"_{count}" if count > 1 else "")
        origin = {"source": "alert", "scope": alert.scope, "generation": alert.generation}
    else:
        id = f"alerts_{newest.task_id}_{count}"
        scopes = dict.fromkeys(one.alert.scope for one in waiting if one.alert is not None)
        origin = {
            "source": "alert",
            "count": count,
            "scopes": list(scopes)[:SHOWN_SCOPES],
        }
    text = words.alert_push_text(waiting, len(waiting), local_time(now, zone))
    params = pushing.event(FEATURE_SET, id, now, origin, text)
    params["tags"] = ["watch:alert"]
    return params


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
