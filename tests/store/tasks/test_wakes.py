"""Who is woken when claimable work appears, and how often."""

import pytest

from tests.store.operations.rig import Agent, Rig
from tests.store.tasks.queue import beat, claim, get, make, release, submit

pytestmark = pytest.mark.requirement("tasks.push.once")


def _awaiting(rig: Rig, name: str = "a") -> Agent:
    agent = rig.agent(name)
    agent.heartbeat(expect_within_seconds=86_400, wake_on_tasks=True)
    return agent


def _tell(rig: Rig, agent: Agent) -> int | None:
    """Look, have the host take it, and say how much could be claimed."""
    rig.advance(0.5)
    work = rig.work(agent)
    if work is None:
        return None
    rig.woken(agent, work, taken=True)
    return work.claimable


def test_nothing_is_told_to_one_who_did_not_ask_for_it(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(expect_within_seconds=86_400)
    make(agent)
    assert _tell(rig, agent) is None
    agent.heartbeat(expect_within_seconds=86_400, wake_on_tasks=True)
    assert _tell(rig, agent) == 1
    make(agent)
    agent.heartbeat(expect_within_seconds=86_400, wake_on_tasks=False)
    assert _tell(rig, agent) is None


@pytest.mark.parametrize("end", ["disarm", "late"])
def test_nor_after_the_switch_is_no_longer_armed(rig: Rig, end: str) -> None:
    agent = rig.agent()
    agent.heartbeat(wake_on_tasks=True)
    if end == "disarm":
        agent.heartbeat(disarm=True)
    else:
        rig.advance(30)
    make(agent)
    assert _tell(rig, agent) is None


def test_work_is_told_once_and_further_work_again(rig: Rig) -> None:
    agent = _awaiting(rig)
    assert _tell(rig, agent) is None
    make(agent)
    make(agent)
    assert _tell(rig, agent) == 2
    assert _tell(rig, agent) is None
    rig.advance(3600)
    assert _tell(rig, agent) is None
    make(agent)
    assert _tell(rig, agent) == 3


def test_what_is_released_given_back_or_lapsed_appears_anew(rig: Rig) -> None:
    agent = _awaiting(rig)
    id = make(agent)
    assert _tell(rig, agent) == 1
    release(agent, id, claim(agent, id))
    assert _tell(rig, agent) == 1
    agent.heartbeat(scope="x", expect_within_seconds=10)
    claim(agent, id, scope="x")
    rig.advance(10)
    rig.sweep()
    assert _tell(rig, agent) == 1
    epoch = claim(agent, id)
    rig.advance(299)
    assert _tell(rig, agent) is None
    rig.advance(0.5)
    assert _tell(rig, agent) == 1, "its lease ran out just now"
    assert _tell(rig, agent) is None
    rig.advance(600)
    assert _tell(rig, agent) is None
    assert epoch == 4


def test_what_was_taken_meanwhile_is_not_told(rig: Rig) -> None:
    agent = _awaiting(rig)
    id = make(agent)
    claim(agent, id)
    assert _tell(rig, agent) is None
    beat(agent, id, 2)
    submit(agent, id, 2)
    overdue = make(agent, timeout_seconds=300)
    rig.advance(300)
    assert _tell(rig, agent) is None
    assert overdue


def test_work_that_comes_in_the_very_millisecond_of_a_look_is_told_by_the_next(rig: Rig) -> None:
    agent = _awaiting(rig)
    make(agent)
    rig.advance(0.5)
    work = rig.work(agent)
    assert work is not None
    make(agent)
    rig.woken(agent, work, taken=True)
    assert _tell(rig, agent) == 2
    assert _tell(rig, agent) is None


def test_one_server_at_a_time_pushes_it_and_the_number_stays(rig: Rig) -> None:
    agent = _awaiting(rig)
    make(agent)
    rig.advance(0.5)
    first = rig.work(agent, "one")
    assert first is not None
    assert rig.work(agent, "two") is None
    again = rig.work(agent, "one")
    assert again is not None
    assert (again.number, again.of) == (first.number, first.of)
    rig.woken(agent, first, taken=False, token="one")
    second = rig.work(agent, "two")
    assert second is not None
    assert second.number == first.number
    rig.advance(60)
    third = rig.work(agent, "three")
    assert third is not None, "whoever does not say what became of it loses it in a minute"
    rig.woken(agent, third, taken=True, token="three")
    assert rig.work(agent, "two") is None
    make(agent)
    rig.advance(0.5)
    later = rig.work(agent, "two")
    assert later is not None
    assert later.number == first.number + 1
    rig.woken(agent, first, taken=True, token="one")
    assert rig.work(agent, "two") is not None, "a word on the wake before changes nothing"


def test_a_wake_tells_of_its_own_namespace_only(rig: Rig) -> None:
    one, other = _awaiting(rig, "a"), _awaiting(rig, "b")
    make(one)
    assert _tell(rig, other) is None
    assert _tell(rig, one) == 1
    make(other)
    rig.advance(0.5)
    theirs = rig.work(other)
    assert theirs is not None
    assert theirs.of not in other.namespace


def test_with_nothing_new_a_look_writes_nothing(rig: Rig) -> None:
    agent = _awaiting(rig)
    make(agent)
    _tell(rig, agent)
    rig.advance(0.5)
    rig.statements.clear()
    assert rig.work(agent) is None
    assert not [each for each in rig.statements if each.startswith(("UPDATE", "INSERT"))]
    idle = rig.agent("c")
    rig.statements.clear()
    assert rig.work(idle) is None
    asked = [each for each in rig.statements if not each.startswith(("BEGIN", "SELECT pg_"))]
    assert len(asked) == 1


def test_a_fire_tells_nothing_of_a_claim_that_had_lapsed_and_was_told_then(rig: Rig) -> None:
    agent = _awaiting(rig)
    id = make(agent, lease_seconds=30)
    assert _tell(rig, agent) == 1
    agent.heartbeat(scope="sx", expect_within_seconds=42)
    claim(agent, id, scope="sx")
    rig.advance(30)
    assert _tell(rig, agent) == 1
    rig.advance(12)
    assert rig.sweep().fired == 1
    assert _tell(rig, agent) is None


@pytest.mark.parametrize("swept_after", [0, 20, 200])
def test_what_a_fire_gave_back_is_told_once_though_the_fire_was_noticed_late(
    rig: Rig, swept_after: float
) -> None:
    """It was lost at the deadline, which lies before the last wake; nobody saw that till then."""
    agent = _awaiting(rig)
    id = make(agent, lease_seconds=100)
    agent.heartbeat(scope="x", expect_within_seconds=10)
    claim(agent, id, scope="x")
    deadline = rig.now.tell(rig.real + 10_000)
    rig.advance(15)
    make(agent)
    assert _tell(rig, agent) == 1
    rig.advance(swept_after)
    lapsed = swept_after > 100
    if lapsed:
        assert _tell(rig, agent) == 2, "its lease has run out, whatever else took it before"
    assert rig.sweep().fired == 1
    assert _tell(rig, agent) == (None if lapsed else 2)
    assert _tell(rig, agent) is None
    assert get(agent, id).epochs[0].ended_at == deadline
