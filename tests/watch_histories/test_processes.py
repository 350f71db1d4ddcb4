"""Real processes on one store: killed anywhere, stopped, put to sleep, and still all fits."""

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
        [sys.executable, "-m", "tests.watch_histories", *map(str, arguments)],
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


@pytest.mark.requirement(
    "watch.store.histories",
    "watch.switch.once",
    "watch.switch.never-early",
    "watch.lease.one-holder",
)
@pytest.mark.parametrize("workers", [2, 8])
def test_processes_on_sqlite(workers: int) -> None:
    said = histories("--seed", SEED + workers, "--workers", workers, "--acts", 250)
    assert "fires" in said


@pytest.mark.requirement("watch.store.histories", "watch.switch.once", "watch.lease.one-holder")
def test_processes_on_postgresql(postgres_server: Server) -> None:
    # One of the two has its processes killed, the other its database's clock set.
    options = ("--postgresql", "--seed", SEED, "--count", 2, "--acts", 150, "--workers", 3)
    said = histories(*options, **postgres_server.environ)
    assert "'set_database'" in said
    assert "'killed'" in said


@pytest.mark.requirement("watch.store.kill-9", "field.34.alert-never-lost")
@pytest.mark.parametrize(
    ("call", "every"),
    [
        ("sweep", 3),
        ("late beat", 5),
        ("beats", 7),
        ("disarm", 7),
        ("take over", 7),
        ("lease", 7),
        ("mail", 11),
        ("checkpoint", 7),
        ("open", 7),
        ("create", 24),
    ],
)
def test_kill_9_at_any_point_leaves_all_or_nothing(call: str, every: int) -> None:
    said = histories("--points", call, "--every", every, "--seed", SEED)
    assert int(said.split()[-2]) >= 3


@pytest.mark.requirement("watch.store.kill-9")
def test_kill_9_on_postgresql(postgres_server: Server) -> None:
    options = ("--postgresql", "--points", "sweep", "--every", 8, "--seed", SEED)
    said = histories(*options, **postgres_server.environ)
    assert int(said.split()[-2]) >= 3
