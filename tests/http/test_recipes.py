"""The page and the unit in recipes/, followed as they are written."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.http.server import PATIENCE, server

RECIPES = Path(__file__).parents[2] / "recipes"
README = (RECIPES.parent / "README.md").read_text("utf-8")
UNIT = (RECIPES / "mcpl-heartbeat.service").read_text("utf-8")


def walk_through(url: str) -> str:
    """The README's block of commands, for a server at ``url``; it polls instead of sleeping."""
    block = re.findall("```sh\n(URL=.*?)```", README, re.DOTALL)[0]
    block = re.sub("^URL=.*$", f"URL={url}", block, count=1, flags=re.MULTILINE)
    return re.sub(
        "^sleep 4; (.*?)  +#.*$",
        r'until found=$(\1); echo "$found" | grep -q task_id; do :; done; echo "$found"',
        block,
        flags=re.MULTILINE,
    )


@pytest.mark.requirement("watch.serve.recipe")
@pytest.mark.skipif(shutil.which("curl") is None, reason="the README's commands need curl")
def test_the_readmes_walk_through_shows_who_died_and_what_was_freed(tmp_path: Path) -> None:
    with server(tmp_path, "--store", f"sqlite:///{tmp_path}/store.db") as started:
        script = walk_through(started.url)
        assert "sleep" not in script
        done = subprocess.run(
            ["sh", "-euc", script],
            env={"PATH": "/usr/bin:/bin:/usr/local/bin"},
            capture_output=True,
            timeout=PATIENCE,
            check=True,
            text=True,
        )
    told, read = [], json.JSONDecoder()
    rest = done.stdout.strip()
    while rest:
        one, end = read.raw_decode(rest)
        told.append(one)
        rest = rest[end:].strip()
    lease, checkpoint, beat, poll, briefing = told
    assert lease["acquired"] is checkpoint["saved"] is True
    assert beat["state"] == "armed"
    alert = poll["envelope"]
    assert (alert["scope"], alert["agent_id"]) == ("job", "worker-1")
    assert [freed["key"] for freed in alert["released"]] == ["database"]
    assert alert["resume"]["next_action"] == "Read page 7."
    assert briefing["failed"] is True
    assert len(briefing["deaths"]) == 1


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
