"""A process that is all shell and no server: ``python -m tests.shell.fake_server``.

With the argument ``slow`` its saves take a minute.
"""

import sys

from mcpl_heartbeat.shell import process
from mcpl_heartbeat.shell.environment import Environment
from tests.shell.fakes import FakeCore, FakeFiles


def parts(found: Environment) -> process.Parts:
    files = FakeFiles()
    if "slow" in sys.argv:
        files.gate.clear()
    return process.Parts(FakeCore(), files)


if __name__ == "__main__":
    sys.exit(process.run(parts))
