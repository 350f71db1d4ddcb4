"""A rig for each kind of database there is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.operations.rig import Rig


@pytest.fixture
def rig(store_url: str) -> Iterator[Rig]:
    with Rig(store_url) as made:
        yield made


@pytest.fixture
def sqlite_rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(f"sqlite:///{tmp_path}/sqlite.db") as made:
        yield made


@pytest.fixture
def other_rig(tmp_path: Path) -> Iterator[Rig]:
    """A second one, on SQLite whatever the first is on, to compare with."""
    with Rig(f"sqlite:///{tmp_path}/other.db") as made:
        yield made
