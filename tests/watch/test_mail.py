"""Envelopes: made, placed, handed out, acknowledged, given back, resolved."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcpl_heartbeat.watch import mail
from mcpl_heartbeat.watch.arguments import SendArguments
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.rows import Envelope
from tests.watch.mailing import READER, SENDER, START, acking, alert_mail, at, letter, nacking

MINUTE = 60_000
DAY = 86_400_000


# --- what is sent ------------------------------------------------------------------------------


@pytest.mark.requirement("watch.mail.send")
def test_mail_goes_to_the_box_that_its_address_names() -> None:
    envelope = letter(to=f"agent:{READER}/alerts", scope="s", context=Raw(b'{"a": 1}'))
    assert (envelope.agent, envelope.box) == (READER, "alerts")
    assert (envelope.kind, envelope.sender, envelope.state) == ("message", SENDER, "pending")
    assert (envelope.scope, envelope.context, envelope.history) == ("s", Raw(b'{"a": 1}'), None)
    assert letter().box == "inbox"
    sent = mail.sent(envelope, at())
    assert (sent.queued, sent.task_id, sent.to) == (True, "t1", f"agent:{READER}/alerts")
    assert sent.due_at == "2026-09-21T14:13:20.000Z"


@pytest.mark.requirement("watch.mail.due-at")
@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("2026-09-21T14:13:20Z", 0),
        ("2026-09-21T14:14:20Z", MINUTE),
        ("2026-09-21T16:14:20+02:00", MINUTE),
        ("2026-09-21 16:14:20.5+0200", MINUTE + 500),
        ("2026-09-21T14:14:20+00:00 [UTC]", MINUTE),
        ("1999-01-01T00:00:00Z", 0),
        ("2027-09-21T14:13:20Z", 365 * DAY),
    ],
)
def test_due_at_is_a_moment_and_the_past_is_now(text: str, due: int) -> None:
    envelope = letter(due_at=text)
    assert envelope.due_at - START == envelope.visible_at - START == due


@pytest.mark.requirement("watch.mail.due-at")
def test_due_at_is_read_by_the_wall_clock() -> None:
    """After a step of the wall clock the store's own time lags behind it."""
    sent = SendArguments(to=f"agent:{READER}", objective="o", due_at="2026-09-21T15:14:20Z")
    envelope = mail.message(sent, SENDER, "t", at(shift=3_600_000))
    assert isinstance(envelope, Envelope)
    assert envelope.due_at == START + MINUTE
    assert mail.sent(envelope, at(shift=3_600_000)).due_at == "2026-09-21T15:14:20.000Z"


@pytest.mark.requirement("watch.mail.due-at")
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("2026-09-21T14:14:20", "has no offset"),
        ("2026-09-21T14:14:20 [UTC]", "has no offset"),
        ("2026-09-21", "is a date without a time of day"),
        ("2026-13-21T14:14:20Z", "has the month 13"),
        ("tomorrow", "is not a date and time"),
        ("1790000060", "is a number"),
        ("2027-09-21T14:13:20.001Z", "lies more than 365 days ahead"),
        ("9" * 64, "is a number"),
    ],
)
def test_a_due_at_that_is_no_moment_is_refused(text: str, wrong: str) -> None:
    refused = mail.message(
        SendArguments(to=f"agent:{READER}", objective="o", due_at=text), SENDER, "t", at()
    )
    assert isinstance(refused, Failure)
    assert (refused.code, refused.status) == ("invalid_arguments", 400)
    assert refused.problems is not UNSET
    (problem,) = refused.problems
    assert problem.startswith(f"due_at: {wrong}")
    assert "local time" not in problem


# --- hand out, ack, nack -----------------------------------------------------------------------


@pytest.mark.requirement("watch.mail.visibility")
def test_what_is_handed_out_is_hidden_and_comes_again() -> None:
    first = mail.hand_out(letter(), 5_000, "dt_1", at(1_000))
    assert (first.visible_at, first.attempts, first.token) == (START + 6_000, 1, "dt_1")
    second = mail.hand_out(first, 300_000, "dt_2", at(7_000))
    assert (second.visible_at, second.attempts, second.token) == (START + 307_000, 2, "dt_2")
    assert second.state == "pending"


@pytest.mark.requirement("watch.mail.ack")
@pytest.mark.parametrize("status", ["done", "failed"])
@pytest.mark.parametrize("token", ["dt_1", UNSET])
def test_an_ack_settles_an_envelope_for_good(status: Any, token: Any) -> None:
    held = mail.hand_out(letter(), 5_000, "dt_1", at())
    asked = acking(status=status, delivery_token=token, result=Raw(b"[1]"))
    changed, result = mail.ack(held, asked, at())
    assert changed is not None
    assert (changed.state, changed.result) == (status, Raw(b"[1]"))
    assert (result.acked, result.task_id, result.status) == (True, "t1", status)
    assert result.reason is UNSET
    again, result = mail.ack(changed, asked, at(1))
    assert again is None
    assert (result.acked, result.status, result.notes) == (True, status, ())


@pytest.mark.requirement("watch.mail.ack")
def test_a_second_ack_does_not_change_the_first() -> None:
    done, _ = mail.ack(letter(), acking(result=Raw(b"1")), at())
    changed, result = mail.ack(done, acking(status="failed", result=Raw(b"2")), at(1))
    assert changed is None
    assert (result.acked, result.status) == (True, "done")
    assert result.notes == ("It was acknowledged as done before, and stays so.",)


@pytest.mark.requirement("watch.mail.unknown-task")
def test_an_unknown_task_is_an_ordinary_no() -> None:
    acked = mail.ack(None, acking(delivery_token="x"), at())
    assert (acked[0], acked[1].acked, acked[1].reason) == (None, False, "unknown_task")
    nacked = mail.nack(None, nacking(delivery_token="x"), at())
    assert (nacked[0], nacked[1].nacked, nacked[1].reason) == (None, False, "unknown_task")


@pytest.mark.requirement("watch.mail.token")
@pytest.mark.parametrize("settled", [False, True])
def test_only_the_newest_delivery_counts_when_a_token_is_shown(settled: bool) -> None:
    envelope = mail.hand_out(letter(), 5_000, "dt_1", at())
    envelope = mail.hand_out(envelope, 5_000, "dt_2", at(6_000))
    if settled:
        changed, _ = mail.ack(envelope, acking(delivery_token="dt_2"), at(6_500))
        assert changed is not None
        envelope = changed
    for token in ("dt_1", "dt_3", "dt_\u00e9"):
        acked = mail.ack(envelope, acking(delivery_token=token), at(7_000))
        assert (acked[0], acked[1].acked, acked[1].reason) == (None, False, "lost_delivery")
        nacked = mail.nack(envelope, nacking(delivery_token=token), at(7_000))
        assert (nacked[0], nacked[1].nacked, nacked[1].reason) == (None, False, "lost_delivery")


@pytest.mark.requirement("watch.mail.nack")
def test_what_is_given_back_is_handed_out_again() -> None:
    held = mail.hand_out(letter(), 300_000, "dt_1", at())
    back, result = mail.nack(held, nacking(delivery_token="dt_1"), at(1_000))
    assert back is not None
    assert back.visible_at == START + 1_000
    assert (result.nacked, result.visible_again_at) == (True, "2026-09-21T14:13:21.000Z")
    later, result = mail.nack(back, nacking(delivery_token="dt_1", delay_seconds=60), at(2_000))
    assert later is not None
    assert later.visible_at == START + 62_000
    assert result.nacked


@pytest.mark.requirement("watch.mail.nack")
def test_giving_back_makes_nothing_due_earlier() -> None:
    ahead = letter(due_at="2026-09-21T15:13:20Z")
    back, result = mail.nack(ahead, nacking(), at(1_000))
    assert back is not None
    assert back.visible_at == ahead.due_at
    assert result.visible_again_at == "2026-09-21T15:13:20.000Z"


@pytest.mark.requirement("watch.mail.nack")
def test_what_is_done_cannot_be_given_back() -> None:
    done, _ = mail.ack(letter(), acking(), at())
    changed, result = mail.nack(done, nacking(), at(1))
    assert (changed, result.nacked, result.reason) == (None, False, "already_done")


# --- what the reader sees ----------------------------------------------------------------------


@pytest.mark.requirement("watch.mail.poll")
def test_a_poll_shows_one_envelope_with_its_token() -> None:
    held = mail.hand_out(letter(scope="s", context=Raw(b"[1.0]")), 5_000, "dt_1", at())
    result = mail.poll_result(held, 4, START + 60_000, at())
    assert msgspec.json.decode(msgspec.json.encode(result)) == {
        "server_time": "2026-09-21T14:13:20.000Z",
        "notes": [],
        "envelope": {
            "task_id": "t1",
            "box": "inbox",
            "kind": "message",
            "objective": "look",
            "sender": f"agent:{SENDER}",
            "sent_at": "2026-09-21T14:13:20.000Z",
            "due_at": "2026-09-21T14:13:20.000Z",
            "attempts": 1,
            "delivery_token": "dt_1",
            "visible_again_at": "2026-09-21T14:13:25.000Z",
            "context": [1.0],
            "scope": "s",
        },
        "waiting": 4,
        "next_due_at": "2026-09-21T14:14:20.000Z",
    }


@pytest.mark.requirement("watch.mail.poll")
def test_an_empty_poll_says_null() -> None:
    result = mail.poll_result(None, 0, None, at())
    assert (result.envelope, result.waiting, result.next_due_at) == (None, 0, None)


@pytest.mark.requirement("watch.mail.alert")
def test_an_alert_shows_who_died_what_was_freed_and_where_to_resume() -> None:
    held = mail.hand_out(alert_mail(), 5_000, "dt_1", at())
    shown = msgspec.to_builtins(mail.view(held, at()))
    assert shown["kind"] == "alert"
    facts = {
        "scope": "permit-review",
        "generation": 3,
        "agent_id": "worker-3",
        "last_beat_at": "2026-09-21T14:08:20.000Z",
        "deadline": "2026-09-21T14:13:20.000Z",
        "noticed_at": "2026-09-21T14:13:20.400Z",
        "on_expiry": ("release_leases", "mark_failed", "queue_alert"),
        "released": ({"key": "db", "holder": "w3", "generation": 7},),
        "unreachable": 2,
        "marked_failed": True,
        "resume": {
            "objective": "review the permits",
            "next_action": "open permit 17",
            "step": "16 of 40",
            "saved_at": "2026-09-21T14:08:19.000Z",
        },
        "resolved_at": None,
        "resolution": None,
        "folded": 0,
        "folded_scopes": (),
    }
    assert {name: shown[name] for name in facts} == facts


@pytest.mark.requirement("watch.mail.alert")
def test_what_is_unknown_of_an_alert_is_null() -> None:
    held = mail.hand_out(alert_mail(agent_id=None, resume=None), 5_000, "dt_1", at())
    shown = msgspec.to_builtins(mail.view(held, at()))
    assert (shown["agent_id"], shown["resume"]) == (None, None)


@pytest.mark.requirement("field.38.resolved-alert", "field.40.disarm-resolves")
@pytest.mark.parametrize("resolution", ["recovered", "disarmed"])
def test_a_resolved_alert_says_so_and_is_not_worded_as_a_death(resolution: Any) -> None:
    resolved = mail.resolve(alert_mail(), resolution, at(9_000))
    assert resolved.alert is not None
    assert resolved.alert.resolution == resolution
    assert resolved.alert.resolved_at == "2026-09-21T14:13:29.000Z"
    assert resolved.objective.startswith("resolved: ")
    assert "FIRED" not in resolved.objective
    assert "failed" not in resolved.objective
    shown = mail.view(mail.hand_out(resolved, 5_000, "dt", at()), at())
    assert (shown.resolution, shown.resolved_at) == (resolution, "2026-09-21T14:13:29.000Z")


@pytest.mark.requirement("field.38.resolved-alert")
def test_what_is_settled_resolved_or_no_alert_is_not_resolved() -> None:
    first = mail.resolve(alert_mail(), "recovered", at(1))
    assert mail.resolve(first, "disarmed", at(2)) is first
    plain = letter()
    assert mail.resolve(plain, "recovered", at(1)) is plain
    done, _ = mail.ack(alert_mail(), acking(), at())
    assert done is not None
    assert mail.resolve(done, "recovered", at(1)) is done
