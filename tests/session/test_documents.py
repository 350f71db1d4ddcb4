"""The two files, seen from the session: what a reply may say before, after and without a save."""

import json

import pytest

from mcpl_heartbeat.actions import (
    Document,
    NotSaved,
    Opened,
    Opening,
    Saved,
    Trouble,
)
from tests.session.reminders import MINUTE, ready
from tests.world import GRANT, START, Disk, World

FULL = "No space left on device"


@pytest.mark.requirement("file.said-means-done", "file.slow-save", "mcp.ping-meanwhile")
def test_a_slow_save_delays_only_the_reply_that_speaks_of_it() -> None:
    world = ready()
    world.call("reminder_add", message="due", inSeconds=5)
    world.disk.slow = True
    id = world.begin_call("reminder_add", message="x", inHours=1)
    world.pass_time(5_000)
    assert not world.answered(id)
    assert len(world.pushes) == 1
    assert world.request("ping")["result"] == {}
    assert "reminders=1 " in world.text("heartbeat_status")
    world.end_save()
    assert world.answered(id)
    assert world.reply(id)["result"]["structuredContent"]["saved"] is True


@pytest.mark.requirement("file.said-means-done")
def test_adds_that_come_during_a_save_share_the_next_one() -> None:
    world = ready()
    world.disk.slow = True
    first = world.begin_call("reminder_add", message="1", inHours=1)
    rest = [world.begin_call("reminder_add", message=str(n), inHours=1) for n in range(2, 9)]
    world.end_save()
    assert world.answered(first)
    assert not any(map(world.answered, rest))
    world.end_save()
    assert all(map(world.answered, rest))
    assert len(world.disk.rows()) == 8


@pytest.mark.requirement(
    "file.disk-full",
    "seed.file.unsaved-said",
    "seed.configure.says-unsaved",
    "file.said-means-done",
)
def test_a_failed_save_is_said_with_its_reason_and_made_good_later() -> None:
    world = ready()
    world.disk.fail = FULL
    for tool, arguments in (
        ("heartbeat_configure", {"intervalHours": 2}),
        ("reminder_add", {"message": "x", "inHours": 1}),
    ):
        result = world.call(tool, **arguments)
        assert FULL in result["content"][0]["text"]
        assert "NOT SAVED" in result["content"][0]["text"]
        assert result["structuredContent"]["saved"] is False
    assert FULL in world.text("reminder_list")
    assert FULL in world.text("heartbeat_status")
    id = world.call("reminder_list")["structuredContent"]["reminders"][0]["id"]
    assert "NOT SAVED" in world.text("reminder_cancel", id=id)
    assert sum(FULL in line for line in world.logs) == 2
    world.disk.fail = None
    world.pass_time(30_000)
    assert world.disk.config()["intervalSeconds"] == 7200
    assert FULL not in world.text("heartbeat_status")
    assert sum("is saved again" in line for line in world.logs) == 2


@pytest.mark.requirement(
    "seed.file.unreadable-memory", "seed.file.unreadable-left-alone", "field.86"
)
def test_a_sealed_file_is_never_saved_and_every_reply_about_it_says_so() -> None:
    world = World()
    trouble = Trouble("the reminders file /x is a directory and was left as it is", savable=False)
    world.boot(open_files=False)
    world._do(world.session.opened(Opening(Opened(), Opened(None, trouble)), world.now))
    world.connect()
    saves = len(world.disk.saves)
    text = world.text("reminder_add", message="x", inSeconds=5)
    assert "NOT SAVED" in text
    for tool in ("reminder_list", "heartbeat_status"):
        assert trouble.text in world.text(tool)
    assert trouble.text in world.logs
    world.pass_time(5_000)
    assert len(world.pushes) == 1
    assert [s for s in world.disk.saves[saves:] if s.document is Document.REMINDERS] == []


@pytest.mark.requirement("seed.file.unreadable-left-alone")
def test_a_file_that_turns_unreadable_at_a_save_is_left_alone_from_then_on() -> None:
    world = ready()
    world.disk.slow = True
    id = world.begin_call("reminder_add", message="x", inHours=1)
    trouble = Trouble("the reminders file cannot be read", savable=False)
    world.end_save(NotSaved("it cannot be read", trouble))
    assert "NOT SAVED" in world.reply(id)["result"]["content"][0]["text"]
    saves = len(world.disk.saves)
    assert "NOT SAVED" in world.text("reminder_add", message="y", inHours=1)
    world.pass_time(MINUTE)
    assert len(world.disk.saves) == saves


@pytest.mark.requirement(
    "seed.file.replies-say", "seed.file.partial-rows", "seed.file.torn-starts-without"
)
@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (
            b'[{"id":"a","message":"m","createdAt":1,"fireAt":99999999999999,"everySeconds":null},1]',
            1,
        ),
        (b'[{"id":"a","mess', 0),
    ],
)
def test_a_file_used_in_part_or_not_at_all_is_said_in_each_reply(data: bytes, kept: int) -> None:
    disk = Disk()
    disk.bytes[Document.REMINDERS] = data
    world = ready(disk=disk)
    assert f"{kept} reminder(s)" in world.text("reminder_list")
    for text in (
        world.text("reminder_list"),
        world.text("heartbeat_status"),
        world.text("reminder_add", message="x", inHours=1),
    ):
        assert "reminders: " in text
    assert len(world.disk.rows()) == kept + 1


@pytest.mark.requirement("file.said-means-done", "mcp.cancelled", "field.37")
def test_a_call_cancelled_during_its_save_gets_no_reply_and_keeps_its_effect() -> None:
    world = ready()
    world.disk.slow = True
    id = world.begin_call("reminder_add", message="x", inHours=1)
    world.notify("notifications/cancelled", {"requestId": id})
    world.notify("notifications/cancelled", {"requestId": "never"})
    world.end_save()
    assert not world.answered(id)
    assert len(world.disk.rows()) == 1


@pytest.mark.requirement("file.slow-save")
def test_calls_before_the_files_are_read_are_carried_out_after_in_their_order() -> None:
    world = World()
    world.boot(open_files=False)
    world.connect()
    add = world.begin_call("reminder_add", message="x", inHours=1)
    listing = world.begin_call("reminder_list")
    wrong = world.begin_call("reminder_add", message=5)
    assert world.request("ping")["result"] == {}
    assert "tools" in world.request("tools/list")["result"]
    assert not any(map(world.answered, (add, listing, wrong)))
    world.open_files()
    assert "1 reminder(s):" in world.reply(listing)["result"]["content"][0]["text"]
    assert world.reply(wrong)["result"]["isError"] is True
    assert world.answered(add)


@pytest.mark.requirement("schedule.grid")
def test_the_first_wake_is_saved_before_anything_is_configured() -> None:
    world = World()
    assert world.disk.config()["nextAt"] == START + 14_400_000


@pytest.mark.requirement("file.said-means-done")
def test_leaving_waits_for_the_save_that_is_under_way() -> None:
    world = ready()
    assert not world.session.unsettled
    world.disk.slow = True
    id = world.begin_call("reminder_add", message="x", inHours=1)
    world._do(world.session.end_of_input(world.now))
    assert world.session.unsettled
    world.end_save(Saved())
    assert not world.session.unsettled
    assert world.answered(id)


@pytest.mark.requirement("file.node-loads", "policy.before-answer")
def test_the_node_servers_files_are_taken_up_as_they_are() -> None:
    disk = Disk()
    disk.bytes[Document.CONFIG] = (
        b'{\n  "intervalSeconds": 3600,\n  "paused": false,\n  "message": "hi"\n}'
    )
    disk.bytes[Document.REMINDERS] = json.dumps(
        [
            {
                "id": "rem_a",
                "message": "once",
                "createdAt": START - 9,
                "fireAt": START + 1000,
                "everySeconds": None,
            },
            {
                "id": "rem_b",
                "message": "often",
                "createdAt": START - 9,
                "fireAt": START - 1000,
                "everySeconds": 10,
            },
        ]
    ).encode()
    world = World(disk)
    world.connect(policy=None)
    world.request("featureSets/update", GRANT)
    world.pass_time(10_000)
    assert [p["origin"]["reminderId"] for p in world.pushes] == ["rem_b", "rem_a", "rem_b"]
    assert "interval=3600s (1.00h)" in world.text("heartbeat_status")
    assert set(world.disk.rows()[0]) == {"id", "message", "createdAt", "fireAt", "everySeconds"}


@pytest.mark.requirement("file.disk-full", "stdio.ends-without-loss")
def test_what_could_not_be_saved_is_tried_once_more_before_leaving() -> None:
    world = ready()
    world.disk.fail = FULL
    world.call("reminder_add", message="x", inHours=1)
    world.disk.fail = None
    world._do(world.session.end_of_input(world.now))
    assert len(world.disk.rows()) == 1


@pytest.mark.requirement("jsonrpc.never-raises", "file.slow-save")
def test_a_fault_in_one_early_call_costs_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.boot(open_files=False)
    world.connect()

    def broken(*_: object) -> None:
        raise RuntimeError("our fault")

    monkeypatch.setitem(world.session._calls._handlers, "heartbeat_trigger", broken)
    world.begin_call("heartbeat_trigger")
    listing = world.begin_call("reminder_list")
    world.open_files()
    assert world.answered(listing)
    assert any("our fault" in line for line in world.logs)
