"""A document that somebody else changes, empties, tears or removes while the server uses it."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from mcpl_heartbeat.actions import Changed, Opened, Saved
from mcpl_heartbeat.wake.files import encode_reminders
from tests.storage.support import copies, holds, names, reminders_file, rows, trouble_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reminders.json"


@pytest.mark.requirement("file.changed-merge")
@pytest.mark.parametrize("there_at_first", [True, False])
def test_what_somebody_else_wrote_is_handed_back_not_overwritten(
    path: Path, there_at_first: bool
) -> None:
    file = reminders_file(path)
    if there_at_first:
        path.write_bytes(encode_reminders(rows("a")))
    file.open()
    path.write_bytes(encode_reminders(rows("a", "hand")))
    assert file.save(rows("a", "b")) == Changed(Opened(rows("a", "hand")))
    assert holds(path) == rows("a", "hand")
    assert names(path.parent) == ["reminders.json"]
    assert file.save(rows("a", "b", "hand")) == Saved()
    assert holds(path) == rows("a", "b", "hand")
    assert file.save(rows("a")) == Saved()


@pytest.mark.requirement("file.changed-merge", "seed.file.partial-rows")
def test_a_change_that_is_usable_in_part_is_copied_aside_and_handed_back(path: Path) -> None:
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    path.write_bytes(encode_reminders(rows("a", "b")).replace(b'"id":"b"', b'"id":7'))
    outcome = file.save(rows("c"))
    assert isinstance(outcome, Changed)
    assert outcome.opened.value == rows("a")
    (copy,) = copies(path)
    assert str(copy) in trouble_of(outcome.opened).text
    assert file.save(rows("c")) == Saved()


@pytest.mark.requirement("file.changed-merge", "seed.file.copy-aside")
def test_a_change_that_is_torn_is_copied_aside_replaced_and_told(path: Path) -> None:
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    path.write_bytes(b'[{"id"')
    outcome = file.save(rows("b"))
    (copy,) = copies(path)
    assert copy.read_bytes() == b'[{"id"'
    assert isinstance(outcome, Saved)
    assert outcome.note is not None
    assert str(copy) in outcome.note
    assert holds(path) == rows("b")
    assert file.save(rows("a")) == Saved()


@pytest.mark.requirement("field.95", "file.gone")
@pytest.mark.parametrize("how", ["removed", "emptied", "blank", "folder removed"])
def test_a_file_gone_or_emptied_is_written_anew_from_memory(tmp_path: Path, how: str) -> None:
    path = tmp_path / "data" / "r.json"
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    if how == "emptied":
        path.write_bytes(b"")
    elif how == "blank":
        path.write_bytes(b"\r\n")
    else:
        path.unlink()
    if how == "folder removed":
        path.parent.rmdir()
    assert file.save(rows("a", "b")) == Saved()
    assert holds(path) == rows("a", "b")
    assert names(path.parent) == ["r.json"]


@pytest.mark.requirement("file.changed-merge")
def test_the_same_bytes_written_again_are_no_change(path: Path) -> None:
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    assert file.save(rows("b")) == Saved()


@pytest.mark.requirement("field.86", "seed.file.unreadable-left-alone")
def test_a_file_that_turns_unreadable_is_left_alone_from_then_on(path: Path) -> None:
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    path.unlink()
    path.mkdir()
    outcome = file.save(rows("b"))
    assert not trouble_of(outcome).savable
    path.rmdir()
    assert file.save(rows("b")) == outcome
    assert names(path.parent) == []


@pytest.mark.requirement("seed.file.copy-fails")
def test_a_torn_change_that_cannot_be_copied_aside_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    path.write_bytes(b"torn")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        outcome = file.save(rows("b"))
    assert not trouble_of(outcome).savable
    assert "No space left on device" in trouble_of(outcome).text
    assert file.save(rows("b")) == outcome
    assert path.read_bytes() == b"torn"
    assert names(path.parent) == ["reminders.json"]


@pytest.mark.requirement("file.changed-merge")
def test_a_change_made_while_we_write_is_seen_before_the_rename(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = reminders_file(path)
    file.open()
    file.save(rows("a"))
    fsync = os.fsync

    def late(descriptor: int) -> None:
        fsync(descriptor)
        path.write_bytes(encode_reminders(rows("hand")))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", late)
        assert file.save(rows("a", "b")) == Changed(Opened(rows("hand")))
    assert holds(path) == rows("hand")
    assert names(path.parent) == ["reminders.json"]


@pytest.mark.requirement("file.changed-merge")
@pytest.mark.parametrize("before", [b"", b'[{"id":"ha'], ids=["emptied", "half"])
def test_somebody_in_the_middle_of_writing_is_waited_for(path: Path, before: bytes) -> None:
    def finish(_seconds: float) -> None:
        path.write_bytes(encode_reminders(rows("hand")))

    file = reminders_file(path, finish)
    file.open()
    file.save(rows("a"))
    path.write_bytes(before)
    assert file.save(rows("b")) == Changed(Opened(rows("hand")))
    assert copies(path) == []
