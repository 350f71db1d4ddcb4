"""What a check finds of the shared store: its URL, its feature set, its tools, its wakes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpl_heartbeat.check import grants
from mcpl_heartbeat.check import main as checking
from mcpl_heartbeat.check.case import Facts
from mcpl_heartbeat.check.facts import gather
from mcpl_heartbeat.check.findings import Level
from tests.check.support import FILES, RULE, bridge, cases_of, framework, judged, launch, only

COMMAND = str(Path(sys.executable).with_name("mcpl-heartbeat"))
SCOPES = ["mcpl:push-event", "push:event"]
STORE = "sqlite:////data/store.db"
ALL = ["heartbeat", "watch", "tasks"]


def with_store(url: str = STORE, *, key: str | None = None, **members: Any) -> dict[str, Any]:
    env = FILES | {"HEARTBEAT_STORE": url} | ({} if key is None else {"HEARTBEAT_AGENT_KEY": key})
    return framework(**{"env": env, "enabledFeatureSets": ALL} | members)


@pytest.mark.requirement("people.check-store")
def test_a_recipe_with_a_store_can_be_right() -> None:
    assert judged(with_store()) == []
    assert judged(with_store(enabledFeatureSets=["*"])) == []


@pytest.mark.requirement("people.check-store")
def test_a_set_that_is_left_out_wakes_nobody() -> None:
    found = only(judged(with_store(enabledFeatureSets=["heartbeat"])))
    assert (found.id, found.level) == ("feature-sets", Level.WARNING)
    assert "watch" in found.remedy
    less = only(judged(with_store(enabledFeatureSets=["heartbeat", "watch"])))
    assert (less.id, less.level) == ("feature-sets", Level.NOTE)
    assert "tasks" in less.remedy
    absent = only(judged(with_store(enabledFeatureSets="absent")))
    assert absent.remedy == 'Write "enabledFeatureSets": ["heartbeat", "watch", "tasks"].'


@pytest.mark.requirement("people.check-store")
def test_a_store_that_cannot_be_used_is_named() -> None:
    (case,) = cases_of(with_store())
    trouble = "a URL that begins with 'mysql' is not taken."
    facts = msgspec.structs.replace(case.facts, store_trouble=trouble)
    found = only(judged(with_store(), facts=facts))
    assert (found.id, found.level) == ("store", Level.ERROR)
    assert found.where.endswith("env.HEARTBEAT_STORE")
    assert trouble in found.text


@pytest.mark.requirement("people.check-store")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///relative.db", "whole path"),
        ("mysql://x", "mysql"),
        ("sqlite:////dev/null/store.db", "/dev/null"),
        ("sqlite:////dev", "it is a folder"),
        ("sqlite:////tmp/nowhere/yet/store.db", ""),
        ("postgresql+psycopg://user@host/database", ""),
    ],
)
def test_a_stores_url_is_weighed(url: str, said: str) -> None:
    (case,) = cases_of(with_store(url))
    trouble = gather(case.plan).store_trouble
    assert said in trouble
    assert bool(said) == bool(trouble)


@pytest.mark.requirement("people.check-store")
def test_a_key_wants_a_store_and_length() -> None:
    short = only(judged(with_store(key="short")))
    assert (short.id, short.level) == ("store", Level.ERROR)
    assert judged(with_store(key="k" * 32)) == []
    env = FILES | {"HEARTBEAT_AGENT_KEY": "k" * 32}
    alone = only(judged(framework(env=env)))
    assert (alone.id, alone.level) == ("store", Level.WARNING)


@pytest.mark.requirement("people.check-store")
def test_a_store_that_the_host_does_not_pass_on_is_said() -> None:
    environ = {"PATH": "/usr/bin", "HEARTBEAT_STORE": STORE}
    found = only(judged(framework(), environ=environ))
    assert found.id == "env"
    assert "HEARTBEAT_STORE" in found.text


@pytest.mark.requirement("people.check-store")
def test_rules_that_let_alerts_sleep_are_found() -> None:
    ticks = RULE | {"match": {"scope": SCOPES, "tagsAny": ["heartbeat:*"]}}
    asleep = {"policies": [ticks], "default": "skip"}
    assert judged(framework(asleep)) == []
    found = only(judged(with_store(wake=asleep)))
    assert (found.id, found.level) == ("wake-policy", Level.ERROR)
    assert "alerts and nudges" in found.text


@pytest.mark.requirement("people.check-store")
def test_a_bridge_that_holds_alerts_back_is_found() -> None:
    members = {
        "transport": launch(env=FILES | {"HEARTBEAT_STORE": STORE}),
        "enableFeatureSets": ALL,
        "wake": {"hold": [["watch:alert"]]},
    }
    found = only(judged(bridge(**members)))
    assert "alerts" in found.text


@pytest.mark.requirement("people.check-store")
def test_hidden_tools_of_the_store_are_named() -> None:
    found = only(judged(with_store(enabledTools=["heartbeat_*", "reminder_*"])))
    for tool in grants.STORE_TOOLS:
        assert (tool in found.text) == (not tool.startswith("heartbeat_"))
    assert judged(framework(enabledTools=["heartbeat_*", "reminder_*"])) == []


@pytest.mark.requirement("people.check-store")
def test_a_trial_start_leaves_the_store_alone(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    env = {
        "HEARTBEAT_CONFIG_FILE": str(tmp_path / "config.json"),
        "HEARTBEAT_REMINDERS_FILE": str(tmp_path / "reminders.json"),
        "HEARTBEAT_STORE": f"sqlite:///{store}",
        "HEARTBEAT_AGENT_KEY": "k" * 32,
    }
    recipe = tmp_path / "recipe.json"
    recipe.write_text(
        json.dumps(with_store(command=COMMAND, args=["--stdio"], env=env)), encoding="utf-8"
    )
    report = checking.check(checking.Options(str(recipe), strict=True), os.environ)
    assert report.findings == ()
    outcome = report.outcomes["heartbeat"]
    assert outcome.watches
    assert set(grants.STORE_TOOLS) <= set(outcome.tools)
    assert any("alerts and nudges" in line for got in report.got for line in got.lines)
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.json"]


def test_facts_without_a_store_say_nothing_of_one() -> None:
    assert Facts(command=None, files={}).store_trouble == ""
