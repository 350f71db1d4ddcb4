"""What looks through the histories of tasks finds what is wrong with one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.task_histories.points import TaskPoints
from tests.task_histories.reckoning import TaskReckoning
from tests.watch_histories.facts import Disagrees
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.worker import Server


class Told:
    """A short history without any trouble, which can be falsified."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/store.db"
        self.points = TaskPoints(self.url, FileClock(folder / "clock"), "sweep")

    def play(self) -> None:
        """The history itself."""
        self.points.clock.make(self.folder / "clock")
        for body in (
            self.points.scene,
            self.points.heartbeat,
            self.others,
            self.points.submit,
            self.points.survive,
        ):
            server = Server(self.url, self.points.clock, self.folder / f"{body.__name__}.log")
            assert server.open()
            body(server)
            server.close()

    def others(self, server: Server) -> None:
        """Calls that are refused."""
        call, first = self.points.call, self.points.ids[0]
        call(server, "claim_agent_task", task_id=first, agent_id="late")
        call(server, "heartbeat_agent_task", task_id=first, execution_epoch=2)
        new = {"input_snapshot": {}, "output_contract": [], "lease_seconds": 30}
        made = call(server, "create_agent_task", timeout_seconds=60, **new)
        self.points.clock.advance(10)
        call(server, "list_agent_tasks", status="available")
        call(server, "create_agent_task", cancel_task_id=made["id"])

    def reckon(self) -> None:
        logs = sorted(self.folder.glob("*.log"))
        TaskReckoning(self.url, logs, self.points.history.addresses).run()

    def sql(self, statement: str) -> None:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with engine.begin() as conn:
            assert conn.exec_driver_sql(statement).rowcount
        engine.dispose()

    def log(self, change: Callable[[str, dict[str, Any]], None]) -> None:
        """Change what was written down; ``change`` is given the tool asked for, too."""
        for path in self.folder.glob("*.log"):
            tool, lines = "", []
            for text in path.read_text().splitlines():
                line = json.loads(text)
                if "what" in line:
                    tool = line["calls"][0][0] if line["calls"] else line["what"]
                change(tool, line)
                lines.append(json.dumps(line))
            path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Told(tmp_path_factory.mktemp("played"))
    made.play()
    made.reckon()
    return made.folder


@pytest.fixture
def told(played: Path, tmp_path: Path) -> Told:
    shutil.copytree(played, tmp_path, dirs_exist_ok=True)
    return Told(tmp_path)


LAST = "(SELECT max(epoch) FROM task_epochs o WHERE o.task = task_epochs.task)"


@pytest.mark.requirement("tasks.history.processes")
@pytest.mark.parametrize(
    ("falsified", "found"),
    [
        ("UPDATE tasks SET epoch = epoch + 1", "epochs of task"),
        ("DELETE FROM task_epochs WHERE epoch = 2", "epochs of task|not in the audit"),
        ("UPDATE task_epochs SET ended_at = ended_at + 90000 WHERE epoch = 2", "one holder"),
        ("UPDATE task_epochs SET ended_at = claimed_at WHERE epoch = 3", "asked for the end"),
        ("UPDATE task_epochs SET agent_id = 'nobody'", "who holds it"),
        ("UPDATE task_epochs SET beats = beats + 1 WHERE epoch = 3", "beats of"),
        (f"UPDATE task_epochs SET cause = 'lapsed' WHERE epoch < {LAST}", "handover|lapsed early"),
        (f"UPDATE task_epochs SET cause = 'released' WHERE epoch = {LAST}", "is submitted"),
        ("UPDATE tasks SET status = 'claimed' WHERE status = 'submitted'", "at the end"),
        ("UPDATE tasks SET timeout_at = timeout_at + 1000", "timeout was moved"),
        ("UPDATE task_payloads SET outputs = '{}' WHERE outputs IS NOT NULL", "asked for the end"),
        ("UPDATE task_payloads SET outputs = NULL", "outputs of"),
        ("DELETE FROM envelopes WHERE box = 'review'", "reviews"),
        ("UPDATE envelopes SET context = json_set(context, '$.task_id', 'other')", "reviews"),
        ("DELETE FROM tasks WHERE status = 'cancelled'", "a task that was lost"),
        (
            "UPDATE journal SET detail = json_remove(detail, '$.released_tasks')",
            "given back by fires",
        ),
        (
            "UPDATE task_epochs SET ended_at = ended_at + 1 WHERE cause = 'switch_fired'",
            "lost by the fire",
        ),
    ],
)
def test_a_store_that_is_wrong_is_found_out(told: Told, falsified: str, found: str) -> None:
    told.sql(falsified)
    with pytest.raises(Disagrees, match=found):
        told.reckon()


def _with(tool: str, **members: Any) -> Callable[[str, dict[str, Any]], None]:
    """Have the answers of a tool say something else."""

    def change(asked: str, line: dict[str, Any]) -> None:
        if asked == tool and "told" in line:
            line["told"][0] |= members

    return change


def _empty(asked: str, line: dict[str, Any]) -> None:
    if asked == "list_agent_tasks" and "told" in line:
        line["told"][0]["data"] = []


def _unasked(asked: str, line: dict[str, Any]) -> None:
    if asked == "claim_agent_task":
        if "what" in line:
            line["calls"][0][2]["agent_id"] = "somebody"
        else:
            line["told"] = {"unavailable": "gone"}


@pytest.mark.requirement("tasks.history.processes")
@pytest.mark.parametrize(
    ("falsified", "found"),
    [
        (
            _with("claim_agent_task", execution_epoch=2),
            "when it was called|two claims|did not have",
        ),
        (_with("heartbeat_agent_task", execution_epoch=2), "another epoch|did not have"),
        (_with("heartbeat_agent_task", code="stale_epoch"), "beats of"),
        (_with("heartbeat_agent_task", code="unavailable"), "beats of|refused for no reason"),
        (_with("submit_agent_task", code="lease_expired"), "somebody asked for the end"),
        (_with("list_agent_tasks", code="internal"), "a list"),
        (_with("create_agent_task", code="task_closed"), "somebody cancelled"),
        (_empty, "is not in"),
        (_unasked, "somebody claimed"),
    ],
)
def test_answers_that_do_not_fit_are_found_out(
    told: Told, falsified: Callable[[str, dict[str, Any]], None], found: str
) -> None:
    told.log(falsified)
    with pytest.raises(Disagrees, match=found):
        told.reckon()
