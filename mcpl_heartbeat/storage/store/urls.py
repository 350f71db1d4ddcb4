"""Where a store lies: the URLs that are taken, the default one, and what has to be installed.

Nothing of SQLAlchemy is imported here, so that a missing extra can be named.
"""

import importlib.util

import msgspec

from mcpl_heartbeat.storage.store.ports import StoreError

SQLITE, POSTGRESQL = "sqlite:///", "postgresql+psycopg://"
RULE = (
    "a store is named by sqlite:////absolute/path/to/store.db or by "
    "postgresql+psycopg://user:password@host/database"
)


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
    """Weigh a store's URL. Raises ``StoreError`` with the rule that it breaks."""
    if url.startswith(SQLITE):
        path = url[len(SQLITE) :]
        if not path.startswith("/"):
            raise StoreError(
                f"{url} names a file without its whole path; {RULE} (four slashes: three of the "
                "URL, and the one that an absolute path begins with)"
            )
        if "?" in path or "\0" in path or path.endswith("/"):
            raise StoreError(f"{url} is no plain path of a file; {RULE}")
        return Place(url, path)
    if url.startswith(POSTGRESQL):
        return Place(url, None)
    scheme = url.partition(":")[0] if ":" in url else url
    raise StoreError(f"a URL that begins with {scheme[:40]!r} is not taken; {RULE}")


def default_url() -> str:
    """The store in the platform's data folder; ``StoreError`` without the extra ``serve``."""
    _need("platformdirs", "serve")
    import platformdirs  # noqa: PLC0415

    return f"{SQLITE}{platformdirs.user_data_dir('mcpl-heartbeat', appauthor=False)}/store.db"


def need_extras(place: Place) -> None:
    """Raise ``StoreError`` naming the command to install what is missing for ``place``."""
    _need("sqlalchemy", "serve")
    _need("alembic", "serve")
    if place.path is None:
        _need("psycopg", "serve,postgres")


def _need(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise StoreError(
            f"the store needs the Python package {module}, which is not installed: "
            f"pip install 'mcpl-heartbeat[{extra}]'"
        )
