"""PostgreSQL databases that go by a clock in a file, as everything in these tests does."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.postgres import Server
from tests.watch_histories.fileclock import FileClock

_CLOCK = """
CREATE SCHEMA clocks;
CREATE FUNCTION clocks.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS $$
  SELECT pg_catalog.to_timestamp(
    split_part(pg_catalog.pg_read_file('{path}'), ' ', 3)::numeric / 1000
  )
$$;
"""


@contextlib.contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that the database's user can read too."""
    folder = Path(tempfile.mkdtemp(prefix="watch-history-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def with_clock(server: Server, clock: FileClock, *, empty: bool = False) -> Iterator[str]:
    """A fresh store, or an empty database, whose ``clock_timestamp()`` is read from ``clock``."""
    with server.database(empty=empty) as url:
        engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            if not conn.exec_driver_sql("SELECT current_setting('is_superuser')::bool").scalar():
                pytest.skip("the database's clock can only be replaced by a superuser")
            conn.exec_driver_sql(_CLOCK.format(path=clock.path))
            name = sa.make_url(url).database
            conn.exec_driver_sql(
                f"ALTER DATABASE {name} SET search_path = clocks, public, pg_catalog"
            )
        yield url
