"""Bringing a store's tables up to date.

An empty store and an older SQLite file are brought up to date by whoever opens them. A PostgreSQL
store that is behind waits for ``mcpl-heartbeat store upgrade``, since other servers may still run
the older program on it. Alembic takes the steps, and is imported only when there are some to take.
"""

import logging
from pathlib import Path

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import files, schema, urls
from mcpl_heartbeat.storage.store.ports import NeedsUpgrade, StoreError
from mcpl_heartbeat.storage.store.urls import Place

REVISIONS = ("0001", "0002", "0003")
"""Every revision of the tables, oldest first."""
STEPS = Path(__file__).parent / "migrations"
PATIENCE_MS = 60_000
"""How long to wait on PostgreSQL for a writer, or another upgrade, to be done."""

_VERSION = sa.table("alembic_version", sa.column("version_num", sa.Text))


def bring_up(conn: sa.Connection, place: Place, *, anew: bool = True) -> None:
    """Make the tables what this program expects, or raise ``StoreError`` saying why not.

    ``anew``: an empty store is filled. ``conn`` has no transaction open, and has none afterwards.
    """
    with conn.begin():
        found = _revision(conn)
    if found == REVISIONS[-1]:
        return
    _weigh(found)
    if found is None and not anew:
        raise StoreError(
            "it has been emptied, and what it held is gone: put that back, or start the servers "
            "again to begin anew"
        )
    if found is not None and place.path is None:
        raise NeedsUpgrade(
            f"the store's tables are of revision {found} and this program needs {REVISIONS[-1]}; "
            f"stop the older servers and run: mcpl-heartbeat store upgrade --store {place.shown}"
        )
    _take_steps(conn)


def upgrade(url: str, *, anew: bool = True) -> tuple[str | None, str]:
    """Bring the store at ``url`` up to date, and say from which revision to which.

    ``None``: it was empty. ``anew``: a file that is not there is made. Raises ``StoreError``.
    """
    place = urls.read(url)
    urls.need_extras(place)
    try:
        if place.path is not None:
            if not anew and not Path(place.path).exists():
                raise StoreError(f"there is no store at {place.shown}; serve makes one")
            engines.make_file(place.path)
            files.weigh(place.path)
        with engines.make_engine(place).connect() as conn:
            return _take_steps(conn), REVISIONS[-1]
    except StoreError:
        raise
    except (sa.exc.SQLAlchemyError, OSError) as error:
        raise StoreError(engines.judge(error).text) from error


def _take_steps(conn: sa.Connection) -> str | None:
    """Upgrade in one transaction, and give the revision that was there before."""
    # Its lines about itself are of no use in a server's log, and it begins with them on import.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic import command  # noqa: PLC0415 - it takes long, and is seldom needed
    from alembic.config import Config  # noqa: PLC0415

    engines.begin_writing(conn, PATIENCE_MS)
    try:
        # Another process may have been faster.
        found = _revision(conn)
        _weigh(found)
        if found != REVISIONS[-1]:
            config = Config()
            config.set_main_option("script_location", str(STEPS).replace("%", "%%"))
            config.attributes["connection"] = conn
            command.upgrade(config, REVISIONS[-1])
        conn.commit()
    finally:
        if conn.in_transaction():
            conn.rollback()
    return found


def _weigh(found: str | None) -> None:
    if found is not None and found not in REVISIONS:
        raise StoreError(
            f"the store's tables are of revision {found}, which is newer than this program: "
            "install a newer mcpl-heartbeat"
        )


def _revision(conn: sa.Connection) -> str | None:
    """Read which revision the tables are of; ``None`` for an empty store."""
    tables = set(sa.inspect(conn).get_table_names())
    if _VERSION.name in tables:
        versions = conn.execute(sa.select(_VERSION.c.version_num)).scalars().all()
        if len(versions) == 1:
            return str(versions[0])
        if versions:
            raise StoreError("the store's revision cannot be told: it names several")
    if taken := sorted(tables & set(schema.metadata.tables)):
        raise StoreError(
            f"the database holds tables that are not this program's ({', '.join(taken)}): "
            "give the store a database of its own"
        )
    return None
