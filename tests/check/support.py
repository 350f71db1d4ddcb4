"""Configs and facts to judge, made without touching the machine."""

import json
from typing import Any

from mcpl_heartbeat.check import rules
from mcpl_heartbeat.check.case import Case, Facts, FileFact
from mcpl_heartbeat.check.findings import Finding
from mcpl_heartbeat.check.hosts import plan
from mcpl_heartbeat.check.recipe import Host, Recipe, read

SHELL = {"PATH": "/usr/bin", "HOME": "/home/you"}
FILES = {
    "HEARTBEAT_CONFIG_FILE": "/data/heartbeat-config.json",
    "HEARTBEAT_REMINDERS_FILE": "/data/heartbeat-reminders.json",
}
RULE = {
    "name": "heartbeat-wake",
    "match": {"scope": ["mcpl:push-event"], "source": "heartbeat"},
    "behavior": "always",
}


def launch(**members: Any) -> dict[str, Any]:
    return {"command": "/bin/mcpl-heartbeat", "args": ["--stdio"], "env": dict(FILES)} | members


def framework(wake: Any = None, id: str = "heartbeat", **members: Any) -> dict[str, Any]:
    """A recipe of agent-framework with nothing wrong in it but what is asked for."""
    server = launch(enabledFeatureSets=["heartbeat"], reconnect=True) | members
    server = {name: value for name, value in server.items() if value != "absent"}
    policies = {"policies": [RULE]} if wake is None else wake
    return {"mcpServers": {id: server}, "modules": {"wake": policies}}


def bridge(**members: Any) -> dict[str, Any]:
    server = {"transport": launch(), "grant": ["tools", "pushEvents"], "reconnect": True}
    return {"servers": {"heartbeat": server | members}}


def recipe_of(config: Any, name: str = "recipe.json", host: Host | None = None) -> Recipe:
    recipe, _ = read(json.dumps(config), name, host, None)
    assert recipe is not None
    return recipe


def cases_of(
    config: Any,
    environ: dict[str, str] | None = None,
    facts: Facts | None = None,
    name: str = "recipe.json",
    host: Host | None = None,
) -> list[Case]:
    recipe = recipe_of(config, name, host)
    cases = []
    for entry in recipe.entries:
        planned = plan(recipe, entry, environ or SHELL)
        found = facts or Facts(
            command=planned.command,
            files={variable: FileFact(path) for variable, path in planned.files.items()},
        )
        cases.append(Case(recipe, entry, planned, found, environ or SHELL))
    return cases


def judged(config: Any, **how: Any) -> list[Finding]:
    cases = cases_of(config, **how)
    return [finding for case in cases for finding in rules.judge(case)] + rules.judge_together(
        cases
    )


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]
