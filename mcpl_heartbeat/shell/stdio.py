"""``mcpl-heartbeat --stdio``: the wake server on the standard streams, and its store if any."""

import os

from mcpl_heartbeat.session import Session
from mcpl_heartbeat.shell import process
from mcpl_heartbeat.shell.environment import Environment
from mcpl_heartbeat.shell.files import WakeFiles
from mcpl_heartbeat.shell.ports import Watching
from mcpl_heartbeat.wings import Annex


def run() -> int:
    """Serve until the host is gone; the exit status is as ``process.run`` gives it."""
    return process.run(_parts)


def _parts(found: Environment) -> process.Parts:
    token = os.urandom(8).hex()
    annexes, watching = _with_store(found, token)
    session = Session(zone=found.zone, token=token, random_id=_random_id, annexes=annexes)
    return process.Parts(session, WakeFiles(found.config_file, found.reminders_file), watching)


def _with_store(found: Environment, token: str) -> tuple[tuple[Annex, ...], Watching | None]:
    if found.store is None:
        return (), None
    # A host waits for the start, so what only a store needs is imported only for one.
    from mcpl_heartbeat.shell import watching  # noqa: PLC0415
    from mcpl_heartbeat.tasks.wing import TASKS_WING  # noqa: PLC0415
    from mcpl_heartbeat.watch.wing import WATCH_WING  # noqa: PLC0415

    return (WATCH_WING, TASKS_WING), watching.on(found, token)


def _random_id() -> str:
    return os.urandom(4).hex()
