"""``mcpl-heartbeat --stdio``: the wake server on the standard streams."""

import os

from mcpl_heartbeat.session import Session
from mcpl_heartbeat.shell import process
from mcpl_heartbeat.shell.environment import Environment
from mcpl_heartbeat.shell.files import WakeFiles
from mcpl_heartbeat.shell.ports import Core, Files


def run() -> int:
    """Serve until the host is gone; the exit status is as ``process.run`` gives it."""
    return process.run(_parts)


def _parts(found: Environment) -> tuple[Core, Files]:
    session = Session(zone=found.zone, token=os.urandom(8).hex(), random_id=_random_id)
    return session, WakeFiles(found.config_file, found.reminders_file)


def _random_id() -> str:
    return os.urandom(4).hex()
