"""A disk that fills or fails at any moment costs calls, and never a half of anything."""

import contextlib
import itertools
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy.exc import SQLAlchemyError

from mcpl_heartbeat.storage.store.transactions import Transactions
from tests.task_histories.disk import FailingDisk, FailingDrive
from tests.task_histories.machine import TaskDrive, TaskHistories
from tests.watch_histories.facts import Disagrees
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.machine import Histories


class _TaskDrive(FailingDrive, TaskDrive):
    pass


class _OfTasks(FailingDisk, TaskHistories):
    pass


class _OfTheWatch(FailingDisk, Histories):
    pass


KINDS = {"tasks": (_OfTasks, _TaskDrive), "watch": (_OfTheWatch, FailingDrive)}


def histories(kind: str, tmp_path: Path, drives: list[FailingDrive]) -> type[Any]:
    """Histories on a disk that fails, each in a folder of its own."""
    numbers = itertools.count()
    rules, drive = KINDS[kind]

    class OnAFailingDisk(rules):  # type: ignore[misc, valid-type]
        def make(self) -> FailingDrive:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            clock = FileClock.make(folder / "clock")
            drives.append(drive(f"sqlite:///{folder}/store.db", clock))
            return drives[-1]

    return OnAFailingDisk


@pytest.mark.requirement("tasks.history.disk")
@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_is_refused_leaves_nothing_and_one_that_is_not_is_kept(
    tmp_path: Path, kind: str
) -> None:
    drives: list[FailingDrive] = []
    run_state_machine_as_test(
        histories(kind, tmp_path, drives),
        settings=settings(max_examples=10, stateful_step_count=40),
    )
    # When it was full is not counted.
    assert sum(drive.disk.strikes for drive in drives) > 10


def _never_refused(_: Transactions, conn: sa.Connection) -> None:
    with contextlib.suppress(SQLAlchemyError):
        conn.commit()
    conn.rollback()


@pytest.mark.requirement("tasks.history.disk")
def test_a_store_that_says_done_whatever_the_disk_says_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = histories("tasks", tmp_path, [])

    def tell() -> None:
        history = made()
        history.create(0, 0, 30, 600, "fail", None)
        history.drive.disk.plan([("commit", 0)])
        history.claim(0, 0, 1, "w1", None, None, False)
        history.get(0, 0, 1)
        history.teardown()

    tell()
    monkeypatch.setattr(Transactions, "_commit", _never_refused)
    with pytest.raises(Disagrees):
        tell()
