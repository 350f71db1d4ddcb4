"""The store does what the model says, whatever is asked of it and whatever its clocks do."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.watch_histories.drive import Drive
from tests.watch_histories.machine import Histories


@pytest.mark.requirement(
    "watch.switch.model", "watch.lease.model", "watch.mail.model", "watch.gap.model"
)
def test_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> None:
    class OnSqlite(Histories):
        def make(self) -> Drive:
            folder: Path = tmp_path_factory.mktemp("history")
            return Drive(f"sqlite:///{folder}/store.db")

    run_state_machine_as_test(OnSqlite, settings=settings(max_examples=40, stateful_step_count=40))
