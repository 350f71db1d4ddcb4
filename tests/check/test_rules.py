"""What is wrong in an entry before anything is started."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.check import rules
from mcpl_heartbeat.check.case import Facts, FileFact
from mcpl_heartbeat.check.findings import Finding, Level, exit_code, graded
from mcpl_heartbeat.check.hosts import plan
from mcpl_heartbeat.check.recipe import Host, read

from .support import FILES, RULE, SHELL, bridge, cases_of, framework, judged, launch, only

DESKTOP = "claude_desktop_config.json"


def plain(**members):
    return {"mcpServers": {"heartbeat": launch(**members)}}


def test_what_is_right_gives_no_finding():
    assert judged(framework()) == []
    assert judged(bridge()) == []
    assert judged(plain(), name=DESKTOP) == []
    assert judged(launch()) == []


@pytest.mark.requirement("people.check-server-id")
def test_another_id_is_a_warning_and_with_silent_mode_an_error():
    wake = {"policies": []}
    assert only(judged(framework(wake, id="wake"))).level is Level.WARNING
    facts = Facts("/x", {name: FileFact(path) for name, path in FILES.items()}, silent=True)
    finding = only(judged(framework(wake, id="wake"), facts=facts))
    assert (finding.id, finding.level) == ("server-id", Level.ERROR)
    assert "Silent mode is on" in finding.text
    assert judged(bridge()) == []


@pytest.mark.requirement("people.check-server-id")
def test_the_remedies_for_another_id_agree():
    of_rule = [f for f in judged(framework(id="hb")) if f.id == "wake-policy"]
    assert only(of_rule).remedy == "Rename the entry to heartbeat; that mends this."

    rule = RULE | {"match": {"scope": ["mcpl:push-event"], "source": "hb"}}
    finding = only(judged(framework({"policies": [rule]}, id="hb")))
    assert finding.remedy == (
        "Rename the entry to heartbeat, and write heartbeat for hb in its wake rule."
    )

    skip = {"name": "all", "match": {}, "behavior": "skip"}
    first = [f for f in judged(framework({"policies": [skip]}, id="hb")) if f.level is Level.ERROR]
    assert '"source": "heartbeat"' in only(first).remedy


@pytest.mark.requirement("people.check-server-id")
def test_a_second_entry_is_not_told_to_take_the_firsts_id():
    config = framework({"policies": []})
    config["mcpServers"]["second"] = dict(config["mcpServers"]["heartbeat"])
    finding = only([f for f in judged(config) if f.id == "server-id"])
    assert "Rename" not in finding.remedy


@pytest.mark.requirement("people.check-feature-sets")
@pytest.mark.parametrize(
    ("config", "level", "where"),
    [
        (framework(enabledFeatureSets="absent"), Level.WARNING, "enabledFeatureSets"),
        (framework(enabledFeatureSets=[]), Level.ERROR, "enabledFeatureSets"),
        (framework(enabledFeatureSets=["other"]), Level.ERROR, "enabledFeatureSets"),
        (framework(enabledFeatureSets="heartbeat"), Level.ERROR, "enabledFeatureSets"),
        (framework(disabledFeatureSets=["heartbeat"]), Level.ERROR, "disabledFeatureSets"),
        (framework(disabledFeatureSets=["*"]), Level.ERROR, "disabledFeatureSets"),
        (bridge(enableFeatureSets=["x"]), Level.ERROR, "enableFeatureSets"),
        (bridge(enabledFeatureSets=["heartbeat"]), Level.WARNING, "enabledFeatureSets"),
    ],
)
def test_feature_sets(config, level, where):
    finding = only([found for found in judged(config) if found.level is not Level.NOTE])
    assert (finding.id, finding.level) == ("feature-sets", level)
    assert finding.where.endswith(f"heartbeat.{where}")


@pytest.mark.requirement("people.check-feature-sets")
def test_a_pattern_that_covers_it_enables_it():
    assert judged(framework(enabledFeatureSets=["*"])) == []
    assert judged(framework(disabledFeatureSets=["other", "heartbeat.*"])) == []


@pytest.mark.requirement("people.check-capabilities")
@pytest.mark.parametrize(
    ("config", "missing"),
    [
        (framework(disabledCapabilities=["pushEvents"]), "grant pushEvents"),
        (framework(disabledCapabilities=["*"]), "grant pushEvents and tools"),
        (framework(enabledCapabilities=["pushEvents"]), "grant tools"),
        (bridge(grant=[]), "grant pushEvents and tools"),
        (bridge(grant=["tools"]), "grant pushEvents"),
    ],
)
def test_capabilities(config, missing):
    finding = only(judged(config))
    assert (finding.id, finding.level) == ("capabilities", Level.ERROR)
    assert missing in finding.text


@pytest.mark.requirement("people.check-paths")
def test_state_paths():
    findings = judged(framework(env={}))
    assert [(f.id, f.level) for f in findings] == [("state-path", Level.WARNING)] * 2
    assert "It is not set" in findings[0].text
    assert '"HEARTBEAT_CONFIG_FILE": "/path' in findings[0].remedy

    def said(**env):
        return only(judged(framework(env=FILES | env)))

    assert "./x.json is relative" in said(HEARTBEAT_CONFIG_FILE="./x.json").text
    home = said(HEARTBEAT_CONFIG_FILE="~/x.json")
    assert home.level is Level.ERROR
    same = said(HEARTBEAT_CONFIG_FILE=FILES["HEARTBEAT_REMINDERS_FILE"])
    assert (same.level, "Both files are" in same.text) == (Level.ERROR, True)


@pytest.mark.requirement("people.check-paths")
def test_what_cannot_be_written_is_an_error():
    files = {name: FileFact(path, "it is a folder") for name, path in FILES.items()}
    findings = judged(framework(), facts=Facts("/x", files))
    assert [(f.id, f.level) for f in findings] == [("state-path", Level.ERROR)] * 2
    assert "it is a folder" in findings[0].text


@pytest.mark.requirement("people.check-paths")
@pytest.mark.parametrize(
    ("how", "level"), [("unusable", Level.WARNING), ("unreadable", Level.ERROR)]
)
def test_a_file_that_cannot_be_used_is_named(how, level):
    path = FILES["HEARTBEAT_CONFIG_FILE"]
    files = {name: FileFact(path) for name, path in FILES.items()}
    files["HEARTBEAT_CONFIG_FILE"] = FileFact(path, **{how: f"The config file {path} is odd."})
    finding = only(judged(framework(), facts=Facts("/x", files)))
    assert (finding.id, finding.level, path in finding.text) == ("state-file", level, True)


@pytest.mark.requirement("people.check-shared-file")
def test_two_servers_on_one_file():
    config = framework({"policies": []})
    config["mcpServers"]["second"] = dict(config["mcpServers"]["heartbeat"])
    findings = [finding for finding in judged(config) if finding.id == "shared-file"]
    assert [finding.level for finding in findings] == [Level.ERROR, Level.ERROR]
    assert "heartbeat and second" in findings[0].where


@pytest.mark.requirement("people.check-shared-file")
def test_a_server_that_works_on_them_now_is_a_note():
    files = {name: FileFact(path) for name, path in FILES.items()}
    finding = only(judged(framework(), facts=Facts("/x", files, held_by="process 7")))
    assert (finding.level, "process 7" in finding.text) == (Level.NOTE, True)


@pytest.mark.requirement("people.check-command")
@pytest.mark.parametrize(
    ("config", "id", "level"),
    [
        (framework(args=[]), "args", Level.ERROR),
        (framework(args="--stdio"), "args", Level.ERROR),
        (framework(command=""), "command", Level.ERROR),
        (framework(command="./bin/x"), "command", Level.WARNING),
        (framework(url="wss://x", command="absent", args="absent"), "transport", Level.ERROR),
        (framework(protocol="modern"), "transport", Level.ERROR),
        (framework(disabled=True), "disabled", Level.ERROR),
        (bridge(disabled=True), "disabled", Level.ERROR),
        (framework(command="${NOWHERE}/x"), "unset-variable", Level.ERROR),
    ],
)
def test_commands(config, id, level):
    finding = only([f for f in judged(config) if f.id != "x"])
    assert (finding.id, finding.level) == (id, level)


@pytest.mark.requirement("people.check-command")
def test_a_command_that_is_not_there():
    files = {name: FileFact(path) for name, path in FILES.items()}
    finding = only(judged(framework(), facts=Facts(None, files)))
    assert (finding.id, finding.level) == ("command", Level.ERROR)
    short = only(judged(plain(command="uvx"), name=DESKTOP))
    assert "PATH is short" in short.text
    assert judged(plain(command="uvx"), name=".mcp.json") == []


@pytest.mark.requirement("people.check-command")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("uvx", "Install uv (or write the whole path of uvx)"),
        ("/opt/bin/pipx", "Install pipx, or"),
        ("/home/you/.local/bin/mcpl-heartbeat", "Run `pipx install"),
        ("/x/mcpl-heartbeat", "Give the path that `python3 start.py install` prints."),
    ],
)
def test_the_remedy_fits_the_way_of_installing(command, words):
    files = {name: FileFact(path) for name, path in FILES.items()}
    finding = only(judged(framework(command=command), facts=Facts(None, files)))
    assert finding.remedy.startswith(words)


@pytest.mark.requirement("people.check-environment")
def test_variables_that_the_host_keeps_to_itself():
    shell = SHELL | {
        "HEARTBEAT_CONFIG_FILE": "/a", "PYTHONPATH": "/p", "UV_INDEX": "u", "PIP_CERT": "c",
        "AGENT_TIMEZONE": "Europe/Berlin",
    }  # fmt: skip

    def scrubbed(config, **how):
        found = [f for f in judged(config, environ=shell, **how) if f.id == "env"]
        return only(found).text if found else ""

    reminders_only = {"HEARTBEAT_REMINDERS_FILE": "/r"}
    assert "HEARTBEAT_CONFIG_FILE: set" in scrubbed(framework(env=reminders_only))
    assert "PYTHONPATH: set" in scrubbed(framework(command="/usr/bin/python3.11"))
    assert "PIP_CERT, UV_INDEX: set" in scrubbed(framework(command="uvx"))
    assert scrubbed(framework()) == ""
    assert scrubbed(framework(inheritEnv=True, env={})) == ""
    assert scrubbed(bridge()) == ""
    assert "AGENT_TIMEZONE: set" in scrubbed(plain(), name=DESKTOP)


@pytest.mark.requirement("people.check-environment")
def test_values_must_be_strings_and_zones_must_be_zones():
    finding = only(judged(framework(env=FILES | {"N": 5})))
    assert (finding.id, finding.level) == ("env", Level.ERROR)
    wrong = only(judged(framework(env=FILES | {"HEARTBEAT_CONFIG_FILE": True})))
    assert (wrong.id, '"true"' in wrong.remedy) == ("env", True)
    assert only(judged(plain(env=[]), name=DESKTOP)[:1]).id == "state-path"
    files = {name: FileFact(path) for name, path in FILES.items()}
    config = framework(env=FILES | {"AGENT_TIMEZONE": "Berlin"})
    assert only(judged(config, facts=Facts("/x", files, zone_known=False))).id == "timezone"
    config = framework() | {"agent": {"timezone": "Berlin"}}
    finding = only(judged(config, facts=Facts("/x", files, zone_known=False)))
    assert finding.where == "agent.timezone"


@pytest.mark.requirement("people.check-reconnect")
def test_reconnect():
    assert only(judged(framework(reconnect="absent"))).id == "reconnect"
    assert only(judged(bridge(reconnect=False))).id == "reconnect"
    assert judged(plain(), name=DESKTOP) == []


@pytest.mark.requirement("people.check-formats")
def test_names_that_the_host_does_not_read():
    finding = only(judged(framework(enabledTool=["*"])))
    assert (finding.id, "enabledTools" in finding.text) == ("unknown-member", True)
    assert only(judged(framework(Reconnect=True))).id == "unknown-member"
    assert judged(framework(comment="mine")) == []


@pytest.mark.requirement("people.check-outcome")
def test_tools_the_agent_does_not_get():
    finding = only(judged(framework(enabledTools=["heartbeat_*"])))
    assert "reminder_add, reminder_list, reminder_cancel" in finding.text
    finding = only(judged(framework(disabledTools=["heartbeat_trigger"])))
    assert finding.text == "The agent does not get heartbeat_trigger."


LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["*", "${A}"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6
)
MEMBERS = st.sampled_from(
    ["command", "args", "env", "url", "transport", "enabledFeatureSets", "disabledFeatureSets",
     "enabledCapabilities", "disabledCapabilities", "grant", "enableFeatureSets", "enabledTools",
     "wake", "reconnect", "protocol", "cwd", "inheritEnv"]
)  # fmt: skip


@pytest.mark.requirement("people.check-formats")
@given(st.dictionaries(MEMBERS, VALUES), st.sampled_from(Host), VALUES)
def test_whatever_stands_in_an_entry_is_judged(members, host, wake):
    config = {"mcpServers": {"heartbeat": members}, "modules": {"wake": wake}, "agent": wake}
    recipe, _ = read(json.dumps(config), "x.json", host, None)
    for entry in recipe.entries:
        planned = plan(recipe, entry, {})
        (case,) = cases_of(config, host=host)
        findings = rules.judge(case)
        assert all(finding.remedy for finding in findings if finding.level is not Level.NOTE)
        assert planned.files


@pytest.mark.requirement("people.check-exit")
def test_the_exit_code():
    def of(*levels, strict=False):
        return exit_code([Finding("x", level, "", "") for level in levels], strict=strict)

    assert of() == of(Level.NOTE, strict=True) == of(Level.WARNING, Level.NOTE) == 0
    assert of(Level.WARNING, strict=True) == 1
    assert of(Level.WARNING, Level.ERROR) == of(Level.ERROR, strict=True) == 2


@pytest.mark.requirement("people.check-report")
def test_the_gravest_come_first_and_none_twice():
    some = [Finding(str(n), level, "", "") for n, level in enumerate(reversed(Level))]
    assert [f.level for f in graded(some + some)] == list(Level)
