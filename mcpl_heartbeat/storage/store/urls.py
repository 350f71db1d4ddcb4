"""Where a store lies: the URLs that are taken, the default one, and what has to be installed.

Nothing of SQLAlchemy is imported here, so that a missing extra can be named.
"""

import msgspec

from mcpl_heartbeat.storage.store import extras, spelling
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.storage.store.spelling import POSTGRESQL, RULE, SQLITE

__all__ = ["POSTGRESQL", "RULE", "SQLITE", "Place", "default_url", "need_extras", "read"]


class Place(msgspec.Struct, frozen=True):
    """A store's URL, weighed."""

    url: str
    path: str | None
    """The file of a SQLite store, absolute; ``None`` for PostgreSQL."""

    @property
    def shown(self) -> str:
        """The URL without a password, for the log."""
        if self.path is not None:
            return self.url
        rest = self.url[len(POSTGRESQL) :]
        user, at, host = rest.partition("@")
        name = user.partition(":")[0]
        # A password may hold "?" and "/", so the query is looked for only behind it.
        if not at or "/" in name or "?" in name:
            return POSTGRESQL + rest.partition("?")[0]
        return f"{POSTGRESQL}{name}@{host.partition('?')[0].rpartition('@')[2]}"


def read(url: str) -> Place:
    """Weigh a store's URL. Raises ``StoreError`` saying how it is written rightly."""
    url = spelling.normal(url)
    if url.startswith(SQLITE):
        path = url[len(SQLITE) :]
        unclear = "?" in path or "\0" in path or path.endswith("/") or path.startswith("/~/")
        if path.startswith("/") and not unclear:
            return Place(url, path)
    elif url.startswith(POSTGRESQL):
        return Place(url, None)
    raise StoreError(spelling.advice(url))


def default_url() -> str:
    """The store in the platform's data folder; ``StoreError`` without the extra ``serve``."""
    extras.need("platformdirs")
    import platformdirs  # noqa: PLC0415 - of the extra "serve"

    return f"{SQLITE}{platformdirs.user_data_dir('mcpl-heartbeat', appauthor=False)}/store.db"


def need_extras(place: Place) -> None:
    """Raise ``StoreError`` naming the command to install what is missing for ``place``."""
    extras.need("sqlalchemy", "alembic", *(extras.POSTGRES if place.path is None else ()))
