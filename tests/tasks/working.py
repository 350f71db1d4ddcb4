"""What the tests of tasks share: moments, calls, and a world in which time passes."""

from typing import Any

import msgspec
from msgspec import Raw

from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.tasks.arguments import (
    ClaimAgentTaskArguments,
    CreateAgentTaskArguments,
    FieldArguments,
    GuardArguments,
    HeartbeatAgentTaskArguments,
    ReleaseAgentTaskArguments,
    SubmitAgentTaskArguments,
)
from mcpl_heartbeat.tasks.machine import Change, State
from mcpl_heartbeat.tasks.rows import Epoch, Task
from mcpl_heartbeat.watch.clock import Gap, Reading
from mcpl_heartbeat.watch.failures import Failure

START = 1_790_000_000_000
"""A real time (ms)."""
NAMESPACE = "ns"
CREATOR = "abcdefghijklmnop"
ID = "11111111-1111-4111-8111-111111111111"
LEASE = 300_000
DAY = 86_400_000
OUTPUTS = Raw(b'{"total": {"value": 12.5, "confidence": 0.9}}')


def at(ms: int = 0, *, cut: int = 0, shift: int = 0, gaps: tuple[Gap, ...] = ()) -> Reading:
    """The store's time ``ms`` after ``START``."""
    return Reading(START + ms, cut, shift, gaps)


def creating(**arguments: Any) -> CreateAgentTaskArguments:
    contract = [
        FieldArguments(key="total", data_type="number"),
        FieldArguments(key="remark", data_type="string", required=False),
    ]
    return CreateAgentTaskArguments(
        **{"input_snapshot": Raw(b'{"page": 1.50}'), "output_contract": contract, **arguments}
    )


def task(now: Reading | None = None, **arguments: Any) -> Task:
    """A task that was just created."""
    return machine.create(NAMESPACE, CREATOR, ID, creating(**arguments), now or at())


def claiming(**arguments: Any) -> ClaimAgentTaskArguments:
    return ClaimAgentTaskArguments(task_id=ID, **arguments)


def beating(epoch: int = 2, **arguments: Any) -> HeartbeatAgentTaskArguments:
    return HeartbeatAgentTaskArguments(task_id=ID, execution_epoch=epoch, **arguments)


def submitting(epoch: int = 2, **arguments: Any) -> SubmitAgentTaskArguments:
    return SubmitAgentTaskArguments(
        **{"task_id": ID, "execution_epoch": epoch, "outputs": OUTPUTS, **arguments}
    )


def releasing(epoch: int = 2, **arguments: Any) -> ReleaseAgentTaskArguments:
    return ReleaseAgentTaskArguments(task_id=ID, execution_epoch=epoch, **arguments)


def cancelling(**arguments: Any) -> CreateAgentTaskArguments:
    return CreateAgentTaskArguments(cancel_task_id=ID, **arguments)


def guarding(**arguments: Any) -> GuardArguments:
    return GuardArguments(**arguments)


def kept(change: Change) -> Task:
    """The row that a call that was taken leaves."""
    assert not isinstance(change.result, Failure), change.result
    assert change.task is not None
    return change.task


def claimed(before: Task | None = None, now: Reading | None = None, **arguments: Any) -> Task:
    """A task that is held."""
    return kept(machine.claim(before or task(), claiming(**arguments), now or at()))


def noted(before: Task, note: str = "page 7 of 12", ms: int = 1_000) -> Task:
    """The same task after a heartbeat that left a note."""
    return kept(machine.heartbeat(before, beating(before.epoch, note=note), at(ms)))


def fired(held: Task, deadline: int, noticed: int) -> machine.GivenBack:
    """What a switch of that deadline does, noticed at that time; both in ms after ``START``."""
    return machine.give_back(held, at(deadline).watched, at(noticed))


def refused(change: Change, code: str) -> Failure:
    """The failure of a call that changed nothing at all."""
    assert isinstance(change.result, Failure), change.result
    assert change == Change(result=change.result)
    assert change.result.code == code, change.result
    return change.result


def in_state(state: State) -> Task:
    """A task in each of the states."""
    match state:
        case State.AVAILABLE:
            return task()
        case State.CLAIMED:
            return claimed(agent_id="worker-1")
        case State.SUBMITTED:
            return kept(machine.submit(claimed(), submitting(), at(1_000)))
        case State.TIMED_OUT:
            return machine.time_out(task(), at(DAY), "m").task
        case State.CANCELLED:
            return kept(machine.cancel(task(), cancelling(), at(1_000)))
        case State.FAILED:
            over = releasing(final=True, reason="no such page")
            return kept(machine.release(claimed(), over, at(1_000)))


def plain(value: object) -> Any:
    """A Struct as it reads in JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


class World:
    """One task and the time around it, carried on as a store does: what is due comes first."""

    def __init__(self, **arguments: Any) -> None:
        self.now = at()
        self.task = task(**arguments)
        self.epochs: list[Epoch] = []
        self.reviews = 0

    def pass_ms(self, ms: int) -> None:
        self.now = msgspec.structs.replace(self.now, real=self.now.real + ms)

    def gap(self, ms: int) -> None:
        """Nobody watches for ``ms``."""
        now = self.now
        gap = Gap(now.real, now.real + ms, now.cut)
        self.now = Reading(gap.ended, now.cut + ms, now.shift, (*now.gaps, gap))

    def step_wall(self, ms: int) -> None:
        self.now = msgspec.structs.replace(self.now, shift=self.now.shift + ms)

    def sweep(self) -> None:
        if machine.is_overdue(self.task, self.now):
            before = self.task
            done = machine.time_out(before, self.now, "mail")
            self._end(before, done.ends, done.ended_at)
            self.task = done.task
            self.reviews += done.review is not None

    def fire(self) -> None:
        """A switch fires: of the claim's scope, or its guard.

        Its deadline lies after the claim: what was due by then had fired before.
        """
        self.pass_ms(1)
        self.sweep()
        if self.task.status == "claimed":
            before = self.task
            done = machine.give_back(before, self.now.watched, self.now)
            self._end(before, done.ends, done.ended_at)
            self.task = done.task

    def call(self, function: Any, arguments: Any) -> Change:
        self.sweep()
        before = self.task
        change: Change = function(before, arguments, self.now)
        self._end(before, change.ends, change.ended_at)
        self.task = change.task or before
        if change.begins:
            self.epochs.append(
                Epoch(
                    namespace=NAMESPACE,
                    task=ID,
                    epoch=self.task.epoch,
                    agent_id=self.task.agent_id,
                    claimed_at=self.now.real,
                )
            )
        if change.beat:
            last = self.epochs[-1]
            self.epochs[-1] = msgspec.structs.replace(last, beats=last.beats + 1)
        return change

    def _end(self, before: Task, cause: Any, ended_at: int | None) -> None:
        assert (cause is None) == (ended_at is None)
        if cause is None:
            return
        last = self.epochs[-1]
        assert last.epoch == before.epoch
        assert last.ended_at is None
        self.epochs[-1] = msgspec.structs.replace(last, ended_at=ended_at, cause=cause)
