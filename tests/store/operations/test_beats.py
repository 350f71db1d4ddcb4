"""Beats in the store: taken together, settled first, and written with no more than has changed."""

import random
from typing import Any

import pytest

from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.ports import Ask
from tests.store.operations.rig import Agent, Rig, refused, told

ALL = ["release_leases", "mark_failed", "queue_alert"]


@pytest.mark.requirement("watch.store.auth")
def test_a_call_without_a_known_secret_changes_nothing(rig: Rig) -> None:
    agent = rig.agent()
    before = rig.dump()
    stranger = Agent(rig, "z" * 32)
    for tool, arguments in [
        ("heartbeat", {}),
        ("whoami", {}),
        ("lease", {"key": "k", "holder": "h"}),
    ]:
        ask = agent.ask(tool, **arguments)
        for secret in (None, "", stranger.secret, agent.secret[:-1], "\udcff" * 32):
            failure = refused(rig.call(Ask(tool, ask.arguments, secret)))
            assert (failure.code, failure.status) == ("unauthorized", 401)
            assert "Bearer" in failure.next
    assert rig.dump() == before


@pytest.mark.requirement("watch.store.auth")
def test_in_a_batch_each_call_is_for_its_own_secret(rig: Rig) -> None:
    a, b = rig.agent("a"), rig.agent("b")
    outcomes = rig.batch(
        a.ask("heartbeat", scope="x"),
        Ask("heartbeat", a.ask("heartbeat", scope="y").arguments, "nobody" * 8),
        b.ask("heartbeat", scope="x", expect_within_seconds=60),
    )
    assert [told(outcome).get("code") for outcome in outcomes] == [None, "unauthorized", None]
    assert [row["namespace"] for row in rig.rows(schema.switches)] == sorted(
        [a.namespace, b.namespace]
    )
    assert told(outcomes[2])["expect_within_seconds"] == 60


@pytest.mark.requirement("watch.store.batch")
def test_a_call_sees_those_before_it_in_its_batch(rig: Rig) -> None:
    agent = rig.agent()
    outcomes = rig.batch(
        agent.ask("heartbeat", agent_id="one"),
        agent.ask("heartbeat", expect_within_seconds=90),
        agent.ask("heartbeat", disarm=True),
        agent.ask("heartbeat"),
        agent.ask("switch_status", scope="s"),
    )
    first, second, third, fourth, status = map(told, outcomes)
    assert (first["state"], first["generation"]) == ("armed", 1)
    assert (second["agent_id"], second["seconds_left"]) == ("one", 90)
    assert third["state"] == "disarmed"
    assert (fourth["generation"], fourth["agent_id"]) == (2, None)
    assert status["switches"][0]["beats"] == 1
    kinds = [entry["kind"] for entry in status["journal"]]
    assert kinds == ["armed", "disarmed", "armed"]


def _calls(agents: list[Agent], seed: int) -> list[list[Ask]]:
    """Make rounds of random calls on few scopes, so that they get in each other's way."""
    dice = random.Random(seed)
    rounds = []
    for _ in range(12):
        asks = []
        for _ in range(dice.randint(1, 9)):
            agent = dice.choice(agents)
            more: dict[str, Any] = {"scope": dice.choice("pqr")}
            more["expect_within_seconds"] = dice.choice([2, 5, 30, 300])
            if dice.random() < 0.4:
                more["on_expiry"] = dice.choice([ALL, ["mark_failed"], ["queue_alert"]])
                if "queue_alert" in more["on_expiry"]:
                    more["notify_address"] = dice.choice(agents).address
            if dice.random() < 0.2:
                more["disarm"] = True
            if dice.random() < 0.2:
                more["nudge_seconds"] = 1
            if dice.random() < 0.15:
                key, scope = dice.choice("kl"), dice.choice("pqr")
                asks.append(agent.ask("lease", key=key, holder="h", scope=scope, ttl_seconds=9))
            else:
                asks.append(agent.ask("heartbeat", **more))
        rounds.append(asks)
    return rounds


@pytest.mark.requirement("watch.store.batch")
@pytest.mark.parametrize("seed", range(6))
def test_a_batch_comes_to_the_same_as_its_calls_one_by_one(
    rig: Rig, other_rig: Rig, seed: int
) -> None:
    answers = []
    for each, apart in ((rig, False), (other_rig, True)):
        dice = random.Random(seed)
        given = []
        for asks in _calls([each.agent("a"), each.agent("b")], seed):
            if apart:
                given += [told(each.call(ask)) for ask in asks]
            else:
                given += map(told, each.batch(*asks))
            each.advance(dice.choice([0, 1, 4, 31]))
        answers.append(given)
    together, one_by_one = answers
    _without_secrets(together)
    _without_secrets(one_by_one)
    assert together == one_by_one
    assert _state(rig) == _state(other_rig)


def _without_secrets(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        answer.pop("fence", None)


def _state(rig: Rig) -> dict[str, Any]:
    """All there is, but for random names, where sweeps look next, and the order between scopes."""
    found: dict[str, Any] = rig.dump()
    found["envelopes"].sort(
        key=lambda row: [row[f"of_{n}"] for n in ("namespace", "scope", "generation")]
    )
    found["journal"].sort(key=lambda row: (row["namespace"], row["scope"]))
    for rows in found.values():
        for row in rows:
            for name in ("fence", "task_id", "check_watched", "seq"):
                row.pop(name, None)
    return found


@pytest.mark.requirement("watch.store.late-beat")
def test_a_late_beat_fires_first_though_nobody_swept(rig: Rig) -> None:
    worker, boss = rig.agent("w"), rig.agent("b")
    worker.heartbeat(on_expiry=ALL, notify_address=boss.address, agent_id="w-1")
    worker.lease(key="k", holder="w-1", scope="s", ttl_seconds=600)
    rig.advance(30)
    result = worker.heartbeat()
    assert (result.fired, result.fired_generation, result.generation) == (True, 1, 2)
    assert result.on_expiry == ("mark_failed",)
    envelope = boss.inbox_poll().envelope
    assert (envelope.kind, envelope.generation, envelope.agent_id) == ("alert", 1, "w-1")
    assert [freed["key"] for freed in envelope.released] == ["k"]
    assert envelope.resolution == "recovered"
    kinds = [entry.kind for entry in worker.switch_status(scope="s").journal]
    assert kinds == ["armed", "leased", "fired", "alerted", "recovered", "armed"]


@pytest.mark.requirement("watch.store.late-beat", "field.17.never-early")
def test_a_beat_a_millisecond_before_the_deadline_is_in_time(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat()
    rig.advance(29.999)
    result = agent.heartbeat()
    assert (result.fired, result.generation) == (False, 1)
    rig.advance(30)
    assert agent.heartbeat().fired


@pytest.mark.requirement("watch.store.once")
def test_the_sweep_and_the_beat_find_one_fire_between_them(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(on_expiry=["queue_alert"], notify_address=agent.address)
    rig.advance(31)
    assert rig.sweep().fired == 1
    assert rig.sweep().fired == 0
    result = agent.heartbeat()
    assert (result.fired, result.fired_generation, result.generation) == (True, 1, 2)
    assert agent.heartbeat().fired is False
    assert len(rig.rows(schema.envelopes)) == 1


@pytest.mark.requirement("watch.store.registered")
def test_an_alert_for_nobody_is_refused_at_arming(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat()
    before = rig.dump()
    nobody = "agent:aaaaaaaaaaaaaaaa"
    failure = refused(agent.heartbeat(on_expiry=["queue_alert"], notify_address=nobody))
    assert (failure.code, failure.status) == ("not_registered", 404)
    assert rig.dump() == before
    assert agent.heartbeat(disarm=True, notify_address=nobody).state == "disarmed"


@pytest.mark.requirement("watch.store.registered")
def test_one_who_registers_can_be_named_in_the_same_batch(rig: Rig) -> None:
    agent = rig.agent()
    late = Agent(rig, "l" * 32)
    outcomes = rig.batch(
        agent.ask("heartbeat", scope="x", on_expiry=["queue_alert"], notify_address=late.address),
        late.ask("register", agent_secret=late.secret),
        agent.ask("heartbeat", scope="x", on_expiry=["queue_alert"], notify_address=late.address),
        late.ask("whoami"),
    )
    assert refused(outcomes[0]).code == "not_registered"
    assert told(outcomes[2])["notify_address"] == f"{late.address}/inbox"
    assert told(outcomes[3])["address"] == late.address


@pytest.mark.requirement("watch.store.delivery")
def test_the_reply_says_whether_the_alert_would_wake_anybody(rig: Rig) -> None:
    agent, boss = rig.agent("a"), rig.agent("b")
    alert = {"on_expiry": ["queue_alert"], "notify_address": boss.address}
    assert agent.heartbeat(**alert).alert_delivery == "inbox"
    rig.present(agent)
    assert agent.heartbeat(**alert).alert_delivery == "inbox"
    rig.present(boss)
    assert agent.heartbeat(**alert).alert_delivery == "push"
    rig.advance(20)
    assert agent.heartbeat().alert_delivery == "push"
    rig.advance(20)
    assert agent.heartbeat().alert_delivery == "push"
    rig.advance(20)
    assert agent.heartbeat().alert_delivery == "inbox"
    rig.present(boss)
    rig.present(boss, here=False)
    assert agent.heartbeat().alert_delivery == "inbox"


@pytest.mark.requirement("watch.store.delivery")
def test_a_nudge_that_cannot_arrive_is_said(rig: Rig) -> None:
    agent = rig.agent()
    assert "nudge_seconds" in " ".join(agent.heartbeat(nudge_seconds=5).notes)
    rig.present(agent)
    assert not agent.heartbeat().notes


@pytest.mark.requirement("tasks.push.told")
def test_a_wake_for_tasks_that_cannot_arrive_is_said(rig: Rig) -> None:
    agent = rig.agent()
    assert "wake_on_tasks" in " ".join(agent.heartbeat(wake_on_tasks=True).notes)
    rig.present(agent, "one")
    assert "wake_on_tasks" in " ".join(agent.heartbeat().notes), "that one pushes alerts alone"
    rig.present(agent, "two", here=False, work=True)
    assert not agent.heartbeat().notes
    assert "nudge_seconds" not in " ".join(agent.heartbeat(scope="x", nudge_seconds=5).notes)
    rig.present(agent, "one", here=False)
    assert "nudge_seconds" in " ".join(agent.heartbeat(scope="x").notes)
    rig.advance(25)
    assert not agent.heartbeat().notes
    rig.advance(25)
    rig.present(agent, "one")
    assert not agent.heartbeat().notes
    rig.advance(10)
    assert "wake_on_tasks" in agent.heartbeat().notes[0], "it holds for a minute"


@pytest.mark.requirement("watch.store.resolves", "field.38.resolved-alert")
def test_a_beat_resolves_the_alert_of_that_fire_and_no_other(rig: Rig) -> None:
    agent, boss = rig.agent("a"), rig.agent("b")
    alert = {"on_expiry": ["queue_alert"], "notify_address": boss.address}
    agent.heartbeat(scope="x", **alert)
    agent.heartbeat(scope="y", **alert)
    rig.advance(31)
    rig.sweep()
    agent.heartbeat(scope="x")
    shown = {}
    for _ in range(2):
        envelope = boss.inbox_poll().envelope
        shown[envelope.scope] = envelope.resolution
    assert shown == {"x": "recovered", "y": None}


@pytest.mark.requirement("watch.store.resolves", "field.40.disarm-resolves")
def test_disarm_after_a_fire_resolves_the_alert_and_leaves_the_mark(rig: Rig) -> None:
    agent, boss = rig.agent("a"), rig.agent("b")
    agent.heartbeat(on_expiry=["mark_failed", "queue_alert"], notify_address=boss.address)
    rig.advance(31)
    result = agent.heartbeat(disarm=True)
    assert (result.state, result.fired, result.failed) == ("disarmed", True, True)
    assert boss.inbox_poll().envelope.resolution == "disarmed"


@pytest.mark.requirement("watch.store.beat-bytes", "field.44.beat-bytes")
def test_a_beat_touches_no_index_until_a_sweep_comes_by(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat()
    indexed = _indexed(rig)
    rig.advance(10)
    rig.statements.clear()
    agent.heartbeat()
    assert _indexed(rig) == indexed
    row = rig.rows(schema.switches)[0]
    assert row["deadline_watched"] - row["check_watched"] == 10_000
    updates = [each for each in rig.statements if each.startswith("UPDATE switches")]
    assert len(updates) == 1
    assert not any(name in updates[0] for name in ("check_watched", "state=", "nudge"))
    assert not [each for each in rig.statements if "journal" in each]
    rig.advance(21)
    assert rig.sweep().fired == 0
    row = rig.rows(schema.switches)[0]
    assert row["deadline_watched"] == row["check_watched"]


def _indexed(rig: Rig) -> list[tuple[Any, ...]]:
    names = sorted({column.name for index in schema.switches.indexes for column in index.columns})
    return [tuple(row[name] for name in names) for row in rig.rows(schema.switches)]


@pytest.mark.requirement("watch.store.beat-bytes")
def test_a_shorter_window_is_looked_at_in_time(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(expect_within_seconds=300)
    agent.heartbeat(expect_within_seconds=5)
    rig.advance(5)
    assert rig.sweep().late_ms == (0,)


@pytest.mark.requirement("watch.store.corrupt")
@pytest.mark.parametrize(
    "damage",
    [
        "on_expiry = '[\"explode\"]'",
        "on_expiry = 'mark_failed'",
        "on_expiry = '[]'",
        'on_expiry = \'["mark_failed","mark_failed"]\'',
        "on_expiry = '[\"queue_alert\"]'",
        "notify = 'somebody'",
        "generation = 0",
        "window_ms = -1",
        "failed = 7",
        "nudged = -1",
        "state = 'elsewhere'",
    ],
)
def test_a_beat_on_a_row_that_cannot_be_read_arms_anew(rig: Rig, damage: str) -> None:
    agent = rig.agent()
    agent.heartbeat()
    agent.heartbeat(disarm=True)
    agent.heartbeat()
    rig.sql(f"UPDATE switches SET {damage}")
    result = agent.heartbeat()
    assert (result.state, result.generation) == ("armed", 3)
    assert "could not be read" in result.notes[-1]
    status = agent.switch_status(scope="s")
    assert status.corrupt == ()
    assert [entry.kind for entry in status.journal][-2:] == ["quarantined", "armed"]
    assert not agent.heartbeat().notes
    rig.advance(30)
    assert rig.sweep().fired == 1


@pytest.mark.requirement("watch.switch.own-label")
def test_a_generation_is_armed_under_the_label_of_its_agent(rig: Rig) -> None:
    agent, boss = rig.agent("a", label="keeper"), rig.agent("b")
    alerts = {"on_expiry": ["queue_alert"], "notify_address": boss.address}
    assert agent.heartbeat(**alerts).agent_id == "keeper"
    assert agent.heartbeat().agent_id == "keeper"
    rig.advance(30)
    rig.sweep()
    envelope = boss.inbox_poll().envelope
    assert envelope.agent_id == "keeper"
    assert 'Agent "keeper" on scope "s"' in envelope.objective
    assert agent.heartbeat(agent_id="w1").agent_id == "w1", "what is sent goes before it"
    assert agent.heartbeat().agent_id == "w1", "and stays for its generation"
    agent.heartbeat(disarm=True)
    assert agent.heartbeat().agent_id == "keeper"
    assert boss.heartbeat().agent_id is None
