"""Boxes in the store: who gets what, in which order, and that nothing is lost."""

import pytest
from msgspec import Raw

from mcpl_heartbeat.storage.store import mail, operations, schema
from mcpl_heartbeat.storage.store.sql import Key
from tests.store.operations.rig import START, Agent, Rig, refused, told


def _send(rig: Rig, by: Agent, to: Agent, *names: str, **more: object) -> None:
    for outcome in rig.batch(*[by.ask("send", to=to.address, objective=n, **more) for n in names]):
        assert told(outcome)["queued"] is True


@pytest.mark.requirement("watch.store.mail")
def test_mail_arrives_as_it_was_sent(rig: Rig) -> None:
    a, b = rig.agent("a"), rig.agent("b")
    context = Raw(b'{"big": 12345678901234567890123, "far": 1e999, "text": "\\u00e4\\u0000"}')
    sent = a.send(to=f"{b.address}/work", objective="do", scope="x", context=context)
    assert (sent.to, sent.due_at) == (f"{b.address}/work", rig.now.server_time)
    assert b.inbox_poll().envelope is None
    envelope = b.inbox_poll(box="work").envelope
    assert (envelope.task_id, envelope.kind, envelope.scope) == (sent.task_id, "message", "x")
    assert bytes(envelope.context) == bytes(context)
    assert (envelope.sender, envelope.attempts) == (a.address, 1)


@pytest.mark.requirement("watch.store.mail", "watch.store.registered")
def test_mail_for_nobody_is_refused(rig: Rig) -> None:
    agent = rig.agent()
    failure = refused(agent.send(to="agent:aaaaaaaaaaaaaaaa", objective="do"))
    assert (failure.code, failure.status) == ("not_registered", 404)
    assert rig.rows(schema.envelopes) == []


@pytest.mark.requirement("watch.store.mail-order")
def test_alerts_come_first_and_then_what_was_due_first(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(on_expiry=["queue_alert"], notify_address=agent.address)
    _send(rig, agent, agent, "later", due_at=rig.now.tell(START + 40_000))
    _send(rig, agent, agent, "first", "second")
    _send(rig, agent, agent, "soon", due_at=rig.now.tell(START + 10_000))
    rig.advance(31)
    rig.sweep()
    polled = [agent.inbox_poll() for _ in range(5)]
    names = [each.envelope and (each.envelope.scope or each.envelope.objective) for each in polled]
    assert names == ["s", "first", "second", "soon", None]
    assert [each.waiting for each in polled] == [3, 2, 1, 0, 0]
    assert polled[4].next_due_at == rig.now.tell(START + 40_000)
    rig.advance(9)
    assert agent.inbox_poll().envelope.objective == "later"


@pytest.mark.requirement("watch.store.mail-dead-reader")
def test_what_a_dead_reader_held_comes_again(rig: Rig) -> None:
    agent = rig.agent()
    _send(rig, agent, agent, "a", "b")
    first = agent.inbox_poll(visibility_timeout_seconds=60).envelope
    rig.advance(59.999)
    assert agent.inbox_poll(visibility_timeout_seconds=5).envelope.objective == "b"
    assert agent.inbox_poll().envelope is None
    rig.advance(0.001)
    again = agent.inbox_poll().envelope
    assert (again.task_id, again.attempts) == (first.task_id, 2)
    late = agent.inbox_ack(task_id=first.task_id, delivery_token=first.delivery_token)
    assert (late.acked, late.reason) == (False, "lost_delivery")
    assert agent.inbox_ack(task_id=first.task_id, delivery_token=again.delivery_token).acked
    assert agent.inbox_ack(task_id=first.task_id).acked


@pytest.mark.requirement("watch.store.mail-ack")
def test_what_is_acknowledged_is_gone_and_a_week_later_forgotten(rig: Rig) -> None:
    agent = rig.agent()
    _send(rig, agent, agent, "a", "b", "c")
    done, failed, kept = (agent.inbox_poll().envelope.task_id for _ in range(3))
    assert agent.inbox_ack(task_id=done, result=Raw(b'{"ok":true}')).status == "done"
    assert agent.inbox_ack(task_id=failed, status="failed").status == "failed"
    rig.advance(1000)
    assert agent.inbox_poll().envelope.task_id == kept
    whoami = agent.whoami()
    assert (whoami.total, whoami.dead_lettered) == (1, 1)
    rig.advance(7 * 86_400 - 1000)
    rig.keep_house()
    assert agent.inbox_ack(task_id=done).acked
    rig.advance(0.001)
    rig.keep_house()
    assert agent.inbox_ack(task_id=done).reason == "unknown_task"
    assert [row["task_id"] for row in rig.rows(schema.envelopes)] == [kept]


@pytest.mark.requirement("watch.store.mail-ack")
def test_what_is_given_back_comes_again_when_asked(rig: Rig) -> None:
    agent = rig.agent()
    _send(rig, agent, agent, "a")
    task_id = agent.inbox_poll().envelope.task_id
    assert agent.inbox_nack(task_id=task_id, delay_seconds=10).nacked
    assert agent.inbox_poll().next_due_at == rig.now.tell(START + 10_000)
    rig.advance(10)
    assert agent.inbox_poll().envelope.attempts == 2


@pytest.mark.requirement("watch.store.mail-places")
def test_ordinary_mail_leaves_the_reserve_free(rig: Rig) -> None:
    agent = rig.agent()
    outcomes = rig.batch(*[agent.ask("send", to=agent.address, objective="x") for _ in range(970)])
    refusals = [refused(outcome) for outcome in outcomes[968:]]
    assert [each.code for each in refusals] == ["mailbox_full"] * 2
    assert refusals[0].status == 409
    assert agent.whoami().total == 968
    agent.inbox_ack(task_id=agent.inbox_poll().envelope.task_id)
    assert agent.send(to=agent.address, objective="x").queued


@pytest.mark.requirement("watch.store.mail-places")
def test_an_agent_has_no_more_than_64_boxes_filled_by_ordinary_mail(rig: Rig) -> None:
    agent = rig.agent()
    to = [f"{agent.address}/b{i}" for i in range(65)]
    outcomes = rig.batch(*[agent.ask("send", to=each, objective="x") for each in to])
    assert refused(outcomes[64]).code == "mailbox_full"
    assert agent.send(to=to[3], objective="x").queued
    agent.inbox_ack(task_id=agent.inbox_poll(box="b0").envelope.task_id)
    assert agent.send(to=to[64], objective="x").queued
    assert refused(agent.send(to=to[0], objective="x")).code == "mailbox_full"
    assert agent.send(to=agent.address, objective="as the refusal advises").queued


@pytest.mark.requirement("watch.store.corrupt")
def test_an_envelope_that_cannot_be_read_does_not_stop_the_box(rig: Rig) -> None:
    agent = rig.agent()
    _send(rig, agent, agent, "a", "b", "c", context=Raw(b"1"))
    rig.sql("UPDATE envelopes SET context = '{' WHERE objective IN ('a', 'b')")
    polled = agent.inbox_poll()
    assert polled.envelope.objective == "c"
    assert len(polled.notes) == 2
    assert all("cannot be read" in note for note in polled.notes)
    assert not agent.inbox_poll().notes
    assert agent.whoami().total == 1
    rig.advance(7 * 86_400 + 1)
    rig.keep_house()
    assert len(rig.rows(schema.envelopes)) == 1


@pytest.mark.requirement("watch.store.housekeeping")
def test_the_journal_keeps_the_newest_500_lines_of_a_scope(rig: Rig) -> None:
    agent, other = rig.agent("a"), rig.agent("b")
    other.checkpoint_put(scope="x", objective="o", next_action="n")
    put = agent.ask("checkpoint_put", scope="x", objective="o", next_action="n")
    rig.batch(*[put] * 507)
    agent.checkpoint_put(scope="y", objective="o", next_action="n")
    rig.keep_house()
    kept = rig.rows(schema.journal, namespace=agent.namespace, scope="x")
    assert len(kept) == 500
    assert kept[0]["detail"] == '{"version":8}'
    assert len(rig.rows(schema.journal)) == 502


@pytest.mark.requirement("watch.store.housekeeping", "watch.store.housekeeping-pieces")
def test_housekeeping_is_done_in_pieces(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "PIECE", 2)
    agents = [rig.agent("a"), rig.agent("b")]
    for agent in agents:
        for scope in ("x", "y"):
            put = agent.ask("checkpoint_put", scope=scope, objective="o", next_action="n")
            rig.batch(*[put] * 502)
    _send(rig, agents[0], agents[0], *"abc")
    for _ in range(3):
        envelope = agents[0].inbox_poll().envelope
        agents[0].inbox_ack(task_id=envelope.task_id)
    rig.advance(mail.KEPT_MS / 1000 + 1)
    after: Key | None = ("", "")
    left = []
    while after is not None:
        found = after
        after = rig.do(lambda tx, found=found: operations.housekeeping(tx, found))
        left.append((len(rig.rows(schema.envelopes)), len(rig.rows(schema.journal))))
    assert left == [(1, 2_008), (0, 2_004), (0, 2_000), (0, 2_000)]


@pytest.mark.requirement("watch.store.mail")
def test_a_box_is_counted_by_what_its_reader_sees(rig: Rig) -> None:
    agent = rig.agent()
    _send(rig, agent, agent, "a", "b")
    _send(rig, agent, agent, "c", due_at=rig.now.tell(START + 60_000))
    agent.send(to=f"{agent.address}/other", objective="d")
    agent.inbox_poll(visibility_timeout_seconds=30)
    whoami = agent.whoami()
    counts = [(box.box, box.total, box.due) for box in whoami.boxes]
    assert counts == [("inbox", 3, 1), ("other", 1, 1)]
    assert (whoami.total, whoami.due) == (4, 2)
    assert whoami.next_due_at == rig.now.tell(START + 30_000)
    assert mail.KEPT_MS == 7 * 24 * 3600 * 1000
