"""How a switch ends: disarmed, or by a fire, which is never early and ends its generation."""

import msgspec
import pytest

from mcpl_heartbeat.times import utc_time
from mcpl_heartbeat.watch import switches
from mcpl_heartbeat.watch.clock import Gap
from mcpl_heartbeat.watch.rows import Checkpoint, Switch
from mcpl_heartbeat.watch.switches import State
from tests.watch.switching import (
    ADDRESS,
    ALL,
    NAMESPACE,
    SCOPE,
    START,
    armed,
    at,
    beaten,
    call,
    disarmed,
    fired,
    lease,
    plain,
)

HOUR = 3_600_000
LATE = at(60_000)
"""When a switch that was armed at ``START`` is due."""


@pytest.mark.requirement("watch.switch.never-early", "field.17.never-early")
def test_it_is_due_from_the_millisecond_of_its_deadline_and_not_before() -> None:
    switch = armed(at())
    assert not switches.is_due(switch, at(59_999))
    assert switches.is_due(switch, LATE)
    with pytest.raises(AssertionError):
        fired(switch, at(59_999))
    with pytest.raises(AssertionError):
        switches.beat(switch, NAMESPACE, call(), LATE)


@pytest.mark.requirement("watch.switch.fire")
def test_a_fire_frees_marks_and_tells_in_one_decision() -> None:
    switch = armed(at(), on_expiry=ALL, notify_address=f"{ADDRESS}/alerts", agent_id="worker-3")
    held = lease(expires_watched=START + HOUR)
    done = fired(switch, at(60_700), held, unscoped=2)
    assert done.switch == msgspec.structs.replace(
        switch, state="fired", fires=1, fired_generation=1, failed=True
    )
    assert done.leases == (msgspec.structs.replace(held, held=False),)
    assert done.notify == ("abcdefghijklmnop", "alerts")
    assert done.alert is not None
    assert plain(done.alert) == {
        "scope": SCOPE,
        "generation": 1,
        "agent_id": "worker-3",
        "last_beat_at": utc_time(START),
        "deadline": utc_time(START + 60_000),
        "noticed_at": utc_time(START + 60_700),
        "on_expiry": ALL,
        "released": [{"key": "db", "holder": "worker-1", "generation": 4}],
        "unreachable": 2,
        "marked_failed": True,
    }
    (entry,) = done.entries
    assert (entry.kind, entry.generation, entry.at) == ("fired", 1, START + 60_700)
    told = plain(done.alert)
    del told["scope"], told["generation"]
    assert entry.detail == {**told, "released_count": 1}


@pytest.mark.requirement("watch.switch.fire")
@pytest.mark.parametrize("actions", [["mark_failed"], ["release_leases"], ["queue_alert"]])
def test_only_what_was_asked_for_is_done(actions: list[str]) -> None:
    address = {"notify_address": ADDRESS} if actions == ["queue_alert"] else {}
    switch = armed(at(), on_expiry=actions, **address)
    done = fired(switch, LATE, lease(expires_watched=START + HOUR))
    assert bool(done.leases) == (actions == ["release_leases"])
    assert done.switch.failed == (actions == ["mark_failed"])
    assert (done.alert is not None) == (done.notify is not None) == (actions == ["queue_alert"])
    assert done.entries[0].detail["marked_failed"] == (actions == ["mark_failed"])


@pytest.mark.requirement("watch.switch.fire")
@pytest.mark.parametrize("private", [False, True])
def test_the_alert_says_where_to_resume_unless_that_is_private(private: bool) -> None:
    content = {"objective": "review", "next_action": "page 7", "step": "6 of 9"}
    mode = {"privacy_mode": "client_key"} if private else {}
    checkpoint = Checkpoint(
        namespace=NAMESPACE, scope=SCOPE, version=3, saved_at=START - 1, content=content | mode
    )
    switch = armed(at(), on_expiry=["queue_alert"], notify_address=ADDRESS)
    done = switches.fire(switch, (), 0, checkpoint, LATE)
    assert done.alert is not None
    point = content | {"saved_at": utc_time(START - 1)}
    assert plain(done.alert.resume) == (None if private else point)
    assert "resume" not in done.entries[0].detail


@pytest.mark.requirement("watch.switch.fire")
def test_leases_that_have_lapsed_are_not_said_to_be_released() -> None:
    switch = armed(at(), on_expiry=["release_leases"])
    ended = [lease(key="a"), lease(key="b", expires_watched=START + HOUR, held=False)]
    done = fired(switch, LATE, *ended, lease(key="c", expires_watched=START + 60_001))
    assert [each.key for each in done.leases] == ["c"]
    assert [each["key"] for each in done.entries[0].detail["released"]] == ["c"]


@pytest.mark.requirement("watch.switch.late-beat")
def test_a_late_beat_finds_the_fire_and_arms_the_next_generation() -> None:
    dead = fired(armed(at(), on_expiry=ALL, notify_address=ADDRESS), LATE).switch
    outcome = beaten(dead, LATE)
    assert outcome.switch is not None
    assert (outcome.switch.state, outcome.switch.generation) == ("armed", 2)
    assert (outcome.resolves, outcome.resolution) == (1, "recovered")
    assert (outcome.result.fired, outcome.result.fired_generation) == (True, 1)
    assert [(e.kind, e.generation) for e in outcome.entries] == [("recovered", 1), ("armed", 2)]
    assert "Generation 1 had fired" in outcome.result.notes[0]
    assert utc_time(START + 60_000) in outcome.result.notes[0]
    assert "released" in outcome.result.notes[0]
    again = beaten(outcome.switch, at(60_001))
    assert (again.result.fired, again.result.fired_generation) == (False, 1)
    assert (again.result.failed, again.resolves) == (True, None)


@pytest.mark.requirement("watch.switch.new-generation", "field.41.nothing-inherited")
@pytest.mark.parametrize("before", [State.FIRED, State.DISARMED])
def test_a_new_generation_inherits_no_times_no_label_and_no_settings(before: State) -> None:
    first = armed(
        at(), on_expiry=ALL, notify_address=ADDRESS, agent_id="worker-3", nudge_seconds=20
    )
    first = beaten(first, at(10), agent_id="worker-4").switch or first
    first = msgspec.structs.replace(first, nudged=True)
    later = at(HOUR)
    old = fired(first, later).switch if before is State.FIRED else disarmed(first).switch
    anew = beaten(old, later, expect_within_seconds=30).switch
    assert anew == Switch(
        namespace=NAMESPACE,
        scope=SCOPE,
        state="armed",
        generation=2,
        deadline_watched=START + HOUR + 30_000,
        window_ms=30_000,
        on_expiry=("mark_failed",),
        armed_at=START + HOUR,
        last_beat_at=START + HOUR,
        fires=int(before is State.FIRED),
        fired_generation=1 if before is State.FIRED else None,
        failed=before is State.FIRED,
    )


@pytest.mark.requirement("watch.switch.failed-mark")
def test_the_mark_is_the_last_deaths_and_no_beat_or_disarm_takes_it_back() -> None:
    dead = fired(armed(at()), LATE).switch
    assert disarmed(dead).result.failed is True
    alive = beaten(dead, LATE, on_expiry=["release_leases"])
    assert alive.result.failed is True
    assert alive.switch is not None
    assert fired(alive.switch, at(HOUR)).switch.failed is False


@pytest.mark.requirement("watch.switch.disarm")
def test_disarm_ends_the_watch_and_needs_no_window() -> None:
    outcome = disarmed(armed(at(), agent_id="worker-3"), agent_id="worker-4")
    assert outcome.switch is not None
    assert outcome.switch.state == "disarmed"
    assert not switches.is_due(outcome.switch, at(HOUR))
    result = outcome.result
    assert (result.deadline, result.seconds_left, result.on_expiry) == (None, None, ())
    assert (result.generation, result.fired, outcome.resolves) == (1, False, None)
    assert [(entry.kind, entry.detail) for entry in outcome.entries] == [
        ("disarmed", {"agent_id": "worker-4", "had_fired": False})
    ]


@pytest.mark.requirement("watch.switch.disarm", "field.40.disarm-resolves")
def test_disarm_after_a_fire_resolves_its_alert() -> None:
    dead = fired(armed(at(), on_expiry=ALL, notify_address=ADDRESS), LATE).switch
    outcome = disarmed(dead)
    assert (outcome.resolves, outcome.resolution) == (1, "disarmed")
    assert (outcome.result.fired, outcome.result.fired_generation) == (True, 1)
    assert outcome.result.state == "disarmed"
    assert outcome.entries[0].detail["had_fired"] is True
    again = disarmed(outcome.switch)
    assert (again.switch, again.entries, again.resolves) == (None, (), None)
    assert (again.result.state, again.result.fired) == ("disarmed", False)
    assert again.result.notes


@pytest.mark.requirement("watch.switch.disarm")
def test_a_beat_after_a_disarm_recovers_nothing() -> None:
    dead = fired(armed(at()), LATE).switch
    outcome = beaten(disarmed(dead).switch, at(HOUR))
    assert [(entry.kind, entry.generation) for entry in outcome.entries] == [("armed", 2)]
    assert (outcome.resolves, outcome.resolution, outcome.result.fired) == (None, None, False)
    assert outcome.result.fired_generation == 1


@pytest.mark.requirement("watch.gap.renewal-chance", "field.23.renewal-chance")
@pytest.mark.parametrize(
    ("left", "window", "then"),
    [
        (1, 2_000, 2_000),
        (1, 300_000, 60_000),
        (59_999, 300_000, 60_000),
        (60_000, 300_000, 60_000),
        (250_000, 300_000, 250_000),
        (0, 300_000, 0),
        (-5, 300_000, -5),
    ],
)
def test_after_a_gap_what_was_not_due_gets_the_time_for_one_beat(
    left: int, window: int, then: int
) -> None:
    gap = Gap(START, START + HOUR, 0)
    now = at(HOUR, cut=HOUR, gaps=(gap,))
    assert switches.after_gap(now.watched + left, window, now) == now.watched + then
