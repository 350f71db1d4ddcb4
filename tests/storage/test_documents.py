"""A document's life on disk: opened, copied aside, saved, left alone."""

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from mcpl_heartbeat.actions import NotSaved, Opened, Saved
from mcpl_heartbeat.storage import disk
from mcpl_heartbeat.storage.lock import Lock
from mcpl_heartbeat.wake.files import Config, encode_reminders
from tests.storage.support import (
    config_file,
    copies,
    holds,
    names,
    reminders_file,
    rows,
    trouble_of,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reminders.json"


# --- Opening -------------------------------------------------------------------------------------


@pytest.mark.requirement("file.atomic")
def test_a_missing_file_is_no_trouble_and_the_first_save_makes_it(path: Path) -> None:
    file = reminders_file(path)
    assert file.open() == Opened()
    assert names(path.parent) == []
    assert file.save(rows("a")) == Saved()
    assert holds(path) == rows("a")
    assert names(path.parent) == ["reminders.json"]
    assert reminders_file(path).open() == Opened(rows("a"))


@pytest.mark.requirement("field.85", "seed.file.copy-aside", "seed.file.torn-starts-without")
def test_a_file_cut_in_half_is_copied_aside_before_it_is_replaced(path: Path) -> None:
    whole = encode_reminders(rows("a", "b", "c"))
    torn = whole[: len(whole) // 2]
    path.write_bytes(torn)
    path.chmod(0o640)
    file = reminders_file(path)
    opened = file.open()
    copy = path.with_name(f"reminders.json.unreadable-{hashlib.sha256(torn).hexdigest()[:12]}")
    trouble = trouble_of(opened)
    assert opened.value is None
    assert trouble.savable
    assert str(path) in trouble.text
    assert str(copy) in trouble.text
    assert "not JSON" in trouble.text
    assert copy.read_bytes() == torn
    assert stat.S_IMODE(copy.stat().st_mode) == 0o640
    assert path.read_bytes() == torn
    assert file.save(rows("d")) == Saved()
    assert holds(path) == rows("d")
    assert copy.read_bytes() == torn


@pytest.mark.requirement("seed.file.partial-rows", "seed.file.log-names-copy")
def test_a_file_with_one_bad_row_is_copied_aside_and_the_others_load(path: Path) -> None:
    data = encode_reminders(rows("a", "b")).replace(b'"fireAt":2', b'"fireAt":"x"', 1)
    path.write_bytes(data)
    opened = reminders_file(path).open()
    assert opened.value == rows("b")
    (copy,) = copies(path)
    assert copy.read_bytes() == data
    assert str(copy) in trouble_of(opened).text
    assert "1 of 2 rows" in trouble_of(opened).text
    assert trouble_of(opened).savable


@pytest.mark.requirement("seed.file.partial-utf8")
def test_a_file_in_another_encoding_is_copied_aside_and_read(path: Path) -> None:
    path.write_bytes(encode_reminders(rows("a")).replace(b"do a", b"d\xf6"))
    opened = reminders_file(path).open()
    assert opened.value[0].message == "d\ufffd"
    assert len(copies(path)) == 1


@pytest.mark.requirement("field.92")
def test_a_file_from_notepad_is_not_copied_aside(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'\xef\xbb\xbf{\r\n"intervalSeconds": 60\r\n}\r\n')
    assert config_file(path).open() == Opened(Config(interval_seconds=60))
    assert copies(path) == []


@pytest.mark.requirement("seed.file.copy-aside")
def test_the_same_bytes_are_copied_aside_once(path: Path) -> None:
    path.write_bytes(b"torn")
    reminders_file(path).open()
    (copy,) = copies(path)
    first = copy.stat()
    reminders_file(path).open()
    assert copies(path) == [copy]
    assert copy.stat().st_ino == first.st_ino


@pytest.mark.requirement("seed.file.copy-aside")
def test_a_copy_with_other_bytes_is_never_overwritten(path: Path) -> None:
    path.write_bytes(b"torn")
    digest = hashlib.sha256(b"torn").hexdigest()
    other = path.with_name(f"reminders.json.unreadable-{digest[:12]}")
    other.write_bytes(b"something else")
    assert trouble_of(reminders_file(path).open()).savable
    assert other.read_bytes() == b"something else"
    assert copies(path)[1].read_bytes() == b"torn"


@pytest.mark.requirement("seed.file.copy-fails")
@pytest.mark.parametrize("data", [b"torn", b"[1]"], ids=["torn", "in part"])
def test_without_a_copy_the_file_is_left_as_it_is(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    for length in (12, 24, 64):
        path.with_name(f"reminders.json.unreadable-{digest[:length]}").mkdir()
    file = reminders_file(path)
    opened = file.open()
    assert opened.value is None
    assert not trouble_of(opened).savable
    outcome = file.save(rows("a"))
    assert trouble_of(outcome) == opened.trouble
    assert path.read_bytes() == data


@pytest.mark.requirement("field.86", "seed.file.unreadable-left-alone", "seed.file.unsaved-said")
@pytest.mark.parametrize("kind", ["folder", "fifo", "loop", "below a file", "socket"])
def test_what_cannot_be_read_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "r.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "below a file":
        path.write_bytes(b"")
        path = path / "r.json"
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))
    before = names(tmp_path)
    file = reminders_file(path)
    opened = file.open()
    assert opened.value is None
    assert not trouble_of(opened).savable
    assert "could not be read" in trouble_of(opened).text
    outcome = file.save(rows("a"))
    assert trouble_of(outcome) == opened.trouble
    assert names(tmp_path) == before


@pytest.mark.requirement("field.86", "seed.file.unreadable-left-alone")
def test_a_file_this_user_may_not_read_is_left_alone_until_it_is_opened_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(encode_reminders(rows("a")))
    file = reminders_file(path)
    real = os.open

    def refuse(name: Any, *args: Any, **kwargs: Any) -> int:
        if name == str(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(name, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert "(Permission denied)" in trouble_of(file.open()).text
    assert isinstance(file.save(rows("b")), NotSaved)
    assert holds(path) == rows("a")
    assert file.open() == Opened(rows("a"))
    assert file.save(rows("b")) == Saved()


@pytest.mark.requirement("file.lock")
def test_nothing_is_saved_to_a_file_that_was_not_opened(path: Path) -> None:
    file = reminders_file(path)
    assert isinstance(file.save(rows("a")), NotSaved)
    path.write_bytes(b"torn")
    assert file.peek().value is None
    assert "not JSON" in trouble_of(file.peek()).text
    assert isinstance(file.save(rows("a")), NotSaved)
    assert names(path.parent) == ["reminders.json"]


@pytest.mark.requirement("file.no-temp-left")
def test_leftovers_of_a_killed_process_are_removed_at_the_next_start(path: Path) -> None:
    parent, dead = os.getppid(), 2**22 + 1
    kept = {f".reminders.json.{parent}-1.tmp", ".other.json.1-1.tmp", "reminders.json.tmp"}
    gone = {
        f".reminders.json.{dead}-1.tmp",
        f".reminders.json.{os.getpid()}-999999.tmp",
        f".reminders.json.unreadable-0123456789ab.{dead}-2.tmp",
        ".reminders.json.9999999999-1.tmp",
    }
    for name in kept | gone:
        path.with_name(name).write_bytes(b"")
    reminders_file(path).open()
    assert set(names(path.parent)) == kept


# --- Saving --------------------------------------------------------------------------------------


@pytest.mark.requirement("file.atomic")
def test_a_file_nobody_touched_is_not_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    monkeypatch.setattr(disk, "read", None)
    assert file.save(rows("b")) == Saved()
    assert file.save(rows("c")) == Saved()


@pytest.mark.requirement("field.88", "file.mode")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660, 0o606])
def test_a_save_keeps_the_mode(path: Path, mode: int) -> None:
    path.write_bytes(b"[]")
    path.chmod(mode)
    file = reminders_file(path)
    file.open()
    assert file.save(rows("a")) == Saved()
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.requirement("file.mode")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_gets_the_mode_that_the_umask_leaves(path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        file = reminders_file(path)
        file.open()
        file.save(())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.requirement("file.mode")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_save_keeps_the_owner_where_it_may(path: Path) -> None:
    path.write_bytes(b"[]")
    os.chown(path, 4711, 4712)
    path.chmod(0o640)
    file = reminders_file(path)
    file.open()
    assert file.save(rows("a")) == Saved()
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (4711, 4712, 0o640)


@pytest.mark.requirement("field.88", "file.symlink")
def test_a_symlink_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    link, there = tmp_path / "r.json", tmp_path / "elsewhere"
    there.mkdir()
    target = there / "real.json"
    target.write_bytes(b"[]")
    target.chmod(0o600)
    link.symlink_to("elsewhere/real.json")
    file = reminders_file(link)
    file.open()
    assert file.save(rows("a")) == Saved()
    assert link.is_symlink()
    assert holds(target) == rows("a")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert names(there) == ["real.json"]
    assert names(tmp_path) == ["elsewhere", "r.json"]


@pytest.mark.requirement("field.88", "file.symlink")
def test_the_target_of_a_dangling_symlink_is_made(tmp_path: Path) -> None:
    link = tmp_path / "r.json"
    link.symlink_to("not/yet/there.json")
    file = reminders_file(link)
    assert file.open() == Opened()
    assert file.save(rows("a")) == Saved()
    assert link.is_symlink()
    assert holds(tmp_path / "not/yet/there.json") == rows("a")


@pytest.mark.requirement("file.atomic")
def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "data" / "deep" / "r.json"
    file = reminders_file(path)
    assert file.open() == Opened()
    assert file.save(rows("a")) == Saved()
    assert holds(path) == rows("a")


@pytest.mark.requirement("file.atomic", "file.mode")
def test_a_write_protected_file_is_not_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"[]")
    file = reminders_file(path)
    file.open()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert file.save(rows("a")) == NotSaved("the file is write-protected")
    assert path.read_bytes() == b"[]"
    assert names(path.parent) == ["reminders.json"]


@pytest.mark.requirement("file.atomic", "file.said-means-done")
def test_a_save_syncs_the_file_renames_it_and_syncs_the_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        steps.append(f"sync {kind}")
        fsync(descriptor)

    def note_rename(source: str, target: str) -> None:
        assert Path(source).parent == Path(target).parent
        assert holds(source) == rows("a")
        steps.append("rename")
        replace(source, target)

    file = reminders_file(path)
    file.open()
    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    assert file.save(rows("a")) == Saved()
    assert steps == ["sync file", "rename", "sync folder"]


@pytest.mark.requirement("file.never-raises")
def test_odd_names_do_no_harm(tmp_path: Path) -> None:
    for name in ("r" * 250, os.fsdecode(b"r\xff.json"), "r\n[a-z]*.json"):
        path = tmp_path / name
        file = reminders_file(path)
        assert file.open() == Opened()
        assert file.save(rows("a")) == Saved()
        lock = Lock(str(path))
        assert lock.acquire() is None
        assert lock.note is None
        lock.release()
        path.write_bytes(b"torn")
        trouble_of(reminders_file(path).open()).text.encode()
