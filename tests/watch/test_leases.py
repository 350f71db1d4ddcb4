"""Leases: who holds one is known by the fence, its generation only rises, the lost stay lost."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from mcpl_heartbeat.times import utc_time
from mcpl_heartbeat.watch import leases
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.results import LeaseReleaseResult, LeaseRenewResult, LeaseResult
from mcpl_heartbeat.watch.rows import Lease
from tests.watch.switching import (
    NAMESPACE,
    SCOPE,
    START,
    at,
    lease,
    plain,
    releasing,
    renewing,
    taking,
)

END = at(60_000)
"""When ``lease()`` has lapsed."""


def take(before: Lease | None, now: Reading, fence: str = "fresh", **arguments: Any) -> Any:
    taken = leases.take(before, NAMESPACE, taking(**arguments), fence, now)
    assert isinstance(taken.result, LeaseResult)
    return taken


def renew(before: Lease | None, now: Reading, **arguments: Any) -> Any:
    taken = leases.renew(before, renewing(**arguments), now)
    assert isinstance(taken.result, LeaseRenewResult)
    assert (taken.lease is not None) == taken.result.renewed
    assert taken.entries == ()
    return taken


def release(before: Lease | None, now: Reading, **arguments: Any) -> Any:
    taken = leases.release(before, releasing(**arguments), now)
    assert isinstance(taken.result, LeaseReleaseResult)
    assert (taken.lease is not None) == taken.result.released
    return taken


@pytest.mark.requirement("watch.lease.acquire")
def test_a_key_that_nobody_holds_is_taken() -> None:
    taken = take(None, at(), scope=SCOPE, ttl_seconds=90)
    assert taken.lease == lease(
        fence="fresh", generation=1, expires_watched=START + 90_000, ttl_ms=90_000
    )
    assert plain(taken.result) == {
        "server_time": utc_time(START),
        "notes": [],
        "acquired": True,
        "key": "db",
        "holder": "worker-1",
        "scope": SCOPE,
        "fence": "fresh",
        "generation": 1,
        "expires_at": utc_time(START + 90_000),
        "renewed": False,
    }
    (entry,) = taken.entries
    assert (entry.namespace, entry.scope, entry.kind, entry.at) == (
        NAMESPACE,
        SCOPE,
        "leased",
        START,
    )
    assert entry.detail == {"key": "db", "holder": "worker-1", "lease_generation": 1}


@pytest.mark.requirement("watch.lease.journal")
def test_without_a_scope_nothing_is_written_to_any_journal() -> None:
    taken = take(None, at())
    assert taken.lease.scope is None
    assert taken.entries == release(taken.lease, at(1), fence="fresh").entries == ()


@pytest.mark.requirement("watch.lease.expiry")
def test_a_lease_is_held_until_the_very_millisecond_of_its_expiry() -> None:
    assert leases.is_held(lease(), at(59_999))
    assert not leases.is_held(lease(), END)
    assert not leases.is_held(lease(held=False), at())


@pytest.mark.requirement("watch.lease.refused")
@pytest.mark.parametrize("fence", [UNSET, "fence-0", "fence-1x", "fünf", "\ud800"])
@pytest.mark.parametrize("holder", ["worker-1", "worker-2"])
def test_what_another_holds_is_refused_with_who_and_until_when(fence: Any, holder: str) -> None:
    taken = take(lease(), at(10_500), holder=holder, fence=fence, scope="other", ttl_seconds=1)
    assert taken.lease is None
    assert taken.entries == ()
    refusal = plain(taken.result)
    notes = refusal.pop("notes")
    assert refusal == {
        "server_time": utc_time(START + 10_500),
        "acquired": False,
        "key": "db",
        "holder": "worker-1",
        "generation": 4,
        "expires_at": utc_time(START + 60_000),
        "reason": "held",
        "retry_after_seconds": 49.5,
    }
    # Who reads its own label there must learn why that is not enough (field report D.2).
    assert bool(notes) == (holder == "worker-1")


@pytest.mark.requirement("watch.lease.fence", "field.2.equal-labels")
def test_an_equal_label_neither_renews_nor_releases_nor_takes() -> None:
    heir = take(lease(), END).lease
    assert heir.holder == lease().holder
    for ended in (renew(heir, END), release(heir, END)):
        assert ended.result.reason == "not_holder"
        assert ended.result.holder == "worker-1"
        assert "fence" not in plain(ended.result)
    assert take(heir, END, fence="other").result.acquired is False


@pytest.mark.requirement("watch.lease.fence")
def test_the_fence_alone_shows_the_holder_whatever_it_calls_itself() -> None:
    shown = leases.take(lease(), NAMESPACE, taking(holder="w2", fence="fence-1"), "fresh", at())
    assert shown.lease == lease(holder="w2")
    assert shown.entries == ()
    for taken in (renew(lease(), at(), holder="w2"), release(lease(), at(), holder="w2")):
        assert taken.lease.holder == taken.result.holder == "worker-1"
        assert "'worker-1'" in taken.result.notes[0]


@pytest.mark.requirement("watch.lease.reacquire")
def test_the_holder_who_shows_the_fence_only_holds_it_for_longer() -> None:
    taken = leases.take(
        lease(), NAMESPACE, taking(fence="fence-1", ttl_seconds=600), "fresh", at(5_000)
    )
    assert taken.lease == lease(expires_watched=START + 605_000, ttl_ms=600_000)
    assert isinstance(taken.result, LeaseResult)
    assert (taken.result.acquired, taken.result.renewed) == (True, True)
    assert (taken.result.fence, taken.result.generation) == ("fence-1", 4)
    assert taken.entries == ()


@pytest.mark.requirement("watch.lease.reacquire", "watch.lease.journal")
def test_a_renewal_can_move_a_lease_to_another_scope_and_both_journals_tell() -> None:
    taken = leases.take(
        lease(), NAMESPACE, taking(fence="fence-1", scope="other"), "fresh", at(5_000)
    )
    assert taken.lease is not None
    assert (taken.lease.scope, taken.lease.generation) == ("other", 4)
    assert [(e.scope, e.kind) for e in taken.entries] == [
        (SCOPE, "lease_released"),
        ("other", "leased"),
    ]


@pytest.mark.requirement("watch.lease.generation", "field.5.generation-rises")
@pytest.mark.parametrize("before", [lease(held=False), lease(expires_watched=START)])
def test_after_release_or_expiry_anybody_takes_it_as_the_next_generation(before: Lease) -> None:
    taken = take(before, at(), holder="worker-2")
    assert (taken.lease.generation, taken.lease.fence) == (5, "fresh")
    assert taken.lease.scope is None
    assert taken.lease.held
    assert taken.result.renewed is False
    assert taken.result.notes == ()


@pytest.mark.requirement("watch.lease.reacquire")
def test_a_fence_that_came_too_late_is_said_to_have_been_for_another_acquisition() -> None:
    taken = leases.take(lease(), NAMESPACE, taking(fence="fence-1"), "fresh", END)
    assert isinstance(taken.result, LeaseResult)
    assert (taken.result.fence, taken.result.generation) == ("fresh", 5)
    assert "new acquisition" in taken.result.notes[0]


@pytest.mark.requirement("watch.lease.renew")
def test_a_renewal_counts_from_now_and_may_shorten() -> None:
    for ttl, ends in ((60, 65_000), (1, 6_000)):
        renewed = renew(lease(), at(5_000), ttl_seconds=ttl)
        assert renewed.lease == lease(expires_watched=START + ends, ttl_ms=ttl * 1000)
        assert plain(renewed.result) == {
            "server_time": utc_time(START + 5_000),
            "notes": [],
            "renewed": True,
            "key": "db",
            "holder": "worker-1",
            "fence": "fence-1",
            "generation": 4,
            "expires_at": utc_time(START + ends),
        }


@pytest.mark.requirement("watch.lease.lost-stays-lost", "field.1.lapsed-lease")
def test_what_has_lapsed_is_not_revived_though_nobody_took_it() -> None:
    for ended in (renew(lease(), END), release(lease(), END)):
        assert ended.result.reason == "expired"
        assert ended.result.holder is UNSET
        assert ended.lease is None
    assert release(lease(), END, fence="guess").result.reason == "not_holder"


@pytest.mark.requirement("watch.lease.lost-stays-lost")
def test_what_was_let_go_is_over_for_its_holder_too() -> None:
    gone = leases.free(lease())
    for ended in (renew(gone, at()), release(gone, at())):
        assert ended.result.reason == "not_holder"
        assert "switch of its scope fired" in ended.result.notes[0]
    for guess in (renew(gone, at(), fence="guess"), release(gone, at(), fence="guess")):
        assert guess.result.reason == "not_holder"
        assert guess.result.notes == ("Nobody holds it now.",)


@pytest.mark.requirement("watch.lease.release")
def test_a_key_that_nobody_ever_took_has_no_holder() -> None:
    for result in (renew(None, at()).result, release(None, at()).result):
        assert (result.reason, result.holder) == ("not_holder", UNSET)
        assert result.notes


@pytest.mark.requirement("watch.lease.release")
def test_a_release_is_the_same_as_a_fires_and_keeps_the_number() -> None:
    released = release(lease(), at(1_000))
    assert released.lease == leases.free(lease()) == msgspec.structs.replace(lease(), held=False)
    assert plain(released.result) == {
        "server_time": utc_time(START + 1_000),
        "notes": [],
        "released": True,
        "key": "db",
        "holder": "worker-1",
        "generation": 4,
    }
    assert [(e.kind, e.scope, e.detail["lease_generation"]) for e in released.entries] == [
        ("lease_released", SCOPE, 4)
    ]


@pytest.mark.requirement("watch.lease.expiry", "field.19.lease-and-wall-steps")
@pytest.mark.parametrize("shift", [-3_600_000, 3_600_000])
def test_a_step_of_the_wall_clock_changes_no_lease(shift: int) -> None:
    for ms, held in ((59_999, True), (60_000, False)):
        assert leases.is_held(lease(), at(ms, shift=shift)) == held
    refusal = take(lease(), at(10_000, shift=shift), holder="w2").result
    assert refusal.retry_after_seconds == 50
    assert refusal.expires_at == utc_time(START + 60_000 + shift)
