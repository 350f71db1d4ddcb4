"""Every system call of a save or a copy fails in turn; what is on disk stays whole, old or new."""

import errno
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpl_heartbeat.actions import Changed, NotSaved, Opened, Saved
from mcpl_heartbeat.wake.files import encode_reminders
from tests.storage.support import copies, holds, names, reminders_file, rows

CALLS = [
    "access", "close", "fchmod", "fstat", "fsync", "listdir", "lstat", "mkdir", "open", "replace",
    "stat", "unlink", "write",
]  # fmt: skip
FAULTS = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES]


@contextmanager
def failing(name: str, number: int, code: int) -> Iterator[list[int]]:
    """``os.<name>`` raises at its call ``number``; the list counts the calls."""
    real = getattr(os, name)
    calls: list[int] = []

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) != number:
            return real(*args, **kwargs)
        if name == "close":
            real(*args, **kwargs)
        raise OSError(code, os.strerror(code))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, name, wrapped)
        yield calls


@pytest.mark.requirement("file.disk-full", "file.atomic", "file.no-temp-left")
@pytest.mark.parametrize("code", FAULTS, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", CALLS)
def test_a_save_that_fails_anywhere_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, name: str, code: int
) -> None:
    for number in itertools.count(1):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "r.json"
        path.write_bytes(encode_reminders(rows("old")))
        path.chmod(0o640)
        file = reminders_file(path)
        file.open()
        with failing(name, number, code) as calls:
            outcome = file.save(rows("new"))
        found = holds(path)
        if isinstance(outcome, Saved):
            assert found == rows("new")
        else:
            assert isinstance(outcome, NotSaved)
            assert os.strerror(code) in outcome.reason
            assert found in (rows("old"), rows("new"))
        assert names(folder) == ["r.json"]
        again = file.save(rows("newer"))
        if isinstance(outcome, NotSaved) and outcome.trouble is not None:
            assert again == outcome
        else:
            assert again == Saved()
        if len(calls) < number:
            return


@pytest.mark.requirement("seed.file.copy-fails", "seed.file.copy-aside")
@pytest.mark.parametrize("code", FAULTS, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("data", [b"torn", b"[1]"], ids=["torn", "in part"])
def test_a_copy_that_fails_anywhere_leaves_the_file_alone(
    tmp_path: Path, name: str, code: int, data: bytes
) -> None:
    for number in itertools.count(1):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "r.json"
        path.write_bytes(data)
        file = reminders_file(path)
        with failing(name, number, code) as calls:
            opened = file.open()
        assert opened.trouble is not None
        assert path.read_bytes() == data
        if opened.trouble.savable:
            assert [copy.read_bytes() for copy in copies(path)] == [data]
        else:
            assert opened.value is None
            assert isinstance(file.save(rows("a")), NotSaved)
            assert path.read_bytes() == data
        assert [entry for entry in names(folder) if entry.endswith(".tmp")] == []
        if len(calls) < number:
            return


@pytest.mark.requirement("file.no-temp-left")
def test_a_temp_file_that_could_not_be_removed_goes_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    file = reminders_file(path)
    file.open()
    with failing("fsync", 1, errno.EIO), failing("unlink", 1, errno.EIO):
        assert file.save(rows("a")) == NotSaved("Input/output error")
    assert len(names(tmp_path)) == 1
    assert file.open() == Opened()
    assert names(tmp_path) == []


@pytest.mark.requirement("file.atomic")
@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EACCES])
def test_a_folder_that_cannot_be_synced_is_let_off(tmp_path: Path, code: int) -> None:
    file = reminders_file(tmp_path / "r.json")
    file.open()
    with failing("fsync", 2, code):
        assert file.save(rows("a")) == Saved()


@pytest.mark.requirement("file.said-means-done")
def test_a_folder_whose_sync_fails_is_no_save_and_no_change_by_others(tmp_path: Path) -> None:
    file = reminders_file(tmp_path / "r.json")
    file.open()
    with failing("fsync", 2, errno.EIO):
        assert file.save(rows("a")) == NotSaved("Input/output error")
    assert file.save(rows("a")) == Saved()


@pytest.mark.requirement("file.mode")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
def test_an_owner_that_cannot_be_kept_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"[]")
    os.chown(path, 4711, 4712)
    file = reminders_file(path)
    file.open()
    with failing("fchown", 1, errno.EPERM):
        assert file.save(rows("a")) == Saved()
    assert path.stat().st_uid == os.geteuid()


@pytest.mark.requirement("file.atomic")
def test_short_writes_are_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    file = reminders_file(tmp_path / "r.json")
    file.open()
    assert file.save(rows("a", "b")) == Saved()
    assert holds(tmp_path / "r.json") == rows("a", "b")


FULL = """
import resource, sys
from tests.storage.support import reminders_file, rows

file = reminders_file(sys.argv[1])
file.open()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
print(file.save(rows(*map(str, range(1000)))).reason)
print(type(file.save(rows("small"))).__name__)
"""


@pytest.mark.requirement("file.disk-full", "file.no-temp-left")
def test_a_file_that_the_system_will_not_let_grow_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(encode_reminders(rows("old")))
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == [os.strerror(errno.EFBIG), "Saved", ""]
    assert holds(path) == rows("small")
    assert names(tmp_path) == ["r.json"]


@pytest.mark.requirement("file.changed-merge")
def test_a_fault_while_a_change_is_read_never_overwrites_it(tmp_path: Path) -> None:
    for name, number in itertools.product(["stat", "open", "fstat"], range(1, 6)):
        folder = tmp_path / f"{name}{number}"
        folder.mkdir()
        path = folder / "r.json"
        file = reminders_file(path)
        file.open()
        file.save(rows("a"))
        path.write_bytes(encode_reminders(rows("hand")))
        with failing(name, number, errno.EIO):
            outcome = file.save(rows("b"))
        assert isinstance(outcome, Changed | NotSaved)
        assert holds(path) == rows("hand")
