"""The demo, told by the real server and by servers that fail it."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from mcpl_heartbeat.demo import host as demo_host
from mcpl_heartbeat.demo.main import run

DEMO = [sys.executable, "-m", "mcpl_heartbeat", "demo"]
LINE = re.compile(r"^ *(\d+\.\d\d) s  ([→←]) (.*)$", re.MULTILINE)


def server(body):
    """A server in a few lines: ``body`` runs for each request, with ``answer(result)`` at hand."""
    return (
        sys.executable,
        "-c",
        "import json, sys\n"
        "def answer(result=None, **more):\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **(more or {'result': result})}))\n"
        "    sys.stdout.flush()\n"
        "MCPL = {'capabilities': {'experimental': {'mcpl': {'version': '0.5'}}}}\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if 'id' not in m: continue\n" + "".join(f"    {part}\n" for part in body.splitlines()),
    )


@pytest.fixture(scope="module")
def told():
    return subprocess.run(DEMO, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.mark.requirement("people.demo")
def test_it_ends_well_and_plain_in_a_pipe(told):
    assert told.returncode == 0, told.stdout
    assert "\x1b" not in told.stdout
    assert not told.stderr


@pytest.mark.requirement("people.demo")
def test_the_first_wakes_come_within_ten_seconds_as_the_agent_reads_them(told):
    pushed = [
        (float(when), text)
        for when, arrow, text in LINE.findall(told.stdout)
        if arrow == "←" and text.startswith("request push/event")
    ]
    assert len(pushed) == 3
    assert 'source="heartbeat"' in pushed[0][1]
    assert 'source="reminder"' in pushed[1][1]
    assert pushed[1][0] < 10
    assert told.stdout.count("The agent wakes and reads:") == 3
    assert re.search(r"\[current time: \S+ \[[\w/+-]+\]\]", told.stdout)
    assert re.search(
        r"\[reminder rem_\S+, set .*\] Look whether the build has passed\.", told.stdout
    )


@pytest.mark.requirement("people.demo")
def test_it_shows_what_a_denied_capability_looks_like(told):
    denied = told.stdout.partition("\n4. ")[2].partition("\n5. ")[0]
    assert "mode=degraded; heartbeat disabled, missing: pushEvents" in denied
    assert "delivery=BLOCKED (" in denied
    assert "tool error: " in denied
    assert "(overdue)" in denied
    assert "push/event" not in [text.split()[1] for _, _, text in LINE.findall(denied)]


@pytest.mark.requirement("people.demo")
def test_raw_shows_every_message_as_the_line_it_is():
    raw = subprocess.run(
        [*DEMO, "--raw"], capture_output=True, text=True, encoding="utf-8", check=True
    )
    messages = [json.loads(text) for _, _, text in LINE.findall(raw.stdout)]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    asked = [message["id"] for message in messages if "method" in message and "id" in message]
    answered = [message["id"] for message in messages if "method" not in message]
    assert sorted(map(str, asked)) == sorted(map(str, answered))


@pytest.mark.requirement("people.demo")
def test_ctrl_c_ends_it_cleanly(tmp_path):
    process = subprocess.Popen(
        DEMO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    for line in process.stdout:
        if "→ request initialize" in line:
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate()
    assert process.returncode == 130
    assert "Stopped." in out
    assert not err
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("people.demo")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/nowhere/server",), "the server could not be started"),
        (server("print('Out of luck', file=sys.stderr)\nsys.exit(3)"), "(exit code 3)"),
        (server("print('Out of luck', file=sys.stderr)\nsys.exit(3)"), "Out of luck"),
        (server("answer(error={'code': -32603, 'message': 'no'})"), "refused initialize: no"),
        (server("answer([])"), "answered initialize with no result object"),
        (server("answer({})"), "did not offer MCPL"),
        (server("answer(MCPL)"), "receipt does not say accepted true"),
        (
            server(
                "answer({**MCPL, 'accepted': True, 'mode': 'full', 'content': [{'text': 'x'}]})"
            ),
            "does not say delivery=ok but: x",
        ),
        (
            server("answer({**MCPL, 'accepted': True, 'mode': 'full', 'isError': True})"),
            "heartbeat_configure was refused",
        ),
    ],
)
def test_a_step_that_fails_is_said_and_ends_it(command, said, capsys):
    assert run(command=command) == 1
    assert said in capsys.readouterr().out


@pytest.mark.requirement("people.demo")
def test_a_server_that_never_answers_is_not_waited_for(monkeypatch, capsys):
    monkeypatch.setattr(demo_host, "ANSWER_SECONDS", 0.1)
    assert run(command=server("pass")) == 1
    assert "did not answer initialize within" in capsys.readouterr().out


@pytest.mark.requirement("people.demo")
def test_noise_on_stdout_is_shown_and_passed_over(capsys):
    assert run(command=server("print('hello')\nprint('[1]')\nanswer({})")) == 1
    out = capsys.readouterr().out
    assert "not a message, but on stdout: hello" in out
    assert "did not offer MCPL" in out


@pytest.mark.requirement("people.demo")
def test_a_request_no_host_knows_is_refused_by_the_host(capsys):
    ask = "print(json.dumps({'jsonrpc': '2.0', 'id': 'q', 'method': 'roots/list'}))\nanswer({})"
    assert run(command=server(ask)) == 1
    assert "error to roots/list #q  -32601" in capsys.readouterr().out
