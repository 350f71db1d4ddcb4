"""Tasks that a switch gave back: in the alert, the journal, the briefing and the words."""

from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.watch import mail, resume, switches, texts
from mcpl_heartbeat.watch.rows import FreedTask
from tests.watch.mailing import alert, alert_mail
from tests.watch.switching import ADDRESS, SCOPE, armed
from tests.watch.switching import at as moment

ONE = FreedTask(id="11111111-1111-4111-8111-111111111111", execution_epoch=3, agent_id="worker-3")
OTHER = FreedTask(id="22222222-2222-4222-8222-222222222222", execution_epoch=2, agent_id=None)
LATE = moment(60_000)


def fire(*tasks: FreedTask, **arguments: Any) -> switches.Fired:
    return switches.fire(armed(moment(), **arguments), (), 0, None, LATE, tasks)


@pytest.mark.requirement("tasks.machine.given-back-told")
@pytest.mark.parametrize("actions", [["queue_alert"], ["release_leases", "queue_alert"]])
def test_the_alert_lists_the_tasks_whatever_else_is_to_be_done(actions: list[str]) -> None:
    fired = fire(ONE, OTHER, on_expiry=actions, notify_address=ADDRESS)
    assert fired.alert is not None
    assert fired.alert.released_tasks == (ONE, OTHER)
    envelope = mail.alert_envelope(fired.alert, ("abcdefghijklmnop", "inbox"), "s", "t", LATE)
    shown = mail.view(envelope, LATE)
    assert shown.released_tasks == (msgspec.to_builtins(ONE), msgspec.to_builtins(OTHER))
    assert (
        "Back in the queue: 2 tasks, to be claimed anew: 11111111-1111-4111-8111-111111111111 "
        '(epoch 3, held by "worker-3"), 22222222-2222-4222-8222-222222222222 (epoch 2).'
    ) in envelope.objective


@pytest.mark.requirement("tasks.machine.given-back-told")
def test_the_journal_keeps_them_and_the_briefing_shows_them() -> None:
    fired = fire(ONE)
    packet = resume.packet(SCOPE, fired.switch, None, (), (), 0, fired.entries, 10, (), LATE)
    (death,) = packet.deaths or ()
    assert death.released_tasks == (msgspec.to_builtins(ONE),)
    assert "1 task given back; " in texts.text_of("resume_packet", packet)


@pytest.mark.requirement("tasks.machine.given-back-told")
def test_a_fire_that_gave_no_task_back_speaks_of_none() -> None:
    fired = fire(on_expiry=["queue_alert"], notify_address=ADDRESS)
    assert fired.alert is not None
    assert "released_tasks" not in fired.entries[0].detail
    assert "task" not in texts.alert_objective(fired.alert)
    packet = resume.packet(SCOPE, fired.switch, None, (), (), 0, fired.entries, 10, (), LATE)
    (death,) = packet.deaths or ()
    assert death.released_tasks == ()
    assert "given back" not in texts.text_of("resume_packet", packet)


@pytest.mark.requirement("tasks.machine.given-back-told")
def test_what_is_resolved_speaks_of_them_as_past() -> None:
    late = alert(released_tasks=(ONE,), resolution="recovered", resolved_at="T")
    said = texts.alert_objective(late)
    assert "Tasks that had been given back: 11111111" in said
    assert "Back in the queue" not in said


@pytest.mark.requirement("tasks.machine.given-back-told")
def test_many_are_counted_and_some_named() -> None:
    seven = tuple(msgspec.structs.replace(OTHER, execution_epoch=n) for n in range(2, 9))
    said = texts.alert_objective(alert(released_tasks=seven))
    assert "7 tasks" in said
    assert said.count("22222222-2222-4222-8222-222222222222") == 5
    assert "and 2 more" in said
    both = [alert_mail(released_tasks=seven), alert_mail(released_tasks=(ONE,))]
    assert "tasks given back: 8;" in texts.alert_push_text(both, 2, "NOW")
