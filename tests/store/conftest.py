"""Stores to test with, on both kinds of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url", "store_url"]


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh store: with its tables on PostgreSQL, not made yet on SQLite."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
    else:
        yield request.getfixturevalue("postgres_url")
