"""What a stdio server imports: nothing of a store without one, and what it says if it cannot."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
sys.argv = ['mcpl-heartbeat', '--stdio']
from mcpl_heartbeat import cli
try:
    cli.main()
except SystemExit:
    print(sorted(sys.modules), file=sys.__stderr__)
"""
STORE = ("mcpl_heartbeat.watch", "mcpl_heartbeat.tasks", "mcpl_heartbeat.storage.store")
HEAVY = (
    *("sqlalchemy", "alembic", "psycopg", "starlette", "hypercorn", "prometheus_client"),
    *("platformdirs", "sqlite3", "asyncio"),
)
BLOCK = """
import importlib.abc, importlib.util, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('sqlalchemy', 'alembic', 'psycopg'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

sys.meta_path.insert(0, Absent())
found = importlib.util.find_spec
def find_spec(name, package=None):
    try:
        return found(name, package)
    except ModuleNotFoundError:
        return None
importlib.util.find_spec = find_spec
"""
LINES = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "whoami"}},
]


def run(folder: Path, *before: str, **environ: str) -> tuple[list[dict[str, object]], str]:
    """Give its answers to ``LINES`` and what it wrote to stderr."""
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join((*before, SCRIPT))],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environ,
        input="".join(json.dumps(line) + "\n" for line in LINES),
        capture_output=True,
        check=False,
        timeout=60,
        text=True,
    )
    return [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr


@pytest.mark.requirement("people.light-import")
def test_without_a_store_nothing_of_it_is_imported(tmp_path: Path) -> None:
    answers, said = run(tmp_path)
    assert answers[1]["error"]["code"] == -32602, "there is no such tool"
    modules = said.replace("'", "").strip("[]\n").split(", ")
    assert "mcpl_heartbeat.session" in modules
    assert [name for name in modules if name.startswith(STORE)] == []
    assert {name.partition(".")[0] for name in modules}.isdisjoint(HEAVY)


@pytest.mark.requirement("watch.mcp.no-store")
def test_what_is_not_installed_is_said_with_the_command(tmp_path: Path) -> None:
    answers, said = run(tmp_path, BLOCK, HEARTBEAT_STORE=f"sqlite:///{tmp_path}/store.db")
    (answer,) = [answer for answer in answers if answer["id"] == 2]
    result = answer["result"]
    assert result["isError"] is True
    assert "pip install 'mcpl-heartbeat[serve]'" in json.dumps(result)
    assert "pip install 'mcpl-heartbeat[serve]'" in said
    assert "Traceback" not in said
