"""Against processes: whatever a server does, it costs its own transcript and no other."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import runner
from conformance.outcome import Outcome
from tests.conformance.toy import command, failure, transcript

pytestmark = pytest.mark.requirement("conformance.side-by-side")

PING: dict[str, Any] = {"request": "ping"}
SERVED: dict[str, Any] = {"reply": {"result": "$object"}}


def replay(mode: str, *steps: dict[str, Any], **head: Any) -> Outcome:
    (outcome,) = runner.replay_real([transcript(*steps, **head)], command(mode))
    return outcome


def test_a_server_gets_what_a_host_passes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("HEARTBEAT_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("LC_TIME", "C")
    env = {
        "AGENT_TIMEZONE": "UTC",
        "HEARTBEAT_CONFIG_FILE": "${folder}/heartbeat-config.json",
        "HEARTBEAT_REMINDERS_FILE": "${folder}/heartbeat-reminders.json",
        "LC_TIME": "C",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": "$absent",
        "OURS": "1",
        "HOME": "$absent",
    }
    result = {"environment": env, "folder": {"$ref": "folder"}}
    outcome = replay("polite", PING, {"reply": {"result": result}}, env={"OURS": "1", "HOME": None})
    assert outcome.passed, outcome.failure


def test_a_session_from_beginning_to_end() -> None:
    outcome = replay(
        "polite",
        PING,
        SERVED,
        {"stderr": "^served$", "times": 1},
        {"host": {"$cut": ['{"jsonrpc": "2.0", "id": 7, ', '"method": "x"}\n{"id":', " 8}\n"]}},
        {"server": {"id": 7}},
        {"server": {"id": 8}},
        {"quiet": 0.05},
        {"close": "stdin"},
        {"exit": {"within": 20, "status": 0}},
        {"start": {"AGAIN": "yes"}},
        PING,
        {"reply": {"result": {"environment": {"AGAIN": "yes"}}}},
        {"start": {}, "on": "second"},
        {**PING, "on": "second"},
        {**SERVED, "on": "second"},
        {"quiet": 0},
        {"signal": "SIGKILL", "on": "second"},
        {"exit": {"within": 20, "status": -9}, "on": "second"},
        {"signal": "SIGTERM"},
        {"exit": {"within": 20, "status": [-15]}},
    )
    assert outcome.passed, outcome.failure


def test_a_server_that_never_answers_fails_at_that_step() -> None:
    failed = failure(replay("deaf", PING, {**SERVED, "within": 0.1}))
    assert failed.line == 3
    assert "no reply to 9001 came within 0.1 s" in failed.why


def test_a_server_that_never_reads_fails_where_its_pipe_is_full() -> None:
    big = {"host": {"$text": {"$repeat": "x", "times": 3_000_000}}, "within": 0.1}
    assert "has not read" in failure(replay("deaf", big)).why


def test_a_server_that_dies_is_not_waited_for() -> None:
    failed = failure(replay("dies", PING, {**SERVED, "within": 3600}))
    assert "the server is gone (status 3)" in failed.why
    assert failed.log == "last words\n"


def test_a_server_that_floods_is_stopped() -> None:
    assert "floods its host" in failure(replay("floods", PING, {"wait": 5})).why


@pytest.mark.parametrize(
    ("mode", "why"), [("prints", "no line of JSON"), ("half", "in the middle")]
)
def test_what_is_no_message_is_noticed(mode: str, why: str) -> None:
    failed = failure(replay(mode, PING, {**SERVED, "within": 3600}))
    assert why in failed.why


def test_a_server_that_stays_is_killed_in_the_end() -> None:
    term: list[Any] = [{"stderr": "ready"}, {"signal": "SIGTERM"}, {"exit": {"within": 0.1}}]
    assert "still there after 0.1 s" in failure(replay("stubborn", *term)).why


def test_a_stopped_server_goes_on() -> None:
    steps: list[Any] = [
        PING,
        SERVED,
        {"signal": "SIGSTOP"},
        PING,
        {"quiet": 0.05},
        {"signal": "SIGCONT"},
    ]
    outcome = replay("polite", *steps, SERVED)
    assert outcome.passed, outcome.failure


def test_a_server_whose_output_is_closed() -> None:
    outcome = replay(
        "polite", PING, SERVED, {"close": "stdout"}, PING, {"exit": {"within": 20, "status": 1}}
    )
    # Python reports what it could not flush with 120 or, where it wrote itself, a traceback and 1.
    assert outcome.passed or '"status": 120' in failure(outcome).got


def test_a_command_that_does_not_exist_is_said() -> None:
    (outcome,) = runner.replay_real([transcript(PING)], ["/no/such/server"])
    assert "/no/such/server cannot be started" in failure(outcome).why


def test_files_can_be_kept_from_growing() -> None:
    script = (
        "import sys\nfor line in sys.stdin:\n"
        " try:\n  with open('f', 'wb') as file: file.write(b'x' * 2000)\n"
        " except OSError as error: print(error.errno, file=sys.stderr, flush=True)"
    )
    whole = transcript(PING, {"stderr": "^27$"}, clock="real", limits={"file_size": 1024})
    (outcome,) = runner.replay_real([whole], [sys.executable, "-c", script])
    assert outcome.passed, outcome.failure


def test_one_that_hangs_or_dies_costs_the_others_nothing(tmp_path: Path) -> None:
    # The mode comes with each transcript, so that one command is all of them.
    script = tmp_path / "any.sh"
    python, _, _, server, _ = command("")
    script.write_text(f'#!/bin/sh\nexec "{python}" -I -S "{server}" "$MODE"\n')
    script.chmod(0o755)
    modes = ["deaf", "dies", "floods", "prints", "half", "stubborn", *["polite"] * 6]
    whole = [
        transcript(PING, {**SERVED, "within": 20 if mode == "polite" else 0.5}, env={"MODE": mode})
        for mode in modes
    ]
    outcomes = list(runner.replay_real(whole, [str(script)]))
    assert len(outcomes) == len(modes)
    assert sum(outcome.passed for outcome in outcomes) == 6


def test_words_of_a_command_are_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Path(command("polite")[3])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "toy.py").write_text(server.read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tmp_path)
    words = [sys.executable, "-I", "-S", "bin/toy.py", "polite"]
    (outcome,) = runner.replay_real([transcript(PING, SERVED)], words)
    assert outcome.passed, outcome.failure
