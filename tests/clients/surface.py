"""The names and schemas that hosts and agents build on, as the installed command shows them.

Without the descriptions: those are words, and may be put better at any time.

``python -m tests.clients.surface`` writes the snapshot anew; do that when a change is meant, and
say so in CHANGELOG.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).with_name("surface.json")


def shown() -> dict[str, Any]:
    """Ask the command for its tools in the newest version of MCP, and for its manifest."""
    tools = _ask("2025-11-25", {}, {"id": 1, "method": "tools/list", "params": {}})[1]
    mcpl = {"experimental": {"mcpl": {"version": "0.5", "pushEvents": True}}}
    manifest = _ask("2024-11-05", mcpl)[0]["capabilities"]["experimental"]["mcpl"]
    manifest.pop("revision", None)
    return _without_words({"tools": tools["tools"], "mcpl": manifest})


def as_text(surface: dict[str, Any]) -> str:
    """Give it as it is committed."""
    return json.dumps(surface, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _without_words(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_words(item) for item in value]
    if isinstance(value, dict):
        return {
            name: _without_words(item)
            for name, item in value.items()
            if not (name == "description" and isinstance(item, str))
        }
    return value


def _ask(version: str, capabilities: dict[str, Any], *more: dict[str, Any]) -> list[Any]:
    client = {"name": "surface", "version": "1"}
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
    asked = [
        {"id": 0, "method": "initialize", "params": params},
        {"method": "notifications/initialized"},
        *more,
    ]
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "HEARTBEAT_CONFIG_FILE": f"{folder}/config.json",
            "HEARTBEAT_REMINDERS_FILE": f"{folder}/reminders.json",
        }
        finished = subprocess.run(
            [Path(sys.executable).with_name("mcpl-heartbeat"), "--stdio"],
            input="".join(json.dumps({"jsonrpc": "2.0"} | each) + "\n" for each in asked).encode(),
            capture_output=True,
            env=os.environ | files,
            timeout=60,
            check=True,
        )
    return [json.loads(line)["result"] for line in finished.stdout.splitlines()]


if __name__ == "__main__":
    SNAPSHOT.write_text(as_text(shown()), encoding="utf-8")
