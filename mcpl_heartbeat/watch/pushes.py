"""Alerts that wake an agent: when they are pushed, and what becomes of a push.

Every alert is a row of the store until it is acknowledged, and is asked for only when it could
leave at once; so there is nothing to keep here but the one push that is out. It carries all that
wait. The next one leaves ``REST_MS`` after it at the earliest, and what comes meanwhile goes
together (F.2, "Wake storms"). A push that the host refuses, or leaves unanswered for
``ANSWER_WITHIN_MS``, is let go, so that another server may push its alerts, and *held*: it is sent
again when a further alert has come, at the next policy, and once a minute. A late answer counts.

The eventId of a push follows from what it says, so it stays the same however often it is sent. An
alert that takes in another one, because its box is full, says something new and is sent again.

Other mail that wakes goes the same way (``tasks/reviews.py``): only its event is another.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.actions import Action, Level, Log, Moment, Settle
from mcpl_heartbeat.policy import pushing
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.watch import words
from mcpl_heartbeat.watch.rows import Envelope

FEATURE_SET = "watch"
MOST = 1_000
"""How many alerts are taken into one push, as many as a box holds; more wait for the next."""
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
SHOWN_SCOPES = 20

UNANSWERED = "the host has not answered within 30 s"


Mark = tuple[int, str, int]
"""What there is to say of an alert: its ``seq``, its ``task_id`` (a store that was put in another's
place counts anew), and how many it has taken in."""


class AlertPush(msgspec.Struct, frozen=True):
    """A push that left: what it was about, and when (monotonic ms)."""

    marks: tuple[Mark, ...]
    left_at: int

    @property
    def seqs(self) -> tuple[int, ...]:
        """Which alerts."""
        return tuple(seq for seq, _, _ in self.marks)


class Held(msgspec.Struct, frozen=True):
    """What the host does not take: which alerts, and why."""

    marks: frozenset[Mark]
    reason: str


Event = Callable[[Sequence[Envelope], Zone, int], dict[str, Any]]
"""Gives the params of the push for mail that waits, the oldest first, sent at this wall time."""
Send = Callable[[dict[str, Any], Any], str]
"""Sends a ``push/event`` with these params, about this subject; gives the id of its request."""


class AlertPushes:
    """See the module. ``forget`` takes the id of a request to whose answer nobody listens now.

    Other mail than alerts has an ``event`` of its own, and a ``noun`` for the log.
    """

    def __init__(  # noqa: PLR0913 - what is pushed, and the ways out
        self,
        *,
        zone: Zone,
        send: Send,
        forget: Callable[[str], None],
        emit: Callable[[Action], None],
        noun: str = "alert",
        event: Event | None = None,
    ) -> None:
        self._noun = noun
        self._event = event or alert_event
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
        """How much mail could leave at once, if there were any."""
        return 0 if blocked or self._out is not None or now.monotonic < self._rest_until else MOST

    def next_moment(self, now: Moment) -> int | None:
        """When (monotonic ms) that or what is out next changes by itself."""
        if self._out is not None:
            return self._out.left_at + ANSWER_WITHIN_MS
        return self._rest_until if now.monotonic < self._rest_until else None

    def news(self, mail: Sequence[Envelope], blocked: bool, now: Moment) -> None:
        """All that waits and is claimed for this server, the oldest first; none: no news."""
        if not mail:
            return
        known = tuple(one.seq for one in mail if _mark(one) in self._taken)
        if known:
            self._emit(Settle(known, taken=True))
        waiting = [one for one in mail if one.seq not in known]
        self._let_be(map(_mark, waiting))
        if not waiting:
            return
        if not self.wanted(blocked, now):
            # It was asked for before the last push left, or before the policy changed.
            out = () if self._out is None else self._out.seqs
            self._let_go(one.seq for one in waiting if one.seq not in out)
        elif (
            self.held is not None
            and now.monotonic < self._probe_at
            and self.held.marks.issuperset(map(_mark, waiting))
        ):
            self._let_go(one.seq for one in waiting)
            self._rest_until = now.monotonic + REST_MS
        else:
            self._push(waiting, now)

    def quiet(self) -> None:
        """Nothing waits for this server any more."""
        self.held = None

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
            self._let_be(self.held.marks.difference(push.marks))

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
        self._left.append(self._send(self._event(waiting, self._zone, now.wall), push))
        if len(self._left) > REMEMBERED:
            self._forget(self._left.popleft())

    def _hold(self, push: AlertPush, reason: str, now: Moment) -> None:
        self._let_go(push.seqs)
        if self.held is None or self.held.reason != reason:
            many = words.counted(len(push.marks), self._noun)
            self._emit(Log(Level.WARNING, f"{many} held: {reason}"))
        self.held = Held(frozenset(push.marks), reason)
        self._probe_at = now.monotonic + PROBE_EVERY_MS
        self._rest_until = max(self._rest_until, now.monotonic + REST_MS)

    def _let_be(self, waiting: Iterable[Mark]) -> None:
        """Of what is held, no more than these wait yet."""
        if self.held is not None:
            left = self.held.marks.intersection(waiting)
            self.held = msgspec.structs.replace(self.held, marks=left) if left else None

    def _let_go(self, seqs: Iterable[int]) -> None:
        those = tuple(seqs)
        if those:
            self._emit(Settle(those, taken=False))


# --- what is sent ------------------------------------------------------------------------------


def _mark(envelope: Envelope) -> Mark:
    return envelope.seq, envelope.task_id, 0 if envelope.alert is None else envelope.alert.folded


def alert_event(waiting: Sequence[Envelope], zone: Zone, now: int) -> dict[str, Any]:
    """The params of the ``push/event`` for these alerts, the oldest first, sent at wall ``now``."""
    newest = waiting[-1]
    alert = newest.alert
    assert alert is not None
    count = sum(1 + folded for _, _, folded in map(_mark, waiting))
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
