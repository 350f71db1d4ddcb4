"""The two files when others write them too: another hand, and another server."""

import json

import pytest

from mcpl_heartbeat.actions import (
    Document,
    NotSaved,
)
from tests.session.reminders import MINUTE, ready
from tests.world import Disk, World


@pytest.mark.requirement("file.changed-merge", "file.changed-said", "file.deleted-row")
def test_what_another_hand_wrote_wins_row_by_row_and_is_said() -> None:
    world = ready()
    kept, edited, deleted = (
        world.call("reminder_add", message=m, inHours=1)["structuredContent"]["reminder"]["id"]
        for m in ("kept", "edited", "deleted")
    )
    rows = [row for row in world.disk.rows() if row["id"] != deleted]
    rows[1]["message"] = "by hand"
    rows.append({**rows[0], "id": "rem_hand", "message": "new"})
    world.disk.bytes[Document.REMINDERS] = json.dumps(rows).encode()
    result = world.call("reminder_add", message="mine", inHours=2)
    assert "changed by another hand" in result["content"][0]["text"]
    mine = result["structuredContent"]["reminder"]["id"]
    merged = {row["id"]: row["message"] for row in world.disk.rows()}
    assert merged == {kept: "kept", edited: "by hand", "rem_hand": "new", mine: "mine"}
    listed = world.call("reminder_list")["structuredContent"]["reminders"]
    assert {view["id"]: view["message"] for view in listed} == merged


@pytest.mark.requirement("file.changed-merge", "file.changed-said")
def test_a_config_changed_by_hand_wins_member_by_member_and_re_arms() -> None:
    world = ready()
    world.call("heartbeat_configure", paused=False, intervalHours=1, message="mine")
    world.pass_time(MINUTE)
    config = world.disk.config()
    world.disk.bytes[Document.CONFIG] = json.dumps({**config, "intervalSeconds": 120}).encode()
    text = world.text("heartbeat_configure", intervalHours=5, message="newer")
    assert "changed by another hand" in text
    assert "interval=120s" in text
    assert world.disk.config()["message"] == "newer"
    assert world.disk.config()["intervalSeconds"] == 120
    assert world.disk.config()["nextAt"] == world.wall + 120_000


@pytest.mark.requirement("file.gone", "field.95")
@pytest.mark.parametrize("left", [None])
def test_a_file_that_is_gone_is_written_anew_from_memory(left: bytes | None) -> None:
    world = ready()
    world.call("reminder_add", message="old", inHours=1)
    world.disk.bytes[Document.REMINDERS] = left
    world.call("reminder_add", message="new", inHours=1)
    assert [row["message"] for row in world.disk.rows()] == ["old", "new"]


@pytest.mark.requirement("file.lock", "field.91", "seed.file.replies-say")
def test_a_second_server_fires_nothing_saves_nothing_and_says_so_in_every_reply() -> None:
    first = ready()
    first.call("reminder_add", message="x", inSeconds=5)
    disk = first.disk
    disk.held_by = "process 4711"
    second = World(disk)
    second.connect()
    saves = len(disk.saves)
    for tool, arguments in (
        ("heartbeat_status", {}),
        ("heartbeat_configure", {"paused": False}),
        ("heartbeat_trigger", {}),
        ("reminder_add", {"message": "y", "inSeconds": 1}),
        ("reminder_list", {}),
        ("reminder_cancel", {"id": "rem_1"}),
    ):
        result = second.call(tool, **arguments)
        assert "process 4711" in result["content"][0]["text"], tool
        changes = tool not in {"heartbeat_status", "reminder_list"}
        assert result.get("isError", False) is changes
    second.pass_time(10 * MINUTE)
    assert second.pushes == []
    assert len(disk.saves) == saves
    assert second.session.standby


@pytest.mark.requirement("file.lock-takeover", "schedule.missed-once")
def test_it_takes_over_with_what_the_first_left_on_disk() -> None:
    first = ready()
    first.disk.held_by = "process 4711"
    second = World(first.disk)
    second.connect()
    first.disk.held_by = None
    first.call("reminder_add", message="late add", inSeconds=5)
    second.pass_time(10_000)
    assert second.pushes == []
    second.open_files()
    assert not second.session.standby
    assert len(second.pushes) == 1
    assert second.disk.rows() == []
    assert any("has taken over" in line for line in second.logs)


@pytest.mark.requirement("file.changed-merge", "seed.configure.says-unsaved")
def test_a_setting_that_memory_has_already_is_still_held_against_the_file() -> None:
    world = ready()
    world.call("heartbeat_configure", paused=False)
    config = {**world.disk.config(), "paused": True}
    world.disk.bytes[Document.CONFIG] = json.dumps(config).encode()
    text = world.text("heartbeat_configure", paused=False)
    assert text.startswith("Heartbeat PAUSED")
    assert "changed by another hand" in text
    world.disk.bytes[Document.CONFIG] = None
    world.call("heartbeat_configure", paused=True)
    assert world.disk.config()["paused"] is True


@pytest.mark.requirement("file.changed-said", "host.39")
def test_a_cancel_that_another_hand_undid_says_so() -> None:
    world = ready()
    added = world.call("reminder_add", message="x", inHours=1)["structuredContent"]
    id = added["reminder"]["id"]
    world.disk.bytes[Document.REMINDERS] = json.dumps(
        [{**world.disk.rows()[0], "message": "by hand"}]
    ).encode()
    result = world.call("reminder_cancel", id=id)
    assert result["isError"] is True
    assert result["structuredContent"]["cancelled"] is False
    assert "was not cancelled" in result["content"][0]["text"]
    assert "by hand" in world.text("reminder_list")
    assert world.call("reminder_cancel", id=id)["structuredContent"]["cancelled"] is True


@pytest.mark.requirement("file.lock", "seed.file.replies-say")
def test_a_refused_call_says_what_is_wrong_with_the_files_too() -> None:
    disk = Disk()
    disk.bytes[Document.REMINDERS] = b"[tor"
    world = ready(disk=disk)
    result = world.call("reminder_list", offset=-1)
    assert "reminders: " in result["content"][0]["text"]
    assert result["structuredContent"]["notes"]
    disk.held_by = "process 4711"
    second = World(disk)
    second.connect()
    for tool, arguments in (("reminder_add", {}), ("reminder_list", {"offset": -1})):
        assert "process 4711" in second.text(tool, **arguments)


@pytest.mark.requirement("file.changed-merge", "schedule.skips-unanswered")
def test_a_hand_edit_of_the_words_does_not_send_a_heartbeat_that_is_out_again() -> None:
    world = World(answer=lambda push: None)
    world.connect()
    world.call("heartbeat_configure", intervalSeconds=60)
    world.pass_time(MINUTE)
    config = {**world.disk.config(), "message": "by hand"}
    world.disk.bytes[Document.CONFIG] = json.dumps(config).encode()
    assert "by hand" in world.text("heartbeat_configure", deliveryMode="message")
    world.pass_time(30_000)
    assert len(world.pushes) == 1


@pytest.mark.requirement("file.lock", "file.said-means-done")
def test_a_server_whose_files_are_taken_from_it_answers_what_waits_and_stands_by() -> None:
    world = ready()
    world.disk.slow = True
    first = world.begin_call("reminder_add", message="1", inHours=1)
    second = world.begin_call("reminder_add", message="2", inHours=1)
    world.disk.held_by = "process 4711"
    world.end_save(NotSaved("another server (process 4711) has taken these files", kept=False))
    world.open_files()
    for id in (first, second):
        result = world.reply(id)["result"]
        assert result["isError"] is True
        assert result["structuredContent"]["saved"] is False
        assert "reminder_add changed nothing: another server" in result["content"][0]["text"]
        assert "process 4711" in result["content"][0]["text"]
    assert world.call("reminder_add", message="3", inHours=1)["isError"] is True
    world.end_save(NotSaved("another server (process 4711) has taken these files"))
    world.disk.slow = False
    world.disk.held_by = None
    world.open_files()
    text = world.text("reminder_add", message="4", inHours=1)
    assert "NOT SAVED" not in text
    assert "4711" not in text
