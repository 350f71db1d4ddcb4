"""What a model reads that takes work up: the briefing, in words."""

import pytest
from msgspec import Raw

from mcpl_heartbeat.watch import checkpoints, resume, switches
from mcpl_heartbeat.watch.arguments import (
    CheckpointPutArguments,
)
from mcpl_heartbeat.watch.failures import Failure
from tests.watch.mailing import alert_mail, at, letter
from tests.watch.reading import beat, read, taken


@pytest.mark.requirement("watch.texts.resume")
def test_the_briefing_says_all_that_is_needed_to_go_on() -> None:
    asked = CheckpointPutArguments(
        scope="s", objective="review", next_action="open 17", files=["a"], body=Raw(b"[1]")
    )
    put = checkpoints.put(None, "ns", asked, at())
    assert not isinstance(put, Failure)
    checkpoint, saved, _ = put
    assert read("checkpoint_put", saved) == (
        'Saved: checkpoint 1 of scope "s", 2026-09-21T14:13:20.000Z.'
    )
    beaten = beat(agent_id="w3")
    assert beaten.switch is not None
    fired = switches.fire(beaten.switch, (), 0, None, at(300_000))
    lease = taken(None, 299_000, scope="s").lease
    assert lease is not None
    entries = [*beaten.entries, *fired.entries]
    packet = resume.packet(
        "s", fired.switch, checkpoint, [lease], [letter()], 7, entries, 20, (), at(301_000)
    )
    text = read("resume_packet", packet)
    for said in (
        'Scope "s", now 2026-09-21T14:18:21.000Z: the work is marked failed, and nobody has beaten',
        "Checkpoint 1, saved 2026-09-21T14:13:20.000Z:",
        '- objective: "review"',
        '- next_action: "open 17"',
        '- files: ["a"]',
        "- body: [1]",
        'Switch "s": fired, generation 1',
        'Death seen: "w3", generation 1, no beat by 2026-09-21T14:18:20.000Z',
        'Lease "db" is held by "w1"',
        "Mail of this scope that waits: 7.",
        '- message "t1" in box "inbox"',
        "Journal, the oldest first:",
    ):
        assert f"\n{said}" in f"\n{text}"
    assert "f-secret" not in text
    beaten = beat(fired.switch, 310_000)
    entries += beaten.entries
    packet = resume.packet("s", beaten.switch, None, [], [], 0, entries, 0, (), at(311_000))
    text = read("resume_packet", packet)
    assert "it died and was taken up again" in text.splitlines()[0]
    assert "No checkpoint was put" in text
    assert "taken up again 2026-09-21T14:18:30.000Z" in text


@pytest.mark.requirement("watch.texts.resume")
def test_an_empty_briefing_says_so() -> None:
    packet = resume.packet("s", None, None, [], [], 0, [], 20, (), at())
    text = read("resume_packet", packet)
    assert text.splitlines()[0].endswith(": this namespace has no such scope.")
    assert "check its spelling" in text


@pytest.mark.requirement("watch.resume.others")
def test_no_life_is_made_up_beside_an_alert_about_anothers_scope() -> None:
    mail = alert_mail()
    packet = resume.packet("s", None, None, [], [mail], 1, [], 20, (), at())
    text = read("resume_packet", packet)
    assert text.splitlines()[0].endswith(": this namespace has no such scope.")
    assert "death was seen" not in text
    assert "No checkpoint was put" not in text
    assert f'- alert "{mail.task_id}" in box' in text
    assert "its alert tells where to resume" in text


@pytest.mark.requirement("watch.texts.resume")
def test_an_unmarked_death_is_told_too() -> None:
    beaten = beat(on_expiry=["release_leases"])
    assert beaten.switch is not None
    fired = switches.fire(beaten.switch, (), 0, None, at(300_000))
    entries = [*beaten.entries, *fired.entries]
    packet = resume.packet("s", fired.switch, None, [], [], 0, entries, 0, (), at(301_000))
    assert "it died, and nobody has beaten since" in read("resume_packet", packet)
    alive = resume.packet("s", beaten.switch, None, [], [], 0, beaten.entries, 0, (), at(1_000))
    assert "no death was seen" in read("resume_packet", alive)
