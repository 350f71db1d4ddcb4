"""The recipes, started exactly as written with only their paths replaced.

Those for uvx and pipx need these commands: on the PATH, or prepared by tests/clients/prepare.py.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcpl_heartbeat.check import main as checking

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / "recipes" / "agent-framework.json").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).with_name("mcpl-heartbeat")
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR")
# What uvx needs to fetch packages here: a host passes certificates on, settings belong in env.
FETCHING = ("SSL_CERT_FILE", "SSL_CERT_DIR", "UV_", "HTTPS_PROXY", "https_proxy")
# What uvx and pipx install: the checkout, or the wheel that was built from it.
PACKAGE = os.environ.get("MCPL_HEARTBEAT_PACKAGE", str(ROOT))
HOSTS = ("agent-framework", "mcpl-cc-bridge", "claude-code", "claude-desktop", "stdio")
WITH_STORE = "agent-framework-watch.json"
WAYS = {"venv": "", "uvx": ".uvx", "pipx": ".pipx"}


def launch(recipe):
    """Find the object with command, args and env, wherever the host wants it."""
    server = recipe.get("mcpServers", recipe.get("servers", {})).get("heartbeat", recipe)
    return server.get("transport", server)


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


def run(recipe, folder, **more):
    server = launch(recipe)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or (more and name.startswith(FETCHING))
    } | more
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


@pytest.mark.requirement("people.recipes", "watch.mcp.offered")
def test_the_one_with_a_store_starts_and_differs_in_that_alone(tmp_path):
    text = (ROOT / "recipes" / WITH_STORE).read_text(encoding="utf-8")
    recipe = json.loads(text)
    server = launch(recipe)
    assert server["env"].pop("HEARTBEAT_STORE").startswith("sqlite:////path/to/data/")
    server["enabledFeatureSets"].remove("watch")
    server["enabledFeatureSets"].remove("tasks")
    assert recipe == json.loads(RECIPE)

    written = text.replace("/path/to/mcpl-heartbeat/.venv/bin/mcpl-heartbeat", str(COMMAND))
    pasted = tmp_path / "recipe.json"
    pasted.write_text(written.replace("/path/to/data", str(tmp_path)), encoding="utf-8")
    report = checking.check(checking.Options(str(pasted), strict=True), os.environ)
    assert report.findings == ()
    assert report.outcomes["heartbeat"].watches


def text_of(host, way):
    return (ROOT / "recipes" / f"{host}{WAYS[way]}.json").read_text(encoding="utf-8")


def launcher(name):
    """Find uvx or pipx, or skip."""
    prepared = os.environ.get("MCPL_HEARTBEAT_CLIENTS")
    places = f"{prepared}/launchers/bin" if prepared else os.environ["PATH"]
    found = shutil.which(name, path=places)
    if found is None:
        pytest.skip(f"{name} is not here: tests/clients/prepare.py brings it")
    return Path(found)


@pytest.fixture(scope="session")
def by_pipx(tmp_path_factory):
    """Install as the recipes for pipx want it and return the path of the command."""
    pipx, folder = launcher("pipx"), tmp_path_factory.mktemp("pipx")
    where = {"PIPX_HOME": str(folder / "home"), "PIPX_BIN_DIR": str(folder / "bin")}
    subprocess.run(
        [pipx, "install", "--python", sys.executable, PACKAGE],
        env=os.environ | where,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=True,
    )
    return folder / "bin" / "mcpl-heartbeat"


def started(host, way, command, tmp_path, **more):
    data = tmp_path / "data"
    data.mkdir()
    written = text_of(host, way).replace("/path/to/data", str(data))
    for path, place in command.items():
        written = written.replace(path, str(place))
    assert "/path/to" not in written
    messages = run(json.loads(written), tmp_path, **more)
    pushes = [message for message in messages if message.get("method") == "push/event"]
    assert len(pushes) == 1
    (reminder,) = json.loads((data / "heartbeat-reminders.json").read_text(encoding="utf-8"))
    assert reminder["message"] == "Look."
    return written


@pytest.mark.requirement("people.recipes", "people.check-formats")
@pytest.mark.parametrize("host", HOSTS)
def test_each_hosts_recipe_starts(host, tmp_path):
    venv = {"/path/to/mcpl-heartbeat/.venv/bin/mcpl-heartbeat": COMMAND}
    written = started(host, "venv", venv, tmp_path)
    pasted = tmp_path / f"{host}.json"
    pasted.write_text(written, encoding="utf-8")
    report = checking.check(checking.Options(str(pasted), strict=True), os.environ)
    assert report.findings == ()
    assert report.status == 0
    wakes = host in ("agent-framework", "mcpl-cc-bridge")
    assert report.outcomes["heartbeat"].wakes is wakes


@pytest.mark.requirement("people.recipes")
@pytest.mark.parametrize("host", HOSTS)
def test_each_starts_through_uvx(host, tmp_path):
    uvx = launcher("uvx")
    paths = {"/path/to/bin/uvx": uvx, "/path/to/mcpl-heartbeat": PACKAGE}
    path = f"{uvx.parent}{os.pathsep}{os.environ['PATH']}"
    started(host, "uvx", paths, tmp_path, PATH=path)


@pytest.mark.requirement("people.recipes")
@pytest.mark.parametrize("host", HOSTS)
def test_each_starts_through_pipx(host, by_pipx, tmp_path):
    started(host, "pipx", {"/path/to/home/.local/bin/mcpl-heartbeat": by_pipx}, tmp_path)


@pytest.mark.requirement("people.recipes")
@pytest.mark.parametrize("host", HOSTS)
def test_the_ways_of_installing_differ_in_the_command_alone(host):
    bare = []
    for way in WAYS:
        recipe = json.loads(text_of(host, way))
        del launch(recipe)["command"], launch(recipe)["args"]
        bare.append(recipe)
    assert bare[0] == bare[1] == bare[2]


@pytest.mark.requirement("people.recipes")
def test_there_are_no_others():
    written = {f"{host}{ending}.json" for host in HOSTS for ending in WAYS.values()}
    written.add(WITH_STORE)
    assert {path.name for path in (ROOT / "recipes").glob("*.json")} == written
