"""What is said of a store's URL that is not taken: how the one that was probably meant is written.

A clause tells no more of a URL than its beginning, unless it is a file's: there could be a password
in it.
"""

import os.path
import re

SQLITE, POSTGRESQL = "sqlite:///", "postgresql+psycopg://"
RULE = (
    "a store is named by sqlite:////absolute/path/to/store.db or by "
    "postgresql+psycopg://user:password@host/database"
)

_PARTS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>/*)(?P<rest>.*)", re.DOTALL)


def normal(url: str) -> str:
    """Write the beginning of a URL that is taken in lower case, as URLs may be in any."""
    for start in (SQLITE, POSTGRESQL):
        if url[: len(start)].lower() == start:
            return start + url[len(start) :]
    return url


def advice(url: str) -> str:
    """Say, as one clause, what is wrong with a URL that is not taken, and what to write."""
    if not url.strip():
        return f"it is empty; {RULE}"
    found = _PARTS.fullmatch(url)
    if found is None:
        if "@" in url or not _is_plain(url):
            return f"it is no URL; {RULE}"
        file = "/store.db" if url.endswith("/") else ""
        return f"{url} is a path; write it as a URL, {SQLITE}{_whole(url).rstrip('/')}{file}"
    scheme, slashes, rest = found["scheme"].lower(), len(found["slashes"]), found["rest"]
    if scheme.partition("+")[0] in {"sqlite", "sqlite3"}:
        return _of_sqlite(url, slashes, rest)
    if scheme.partition("+")[0] in {"postgres", "postgresql"}:
        written = url[: len(found["scheme"]) + 1 + slashes]
        return f"it begins with {written}; write {POSTGRESQL} instead, and the rest as it is"
    return f"a URL that begins with {found['scheme'][:40]!r} is not taken; {RULE}"


def _of_sqlite(url: str, slashes: int, rest: str) -> str:
    if not rest:
        return f"{url} names no file; {RULE}"
    if not _is_plain(rest):
        return f"{url} is no plain path of a file; {RULE}"
    whole = f"/{rest}" if _is_absolute(slashes, rest) else _whole(rest)
    if rest.endswith("/"):
        return f"{url} names a folder; name a file in it: {SQLITE}{whole.rstrip('/')}/store.db"
    return f"{url} must be written {SQLITE}{whole} (three slashes, then the whole path)"


def _is_absolute(slashes: int, rest: str) -> bool:
    """Whether ``rest`` was probably meant to begin at the root."""
    if slashes in {2, 3}:
        # The last of them may be the path's own, or none is.
        first, slash, _ = rest.partition("/")
        return bool(slash) and os.path.isdir(f"/{first}")  # noqa: PTH112 - Path raises for some
    return slashes > 0 and not rest.startswith("~")


def _whole(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - Path keeps ".."


def _is_plain(path: str) -> bool:
    return "?" not in path and "\0" not in path
