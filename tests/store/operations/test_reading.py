"""What is read: never a switch that should have fired, and nothing is changed by looking."""

import random
from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.ports import Unsettled
from tests.store.operations.rig import ARGUMENTS, START, Agent, Rig, refused, told

READS: list[tuple[str, dict[str, Any]]] = [
    ("switch_status", {}),
    ("switch_status", {"scope": "s"}),
    ("resume_packet", {"scope": "s"}),
    ("whoami", {}),
]


@pytest.mark.requirement("watch.store.look")
@pytest.mark.parametrize(("tool", "arguments"), READS)
def test_looking_changes_nothing_and_says_what_a_call_says(
    rig: Rig, tool: str, arguments: dict[str, Any]
) -> None:
    agent = rig.agent()
    agent.heartbeat()
    agent.lease(key="k", holder="h", scope="s")
    agent.checkpoint_put(scope="s", objective="o", next_action="n")
    agent.send(to=agent.address, objective="x", scope="s")
    before = rig.dump()
    looked = agent.look(tool, **arguments)
    assert rig.dump() == before
    assert told(looked) == told(getattr(agent, tool)(**arguments))
    stranger = Agent(rig, "z" * 32)
    assert refused(stranger.look(tool, **arguments)).code == "unauthorized"


@pytest.mark.requirement("watch.store.look")
@pytest.mark.parametrize(("tool", "arguments"), READS[:3])
def test_a_look_at_what_is_due_is_handed_to_whoever_may_write(
    rig: Rig, tool: str, arguments: dict[str, Any]
) -> None:
    agent = rig.agent()
    agent.heartbeat()
    rig.advance(30)
    with pytest.raises(Unsettled):
        agent.look(tool, **arguments)
    result = told(getattr(agent, tool)(**arguments))
    switch = result["switch"] if tool == "resume_packet" else result["switches"][0]
    assert (switch["state"], switch["fires"]) == ("fired", 1)
    assert told(agent.look(tool, **arguments)) == result


@pytest.mark.requirement("watch.store.look")
def test_whoami_counts_what_is_due_as_fired(rig: Rig) -> None:
    agent = rig.agent()
    for scope, window in [("a", 10), ("b", 30), ("c", 60)]:
        agent.heartbeat(scope=scope, expect_within_seconds=window)
    agent.heartbeat(scope="c", disarm=True)
    rig.advance(9)
    agent.heartbeat(scope="a", expect_within_seconds=10)
    rig.advance(10)
    counted = agent.look("whoami").switches
    assert counted == {"armed": 1, "fired": 1, "disarmed": 1}
    rig.sweep()
    assert agent.whoami().switches == counted


@pytest.mark.requirement("watch.store.paging")
@pytest.mark.parametrize(("limit", "pages"), [(50, [50, 50, 6]), (1, [1] * 106)])
def test_pages_of_switches_show_each_once(rig: Rig, limit: int, pages: list[int]) -> None:
    agent = rig.agent()
    scopes = [f"s{i:03}" for i in range(101)] + ["ä", "a b/c", "Z"]
    scopes += ["\U0001f980" * 256, "\U0001f980" * 255]
    random.Random(3).shuffle(scopes)
    rig.batch(*[agent.ask("heartbeat", scope=scope) for scope in scopes])
    seen: list[str] = []
    taken = msgspec.json.schema(ARGUMENTS["switch_status"])["$defs"]["SwitchStatusArguments"]
    longest = taken["properties"]["cursor"]["maxLength"]
    cursor: dict[str, Any] = {}
    sizes = []
    while cursor is not None:
        page = agent.switch_status(limit=limit, **cursor)
        assert page.total == len(scopes)
        seen += [view.scope for view in page.switches]
        sizes.append(len(page.switches))
        assert len(page.next_cursor or "") <= longest
        cursor = {"cursor": page.next_cursor} if page.next_cursor else None
    assert sorted(seen) == sorted(scopes)
    assert sizes == pages


@pytest.mark.requirement("watch.store.paging")
@pytest.mark.parametrize("cursor", ["?", "a", "_w", "AA", "YQ==", "ä", "x" * 512])
def test_a_cursor_of_ones_own_making_is_refused(rig: Rig, cursor: str) -> None:
    agent = rig.agent()
    agent.heartbeat()
    outcome = agent.switch_status(cursor=cursor)
    assert refused(outcome).code == "invalid_arguments"
    assert refused(outcome).problems == ("cursor: is none that next_cursor gave",)


@pytest.mark.requirement("watch.store.status")
def test_a_scope_that_never_had_a_switch_gives_an_empty_list(rig: Rig) -> None:
    agent = rig.agent()
    status = agent.switch_status(scope="never")
    assert (status.switches, status.total, status.journal) == ((), 0, ())
    assert "ever armed" in status.notes[0]
    assert agent.resume_packet(scope="never").empty is True


@pytest.mark.requirement("watch.store.status")
def test_the_status_shows_the_gaps_that_held_its_deadlines(rig: Rig) -> None:
    agent = rig.agent()
    rig.advance(10)
    rig.gap(100)
    agent.heartbeat(scope="young")
    assert agent.switch_status(scope="young").watch_gaps == ()
    rig.advance(5)
    rig.gap(50)
    gaps = agent.switch_status().watch_gaps
    assert [gap.seconds for gap in gaps] == [50]
    assert gaps[0].began_at == rig.now.tell(START + 115_000)
    for _ in range(25):
        rig.gap(3)
    assert len(agent.switch_status().watch_gaps) == 20


@pytest.mark.requirement("watch.store.briefing")
def test_the_briefing_holds_what_the_server_saw(rig: Rig) -> None:
    agent, boss = rig.agent("a"), rig.agent("b")
    everything = ["release_leases", "mark_failed", "queue_alert"]
    agent.heartbeat(agent_id="w", on_expiry=everything, notify_address=boss.address)
    agent.lease(key="k", holder="w", scope="s", ttl_seconds=3600)
    agent.checkpoint_put(scope="s", objective="o", next_action="n", step="3")
    boss.send(to=agent.address, objective="hello", scope="s")
    boss.send(to=agent.address, objective="of something else", scope="t")
    rig.advance(29)
    rig.gap(10)
    rig.advance(31)
    packet = agent.resume_packet(scope="s")
    assert (packet.objective, packet.next_action, packet.failed) == ("o", "n", True)
    death = packet.deaths[0]
    assert (death.agent_id, death.marked_failed) == ("w", True)
    # It had a second left, got 30 s after the gap, and was noticed a second later.
    assert death.deadline == rig.now.tell(START + 69_000)
    assert death.noticed_at == rig.now.tell(START + 70_000)
    assert [freed["key"] for freed in death.released] == ["k"]
    assert packet.leases == ()
    assert [arrival.objective for arrival in packet.arrivals] == ["hello"]
    assert [gap.seconds for gap in packet.watch_gaps] == [10]
    agent.heartbeat(agent_id="heir")
    agent.lease(key="k", holder="heir", scope="s")
    packet = agent.resume_packet(scope="s", tail=1)
    assert (packet.failed, packet.recovered, len(packet.journal)) == (False, True, 1)
    assert packet.deaths[0].recovered_at == rig.now.server_time
    assert [lease.holder for lease in packet.leases] == ["heir"]


@pytest.mark.requirement("watch.resume.others")
def test_what_was_before_an_agent_came_or_is_anothers_is_not_its_own(rig: Rig) -> None:
    worker = rig.agent("a")
    rig.gap(100)
    boss = rig.agent("b")
    worker.checkpoint_put(scope="s", objective="o", next_action="n", privacy_mode="client_key")
    worker.heartbeat(on_expiry=["queue_alert"], notify_address=boss.address)
    rig.advance(31)
    rig.sweep()
    packet = boss.resume_packet(scope="s")
    assert (packet.empty, packet.known, packet.arrivals_total) == (False, False, 1)
    assert (packet.deaths, packet.checkpoint, packet.watch_gaps) == ((), None, ())
    assert boss.switch_status().watch_gaps == ()
    envelope = boss.inbox_poll().envelope
    assert (envelope.resume, envelope.resume_private) == (None, True)
    rig.gap(50)
    assert [gap.seconds for gap in boss.resume_packet(scope="s").watch_gaps] == [50]
    assert [gap.seconds for gap in worker.resume_packet(scope="s").watch_gaps] == [100, 50]
    assert worker.resume_packet(scope="s").known is True


@pytest.mark.requirement("watch.store.briefing")
def test_a_checkpoint_takes_the_place_of_the_one_before(rig: Rig) -> None:
    agent = rig.agent()
    for version, step in enumerate(["one", "two"], 1):
        put = agent.checkpoint_put(workflow_id="s", objective="o", next_action="n", step=step)
        assert (put.scope, put.version) == ("s", version)
    assert agent.resume_packet(scope="s").checkpoint["step"] == "two"
    assert len(rig.rows(schema.checkpoints)) == 1
    assert refused(agent.checkpoint_put(objective="o", next_action="n")).code == "invalid_arguments"


@pytest.mark.requirement("watch.store.stats")
def test_the_counts_are_those_of_the_whole_store(rig: Rig) -> None:
    from mcpl_heartbeat.storage.store import operations

    for agent in (rig.agent("a"), rig.agent("b")):
        agent.heartbeat(scope="x")
        agent.heartbeat(scope="y")
        agent.heartbeat(scope="y", disarm=True)
        agent.send(to=agent.address, objective="x")

    def count() -> Any:
        return rig.do(operations.stats)

    assert (count().armed, count().mail_waiting, count().gaps) == (2, 2, 0)
    agent.inbox_ack(task_id=agent.inbox_poll().envelope.task_id)
    assert count().mail_waiting == 1
