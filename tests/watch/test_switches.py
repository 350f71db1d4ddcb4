"""The life of a switch: its table, and what each pair of it does to the row and the reply."""

import msgspec
import pytest
from msgspec import UNSET

from mcpl_heartbeat.times import utc_time
from mcpl_heartbeat.watch import beats, switches
from mcpl_heartbeat.watch.rows import Switch
from mcpl_heartbeat.watch.switches import TABLE, Beaten, Event, State
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
    disarming,
    fired,
    plain,
    refused,
)

HOUR = 3_600_000
LATE = at(60_000)
"""When a switch that was armed at ``START`` is due."""


def in_state(state: State) -> Switch | None:
    match state:
        case State.UNARMED:
            return None
        case State.ARMED:
            return armed(at())
        case State.FIRED:
            return fired(armed(at()), LATE).switch
        case State.DISARMED:
            return disarmed(armed(at())).switch


@pytest.mark.requirement("watch.switch.table")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_a_switch_moves_as_its_table_says(state: State, event: Event) -> None:
    before = in_state(state)
    assert switches.state_of(before) is state
    later = at(30_000) if state is State.ARMED else LATE
    if event is Event.EXPIRE:
        due = before is not None and switches.is_due(before, LATE)
        assert due == (state is State.ARMED)
        after = fired(before, LATE).switch if due and before is not None else before
    else:
        arguments = call() if event is Event.BEAT else disarming()
        outcome = switches.beat(before, NAMESPACE, arguments, later)
        assert isinstance(outcome, Beaten)
        after = before if outcome.switch is None else outcome.switch
        assert outcome.result.state == TABLE[state, event].value
    assert switches.state_of(after) is TABLE[state, event]


@pytest.mark.requirement("watch.switch.table")
def test_the_table_is_whole_and_only_an_armed_switch_fires() -> None:
    assert set(TABLE) == {(state, event) for state in State for event in Event}
    assert [state for state in State if TABLE[state, Event.EXPIRE] is State.FIRED] == [
        State.ARMED,
        State.FIRED,
    ]
    assert State.UNARMED not in {TABLE[state, Event.BEAT] for state in State}


@pytest.mark.requirement("watch.switch.first-beat")
def test_the_first_beat_arms_and_tells_all_a_client_without_a_clock_needs() -> None:
    outcome = beaten(None, at(), agent_id="worker-3")
    assert outcome.switch == Switch(
        namespace=NAMESPACE,
        scope=SCOPE,
        state="armed",
        generation=1,
        deadline_watched=START + 60_000,
        window_ms=60_000,
        on_expiry=("mark_failed",),
        agent_id="worker-3",
        armed_at=START,
        last_beat_at=START,
    )
    result = outcome.result
    assert result.server_time == utc_time(START)
    assert result.deadline == utc_time(START + 60_000)
    assert result.seconds_left == 60
    assert result.expect_within_seconds == 60
    assert result.on_expiry == ("mark_failed",)
    assert (result.state, result.generation) == ("armed", 1)
    assert (result.fired, result.fired_generation, result.failed) == (False, None, False)
    assert result.warnings == result.notes == ()
    assert [(entry.kind, entry.generation) for entry in outcome.entries] == [("armed", 1)]
    assert outcome.entries[0].detail == {
        "agent_id": "worker-3",
        "expect_within_seconds": 60,
        "on_expiry": ["mark_failed"],
        "notify_address": None,
    }


@pytest.mark.requirement("watch.switch.beat-in-time")
def test_a_beat_in_time_moves_the_deadline_and_writes_no_journal() -> None:
    before = armed(at(), agent_id="worker-3")
    outcome = beaten(before, at(59_999), expect_within_seconds=300)
    after = outcome.switch
    assert after is not None
    assert after.deadline_watched == START + 59_999 + 300_000
    assert (after.generation, after.beats, after.window_ms) == (1, 2, 300_000)
    assert (after.armed_at, after.last_beat_at) == (START, START + 59_999)
    assert after.agent_id == "worker-3"
    assert outcome.entries == ()
    assert outcome.resolves is None
    assert outcome.resolution is None
    assert outcome.result.fired is False


@pytest.mark.requirement("field.16.beat-cancels")
def test_a_beat_that_came_before_the_sweep_has_cancelled_the_fire() -> None:
    switch = beaten(armed(at()), at(59_999)).switch
    assert switch is not None
    assert not switches.is_due(switch, LATE)


@pytest.mark.requirement("watch.switch.on-expiry")
def test_an_omitted_on_expiry_keeps_this_generations_list() -> None:
    switch = armed(at(), on_expiry=ALL, notify_address=f"{ADDRESS}/alerts")
    kept = beaten(switch, at(1)).switch
    assert kept is not None
    assert (kept.on_expiry, kept.notify) == (tuple(ALL), f"{ADDRESS}/alerts")
    replaced = beaten(kept, at(2), on_expiry=["release_leases"]).switch
    assert replaced is not None
    assert (replaced.on_expiry, replaced.notify) == (("release_leases",), None)


@pytest.mark.requirement("watch.switch.on-expiry")
def test_actions_are_kept_in_the_order_in_which_they_are_done() -> None:
    outcome = beaten(None, at(), on_expiry=ALL[::-1], notify_address=ADDRESS)
    assert outcome.result.on_expiry == tuple(ALL)
    assert outcome.result.notify_address == f"{ADDRESS}/inbox"


@pytest.mark.requirement("watch.switch.notify-address")
def test_an_address_alone_names_another_box_for_an_alert_that_is_in_force() -> None:
    switch = armed(at(), on_expiry=["queue_alert"], notify_address=ADDRESS)
    moved = beaten(switch, at(1), notify_address=f"{ADDRESS}/night").switch
    assert moved is not None
    assert moved.notify == f"{ADDRESS}/night"
    assert moved.on_expiry == ("queue_alert",)


@pytest.mark.requirement("watch.switch.notify-address")
@pytest.mark.parametrize("before", [State.UNARMED, State.FIRED, State.DISARMED])
def test_what_has_no_effect_or_lacks_its_address_is_refused(before: State) -> None:
    switch = in_state(before)
    later = at(90_000)
    assert refused(switch, later, on_expiry=["queue_alert"])[0].startswith("notify_address: ")
    assert refused(switch, later, notify_address=ADDRESS)[0].startswith("notify_address: ")
    without = {"on_expiry": ["mark_failed"], "notify_address": ADDRESS}
    assert "notify_address: " in refused(switch, later, **without)[0]


@pytest.mark.requirement("watch.switch.notify-address")
def test_a_list_with_queue_alert_needs_its_address_in_the_same_call() -> None:
    switch = armed(at(), on_expiry=["queue_alert"], notify_address=ADDRESS)
    assert len(refused(switch, at(1), on_expiry=["queue_alert"])) == 1


@pytest.mark.requirement("watch.switch.refused-whole")
def test_every_problem_of_a_beat_is_named_at_once() -> None:
    problems = refused(None, at(), nudge_seconds=60, on_expiry=["queue_alert"])
    assert len(problems) == 2
    assert "notify_address" in problems[0]
    assert "nudge_seconds" in problems[1]
    assert refused(None, at(), expect_within_seconds=UNSET)[0].startswith("expect_within_seconds: ")


@pytest.mark.requirement("watch.switch.disarm", "field.29.unarmed-never-fires")
def test_disarm_where_nothing_was_armed_says_so_and_keeps_nothing() -> None:
    outcome = disarmed(None)
    assert (outcome.switch, outcome.entries) == (None, ())
    assert (outcome.result.state, outcome.result.generation) == ("unarmed", 0)
    assert "nothing to disarm" in outcome.result.notes[0]


@pytest.mark.requirement("watch.switch.disarm")
@pytest.mark.parametrize("before", State)
def test_what_is_sent_with_disarm_in_vain_is_said(before: State) -> None:
    sent = {"on_expiry": ["queue_alert"], "notify_address": ADDRESS, "nudge_seconds": 7}
    for names in ({"nudge_seconds"}, {"on_expiry", "nudge_seconds"}, set(sent)):
        notes = " ".join(disarmed(in_state(before), **{n: sent[n] for n in names}).result.notes)
        assert all((name in notes) == (name in names) for name in sent)


@pytest.mark.requirement("watch.switch.nudge")
def test_a_nudge_is_kept_over_beats_and_asked_for_anew_by_each() -> None:
    switch = armed(at(), nudge_seconds=20)
    assert (switch.nudge_ms, switch.nudged) == (20_000, False)
    kept = beaten(msgspec.structs.replace(switch, nudged=True), at(1))
    assert kept.switch is not None
    assert (kept.switch.nudge_ms, kept.switch.nudged) == (20_000, False)
    assert kept.result.nudge_seconds == 20
    changed = beaten(kept.switch, at(2), nudge_seconds=59).switch
    assert changed is not None
    assert changed.nudge_ms == 59_000


@pytest.mark.requirement("watch.switch.nudge")
@pytest.mark.parametrize("window", [10, 20])
def test_a_kept_nudge_that_no_longer_fits_is_dropped_and_that_is_said(window: int) -> None:
    switch = armed(at(), nudge_seconds=20)
    outcome = beaten(switch, at(1), expect_within_seconds=window)
    assert outcome.switch is not None
    assert outcome.switch.nudge_ms is None
    assert outcome.result.nudge_seconds is None
    assert "nudge" in outcome.result.notes[0]
    assert beaten(switch, at(1), expect_within_seconds=21).result.notes == ()


@pytest.mark.requirement("watch.switch.nudge")
def test_a_nudge_that_does_not_fit_its_own_call_is_refused() -> None:
    assert "nudge_seconds: " in refused(None, at(), nudge_seconds=60)[0]
    assert "nudge_seconds: " in refused(armed(at()), at(1), nudge_seconds=61)[0]


@pytest.mark.requirement("watch.switch.two-instances", "field.50.two-instances")
def test_two_labels_that_take_turns_are_warned_of_by_name() -> None:
    switch: Switch | None = None
    warned = []
    for n, label in enumerate(["a1", "b2", "a1", "b2"]):
        outcome = beaten(switch, at(n * 50_000), agent_id=label)
        switch = outcome.switch
        warned.append(outcome.result.warnings)
    assert warned[:2] == [(), ()]
    for each in warned[2:]:
        assert each is not UNSET
        assert "'a1'" in each[0]
        assert "'b2'" in each[0]
        assert "scope of its own" in each[0]


@pytest.mark.requirement("watch.switch.two-instances")
def test_a_third_label_is_not_said_to_take_turns() -> None:
    switch = armed(at(), agent_id="a")
    for label in ("b", "c"):
        outcome = beaten(switch, at(1_000), agent_id=label)
        assert outcome.switch is not None
        switch = outcome.switch
    assert outcome.result.warnings is not UNSET
    assert outcome.result.warnings[0].startswith(
        "The label of who beats this scope has changed twice of late, now from 'b' to 'c': if "
    )


@pytest.mark.requirement("watch.switch.two-instances")
@pytest.mark.parametrize(
    "beats",
    [
        [(0, "a"), (50, "b"), (100, None), (150, "b"), (200, "b"), (250, "c")],
        [(0, "a"), (59, "b"), (110, "b"), (150, "a")],
    ],
)
def test_a_handover_a_bare_beat_and_a_label_long_gone_are_no_second_instance(
    beats: list[tuple[int, str | None]],
) -> None:
    switch: Switch | None = None
    for second, label in beats:
        named = {} if label is None else {"agent_id": label}
        outcome = beaten(switch, at(second * 1000), **named)
        switch = outcome.switch
        assert outcome.result.warnings == (), (second, label)
        assert outcome.result.agent_id == (label or "b")


@pytest.mark.requirement("watch.switch.alert-delivery")
def test_the_reply_says_whether_the_alert_can_wake_anybody() -> None:
    result = beaten(None, at(), on_expiry=["queue_alert"], notify_address=ADDRESS).result
    pushed = beats.with_delivery(result, alert=True, nudge=None)
    assert (pushed.alert_delivery, pushed.notes) == ("push", ())
    collected = beats.with_delivery(result, alert=False, nudge=None)
    assert collected.alert_delivery == "inbox"
    assert "inbox_poll" in collected.notes[0]
    assert f"{ADDRESS}/inbox" in collected.notes[0]
    assert beats.with_delivery(result, alert=None, nudge=None) == result


@pytest.mark.requirement("watch.switch.alert-delivery")
def test_without_an_alert_in_force_nothing_is_said_of_its_way() -> None:
    for result in (beaten(None, at()).result, disarmed(armed(at())).result):
        assert beats.with_delivery(result, alert=False, nudge=False) == result


@pytest.mark.requirement("watch.switch.nudge")
def test_a_nudge_that_cannot_arrive_is_said() -> None:
    result = beaten(None, at(), nudge_seconds=20).result
    assert "nudge_seconds" in beats.with_delivery(result, alert=None, nudge=False).notes[0]
    for itself in (True, None):
        assert beats.with_delivery(result, alert=None, nudge=itself) == result


@pytest.mark.requirement("watch.switch.view")
def test_a_view_shows_the_row_and_seconds_only_while_armed() -> None:
    switch = armed(at(), on_expiry=ALL, notify_address=ADDRESS, agent_id="w", nudge_seconds=20)
    shown = switches.view(switch, at(10_500))
    assert plain(shown) == {
        "scope": SCOPE,
        "state": "armed",
        "generation": 1,
        "deadline": utc_time(START + 60_000),
        "seconds_left": 49.5,
        "expect_within_seconds": 60,
        "on_expiry": ALL,
        "notify_address": f"{ADDRESS}/inbox",
        "nudge_seconds": 20,
        "wake_on_tasks": False,
        "agent_id": "w",
        "beats": 1,
        "armed_at": utc_time(START),
        "last_beat_at": utc_time(START),
        "fires": 0,
        "fired_generation": None,
        "failed": False,
    }
    dead = switches.view(fired(switch, LATE).switch, LATE)
    assert (dead.state, dead.seconds_left, dead.fires) == ("fired", None, 1)
    assert switches.view(switch, at(HOUR)).seconds_left == 0


@pytest.mark.requirement("watch.args.address")
@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (ADDRESS, ("abcdefghijklmnop", "inbox")),
        (f"{ADDRESS}/night.shift", ("abcdefghijklmnop", "night.shift")),
    ],
)
def test_an_address_names_an_agent_and_a_box(address: str, parts: tuple[str, str]) -> None:
    assert switches.split_address(address) == parts
