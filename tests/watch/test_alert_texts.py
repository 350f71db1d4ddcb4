"""What is pushed: alerts, alone and in storms, and nudges; and how what others wrote is quoted."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.watch import mail, texts
from mcpl_heartbeat.watch.rows import Freed
from mcpl_heartbeat.watch.words import nudges_text
from tests.watch.mailing import SENDER, alert, alert_mail, at, letter


def told(objective: str) -> str:
    """The text of a poll that hands this mail out."""
    held = mail.hand_out(letter(objective=objective), 300_000, "dt_1", at())
    return texts.text_of("inbox_poll", mail.poll_result(held, 0, None, at()))


@pytest.mark.requirement("watch.push.alert-text")
def test_one_alert_is_pushed_with_all_that_its_reader_has_to_know() -> None:
    text = texts.alert_push_text([alert_mail(box="alerts")], 1, "NOW")
    assert text.splitlines() == [
        '[NOW] DEAD-MAN SWITCH FIRED. Agent "worker-3" on scope "permit-review" (generation 3) did '
        "not beat by 2026-09-21T14:13:20.000Z (last beat 2026-09-21T14:08:20.000Z, noticed "
        "2026-09-21T14:13:20.400Z).",
        'Freed 1 lease: "db" (held by "w3", generation 7).',
        "Not freed: 2 leases taken without a scope, its own or those of others of its namespace.",
        "The work is marked failed.",
        "Resume where its last checkpoint (2026-09-21T14:08:19.000Z) stands, in its own words: "
        'next action "open permit 17", step "16 of 40", objective "review the permits".',
        f'Sent by the switch of agent:{SENDER}. It stays in your inbox (box "alerts") until '
        'inbox_ack "t1".',
    ]


@pytest.mark.requirement("watch.push.alert-text")
def test_what_an_alert_has_not_is_not_made_up() -> None:
    bare = alert_mail(
        agent_id=None, resume=None, released=(), marked_failed=False, on_expiry=("queue_alert",)
    )
    text = texts.alert_push_text([bare], 1, "NOW")
    assert "An agent without a label on scope" in text
    assert "It left no checkpoint: what was done before is not known." in text
    for absent in ("Freed", "freed", "lease", "marked failed"):
        assert absent not in text
    nothing = texts.alert_push_text([alert_mail(released=(), unreachable=0)], 1, "NOW")
    assert "No lease of that scope was held" in nothing
    assert "Not freed" not in nothing


@pytest.mark.requirement("watch.resume.private")
def test_a_checkpoint_that_is_private_is_not_said_to_be_missing() -> None:
    text = texts.alert_push_text([alert_mail(resume=None, resume_private=True)], 1, "NOW")
    assert "kept its last checkpoint private" in text
    assert "left no checkpoint" not in text


@pytest.mark.requirement("watch.push.alert-text")
def test_many_freed_leases_are_counted_and_the_first_named() -> None:
    many = tuple(Freed(key=f"k{n}", holder="w", generation=1) for n in range(9))
    text = texts.alert_push_text([alert_mail(released=many)], 1, "NOW")
    assert 'Freed 9 leases: "k0"' in text
    assert '"k4" (held by "w", generation 1) and 4 more.' in text
    assert '"k5"' not in text


@pytest.mark.requirement("watch.push.storm-text")
def test_several_alerts_are_pushed_with_counts_and_the_first_scopes() -> None:
    alerts = [alert_mail(f"t{n}", scope=f"s{n}", folded=n) for n in range(7)]
    text = texts.alert_push_text(alerts, 30, "NOW")
    assert text.splitlines() == [
        "[NOW] 51 alerts of dead-man switches for you.",
        'Silent past the deadline: "s0", "s1", "s2", "s3", "s4" and 2 more (of the oldest 7 '
        "alerts).",
        "Freed by them: 7 leases; marked failed: 7.",
        'Each stays in your inbox until it is acknowledged: call inbox_poll with box "inbox", '
        "act, call inbox_ack, until there is none.",
    ]


@pytest.mark.requirement("watch.push.storm-text")
def test_resolved_ones_among_several_are_counted_apart() -> None:
    resolved = mail.resolve(alert_mail("t0", scope="well"), "recovered", at())
    text = texts.alert_push_text([resolved, alert_mail("t1", scope="s1", box="b")], 2, "NOW")
    assert 'Silent past the deadline: "s1".' in text
    assert "Resolved meanwhile, nothing to do: 1." in text
    assert '"well"' not in text
    assert 'box "inbox", "b"' in text
    text = texts.alert_push_text([resolved, resolved], 2, "NOW")
    assert "Silent" not in text
    assert "Resolved meanwhile, nothing to do: 2." in text


@pytest.mark.requirement("field.38.resolved-alert")
@pytest.mark.parametrize(
    ("resolution", "said"),
    [("recovered", "do not take its work over"), ("disarmed", "its work being finished")],
)
def test_a_resolved_alert_is_pushed_as_such(resolution: Any, said: str) -> None:
    resolved = mail.resolve(alert_mail(), resolution, at())
    text = texts.alert_push_text([resolved], 1, "NOW")
    assert text.startswith("[NOW] resolved: nothing is to be done. ")
    assert said in text
    assert 'Leases that had been freed: "db"' in text
    for word in ("FIRED", "failed", "Resume"):
        assert word not in text


@pytest.mark.requirement("watch.push.storm-text", "watch.mail.folded")
def test_a_resolved_alert_that_stands_for_others_does_not_hide_them() -> None:
    others = alert_mail(folded=2, folded_scopes=("s1", "s2"))
    resolved = mail.resolve(others, "recovered", at())
    text = texts.alert_push_text([resolved], 1, "NOW")
    assert "resolved: this one needs nothing." in text
    assert (
        'It stands for 2 more alerts for which the box had no place, the last of scopes "s2", "s1"'
        in text
    )
    assert "nothing is to be done" not in text
    text = texts.alert_push_text([resolved, resolved], 2, "NOW")
    assert "6 alerts" in text
    assert 'Silent past the deadline: "s1", "s2".' in text


@pytest.mark.requirement("watch.push.nudge-text")
def test_a_nudge_says_beat_or_disarm_and_that_it_is_no_beat() -> None:
    assert texts.nudge_text("s", 3, "LATER", 60.0, "NOW") == (
        '[NOW] Beat or disarm: your dead-man switch of scope "s" (generation 3) fires in 60 s, at '
        "LATER. Still at work: call heartbeat with that scope and expect_within_seconds. Finished: "
        "call it with that scope and disarm true. This reminder is no beat."
    )


@pytest.mark.requirement("watch.push.nudges-together")
def test_several_nudges_are_told_apart_the_first_twenty_by_name() -> None:
    nudges = [(f"s{n}", n, f"LATER {n}", 30.0 + n) for n in range(25)]
    lines = nudges_text(nudges, "NOW").splitlines()
    assert lines[0] == "[NOW] Beat or disarm: 25 of your dead-man switches fire soon."
    assert lines[1] == '- scope "s0" (generation 0) in 30 s, at LATER 0'
    assert lines[20] == '- scope "s19" (generation 19) in 49 s, at LATER 19'
    assert lines[21] == "- and 5 more: switch_status lists them."
    assert "no beat" in lines[22]
    assert "more" not in nudges_text(nudges[:20], "NOW")


@pytest.mark.requirement("watch.texts.quoted")
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_what_others_wrote_cannot_begin_a_line_or_end_its_quotes(words: str) -> None:
    evil = alert(
        scope=words, agent_id=words, released=(Freed(key=words, holder=words, generation=1),)
    )
    plain = alert_mail()
    envelope = msgspec.structs.replace(plain, alert=evil, objective=texts.alert_objective(evil))
    assert len(envelope.objective.splitlines()) == 1
    lines = len(texts.alert_push_text([plain], 1, "NOW").splitlines())
    assert len(texts.alert_push_text([envelope], 1, "NOW").splitlines()) == lines
    assert len(told(words or "x").splitlines()) == len(told("x").splitlines())
    quoted = told(words or "x").splitlines()[1].removeprefix("objective: ")
    assert msgspec.json.decode(quoted) == (words or "x")


@pytest.mark.requirement("watch.texts.bounded")
def test_an_alerts_objective_is_bounded() -> None:
    resume_point = msgspec.structs.replace(
        alert().resume, objective="o" * 4096, next_action="n" * 4096, step="s" * 1024
    )
    big = alert(
        scope="s" * 256,
        agent_id="a" * 64,
        resume=resume_point,
        released=tuple(Freed(key="k" * 256, holder="h" * 128, generation=1) for _ in range(100)),
        folded=1000,
        folded_scopes=("f" * 256,) * 20,
    )
    assert len(texts.alert_objective(big)) < 5_000
