"""``mcpl-heartbeat`` on a clock in a file: ``clocked.py FILE serve …``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcpl_heartbeat.cli import main
from mcpl_heartbeat.storage.store import store
from tests.watch_histories.fileclock import FileClock

if __name__ == "__main__":
    clock = FileClock(sys.argv.pop(1))
    store.HostClock = lambda: clock
    main()
