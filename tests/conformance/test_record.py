"""Neither host nor server can tell that a recorder stands between them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import runner, transcripts
from conformance.transcripts import ROOT, Transcript

pytestmark = pytest.mark.requirement("conformance.record")

OURS = [sys.executable, "-m", "mcpl_heartbeat", "--stdio"]
ECHO = "import sys,shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
PATIENCE = 60


class Recorded:
    """A recorder as a host starts it, from a folder that knows nothing of this checkout."""

    def __init__(self, folder: Path, *command: str) -> None:
        self.out = folder / "out.jsonl"
        self.folder = folder
        words = [sys.executable, str(ROOT), "record", "--out", str(self.out), "--", *command]
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "AGENT_TIMEZONE": "Europe/Berlin", "MY_TOKEN": "hunter2hunter2"},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.stderr = self.process.stderr

    def say(self, message: dict[str, Any]) -> None:
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def hear(self) -> Any:
        return json.loads(self.stdout.readline())

    def ask(self, id: int, method: str, **params: Any) -> Any:
        self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.hear()

    def call(self, number: int, tool: str, **arguments: Any) -> str:
        reply = self.ask(number, "tools/call", name=tool, arguments=arguments)
        return str(reply["result"]["content"][0]["text"])

    def transcript(self) -> Transcript:
        return transcripts.parse(self.out.read_text("utf-8"), "recorded")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    running = []

    def start(*command: str) -> Recorded:
        running.append(Recorded(tmp_path, *command))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.wait()
        for pipe in (each.stdin, each.stdout, each.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def test_a_recorded_session_replays_against_the_same_server(started: Any) -> None:
    host = started(*OURS)
    reminders = host.folder / "heartbeat-reminders.json"
    now = time.time_ns() // 1_000_000
    row = {"id": "rem_0old0old", "message": "old", "createdAt": now, "everySeconds": None}
    reminders.write_text(json.dumps([{**row, "fireAt": now + 3_600_000}]), "utf-8")
    mcpl = {"version": "0.5", "pushEvents": True}
    info = {"name": "agent-framework", "version": "1.0.0"}
    host.ask(
        0,
        "initialize",
        protocolVersion="2024-11-05",
        capabilities={"experimental": {"mcpl": mcpl}},
        clientInfo=info,
    )
    host.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    policy = {"effectiveCapabilities": ["pushEvents", "tools"], "enabled": ["heartbeat"]}
    host.ask(1, "featureSets/update", **policy)
    host.ask(2, "tools/list")
    text = host.call(3, "reminder_add", message="say hunter2hunter2", inSeconds=0.2)
    assert text.startswith("Reminder rem_")
    push = host.hear()
    host.say({"jsonrpc": "2.0", "id": push["id"], "result": {"accepted": True}})
    second = host.call(4, "reminder_add", message="far", atIso="2199-01-01T00:00:00Z")
    host.call(5, "reminder_cancel", id=second.split()[1])
    host.call(6, "reminder_list")
    host.call(7, "heartbeat_status")
    host.call(8, "heartbeat_configure", intervalSeconds=1)
    fired = [host.ask(9, "tools/call", name="heartbeat_trigger", arguments={}), host.hear()]
    (push,) = [message for message in fired if "method" in message]
    host.say({"jsonrpc": "2.0", "id": push["id"], "error": {"code": -32002, "message": "no"}})
    host.stdin.write(b"{nonsense\n")
    host.stdin.flush()
    assert host.hear()["id"] is None
    host.stdin.close()
    assert host.process.wait(PATIENCE) == 0
    recorded = host.transcript()
    assert recorded.host == "agent-framework 1.0.0"
    assert "hunter2" not in host.out.read_text("utf-8")
    assert second.split()[1] not in host.out.read_text("utf-8")
    (real,) = runner.replay_real([recorded], OURS)
    assert real.passed, real.failure
    (virtual,) = runner.replay_virtual([recorded])
    assert virtual.passed, virtual.failure


def test_every_byte_passes_unchanged(started: Any) -> None:
    host = started(sys.executable, "-c", ECHO)
    noise = bytes(range(256)) * 8_192 + b"no end of line"
    out, err = host.process.communicate(noise, PATIENCE)
    assert out == noise
    assert err == b""
    assert host.process.returncode == 0


def test_bytes_pass_at_once_and_half_lines_too(started: Any) -> None:
    script = "import os\nwhile data := os.read(0, 99): os.write(1, data); os.write(2, b'log')"
    host = started(sys.executable, "-c", script)
    for piece in (b"a", b"bc", b"\n", b"d"):
        os.write(host.stdin.fileno(), piece)
        assert os.read(host.stdout.fileno(), 99) == piece
    _, err = host.process.communicate(b"", PATIENCE)
    assert err == b"log" * 4


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.kill(os.getpid(), 15)", -15),
    ],
)
def test_the_status_is_the_servers(started: Any, script: str, status: int) -> None:
    host = started(sys.executable, "-c", script)
    host.process.communicate(timeout=PATIENCE)
    assert host.process.returncode == status
    assert host.transcript().steps[-1].value["status"] == [status]


def test_a_server_that_does_not_exist_is_said(started: Any) -> None:
    host = started("/no/such/server")
    _, err = host.process.communicate(timeout=PATIENCE)
    assert b"/no/such/server cannot be started" in err
    assert host.process.returncode == 127


def test_signals_are_passed_on(started: Any) -> None:
    host = started(*OURS)
    host.ask(1, "ping")
    host.process.send_signal(signal.SIGTERM)
    host.process.communicate(timeout=PATIENCE)
    assert host.process.returncode == -15
    kinds = [(step.kind, step.value) for step in host.transcript().steps]
    assert ("signal", "SIGTERM") in kinds


def test_a_host_that_closes_its_end_is_noticed(started: Any) -> None:
    host = started(*OURS)
    host.ask(1, "ping")
    host.stdout.close()
    assert host.process.wait(PATIENCE) == 0


def test_a_server_that_closes_its_output_is_noticed(started: Any) -> None:
    host = started(sys.executable, "-c", "import os, sys; os.close(1); sys.stdin.read()")
    assert host.stdout.read() == b""
    assert host.process.poll() is None
    host.stdin.close()
    assert host.process.wait(PATIENCE) == 0


def test_a_host_that_kills_its_server_has_a_transcript(started: Any) -> None:
    host = started(*OURS)
    host.ask(1, "ping")
    deadline = time.monotonic() + PATIENCE
    while not (host.out.exists() and '"reply"' in host.out.read_text("utf-8")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    host.process.kill()
    host.process.communicate()
    assert [step.kind for step in host.transcript().steps] == ["request", "reply"]
