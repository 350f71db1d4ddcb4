"""The store does with tasks what the model says, whatever is asked and whatever its clocks do."""

import contextlib
import itertools
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from mcpl_heartbeat.tasks import machine, moves, refusals
from mcpl_heartbeat.tasks.rows import Cause, Task
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure
from tests.postgres import Server
from tests.task_histories.machine import TaskDrive, TaskHistories
from tests.watch_histories.databases import shared_folder, with_clock
from tests.watch_histories.facts import Disagrees
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.test_model import DatabaseClock


def histories(tmp_path: Path) -> type[TaskHistories]:
    """Histories on SQLite, each in a folder of its own."""
    numbers = itertools.count()

    class OnSqlite(TaskHistories):
        def make(self) -> TaskDrive:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            return TaskDrive(f"sqlite:///{folder}/store.db", FileClock.make(folder / "clock"))

    return OnSqlite


def on_sqlite(tmp_path: Path, how: settings) -> None:
    run_state_machine_as_test(histories(tmp_path), settings=how)


@pytest.mark.requirement("tasks.history.store", "field.11.beating-is-never-reaped")
def test_on_sqlite(tmp_path: Path) -> None:
    on_sqlite(tmp_path, settings(max_examples=20, stateful_step_count=40))


_FIRED = moves.fired


def _nothing_checked(task: Task | None, epoch: int, now: Reading) -> Task | Failure:
    return refusals.unknown_task(now) if task is None else task


def _nobody_holds(task: Task, now: Reading) -> bool:
    return False


def _ended_when_noticed(task: Task, deadline_watched: int, now: Reading) -> tuple[Cause, int]:
    cause, at = _FIRED(task, deadline_watched, now)
    return cause, now.real if cause == "switch_fired" else at


def _all_by_the_switch(task: Task, deadline_watched: int, now: Reading) -> tuple[Cause, int]:
    return "switch_fired", _FIRED(task, deadline_watched, now)[1]


@pytest.mark.requirement("tasks.history.store")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [("check", _nothing_checked), ("is_live", _nobody_holds)],
    ids=["no fence", "no claim"],
)
def test_a_store_that_does_otherwise_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, wrong: object
) -> None:
    monkeypatch.setattr(machine, name, wrong)
    with pytest.raises((Disagrees, AssertionError)):
        on_sqlite(tmp_path, settings(max_examples=30, phases=[Phase.generate], derandomize=True))


@pytest.mark.requirement("tasks.history.store")
@pytest.mark.parametrize(
    ("window", "wrong"),
    [(29, _ended_when_noticed), (31, _all_by_the_switch)],
    ids=["ended when noticed", "lapsed and fired are one"],
)
def test_a_store_that_tells_the_end_of_a_claim_otherwise_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, wrong: object
) -> None:
    """Both come to it only where a switch fires beside a lapse, which chance seldom brings."""
    made = histories(tmp_path)

    def tell() -> None:
        history = made()
        history.create(0, 0, 30, 600, "fail", None)
        history.claim(0, 0, 1, "w1", None, "build", False)
        history.beat(0, 0, "build", window, 1)
        history.time_passes(32_000)
        history.get(0, 0, 1)
        history.teardown()

    tell()
    monkeypatch.setattr(moves, "fired", wrong)
    with pytest.raises(Disagrees):
        tell()


@pytest.mark.requirement("tasks.history.store")
def test_on_postgresql(postgres_server: Server) -> None:
    class OnPostgresql(TaskHistories):
        def make(self) -> TaskDrive:
            self.stack = contextlib.ExitStack()
            folder = self.stack.enter_context(shared_folder())
            clock = DatabaseClock.make(folder / "clock")
            return TaskDrive(self.stack.enter_context(with_clock(postgres_server, clock)), clock)

        def teardown(self) -> None:
            with self.stack:
                super().teardown()

    # To shrink a failure here takes very long; what SQLite has in common with it is shrunk there.
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    run_state_machine_as_test(
        OnPostgresql, settings=settings(max_examples=5, stateful_step_count=40, phases=phases)
    )
