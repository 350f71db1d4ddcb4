"""Servers that come to a SQLite store at the same time."""

import fcntl
import os
from pathlib import Path

import pytest

from mcpl_heartbeat.storage.store import urls, watchers
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.watchers import FileWatch


@pytest.mark.requirement("watch.gap.starting")
def test_whoever_comes_while_another_starts_waits_for_it_and_not_for_ever(tmp_path: Path) -> None:
    place = urls.read(f"sqlite:///{tmp_path}/store.db")
    waited: list[float] = []
    first, second = FileWatch(place), FileWatch(place, waited.append)
    assert first.join() is True
    with pytest.raises(StoreError, match="another server is starting on it"):
        second.join()
    assert sum(waited) == pytest.approx(watchers.PATIENCE_S)
    first.settle()
    assert second.join() is False
    first.leave()
    second.leave()
    assert FileWatch(place).join() is True


@pytest.mark.requirement("watch.gap.starting")
@pytest.mark.parametrize("patience", [3, None])
def test_one_that_is_overtaken_as_it_lets_others_in_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: int | None
) -> None:
    """A lock is not made a shared one in one step: another can get it in between."""
    other = os.open(tmp_path / "store.db.watch", os.O_RDWR | os.O_CREAT)
    plain = fcntl.flock
    waited: list[float] = []

    def overtake(file: int, how: int) -> None:
        if how & fcntl.LOCK_SH and not waited:
            plain(file, fcntl.LOCK_UN)
            plain(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        plain(file, how)

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == patience:
            plain(other, fcntl.LOCK_SH)

    watch = FileWatch(urls.read(f"sqlite:///{tmp_path}/store.db"), pause)
    assert watch.join() is True
    monkeypatch.setattr(watchers.fcntl, "flock", overtake)
    if patience is None:
        with pytest.raises(StoreError, match="another server is starting on it"):
            watch.settle()
        assert sum(waited) == pytest.approx(watchers.PATIENCE_S)
    else:
        watch.settle()
        assert len(waited) == patience
    os.close(other)
    watch.leave()
