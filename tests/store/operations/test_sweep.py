"""The sweep: once, in order, bounded, never held up by one row, and whole or not at all."""

import random

import pytest
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import fires, mail, schema, sweep
from mcpl_heartbeat.watch import switches
from mcpl_heartbeat.watch.mail import PLACES, alert_envelope
from mcpl_heartbeat.watch.rows import BoxLoad
from tests.store.operations.rig import START, Agent, Rig

WRITES_OF_A_FIRE = 5
"""The switch, its leases, the alert, and two times lines of the journal."""
ALL = ["release_leases", "mark_failed", "queue_alert"]


def _arm(rig: Rig, agent: Agent, count: int, **more: object) -> None:
    rig.batch(*[agent.ask("heartbeat", scope=f"s{i:05}", **more) for i in range(count)])


@pytest.mark.requirement("watch.store.sweep-order")
def test_the_oldest_deadline_fires_first_and_no_more_than_asked(rig: Rig) -> None:
    agent = rig.agent()
    order = random.Random(1).sample(range(2, 42), 40)
    rig.batch(
        *[agent.ask("heartbeat", scope=f"s{i}", expect_within_seconds=i) for i in order],
        # These were beaten since: their place in the index is an old one.
        *[agent.ask("heartbeat", scope=f"s{i}", expect_within_seconds=i + 50) for i in order[:20]],
    )
    rig.advance(100)
    late: list[int] = []
    swept = rig.sweep(7)
    while swept.more:
        assert swept.fired <= 7
        late += swept.late_ms
        swept = rig.sweep(7)
    late += swept.late_ms
    assert len(late) == 40
    assert late == sorted(late, reverse=True)
    assert rig.sweep(7).fired == 0


@pytest.mark.requirement("watch.store.sweep-order", "field.28.sweep-period")
@pytest.mark.parametrize("most", [1, 3, 200])
def test_how_much_a_sweep_takes_on_changes_nothing_in_the_end(rig: Rig, most: int) -> None:
    agent = rig.agent()
    dice = random.Random(2)
    for _ in range(6):
        beats = [(f"s{dice.randrange(12)}", dice.randint(2, 9)) for _ in range(8)]
        rig.batch(*[agent.ask("heartbeat", scope=s, expect_within_seconds=w) for s, w in beats])
        rig.advance(dice.randint(0, 4))
        rig.sweep(most)
    rig.advance(20)
    while rig.sweep(most).more:
        pass
    fires_of = {row["scope"]: row["fires"] for row in rig.rows(schema.switches)}
    assert fires_of == _expected(random.Random(2))


def _expected(dice: random.Random) -> dict[str, int]:
    """Count the deaths by hand: a beat at or after a deadline finds one, and so does the end."""
    now = 0
    deadline: dict[str, int] = {}
    fired: dict[str, int] = {}
    for _ in range(6):
        for scope, window in [(f"s{dice.randrange(12)}", dice.randint(2, 9)) for _ in range(8)]:
            fired[scope] = fired.get(scope, 0) + (deadline.get(scope, now + 1) <= now)
            deadline[scope] = now + window
        now += dice.randint(0, 4)
        for scope in [each for each in deadline if deadline[each] <= now]:
            fired[scope] += 1
            del deadline[scope]
    return {scope: count + (scope in deadline) for scope, count in fired.items()}


@pytest.mark.requirement(
    "watch.store.sweep-starves-nobody", "field.13.no-starving", "field.14.no-false-end"
)
def test_rows_that_are_not_due_do_not_hold_up_one_that_is(rig: Rig) -> None:
    agent = rig.agent()
    _arm(rig, agent, 60, expect_within_seconds=10)
    rig.advance(5)
    _arm(rig, agent, 60, expect_within_seconds=500)
    agent.heartbeat(scope="late", expect_within_seconds=6)
    rig.advance(6)
    # 60 rows stand before it in the index, of which a sweep looks at 15.
    swept = rig.sweep(3)
    sweeps = 1
    while swept.more and not swept.fired:
        swept = rig.sweep(3)
        sweeps += 1
    assert swept.fired == 1
    assert sweeps <= 60 // (3 * sweep.LOOKS) + 1
    assert rig.sweep(3).fired == 0


@pytest.mark.requirement("watch.store.sweep-starves-nobody")
def test_a_row_that_cannot_be_read_is_set_aside_once_and_the_rest_fires(rig: Rig) -> None:
    agent, other = rig.agent("a"), rig.agent("b")
    _arm(rig, agent, 5)
    other.heartbeat(scope="s00002")
    rig.sql(
        "UPDATE switches SET on_expiry = 'gone' WHERE scope = 's00002' AND namespace = :n",
        n=agent.namespace,
    )
    rig.advance(31)
    swept = rig.sweep()
    assert (swept.fired, swept.corrupt) == (5, ("s00002",))
    assert rig.sweep().corrupt == ()
    status = agent.switch_status()
    assert status.corrupt == ("s00002",)
    assert {view.scope: view.state for view in status.switches} == {
        f"s{i:05}": "fired" for i in (0, 1, 3, 4)
    }
    assert other.switch_status().corrupt == ()
    one = agent.switch_status(scope="s00002")
    assert (one.switches, one.corrupt) == ((), ("s00002",))
    assert one.journal[-1].kind == "quarantined"
    assert "on_expiry" in one.journal[-1].detail["why"]


@pytest.mark.requirement("watch.store.whole-or-not")
def test_a_fire_that_fails_costs_only_itself_and_leaves_nothing_half_done(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = rig.agent()
    _arm(rig, agent, 3, on_expiry=ALL, notify_address=agent.address)
    for i in range(3):
        agent.lease(key=f"k{i}", holder="h", scope=f"s{i:05}", ttl_seconds=600)
    real = alert_envelope

    def broken(alert, *rest):
        # By now its switch and its leases are written.
        if alert.scope == "s00001":
            raise ZeroDivisionError
        return real(alert, *rest)

    monkeypatch.setattr(fires, "alert_envelope", broken)
    rig.advance(31)
    swept = rig.sweep()
    assert (swept.fired, swept.corrupt, len(swept.late_ms)) == (2, ("s00001",), 2)
    held = {row["key"]: row["held"] for row in rig.rows(schema.leases)}
    assert held == {"k0": 0, "k1": 1, "k2": 0}
    assert [row["of_scope"] for row in rig.rows(schema.envelopes)] == ["s00000", "s00002"]
    assert [row["fires"] for row in rig.rows(schema.switches)] == [1, 0, 1]
    kinds = [row["kind"] for row in rig.rows(schema.journal, scope="s00001")]
    assert kinds == ["armed", "leased", "quarantined"]


@pytest.mark.requirement(
    "watch.store.whole-or-not", "field.34.alert-never-lost", "field.35.intent-is-a-row"
)
@pytest.mark.parametrize("nth", range(1, WRITES_OF_A_FIRE + 1))
def test_what_stops_in_the_middle_of_a_fire_leaves_nothing_of_it(rig: Rig, nth: int) -> None:
    agent = rig.agent()
    agent.heartbeat(on_expiry=ALL, notify_address=agent.address)
    agent.lease(key="k", holder="h", scope="s", ttl_seconds=600)
    rig.advance(31)
    before = rig.dump()
    rig.fail_at = 100
    with pytest.raises(ZeroDivisionError):
        rig.do(lambda tx: sweep.sweep(tx, 9).fired / 0)
    assert 100 - rig.fail_at == WRITES_OF_A_FIRE
    assert rig.dump() == before
    rig.fail_at = nth
    with pytest.raises(sa.exc.OperationalError):
        rig.sweep()
    assert rig.dump() == before
    assert rig.sweep().fired == 1


@pytest.mark.requirement("watch.store.sweep-cost")
def test_with_nothing_due_a_sweep_is_one_look_at_each_index(rig: Rig) -> None:
    agent = rig.agent()
    _arm(rig, agent, 300)
    rig.advance(29)
    rig.statements.clear()
    rig.sweep()
    asked = [each for each in rig.statements if not each.startswith(("BEGIN", "SELECT pg_"))]
    at_tasks, at_switches = asked
    assert "check_watched <=" in at_switches
    assert "state = 'armed'" in at_switches
    if rig.sqlite:
        for look, index in ((at_switches, "switches_check"), (at_tasks, "tasks_timeout")):
            plan = rig.plan(look, (0, 10, 0))
            assert f"USING INDEX {index}" in plan
            assert "TEMP B-TREE" not in plan


@pytest.mark.requirement("field.16.beat-cancels", "watch.store.once")
def test_a_beat_that_comes_between_look_and_fire_cannot(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat()
    rig.advance(29)
    agent.heartbeat()
    rig.advance(2)
    assert rig.sweep().fired == 0
    rig.advance(28)
    assert rig.sweep().late_ms == (0,)


@pytest.mark.requirement("field.25.fired-stays", "field.31.one-alert")
def test_whoever_sweeps_next_finds_it_fired_and_alerts_nobody_again(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(on_expiry=["queue_alert"], notify_address=agent.address)
    rig.advance(31)
    assert [rig.sweep().fired for _ in range(4)] == [1, 0, 0, 0]
    assert agent.switch_status(scope="s").switches[0].state == "fired"
    assert agent.whoami().total == 1


@pytest.mark.requirement("watch.store.fold", "field.34.alert-never-lost")
def test_an_alert_that_finds_the_box_full_is_counted_by_the_newest(rig: Rig) -> None:
    boss, worker = rig.agent("b"), rig.agent("w")
    alert = {"on_expiry": ["queue_alert"], "notify_address": boss.address}
    _arm(rig, worker, 30, **alert)
    rig.batch(*[boss.ask("send", to=boss.address, objective="mail") for _ in range(968)])
    rig.advance(31)
    assert rig.sweep().fired == 30
    envelopes = rig.rows(schema.envelopes, kind="alert")
    assert len(envelopes) == 16
    kinds = [row["kind"] for row in rig.rows(schema.journal)]
    assert (kinds.count("alerted"), kinds.count("alert_folded")) == (16, 14)
    seen: list[str] = []
    counted = 0
    for _ in range(16):
        envelope = boss.inbox_poll().envelope
        seen += [envelope.scope, *envelope.folded_scopes]
        counted += 1 + envelope.folded
    assert counted == 30
    assert sorted(seen) == [f"s{i:05}" for i in range(30)]
    assert boss.inbox_poll().envelope.kind == "message"


@pytest.mark.requirement("watch.mail.alerts-elsewhere", "field.34.alert-never-lost")
@pytest.mark.parametrize("at_once", [True, False])
def test_a_stranger_s_alerts_open_64_boxes_and_the_others_go_to_the_inbox(
    rig: Rig, at_once: bool
) -> None:
    boss, worker = rig.agent("b"), rig.agent("w")
    boss.send(to=f"{boss.address}/own", objective="mail")
    for number in range(70):
        worker.heartbeat(
            scope=f"s{number}",
            on_expiry=["queue_alert"],
            notify_address=f"{boss.address}/box{number}",
            expect_within_seconds=30 + (0 if at_once else number),
        )
    for _ in range(4):
        rig.advance(30)
        rig.sweep()
    boxes = [row["box"] for row in rig.rows(schema.envelopes, kind="alert")]
    assert boxes.count("inbox") == 70 - 63
    assert len(set(boxes)) == 64
    found = boss.inbox_poll().envelope
    assert found.meant_for == found.scope.replace("s", "box")
    placed = worker.switch_status(scope=found.scope).journal[-1]
    assert (placed.kind, placed.detail["placed_in"]) == ("alerted", "inbox")
    boss.heartbeat(
        on_expiry=["queue_alert"],
        notify_address=f"{boss.address}/mine",
        expect_within_seconds=30,
    )
    rig.advance(31)
    rig.sweep()
    assert rig.rows(schema.envelopes, box="mine")


@pytest.mark.requirement("watch.store.fold", "field.34.alert-never-lost")
def test_where_no_alert_can_take_it_in_an_alert_has_a_place_all_the_same(rig: Rig) -> None:
    boss = rig.agent("b")
    rig.batch(*[boss.ask("send", to=boss.address, objective="mail") for _ in range(968)])
    rig.sql("UPDATE envelopes SET visible_at = visible_at")
    load = rig.do(lambda tx: mail._load_of(tx, boss.id, "inbox"))
    assert load == BoxLoad(pending=968, own_alerts=0, foreign_alerts=0, newest_alert=None, boxes=1)
    extra = [dict(row, seq=None) for row in rig.rows(schema.envelopes)[:32]]
    for i, row in enumerate(extra):
        row["task_id"] = f"extra{i}"
        del row["seq"]
    rig.do(lambda tx: tx.conn.execute(sa.insert(schema.envelopes), extra))
    boss.heartbeat(on_expiry=["queue_alert"], notify_address=boss.address)
    rig.advance(31)
    rig.sweep()
    assert boss.whoami().total == PLACES + 1
    assert boss.inbox_poll().envelope.scope == "s"


@pytest.mark.requirement("watch.store.vanished-address")
def test_an_address_that_is_gone_at_the_fire_stops_nothing_else(rig: Rig) -> None:
    agent, boss = rig.agent("a"), rig.agent("b")
    agent.heartbeat(on_expiry=ALL, notify_address=boss.address)
    agent.lease(key="k", holder="h", scope="s", ttl_seconds=600)
    rig.sql("DELETE FROM identities WHERE agent = :a", a=boss.id)
    rig.advance(31)
    assert rig.sweep().fired == 1
    journal = agent.switch_status(scope="s").journal
    assert [entry.kind for entry in journal] == ["armed", "leased", "fired", "alerted"]
    assert "not registered" in journal[-1].detail["undelivered"]
    assert agent.lease(key="k", holder="x").generation == 2


@pytest.mark.requirement("watch.gap.raised", "field.23.renewal-chance")
@pytest.mark.parametrize("seed", range(5))
def test_after_a_gap_the_store_gives_back_what_the_core_says(rig: Rig, seed: int) -> None:
    agent, dice = rig.agent(), random.Random(seed)
    windows = [dice.choice([2, 10, 59, 60, 61, 100, 3600]) for _ in range(40)]
    rig.batch(
        *[
            agent.ask("heartbeat", scope=f"s{i:02}", expect_within_seconds=window)
            for i, window in enumerate(windows)
        ]
    )
    rig.advance(dice.choice([1, 9, 40, 59]))
    rig.batch(*[agent.ask("heartbeat", scope=f"s{i:02}", disarm=True) for i in range(5)])
    before = rig.rows(schema.switches)
    rig.gap(dice.choice([2.5, 500, 100_000]))
    after = rig.rows(schema.switches)
    for old, new in zip(before, after, strict=True):
        deadline = old["deadline_watched"]
        if old["state"] == "armed":
            deadline = switches.after_gap(deadline, old["window_ms"], rig.now)
        assert new == {**old, "deadline_watched": deadline}
    assert rig.now.watched < rig.real


@pytest.mark.requirement("watch.gap.raised", "field.23.renewal-chance")
def test_after_a_gap_nobody_dies_before_one_chance_to_beat_or_renew(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="short", expect_within_seconds=10)
    agent.heartbeat(scope="long", expect_within_seconds=3600)
    fence = agent.lease(key="k", holder="h", ttl_seconds=10).fence
    agent.lease(key="far", holder="h", ttl_seconds=3600)
    rig.advance(9)
    rig.gap(86_400)
    rig.advance(9)
    assert rig.sweep().fired == 0
    status = agent.switch_status(scope="short")
    assert status.switches[0].seconds_left == 1
    assert status.watch_gaps[0].seconds == 86_400
    # What it was taken for, and no more: 10 s from when watching began again.
    assert agent.lease(key="k", holder="other").retry_after_seconds == 1
    assert agent.lease_renew(key="k", holder="h", fence=fence).renewed is True
    rig.advance(1)
    assert rig.sweep().late_ms == (0,)
    rig.advance(3600 - 9 - 10 - 0.001)
    assert rig.sweep().fired == 0
    assert rig.sweep().fired == 0
    rig.advance(0.001)
    assert rig.sweep().late_ms == (0,)


@pytest.mark.requirement("watch.gap.raised")
def test_what_was_late_before_the_gap_fires_and_is_dated_at_its_deadline(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(expect_within_seconds=10)
    rig.advance(12)
    rig.gap(1000)
    assert rig.sweep().late_ms == (2000,)
    death = agent.resume_packet(scope="s").deaths[0]
    assert death.deadline == rig.now.tell(START + 10_000)
    assert death.noticed_at == rig.now.tell(START + 1_012_000)


@pytest.mark.requirement("field.26.restarts", "watch.gap.raised")
def test_a_long_switch_fires_at_its_time_though_the_server_is_restarted_each_hour(
    rig: Rig,
) -> None:
    agent = rig.agent()
    agent.heartbeat(expect_within_seconds=30 * 3600)
    watched = 0
    while not rig.sweep().fired:
        rig.advance(3600)
        watched += 3600
        rig.gap(5)
        assert watched <= 30 * 3600 + 120
    assert watched >= 30 * 3600
