"""A rig for each kind of database there is."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.operations.rig import Rig


@pytest.fixture(params=["sqlite", "postgresql"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    with contextlib.ExitStack() as stack:
        url = f"sqlite:///{tmp_path}/store.db"
        if request.param == "postgresql":
            url = stack.enter_context(request.getfixturevalue("postgres_server").used_again())
        yield stack.enter_context(Rig(url))


@pytest.fixture
def sqlite_rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(f"sqlite:///{tmp_path}/sqlite.db") as made:
        yield made


@pytest.fixture
def other_rig(tmp_path: Path) -> Iterator[Rig]:
    """A second one, on SQLite whatever the first is on, to compare with."""
    with Rig(f"sqlite:///{tmp_path}/other.db") as made:
        yield made
