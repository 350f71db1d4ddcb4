"""What issue 5 calls done: workers that are killed and paused drain all tasks, each ends once.

They are those of ``recipes/tasks.md``, started as it says. Only the server's clock is not the
machine's, so that nobody waits for a lease to end; ``python -m tests.task_histories.done`` does
the same with real ones.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.postgres import Server
from tests.task_histories.crew import PATIENCE_S, WORKER
from tests.task_histories.done import crew
from tests.watch_histories.databases import shared_folder

TASKS, WORKERS, EVERY = 80, 4, 5
PAGE = (WORKER.parent / "tasks.md").read_text("utf-8")


def drained(postgres: Server | None) -> tuple[Counter[str], list[tuple[str, int, str, str]]]:
    """What happened to the workers, and the audit."""
    with shared_folder() as folder, crew(folder, postgres, 0.04, quick=True) as hands:
        hands.begin(TASKS, WORKERS)
        hands.drain(TASKS, EVERY)
        return hands.done, hands.audit(TASKS)


def holds(happened: Counter[str], epochs: list[tuple[str, int, str, str]]) -> None:
    """Every task ended once, under its last epoch, and the audit has no hole."""
    assert happened["kill_one"] >= 1
    assert happened["pause_one"] >= 1
    by_task: dict[str, list[tuple[int, str]]] = {}
    for id, epoch, _, end in epochs:
        by_task.setdefault(id, []).append((epoch, end))
    assert len(by_task) == TASKS
    for held in by_task.values():
        assert [epoch for epoch, _ in held] == list(range(2, len(held) + 2))
        *lost, last = [end for _, end in held]
        assert last == "submitted"
        assert set(lost) <= {"lapsed"}
    lapsed = sum(end == "lapsed" for *_, end in epochs)
    assert lapsed >= happened["kill_one"] + happened["pause_one"]


@pytest.mark.requirement("tasks.done", "field.4.no-stealing-back")
def test_killed_and_paused_workers_drain_all_tasks_and_each_ends_once() -> None:
    holds(*drained(None))


@pytest.mark.requirement("tasks.done")
def test_so_they_do_with_two_servers_on_postgresql(postgres_server: Server) -> None:
    holds(*drained(postgres_server))


@pytest.mark.requirement("tasks.done")
def test_the_page_can_be_followed() -> None:
    begin, audit = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    serve, *lines = begin.splitlines()
    assert serve.startswith("python3 start.py serve --listen 127.0.0.1:8765")
    script = "\n".join([*lines, "wait", audit])
    assert "--create 1000 " in script
    with shared_folder() as folder, crew(folder, None, 0, quick=True) as hands:
        script = script.replace("--create 1000 ", "--create 8 ")
        script = script.replace("http://127.0.0.1:8765", hands.urls[0])
        script = script.replace("python3 recipes/", f"{sys.executable} {WORKER.parent}/")
        done = subprocess.run(
            ["sh", "-euc", script],
            env={"PATH": "/usr/bin:/bin"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    assert "8 tasks made, 0 were there\n" in done.stdout
    assert done.stdout.count(" is done, epoch 2") == 8
    shown = PAGE[PAGE.index("…\n1000 submitted") :].splitlines()[1:3]
    assert done.stdout.splitlines()[-2:] == [shown[0].replace("1000", "8"), shown[1]]


@pytest.mark.requirement("tasks.done")
def test_the_audit_sees_two_holders(tmp_path: Path) -> None:
    """What the script's audit finds wrong, it says, with status 1."""
    import sqlite3

    with shared_folder() as folder, crew(folder, None, 0, quick=True) as hands:
        hands.begin(2, 1)
        hands.drain(2, 2)
        hands.audit(2)
        with sqlite3.connect(folder / "store.db") as conn:
            conn.execute(
                "INSERT INTO task_epochs "
                "(task, epoch, namespace, agent_id, claimed_at, beats, ended_at, cause) "
                "SELECT task, 3, namespace, 'other', claimed_at, 0, ended_at, cause "
                "FROM task_epochs"
            )
        said = hands.run("--audit", status=1)
    assert "two holders" in said or "submitted 2 times" in said
