"""Who gets a place in a box, and what becomes of an alert that gets none."""

import msgspec
import pytest

from mcpl_heartbeat.watch import mail
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.mail import Elsewhere, Fold
from mcpl_heartbeat.watch.rows import BoxLoad
from tests.watch.mailing import READER, START, acking, alert_mail, at, letter


def load(messages: int = 0, own: int = 0, foreign: int = 0, boxes: int = 1) -> BoxLoad:
    newest = alert_mail("newest", scope="older") if own or foreign else None
    return BoxLoad(
        pending=messages + own + foreign,
        own_alerts=own,
        foreign_alerts=foreign,
        newest_alert=newest,
        boxes=boxes,
    )


@pytest.mark.requirement("watch.mail.places")
@pytest.mark.parametrize(
    ("filled", "queued"),
    [
        (load(), True),
        (load(967), True),
        (load(968), False),
        (load(900, own=67), True),
        (load(900, own=68), False),
        (load(1000), False),
        (load(0, boxes=63), True),
        (load(0, boxes=64), False),
        (load(1, boxes=64), True),
        (load(0, own=1, boxes=64), True),
    ],
)
def test_ordinary_mail_leaves_the_reserve_alone(filled: BoxLoad, queued: bool) -> None:
    envelope = letter(to=f"agent:{READER}/work")
    placed = mail.place(filled, envelope, own=False)
    if queued:
        assert placed is envelope
    else:
        assert isinstance(placed, Failure)
        assert (placed.code, placed.status) == ("mailbox_full", 409)


@pytest.mark.requirement("watch.mail.places")
@pytest.mark.parametrize(("messages", "queued"), [(0, True), (967, True), (968, False)])
def test_no_number_of_other_boxes_keeps_mail_out_of_the_inbox(messages: int, queued: bool) -> None:
    envelope = letter()
    placed = mail.place(load(messages, boxes=64), envelope, own=False)
    assert (placed is envelope) is queued


@pytest.mark.requirement("watch.mail.places")
def test_being_ones_own_mail_gives_ordinary_mail_no_reserve() -> None:
    assert isinstance(mail.place(load(968), letter(), own=True), Failure)


@pytest.mark.requirement("watch.mail.reserve")
@pytest.mark.parametrize(
    ("filled", "own", "placed"),
    [
        (load(968), True, True),
        (load(968, own=31), True, True),
        (load(968, own=32), True, False),
        (load(500, own=499), True, True),
        (load(500, own=500), True, False),
        (load(968), False, True),
        (load(968, foreign=15), False, True),
        (load(968, foreign=16), False, False),
        (load(968, foreign=16), True, True),
        (load(968, own=15, foreign=16), True, True),
        (load(968, own=16, foreign=15), False, True),
        (load(968, own=16, foreign=16), True, False),
        (load(968, own=17, foreign=15), False, False),
        (load(0, foreign=983), False, True),
        (load(0, foreign=984), False, False),
        (load(0, foreign=984), True, True),
        (load(0, boxes=64), False, True),
    ],
)
def test_alerts_use_the_reserve_and_foreign_ones_half_of_it(
    filled: BoxLoad, own: bool, placed: bool
) -> None:
    envelope = alert_mail()
    outcome = mail.place(filled, envelope, own=own)
    assert (outcome is envelope) is placed
    assert isinstance(outcome, Fold) is not placed


@pytest.mark.requirement("watch.mail.alerts-elsewhere")
@pytest.mark.parametrize(
    ("filled", "box", "own", "stays"),
    [
        (load(0, boxes=63), "new", False, True),
        (load(0, boxes=64), "new", False, False),
        (load(1, boxes=64), "new", False, True),
        (load(0, boxes=64), "inbox", False, True),
        (load(0, boxes=64), "new", True, True),
    ],
)
def test_an_alert_of_another_s_switch_opens_no_65th_box(
    filled: BoxLoad, box: str, own: bool, stays: bool
) -> None:
    envelope = alert_mail(box=box)
    placed = mail.place(filled, envelope, own=own)
    if stays:
        assert placed is envelope
        return
    assert isinstance(placed, Elsewhere)
    moved = placed.envelope
    assert moved.alert is not None
    assert (moved.box, moved.alert.meant_for) == ("inbox", "new")
    assert 'It was sent to your box "new", and is here since' in moved.objective
    shown = mail.view(mail.hand_out(moved, 1_000, "dt_1", at()), at())
    assert (shown.box, shown.meant_for) == ("inbox", "new")
    assert mail.place(load(0, boxes=64), moved, own=False) is moved


@pytest.mark.requirement("watch.mail.folded")
def test_an_alert_without_a_place_is_counted_by_the_newest_one() -> None:
    full = load(968, own=32)
    outcome = mail.place(full, alert_mail("t2", scope="s2"), own=True)
    assert isinstance(outcome, Fold)
    folded = outcome.envelope
    assert folded.task_id == "newest"
    assert folded.alert is not None
    assert (folded.alert.folded, folded.alert.folded_scopes) == (1, ("s2",))
    assert folded.alert.scope == "older"
    assert 'stands for 1 more alert for which the box had no place, the last of scopes "s2"' in (
        folded.objective
    )


@pytest.mark.requirement("watch.mail.folded")
def test_the_scopes_of_the_last_20_folded_alerts_are_kept() -> None:
    full = load(968, own=32)
    for number in range(30):
        outcome = mail.place(full, alert_mail(scope=f"s{number}"), own=True)
        assert isinstance(outcome, Fold)
        full = msgspec.structs.replace(full, newest_alert=outcome.envelope)
    assert full.newest_alert is not None
    alert = full.newest_alert.alert
    assert alert is not None
    assert alert.folded == 30
    assert alert.folded_scopes == tuple(f"s{number}" for number in range(10, 30))


@pytest.mark.requirement("watch.mail.never-lost")
@pytest.mark.parametrize("own", [True, False])
def test_an_alert_that_nothing_can_take_in_gets_a_place_that_is_not_there(own: bool) -> None:
    envelope = alert_mail()
    assert mail.place(load(1000), envelope, own=own) is envelope
    assert mail.place(load(1200), envelope, own=own) is envelope


@pytest.mark.requirement("watch.mail.folded-is-told")
def test_a_reader_who_did_not_see_the_folded_one_cannot_take_it_away() -> None:
    """Handed out, then folded into: an ack of what was seen would lose what was not."""
    held = mail.hand_out(alert_mail("t1"), 300_000, "dt_1", at())
    held = msgspec.structs.replace(held, pushed_at=START)
    full = msgspec.structs.replace(load(968, own=32), newest_alert=held)
    outcome = mail.place(full, alert_mail("t2", 1_000, scope="s2"), own=True)
    assert isinstance(outcome, Fold)
    folded = outcome.envelope
    assert folded.visible_at <= START + 1_000
    assert folded.pushed_at is None
    for arguments in (acking(), acking(delivery_token="dt_1")):
        changed, result = mail.ack(folded, arguments, at(2_000))
        assert (changed, result.acked, result.reason) == (None, False, "lost_delivery")
    again = mail.hand_out(folded, 300_000, "dt_2", at(3_000))
    changed, result = mail.ack(again, acking(delivery_token="dt_2"), at(4_000))
    assert result.acked
    assert changed is not None


@pytest.mark.requirement("tasks.machine.review-place")
@pytest.mark.parametrize("filled", [load(), load(968), load(999), load(0, boxes=64), load(1000)])
def test_this_servers_own_message_takes_of_the_reserve_and_is_never_lost(filled: BoxLoad) -> None:
    envelope = letter()
    assert mail.place(filled, envelope, own=False, review="task:1") is envelope


@pytest.mark.requirement("tasks.machine.review-place")
def test_where_an_alert_can_count_it_a_full_box_takes_no_more() -> None:
    placed = mail.place(load(999, own=1), letter(), own=False, review="task:1")
    assert isinstance(placed, Fold)
    assert placed.envelope.alert is not None
    assert (placed.envelope.alert.folded, placed.envelope.alert.folded_scopes) == (1, ("task:1",))
