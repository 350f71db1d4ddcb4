"""Recipes whose server has a store."""

import json
import sys
from pathlib import Path
from typing import Any

from mcpl_heartbeat.check import main as checking
from tests.check.support import FILES, framework

COMMAND = str(Path(sys.executable).with_name("mcpl-heartbeat"))
STORE = "sqlite:////data/store.db"
ALL = ["heartbeat", "watch", "tasks"]


def written(folder: Path, url: str, key: str = "", **members: Any) -> checking.Options:
    """A recipe on disk whose server can be started."""
    env = {
        "HEARTBEAT_CONFIG_FILE": str(folder / "config.json"),
        "HEARTBEAT_REMINDERS_FILE": str(folder / "reminders.json"),
        "HEARTBEAT_STORE": url,
    } | ({"HEARTBEAT_AGENT_KEY": key} if key else {})
    recipe = folder / "recipe.json"
    entry = with_store(command=COMMAND, args=["--stdio"], env=env, **members)
    recipe.write_text(json.dumps(entry), encoding="utf-8")
    return checking.Options(str(recipe), strict=True)


def with_store(url: str = STORE, *, key: str | None = None, **members: Any) -> dict[str, Any]:
    env = FILES | {"HEARTBEAT_STORE": url} | ({} if key is None else {"HEARTBEAT_AGENT_KEY": key})
    return framework(**{"env": env, "enabledFeatureSets": ALL} | members)
