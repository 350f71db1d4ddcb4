"""How a server process starts, ends and keeps its pipes, seen from outside."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.pipes import command
from tests.e2e.wire import NEVER, error, is_reminder


@pytest.mark.requirement(
    "field.1", "stdio.ends-quickly", "stdio.ends-without-loss", "host.36", "seed.reminder.path"
)
def test_closing_stdin_ends_it_with_the_reminder_on_disk(host: Host) -> None:
    name = host.add("x", inHours=1)
    assert host.end() == 0
    assert [row["id"] for row in host.rows()] == [name]
    assert host.rows()[0]["everySeconds"] is None


@pytest.mark.requirement("field.2", "stdio.ends-quickly")
def test_started_on_dev_null_it_ends_silently(spawn: Spawn) -> None:
    server = spawn(stdin=subprocess.DEVNULL)
    assert server.exit_status() == 0
    assert server.lines == []


PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.pid, flush=True)
child.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
child.stdin.flush()
print(child.stdout.readline().decode(), flush=True)
import time
time.sleep(600)
"""


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return not Path("/proc/self").exists()
        return False
    return state not in "ZX"


@pytest.mark.requirement("field.4")
def test_killing_its_parent_ends_it(tmp_path: Path, spawn: Spawn) -> None:
    environment = os.environ | {
        "HEARTBEAT_CONFIG_FILE": str(tmp_path / "c.json"),
        "HEARTBEAT_REMINDERS_FILE": str(tmp_path / "r.json"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *command()],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=tmp_path,
    ) as parent:
        assert parent.stdout is not None
        try:
            pid = int(parent.stdout.readline())
            assert json.loads(parent.stdout.readline())["result"] == {}
            assert _alive(pid)
        finally:
            parent.kill()
        limit = time.monotonic() + 20
        while _alive(pid) and time.monotonic() < limit:
            time.sleep(0.05)
        assert not _alive(pid)


@pytest.mark.requirement("field.5", "stdio.terminal-restored", "stdio.ends-quickly")
def test_one_interrupt_on_a_terminal_ends_it(spawn: Spawn) -> None:
    leader, follower = pty.openpty()
    try:
        before = termios.tcgetattr(follower)
        server = spawn(stdin=follower)
        os.write(leader, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.wait("reply", lambda: [m for m in server.messages if m.get("id") == 1])
        server.signal(signal.SIGINT)
        assert server.exit_status() in (0, -signal.SIGINT, 128 + signal.SIGINT)
        assert termios.tcgetattr(follower) == before
        assert "KeyboardInterrupt" not in server.stderr
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.requirement("host.36", "stdio.ends-quickly", "stdio.ends-without-loss")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_loss(host: Host, number: signal.Signals) -> None:
    ids = [host.request("tools/call", _add(n)) for n in range(20)]
    for one in ids:
        assert not host.called(host.reply(one)).is_error
    host.signal(number)
    assert host.exit_status() in (0, -number, 128 + number)
    assert len(host.rows()) == 20


def _add(number: int) -> dict[str, object]:
    return {"name": "reminder_add", "arguments": {"message": f"m{number}", "inHours": 1}}


@pytest.mark.requirement("field.7", "stdio.ends-quickly")
def test_a_host_that_closed_stdout_ends_it_quietly(tmp_path: Path, spawn: Spawn) -> None:
    server = spawn().ready()
    server.add("x", inHours=1)
    before = server.rows()
    server.close_stdout()
    with contextlib.suppress(OSError):
        server.request("tools/call", {"name": "heartbeat_status"})
    server.exit_status()
    assert server.rows() == before
    assert "BrokenPipe" not in server.stderr


@pytest.mark.requirement("field.8", "stdio.one-line")
def test_a_last_line_without_newline_is_answered(spawn: Spawn) -> None:
    server = spawn()
    server.write(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
    assert server.end() == 0
    assert [m["id"] for m in server.messages] == [9]


@pytest.mark.requirement("field.10", "mcp.ping-meanwhile", "policy.at-once", "host.8", "host.19")
def test_ping_and_policy_are_answered_while_a_push_is_out(spawn: Spawn) -> None:
    server = spawn(answers=NEVER).ready()
    assert not server.call("heartbeat_trigger").is_error
    server.wait_push()
    server.ping()
    assert server.policy()["mode"] == "full"
    assert "Heartbeat ACTIVE" in server.status()
    assert not server.call("reminder_add", message="x", inHours=1).is_error


@pytest.mark.requirement("stdio.half-line")
def test_a_push_leaves_while_half_a_line_waits(spawn: Spawn) -> None:
    host = spawn(answers=NEVER).ready()
    host.add("soon", inSeconds=1)
    host.write(b'{"jsonrpc":"2.0","id":77,"meth')
    host.wait_push(is_reminder)
    host.write(b'od":"ping"}\n')
    assert host.reply(77)["result"] == {}


@pytest.mark.requirement("stdio.host-stops-reading", "stdio.ends-without-loss")
def test_a_host_that_stops_reading_gets_everything_later(host: Host) -> None:
    host.stop_reading()
    first = host.request("ping")
    ids = [host.request("tools/call", {"name": "heartbeat_status"}) for _ in range(1500)]
    added = host.request("tools/call", _add(1))
    limit = time.monotonic() + 20
    while not host.reminders.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    assert len(host.rows()) == 1
    host.read_again()
    for one in (first, *ids, added):
        host.reply(one)


@pytest.mark.requirement("stdio.stderr-never-blocks", "host.35")
def test_a_stderr_that_nobody_reads_blocks_nothing(spawn: Spawn) -> None:
    server = spawn(read_stderr=False, answers=error(-32603, "busy" * 200)).ready()
    for number in range(300):
        server.policy(["tools"] if number % 2 else ["tools", "pushEvents"])
    for number in range(100):
        server.call("reminder_add", message=f"m{number}", inHours=1)
        server.policy(["tools"])
    server.ping()
    assert len(server.rows()) == 100
    server.end()


@pytest.mark.requirement(
    "field.20", "host.34", "seed.silent.one-warning", "seed.file.log-names-copy"
)
def test_a_session_full_of_warnings_keeps_stdout_clean(spawn: Spawn, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "heartbeat-reminders.json").write_bytes(b'[{"id":"rem_1","mess')
    server = spawn(answers=error(-32602, "empty", {"field": "payload.content"}))
    server.initialize()
    server.call("heartbeat_trigger")
    server.notify("featureSets/update", {"enabled": "wrong"})
    server.ask("featureSets/update", {"effectiveCapabilities": "wrong"})
    server.policy()
    server.call("heartbeat_configure", deliveryMode="silent")
    for count in (2, 4):
        server.call("heartbeat_trigger")
        server.wait_push(count=count)
        server.settle()
    server.wait_log("WARNING")
    assert server.end() == 0
    server.check()
    copies = list(data.glob("heartbeat-reminders.json.unreadable-*"))
    assert len(copies) == 1
    assert str(copies[0].name) in server.stderr
    assert sum("WARNING" in line and "silent" in line for line in server.stderr.splitlines()) == 1


@pytest.mark.requirement("host.31", "host.32", "stdio.clean-environment", "seed.recipe.stdio")
def test_an_allowlisted_environment_is_enough(spawn: Spawn) -> None:
    server = spawn(env={"LANG": "C", "LC_ALL": "C", "AGENT_TIMEZONE": "Europe/Paris"}).ready()
    server.add("dérive ☕", inHours=1)
    assert "dérive ☕" in server.listed()
    assert "[Europe/Paris]" in server.listed()
    assert server.rows()[0]["message"] == "dérive ☕"


@pytest.mark.requirement("seed.config.path", "seed.reminder.path", "seed.configure.persists")
def test_without_paths_the_files_are_in_the_working_directory(spawn: Spawn, tmp_path: Path) -> None:
    blank = {"HEARTBEAT_CONFIG_FILE": "", "HEARTBEAT_REMINDERS_FILE": ""}
    server = spawn(env=blank).ready()
    server.add("x", inHours=1)
    server.call("heartbeat_configure", intervalMinutes=90, message="look around")
    assert server.end() == 0
    assert len(server.rows()) == 1
    saved = json.loads(server.config.read_text())
    assert (saved["intervalSeconds"], saved["paused"]) == (5400, False)
    assert saved["message"] == "look around"
    again = spawn(env=blank).ready().status()
    assert "interval=5400s (1.50h)" in again
    assert "look around" in again


@pytest.mark.requirement("words.zone-bad", "words.zone-choice", "host.33")
@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "../../etc/passwd", "/etc/hostname", "US", "a\x7fb"]
)
def test_a_bad_zone_warns_and_falls_back(spawn: Spawn, name: str) -> None:
    server = spawn(env={"AGENT_TIMEZONE": name, "TZ": "Asia/Tokyo"}).ready()
    server.add("x", inHours=1)
    assert "[Asia/Tokyo]" in server.listed()
    assert any("AGENT_TIMEZONE" in line for line in server.wait_log("WARNING").splitlines())
