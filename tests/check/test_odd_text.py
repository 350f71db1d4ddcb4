"""Text that JSON, Python or a terminal has trouble with."""

import json
import os
import subprocess
import sys

import pytest

from mcpl_heartbeat.check import jsonc
from mcpl_heartbeat.check.recipe import read


def run(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "mcpl_heartbeat", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )


@pytest.mark.requirement("people.check-formats")
def test_a_number_of_thousands_of_digits_does_not_raise():
    text = f'{{"mcpServers": {{"heartbeat": {{"timeout": {"1" * 5000}}}}}}}'
    assert jsonc.parse(text) == "a number in it has thousands of digits"
    recipe, findings = read(text, "x.json", None, None)
    assert recipe is None
    assert [finding.id for finding in findings] == ["json"]


@pytest.mark.requirement("people.show")
def test_what_is_shown_as_json_fits_any_stdout(tmp_path):
    row = {"id": "a", "message": "café ☕", "createdAt": 1, "fireAt": 1, "everySeconds": None}
    (tmp_path / "r.json").write_text(json.dumps([row]), "utf-8")
    (tmp_path / "c.json").write_text("{}", "utf-8")
    files = ("--config", "c.json", "--reminders", "r.json")
    done = run("show", *files, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reminders"][0]["message"] == "café ☕"


@pytest.mark.requirement("people.check-report")
def test_what_is_found_as_json_fits_any_stdout(tmp_path):
    config = {"mcpServers": {"heartbeat": {"command": "café\ud800", "args": ["--stdio"]}}}
    (tmp_path / "c.json").write_text(json.dumps(config), "utf-8")
    done = run("check", "c.json", "--no-start", "--json", folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert any("café" in each["text"] for each in json.loads(done.stdout)["findings"])
