"""The life of a task: claimed under a lease, fenced by an epoch, ended by a clock of its own.

* ``AVAILABLE``  waits for a worker. Its ``epoch`` is that of the last claim, 1 if there was none.
* ``CLAIMED``    a worker holds it, until the lease lapses. What has lapsed stays ``CLAIMED`` in the
  store and is as good as available to everybody: nothing is written at that moment.
* ``SUBMITTED``  there is a result. So it stays.
* ``TIMED_OUT``  ``timeout_at`` came first. So it stays.
* ``CANCELLED``  its creator's side called it off. So it stays.
* ``FAILED``     a worker gave it up for good. So it stays.

The epoch rises by one with each claim and by nothing else, so it never repeats. Whoever wants to
change a claimed task shows the epoch that the claim returned, and four things are looked at
together (``check``): that ``timeout_at`` has not come, that the task is open, that this epoch is
the present one, and that its lease has not lapsed. A lapsed claim cannot be revived, even while
nobody else wants the task, because the answer must not depend on who came first (F.4).

Two clocks: the lease is in watched time, so that no worker loses a claim over a time in which
nobody watched; ``timeout_at`` is real time and moves for nobody. Whoever has a call for a task that
is *overdue* settles that first, with ``time_out``; no other function here is handed one.

A claim may have a *guard*, a dead-man switch of its own whose window is the lease: it is beaten
with the claim, and disarmed when the claim ends in any way but its fire. A switch that fires gives
back the tasks that were claimed under its scope, and the one that it guards (``give_back``).

Sources: the seed; `liveness-surfaces` B.1 to B.3, F.2 and F.4; issue 5 §2.
"""

import enum

from mcpl_heartbeat.tasks.rows import Status, Task
from mcpl_heartbeat.watch.clock import Reading


class State(enum.StrEnum):
    """Where a task stands, as it is stored."""

    AVAILABLE = "available"
    CLAIMED = "claimed"
    SUBMITTED = "submitted"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Event(enum.StrEnum):
    """What can happen to it; those of a worker count only with the present epoch, unlapsed."""

    CLAIM = "a claim"
    HEARTBEAT = "a heartbeat"
    SUBMIT = "a submit whose outputs fit the contract"
    RELEASE = "a release"
    FAIL = "a release that is final"
    LAPSE = "the lease lapses"
    GIVE_BACK = "a switch fires: of the claim's scope, or its guard"
    TIMEOUT = "timeout_at comes"
    CANCEL = "it is cancelled"


_OPEN: dict[tuple[State, Event], State] = {
    (State.AVAILABLE, Event.CLAIM): State.CLAIMED,
    (State.AVAILABLE, Event.HEARTBEAT): State.AVAILABLE,
    (State.AVAILABLE, Event.SUBMIT): State.AVAILABLE,
    (State.AVAILABLE, Event.RELEASE): State.AVAILABLE,
    (State.AVAILABLE, Event.FAIL): State.AVAILABLE,
    (State.AVAILABLE, Event.LAPSE): State.AVAILABLE,
    (State.AVAILABLE, Event.GIVE_BACK): State.AVAILABLE,
    (State.AVAILABLE, Event.TIMEOUT): State.TIMED_OUT,
    (State.AVAILABLE, Event.CANCEL): State.CANCELLED,
    # While the lease is live a claim is refused; once it has lapsed only these four change it.
    (State.CLAIMED, Event.CLAIM): State.CLAIMED,
    (State.CLAIMED, Event.HEARTBEAT): State.CLAIMED,
    (State.CLAIMED, Event.SUBMIT): State.SUBMITTED,
    (State.CLAIMED, Event.RELEASE): State.AVAILABLE,
    (State.CLAIMED, Event.FAIL): State.FAILED,
    (State.CLAIMED, Event.LAPSE): State.CLAIMED,
    (State.CLAIMED, Event.GIVE_BACK): State.AVAILABLE,
    (State.CLAIMED, Event.TIMEOUT): State.TIMED_OUT,
    (State.CLAIMED, Event.CANCEL): State.CANCELLED,
}
CLOSED = (State.SUBMITTED, State.TIMED_OUT, State.CANCELLED, State.FAILED)
"""The states that nothing leads out of."""
TABLE: dict[tuple[State, Event], State] = {
    **_OPEN,
    **{(state, event): state for state in CLOSED for event in Event},
}
"""(state, event) → state."""

_KEPT: dict[State, Status] = {
    State.AVAILABLE: "available",
    State.CLAIMED: "claimed",
    State.SUBMITTED: "submitted",
    State.TIMED_OUT: "timed_out",
    State.CANCELLED: "cancelled",
    State.FAILED: "failed",
}


def is_open(task: Task) -> bool:
    """Whether anything can still happen to it."""
    return State(task.status) not in CLOSED


def is_overdue(task: Task, now: Reading) -> bool:
    """Whether ``time_out`` has to come before anything else is done with it."""
    return is_open(task) and now.real >= task.timeout_at


def is_live(task: Task, now: Reading) -> bool:
    """Whether a worker holds it now: claimed, the lease not lapsed, the timeout not come."""
    return (
        task.expires_watched is not None
        and now.watched < task.expires_watched
        and now.real < task.timeout_at
    )


def is_lapsed(task: Task, now: Reading) -> bool:
    """Whether the claim that is stored has run out."""
    return task.status == "claimed" and not is_live(task, now)


def claimable(task: Task, now: Reading) -> bool:
    """Whether a claim would be taken now."""
    return is_open(task) and not is_overdue(task, now) and not is_live(task, now)


def lease_end(task: Task, now: Reading) -> int | None:
    """When (real ms) the lease of a claim ends, which never outlives the timeout."""
    if task.expires_watched is None:
        return None
    return min(now.real_of(task.expires_watched), task.timeout_at)


def next_status(task: Task, event: Event) -> Status:
    """Give the status that the table leads to."""
    return _KEPT[TABLE[State(task.status), event]]
