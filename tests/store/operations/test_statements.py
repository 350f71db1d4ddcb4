"""Every statement goes by an index, so that no call grows slower with what others keep here."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import schema, sql
from tests.store.operations.rig import Rig
from tests.store.tasks.queue import make

ALL = ["release_leases", "mark_failed", "queue_alert"]
TABLES = {table.name for table in schema.metadata.sorted_tables}


@pytest.mark.requirement("watch.store.indexed")
def test_no_statement_of_a_call_or_a_sweep_walks_a_table(sqlite_rig: Rig) -> None:
    rig = sqlite_rig
    agent = rig.agent()
    seen: dict[str, tuple[object, ...]] = {}

    def note(
        _c: object, _cursor: object, text: str, values: object, _x: object, many: bool
    ) -> None:
        if text.startswith(("SELECT", "UPDATE", "DELETE")):
            seen[text] = tuple(values[0] if many else values)

    sa.event.listen(rig.engine, "before_cursor_execute", note)
    alert = {"on_expiry": ALL, "notify_address": agent.address, "nudge_seconds": 5}
    agent.heartbeat(scope="x", **alert)
    agent.heartbeat(scope="x", agent_id="w")
    fence = agent.lease(key="k", holder="h", scope="x", ttl_seconds=600).fence
    agent.lease_renew(key="k", holder="h", fence=fence)
    agent.checkpoint_put(scope="x", objective="o", next_action="n")
    agent.checkpoint_put(scope="x", objective="o", next_action="n")
    rig.present(agent)
    rig.advance(26)
    rig.news(agent)
    rig.advance(4)
    rig.sweep()
    seqs = [each.seq for each in rig.news(agent).alerts]
    agent.heartbeat(scope="x")
    rig.pushed(seqs, taken=True)
    task_id = agent.inbox_poll().envelope.task_id
    agent.inbox_nack(task_id=task_id)
    agent.inbox_ack(task_id=task_id)
    agent.send(to=agent.address, objective="x")
    agent.lease_release(key="k", holder="h", fence=fence)
    agent.switch_status()
    agent.switch_status(scope="x")
    agent.resume_packet(scope="x")
    agent.whoami()
    sa.event.remove(rig.engine, "before_cursor_execute", note)
    assert len(seen) > 30
    for text, values in seen.items():
        plan = rig.plan(text, values)
        walked = [each for each in plan.split("; ") if each.startswith("SCAN")]
        assert not [each for each in walked if each.split()[1] in TABLES], (text, plan)


@pytest.mark.requirement("watch.store.indexed")
def test_many_switches_and_much_old_mail_are_gone_through_by_indexes_of_their_own(
    sqlite_rig: Rig,
) -> None:
    rig = sqlite_rig
    agent = rig.agent()

    def plans_of(work: Callable[[], object]) -> list[str]:
        seen: list[tuple[str, Any]] = []

        def note(_c: object, _cursor: object, text: str, values: Any, *_: object) -> None:
            seen.append((text, values))

        sa.event.listen(rig.engine, "before_cursor_execute", note)
        work()
        sa.event.remove(rig.engine, "before_cursor_execute", note)
        return [rig.plan(*each) for each in seen if "switches" in each[0] or "DELETE" in each[0]]

    plans = plans_of(agent.whoami) + plans_of(agent.switch_status)
    assert sum("COVERING INDEX switches_state (namespace=?)" in each for each in plans) == 2
    assert sum("INDEX switches_check" in each for each in plans) == 2
    assert sum("INDEX switches_state (namespace=? AND state=?)" in each for each in plans) == 1
    assert any("INDEX envelopes_settled" in each for each in plans_of(rig.keep_house))
    assert all("switches_check" in each for each in plans_of(agent.list_agent_tasks))


@pytest.mark.requirement("watch.store.indexed", "tasks.push.reborn")
def test_a_look_for_news_goes_through_none_but_the_few_switches_that_it_is_for(
    sqlite_rig: Rig,
) -> None:
    rig = sqlite_rig
    agent = rig.agent()
    agent.heartbeat(wake_on_tasks=True, expect_within_seconds=600)
    make(agent)
    rig.advance(1)
    work = rig.work(agent)
    assert work is not None
    rig.woken(agent, work, taken=True)
    rig.advance(1)
    seen = rig.statements
    seen.clear()
    rig.news(agent)
    rig.work(agent)
    statements = dict.fromkeys(each for each in seen if "FROM switches" in each)
    plans = [rig.plan(each, (0,) * each.count("?")) for each in statements]
    assert [plan.split(";")[0] for plan in plans] == [
        "SEARCH switches USING INDEX switches_nudge (namespace=?)",
        "SEARCH switches USING INDEX switches_wake (namespace=?)",
        "SEARCH switches USING INDEX switches_wake (namespace=? AND armed_at>?)",
    ]


@pytest.mark.requirement("watch.store.indexed")
def test_keys_of_several_columns_find_their_rows_and_no_others(rig: Rig) -> None:
    agent = rig.agent()
    odd = ["a", "A", "ä", "\U0001f980", "[0]", '"', "\\", "'", "a,b", "{}", " ", "\n", "null", "1"]
    rig.batch(*[agent.ask("heartbeat", scope=scope) for scope in odd])
    table = schema.switches
    look = sql.ByKeys([table.c.scope], [table.c.namespace, table.c.scope])

    def found(*keys: tuple[str, str]) -> list[str]:
        return rig.do(lambda tx: [row[0] for row in look(tx, keys)])

    for scope in odd:
        assert found((agent.namespace, scope), (agent.namespace, scope), ("x", scope)) == [scope]
    assert found() == []


@pytest.mark.requirement("watch.store.indexed")
def test_rows_are_found_by_numbers_too(rig: Rig) -> None:
    agent = rig.agent()
    for _ in range(2):
        agent.heartbeat(on_expiry=["queue_alert"], notify_address=agent.address)
        rig.advance(30)
        rig.sweep()
    table = schema.envelopes
    look = sql.ByKeys([table.c.of_generation], [table.c.of_scope, table.c.of_generation])
    assert rig.do(lambda tx: [row[0] for row in look(tx, [("s", 2), ("s", 3)])]) == [2]
