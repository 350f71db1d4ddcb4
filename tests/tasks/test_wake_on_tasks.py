"""The standing option of a beat: claimable tasks wake the agent while its switch is armed."""

import pytest

from mcpl_heartbeat.watch import beats, switches, texts
from tests.watch.switching import armed, at, beaten, disarmed, fired


@pytest.mark.requirement("tasks.push.wake-option")
def test_it_is_off_until_asked_for_and_stays_as_it_is_until_told_otherwise() -> None:
    switch = armed(at())
    assert switch.wake_on_tasks is False
    steps = [({"wake_on_tasks": True}, True), ({}, True), ({"wake_on_tasks": False}, False)]
    for arguments, expected in [*steps, ({}, False)]:
        outcome = beaten(switch, at(1_000), **arguments)
        assert outcome.switch is not None
        switch = outcome.switch
        assert switch.wake_on_tasks is expected
        assert outcome.result.wake_on_tasks is expected
        assert switches.view(switch, at(1_000)).wake_on_tasks is expected


@pytest.mark.requirement("tasks.push.wake-option")
def test_a_new_generation_does_not_take_it_over() -> None:
    before = armed(at(), wake_on_tasks=True)
    dead = fired(before, at(60_000)).switch
    for ended in (dead, disarmed(before).switch):
        after = beaten(ended, at(61_000)).switch
        assert after is not None
        assert after.wake_on_tasks is False


@pytest.mark.requirement("tasks.push.wake-option")
def test_with_disarm_nothing_wakes() -> None:
    outcome = disarmed(armed(at(), wake_on_tasks=True), wake_on_tasks=True)
    assert outcome.result.wake_on_tasks is False
    assert "wake_on_tasks had no effect" in outcome.result.notes[0]


@pytest.mark.requirement("tasks.push.wake-option")
def test_the_reply_says_so_in_words() -> None:
    said = texts.text_of("heartbeat", beaten(None, at(), wake_on_tasks=True).result)
    assert "you are woken when agent tasks can be claimed" in said
    assert "tasks" not in texts.text_of("heartbeat", beaten(None, at()).result)


@pytest.mark.requirement("tasks.push.told")
def test_where_nothing_can_wake_the_agent_the_reply_says_so() -> None:
    result = beaten(None, at(), wake_on_tasks=True).result
    (note,) = beats.with_delivery(result, alert=None, nudge=False, work=False).notes
    assert "wake_on_tasks" in note
    assert "list_agent_tasks" in note
    for work in (True, None):
        assert beats.with_delivery(result, alert=None, nudge=False, work=work) == result
    bare = beaten(None, at()).result
    assert beats.with_delivery(bare, alert=None, nudge=False, work=False) == bare
