"""What a check finds of the shared store: its URL, its feature set, its tools, its wakes."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from mcpl_heartbeat.check import grants
from mcpl_heartbeat.check import main as checking
from mcpl_heartbeat.check.case import Facts
from mcpl_heartbeat.check.facts import gather
from mcpl_heartbeat.check.findings import Level
from mcpl_heartbeat.check.report import Report
from mcpl_heartbeat.storage.store.ports import Ask
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.arguments import RegisterArguments
from tests.check.storing import ALL, COMMAND, STORE, with_store, written
from tests.check.support import FILES, RULE, bridge, cases_of, framework, judged, launch, only
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

SCOPES = ["mcpl:push-event", "push:event"]


def wakes(report: Report) -> str:
    """The lines on what wakes the agent."""
    return "\n".join(
        line for got in report.got for line in got.lines if line.startswith(("Wakes:", "No "))
    )


@pytest.mark.requirement("people.check-store")
def test_a_recipe_with_a_store_can_be_right() -> None:
    assert judged(with_store()) == []
    assert judged(with_store(enabledFeatureSets=["*"])) == []


@pytest.mark.requirement("people.check-store-wakes")
def test_what_only_one_thing_alone_carries_is_no_sure_match() -> None:
    rules = [
        {"name": name, "match": match, "behavior": how}
        for name, match, how in (
            ("deaths", {"metadataTrue": ["generation"]}, "always"),
            ("most", {"tagsAny": ["heartbeat:*", "tasks:*", "watch:nudge"]}, "always"),
        )
    ]
    found = only(judged(with_store(wake={"policies": rules, "default": "skip"})))
    assert found.level is Level.ERROR
    assert "No rule matches alerts for sure" in found.text
    assert '"deaths" may not: several alerts in one push do not carry generation.' in found.text
    rules[0]["behavior"] = "skip"
    found, *_ = judged(with_store(wake={"policies": rules}))
    assert found.level is Level.WARNING
    assert "may keep the agent asleep: several alerts in one push do not carry" in found.text


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
    assert "No rule matches alerts, nudges, claimable tasks and reviews" in found.text


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
    assert "reminders, alerts, nudges, reviews and claimable tasks (" in wakes(report)
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.json"]


@pytest.mark.requirement("people.check-known-key")
def test_a_key_that_the_store_does_not_know_will_not_work() -> None:
    (case,) = cases_of(with_store(key="k" * 32))
    unknown = msgspec.structs.replace(case.facts, key_known=False)
    found = only(judged(with_store(key="k" * 32), facts=unknown))
    assert (found.id, found.level) == ("store", Level.ERROR)
    assert found.where.endswith("env.HEARTBEAT_AGENT_KEY")
    assert "register" in found.remedy
    unseen = msgspec.structs.replace(case.facts, key_unseen="the database is away")
    told = only(judged(with_store(key="k" * 32), facts=unseen))
    assert (told.id, told.level) == ("store", Level.NOTE)
    assert "the database is away" in told.text


@pytest.mark.requirement("people.check-known-key")
def test_a_key_is_looked_for_in_the_store_which_stays_as_it_is(tmp_path: Path) -> None:
    def known(secret: str) -> bool | None:
        (case,) = cases_of(with_store(f"sqlite:///{tmp_path}/store.db", key=secret))
        return gather(case.plan).key_known

    secret = "k" * 32
    assert known(secret) is False, "a store that is not there knows nobody"
    assert list(tmp_path.iterdir()) == []
    store = Store(f"sqlite:///{tmp_path}/store.db")
    store.open()
    store.answer([Ask("register", RegisterArguments(agent_secret=secret))])
    for _ in range(2):  # while somebody works on it, and when nobody does
        assert known(secret) is True
        assert known("another secret of thirty-two characters") is False
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        assert known(secret) is True
        after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        assert after.keys() == before.keys()
        assert after["store.db"] == before["store.db"]
        store.close()


@pytest.mark.requirement("people.check-known-key")
def test_it_is_looked_for_on_postgresql_too(postgres_url: str) -> None:
    def known(secret: str) -> bool | None:
        (case,) = cases_of(with_store(postgres_url, key=secret))
        return gather(case.plan).key_known

    store = Store(postgres_url)
    store.open()
    store.answer([Ask("register", RegisterArguments(agent_secret="k" * 32))])
    store.close()
    assert known("k" * 32) is True
    assert known("n" * 32) is False


@pytest.mark.requirement("people.check-known-key")
def test_a_store_that_cannot_be_looked_into_is_no_verdict(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    file.write_text("no database at all, but a letter to a friend", "utf-8")
    (case,) = cases_of(with_store(f"sqlite:///{file}", key="k" * 32))
    facts = gather(case.plan)
    assert (facts.key_known, "database" in facts.key_unseen) == (None, True)
    (case,) = cases_of(with_store(f"sqlite:///{tmp_path}/other.db", key="short"))
    assert gather(case.plan).key_known is None


@pytest.mark.requirement("people.check-store-names")
@pytest.mark.parametrize(
    ("env", "said", "remedy"),
    [
        ({}, "HEARTBEAT_STORE is not set:", "sqlite:////"),
        ({"HEARTBEAT_STORE": " "}, "HEARTBEAT_STORE is empty:", "sqlite:////"),
        ({"HEARTBEAT_STOER": STORE}, "there is HEARTBEAT_STOER", "Call HEARTBEAT_STOER"),
    ],
)
def test_sets_that_need_a_store_without_one_are_named(
    env: dict[str, str], said: str, remedy: str
) -> None:
    config = framework(env=FILES | env, enabledFeatureSets=ALL)
    (found,) = [found for found in judged(config) if found.id == "store"]
    assert found.level is Level.WARNING
    assert found.where.endswith("enabledFeatureSets")
    assert "watch and tasks" in found.text
    assert said in found.text
    assert remedy in found.remedy
    members = {"transport": launch(env=FILES | env), "enableFeatureSets": ["heartbeat", "tasks"]}
    assert "tasks" in next(found.text for found in judged(bridge(**members)) if found.id == "store")


@pytest.mark.requirement("people.check-store-names")
@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("HEARTBEAT_STOER", "HEARTBEAT_STORE"),
        ("heartbeat_store", "HEARTBEAT_STORE"),
        ("HEARTBEAT_STORE_URL", "HEARTBEAT_STORE"),
        ("HEARTBEAT_SECRET", None),
        ("HEARTBEAT_AGENT_ID", None),
        ("PATH", None),
    ],
)
def test_a_variable_that_is_misspelled_is_named(name: str, right: str | None) -> None:
    found = judged(framework(env=FILES | {name: STORE}))
    assert [one.remedy for one in found] == ([] if right is None else [f"Call it {right}."])
    assert all(one.level is Level.WARNING for one in found)
    assert judged(with_store(env=FILES | {"HEARTBEAT_STORE": STORE, name: STORE})) == []


@pytest.mark.requirement("people.check-store-names")
def test_a_misspelled_variable_of_this_shell_is_named() -> None:
    environ = os.environ | {"HEARTBEAT_STOER": STORE}
    report = checking.check(checking.Options(starts=False), environ)
    assert any("HEARTBEAT_STOER" in found.text for found in report.findings)


@pytest.mark.requirement("people.check-feature-sets")
def test_a_set_that_does_not_exist_is_mentioned() -> None:
    found = judged(with_store(enabledFeatureSets=["heartbeat", "wach", "tasks"]))
    assert {one.level for one in found} == {Level.WARNING}
    assert any('"wach"' in one.text and one.remedy == 'Write "watch".' for one in found)
    other = only(judged(with_store(enabledFeatureSets=[*ALL, "zzz", "z.*"])))
    assert (other.level, '"zzz"' in other.text) == (Level.NOTE, True)


@pytest.mark.requirement("people.check-store-wakes")
@pytest.mark.parametrize(
    ("url", "key"), [("nonsense", ""), ("sqlite:///{}/store.db", "short"), ("", "k" * 32)]
)
def test_what_the_store_cannot_do_is_not_promised(tmp_path: Path, url: str, key: str) -> None:
    url = url.format(tmp_path) or f"sqlite:///{tmp_path}/none-yet.db"
    report = checking.check(written(tmp_path, url, key), os.environ)
    assert report.status == 2
    said = wakes(report)
    assert "Wakes: heartbeats and reminders." in said
    assert "No alerts and nudges" in said


@pytest.mark.requirement("people.check-store-wakes")
@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["heartbeat", "watch"], "Wakes: heartbeats, reminders, alerts and nudges."),
        (["heartbeat", "tasks"], "Wakes: heartbeats, reminders, reviews and claimable tasks ("),
        (["heartbeat"], "Wakes: heartbeats and reminders."),
    ],
)
def test_the_wakes_are_those_of_the_sets_that_are_enabled(
    tmp_path: Path, sets: list[str], said: str
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    report = checking.check(written(tmp_path, url, enabledFeatureSets=sets), os.environ)
    assert said in wakes(report)


def test_facts_without_a_store_say_nothing_of_one() -> None:
    assert Facts(command=None, files={}).store_trouble == ""
