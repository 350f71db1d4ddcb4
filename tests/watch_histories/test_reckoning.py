"""What looks through the histories finds what is wrong with one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.watch_histories.audit import audit
from tests.watch_histories.facts import Disagrees
from tests.watch_histories.fileclock import FileClock
from tests.watch_histories.points import Points
from tests.watch_histories.reckoning import Reckoning
from tests.watch_histories.worker import Server


class Told:
    """A short history without any trouble, which can be falsified."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/store.db"
        clock = FileClock.make(folder / "clock")
        self.points = Points(self.url, clock, folder, "sweep")
        for name, body in (("a", self.points.scene), ("b", self.more), ("c", self.points.survive)):
            server = Server(self.url, clock, folder / f"{name}.log")
            assert server.open()
            body(server)
            server.close()

    def more(self, server: Server) -> None:
        self.points.take_over(server)
        self.points.mail(server)

    def reckon(self) -> None:
        Reckoning(self.url, sorted(self.folder.glob("*.log")), self.points.history.addresses).run()

    def sql(self, statement: str) -> None:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with engine.begin() as conn:
            assert conn.exec_driver_sql(statement).rowcount

    def log(self, change: Callable[[str, dict[str, Any]], None]) -> None:
        """Change what was written down; ``change`` is given the first tool asked for, too."""
        for path in self.folder.glob("*.log"):
            tool, lines = "", []
            for text in path.read_text().splitlines():
                line = json.loads(text)
                if "what" in line:
                    tool = line["calls"][0][0] if line["calls"] else line["what"]
                change(tool, line)
                lines.append(json.dumps(line))
            path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def told(tmp_path: Path) -> Told:
    made = Told(tmp_path)
    made.reckon()
    return made


@pytest.mark.requirement("watch.store.histories")
@pytest.mark.parametrize(
    ("falsified", "found"),
    [
        ("UPDATE switches SET fires = fires + 1 WHERE scope = 'build'", "fires of"),
        ("UPDATE switches SET failed = 0 WHERE scope = 'build'", "mark of"),
        ("UPDATE switches SET state = 'armed' WHERE scope = 'build'", "at the end"),
        ("DELETE FROM envelopes WHERE of_scope = 'build'", "alerts that found no place"),
        ("DELETE FROM envelopes WHERE kind = 'message'", "mail that was lost"),
        ("DELETE FROM journal WHERE kind = 'fired'", "fires of"),
        ("UPDATE leases SET generation = 1, held = 1 WHERE key = 'db'", "held though a fire freed"),
        ("INSERT INTO gaps VALUES (1700000002500, 1700000009000, 0)", "watched in the gap"),
        (
            "INSERT INTO journal SELECT seq + 100, namespace, scope, at, kind, generation, detail "
            "FROM journal WHERE kind = 'fired'",
            "fired twice",
        ),
    ],
)
def test_a_store_that_is_wrong_is_found_out(told: Told, falsified: str, found: str) -> None:
    told.sql(falsified)
    with pytest.raises(Disagrees, match=found):
        told.reckon()


def _other_beat(tool: str, line: dict[str, Any]) -> None:
    if tool == "heartbeat" and "told" in line:
        line["at"] += 2_000
    elif tool == "heartbeat":
        line["at"] += 1_000


def _longer(tool: str, line: dict[str, Any]) -> None:
    if tool == "heartbeat" and "what" in line:
        line["calls"][0][2]["expect_within_seconds"] = 30


def _again(tool: str, line: dict[str, Any]) -> None:
    if tool == "inbox_nack":
        line.pop("calls", None)
        if "what" in line:
            line["what"] = "sweep"
            line["calls"] = []


def _internal(tool: str, line: dict[str, Any]) -> None:
    if tool == "send" and "told" in line:
        line["told"][0]["code"] = "internal"


@pytest.mark.requirement("watch.store.histories")
@pytest.mark.parametrize(
    ("falsified", "found"),
    [
        (_other_beat, "a beat in time that came to nothing"),
        (_longer, "of watched time too early"),
        (_again, "handed out while hidden"),
        (_internal, "a fault of the store's own"),
    ],
)
def test_answers_that_do_not_fit_are_found_out(
    told: Told, falsified: Callable[[str, dict[str, Any]], None], found: str
) -> None:
    told.log(falsified)
    with pytest.raises(Disagrees, match=found):
        told.reckon()


@pytest.mark.requirement("watch.lease.one-holder")
def test_a_second_holder_is_found_out(told: Told) -> None:
    told.sql("UPDATE journal SET detail = json_set(detail, '$.released', json('[]'))")
    told.sql("UPDATE envelopes SET alert = json_set(alert, '$.released', json('[]'))")
    audit(told.url)
    with pytest.raises(Disagrees, match="got a second holder"):
        told.reckon()
