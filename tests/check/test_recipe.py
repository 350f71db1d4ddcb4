"""Which host's a config is, which entries are ours, and what is no config at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.check import jsonc
from mcpl_heartbeat.check.findings import Level
from mcpl_heartbeat.check.hosts import plan
from mcpl_heartbeat.check.recipe import Host, read

from .support import bridge, framework, launch, only, recipe_of

pytestmark = pytest.mark.requirement("people.check-formats")


def parsed(text):
    found = jsonc.parse(text)
    assert isinstance(found, jsonc.Parsed), found
    return found


def test_comments_are_skipped_and_strings_are_not():
    found = parsed('\ufeff{ // one\n "a": "http://x /* y */", /* two\n lines */ "b": "\\"//" }')
    assert found.value == {"a": "http://x /* y */", "b": '"//'}
    assert found.comments
    assert not parsed('{"a": "//"}').comments


def test_where_it_breaks_is_named_past_the_comments():
    assert "line 3, column 1" in jsonc.parse('{ /* x\n */ "a": 1\n"b": 2 }')
    assert "comma before the closing bracket" in jsonc.parse('{"a": [1, 2,]}')
    assert "comma before the closing bracket" in jsonc.parse('{"a": 1,}')
    assert jsonc.parse("[" * 100_000) == "it is nested too deeply"


def test_an_empty_file_is_called_empty():
    assert jsonc.parse("\ufeff \n") == "it is empty"
    assert jsonc.parse("// mine\n") == "it holds nothing but comments"
    _, findings = read("", "x.json", None, None)
    assert "it is empty" in only(findings).text
    assert "line" not in only(findings).remedy


@pytest.mark.parametrize(
    ("name", "right"), [("mcpServer", "mcpServers"), ("mcpservers", "mcpServers"),
                        ("server", "servers"), ("hooks", None)],
)  # fmt: skip
def test_a_slip_in_the_name_of_the_servers(name, right):
    _, findings = read(json.dumps({name: {"heartbeat": launch()}}), "x.json", None, None)
    said = f"did you mean {right}?" in only(findings).text
    assert said is (right is not None)


@given(st.text(alphabet='{}[]",:/*\\\n1a') | st.text())
def test_no_text_raises(text):
    jsonc.parse(text)
    read(text, "x.json", None, None)


def json_values(leaves):
    return st.recursive(
        leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
    )


@given(json_values(st.none() | st.booleans() | st.integers() | st.text()))
def test_json_is_read_as_it_is(value):
    assert parsed(json.dumps(value)).value == value


def test_a_name_given_twice_is_a_warning():
    text = '{"mcpServers": {"heartbeat": {"command": "a"}, "heartbeat": {"command": "b"}}}'
    recipe, findings = read(text, "x.json", None, None)
    assert recipe.entries[0].launch["command"] == "b"
    assert only(findings).id == "twice"
    assert "heartbeat" in findings[0].text


@pytest.mark.parametrize(
    ("config", "name", "host"),
    [
        (framework(), "recipe.json", Host.AGENT_FRAMEWORK),
        ({"mcpServers": {"heartbeat": launch()}}, "mcpl-servers.json", Host.AGENT_FRAMEWORK),
        ({"mcpServers": {"heartbeat": launch(reconnect=True)}}, "x", Host.AGENT_FRAMEWORK),
        ({"agent": {}, "mcpServers": {"heartbeat": launch()}}, "x", Host.AGENT_FRAMEWORK),
        (bridge(), "config.json", Host.BRIDGE),
        ({"mcpServers": {"heartbeat": launch()}}, "/p/.mcp.json", Host.CLAUDE_CODE),
        ({"mcpServers": {"heartbeat": launch()}}, "claude-code.json", Host.CLAUDE_CODE),
        ({"mcpServers": {"heartbeat": launch()}}, "a/claude_desktop_config.json",
         Host.CLAUDE_DESKTOP),
        ({"mcpServers": {"heartbeat": launch()}}, "settings.json", Host.MCP),
        ({"servers": {"heartbeat": launch()}}, "mcp.json", Host.MCP),
        (launch(), "entry.json", Host.MCP),
    ],
)  # fmt: skip
def test_the_host_is_told_from_the_config(config, name, host):
    recipe = recipe_of(config, name)
    assert recipe.host is host
    assert recipe.entries[0].launch["args"] == ["--stdio"]


def test_the_host_can_be_said():
    recipe = recipe_of({"mcpServers": {"heartbeat": launch()}}, "x", Host.AGENT_FRAMEWORK)
    assert recipe.host is Host.AGENT_FRAMEWORK


def test_our_entries_are_found_by_id_and_by_command():
    config = {
        "mcpServers": {
            "files": {"command": "npx", "args": ["server-filesystem"]},
            "wake": launch(),
            "other": {"command": "node", "args": ["/x/heartbeat-mcpl/dist/src/index.js"]},
            "uvx": {"command": "uvx", "args": ["--from", "/x/mcpl-heartbeat", "mcpl-heartbeat"]},
            "heartbeat": {"command": "./run.sh"},
            "odd": "no object",
        }
    }
    ids = [entry.id for entry in recipe_of(config).entries]
    assert ids == ["wake", "other", "uvx", "heartbeat"]
    recipe, _ = read(json.dumps(config), "x", None, "files")
    assert [entry.id for entry in recipe.entries] == ["files"]


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("{", "json"),
        ("[]", "shape"),
        ("{}", "no-server"),
        ('{"mcpServers": {"files": {"command": "x"}}}', "no-server"),
        ('{"mcpServers": []}', "no-server"),
    ],
)
def test_what_is_no_config_of_ours_is_an_error(text, id):
    recipe, findings = read(text, "x.json", None, None)
    assert recipe is None
    assert (only(findings).id, findings[0].level) == (id, Level.ERROR)
    assert findings[0].remedy


def test_a_server_that_is_not_there_is_an_error_that_lists_those_that_are():
    _, findings = read(json.dumps(framework()), "x.json", None, "hb")
    assert "heartbeat" in only(findings).text


@pytest.mark.requirement("people.check-environment")
def test_a_host_passes_on_what_it_passes_on():
    shell = {
        "PATH": "/bin", "LC_ALL": "C", "TZ": "UTC", "XDG_STATE_HOME": "/s", "SECRET": "s",
        "PYTHONPATH": "/p", "AGENT_TIMEZONE": "Europe/Berlin",
    }  # fmt: skip

    def child(config, name="x.json"):
        recipe = recipe_of(config, name)
        return plan(recipe, recipe.entries[0], shell).environment

    passed = child(framework(env={"A": "b"}))
    assert passed == {
        "PATH": "/bin", "LC_ALL": "C", "TZ": "UTC", "AGENT_TIMEZONE": "Europe/Berlin", "A": "b"
    }  # fmt: skip
    assert child(framework(inheritEnv=True)).keys() >= shell.keys()
    assert child(bridge()).keys() >= shell.keys()
    desktop = child({"mcpServers": {"heartbeat": launch(env={})}}, "claude_desktop_config.json")
    assert desktop == {"PATH": "/bin"}


def test_variables_are_put_in_where_the_host_does():
    config = framework(command="${BIN}/x", env={"A": "${HOME}", "B": "${NO:-d}", "C": "${NO}"})
    recipe = recipe_of(config)
    planned = plan(recipe, recipe.entries[0], {"BIN": "/b", "HOME": "/h"})
    assert planned.command == "/b/x"
    assert (planned.environment["A"], planned.environment["B"]) == ("/h", "d")
    assert planned.unset == ("NO",)
    plain = recipe_of(launch(command="${BIN}/x"))
    assert plan(plain, plain.entries[0], {}).command == "${BIN}/x"
