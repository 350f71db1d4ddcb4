"""``mcpl-heartbeat store upgrade``: bring the store's tables to this version of the program."""

import os
import sys

from mcpl_heartbeat.shell import chosen
from mcpl_heartbeat.storage.store import urls
from mcpl_heartbeat.storage.store.ports import StoreError


def run(url: str | None) -> int:
    """Upgrade the store at ``url``, else at ``HEARTBEAT_STORE``, else the default one.

    Says from which revision to which; the exit status: 0, or 1 when it could not be done. No file
    is made: one whose name was mistyped would be brought up to date, and the store left as it is.
    """
    try:
        place = chosen.store(url, os.environ)
        urls.need_extras(place)
        from mcpl_heartbeat.storage.store import migrate  # noqa: PLC0415 - of the extra "serve"

        before, after = migrate.upgrade(place.url, anew=False)
    except StoreError as error:
        print(f"mcpl-heartbeat: {error}.", file=sys.stderr)
        return 1
    if before == after:
        print(f"{place.shown} is up to date already (revision {after}).")
    elif before is None:
        print(f"{place.shown} was empty and is now at revision {after}.")
    else:
        print(f"{place.shown} was brought from revision {before} to {after}.")
    return 0
