"""Two servers on one file: who holds it, and what becomes of the other."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpl_heartbeat.actions import NotSaved, Opened, Saved
from mcpl_heartbeat.storage.documents import open_files
from mcpl_heartbeat.storage.lock import Lock, acquire_all
from mcpl_heartbeat.wake.files import Config, encode_reminders
from tests.storage.support import config_file, copies, holds, names, reminders_file, rows

Locks = Any


@pytest.fixture
def lock() -> Iterator[Any]:
    made: list[Lock] = []

    def make(path: Path) -> Lock:
        made.append(Lock(str(path)))
        return made[-1]

    yield make
    for one in made:
        one.release()


@pytest.mark.requirement("file.lock", "field.91")
def test_a_second_server_is_told_who_holds_the_file(tmp_path: Path, lock: Locks) -> None:
    first, second = lock(tmp_path / "r.json"), lock(tmp_path / "r.json")
    assert first.acquire() is None
    assert first.held
    assert first.acquire() is None
    assert second.acquire() == f"process {os.getpid()}"
    assert not second.held
    first.release()
    first.release()
    assert second.acquire() is None
    assert names(tmp_path) == [".r.json.lock"]


HOLDER = """
import sys
from mcpl_heartbeat.storage.lock import Lock

lock = Lock(sys.argv[1])
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


@pytest.mark.requirement("file.lock-takeover")
def test_a_killed_server_holds_nothing(tmp_path: Path, lock: Locks) -> None:
    path = tmp_path / "r.json"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "None\n"
        ours = lock(path)
        assert ours.acquire() == f"process {child.pid}"
        child.kill()
    assert ours.acquire() is None


@pytest.mark.requirement("file.lock")
def test_a_link_and_its_target_have_one_lock(tmp_path: Path, lock: Locks) -> None:
    (tmp_path / "link.json").symlink_to("r.json")
    assert lock(tmp_path / "r.json").acquire() is None
    assert lock(tmp_path / "link.json").acquire() is not None


@pytest.mark.requirement("file.lock")
def test_all_locks_or_none(tmp_path: Path, lock: Locks) -> None:
    a, b, theirs = lock(tmp_path / "a"), lock(tmp_path / "b"), lock(tmp_path / "b")
    assert theirs.acquire() is None
    assert acquire_all([b, a]) == f"process {os.getpid()}"
    assert not a.held
    theirs.release()
    assert acquire_all([a, b]) is None
    assert acquire_all([a, b]) is None
    assert a.held
    assert b.held


@pytest.mark.requirement("file.lock")
def test_a_lock_file_removed_while_we_open_it_is_not_taken_for_the_lock(
    tmp_path: Path, lock: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    real = fcntl.flock
    removed: list[int] = []

    def remove_first(descriptor: int, operation: int) -> None:
        if not removed:
            removed.append(1)
            (tmp_path / ".r.json.lock").unlink()
        real(descriptor, operation)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", remove_first)
        assert lock(path).acquire() is None
    assert lock(path).acquire() is not None


@pytest.mark.requirement("file.lock")
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.EBADF])
def test_where_nothing_can_be_locked_the_server_goes_on_and_says_so(
    tmp_path: Path, lock: Locks, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    one = lock(tmp_path / "r.json")
    assert one.acquire() is None
    assert not one.held
    assert one.note is not None
    assert os.strerror(code) in one.note


@pytest.mark.requirement("file.lock")
def test_in_a_folder_that_cannot_be_written_the_data_file_is_locked(
    tmp_path: Path, lock: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    real = os.open

    def refuse(name: Any, flags: int, *args: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(name, flags, *args)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "access", lambda *_: False)
    alone = lock(path)
    assert alone.acquire() is None
    assert alone.note is not None
    path.write_bytes(b"[]")
    assert lock(path).acquire() is None
    assert lock(path).acquire() == "another process"
    assert path.read_bytes() == b"[]"


@pytest.mark.requirement("file.lock")
@pytest.mark.parametrize("there", [False, True])
def test_a_link_in_the_lock_files_place_is_replaced(
    tmp_path: Path, lock: Locks, there: bool
) -> None:
    path, elsewhere = tmp_path / "r.json", tmp_path / "elsewhere"
    path.write_bytes(b"[]")
    if there:
        elsewhere.write_bytes(b"kept")
    (tmp_path / ".r.json.lock").symlink_to("elsewhere")
    first = lock(path)
    assert first.acquire() is None
    assert (first.held, first.note) == (True, None)
    path.rename(tmp_path / "before")  # as a save does
    path.write_bytes(b"[]")
    assert lock(path).acquire() == f"process {os.getpid()}"
    assert first.stands
    assert elsewhere.exists() is there
    assert not there or elsewhere.read_bytes() == b"kept"


@pytest.mark.requirement("file.lock")
@pytest.mark.parametrize("removable", [False, True])
def test_a_lock_file_that_may_not_be_opened_is_replaced_or_said(
    tmp_path: Path, lock: Locks, monkeypatch: pytest.MonkeyPatch, removable: bool
) -> None:
    path, beside = tmp_path / "r.json", tmp_path / ".r.json.lock"
    path.write_bytes(b"[]")
    beside.touch(0o600)
    theirs = beside.stat()
    real = os.open

    def refuse(name: Any, *args: Any) -> int:
        if os.path.lexists(name) and os.path.samestat(os.lstat(name), theirs):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(name, *args)

    def unlink(_name: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "open", refuse)
    if not removable:
        monkeypatch.setattr(os, "unlink", unlink)
    # It keeps the inode, so that the new file is told from the old one.
    (tmp_path / "kept").hardlink_to(beside)
    first = lock(path)
    assert first.acquire() is None
    assert first.held is removable
    if removable:
        assert lock(path).acquire() == f"process {os.getpid()}"
    else:
        # A lock on the data file would be gone with the first save, unnoticed.
        assert "would not be noticed" in first.note


@pytest.mark.requirement("file.lock")
def test_a_lock_file_can_be_locked_by_another_user_whatever_the_umask(
    tmp_path: Path, lock: Locks
) -> None:
    before = os.umask(0o077)
    try:
        assert lock(tmp_path / "r.json").acquire() is None
    finally:
        os.umask(before)
    assert (tmp_path / ".r.json.lock").stat().st_mode & 0o777 == 0o644


# --- A lock file that goes from its place --------------------------------------------------------


@pytest.mark.requirement("file.lock")
@pytest.mark.parametrize("how", ["removed", "folder removed", "replaced", "link re-pointed"])
def test_a_lock_that_has_gone_is_noticed_and_taken_anew(
    tmp_path: Path, lock: Locks, how: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path, beside = folder / "r.json", folder / ".one.json.lock"
    path.symlink_to("one.json")
    first = lock(path)
    assert first.acquire() is None
    assert first.stands
    assert first.keep() is None
    if how == "link re-pointed":
        path.unlink()
        path.symlink_to("two.json")
    elif how == "replaced":
        (folder / "new").touch()
        (folder / "new").rename(beside)
    elif how == "removed":
        beside.unlink()
    else:
        shutil.rmtree(folder)
    assert not first.stands
    assert first.keep() is None
    assert first.held
    assert first.stands
    assert lock(path).acquire() == f"process {os.getpid()}"


@pytest.mark.requirement("file.lock")
def test_a_lock_that_another_has_taken_meanwhile_is_no_longer_ours(
    tmp_path: Path, lock: Locks
) -> None:
    first, second = lock(tmp_path / "r.json"), lock(tmp_path / "r.json")
    assert first.acquire() is None
    (tmp_path / ".r.json.lock").unlink()
    assert second.acquire() is None
    assert first.keep() == f"process {os.getpid()}"
    assert not first.held
    assert second.stands


@pytest.mark.requirement("file.lock")
def test_a_lock_that_cannot_be_taken_anew_is_tried_again(
    tmp_path: Path, lock: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lock(tmp_path / "r.json")
    assert first.acquire() is None
    (tmp_path / ".r.json.lock").unlink()

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert first.keep() is None
        assert first.note is not None
        assert "No space left" in first.note
        assert not first.stands
    assert first.keep() is None
    assert first.stands
    assert first.note is None


# --- Both files together -------------------------------------------------------------------------


def pair(folder: Path, lock: Locks) -> tuple[Any, Any, list[Lock]]:
    config, reminders = folder / "c.json", folder / "r.json"
    return (
        config_file(config),
        reminders_file(reminders),
        [lock(config), lock(reminders)],
    )


@pytest.mark.requirement("file.lock", "file.lock-takeover", "field.91")
def test_the_second_server_shows_the_files_and_takes_over_later(
    tmp_path: Path, lock: Locks
) -> None:
    first, second = pair(tmp_path, lock), pair(tmp_path, lock)
    opening = open_files(*first)
    assert (opening.config, opening.reminders, opening.held_by) == (Opened(), Opened(), None)
    assert first[1].save(rows("a")) == Saved()

    opening = open_files(*second)
    assert opening.held_by == f"process {os.getpid()}"
    assert opening.reminders == Opened(rows("a"))
    assert isinstance(second[1].save(rows("b")), NotSaved)
    assert holds(tmp_path / "r.json") == rows("a")

    assert first[1].save(rows("a", "c")) == Saved()
    for one in first[2]:
        one.release()
    assert acquire_all(second[2]) is None
    opening = open_files(*second)
    assert (opening.held_by, opening.reminders) == (None, Opened(rows("a", "c")))
    assert second[1].save(rows("b")) == Saved()


@pytest.mark.requirement("file.lock")
def test_the_second_server_copies_nothing_aside(tmp_path: Path, lock: Locks) -> None:
    (tmp_path / "c.json").write_bytes(b'{"intervalSeconds":1}')
    (tmp_path / "r.json").write_bytes(b"torn")
    assert lock(tmp_path / "r.json").acquire() is None
    leftover = tmp_path / ".r.json.9999999999-1.tmp"
    leftover.write_bytes(b"")
    before = set(names(tmp_path))
    opening = open_files(*pair(tmp_path, lock))
    assert opening.config.value == Config()
    assert opening.config.trouble is not None
    assert "intervalSeconds" in opening.config.trouble.text
    assert opening.reminders.trouble is not None
    assert set(names(tmp_path)) - before <= {".c.json.lock"}
    assert copies(tmp_path / "r.json") == []


@pytest.mark.requirement("file.lock")
def test_the_second_server_says_what_it_cannot_read(tmp_path: Path, lock: Locks) -> None:
    (tmp_path / "r.json").mkdir()
    assert lock(tmp_path / "c.json").acquire() is None
    opening = open_files(*pair(tmp_path, lock))
    assert opening.config == Opened()
    assert opening.reminders.trouble is not None
    assert "could not be read (it is a folder)" in opening.reminders.trouble.text


@pytest.mark.requirement("file.same-path")
@pytest.mark.parametrize("how", ["same", "symlink", "hard link", "dotted", "missing"])
def test_one_file_under_both_names_is_refused(tmp_path: Path, how: str, lock: Locks) -> None:
    config = tmp_path / "c.json"
    reminders = tmp_path / "r.json"
    data = encode_reminders(rows("a"))
    if how != "missing":
        config.write_bytes(data)
    if how == "symlink":
        reminders.symlink_to(config)
    elif how == "hard link":
        reminders.hardlink_to(config)
    else:
        reminders = tmp_path / "x" / ".." / "c.json" if how == "dotted" else config
    before = names(tmp_path)
    files = config_file(config), reminders_file(reminders)
    opening = open_files(*files, [lock(config), lock(reminders)])
    for opened in (opening.config, opening.reminders):
        assert opened.value is None
        assert opened.trouble is not None
        assert not opened.trouble.savable
        assert "the config file and the reminders file at once" in opened.trouble.text
    assert isinstance(files[0].save(Config()), NotSaved)
    assert isinstance(files[1].save(()), NotSaved)
    assert names(tmp_path) == before
