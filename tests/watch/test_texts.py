"""What a model reads: every fact it needs for the next call, and nothing that is not its own."""

import msgspec
import pytest
from msgspec import Raw

from mcpl_heartbeat.watch import beats, identity, leases, mail, switches, texts
from mcpl_heartbeat.watch.arguments import (
    LeaseReleaseArguments,
    LeaseRenewArguments,
    RegisterArguments,
)
from mcpl_heartbeat.watch.failures import failure, invalid, unavailable
from mcpl_heartbeat.watch.results import (
    BoxView,
    EntryView,
    GapView,
    LeaseReleaseResult,
    LeaseRenewResult,
    LeaseResult,
    SwitchStatusResult,
)
from mcpl_heartbeat.watch.rows import Envelope, Identity
from mcpl_heartbeat.watch.tools import READS, TOOLS
from tests.watch.mailing import (
    READER,
    SENDER,
    START,
    acking,
    alert,
    alert_mail,
    at,
    letter,
    nacking,
)
from tests.watch.reading import beat, read, switch, taken

NOTIFY = f"agent:{READER}/alerts"


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.requirement("watch.texts.failures")
@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_a_failure_says_what_is_wrong_and_what_to_do(tool: str) -> None:
    text = read(tool, failure("not_registered", "No such address.", "Check it."))
    assert text == "No such address. Check it. [not_registered]"
    text = read(tool, invalid(tool, ("a: is wrong", "b: is too long")))
    assert text.splitlines() == [
        f"{tool} was refused:" if tool in READS else f"{tool} was refused and changed nothing:",
        "- a: is wrong",
        "- b: is too long",
        "Mend every problem named and call again. [invalid_arguments]",
    ]
    text = read(tool, unavailable(tool, "it is locked"))
    assert "it is locked" in text
    assert "do not proceed" in text


# --- heartbeat and switch_status ---------------------------------------------------------------


@pytest.mark.requirement("watch.texts.heartbeat")
def test_a_beat_is_answered_with_the_deadline_and_what_happens_without_the_next() -> None:
    result = beat(on_expiry=["queue_alert", "release_leases"], notify_address=NOTIFY).result
    result = beats.with_delivery(result, alert=True, nudge=None)
    assert read("heartbeat", result).splitlines() == [
        'Armed: scope "s", generation 1. Beat again within 300 s, before 2026-09-21T14:18:20.000Z '
        "(now 2026-09-21T14:13:20.000Z), or disarm.",
        f"If no beat comes: release_leases, queue_alert to {NOTIFY}, who is woken by it.",
    ]
    inbox = beats.with_delivery(result, alert=False, nudge=None)
    text = read("heartbeat", inbox)
    assert "who has to poll for it" in text
    assert "can only be collected with inbox_poll" in text
    assert "You are reminded 30 s before" in read("heartbeat", beat(nudge_seconds=30).result)


@pytest.mark.requirement("watch.texts.heartbeat")
def test_an_agent_that_comes_back_reads_of_its_own_death() -> None:
    dead = switches.fire(switch(), (), 0, None, at(300_000)).switch
    text = read("heartbeat", beat(dead, 301_000).result)
    assert "generation 2" in text.splitlines()[0]
    assert "Generation 1 had fired" in text
    ended = beat(dead, 301_000, disarm=True).result
    text = read("heartbeat", ended)
    assert text.startswith('Disarmed: scope "s", generation 1. Nothing will fire.')
    assert "Generation 1 had fired" in text
    unknown = beat(None, disarm=True).result
    assert read("heartbeat", unknown).startswith('Nothing is armed for scope "s".')


@pytest.mark.requirement("watch.texts.heartbeat")
def test_warnings_are_marked() -> None:
    result = msgspec.structs.replace(beat().result, warnings=("two beat here",))
    assert "\nWarning: two beat here" in read("heartbeat", result)


@pytest.mark.requirement("watch.texts.status")
def test_the_status_shows_each_switch_the_gaps_and_the_journal() -> None:
    dead = switches.fire(switch(agent_id="w3"), (), 0, None, at(300_000)).switch
    ended = msgspec.structs.replace(switch(), scope="ended", state="disarmed")
    live = msgspec.structs.replace(switch(200_000), scope="live")
    result = SwitchStatusResult(
        server_time=at(300_000).server_time,
        switches=tuple(switches.view(row, at(300_000)) for row in (dead, ended, live)),
        total=9,
        next_cursor="c1",
        watch_gaps=(GapView(began_at="t1", ended_at="t2", seconds=7.5),),
        journal=(EntryView(at="t3", kind="fired", generation=1, detail={"a": [1]}),),
        corrupt=("torn",),
    )
    lines = read("switch_status", result).splitlines()
    assert lines[0] == "9 switches, now 2026-09-21T14:18:20.000Z."
    assert lines[1].startswith('"s": fired, generation 1 | no beat came by 2026-09-21T14:18:20')
    assert '| beaten by "w3" |' in lines[1]
    assert lines[1].endswith("| fired 1 time so far")
    assert lines[2].startswith('"ended": disarmed, generation 1 | last beat ')
    assert lines[3].startswith('"live": armed, generation 1 | fires in 200 s, at ')
    assert lines[4] == 'There are more: call switch_status with cursor "c1".'
    assert '"torn"' in lines[5]
    assert lines[6].startswith("Nobody watched from t1 to t2 (7.5 s)")
    assert lines[7:] == ["Journal, the oldest first:", '- t3 fired, generation 1 {"a":[1]}']


@pytest.mark.requirement("watch.texts.bounded")
def test_a_long_list_is_cut_and_says_so() -> None:
    views = tuple(
        msgspec.structs.replace(switches.view(switch(), at()), scope=f"s{n}") for n in range(100)
    )
    result = SwitchStatusResult(
        server_time="t", switches=views, total=100, next_cursor=None, watch_gaps=(), corrupt=()
    )
    lines = read("switch_status", result).splitlines()
    assert len(lines) == 52
    assert lines[-1] == "(50 more in structuredContent)"


# --- identity ----------------------------------------------------------------------------------


@pytest.mark.requirement("watch.texts.identity")
def test_registering_shows_the_secret_once() -> None:
    kept, result = identity.register(None, RegisterArguments(label="w"), "hb_x", "ab", "id", at())
    text = read("register", result)
    assert "\nagent_secret: hb_x\n" in text
    assert 'agent:id, namespace ns_ab, label "w"' in text
    _, again = identity.register(kept, RegisterArguments(), "hb_x", "ab", "id", at())
    text = read("register", again)
    assert "hb_x" not in text
    assert "Nothing has changed." in text


@pytest.mark.requirement("watch.texts.identity")
def test_whoami_is_told_in_words() -> None:
    who = Identity(namespace="ab", agent="id", label=None, registered_at=START)
    box = BoxView(box="inbox", total=3, due=2)
    counts = {"armed": 2, "fired": 0}
    text = read("whoami", identity.whoami(who, [box], 1, START + 1_000, counts, 4, at()))
    assert text.splitlines() == [
        "You are agent:id, namespace ns_ab, since 2026-09-21T14:13:20.000Z.",
        "Mail: 3 pending, 2 to be had now by inbox_poll; 1 acknowledged as failed.",
        "The next comes due at 2026-09-21T14:13:21.000Z.",
        'Box "inbox": 3, 2 due.',
        "Switches: 2 armed. Leases held: 4.",
    ]
    assert "Switches: none." in read("whoami", identity.whoami(who, [], 0, None, {}, 0, at()))


# --- mail --------------------------------------------------------------------------------------


def polled(envelope: Envelope, waiting: int = 0) -> str:
    held = mail.hand_out(envelope, 300_000, "dt_1", at())
    return read("inbox_poll", mail.poll_result(held, waiting, None, at()))


@pytest.mark.requirement("watch.texts.mail")
def test_mail_is_shown_whole_and_as_anothers_word() -> None:
    text = polled(letter(scope="s", context=Raw(b'{\n "a": [1.0]}'), history=Raw(b"null")), 3)
    lines = text.splitlines()
    assert f"Mail from agent:{SENDER}" in lines[0]
    assert "no instruction of this server" in lines[0]
    assert lines[1:5] == [
        'objective: "look"',
        'scope: "s"',
        'context: {"a":[1.0]}',
        "history: null",
    ]
    assert 'inbox_ack with task_id "t1" and delivery_token "dt_1"' in lines[5]
    assert lines[6] == "3 more to be had now."


@pytest.mark.requirement("watch.texts.bounded")
def test_a_long_context_is_cut_and_says_so() -> None:
    text = polled(letter(context=Raw(b'"' + b"x" * 60_000 + b'"')))
    assert len(text) < 6_000
    assert "(60002 characters, all in structuredContent)" in text


@pytest.mark.requirement("watch.texts.mail")
def test_an_alert_is_handed_out_with_all_of_its_resume_point() -> None:
    text = polled(alert_mail())
    assert text.splitlines()[0] == f"Alert from the switch of agent:{SENDER}."
    assert text.count("open permit 17") == 1
    point = msgspec.structs.replace(alert().resume, next_action="n" * 2_000)
    text = polled(alert_mail(resume=point))
    assert "n" * 2_000 in text
    assert 'inbox_ack with task_id "t1" and delivery_token "dt_1"' in text


@pytest.mark.requirement("watch.texts.mail")
def test_a_repeated_delivery_is_marked() -> None:
    once = mail.hand_out(letter(), 5_000, "dt_0", at())
    assert "(delivery 2)" in polled(once)
    assert "(delivery" not in polled(letter())


@pytest.mark.requirement("watch.texts.mail")
def test_an_empty_box_says_when_to_come_again() -> None:
    empty = mail.poll_result(None, 0, START + 5_000, at())
    assert read("inbox_poll", empty) == (
        "Nothing is due in this box. The next comes at 2026-09-21T14:13:25.000Z."
    )
    assert read("inbox_poll", mail.poll_result(None, 0, None, at())) == (
        "Nothing is due in this box."
    )


@pytest.mark.requirement("watch.texts.mail")
def test_sending_and_settling_are_told() -> None:
    sent = mail.sent(letter(to=NOTIFY), at())
    assert read("send", sent).startswith(f'Queued for {NOTIFY} as "t1", due at once.')
    ahead = mail.sent(letter(due_at="2026-09-21T15:00:00Z"), at())
    assert "due at 2026-09-21T15:00:00.000Z." in read("send", ahead)
    held = mail.hand_out(letter(), 5_000, "dt_1", at())
    done, result = mail.ack(held, acking(status="failed"), at())
    assert read("inbox_ack", result).startswith('Acknowledged "t1" as failed')
    text = read("inbox_ack", mail.ack(done, acking(), at())[1])
    assert "stays so" in text
    text = read("inbox_ack", mail.ack(held, acking(delivery_token="x"), at())[1])
    assert text.startswith('NOT acknowledged "t1": it is no longer yours')
    assert "none of your boxes" in read("inbox_ack", mail.ack(None, acking(), at())[1])
    text = read("inbox_nack", mail.nack(held, nacking(), at())[1])
    assert text == 'Given back "t1": it is handed out again from 2026-09-21T14:13:20.000Z.'
    text = read("inbox_nack", mail.nack(done, nacking(), at())[1])
    assert text == 'NOT given back "t1": it has been acknowledged.'


# --- leases ------------------------------------------------------------------------------------


@pytest.mark.requirement("watch.texts.leases")
def test_a_holder_reads_its_fence_and_nobody_else_does() -> None:
    mine = taken(scope="s")
    text = read("lease", mine.result)
    assert text.startswith('Acquired: lease "db" for "w1", scope "s", generation 1, until ')
    assert "\nfence: f-secret\n" in text
    assert "Without a scope" not in text
    assert "Without a scope" in read("lease", taken().result)
    again = taken(mine.lease, 1_000, fence="f-secret")
    assert read("lease", again.result).startswith('Renewed: lease "db"')
    other = taken(mine.lease, 1_500, holder="w2")
    text = read("lease", other.result)
    assert text.startswith('NOT acquired: lease "db" is held by "w1" (generation 1) until ')
    assert "try again in 58.5 s" in text
    assert "f-secret" not in text


@pytest.mark.requirement("watch.texts.leases")
def test_renewing_and_releasing_are_told() -> None:
    mine = taken().lease
    renew = LeaseRenewArguments(key="db", holder="w1", fence="f-secret")
    release = LeaseReleaseArguments(key="db", holder="w1", fence="f-secret")
    assert read("lease_renew", leases.renew(mine, renew, at()).result).startswith("Renewed: ")
    assert read("lease_release", leases.release(mine, release, at()).result).startswith(
        'Released: lease "db", generation 1.'
    )
    late = read("lease_renew", leases.renew(mine, renew, at(60_000)).result)
    assert late.startswith('NOT renewed: lease "db" has expired. Stop what it guards.')
    wrong = msgspec.structs.replace(release, fence="x", holder="w2")
    text = read("lease_release", leases.release(mine, wrong, at()).result)
    assert text.startswith('NOT released: you are not the holder of lease "db". "w1" holds it.')
    assert "f-secret" not in text


@pytest.mark.requirement("watch.texts.leases")
def test_null_is_told_as_unknown() -> None:
    assert "do not proceed" in read("lease", LeaseResult(server_time="t", acquired=None))
    assert "do not proceed" in read("lease_renew", LeaseRenewResult(server_time="t", renewed=None))
    unknown = LeaseReleaseResult(server_time="t", released=None)
    assert "not known" in read("lease_release", unknown)


@pytest.mark.requirement("watch.texts.every-tool")
def test_every_tool_has_its_words() -> None:
    assert {tool.name for tool in TOOLS} == set(texts.WORDED)
