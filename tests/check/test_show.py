"""What ``show`` prints of the files, and that it leaves them alone."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mcpl_heartbeat import show
from mcpl_heartbeat.actions import Opened, Trouble
from mcpl_heartbeat.times import UTC
from mcpl_heartbeat.wake.files import Config, Reminder

pytestmark = pytest.mark.requirement("people.show")

COMMAND = str(Path(sys.executable).with_name("mcpl-heartbeat"))
NOW = 1_800_000_000_000


def row(id, left_s, every=None):
    return Reminder(
        id=id,
        message=f"text of {id}",
        created_at=NOW - 1,
        fire_at=NOW + left_s * 1000,
        every_seconds=every,
    )


def look(config=None, rows=None, trouble=None):
    opened = Opened(config, trouble)
    return show.look(("/c", "/r"), opened, Opened(rows), UTC, NOW)


def test_reminders_come_in_due_order_with_what_is_overdue():
    shown = look(Config(), (row("b", 60), row("a", -5), row("c", 10, 3600)))
    assert [(r.id, r.overdue, r.left_seconds) for r in shown.reminders] == [
        ("a", True, -5),
        ("c", False, 10),
        ("b", False, 60),
    ]
    assert shown.reminders[0].next == "2027-01-15T07:59:55+00:00 [UTC]"


def test_the_next_wake():
    assert look(Config(next_at=NOW - 1)).overdue is True
    assert look(Config(next_at=NOW + 1)).overdue is False
    assert look(Config()).next is None
    assert look(Config(next_at=NOW - 1, paused=True)).overdue is False
    assert look().interval_seconds == 14_400


def test_what_cannot_be_used_is_said():
    part = look(Config(), trouble=Trouble("The config file is odd.", savable=True))
    assert (part.usable, part.problems) == (True, ("The config file is odd.",))
    assert look(trouble=Trouble("No.", savable=False)).usable is False


def run(tmp_path, *arguments, **environment):
    return subprocess.run(
        [COMMAND, "show", *arguments],
        env=os.environ | {"AGENT_TIMEZONE": "UTC"} | environment,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )


def stored(tmp_path):
    now = round(time.time() * 1000)
    config = {"intervalSeconds": 7200, "paused": False, "message": "Well?", "nextAt": now - 1000}
    rows = [
        {"id": "rem_late", "message": "Late.", "createdAt": 1, "fireAt": 2, "everySeconds": None},
        {"id": "rem_next", "message": "a\nb", "createdAt": 1, "fireAt": now + 10**8,
         "everySeconds": 1_000_000},
    ]  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "r.json").write_text(json.dumps(rows), encoding="utf-8")
    return "--config", str(tmp_path / "c.json"), "--reminders", str(tmp_path / "r.json")


def test_the_command_in_a_pipe(tmp_path):
    arguments = stored(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    said = run(tmp_path, *arguments)
    assert (said.returncode, said.stderr) == (0, "")
    assert "Heartbeat ACTIVE | mode=message | interval=7200s (2.00h) | next 20" in said.stdout
    assert '(overdue) | message="Well?"' in said.stdout
    assert "2 reminder(s), 1 overdue:" in said.stdout
    assert "rem_late  1970-01-01T00:00:00+00:00 [UTC]  (overdue)  one-shot" in said.stdout
    assert 'repeats every 1000000s  "a\\nb"' in said.stdout
    assert "known only to a running server" in said.stdout
    assert "\x1b" not in said.stdout
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_as_json_and_on_a_terminal(tmp_path):
    arguments = stored(tmp_path)
    said = json.loads(run(tmp_path, *arguments, "--json").stdout)
    assert [each["id"] for each in said["reminders"]] == ["rem_late", "rem_next"]
    assert said["reminders"][1]["everySeconds"] == 1_000_000
    assert "┃" in run(tmp_path, *arguments, FORCE_COLOR="1", COLUMNS="120").stdout


def test_files_that_are_not_there_are_named_and_nothing_is_made_up_of_them(tmp_path):
    config = str(tmp_path / "none.json")
    files = {"HEARTBEAT_CONFIG_FILE": config, "HEARTBEAT_REMINDERS_FILE": "r.json"}
    said = run(tmp_path, **files)
    assert said.returncode == 1
    assert (
        f"no such file: {config}; name it with --config or set HEARTBEAT_CONFIG_FILE" in said.stdout
    )
    assert f"no such file: {tmp_path / 'r.json'}; name it with --reminders" in said.stdout
    assert "ACTIVE" not in said.stdout
    assert "No reminders." not in said.stdout
    as_json = run(tmp_path, "--json", **files)
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["absent"] == ["config", "reminders"]
    assert json.loads(as_json.stdout)["usable"] is False
    assert list(tmp_path.iterdir()) == []


def test_the_file_that_is_there_is_shown_without_the_other(tmp_path):
    arguments = stored(tmp_path)
    said = run(tmp_path, *arguments[:2], HEARTBEAT_REMINDERS_FILE="gone.json")
    assert said.returncode == 1
    assert "Heartbeat ACTIVE" in said.stdout
    assert "No reminders." not in said.stdout
    assert "set HEARTBEAT_REMINDERS_FILE" in said.stdout


def test_at_80_columns_no_moment_is_broken_and_nothing_is_cut_off(tmp_path):
    arguments = stored(tmp_path)
    rows = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    rows[0]["message"] = "word " * 11 + "last"
    (tmp_path / "r.json").write_text(json.dumps(rows), encoding="utf-8")
    colours = {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80"}
    said = run(tmp_path, *arguments, **colours, AGENT_TIMEZONE="America/Los_Angeles").stdout
    table = [line for line in said.splitlines() if line.startswith("│")]
    assert all(line.endswith("│") and len(line) <= 80 for line in table)
    cells = [[cell.strip() for cell in line.split("│")] for line in table]
    assert [cell[1] for cell in cells if cell[1]] == ["rem_late", "rem_next"]
    moments = [cell[2] for cell in cells]
    assert moments[:4] == [
        "1969-12-31T16:00:00-08:00", "[America/Los_Angeles]", "(overdue)", "one-shot",
    ]  # fmt: skip
    assert " ".join(cell[3] for cell in cells).count("word") == 11
    assert "last" in said


def test_a_torn_file_is_said_and_left_where_it_is(tmp_path):
    arguments = stored(tmp_path)
    (tmp_path / "r.json").write_text('[{"id": "rem', encoding="utf-8")
    said = run(tmp_path, *arguments)
    assert said.returncode == 1
    assert "WARNING   The reminders file" in said.stdout
    assert "could not be used" in said.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.json", "r.json"]


def test_the_way_in_for_hosts_loads_none_of_it(tmp_path):
    script = (
        "import sys; sys.argv = ['x', '--stdio']\n"
        "from mcpl_heartbeat import cli\n"
        "try:\n    cli.main()\n"
        "except SystemExit:\n"
        "    print([m for m in sys.modules if '.check' in m or m.endswith('.show')],"
        " file=sys.__stderr__)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    assert found.stderr == b"[]\n"
