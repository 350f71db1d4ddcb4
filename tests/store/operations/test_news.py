"""What is to be pushed: claimed by one server at a time, told until a host took it."""

import pytest

from mcpl_heartbeat.storage.store import schema
from tests.store.operations.rig import Agent, Rig


def _die(rig: Rig, worker: Agent, boss: Agent, *scopes: str) -> None:
    alert = {"on_expiry": ["queue_alert"], "notify_address": boss.address}
    rig.batch(*[worker.ask("heartbeat", scope=scope, **alert) for scope in scopes])
    rig.advance(30)
    assert rig.sweep().fired == len(scopes)


@pytest.mark.requirement("watch.store.claim", "field.32.claimed-first", "field.35.intent-is-a-row")
def test_an_alert_is_pushed_by_one_server_at_a_time(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "s")
    (alert,) = rig.news(boss, "one").alerts
    assert (alert.scope, alert.kind) == ("s", "alert")
    assert rig.news(boss, "two").empty
    rig.advance(59.999)
    assert rig.news(boss, "two").empty
    rig.advance(0.001)
    assert [each.seq for each in rig.news(boss, "two").alerts] == [alert.seq]
    assert rig.news(boss, "one").empty


@pytest.mark.requirement("watch.store.claim")
def test_a_server_is_told_again_of_what_it_claims_and_holds_it_anew(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "s")
    for _ in range(5):
        assert len(rig.news(boss, "one").alerts) == 1
        rig.advance(40)
        assert rig.news(boss, "two").empty
    rig.advance(20)
    assert rig.news(boss, "two").alerts
    assert rig.news(boss, "one").empty


@pytest.mark.requirement("watch.store.claim")
def test_asking_again_at_once_writes_nothing(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "s")
    rig.news(boss)
    rig.statements.clear()
    rig.advance(0.5)
    assert rig.news(boss).alerts
    assert not [each for each in rig.statements if each.startswith(("UPDATE", "INSERT"))]


@pytest.mark.requirement("watch.store.pushed")
def test_what_a_host_took_is_not_pushed_again_and_stays_in_the_inbox(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "x", "y")
    news = rig.news(boss)
    assert [alert.scope for alert in news.alerts] == ["x", "y"]
    rig.pushed([news.alerts[0].seq], taken=True)
    rig.advance(61)
    assert [alert.scope for alert in rig.news(boss, "other").alerts] == ["y"]
    assert boss.whoami().total == 2
    assert boss.inbox_poll().envelope.scope == "x"
    kinds = [entry.kind for entry in worker.switch_status(scope="x").journal]
    assert kinds == ["armed", "fired", "alerted", "pushed"]
    assert worker.switch_status(scope="y").journal[-1].kind == "alerted"


@pytest.mark.requirement("watch.store.pushed")
def test_what_a_host_refused_is_let_go_for_another_server(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "s")
    seqs = [alert.seq for alert in rig.news(boss, "one").alerts]
    rig.pushed(seqs, taken=False, token="one")
    assert rig.news(boss, "two").alerts[0].pushed_at is None
    assert worker.switch_status(scope="s").journal[-1].kind == "alerted"


@pytest.mark.requirement("watch.store.pushed")
def test_the_word_of_a_server_that_lost_its_claim_changes_nothing(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "s")
    seqs = [alert.seq for alert in rig.news(boss, "one").alerts]
    rig.advance(60)
    rig.news(boss, "two")
    before = rig.dump()
    rig.pushed(seqs, taken=True, token="one")
    rig.pushed(seqs, taken=False, token="one")
    rig.pushed([], taken=True)
    rig.pushed([12345], taken=True)
    assert rig.dump() == before
    rig.pushed(seqs, taken=True, token="two")
    assert rig.rows(schema.envelopes)[0]["pushed_at"] == rig.real


@pytest.mark.requirement("watch.store.pushed", "field.43.settled-survives")
def test_a_late_answer_counts_while_nobody_else_has_claimed(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "s")
    seqs = [alert.seq for alert in rig.news(boss).alerts]
    rig.advance(3600)
    rig.pushed(seqs, taken=True)
    assert rig.news(boss).empty
    assert rig.news(boss, "restarted").empty


@pytest.mark.requirement("watch.store.pushed")
def test_what_was_read_and_acknowledged_needs_no_push(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "x", "y")
    boss.inbox_ack(task_id=boss.inbox_poll().envelope.task_id)
    assert [alert.scope for alert in rig.news(boss).alerts] == ["y"]


@pytest.mark.requirement("field.37.recovery-after-alarm")
def test_a_recovery_is_told_by_its_alarm_and_by_nothing_else(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    worker.heartbeat(scope="quiet")
    rig.advance(31)
    assert worker.heartbeat(scope="quiet", expect_within_seconds=600).fired
    assert rig.rows(schema.envelopes) == [], "nobody was to be alarmed"
    _die(rig, worker, boss, "read", "pushed", "waits")
    seqs = {alert.scope: alert.seq for alert in rig.news(boss).alerts}
    rig.pushed([seqs["read"], seqs["pushed"]], taken=True)
    rig.pushed([seqs["waits"]], taken=False)
    for _ in range(3):
        envelope = boss.inbox_poll().envelope
        if envelope.scope == "read":
            boss.inbox_ack(task_id=envelope.task_id)
    for scope in seqs:
        assert worker.heartbeat(scope=scope).fired
    assert len(rig.rows(schema.envelopes)) == 3
    assert rig.news(boss).alerts == (), "it wakes nobody for what is over, and waits in its box"
    rig.advance(301)
    shown = [boss.inbox_poll().envelope for _ in range(3)]
    assert {each.scope: each.resolution for each in shown if each} == {
        "pushed": "recovered",
        "waits": "recovered",
    }


@pytest.mark.requirement("watch.store.pushed")
def test_an_alert_that_took_in_another_is_told_again(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    rig.batch(*[boss.ask("send", to=boss.address, objective="mail") for _ in range(968)])
    _die(rig, worker, boss, *[f"s{i:02}" for i in range(16)])
    seqs = [alert.seq for alert in rig.news(boss).alerts]
    rig.pushed(seqs[:15], taken=True)
    _die(rig, worker, boss, "more")
    # The push that is out for the last one does not speak of the new death.
    rig.pushed(seqs[15:], taken=True)
    (alert,) = rig.news(boss).alerts
    assert alert.seq == seqs[15]
    assert alert.alert is not None
    assert alert.alert.folded_scopes == ("more",)


@pytest.mark.requirement("watch.store.claim")
def test_news_is_bounded_and_the_oldest_comes_first(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, *[f"s{i:02}" for i in range(9)])
    first = rig.news(boss, most=4).alerts
    assert [alert.scope for alert in first] == ["s00", "s01", "s02", "s03"]
    rig.pushed([alert.seq for alert in first], taken=True)
    assert rig.news(boss, most=4).alerts[0].scope == "s04"


@pytest.mark.requirement("watch.store.corrupt")
def test_an_alert_that_cannot_be_read_does_not_stop_the_others(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "x", "y")
    rig.sql("UPDATE envelopes SET alert = '{}' WHERE scope = 'x'")
    assert [alert.scope for alert in rig.news(boss).alerts] == ["y"]
    assert "set aside" in boss.inbox_poll().notes[0]


@pytest.mark.requirement("watch.store.nudge")
def test_a_nudge_comes_once_for_each_deadline_and_is_no_beat(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(nudge_seconds=10)
    rig.advance(19.999)
    assert rig.news(agent).empty
    rig.advance(0.001)
    (nudge,) = rig.news(agent).nudges
    assert (nudge.scope, nudge.generation) == ("s", 1)
    assert nudge.deadline_watched == rig.now.watched + 10_000
    assert rig.news(agent).empty
    assert rig.news(agent, "other").empty
    assert agent.switch_status(scope="s").switches[0].beats == 1
    assert agent.switch_status(scope="s").journal[-1].kind == "nudged"
    agent.heartbeat()
    assert rig.news(agent).empty
    rig.advance(25)
    assert len(rig.news(agent).nudges) == 1
    rig.advance(5)
    assert rig.sweep().fired == 1


@pytest.mark.requirement("watch.store.nudge")
def test_nobody_is_nudged_after_the_deadline_or_without_asking(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="late", nudge_seconds=10)
    agent.heartbeat(scope="quiet")
    agent.heartbeat(scope="done", nudge_seconds=10)
    agent.heartbeat(scope="done", disarm=True)
    rig.advance(30)
    assert rig.news(agent).empty


@pytest.mark.requirement("watch.store.nudge")
def test_a_deadline_that_a_gap_moved_is_nudged_in_its_own_time(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(nudge_seconds=10)
    rig.advance(15)
    rig.gap(100)
    assert rig.news(agent).empty
    rig.advance(20)
    assert len(rig.news(agent).nudges) == 1


@pytest.mark.requirement("watch.store.nudge")
def test_a_gap_after_the_nudge_makes_another_deadline_with_a_nudge_of_its_own(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(nudge_seconds=10)
    rig.advance(25)
    (first,) = rig.news(agent).nudges
    rig.gap(100)
    assert rig.news(agent, held=(first,)).void == (first,)
    rig.advance(25)
    (second,) = rig.news(agent).nudges
    assert second.deadline_watched == first.deadline_watched + 25_000


@pytest.mark.requirement("watch.store.nudge-void")
def test_a_server_learns_which_of_its_nudges_still_stand(rig: Rig) -> None:
    agent, other = rig.agent("a"), rig.agent("b")
    scopes = ("beaten", "disarmed", "late", "again", "stands")
    for scope in scopes:
        agent.heartbeat(scope=scope, nudge_seconds=10, expect_within_seconds=30)
        other.heartbeat(scope=scope, nudge_seconds=10, expect_within_seconds=30)
    rig.advance(20)
    held = {nudge.scope: nudge for nudge in rig.news(agent).nudges}
    assert set(held) == set(scopes)
    asked = tuple(held.values())
    news = rig.news(agent, "other", held=asked)
    assert (news.standing, news.void) == (asked, ())
    agent.heartbeat(scope="beaten")
    agent.heartbeat(scope="disarmed", disarm=True)
    agent.heartbeat(scope="again", disarm=True)
    agent.heartbeat(scope="again")
    rig.sql("UPDATE switches SET deadline_watched = 0 WHERE scope = 'late'")
    rig.sweep()
    rig.statements.clear()
    news = rig.news(agent, held=asked)
    assert news.standing == (held["stands"],)
    assert set(news.void) == {held[scope] for scope in scopes[:4]}
    assert not [each for each in rig.statements if each.startswith(("UPDATE", "INSERT"))]
    assert not news.empty


@pytest.mark.requirement("watch.push.nudge-given-back")
def test_what_a_server_gives_back_of_its_nudges_is_given_to_another_while_it_stands(
    rig: Rig,
) -> None:
    agent, other = rig.agent("a"), rig.agent("b")
    for scope in ("beaten", "disarmed", "late", "stands"):
        agent.heartbeat(scope=scope, nudge_seconds=10, expect_within_seconds=30)
    other.heartbeat(scope="stands", nudge_seconds=10, expect_within_seconds=30)
    rig.advance(20)
    given = rig.news(agent).nudges
    assert rig.news(other).nudges
    agent.heartbeat(scope="beaten", expect_within_seconds=31)
    agent.heartbeat(scope="disarmed", disarm=True)
    rig.sql("UPDATE switches SET deadline_watched = 0 WHERE scope = 'late'")
    rig.sweep()
    rig.unsent(agent, *given)
    (nudge,) = rig.news(agent, "another").nudges
    assert nudge in given
    assert nudge.scope == "stands"
    assert rig.news(other, "another").nudges == (), "that was not its own to give back"
    rig.unsent(agent)
    assert rig.news(agent, "a third").nudges == ()


@pytest.mark.requirement("watch.store.over")
@pytest.mark.parametrize("let_go", [True, False])
def test_an_alert_that_is_resolved_before_its_push_wakes_nobody(rig: Rig, let_go: bool) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    _die(rig, worker, boss, "beaten", "disarmed", "dead")
    if let_go:
        seqs = [alert.seq for alert in rig.news(boss, "one").alerts]
        rig.pushed(seqs, taken=False, token="one")
    worker.heartbeat(scope="beaten")
    worker.heartbeat(scope="disarmed", disarm=True)
    assert [alert.scope for alert in rig.news(boss, "two").alerts] == ["dead"]
    rig.advance(61)
    rig.statements.clear()
    assert [alert.scope for alert in rig.news(boss, "two").alerts] == ["dead"]
    assert boss.whoami().total == 3, "each stays in its box"
    assert worker.switch_status(scope="disarmed").journal[-1].kind == "disarmed"


@pytest.mark.requirement("watch.store.over")
def test_one_that_stands_for_another_death_wakes_all_the_same(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    rig.batch(*[boss.ask("send", to=boss.address, objective="mail") for _ in range(968)])
    _die(rig, worker, boss, *[f"s{i:02}" for i in range(16)])
    _die(rig, worker, boss, "more")
    assert worker.heartbeat(scope="s15").fired
    (*_, last) = rig.news(boss).alerts
    assert last.alert is not None
    assert (last.scope, last.alert.resolution, last.alert.folded) == ("s15", "recovered", 1)


@pytest.mark.requirement("watch.push.told")
def test_a_server_learns_of_which_kind_there_is_nothing_for_it(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    assert rig.news(boss, most=0).quiet == set()
    assert rig.news(boss, work=True, reviews=9).quiet == {"alerts", "work", "reviews"}
    _die(rig, worker, boss, "s")
    assert rig.news(boss, "one", reviews=9).quiet == {"reviews"}
    assert rig.news(boss, "two").quiet == {"alerts"}, "another server has it"


@pytest.mark.requirement("watch.store.presence")
def test_a_server_is_present_until_it_says_otherwise_or_falls_silent(rig: Rig) -> None:
    agent = rig.agent()
    rig.present(agent, "one")
    rig.present(agent, "one")
    rig.present(agent, "two")
    assert len(rig.rows(schema.presence)) == 2
    rig.present(agent, "one", here=False)
    rig.advance(59)
    rig.keep_house()
    assert [row["token"] for row in rig.rows(schema.presence)] == ["two"]
    rig.advance(1)
    rig.keep_house()
    assert rig.rows(schema.presence) == []
