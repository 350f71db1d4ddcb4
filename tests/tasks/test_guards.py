"""The guard of a claim that keeps no deadline: with what it is armed again."""

import msgspec
import pytest
from msgspec import UNSET

from mcpl_heartbeat.tasks import guards, machine
from mcpl_heartbeat.tasks.rows import Task
from mcpl_heartbeat.watch import switches
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.rows import Action, Switch
from tests.tasks.working import NAMESPACE, at, beating, claiming, guarding, kept, task

pytestmark = pytest.mark.requirement("tasks.machine.guard-again")
BOSS = "agent:abcdefghijklmnop/deaths"


def _armed(on_expiry: list[Action], notify: str | None = BOSS) -> tuple[Task, Switch]:
    """A claim and its guard."""
    guard = guarding(on_expiry=on_expiry, notify_address=UNSET if notify is None else notify)
    change = machine.claim(task(), claiming(guard=guard, agent_id="w-1"), at())
    (call,) = change.guard
    beaten = switches.beat(None, NAMESPACE, call, at())
    assert isinstance(beaten, switches.Beaten)
    assert beaten.switch is not None
    return kept(change), beaten.switch


def _disarmed(switch: Switch) -> Switch:
    return msgspec.structs.replace(switch, state="disarmed")


def _again(held: Task, down: guards.Down | None) -> tuple[HeartbeatArguments, tuple[str, ...]]:
    change = machine.heartbeat(held, beating(), at(1_000), down)
    (call,) = change.guard
    return call, change.result.notes  # type: ignore[union-attr]


@pytest.mark.parametrize("registered", [True, False])
def test_one_that_is_armed_needs_nothing(registered: bool) -> None:
    held, switch = _armed(["mark_failed", "queue_alert"])
    assert guards.down(held, switch, registered=registered) is None
    call, notes = _again(held, None)
    assert (call.on_expiry, call.notify_address, notes) == (UNSET, UNSET, ())


@pytest.mark.parametrize(
    ("on_expiry", "notify"),
    [
        (["release_leases", "mark_failed", "queue_alert"], BOSS),
        (["queue_alert"], BOSS),
        (["release_leases"], None),
    ],
)
def test_one_that_was_disarmed_is_armed_with_what_it_had(
    on_expiry: list[Action], notify: str | None
) -> None:
    held, switch = _armed(on_expiry, notify)
    down = guards.down(held, _disarmed(switch), registered=True)
    call, (note,) = _again(held, down)
    assert call.on_expiry == on_expiry
    assert call.notify_address == (UNSET if notify is None else notify)
    assert (call.agent_id, call.expect_within_seconds) == ("w-1", held.lease_ms // 1000)
    assert "had been disarmed; it is armed again" in note
    anew = switches.beat(_disarmed(switch), NAMESPACE, call, at(1_000))
    assert isinstance(anew, switches.Beaten)
    assert anew.switch is not None
    assert (anew.switch.generation, anew.switch.on_expiry) == (2, switch.on_expiry)
    assert anew.switch.notify == switch.notify


def test_without_anybody_to_alert_the_rest_of_it_stands() -> None:
    for on_expiry, left in [
        (["mark_failed", "queue_alert"], ["mark_failed"]),
        (["queue_alert"], ["mark_failed"]),
    ]:
        held, switch = _armed(on_expiry)  # type: ignore[arg-type]
        call, (note,) = _again(held, guards.down(held, _disarmed(switch), registered=False))
        assert (call.on_expiry, call.notify_address) == (left, UNSET)
        assert f"nobody is registered at {BOSS} any more" in note


@pytest.mark.parametrize("state", ["armed", "disarmed", "fired"])
def test_nothing_is_taken_over_from_a_guard_of_an_earlier_claim(state: str) -> None:
    held, switch = _armed(["queue_alert"])
    before = switch.armed_at - 1
    old = msgspec.structs.replace(switch, state=state, armed_at=before, last_beat_at=before)
    for left in (old, None):
        call, (note,) = _again(held, guards.down(held, left, registered=True))
        assert (call.on_expiry, call.notify_address) == (["mark_failed"], UNSET)
        assert "not known any more" in note


def test_a_claim_without_a_guard_gets_none() -> None:
    held = kept(machine.claim(task(), claiming(), at()))
    assert machine.heartbeat(held, beating(), at(1)).guard == ()
