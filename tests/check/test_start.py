"""Checks that start something: the real server as each host does, and servers that fail."""

import fcntl
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mcpl_heartbeat.check import main as checking
from mcpl_heartbeat.check.findings import Level

from .support import RULE, bridge, framework, launch

COMMAND = str(Path(sys.executable).with_name("mcpl-heartbeat"))
FAKES = str(Path(__file__).with_name("fakes.py"))


@pytest.fixture
def files(tmp_path):
    names = ("CONFIG", "REMINDERS")
    return {f"HEARTBEAT_{name}_FILE": str(tmp_path / f"{name.lower()}.json") for name in names}


def check(config, tmp_path, name="recipe.json", **options):
    path = tmp_path / name
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return checking.check(checking.Options(str(path), **options), os.environ)


def real(files, **members):
    return {"command": COMMAND, "args": ["--stdio"], "env": files} | members


def fake(kind, files):
    return {"command": sys.executable, "args": [FAKES, kind, "--stdio"], "env": files}


def gets(report):
    return "\n".join(line for got in report.got for line in got.lines)


@pytest.mark.requirement("people.check-outcome")
def test_what_is_right_wakes(files, tmp_path):
    report = check(framework(**real(files)), tmp_path, strict=True)
    assert (report.findings, report.status) == ((), 0)
    outcome = report.outcomes["heartbeat"]
    assert (outcome.wakes, outcome.granted) == (True, ("pushEvents", "tools"))
    assert len(outcome.tools) == 6
    assert 'the wake rule "heartbeat-wake" decides' in gets(report).replace("The", "the")
    assert "delivery=ok" in gets(report)


@pytest.mark.requirement("people.check-outcome")
def test_a_swallowing_rule_keeps_the_agent_asleep(files, tmp_path):
    ambient = {"name": "ambient", "match": {"scope": ["mcpl:push-event"]}, "behavior": "skip"}
    report = check(framework({"policies": [ambient, RULE]}, **real(files)), tmp_path)
    assert report.status == 2
    assert "the wake rules let it sleep" in gets(report)


@pytest.mark.requirement("people.check-wake-policy")
def test_the_hosts_own_rules_can_be_given(files, tmp_path):
    gate = tmp_path / "gate.json"
    gate.write_text('{"policies": [], "default": "defer"}', encoding="utf-8")
    report = check(framework(**real(files)), tmp_path, gate=str(gate), starts=False)
    assert [finding.id for finding in report.findings] == ["wake-policy"]
    report = check(framework(**real(files)), tmp_path, gate=str(tmp_path / "no"), starts=False)
    assert report.status == 2
    assert "gate.json" in report.findings[0].remedy


@pytest.mark.requirement("people.check-outcome")
@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"disabledCapabilities": ["pushEvents"]}, "effectiveCapabilities lacks pushEvents"),
        ({"enabledFeatureSets": []}, "enabled list leaves heartbeat out"),
        ({"disabledFeatureSets": ["heartbeat"]}, "disabled list names heartbeat"),
    ],
)
def test_why_there_are_no_wakes(files, tmp_path, members, why):
    report = check(framework(**real(files), **members), tmp_path)
    assert report.status == 2
    assert why in gets(report)
    assert report.outcomes["heartbeat"].wakes is False
    assert len(report.outcomes["heartbeat"].tools) == 6


@pytest.mark.requirement("people.check-outcome")
def test_the_bridge_and_plain_clients(files, tmp_path):
    config = bridge(transport=real(files))
    report = check(config, tmp_path, strict=True)
    assert (report.status, report.outcomes["heartbeat"].wakes) == (0, True)
    config = {"mcpServers": {"heartbeat": real(files)}}
    report = check(config, tmp_path, name="claude_desktop_config.json", strict=True)
    assert (report.status, report.outcomes["heartbeat"].wakes) == (0, False)
    assert "Claude Desktop speaks no MCPL" in gets(report)
    assert "say that nothing will fire" in gets(report)


@pytest.mark.requirement("people.check-server-id")
def test_silent_wakes_by_another_id_are_refused(files, tmp_path):
    silent = {"intervalSeconds": 600, "paused": False, "message": "m", "deliveryMode": "silent"}
    Path(files["HEARTBEAT_CONFIG_FILE"]).write_text(json.dumps(silent), encoding="utf-8")
    report = check(framework(**real(files)), tmp_path, strict=True)
    assert report.status == 0
    assert "heartbeats silently" in gets(report)
    report = check(framework({"policies": []}, id="hb", **real(files)), tmp_path)
    levels = {finding.id: finding.level for finding in report.findings}
    assert levels["server-id"] is Level.ERROR
    assert levels["silent"] is Level.WARNING


@pytest.mark.requirement("people.check-takes-nothing")
def test_what_is_due_stays_due(files, tmp_path):
    config = {"intervalSeconds": 60, "paused": False, "message": "m", "nextAt": 1000}
    due = {"id": "rem_1", "message": "x", "createdAt": 1, "fireAt": 2, "everySeconds": None}
    stored = {"CONFIG": json.dumps(config), "REMINDERS": json.dumps([due])}
    for name, text in stored.items():
        Path(files[f"HEARTBEAT_{name}_FILE"]).write_text(text, encoding="utf-8")
    before = set(tmp_path.iterdir())
    report = check(framework(**real(files)), tmp_path, strict=True)
    assert report.status == 0
    assert "reminders=1" in gets(report)
    for name, text in stored.items():
        assert Path(files[f"HEARTBEAT_{name}_FILE"]).read_text(encoding="utf-8") == text
    assert set(tmp_path.iterdir()) - before == {tmp_path / "recipe.json"}


@pytest.mark.requirement("people.check-takes-nothing")
def test_what_is_due_stays_due_where_a_wrapper_names_the_files(files, tmp_path):
    due = {"id": "rem_1", "message": "x", "createdAt": 1, "fireAt": 2, "everySeconds": None}
    real_file = tmp_path / "real.json"
    real_file.write_text(json.dumps([due]), encoding="utf-8")
    wrapper = tmp_path / "wrapper"
    names_it = f"export HEARTBEAT_REMINDERS_FILE={real_file}"
    wrapper.write_text(f'#!/bin/sh\n{names_it}\nexec {COMMAND} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    report = check(framework(**real(files, command=str(wrapper))), tmp_path)
    assert report.outcomes["heartbeat"].wakes is True
    assert "reminders=1" in gets(report)
    assert [row["id"] for row in json.loads(real_file.read_text(encoding="utf-8"))] == ["rem_1"]


@pytest.mark.requirement("people.check-timeout")
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "dies",
            "The server ended before it answered initialize (exit code 3). It said: no",
        ),
        ("hangs", "The server did not answer initialize within 1 s."),
        ("no-receipt", "The server did not answer featureSets/update within 1 s."),
        ("newer", "asked for protocol 2024-11-05 the server answered 2025-11-25"),
        ("refuses", "the server refused the policy: not on Sundays"),
        ("plain", "the server offers no MCPL"),
        ("toolless", "no heartbeat_trigger to try it with"),
        ("odd", "The server's answers are not MCP's"),
        ("works not", "No wake will reach the agent: Nothing today."),
    ],
)
def test_servers_that_fail(files, tmp_path, kind, words):
    # A second is long for those that answer nothing; the others answer at once or die.
    limit = 1.0 if kind in ("hangs", "no-receipt") else None
    report = check(framework(**fake(kind, files)), tmp_path, seconds=limit)
    assert report.status == 2
    said = "\n".join(finding.text for finding in report.findings)
    assert words.lower() in said.lower()


@pytest.mark.requirement("people.check-outcome")
def test_stray_lines_on_stdout_are_a_warning(files, tmp_path):
    report = check(framework(**fake("chatty", files)), tmp_path)
    assert any("Starting up!" in f.text for f in report.findings if f.id == "stdout")


@pytest.mark.requirement("people.check-command")
def test_a_command_that_cannot_be_run(files, tmp_path):
    for command in (str(tmp_path / "missing"), str(tmp_path), "no-such-program-here"):
        report = check(framework(**real(files, command=command)), tmp_path)
        assert report.status == 2
        assert report.findings[0].id == "command"
        assert "Its command cannot be started" in gets(report)


@pytest.mark.requirement("people.check-command")
def test_an_argument_that_names_nothing(files, tmp_path):
    args = [str(tmp_path / "index.js"), str(tmp_path), "--stdio"]
    report = check(framework(**real(files, args=args)), tmp_path, starts=False)
    assert [finding.text for finding in report.findings] == [f"There is nothing at {args[0]}."]


@pytest.mark.requirement("people.check-command")
def test_a_slow_start_is_a_warning(files, tmp_path, monkeypatch):
    monkeypatch.setattr("mcpl_heartbeat.check.start.SLOW_SECONDS", 0.0)
    report = check(framework(**real(files)), tmp_path, strict=True)
    assert [finding.id for finding in report.findings] == ["slow-start"]
    assert report.status == 1


@pytest.mark.requirement("people.check-paths")
@pytest.mark.parametrize(
    ("path", "words"),
    [("", "it is a folder"), ("recipe.json/x.json", "is no folder"), ("new/deep/x.json", None)],
)
def test_paths_are_looked_up(files, tmp_path, path, words):
    files["HEARTBEAT_CONFIG_FILE"] = str(tmp_path / path)
    report = check(framework(**real(files)), tmp_path, starts=False)
    assert [words in finding.text for finding in report.findings] == ([True] if words else [])


@pytest.mark.requirement("people.check-paths")
def test_a_file_that_cannot_be_used_is_a_warning_with_its_real_path(files, tmp_path):
    torn = Path(files["HEARTBEAT_CONFIG_FILE"])
    torn.write_text("root:x:0:0", encoding="utf-8")
    report = check(framework(**real(files)), tmp_path)
    assert [(f.id, f.level) for f in report.findings] == [("state-file", Level.WARNING)]
    assert str(torn) in report.findings[0].text
    assert "copied aside" in report.findings[0].text
    assert torn.read_text(encoding="utf-8") == "root:x:0:0"


@pytest.mark.requirement("people.check-shared-file")
def test_a_lock_that_is_held_is_seen(files, tmp_path):
    lock = tmp_path / ".config.json.lock"
    lock.write_text("4711\n", encoding="utf-8")
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        report = check(framework(**real(files)), tmp_path, starts=False)
        assert [(f.id, "process 4711" in f.text) for f in report.findings] == [("in-use", True)]
    assert check(framework(**real(files)), tmp_path, starts=False).findings == ()


@pytest.mark.requirement("people.check-environment")
def test_the_server_sees_only_what_the_host_passes_on(files, tmp_path, monkeypatch):
    spy = tmp_path / "spy"
    seen = tmp_path / "seen"
    spy.write_text(f'#!/bin/sh\nenv > {seen}\nexec {COMMAND} "$@"\n', encoding="utf-8")
    spy.chmod(0o755)
    monkeypatch.setenv("SOME_SECRET", "s")
    monkeypatch.setenv("LC_TIME", "C")
    report = check(framework(**real(files, command=str(spy))), tmp_path, strict=True)
    assert report.status == 0
    names = {line.partition("=")[0] for line in seen.read_text(encoding="utf-8").splitlines()}
    assert "SOME_SECRET" not in names
    assert {"PATH", "LC_TIME", *files} <= names


def run(*arguments, **environment):
    return subprocess.run(
        [COMMAND, "check", *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        timeout=120,
        check=False,
        text=True,
    )


@pytest.mark.requirement("people.check-report", "people.check-exit")
def test_the_command_in_a_pipe(files, tmp_path):
    path = tmp_path / "recipe.json"
    config = framework(**real(files, reconnect="absent"))
    path.write_text(f"// mine\n{json.dumps(config)}", encoding="utf-8")
    said = run(path)
    # On a busy machine it takes long enough to be told what takes so long.
    assert said.stderr in {"", f"{checking.STARTING}\n"}
    assert said.returncode == 0
    assert "\x1b" not in said.stdout
    lines = said.stdout.splitlines()
    assert lines[0] == f"{path}, as agent-framework reads it"
    assert any(line.startswith("WARNING mcpServers.heartbeat.reconnect: ") for line in lines)
    assert any(line.endswith('→ Add "reconnect": true.') for line in lines)
    assert "What an agent gets from heartbeat:" in lines
    assert run(path, "--strict", "--no-start").returncode == 1


@pytest.mark.requirement("people.check-report")
def test_the_command_as_json(files, tmp_path):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(framework(id="hb", **real(files))), encoding="utf-8")
    said = json.loads(run(path, "--json").stdout)
    assert {"checked", "host", "findings", "servers", "status"} == said.keys()
    assert {"id", "level", "where", "text", "remedy"} == said["findings"][0].keys()
    assert said["servers"]["hb"]["wakes"] is True
    assert said["servers"]["hb"]["gets"]


@pytest.mark.requirement("people.check-report")
def test_the_table_on_a_terminal(files, tmp_path):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(framework(**real(files, reconnect="absent"))), encoding="utf-8")
    said = run(path, "--no-start", FORCE_COLOR="1", COLUMNS="100")
    assert "┃" in said.stdout
    assert '→ Add "reconnect": true.' in said.stdout


@pytest.mark.requirement("people.check-report")
def test_at_80_columns_what_is_to_be_pasted_stays_whole(files, tmp_path):
    path = tmp_path / "recipe.json"
    skip = {"name": "all", "match": {}, "behavior": "skip"}
    path.write_text(json.dumps(framework({"policies": [skip]}, **real(files))), encoding="utf-8")
    said = run(path, "--no-start", FORCE_COLOR="1", COLUMNS="80").stdout
    assert '"match": {"scope": ["mcpl:push-event"], "source": "heartbeat"}, "behavior"' in said
    assert "see (1) below" in " ".join(said.split())


@pytest.mark.requirement("people.check-formats", "people.check-exit")
def test_files_that_are_no_config(tmp_path):
    (tmp_path / "latin").write_bytes(b'{"\xff": 1}')
    for name in ("missing.json", "latin"):
        said = run(tmp_path / name)
        assert said.returncode == 2
        assert "ERROR" in said.stdout
        assert "Traceback" not in said.stderr


@pytest.mark.requirement("people.check-outcome")
def test_without_a_recipe_it_checks_itself(files, tmp_path):
    said = run(**files)
    assert said.returncode == 0, said.stdout
    assert "Nothing is wrong in the wiring." in said.stdout
    assert "Wakes: heartbeats and reminders." in said.stdout


@pytest.mark.requirement("people.check-timeout")
def test_a_server_that_stays_is_a_warning_and_is_ended(files, tmp_path, monkeypatch):
    monkeypatch.setattr("mcpl_heartbeat.demo.host.EXIT_SECONDS", 0.5)
    started = time.monotonic()
    report = check(framework(**fake("stays", files)), tmp_path)
    assert any(finding.id == "stop" for finding in report.findings)
    assert time.monotonic() - started < 50


@pytest.mark.requirement("people.check-shared-file")
def test_two_entries_are_both_started(files, tmp_path):
    config = framework(**real(files))
    other = {name: f"{path}2" for name, path in files.items()}
    config["mcpServers"]["second"] = launch(**real(other), enabledFeatureSets=["heartbeat"])
    report = check(config, tmp_path)
    assert set(report.outcomes) == {"heartbeat", "second"}
    assert all(outcome.wakes for outcome in report.outcomes.values())


class Heard(io.StringIO):
    """A stream that tells when something was written to it."""

    def __init__(self, *, terminal):
        super().__init__()
        self.terminal, self.written = terminal, threading.Event()

    def isatty(self):
        return self.terminal

    def flush(self):
        self.written.set()


@pytest.mark.requirement("people.check-progress")
def test_on_a_terminal_it_is_said_at_once_what_is_waited_for():
    heard = Heard(terminal=True)
    with checking.telling(heard, 3_600):
        assert heard.getvalue() == f"{checking.STARTING}\n"
    assert heard.getvalue() == f"{checking.STARTING}\n"


@pytest.mark.requirement("people.check-progress")
def test_elsewhere_it_is_said_once_it_takes_long():
    quick, slow = Heard(terminal=False), Heard(terminal=False)
    with checking.telling(quick, 3_600):
        pass
    with checking.telling(slow, 0.001):
        assert slow.written.wait(60)
    assert (quick.getvalue(), slow.getvalue()) == ("", f"{checking.STARTING}\n")


@pytest.mark.requirement("people.check-progress")
@pytest.mark.parametrize("starts", [True, False])
def test_it_is_said_while_a_server_is_tried_out(files, tmp_path, monkeypatch, starts):
    heard = Heard(terminal=True)
    monkeypatch.setattr(sys, "stderr", heard)
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(framework(**real(files))), encoding="utf-8")
    checking.run(checking.Options(str(path), starts=starts))
    assert heard.getvalue() == (f"{checking.STARTING}\n" if starts else "")
    path.write_text(json.dumps(framework(**real(files, command="/no/such"))), encoding="utf-8")
    checking.run(checking.Options(str(path), starts=starts))
    assert heard.getvalue() == (f"{checking.STARTING}\n" if starts else "")
