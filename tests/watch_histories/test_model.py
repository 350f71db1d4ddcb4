"""The store does what the model says, whatever is asked of it and whatever its clocks do."""

import contextlib
import itertools
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.postgres import Server
from tests.watch_histories.databases import shared_folder, with_clock
from tests.watch_histories.drive import Drive
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.machine import Histories


@pytest.mark.requirement(
    "watch.switch.model", "watch.lease.model", "watch.mail.model", "watch.gap.model"
)
def test_on_sqlite(tmp_path: Path) -> None:
    numbers = itertools.count()

    class OnSqlite(Histories):
        def make(self) -> Drive:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            return Drive(f"sqlite:///{folder}/store.db", FileClock.make(folder / "clock"))

    run_state_machine_as_test(OnSqlite, settings=settings(max_examples=15, stateful_step_count=40))


@pytest.mark.requirement(
    "watch.switch.model", "watch.lease.model", "watch.mail.model", "watch.gap.model"
)
def test_on_postgresql(postgres_server: Server) -> None:
    class OnPostgresql(Histories):
        def make(self) -> Drive:
            self.stack = contextlib.ExitStack()
            folder = self.stack.enter_context(shared_folder())
            clock = DatabaseClock.make(folder / "clock")
            return Drive(self.stack.enter_context(with_clock(postgres_server, clock)), clock)

        def teardown(self) -> None:
            with self.stack:
                super().teardown()

    # To shrink a failure here takes very long; what SQLite has in common with it is shrunk there.
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    run_state_machine_as_test(
        OnPostgresql, settings=settings(max_examples=4, stateful_step_count=40, phases=phases)
    )


class DatabaseClock(FileClock):
    """The one that people set is the database's. A step under 2 s is time like any other."""

    def set(self, wall: int | None = None, database: int | None = None) -> None:
        super().set(database=wall if wall is not None and abs(wall) > 2_000 else 0)
