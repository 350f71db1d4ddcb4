"""The life of a reminder, and the order in which reminders are sent.

* ``WAITING``  its due time lies ahead, or has come while no wake can be delivered.
* ``OUT``      its push is sent and the host has not answered; after 30 s it is held.
* ``HELD``     the host refused it, or did not answer in time. It is sent once more, as the same
  occurrence, at the next policy, the next add or cancel, or a restart; a recurring one also an
  interval later.
* ``GONE``     the host took a one-shot, or it was cancelled.

A row changes only when the host takes its push (seed): a one-shot is removed, a recurring one
moves to its next due time on its first grid. An answer settles whichever occurrence it belongs to,
however late it comes; one for a row that has been cancelled, edited or advanced since changes
nothing.
"""

import enum
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import msgspec
from sortedcontainers import SortedList

from mcpl_heartbeat.wake.clock_steps import Step
from mcpl_heartbeat.wake.files import LATEST, Reminder

ANSWER_WITHIN_MS = 30_000
"""How long (ms) a reminder's push waits for its answer before it is held (seed)."""
UNANSWERED = "the host gave no answer within 30 s"


class Life(enum.StrEnum):
    """The states of a reminder."""

    WAITING = "waiting"
    OUT = "out"
    HELD = "held"
    GONE = "gone"


class Event(enum.StrEnum):
    """What can happen to a reminder."""

    SENT = "its push was written"
    TAKEN_ONCE = "the host took a one-shot"
    TAKEN_RECURRING = "the host took a recurring one"
    REFUSED = "the host refused it"
    UNANSWERED = "no answer within 30 s"
    RETRY = "policy, add, cancel, or an interval later"
    CANCELLED = "cancelled, or its row changed by hand"


TRANSITIONS: dict[tuple[Life, Event], Life] = {
    (Life.WAITING, Event.SENT): Life.OUT,
    (Life.OUT, Event.REFUSED): Life.HELD,
    (Life.OUT, Event.UNANSWERED): Life.HELD,
    (Life.HELD, Event.REFUSED): Life.HELD,
    (Life.HELD, Event.RETRY): Life.WAITING,
    **{
        (state, event): after
        for state in (Life.WAITING, Life.OUT, Life.HELD)
        for event, after in (
            (Event.TAKEN_ONCE, Life.GONE),
            (Event.TAKEN_RECURRING, Life.WAITING),
            (Event.CANCELLED, Life.GONE),
        )
    },
}
"""(state, event) → state; a pair that is not listed changes nothing."""


class Occurrence(msgspec.Struct, frozen=True):
    """One firing of one reminder; ``due`` is in wall ms."""

    id: str
    due: int


class Out(msgspec.Struct, frozen=True):
    """A push that waits for its answer."""

    request_id: str
    since: int
    """Wall ms."""


class Held(msgspec.Struct, frozen=True):
    """A push the host did not take, and why."""

    reason: str
    since: int
    """Wall ms."""
    retry_at: int | None
    """Monotonic ms at which a recurring one is sent again; ``None`` for a one-shot."""


def every_ms(row: Reminder) -> int | None:
    """The interval of a recurring reminder in ms, ``None`` for a one-shot."""
    return None if row.every_seconds is None else round(row.every_seconds * 1000)


def next_due(row: Reminder, now: int) -> int:
    """The first due time after ``now`` on a recurring reminder's grid (wall ms)."""
    every = every_ms(row)
    assert every is not None, "only a recurring reminder has a next due time"
    return min(row.fire_at + (max(now - row.fire_at, 0) // every + 1) * every, LATEST)


class ReminderBook:
    """Every pending reminder, the state of each, and what is due next."""

    def __init__(self, rows: Iterable[Reminder] = (), ahead: int = 0) -> None:
        """Begin with ``rows``, on a wall clock that is ``ahead`` ms ahead."""
        self.rows: dict[str, Reminder] = {}
        self._waiting: SortedList[tuple[int, int, str]] = SortedList()
        self._states: dict[str, Out | Held] = {}
        # How many rows have each message, so that one which nobody has costs no look at every row.
        self._messages: Counter[str] = Counter()
        self._answers_by: deque[tuple[int, str, str]] = deque()
        self._retries: SortedList[tuple[int, str]] = SortedList()
        self._eager: SortedList[tuple[int, int, str]] = SortedList()
        self._ahead = ahead
        # How far ahead the clock was when a due time was reckoned by this process; a row that is
        # not here came from the file.
        self._reckoned_ahead: dict[str, int] = {}
        # How far the grid of a row has moved while its push was out or held: the occurrence keeps
        # its due time, which is in its eventId.
        self._sent_shift: dict[str, int] = {}
        # When an occurrence was first held: a retry that is refused again does not make it newer.
        self._held_since: dict[str, int] = {}
        self.replace(tuple(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def snapshot(self) -> tuple[Reminder, ...]:
        """The rows as the file is to hold them."""
        return tuple(self.rows.values())

    def replace(self, rows: tuple[Reminder, ...]) -> None:
        """Take ``rows`` instead; one that did not change keeps its state, any other starts anew."""
        fresh = {row.id: row for row in rows}
        same = {
            id
            for id, before in self.rows.items()
            if (row := fresh.get(id)) and row.fire_at == before.fire_at
        }
        self._states = {id: state for id, state in self._states.items() if id in same}
        self._retries = SortedList(entry for entry in self._retries if entry[1] in self._states)
        self._reckoned_ahead = {id: by for id, by in self._reckoned_ahead.items() if id in same}
        self._sent_shift = {id: by for id, by in self._sent_shift.items() if id in same}
        self._held_since = {id: at for id, at in self._held_since.items() if id in same}
        self._eager = SortedList(_key(fresh[id]) for _, _, id in self._eager if id in same)
        self.rows = fresh
        self._messages = Counter(row.message for row in fresh.values())
        self._waiting = SortedList(_key(row) for row in rows if row.id not in self._states)

    def add(self, row: Reminder) -> None:
        """Add a reminder; it waits for its due time."""
        self.rows[row.id] = row
        self._messages[row.message] += 1
        self._waiting.add(_key(row))
        self._reckoned_ahead[row.id] = self._ahead

    def cancel(self, id: str) -> Reminder | None:
        """Remove the reminder, final whatever the host answers; ``None`` when there is none."""
        row = self.rows.get(id)
        if row is not None:
            self._move(row, Event.CANCELLED)
        return row

    @property
    def held(self) -> int:
        """How many are held."""
        return sum(isinstance(state, Held) for state in self._states.values())

    def state(self, id: str) -> Out | Held | None:
        """The push that is out or held; ``None`` while the reminder waits."""
        return self._states.get(id)

    def due(self, now: int, limit: int) -> list[Reminder]:
        """Up to ``limit`` waiting reminders whose time has come, soonest due first."""
        again = self.due_again(limit)
        found: list[Reminder] = []
        if self._waiting and self._waiting[0][0] <= now:
            for key in islice(self._waiting, limit + len(again)):
                if key[0] > now:
                    break
                if not again or key not in self._eager:
                    found.append(self.rows[key[2]])
        return sorted(again + found, key=_key)[:limit] if again else found

    def due_again(self, limit: int) -> list[Reminder]:
        """Up to ``limit`` of those that were held and are to be tried once more."""
        return [self.rows[id] for _, _, id in self._eager.islice(0, limit)]

    def next_waiting(self) -> int | None:
        """The due time (wall ms) of the soonest waiting reminder; 0 while one is to be retried."""
        if self._eager:
            return 0
        return self._waiting[0][0] if self._waiting else None

    def next_monotonic(self) -> int | None:
        """When (monotonic ms) ``pass_time`` next has something to do."""
        answer = self._answers_by[0][0] if self._answers_by else None
        if not self._retries:
            return answer
        retry: int = self._retries[0][0]
        return retry if answer is None else min(retry, answer)

    def sent(self, row: Reminder, request_id: str, wall: int, monotonic: int) -> None:
        """Its push was written under ``request_id``."""
        self._move(row, Event.SENT, Out(request_id, wall))
        self._answers_by.append((monotonic + ANSWER_WITHIN_MS, row.id, request_id))

    def taken(self, occurrence: Occurrence, now: int) -> bool:
        """The host took this occurrence. False when it is no longer one of ours."""
        row = self.rows.get(occurrence.id)
        if row is None or row.fire_at != occurrence.due:
            return False
        if row.every_seconds is None:
            self._move(row, Event.TAKEN_ONCE)
        else:
            self._move(row, Event.TAKEN_RECURRING)
            grid = msgspec.structs.replace(
                row, fire_at=max(0, row.fire_at + self._sent_shift.pop(row.id, 0))
            )
            advanced = msgspec.structs.replace(row, fire_at=next_due(grid, now))
            self._waiting.remove(_key(row))
            self.rows[row.id] = advanced
            self._waiting.add(_key(advanced))
            self._reckoned_ahead[row.id] = self._ahead
        return True

    def refused(
        self, occurrence: Occurrence, request_id: str, reason: str, wall: int, monotonic: int
    ) -> bool:
        """The host refused this occurrence; a push older than the one that is out is no matter."""
        row = self.rows.get(occurrence.id)
        if row is None or row.fire_at != occurrence.due:
            return False
        state = self._states.get(row.id)
        if isinstance(state, Out) and state.request_id != request_id:
            return False
        return self._hold(row, Event.REFUSED, reason, wall, monotonic)

    def pass_time(self, wall: int, monotonic: int) -> list[Reminder]:
        """Hold what was not answered in time (returned), let what may be tried again wait again."""
        held: list[Reminder] = []
        while self._answers_by and self._answers_by[0][0] <= monotonic:
            _, id, request_id = self._answers_by.popleft()
            state = self._states.get(id)
            if isinstance(state, Out) and state.request_id == request_id:
                row = self.rows[id]
                if self._hold(row, Event.UNANSWERED, UNANSWERED, wall, monotonic):
                    held.append(row)
        while self._retries and self._retries[0][0] <= monotonic:
            self._move(self.rows[self._retries[0][1]], Event.RETRY)
        return held

    def retry(self) -> None:
        """A policy, an add or a cancel came: everything held may be sent once more."""
        for id in [id for id, state in self._states.items() if isinstance(state, Held)]:
            self._move(self.rows[id], Event.RETRY)

    def shift(self, step: Step, now: int) -> bool:
        """The wall clock was stepped, to ``now``: move the waiting lengths of time with it.

        Appointments (``by_clock``) stay where they are on the clock, and what has been sent keeps
        its occurrence. A row from the file may have been reckoned by any clock: it moves only when
        it was made at what is now a time to come. True when a row changed.
        """
        self._ahead = step.ahead
        moved = []
        for row in self.rows.values():
            by = 0 if row.by_clock else self._shift_of(row, step, now)
            if not by or not 0 <= row.fire_at + by <= LATEST:
                continue
            ahead = self._reckoned_ahead.get(row.id, step.ahead)
            self._reckoned_ahead[row.id] = min(ahead, step.ahead)
            if row.id in self._states or _key(row) in self._eager:
                self._sent_shift[row.id] = self._sent_shift.get(row.id, 0) + by
            else:
                moved.append(msgspec.structs.replace(row, fire_at=row.fire_at + by))
        for row in moved:
            self._waiting.remove(_key(self.rows[row.id]))
            self.rows[row.id] = row
            self._waiting.add(_key(row))
        return bool(moved)

    def _shift_of(self, row: Reminder, step: Step, now: int) -> int:
        reckoned_ahead = self._reckoned_ahead.get(row.id)
        if reckoned_ahead is not None:
            return step.shift(reckoned_ahead)
        if step.by >= 0:
            return 0
        if row.created_at > now:
            return step.by
        every = every_ms(row)
        if every is None or row.fire_at - (now - step.size) > every:
            return 0
        # Whatever clock it was reckoned by, it was due within an interval, and is to be still.
        excess = max(0, row.fire_at - now - every)
        return (-excess // every) * every

    def in_order(self, offset: int) -> Iterator[Reminder]:
        """The reminders from the ``offset``-th on, soonest due first."""
        busy = SortedList(_key(self.rows[id]) for id in self._states)
        if not busy:
            return (self.rows[id] for _, _, id in self._waiting.islice(offset))
        late = self._waiting.bisect_right(busy[-1])
        mixed = sorted(chain(busy, self._waiting.islice(0, late)))
        keys = chain(mixed[offset:], self._waiting.islice(late + max(0, offset - len(mixed))))
        return (self.rows[id] for _, _, id in keys)

    def twins(self, row: Reminder) -> list[str]:
        """Ids of pending reminders with the same message and the same schedule as ``row``."""
        if row.message not in self._messages:
            return []
        return [
            other.id
            for other in self.rows.values()
            if other.message == row.message
            and other.every_seconds == row.every_seconds
            and _same_times(row, other)
        ]

    def _hold(self, row: Reminder, event: Event, reason: str, wall: int, monotonic: int) -> bool:
        every = every_ms(row)
        since = self._held_since.setdefault(row.id, wall)
        held = Held(reason, since, None if every is None else monotonic + every)
        return self._move(row, event, held) is Life.HELD

    def _move(self, row: Reminder, event: Event, state: Out | Held | None = None) -> Life:
        """Carry out one transition: the one place where states, due order and retries change."""
        before = self._states.get(row.id)
        life = (
            Life.WAITING if before is None else Life.OUT if isinstance(before, Out) else Life.HELD
        )
        after = TRANSITIONS.get((life, event))
        if after is None:
            return life
        if before is None:
            self._waiting.remove(_key(row))
        elif isinstance(before, Held) and before.retry_at is not None:
            self._retries.remove((before.retry_at, row.id))
        self._states.pop(row.id, None)
        if event not in (Event.SENT, Event.RETRY, Event.REFUSED, Event.UNANSWERED):
            self._held_since.pop(row.id, None)
        if event is Event.RETRY:
            self._eager.add(_key(row))
        else:
            self._eager.discard(_key(row))
        if state is not None:
            self._states[row.id] = state
            if isinstance(state, Held) and state.retry_at is not None:
                self._retries.add((state.retry_at, row.id))
        elif after is Life.WAITING:
            self._waiting.add(_key(row))
        else:
            del self.rows[row.id]
            self._messages[row.message] -= 1
            if not self._messages[row.message]:
                del self._messages[row.message]
            self._reckoned_ahead.pop(row.id, None)
            self._sent_shift.pop(row.id, None)
        return after


def _key(row: Reminder) -> tuple[int, int, str]:
    return (row.fire_at, row.created_at, row.id)


def _same_times(row: Reminder, other: Reminder) -> bool:
    """Whether two reminders of one interval, or none, were set in the same words as to when."""
    apart = row.fire_at - other.fire_at
    every = every_ms(row)
    if row.by_clock or other.by_clock:
        return apart == 0 if every is None else apart % every == 0
    return every is not None or apart in (0, row.created_at - other.created_at)
