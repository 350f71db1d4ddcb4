"""The two files and their locks as one server after another has them."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpl_heartbeat.actions import Document, NotSaved, Opened, Opening, Saved
from mcpl_heartbeat.shell.files import WakeFiles
from mcpl_heartbeat.shell.ports import Taken
from mcpl_heartbeat.storage.documents import DocumentFile
from mcpl_heartbeat.wake.files import Config
from tests.storage.support import holds, names, rows

US = f"process {os.getpid()}"
Make = Callable[[], WakeFiles]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[WakeFiles] = []

    def one() -> WakeFiles:
        made.append(WakeFiles(str(tmp_path / "data/c.json"), str(tmp_path / "data/r.json")))
        return made[-1]

    yield one
    for files in made:
        leave(files)


def leave(files: WakeFiles) -> None:
    """Let go of the locks, as a process does when it ends."""
    for lock in files._locks:
        lock.release()


def lose_locks(folder: Path, how: str) -> None:
    if how == "folder":
        shutil.rmtree(folder)
    else:
        for path in folder.glob(how):
            path.unlink()


LOSSES = pytest.mark.parametrize("how", [".*.lock", ".c.json.lock", ".r.json.lock", "folder"])


@pytest.mark.requirement("file.lock")
@LOSSES
@pytest.mark.parametrize("when", ["tick", "save"])
def test_locks_that_are_gone_are_taken_anew(
    tmp_path: Path, make: Make, how: str, when: str
) -> None:
    files = make()
    assert files.undisturbed
    files.open()
    assert files.undisturbed
    lose_locks(tmp_path / "data", how)
    assert not files.undisturbed
    if when == "tick":
        assert files.check() is None
    else:
        assert files.save(Document.REMINDERS, rows("a")) == Saved()
    assert files.undisturbed
    assert make().open().held_by == US
    assert files.save(Document.REMINDERS, rows("b")) == Saved()


@pytest.mark.requirement("file.lock", "file.lock-takeover")
@pytest.mark.parametrize("how", [".*.lock", "folder"])
def test_a_server_whose_files_were_taken_saves_nothing_and_takes_over_later(
    tmp_path: Path, make: Make, how: str
) -> None:
    first, second = make(), make()
    first.open()
    assert first.save(Document.REMINDERS, rows("a")) == Saved()
    lose_locks(tmp_path / "data", how)
    assert second.open().held_by is None
    theirs = rows("b")
    second.save(Document.REMINDERS, theirs)

    assert not first.undisturbed
    outcome = first.save(Document.REMINDERS, rows("a", "c"))
    reason = f"another server ({US}) has taken these files"
    shown = Opening(Opened(), Opened(theirs), US)
    assert outcome == Taken(reason, kept=False, opening=shown)
    assert isinstance(outcome, NotSaved)
    for document in Document:
        again = first.save(document, rows("a"))
        assert (type(again), again) == (NotSaved, NotSaved(reason))
    assert holds(tmp_path / "data/r.json") == theirs
    assert first.undisturbed
    assert first.check() is None

    assert second.undisturbed
    assert second.check() is None
    assert first.take_over() is None
    leave(second)
    assert first.take_over() == Opening(Opened(), Opened(theirs))
    assert first.save(Document.REMINDERS, rows("d")) == Saved()


@pytest.mark.requirement("file.lock")
def test_a_loss_is_told_once_and_leaves_both_files_to_the_other(tmp_path: Path, make: Make) -> None:
    first, second = make(), make()
    first.open()
    (tmp_path / "data/.c.json.lock").unlink()
    # With one of the two it is not content, and lets go of it again.
    assert second.open().held_by == US
    assert first.check() is None
    assert second.take_over() is None
    lose_locks(tmp_path / "data", ".*.lock")
    assert second.take_over() is not None
    told = first.check()
    assert told is not None
    assert told.held_by == US
    assert first.check() is None
    assert not any(lock.held for lock in first._locks)


@pytest.mark.requirement("file.lock")
def test_no_take_over_while_a_save_from_before_is_on_its_way(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make(), make()
    first.open()
    real = DocumentFile.save
    taken: list[Any] = []

    def slow(document: DocumentFile, value: Any) -> Any:
        monkeypatch.setattr(DocumentFile, "save", real)
        lose_locks(tmp_path / "data", ".*.lock")
        second.open()
        taken.append(first.check())
        leave(second)
        taken.append(first.take_over())
        return real(document, value)

    monkeypatch.setattr(DocumentFile, "save", slow)
    first.save(Document.CONFIG, Config())
    assert isinstance(taken[0], Opening)
    assert taken[1] is None
    assert first.take_over() is not None


@pytest.mark.requirement("file.lock")
def test_what_cannot_be_locked_is_logged_once(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = make()
    files.open()
    lose_locks(tmp_path / "data", ".r.json.lock")
    (tmp_path / "data/.r.json.lock").symlink_to("nowhere")

    def refuse(_path: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        for _ in range(3):
            assert files.check() is None
            assert not files.undisturbed
    (said,) = caplog.messages
    assert "a second server on it would not be noticed" in said
    assert files.check() is None
    assert files.undisturbed
    assert names(tmp_path / "data") == [".c.json.lock", ".r.json.lock"]
