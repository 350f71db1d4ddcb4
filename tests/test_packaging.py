"""What is installed, and what the README promises about installing it."""

import importlib.metadata
import importlib.resources
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).with_name("mcpl-heartbeat")


@pytest.mark.requirement("people.package")
def test_the_distribution_holds_what_it_must():
    distribution = importlib.metadata.distribution("mcpl-heartbeat")
    assert distribution.metadata["License-Expression"] == "MIT"
    extras = set(distribution.metadata.get_all("Provides-Extra"))
    assert {"serve", "postgres", "all", "test"} <= extras
    assert "MIT License" in distribution.read_text("licenses/LICENSE")
    assert importlib.resources.files("mcpl_heartbeat").joinpath("py.typed").is_file()
    (script,) = distribution.entry_points.select(group="console_scripts", name="mcpl-heartbeat")
    assert script.value == "mcpl_heartbeat.cli:main"


@pytest.mark.requirement("people.package")
def test_a_bare_install_asks_for_no_test_tools():
    wanted = importlib.metadata.requires("mcpl-heartbeat")
    bare = {re.split(r"[^\w-]", line)[0] for line in wanted if "extra ==" not in line}
    assert {"trio", "msgspec", "click", "rich", "jsonrpcserver"} <= bare
    assert not bare & {"pytest", "hypothesis", "mypy", "ruff"}
    assert not bare & {"SQLAlchemy", "sqlalchemy", "alembic", "starlette", "hypercorn", "psycopg"}


@pytest.mark.requirement("people.package", "watch.store.packaged")
def test_the_steps_of_the_store_s_tables_are_in_it():
    folder = importlib.resources.files("mcpl_heartbeat") / "storage/store/migrations"
    names = {file.name for file in (folder / "versions").iterdir()}
    assert any(re.fullmatch(r"r0001_\w+\.py", name) for name in names)
    assert (folder / "env.py").is_file()


@pytest.mark.requirement("people.version")
@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "mcpl_heartbeat"]])
def test_the_command_tells_the_version_that_is_installed(command):
    said = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert importlib.metadata.version("mcpl-heartbeat") in said


@pytest.mark.requirement("people.package")
def test_the_changelog_knows_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {importlib.metadata.version('mcpl-heartbeat')}" in changelog


@pytest.mark.requirement("people.readme", "seed.recipe.wake-first")
def test_the_readme_shows_the_recipe_as_it_is_shipped():
    shown = re.search(r"```json\n(.*?)```", README, re.DOTALL)[1]
    shipped = (ROOT / "recipes" / "agent-framework.json").read_text(encoding="utf-8")
    assert json.loads(shown) == json.loads(shipped)


@pytest.mark.requirement("people.readme", "host.40")
@pytest.mark.parametrize(
    "promise",
    [
        "python3 start.py demo",
        "python3 start.py test",
        '`enabledFeatureSets` is `["heartbeat"]`',
        "server id is `heartbeat`",
        "wake policy comes first",
        "paths are absolute",
        "`reconnect` is true",
        '"grant": ["tools", "pushEvents"]',
        "agent-framework 0.20.0 or later",
        "AGENT_TIMEZONE",
        "HEARTBEAT_CONFIG_FILE",
        "HEARTBEAT_REMINDERS_FILE",
        "Moving over from the Node server",
        "initial policy has still not arrived as a Request",
    ],
)
def test_the_readme_says(promise):
    assert promise in " ".join(README.split())


@pytest.mark.requirement("people.readme", "host.40")
def test_the_readme_names_files_that_exist():
    named = re.findall(r"\]\(([\w./-]+)\)", README)
    assert named
    for path in named:
        assert (ROOT / path).is_file(), path


@pytest.mark.requirement("people.readme", "host.40")
def test_the_readmes_table_of_tools_is_what_the_server_declares():
    from mcpl_heartbeat.mcp.tools import schema
    from mcpl_heartbeat.wake.tools import TOOLS

    table = {
        row[1]: set(re.findall(r"`(\w+)`", row[2])) - {"message", "silent"}
        for row in re.finditer(r"^\| `([a-z]+_[a-z]+)` \|[^|]*\|([^|]*)\|$", README, re.MULTILINE)
    }
    declared = {
        tool.name: set(schema(tool.arguments)["properties"]) - {"message", "silent"}
        for tool in TOOLS
    }
    assert table == declared
