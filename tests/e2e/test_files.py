"""The two files: torn, foreign, shared, full disks, crashes at any moment."""

import hashlib
import json
import os
import random
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.wire import is_reminder, now_ms, row

FAR = now_ms() + 10**9


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the folder where the server of a test keeps its files, made already."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def copies(path: Path) -> list[Path]:
    """Return the copies set aside of a file."""
    return sorted(path.parent.glob(f"{path.name}.unreadable-*"))


def no_temporary(folder: Path) -> None:
    """Fail when a save left something behind; one that is under way may still have its file."""
    deadline = time.monotonic() + 10
    while odd := left_behind(folder):
        assert time.monotonic() < deadline, odd
        time.sleep(0.05)


def left_behind(folder: Path) -> list[str]:
    known = ("heartbeat-config.json", "heartbeat-reminders.json", "unreadable-", ".lock")
    names = [path.name for path in folder.iterdir()]
    return [name for name in names if "tmp" in name or not any(k in name for k in known)]


@pytest.mark.requirement("field.85", "seed.file.copy-aside", "seed.file.torn-starts-without")
@pytest.mark.requirement("seed.file.replies-say", "seed.file.log-names-copy", "host.30")
def test_a_torn_file_is_kept_aside_and_said(spawn: Spawn, data: Path) -> None:
    path = data / "heartbeat-reminders.json"
    whole = json.dumps([row(f"rem_{n}", FAR) for n in range(10)]).encode()
    torn = whole[: len(whole) // 2]
    path.write_bytes(torn)
    server = spawn().ready()
    listed = server.listed()
    [copy] = copies(path)
    assert copy.read_bytes() == torn
    assert copy.name in listed or str(path) in listed
    reply = server.call("reminder_add", message="new", inHours=1)
    assert not reply.is_error
    assert len(reply.text.splitlines()) > 1 or "unreadable" in reply.text
    assert "unreadable" in server.status() or str(path.name) in server.status()
    assert [one["message"] for one in server.rows()] == ["new"]
    assert copy.name in server.stderr
    assert copies(path) == [copy]


@pytest.mark.requirement("field.86", "seed.file.unreadable-left-alone", "seed.file.unsaved-said")
@pytest.mark.requirement("seed.file.unreadable-memory", "seed.configure.says-unsaved")
def test_a_path_that_cannot_be_read_is_left_alone(spawn: Spawn, data: Path) -> None:
    (data / "heartbeat-reminders.json").mkdir()
    (data / "heartbeat-config.json").mkdir()
    server = spawn().ready()
    reply = server.call("reminder_add", message="kept in memory", inSeconds=2)
    assert "not saved" in reply.text.lower(), reply.text
    assert "heartbeat-reminders.json" in server.listed()
    changed = server.call("heartbeat_configure", intervalHours=2)
    assert "not saved" in changed.text.lower(), changed.text
    assert "interval=7200s" in server.status()
    server.wait_push(is_reminder)
    assert server.end() == 0
    assert list((data / "heartbeat-reminders.json").iterdir()) == []
    no_temporary(data)


@pytest.mark.requirement("field.88", "file.symlink", "file.mode", "file.no-temp-left")
@pytest.mark.parametrize("dangling", [False, True])
def test_links_and_modes_survive(spawn: Spawn, data: Path, tmp_path: Path, dangling: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "real.json"
    link = data / "heartbeat-reminders.json"
    link.symlink_to(target)
    if not dangling:
        target.write_text(json.dumps([row("rem_old", FAR)]))
        target.chmod(0o600)
    server = spawn().ready()
    server.add("new", inHours=1)
    assert link.is_symlink()
    assert len(json.loads(target.read_text())) == (1 if dangling else 2)
    if not dangling:
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    server.end()
    no_temporary(data)
    left = {path.name for path in elsewhere.iterdir() if "lock" not in path.name}
    assert left == {"real.json"}


SHAPES: list[tuple[bytes, int, bool]] = [
    (b"[]", 0, False),
    (b"null", 0, True),
    (b'"x"', 0, True),
    (b"{}", 0, True),
    (b'{"reminders":{}}', 0, True),
    (b'{"reminders":[1,{"id":5}]}', 0, True),
    (b"", 0, True),
    (json.dumps([1, row("rem_good", FAR), {"id": 5}]).encode(), 1, True),
    (json.dumps([row("rem_good", FAR, text="caf\xe9")]).encode("latin-1"), 1, False),
    (json.dumps([row("rem_good", FAR, text="cafX")]).encode().replace(b"X", b"\xe9"), 1, True),
]


@pytest.mark.requirement("field.89", "seed.file.partial-rows", "seed.file.partial-utf8")
@pytest.mark.requirement("seed.file.copy-aside", "file.never-raises")
@pytest.mark.parametrize(("content", "usable", "aside"), SHAPES)
def test_wrong_shapes_start_with_what_can_be_used(
    spawn: Spawn, data: Path, content: bytes, usable: int, aside: bool
) -> None:
    path = data / "heartbeat-reminders.json"
    path.write_bytes(content)
    server = spawn().ready()
    assert server.listed().count("rem_good") == usable
    if content:
        assert [copy.read_bytes() for copy in copies(path)] == ([content] if aside else [])
    server.add("new", inHours=1)
    assert len(server.rows()) == usable + 1


@pytest.mark.requirement("field.92")
def test_a_bom_and_crlf_are_read_whole(spawn: Spawn, data: Path) -> None:
    path = data / "heartbeat-config.json"
    config = {"intervalSeconds": 7200, "paused": True, "message": "hello"}
    text = json.dumps(config, indent=2).replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    server = spawn().ready()
    assert server.status().startswith("Heartbeat PAUSED | mode=message | interval=7200s (2.00h)")
    assert 'message="hello"' in server.status()
    assert copies(path) == []


@pytest.mark.requirement("file.node-loads", "file.node-reads", "file.kept-members")
def test_files_of_the_node_server_load_and_stay_readable_to_it(spawn: Spawn, data: Path) -> None:
    config = {"intervalSeconds": 3600, "paused": False, "message": "m", "deliveryMode": "silent"}
    (data / "heartbeat-config.json").write_text(json.dumps(config))
    old = row("rem_1a2b", FAR, every=3600) | {"colour": "blue"}
    (data / "heartbeat-reminders.json").write_text(json.dumps([old]))
    server = spawn().ready()
    assert "mode=silent | interval=3600s (1.00h)" in server.status()
    server.add("new", inHours=1)
    server.call("heartbeat_configure", message="other")
    rows = {one["id"]: one for one in server.rows()}
    assert rows["rem_1a2b"] == old
    [new] = [one for name, one in rows.items() if name != "rem_1a2b"]
    assert {"id", "message", "createdAt", "fireAt", "everySeconds"} <= set(new)
    assert new["everySeconds"] is None
    saved = json.loads((data / "heartbeat-config.json").read_text())
    assert config | {"message": "other"} == {name: saved[name] for name in config}


@pytest.mark.requirement("field.91", "file.lock", "file.lock-takeover")
def test_two_servers_on_the_same_files(spawn: Spawn) -> None:
    first = spawn().ready()
    kept = first.add("due", inSeconds=2)
    second = spawn()
    second.initialize()
    second.policy()
    reply = second.call("reminder_add", message="from b", inHours=1)
    if reply.is_error or "not saved" in reply.text.lower():
        assert kept not in second.status()
        said = (
            second.status(),
            second.listed(),
            second.call("heartbeat_configure", paused=False).text,
        )
        assert all("another" in text or str(first.pid) in text for text in said), said
    else:
        assert len(first.rows()) == 2
    first.wait_push(is_reminder)
    first.settle()
    first.wait("removal", lambda: kept not in first.reminders.read_text())
    second.quiet(1)
    assert len(first.pushes) + len(second.pushes) == 1
    stays = first.add("in an hour", inHours=1)
    first.kill()
    for _ in range(100):
        added = second.call("reminder_add", message="mine", inHours=2)
        if not added.is_error and "not saved" not in added.text.lower():
            break
        second.quiet(0.2)
    assert stays in second.listed()
    assert {"in an hour", "mine"} <= {one["message"] for one in second.rows()}


@pytest.mark.requirement(
    "field.94", "file.atomic", "file.said-means-done", "stdio.ends-without-loss"
)
def test_kill_9_at_any_moment_loses_no_answered_add(spawn: Spawn, data: Path) -> None:
    path = data / "heartbeat-reminders.json"
    chance = random.Random(20)
    answered: set[str] = set()
    for round_ in range(8):
        server = spawn().ready()
        ids = [server.request("tools/call", _add(f"{round_}-{number}")) for number in range(200)]
        server.reply(ids[chance.randrange(200)])
        server.kill()
        for message in server.messages:
            if message.get("id") in ids and "result" in message:
                answered.add(f"{round_}-{ids.index(message['id'])}")
        found = {one["message"] for one in json.loads(path.read_text())}
        assert answered <= found
    assert copies(path) == []


def _add(message: str) -> dict[str, Any]:
    return {"name": "reminder_add", "arguments": {"message": message, "inHours": 1}}


@pytest.mark.requirement("field.95", "file.gone")
@pytest.mark.parametrize("emptied", [False, True])
def test_a_file_gone_or_emptied_is_written_from_memory(host: Host, emptied: bool) -> None:
    host.add("one", inHours=1)
    if emptied:
        host.reminders.write_bytes(b"")
    else:
        host.reminders.unlink()
    host.add("two", inHours=1)
    assert [one["message"] for one in host.rows()] == ["one", "two"]


@pytest.mark.requirement("file.changed-merge", "file.changed-said", "file.deleted-row")
def test_what_someone_else_wrote_wins_row_by_row(host: Host) -> None:
    for text in ("edit me", "delete me", "leave me"):
        host.add(text, inHours=1)
    rows = [one for one in host.rows() if one["message"] != "delete me"]
    rows[0]["message"] = "edited"
    rows.append(row("rem_hand", FAR, text="by hand"))
    host.reminders.write_text(json.dumps(rows))
    reply = host.call("reminder_add", message="new", inHours=1)
    plain = host.call("reminder_add", message="newer", inHours=1)
    assert len(reply.text) > len(plain.text) + 5, (reply.text, plain.text)
    messages = {one["message"] for one in host.rows()}
    assert messages == {"edited", "leave me", "by hand", "new", "newer"}
    listed = host.listed()
    assert "delete me" not in listed
    assert all(text in listed for text in messages)


@pytest.mark.requirement("seed.file.log-names-copy", "file.gone", "seed.file.copy-aside")
def test_a_file_torn_while_running_is_kept_aside_and_logged(host: Host) -> None:
    host.add("one", inHours=1)
    torn = host.reminders.read_bytes()[:20]
    host.reminders.write_bytes(torn)
    reply = host.call("reminder_add", message="two", inHours=1)
    [copy] = copies(host.reminders)
    assert copy.read_bytes() == torn
    assert copy.name in reply.text
    assert [one["message"] for one in host.rows()] == ["one", "two"]
    host.wait_log(copy.name, timeout=10)


@pytest.mark.requirement("file.disk-full", "seed.file.unsaved-said", "file.no-temp-left")
def test_a_full_disk_leaves_the_old_file_whole(spawn: Spawn, data: Path) -> None:
    path = data / "heartbeat-reminders.json"
    # A file size limit fails writes as a full disk does, and needs no rights.
    limited = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh"]
    server = spawn(prefix=limited, env={"PYTHONDONTWRITEBYTECODE": "1"}).ready()
    server.add("fits", inHours=1)
    before = path.read_bytes()
    reply = server.call("reminder_add", message="m" * 20_000, inSeconds=2)
    assert "not saved" in reply.text.lower(), reply.text
    assert path.read_bytes() == before
    no_temporary(data)
    server.wait_push(is_reminder)
    server.settle()
    after = server.call("reminder_add", message="fits too", inHours=1)
    assert "not saved" not in after.text.lower()
    assert {one["message"] for one in server.rows()} == {"fits", "fits too"}


@pytest.mark.requirement("seed.file.copy-fails", "seed.file.unsaved-said")
@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/self").exists(), reason="needs a limit")
def test_a_torn_file_that_cannot_be_copied_is_left_alone(spawn: Spawn, data: Path) -> None:
    path = data / "heartbeat-reminders.json"
    torn = b'[{"id":"rem_1","message":"' + b"m" * 40_000
    path.write_bytes(torn)
    limited = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh"]
    server = spawn(prefix=limited, env={"PYTHONDONTWRITEBYTECODE": "1"}).ready()
    reply = server.call("reminder_add", message="x", inHours=1)
    assert "not saved" in reply.text.lower(), reply.text
    server.end()
    assert path.read_bytes() == torn
    assert all(hashlib.sha256(copy.read_bytes()).digest() for copy in copies(path))
    assert copies(path) == []


@pytest.mark.requirement("file.same-path")
def test_both_paths_on_one_file_are_said(spawn: Spawn, data: Path) -> None:
    one = data / "both.json"
    server = spawn(config=one, reminders=one).ready()
    reply = server.call("reminder_add", message="x", inHours=1)
    assert "not saved" in reply.text.lower(), reply.text
    assert "not saved" in server.call("heartbeat_configure", intervalHours=2).text.lower()
    server.ping()
