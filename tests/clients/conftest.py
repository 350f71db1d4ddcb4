"""Where the clients are that ``prepare.py`` made, and the server that they are to use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.prepare import node_missing

FOLDER = os.environ.get("MCPL_HEARTBEAT_CLIENTS")
SERVER = Path(sys.executable).with_name("mcpl-heartbeat")
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def files(tmp_path):
    return {
        "HEARTBEAT_CONFIG_FILE": str(tmp_path / "config.json"),
        "HEARTBEAT_REMINDERS_FILE": str(tmp_path / "reminders.json"),
    }


@pytest.fixture
def client(files, tmp_path):
    """Give a function that runs a prepared client and returns what it printed."""

    def run(name: str, *arguments: object) -> str:
        if FOLDER is None:
            pytest.skip(
                "the clients are not prepared here: python tests/clients/prepare.py FOLDER, then "
                "set MCPL_HEARTBEAT_CLIENTS=FOLDER"
            )
        if name == "inspector" and (missing := node_missing()):
            pytest.skip(missing)
        program = Path(FOLDER) / name / _PROGRAM.get(name, "bin/python")
        assert program.exists(), f"{name} was not prepared in {FOLDER}"
        finished = subprocess.run(
            [str(program), *map(str, arguments)],
            env=os.environ | files,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert finished.returncode == 0, (finished.stdout, finished.stderr)
        return finished.stdout.decode()

    return run


@pytest.fixture
def python_client(client):
    """Give a function that runs one of ``programs/`` and returns the JSON it printed."""

    def run(name: str, program: str, *arguments: object):
        return json.loads(client(name, PROGRAMS / program, SERVER, *arguments))

    return run


_PROGRAM = {
    "inspector": "node_modules/.bin/mcp-inspector",
    "conform": "bin/mcp-conform",
    "launchers": "bin/uvx",
}
