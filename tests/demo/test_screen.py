"""What the demo shows of a message."""

import io
import json
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.demo.screen import Screen, essentials

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
METHODS = ["initialize", "featureSets/update", "tools/list", "tools/call", "push/event", "ping"]


@pytest.mark.requirement("people.demo")
@pytest.mark.parametrize(
    ("message", "answered", "name", "detail"),
    [
        (
            {"id": 3, "method": "tools/call", "params": {"name": "x", "arguments": {"a": 1}}},
            "",
            "request tools/call #3",
            "x a=1",
        ),
        ({"method": "notifications/initialized"}, "", "notification notifications/initialized", ""),
        (
            {"id": 4, "result": {"content": [{"text": "no\nway"}], "isError": True}},
            "tools/call",
            "answer to tools/call #4",
            "tool error: no / way",
        ),
        (
            {"id": 5, "error": {"code": -32002, "message": "denied"}},
            "push/event",
            "error to push/event #5",
            "-32002 denied",
        ),
        (
            {
                "id": 6,
                "result": {
                    "accepted": True,
                    "mode": "degraded",
                    "unavailableFeatures": [
                        {
                            "featureSet": "heartbeat",
                            "missingCapabilities": ["pushEvents"],
                            "effect": "disabled",
                        }
                    ],
                    "notes": ["No wake comes."],
                },
            },
            "featureSets/update",
            "answer to featureSets/update #6",
            "receipt: accepted=true mode=degraded; heartbeat disabled, missing: pushEvents; "
            "No wake comes.",
        ),
    ],
)
def test_a_message_is_told_in_one_line(message, answered, name, detail):
    assert essentials(message, answered) == (name, detail)


@pytest.mark.requirement("people.demo")
@given(
    method=st.sampled_from(METHODS),
    params=json_values | st.dictionaries(st.sampled_from(["arguments", "clientInfo"]), json_values),
    result=st.dictionaries(
        st.sampled_from(
            ["tools", "content", "unavailableFeatures", "notes", "serverInfo", "capabilities"]
        ),
        json_values,
    ),
)
def test_no_message_upsets_it(method, params, result):
    essentials({"id": 1, "method": method, "params": params})
    essentials({"id": 1, "result": result}, method)
    essentials({"id": 1, "error": params}, method)


@pytest.mark.requirement("people.demo")
def test_piped_it_is_plain_and_one_line_a_message():
    out = io.StringIO()
    screen = Screen(file=out)
    message = {
        "id": 1,
        "method": "tools/call",
        "params": {"name": "n", "arguments": {"x": "y" * 150}},
    }
    screen.sent(json.dumps(message), message)
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().count("\n") == 1


@pytest.mark.requirement("people.demo")
def test_on_a_terminal_it_is_coloured(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = io.StringIO()
    Screen(file=out).received("{}", {"id": 1, "result": {}}, "ping")
    assert "\x1b[" in out.getvalue()


@pytest.mark.requirement("people.demo")
def test_raw_shows_the_line_itself():
    out = io.StringIO()
    screen = Screen(raw=True, file=out)
    line = '{"id":1,"result":{"content":[]}}'
    screen.received(line, json.loads(line), "tools/call")
    assert re.fullmatch(r" *\d+\.\d\d s  ← (.*)\n", out.getvalue())[1] == line


@pytest.mark.requirement("people.demo")
def test_a_terminal_without_arrows_gets_question_marks():
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    Screen(file=out).sent("{}", {"method": "ping"})
    out.flush()
    assert b"? notification ping" in raw.getvalue()


@pytest.mark.requirement("people.demo")
def test_a_terminals_lines_are_wrapped_between_words(monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "60"}.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    words = ["abcdefghij"] * 30
    Screen(file=out).note(" ".join(words))
    lines = out.getvalue().splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 60 for line in lines)
    assert out.getvalue().split() == words
    raw = io.StringIO()
    Screen(raw=True, file=raw).received(" ".join(words), {})
    assert raw.getvalue().count("\n") == 1


@pytest.mark.requirement("people.demo")
def test_only_the_story_ends_when_the_output_is_full():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    screen = Screen(file=Full())
    with pytest.raises(OSError, match="No space"):
        screen.note("x")
    failed = []
    other = threading.Thread(target=lambda: failed.append(screen.logged("x")))
    other.start()
    other.join()
    assert failed == [None]
