"""Leases in the store, and that it never matters when a sweep comes by."""

import pytest

from mcpl_heartbeat.storage.store import schema
from tests.store.operations.rig import Rig, told

RELEASE = {"on_expiry": ["release_leases"]}


@pytest.mark.requirement("watch.store.lease")
def test_a_lease_has_one_holder_until_it_ends(rig: Rig) -> None:
    agent = rig.agent()
    taken = agent.lease(key="k", holder="one", ttl_seconds=10)
    refused = agent.lease(key="k", holder="two")
    assert (refused.acquired, refused.reason, refused.holder) == (False, "held", "one")
    assert agent.lease_renew(key="k", holder="one", fence=taken.fence, ttl_seconds=20).renewed
    rig.advance(19.999)
    assert agent.lease(key="k", holder="two").acquired is False
    rig.advance(0.001)
    second = agent.lease(key="k", holder="two")
    assert (second.acquired, second.generation) == (True, 2)
    assert second.fence != taken.fence
    assert agent.lease_renew(key="k", holder="one", fence=taken.fence).renewed is False
    assert agent.lease_release(key="k", holder="two", fence=second.fence).released
    assert agent.lease(key="k", holder="one").generation == 3
    assert len(rig.rows(schema.leases)) == 1


@pytest.mark.requirement("watch.store.lease-settles")
@pytest.mark.parametrize("swept", [True, False])
def test_who_gets_a_lease_does_not_depend_on_the_sweep(rig: Rig, swept: bool) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="work", **RELEASE)
    fence = agent.lease(key="k", holder="dead", scope="work", ttl_seconds=600).fence
    rig.advance(30)
    if swept:
        rig.sweep()
    taken = agent.lease(key="k", holder="heir")
    assert (taken.acquired, taken.generation) == (True, 2)
    assert agent.lease_renew(key="k", holder="dead", fence=fence).renewed is False


@pytest.mark.requirement("watch.store.lease-settles")
@pytest.mark.parametrize("tool", ["lease_renew", "lease_release"])
def test_the_dead_cannot_keep_or_free_what_its_fire_has_freed(rig: Rig, tool: str) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="work", **RELEASE)
    fence = agent.lease(key="k", holder="dead", scope="work", ttl_seconds=600).fence
    rig.advance(30)
    result = getattr(agent, tool)(key="k", holder="dead", fence=fence)
    assert told(result)["renewed" if tool == "lease_renew" else "released"] is False
    assert agent.switch_status(scope="work").switches[0].state == "fired"


@pytest.mark.requirement("watch.store.lease-settles")
def test_a_lease_taken_into_a_scope_that_is_due_is_not_freed_by_that_fire(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="work", **RELEASE)
    rig.advance(30)
    fence = agent.lease(key="k", holder="heir", scope="work").fence
    rig.sweep()
    assert agent.lease_renew(key="k", holder="heir", fence=fence).renewed
    assert agent.switch_status(scope="work").switches[0].fires == 1


@pytest.mark.requirement("watch.store.lease")
def test_a_fire_frees_the_leases_of_its_scope_and_counts_those_of_none(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(
        scope="work", on_expiry=["release_leases", "queue_alert"], notify_address=agent.address
    )
    for key, scope in [("k1", "work"), ("k2", "work"), ("k3", "else")]:
        agent.lease(key=key, holder="h", scope=scope, ttl_seconds=600)
    agent.lease(key="lapsed", holder="h", scope="work", ttl_seconds=5)
    agent.lease(key="free", holder="h", ttl_seconds=600)
    agent.lease(key="gone", holder="h", ttl_seconds=5)
    rig.advance(30)
    rig.sweep()
    envelope = agent.inbox_poll().envelope
    assert [freed["key"] for freed in envelope.released] == ["k1", "k2"]
    assert envelope.unreachable == 1
    held = [row["key"] for row in rig.rows(schema.leases, held=1)]
    assert held == ["free", "gone", "k3", "lapsed"]
    assert agent.whoami().leases == 2


@pytest.mark.requirement("watch.store.lease")
def test_a_lease_that_moves_to_another_scope_is_freed_with_that_one(rig: Rig) -> None:
    agent = rig.agent()
    agent.heartbeat(scope="old", **RELEASE)
    agent.heartbeat(scope="new", expect_within_seconds=60, **RELEASE)
    fence = agent.lease(key="k", holder="h", scope="old", ttl_seconds=600).fence
    agent.lease(key="k", holder="h", scope="new", ttl_seconds=600, fence=fence)
    rig.advance(30)
    rig.sweep()
    assert agent.lease_renew(key="k", holder="h", fence=fence, ttl_seconds=600).renewed
    rig.advance(30)
    rig.sweep()
    assert agent.lease_renew(key="k", holder="h", fence=fence).renewed is False
