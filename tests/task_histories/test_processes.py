"""Real processes on the tasks of one store: killed anywhere, stopped, and still all fits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import Server

ROOT = Path(__file__).parents[2]
# Another Python goes through other points.
SEED = sys.version_info.minor


def histories(*arguments: object, **environment: str) -> str:
    """Run them in a process that has no threads, since it forks; what it says of them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.task_histories", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.requirement("tasks.history.processes", "field.5.epoch-rises")
@pytest.mark.parametrize("workers", [2, 8])
def test_processes_on_sqlite(workers: int) -> None:
    said = histories("--seed", SEED + workers, "--workers", workers, "--acts", 200)
    assert "'submitted'" in said


@pytest.mark.requirement("tasks.history.processes")
def test_processes_on_postgresql(postgres_server: Server) -> None:
    # One of the two has its processes killed, the other its database's clock set.
    options = ("--postgresql", "--seed", SEED, "--count", 2, "--acts", 100)
    said = histories(*options, **postgres_server.environ)
    assert "'set_database'" in said
    assert "'killed'" in said


@pytest.mark.requirement("tasks.history.kill-9")
def test_kill_9_at_any_point_leaves_all_or_nothing() -> None:
    said = histories("--points", "all", "--every", 24, "--seed", SEED)
    assert sum(int(line.split()[-2]) for line in said.splitlines()) >= 15


@pytest.mark.requirement("tasks.history.kill-9")
def test_kill_9_on_postgresql(postgres_server: Server) -> None:
    options = ("--postgresql", "--points", "sweep", "--every", 16, "--seed", SEED)
    said = histories(*options, **postgres_server.environ)
    assert int(said.split()[-2]) >= 2
