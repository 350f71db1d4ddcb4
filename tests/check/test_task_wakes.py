"""What a check finds of the wake rules where tasks push: claimable tasks, and reviews."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpl_heartbeat.check import main as checking
from mcpl_heartbeat.check.findings import Level
from tests.check.storing import ALL, STORE, with_store, written
from tests.check.support import FILES, RULE, bridge, judged, launch, only


def always(name: str, **match: Any) -> dict[str, Any]:
    return {"name": name, "match": match, "behavior": "always"}


OTHERS = always("most", tagsAny=["heartbeat:*", "watch:*"])


@pytest.mark.requirement("people.check-task-wakes")
@pytest.mark.parametrize(
    ("rule", "lost", "why"),
    [
        (None, "claimable tasks and reviews", ""),
        (always("work", tagsAny=["tasks:available"]), "reviews", "one of the tags tasks:available"),
        (always("work", tagsAny=["tasks:revue", "tasks:available"]), "reviews", "tasks:revue"),
        (always("work", tagsAny=["task:*"]), "claimable tasks and reviews", ""),
        (always("work", tagsAll=["tasks:available", "tasks:review"]), "claimable tasks", "all of"),
        (always("work", tagsAny=["tasks:*"], source="tasks"), "claimable tasks", "its source is"),
        (
            always("work", tagsAny=["tasks:*"], metadataTrue=["loud"]),
            "claimable tasks",
            "not carry",
        ),
    ],
)
def test_rules_that_let_tasks_sleep_are_found(
    rule: dict[str, Any] | None, lost: str, why: str
) -> None:
    asleep = {"policies": [OTHERS, *([rule] if rule else ())], "default": "skip"}
    found = only(judged(with_store(wake=asleep)))
    assert (found.id, found.level) == ("wake-policy", Level.ERROR)
    assert f"No rule matches {lost}" in found.text
    assert why in found.text
    for sets in (["heartbeat", "watch"], ["heartbeat"]):
        less = judged(with_store(wake=asleep, enabledFeatureSets=sets))
        assert "wake-policy" not in {one.id for one in less}, "nothing of tasks is pushed then"


@pytest.mark.requirement("people.check-task-wakes")
def test_rules_that_let_tasks_wake_are_right() -> None:
    for rule in (always("work", tagsAny=["tasks:*"]), always("work", source="heart*")):
        asleep = {"policies": [OTHERS, rule], "default": "skip"}
        assert judged(with_store(wake=asleep)) == []


@pytest.mark.requirement("people.check-task-wakes")
def test_a_rule_for_tasks_below_one_that_takes_them_is_to_move() -> None:
    taker = {"name": "quiet", "match": {"tagsNone": ["heartbeat:*", "watch:*"]}, "behavior": "skip"}
    work = always("work", tagsAny=["tasks:*"])
    found = only(judged(with_store(wake={"policies": [taker, work]})))
    assert found.level is Level.ERROR
    assert '"quiet" comes first for claimable tasks and reviews' in found.text
    assert found.remedy == 'Move "work" above "quiet".'
    one = always("work", tagsAny=["tasks:available"])
    found = only(judged(with_store(wake={"policies": [taker, one]})))
    assert "Put this rule above it" in found.remedy, "moved, it would let reviews sleep"


@pytest.mark.requirement("people.check-task-wakes")
def test_a_rule_for_tasks_that_never_matches_is_named_where_they_wake_without_it() -> None:
    typo = always("work", tagsAny=["tasks:availble"])
    found = only(judged(with_store(wake={"policies": [RULE, typo]})))
    assert found.level is Level.WARNING
    assert '"work" never matches: it wants one of the tags tasks:availble' in found.text
    assert "woken for claimable tasks and reviews without it" in found.text
    others = with_store(wake={"policies": [RULE, typo]}, enabledFeatureSets=["heartbeat", "watch"])
    assert "wake-policy" not in {one.id for one in judged(others)}


@pytest.mark.requirement("people.check-task-wakes")
def test_what_sleeps_is_told_beside_what_wakes(tmp_path: Path) -> None:
    asleep = {"policies": [OTHERS], "default": "skip"}
    report = checking.check(
        written(tmp_path, f"sqlite:///{tmp_path}/s.db", wake=asleep), os.environ
    )
    assert report.status == 2
    (lines,) = (got.lines for got in report.got)
    assert any(
        line.startswith("Wakes: heartbeats, reminders, alerts and nudges.") for line in lines
    )
    assert any("let reviews and claimable tasks sleep" in line for line in lines)


@pytest.mark.requirement("people.check-task-wakes")
def test_the_rule_that_is_named_decides_on_what_wakes(tmp_path: Path) -> None:
    silent = {"intervalSeconds": 600, "paused": False, "message": "m", "deliveryMode": "silent"}
    (tmp_path / "config.json").write_text(json.dumps(silent), encoding="utf-8")
    quiet = {"name": "no-ticks", "match": {"tagsAny": ["heartbeat:tick"]}, "behavior": "skip"}
    wake = {"policies": [quiet, always("mine", source="heartbeat")]}
    (got,) = checking.check(
        written(tmp_path, f"sqlite:///{tmp_path}/s.db", wake=wake), os.environ
    ).got
    first, second, *_ = got.lines
    assert first.startswith("Wakes: reminders, ")
    assert first.endswith('The wake rule "mine" decides on reminders: always wakes.')
    assert "silently" not in first
    assert second.startswith("The wake rules let heartbeats sleep")


@pytest.mark.requirement("people.check-task-wakes")
def test_a_bridge_that_holds_tasks_back_is_found() -> None:
    members = {
        "transport": launch(env=FILES | {"HEARTBEAT_STORE": STORE}),
        "enableFeatureSets": ALL,
        "wake": {"hold": [["tasks:available"], ["tasks:review"]]},
    }
    found = judged(bridge(**members))
    assert [one.id for one in found] == ["wake-policy", "wake-policy"]
    assert "claimable tasks" in found[0].text
    assert "reviews" in found[1].text
    assert judged(bridge(**members | {"enableFeatureSets": ["heartbeat", "watch"]})) != found
