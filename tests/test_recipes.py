"""The recipes, started exactly as written with only their paths replaced."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / "recipes" / "agent-framework.json").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).with_name("mcpl-heartbeat")
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR")


def line(identity, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}) + "\n"


CONVERSATION = (
    line(
        0,
        "initialize",
        protocolVersion="2024-11-05",
        clientInfo={"name": "agent-framework", "version": "1.0.0"},
        capabilities={"experimental": {"mcpl": {"version": "0.5", "pushEvents": True}}},
    )
    + json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    + "\n"
    + line(
        1,
        "featureSets/update",
        effectiveCapabilities=["pushEvents", "tools"],
        enabled=json.loads(RECIPE)["mcpServers"]["heartbeat"]["enabledFeatureSets"],
    )
    + line(2, "tools/call", name="reminder_add", arguments={"message": "Look.", "inHours": 1})
    + line(3, "tools/call", name="heartbeat_configure", arguments={"intervalHours": 2})
    + line(4, "tools/call", name="heartbeat_trigger", arguments={})
)


def run(recipe, folder):
    server = recipe["mcpServers"]["heartbeat"]
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    finished = subprocess.run(
        [server["command"], *server["args"]],
        input=CONVERSATION.encode(),
        capture_output=True,
        env=environment | server["env"],
        cwd=folder,
        timeout=60,
        check=True,
    )
    return [json.loads(part) for part in finished.stdout.splitlines()]


@pytest.mark.requirement("people.recipe", "seed.recipe.stdio")
def test_it_starts_as_written_with_only_its_paths_replaced(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir()
    elsewhere.mkdir()
    written = RECIPE.replace("/path/to/mcpl-heartbeat/.venv/bin/mcpl-heartbeat", str(COMMAND))
    recipe = json.loads(written.replace("/path/to/data", str(data)))
    messages = run(recipe, elsewhere)

    answers = {message["id"]: message for message in messages if "result" in message}
    assert answers[1]["result"]["mode"] == "full"
    assert not any(answers[call]["result"].get("isError") for call in (2, 3, 4)), answers
    (push,) = [message for message in messages if message.get("method") == "push/event"]
    assert push["params"]["featureSet"] == "heartbeat"
    assert push["params"]["origin"] == {"source": "heartbeat", "reason": "manual"}

    (reminder,) = json.loads((data / "heartbeat-reminders.json").read_text(encoding="utf-8"))
    assert reminder["message"] == "Look."
    config = json.loads((data / "heartbeat-config.json").read_text(encoding="utf-8"))
    assert config["intervalSeconds"] == 7200
    assert not list(elsewhere.iterdir()), "the server left something where the host runs"


@pytest.mark.requirement("people.recipe", "seed.recipe.wake-first")
def test_it_holds_what_a_wake_needs_of_the_host():
    recipe = json.loads(RECIPE)
    assert list(recipe["mcpServers"]) == ["heartbeat"]
    server = recipe["mcpServers"]["heartbeat"]
    assert server["enabledFeatureSets"] == ["heartbeat"]
    assert server["reconnect"] is True
    for path in (server["command"], *server["env"].values()):
        assert Path(path).is_absolute()
    first = recipe["modules"]["wake"]["policies"][0]
    assert first["match"] == {"scope": ["mcpl:push-event"], "source": "heartbeat"}
    assert first["behavior"] == "always"
