"""Stores to test with, on both kinds of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import postgres_server, postgres_url
from tests.store.world import World

__all__ = ["postgres_server", "postgres_url", "store_url", "world"]


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh store: with its tables on PostgreSQL, not made yet on SQLite."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
    else:
        yield request.getfixturevalue("postgres_url")


@pytest.fixture
def world(store_url: str) -> Iterator[World]:
    """The same, with its clocks in the test's hand."""
    made = World(store_url)
    try:
        yield made
    finally:
        made.close()
