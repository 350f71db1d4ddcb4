"""A look at a store from outside: nothing is made, changed or brought up to date by it."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.urls import Place
from mcpl_heartbeat.watch.identity import namespace_of

_SALT = sa.select(schema.clock.c.salt)
_KNOWN = sa.select(schema.identities.c.namespace).where(
    schema.identities.c.namespace == sa.bindparam("namespace")
)


def knows(place: Place, secret: str) -> bool:
    """Say whether somebody is registered with ``secret``. Raises ``StoreError`` when unseen."""
    if place.path is not None and _is_nothing(Path(place.path)):
        return False
    try:
        with _connected(place) as conn:
            salt = conn.execute(_SALT).scalar()
            if salt is None:
                return False
            sought = {"namespace": namespace_of(bytes.fromhex(salt), secret)}
            return conn.execute(_KNOWN, sought).first() is not None
    except (SQLAlchemyError, sqlite3.Error, OSError, ValueError) as error:
        raise StoreError(engines.judge(error).text) from error


def _is_nothing(file: Path) -> bool:
    """Whether no store is there yet: one would be made."""
    try:
        return file.stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError as error:
        raise StoreError(engines.judge(error).text) from error


@contextlib.contextmanager
def _connected(place: Place) -> Iterator[sa.Connection]:
    if place.path is None:
        engine = engines.reading(engines.make_engine(place))
    else:
        file = Path(place.path)
        # Even a reader makes the files of the log, where they are not there: then it needs none.
        log = file.with_name(f"{file.name}-wal")
        how = "mode=ro" if log.exists() else "mode=ro&immutable=1"
        engine = sa.create_engine(
            "sqlite://",
            poolclass=sa.NullPool,
            creator=lambda: sqlite3.connect(f"{file.as_uri()}?{how}", uri=True, timeout=1),
            hide_parameters=True,
        )
    with engine.connect() as conn:
        yield conn
