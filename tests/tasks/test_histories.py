"""A task over long histories, beside the plainest model of it: what holds whatever is called."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.tasks import machine
from mcpl_heartbeat.watch.failures import Failure
from tests.tasks.working import (
    START,
    World,
    beating,
    cancelling,
    claiming,
    guarding,
    releasing,
    submitting,
)

LEASE_S, TIMEOUT_S = 30, 120

Step = tuple[str, Any]

epochs = st.integers(1, 6)
# Moments on and beside the deadlines come often.
spans = st.sampled_from([1, 29_999, 30_000, 15_000]) | st.integers(0, 40_000)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.sampled_from([None, "k1", "k2"])),
        st.tuples(st.just("heartbeat"), epochs),
        st.tuples(st.just("submit"), epochs),
        st.tuples(st.just("release"), epochs),
        st.tuples(st.just("fail"), epochs),
        st.tuples(st.just("pass"), spans),
        st.tuples(st.just("fire"), st.none()),
        st.tuples(st.just("gap"), st.integers(1, 50_000)),
        st.tuples(st.just("step"), st.sampled_from([-3_600_000, 3_600_000])),
        st.tuples(st.just("cancel"), st.sampled_from([False, False, False, True])),
    ),
    max_size=30,
)


class Model:
    """What a task is, said in as few words as can be: who holds it until when."""

    def __init__(self) -> None:
        self.epoch = 1
        self.end: str | None = None
        self.watched_until: int | None = None
        self.key: str | None = None

    def live(self, world: World) -> bool:
        return self.watched_until is not None and world.now.watched < self.watched_until

    def expect(self, name: str, value: Any, world: World) -> str:
        """Give what is to be answered, and remember what it does."""
        if self.end is None and world.now.real >= START + TIMEOUT_S * 1000:
            self.end, self.watched_until = "timed_out", None
        lease = world.now.watched + LEASE_S * 1000
        if self.end is not None:
            again = name == "submit" and self.end == "submitted" and value == self.epoch
            return "taken" if again else "task_closed"
        if name == "claim":
            if self.live(world):
                return "taken" if value is not None and value == self.key else "already_claimed"
            self.epoch, self.watched_until, self.key = self.epoch + 1, lease, value
            return "taken"
        if value != self.epoch:
            return "stale_epoch"
        if not self.live(world):
            return "lease_expired"
        if name == "heartbeat":
            self.watched_until = lease
        else:
            self.watched_until = None
            self.end = {"submit": "submitted", "fail": "failed"}.get(name)
        return "taken"


CALLS: dict[str, Callable[[World, Any], machine.Change]] = {
    "claim": lambda world, key: world.call(
        machine.claim,
        claiming(guard=guarding(), **({} if key is None else {"idempotency_key": key})),
    ),
    "heartbeat": lambda world, epoch: world.call(machine.heartbeat, beating(epoch)),
    "submit": lambda world, epoch: world.call(machine.submit, submitting(epoch)),
    "release": lambda world, epoch: world.call(machine.release, releasing(epoch)),
    "fail": lambda world, epoch: world.call(
        machine.release, releasing(epoch, final=True, reason="r")
    ),
}


def run(history: list[Step], sweeps: list[bool]) -> tuple[World, list[str]]:
    world = World(lease_seconds=LEASE_S, timeout_seconds=TIMEOUT_S)
    model = Model()
    answers = []
    for (name, value), sweep in zip(history, sweeps, strict=True):
        if sweep:
            world.sweep()
        match name:
            case "pass":
                world.pass_ms(value)
            case "gap":
                world.gap(value)
            case "step":
                world.step_wall(value)
            case "fire":
                world.fire()
                model.watched_until = None
            case "cancel":
                if value:
                    world.call(machine.cancel, cancelling())
                    model.expect("cancel", None, world)
                    model.end = model.end or "cancelled"
                    model.watched_until = None
            case _:
                expected = model.expect(name, value, world)
                result = CALLS[name](world, value).result
                answer = result.code if isinstance(result, Failure) else "taken"
                assert answer == expected, (name, value)
                answers.append(str(answer))
        holds(world, model)
    return world, answers


def holds(world: World, model: Model) -> None:
    """What is true at every moment."""
    task = world.task
    assert task.epoch == model.epoch
    assert (task.status == "claimed") == (task.expires_watched is not None)
    assert task.timeout_at == START + TIMEOUT_S * 1000
    held = [epoch for epoch in world.epochs if epoch.ended_at is None]
    assert len(held) == (task.status == "claimed"), "at most one holder an epoch, and it is told"
    assert [epoch.epoch for epoch in world.epochs] == list(range(2, task.epoch + 1))
    for epoch, later in zip(world.epochs, world.epochs[1:], strict=False):
        assert epoch.ended_at is not None
        assert epoch.claimed_at <= epoch.ended_at <= later.claimed_at
    if task.guard:
        assert task.status == "claimed"


@pytest.mark.requirement("tasks.history.model")
@given(steps, st.data())
def test_every_answer_is_the_models_and_what_must_hold_holds(
    history: list[Step], data: st.DataObject
) -> None:
    sweeps = data.draw(
        st.lists(st.booleans(), min_size=len(history), max_size=len(history)), "sweeps"
    )
    run(history, sweeps)


@pytest.mark.requirement("tasks.history.sweeps")
@given(steps)
def test_how_often_is_swept_changes_no_answer_and_no_audit(history: list[Step]) -> None:
    always, answers = run(history, [True] * len(history))
    never, others = run(history, [False] * len(history))
    assert answers == others
    always.sweep()
    never.sweep()
    assert always.epochs == never.epochs
    assert always.task.status == never.task.status
    assert always.reviews == never.reviews <= 1


@pytest.mark.requirement("tasks.history.one-end")
@given(steps)
def test_a_task_ends_once(history: list[Step]) -> None:
    world, _ = run(history, [True] * len(history))
    world.pass_ms(TIMEOUT_S * 1000)
    world.sweep()
    ended = world.task
    assert not machine.is_open(ended)
    for name, call in CALLS.items():
        for value in range(1, 7):
            call(world, str(value) if name == "claim" else value)
    world.fire()
    world.sweep()
    assert world.task == ended


@pytest.mark.requirement("tasks.history.model")
def test_the_model_can_disagree() -> None:
    world = World(lease_seconds=LEASE_S, timeout_seconds=TIMEOUT_S)
    model = Model()
    model.expect("claim", None, world)
    CALLS["claim"](world, None)
    world.task = msgspec.structs.replace(world.task, epoch=3)
    with pytest.raises(AssertionError):
        holds(world, model)
