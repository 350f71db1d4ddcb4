"""The page and the unit in recipes/, followed as they are written."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.http.server import PATIENCE, server

RECIPES = Path(__file__).parents[2] / "recipes"
PAGE = (RECIPES / "serve.md").read_text("utf-8")
UNIT = (RECIPES / "mcpl-heartbeat.service").read_text("utf-8")


def curls() -> list[str]:
    """Every curl command of the page, in its order."""
    return [line for line in PAGE.splitlines() if line.startswith("curl ")]


@pytest.mark.requirement("watch.serve.recipe")
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's commands need curl")
def test_the_page_can_be_followed_with_curl(tmp_path: Path) -> None:
    with server(tmp_path, "--store", f"sqlite:///{tmp_path}/store.db") as started:
        names = {"URL": started.url, "PATH": "/usr/bin:/bin:/usr/local/bin"}

        def follow(command: str) -> Any:
            done = subprocess.run(
                ["sh", "-euc", command],
                env=names,
                capture_output=True,
                timeout=PATIENCE,
                check=True,
            )
            return json.loads(done.stdout)

        commands = iter(curls())
        worker, keeper = follow(next(commands)), follow(next(commands))
        names |= {
            "WORKER": worker["agent_secret"],
            "KEEPER": keeper["agent_secret"],
            "KEEPER_ADDRESS": keeper["address"],
        }
        assert follow(next(commands))["acquired"] is True
        assert follow(next(commands))["saved"] is True
        assert follow(next(commands))["state"] == "armed"
        poll = next(commands)
        # The switch's two seconds are real ones here, and the sweep comes after them.
        while (alert := follow(poll)["envelope"]) is None:
            assert started.process.poll() is None
        assert alert["scope"] == "job"
        assert [freed["key"] for freed in alert["released"]] == ["database"]
        assert alert["resume"]["next_action"] == "Read page 7."
        assert follow(next(commands))["failed"] is True
        assert next(commands, None) is None


@pytest.mark.requirement("watch.serve.recipe")
def test_the_units_command_and_store_are_understood(tmp_path: Path) -> None:
    command = shlex.split(re.findall("^ExecStart=(.*)$", UNIT, re.MULTILINE)[0])
    assert Path(command[0]).name == "mcpl-heartbeat"
    assert command[1:] == ["serve", "--listen", "127.0.0.1:8765"]
    name, _, store = re.findall("^Environment=(.*)$", UNIT, re.MULTILINE)[0].partition("=")
    assert store.startswith("sqlite:////var/lib/mcpl-heartbeat/")
    store = store.replace("/var/lib/mcpl-heartbeat", str(tmp_path))
    with server(tmp_path, **{name: store}) as started:
        assert started.said("on the store (.*)")[1] == store
        assert started.stop()[0] == 0
