"""Two namespaces in one store: neither sees, changes or counts anything of the other."""

import random
from typing import Any

import pytest

from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.ports import Ask
from tests.store.operations.rig import Agent, Rig, told

ALL = ["release_leases", "mark_failed", "queue_alert"]


def _live(rig: Rig, agent: Agent) -> dict[str, str]:
    """Have ``agent`` own one of everything, under names that everybody uses."""
    agent.heartbeat(scope="work", agent_id="w", on_expiry=ALL, notify_address=agent.address)
    agent.heartbeat(
        scope="dead", expect_within_seconds=2, on_expiry=ALL, notify_address=agent.address
    )
    agent.send(to=agent.address, objective="own mail", scope="work")
    agent.checkpoint_put(scope="work", objective="own", next_action="own")
    agent.lease(key="free", holder="h", ttl_seconds=3600)
    rig.advance(2)
    rig.sweep()
    return {
        "fence": agent.lease(key="k", holder="h", scope="work", ttl_seconds=3600).fence,
        "task_id": rig.rows(schema.envelopes, agent=agent.id, kind="message")[0]["task_id"],
        "alert_id": rig.rows(schema.envelopes, agent=agent.id, kind="alert")[0]["task_id"],
    }


def _owned(rig: Rig, agent: Agent) -> dict[str, Any]:
    """All rows that are this agent's."""
    tables = (schema.switches, schema.leases, schema.checkpoints, schema.journal)
    found: dict[str, Any] = {t.name: rig.rows(t, namespace=agent.namespace) for t in tables}
    found["envelopes"] = rig.rows(schema.envelopes, agent=agent.id)
    found["identities"] = rig.rows(schema.identities, agent=agent.id)
    return found


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("heartbeat", {"scope": "work", "disarm": True}),
    ("heartbeat", {"scope": "work", "expect_within_seconds": 2}),
    ("heartbeat", {"scope": "dead", "disarm": True}),
    ("switch_status", {}),
    ("switch_status", {"scope": "work"}),
    ("register", {"label": "again"}),
    ("whoami", {}),
    ("inbox_poll", {}),
    ("inbox_ack", {"task_id": "$task_id"}),
    ("inbox_ack", {"task_id": "$alert_id", "status": "failed"}),
    ("inbox_nack", {"task_id": "$task_id"}),
    ("lease", {"key": "k", "holder": "h", "fence": "$fence", "scope": "work"}),
    ("lease_renew", {"key": "k", "holder": "h", "fence": "$fence"}),
    ("lease_release", {"key": "k", "holder": "h", "fence": "$fence"}),
    ("checkpoint_put", {"scope": "work", "objective": "other", "next_action": "other"}),
    ("resume_packet", {"scope": "work"}),
    ("resume_packet", {"scope": "dead"}),
]


@pytest.mark.requirement("watch.store.namespaces")
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_stranger_neither_sees_nor_changes_anything(
    rig: Rig, tool: str, arguments: dict[str, Any]
) -> None:
    owner, stranger = rig.agent("o"), rig.agent("s")
    names = _live(rig, owner)
    mine = _owned(rig, owner)
    filled = {
        name: names[value[1:]] if str(value).startswith("$") else value
        for name, value in arguments.items()
    }
    seen = str(told(getattr(stranger, tool)(**filled)))
    assert _owned(rig, owner) == mine
    given = {str(value) for value in filled.values()}
    for secret in (owner.secret, owner.namespace, owner.id, "own mail", *names.values()):
        assert secret in given or secret not in seen
    rig.advance(20)
    rig.sweep()
    assert _owned(rig, owner) == mine


@pytest.mark.requirement("watch.store.namespaces")
def test_a_stranger_is_answered_as_if_it_were_alone(rig: Rig, other_rig: Rig) -> None:
    answers = []
    for each, crowded in ((rig, True), (other_rig, False)):
        owner, stranger = each.agent("o"), each.agent("s")
        if crowded:
            _live(each, owner)
        else:
            each.advance(2)
        given = []
        for tool, arguments in CALLS:
            names_another = any(str(value).startswith("$") for value in arguments.values())
            # What register gives is new each time.
            if tool != "register" and not names_another:
                given.append(told(getattr(stranger, tool)(**arguments)))
        given.append(told(stranger.lease(key="free", holder="h")))
        given.append(told(stranger.whoami()))
        for answer in given:
            answer.pop("fence", None)
        answers.append(given)
    assert answers[0] == answers[1]


@pytest.mark.requirement("watch.store.namespaces")
def test_only_mail_crosses_and_its_sender_learns_nothing_of_the_box(rig: Rig) -> None:
    owner, stranger = rig.agent("o"), rig.agent("s")
    _live(rig, owner)
    mine = _owned(rig, owner)
    result = told(stranger.send(to=owner.address, objective="hello", scope="work"))
    assert set(result) == {"server_time", "notes", "queued", "task_id", "to", "due_at"}
    after = _owned(rig, owner)
    assert len(after.pop("envelopes")) == len(mine.pop("envelopes")) + 1
    assert after == mine
    assert stranger.inbox_ack(task_id=result["task_id"]).reason == "unknown_task"
    assert stranger.inbox_nack(task_id=result["task_id"]).reason == "unknown_task"
    assert stranger.whoami().total == 0


@pytest.mark.requirement("watch.store.namespaces")
def test_a_death_of_one_frees_marks_and_resolves_nothing_of_the_other(rig: Rig) -> None:
    a, b = rig.agent("a"), rig.agent("b")
    for agent in (a, b):
        agent.heartbeat(
            scope="work",
            expect_within_seconds=10 if agent is a else 50,
            on_expiry=ALL,
            notify_address=b.address,
        )
        agent.lease(key="k", holder="h", scope="work", ttl_seconds=3600)
        agent.lease(key="u", holder="h", ttl_seconds=3600)
    rig.advance(10)
    rig.sweep()
    assert b.lease(key="k", holder="x").acquired is False
    assert b.switch_status(scope="work").switches[0].state == "armed"
    assert b.resume_packet(scope="work").deaths == ()
    envelope = b.inbox_poll().envelope
    assert (envelope.sender, envelope.unreachable) == (a.address, 1)
    rig.advance(40)
    rig.sweep()
    a.heartbeat(scope="work")
    assert b.inbox_poll().envelope.resolution is None
    assert b.resume_packet(scope="work").recovered is False


@pytest.mark.requirement("watch.store.namespaces")
def test_news_is_for_its_agent_alone(rig: Rig) -> None:
    a, b = rig.agent("a"), rig.agent("b")
    a.heartbeat(scope="x", on_expiry=["queue_alert"], notify_address=a.address)
    a.heartbeat(scope="y", expect_within_seconds=60, nudge_seconds=50)
    rig.advance(31)
    rig.sweep()
    assert rig.news(b).empty
    news = rig.news(a)
    assert (len(news.alerts), len(news.nudges)) == (1, 1)


@pytest.mark.requirement("watch.store.namespaces")
@pytest.mark.parametrize("seed", range(4))
def test_one_namespace_lives_the_same_life_with_and_without_the_other(
    rig: Rig, other_rig: Rig, seed: int
) -> None:
    lives = []
    for each, crowded in ((rig, True), (other_rig, False)):
        a, b = each.agent("a"), each.agent("b")
        dice = random.Random(seed)
        for _ in range(25):
            asks = [_random_call(dice, a), _random_call(dice, b), _random_call(dice, a)]
            each.batch(*[ask for ask in asks if crowded or ask.secret == a.secret])
            each.advance(dice.choice([0, 1, 3, 8]))
            if dice.random() < 0.5:
                each.sweep()
        lives.append(_owned(each, a))
        # Of what happens to two scopes at one instant either may be noted first.
        for name in ("journal", "envelopes"):
            lives[-1][name].sort(key=lambda row: row["scope"])
        for rows in lives[-1].values():
            for row in rows:
                for name in ("seq", "fence", "task_id", "token", "check_watched"):
                    row.pop(name, None)
    assert lives[0] == lives[1]


def _random_call(dice: random.Random, agent: Agent) -> Ask:
    scope, window = dice.choice("xy"), dice.choice([2, 5, 9])
    kind = dice.randrange(8)
    if kind == 0:
        return agent.ask("heartbeat", scope=scope, disarm=True)
    if kind == 1:
        alert = {"on_expiry": ALL, "notify_address": agent.address}
        return agent.ask("heartbeat", scope=scope, expect_within_seconds=window, **alert)
    if kind == 2:
        return agent.ask("lease", key=dice.choice("kl"), holder="h", scope=scope, ttl_seconds=4)
    if kind == 3:
        return agent.ask("checkpoint_put", scope=scope, objective="o", next_action="n")
    if kind == 4:
        return agent.ask("send", to=agent.address, objective="m", scope=scope)
    if kind == 5:
        return agent.ask("inbox_poll", visibility_timeout_seconds=5)
    return agent.ask("heartbeat", scope=scope, expect_within_seconds=window)
