"""A worker that was woken and died before it claimed: the next one is woken for the same work."""

import pytest

from mcpl_heartbeat.storage.store.ports import Work
from tests.store.operations.rig import Agent, Rig
from tests.store.tasks.queue import claim, make

pytestmark = pytest.mark.requirement("tasks.push.reborn")

WINDOW = 30


def _arm(agent: Agent, scope: str = "s", **more: object) -> None:
    agent.heartbeat(scope=scope, expect_within_seconds=WINDOW, wake_on_tasks=True, **more)


def _die(rig: Rig) -> None:
    rig.advance(WINDOW)
    rig.sweep()


def _tell(rig: Rig, agent: Agent, token: str = "server") -> int | None:
    """Look, have the host take it, and say how much could be claimed."""
    rig.advance(0.5)
    work = rig.work(agent, token)
    if work is None:
        return None
    rig.woken(agent, work, taken=True, token=token)
    return work.claimable


def _woken(rig: Rig, agent: Agent) -> None:
    """Give it a task to be woken for, and wake it."""
    _arm(agent)
    make(agent)
    assert _tell(rig, agent) == 1
    assert _tell(rig, agent) is None


@pytest.mark.parametrize("swept", [True, False])
def test_the_next_generation_is_woken_once_for_what_still_waits(rig: Rig, swept: bool) -> None:
    agent = rig.agent()
    _woken(rig, agent)
    rig.advance(WINDOW)
    if swept:
        rig.sweep()
    assert _tell(rig, agent) is None, "nobody is there to be woken"
    _arm(agent)
    assert _tell(rig, agent) == 1
    for _ in range(10):
        rig.advance(10)
        _arm(agent)
        assert _tell(rig, agent) is None
    _die(rig)
    _arm(agent)
    assert _tell(rig, agent) == 1, "each time it dies"
    assert _tell(rig, agent) is None


def test_so_it_is_for_a_claim_that_had_lapsed(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="other", expect_within_seconds=86_400)
    id = make(agent, lease_seconds=30)
    claim(agent, id)
    rig.advance(29)
    _arm(agent)
    assert _tell(rig, agent) is None
    rig.advance(1)
    assert _tell(rig, agent) == 1
    _die(rig)
    _arm(agent)
    assert _tell(rig, agent) == 1


def test_an_agent_that_arms_anew_each_turn_is_not_woken_for_it(rig: Rig) -> None:
    agent = rig.agent()
    _woken(rig, agent)
    for _ in range(3):
        agent.heartbeat(disarm=True)
        rig.advance(1)
        _arm(agent)
        assert _tell(rig, agent) is None
    _die(rig)
    agent.heartbeat(disarm=True)
    _arm(agent)
    assert _tell(rig, agent) == 1, "it did die"
    agent.heartbeat(disarm=True)
    _arm(agent)
    assert _tell(rig, agent) is None, "and that was told"


def test_one_that_died_before_it_was_last_told_is_not_told_again(rig: Rig) -> None:
    agent = rig.agent()
    _arm(agent)
    _die(rig)
    _arm(agent)
    make(agent)
    assert _tell(rig, agent) == 1
    assert _tell(rig, agent) is None
    _arm(agent)
    assert _tell(rig, agent) is None


def test_without_anything_to_claim_the_wake_waits_until_there_is(rig: Rig) -> None:
    agent = rig.agent()
    _woken(rig, agent)
    (task,) = agent.list_agent_tasks().data
    _die(rig)
    claim(agent, task.id)
    _arm(agent)
    assert _tell(rig, agent) is None
    make(agent)
    assert _tell(rig, agent) == 1
    assert _tell(rig, agent) is None


def test_one_that_does_not_ask_for_it_any_more_is_not_woken(rig: Rig) -> None:
    agent = rig.agent()
    _woken(rig, agent)
    _die(rig)
    agent.heartbeat(expect_within_seconds=WINDOW)
    assert _tell(rig, agent) is None
    _arm(agent)
    assert _tell(rig, agent) == 1


def test_another_worker_of_the_namespace_that_lives_on_makes_no_difference(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="lives", expect_within_seconds=86_400, wake_on_tasks=True)
    _woken(rig, agent)
    _die(rig)
    assert _tell(rig, agent) is None
    _arm(agent)
    assert _tell(rig, agent) == 1
    assert _tell(rig, agent) is None


def test_two_that_died_and_come_back_together_are_one_wake(rig: Rig) -> None:
    agent = rig.agent()
    _arm(agent, "x")
    _woken(rig, agent)
    _die(rig)
    _arm(agent, "x")
    _arm(agent)
    assert _tell(rig, agent) == 1
    assert _tell(rig, agent) is None


def test_one_server_of_several_wakes_it_and_a_late_word_of_the_wake_before_does_not_count(
    rig: Rig,
) -> None:
    agent = rig.agent()
    _arm(agent)
    make(agent)
    rig.advance(0.5)
    first = rig.work(agent, "one")
    assert first is not None
    rig.woken(agent, first, taken=False, token="one")
    _die(rig)
    _arm(agent)
    rig.woken(agent, first, taken=True, token="one")
    second: Work | None = rig.work(agent, "two")
    assert second is not None, "the host took it for the worker that is dead"
    assert second.number == first.number + 1
    assert rig.work(agent, "one") is None
    rig.woken(agent, second, taken=True, token="two")
    assert _tell(rig, agent, "one") is None
    assert _tell(rig, agent, "two") is None


def test_one_that_the_host_refuses_is_offered_under_its_number_until_it_is_taken(rig: Rig) -> None:
    agent = rig.agent()
    _woken(rig, agent)
    _die(rig)
    _arm(agent)
    numbers = set()
    for token in ("one", "two", "one"):
        rig.advance(5)
        work = rig.work(agent, token)
        assert work is not None
        numbers.add(work.number)
        rig.woken(agent, work, taken=False, token=token)
    assert numbers == {2}
    assert _tell(rig, agent) == 1
    assert _tell(rig, agent) is None
