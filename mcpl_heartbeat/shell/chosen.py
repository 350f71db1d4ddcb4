"""Which store a command works on: ``--store``, else ``HEARTBEAT_STORE``, else the default one."""

import contextlib
from collections.abc import Iterator, Mapping

from mcpl_heartbeat.shell.environment import STORE
from mcpl_heartbeat.storage.store import urls
from mcpl_heartbeat.storage.store.ports import StoreError

OPTION = "--store"


def store(option: str | None, environ: Mapping[str, str]) -> urls.Place:
    """Weigh the URL that was chosen. Raises ``StoreError`` saying where it came from.

    ``option`` is ``--store``'s, ``None`` without one. An empty one is no choice of another store:
    it is what a shell makes of a variable that nobody set.
    """
    if option is not None:
        if not option.strip():
            raise StoreError(
                f"{OPTION} is empty: give a URL, or leave it out for the store of {STORE} or the "
                "default one"
            )
        with named(OPTION):
            return urls.read(option)
    if url := environ.get(STORE, "").strip():
        with named(STORE):
            return urls.read(url)
    return urls.read(urls.default_url())


@contextlib.contextmanager
def named(source: str) -> Iterator[None]:
    """Say of what is found wrong with a URL that it came from ``source``."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{source}: {error}") from error
