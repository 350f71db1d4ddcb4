"""Hands that do not stop, hosts that say more than is needed, and who is blamed for silence."""

import json
from typing import Any

import pytest

from mcpl_heartbeat.actions import Document
from mcpl_heartbeat.wake.ledger import MOST_TOOK
from tests.world import GRANT, Disk, World, accept, refuse

EVERY_MS = 5_000


def edit(world: World, **members: Any) -> None:
    rows = world.disk.rows()
    rows[0].update(members)
    world.disk.bytes[Document.REMINDERS] = json.dumps(rows).encode()


@pytest.mark.requirement("file.changed-said")
def test_what_a_hand_that_keeps_at_it_did_is_said_once_and_the_log_has_each_time() -> None:
    world = World()
    world.connect()
    world.call("reminder_add", message="x", everySeconds=5)
    for number in range(3 * MOST_TOOK):
        edit(world, message=f"edit {number}")
        world.pass_time(EVERY_MS)
    text = world.text("reminder_add", message="y", inHours=1)
    assert text.count("changed by another hand") == 1
    assert sum("changed by another hand" in line for line in world.logs) == 3 * MOST_TOOK


@pytest.mark.requirement("file.changed-said")
def test_of_many_different_changes_the_latest_are_said() -> None:
    world = World()
    world.connect()
    world.call("reminder_add", message="x", everySeconds=5)
    for number in range(1, 2 * MOST_TOOK):
        rows = world.disk.rows()
        rows += [dict(rows[0], id=f"n{number}-{n}", fireAt=4e12) for n in range(number)]
        world.disk.bytes[Document.REMINDERS] = json.dumps(rows).encode()
        world.pass_time(EVERY_MS)
    notes = world.call("reminder_add", message="y", inHours=1)["structuredContent"]["notes"]
    said = [note for note in notes if "by another hand" in note]
    assert len(said) == MOST_TOOK
    assert f"{2 * MOST_TOOK - 1} rows added" in said[-1]
    assert "added" not in world.text("reminder_add", message="z", inHours=1)


@pytest.mark.requirement("host.15")
@pytest.mark.parametrize("reason", [5, {"code": 1}, ["x"], True])
def test_a_reason_of_an_odd_type_does_not_hide_that_a_push_was_accepted(reason: Any) -> None:
    world = World(answer=lambda push: {"result": {"accepted": True, "reason": reason}})
    world.connect()
    world.call("reminder_add", message="x", inSeconds=1)
    world.pass_time(2_000)
    assert len(world.pushes) == 1
    assert world.disk.rows() == []


@pytest.mark.requirement("host.17")
def test_nor_that_it_was_refused() -> None:
    world = World(answer=lambda push: {"result": {"accepted": False, "reason": {"code": 1}}})
    world.connect()
    world.call("reminder_add", message="x", inSeconds=1)
    world.pass_time(2_000)
    assert "accepted:false without a reason" in world.text("reminder_list")


@pytest.mark.requirement("seed.trigger.unsendable-error", "file.lock")
def test_a_trigger_on_a_server_that_stands_by_does_not_blame_the_host() -> None:
    disk = Disk()
    disk.held_by = "process 4711"
    world = World(disk)
    world.connect()
    result = world.call("heartbeat_trigger")
    text = result["content"][0]["text"]
    assert result["isError"] is True
    assert "process 4711" in text
    assert "takes over when that one is gone" in text
    assert "operator" not in text


@pytest.mark.requirement("file.changed-merge", "reminder.grid")
def test_a_held_reminder_put_off_by_hand_waits_for_its_new_time() -> None:
    world = World(answer=refuse(-32603))
    world.connect()
    world.call("heartbeat_configure", paused=True)
    world.call("reminder_add", message="x", inSeconds=1, everyMinutes=1)
    world.pass_time(2_000)
    world.request("featureSets/update", {"effectiveCapabilities": ["tools"]})
    # An interval later it may be sent again, and cannot be.
    world.pass_time(70_000)
    edit(world, fireAt=world.wall + 86_400_000)
    world.call("reminder_add", message="y", inHours=48)
    world.answer = accept
    sent = len(world.pushes)
    world.request("featureSets/update", GRANT)
    assert len(world.pushes) == sent
    world.pass_time(86_400_000)
    assert len(world.pushes) == sent + 1
