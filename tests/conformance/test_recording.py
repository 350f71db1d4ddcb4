"""A recorded session becomes a transcript without its ids, times and secrets."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import exact, patterns, transcripts
from conformance.forms import Forms
from conformance.patterns import Clock, Miss
from conformance.recording import Event, Session, transcript_of
from conformance.secrets import Secrets

pytestmark = pytest.mark.requirement("conformance.record")

BEGAN = 1_790_000_000_000


def recorded(*events: Event, **more: Any) -> list[dict[str, Any]]:
    given_: dict[str, Any] = {
        "environment": {},
        "paths": {"config": "/data/c.json", "reminders": "/data/r.json"},
        "before": {},
        **more,
    }
    text = transcript_of(Session(title="t", began=BEGAN, events=list(events), **given_))
    assert transcripts.parse(text, "recorded").title == "t"
    return [json.loads(line) for line in text.splitlines()]


def host(message: Any, at: int = BEGAN) -> Event:
    data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
    return Event(at, "host", data)


def server(message: Any, at: int = BEGAN) -> Event:
    return Event(at, "server", json.dumps(message).encode() + b"\n")


def request(number: Any, method: str, /, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def reply(id: Any, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {"text": text}}


def test_what_the_host_says_is_written_short() -> None:
    _, *steps = recorded(
        host(request(1, "tools/call", name="t", arguments={"a": 1})),
        host(request("2", "tools/call", name="t", arguments={}, _meta={})),
        host({"jsonrpc": "2.0", "method": "n"}),
        host({"jsonrpc": "2.0", "id": None, "method": "n"}),
        host({"id": 3, "method": "n"}),
        host([request(4, "x")]),
    )
    assert steps == [
        {"call": "t", "arguments": {"a": 1}, "id": 1},
        {
            "request": "tools/call",
            "params": {"name": "t", "arguments": {}, "_meta": {}},
            "id": "2",
        },
        {"notify": "n"},
        {"host": {"jsonrpc": "2.0", "id": None, "method": "n"}},
        {"host": {"id": 3, "method": "n"}},
        {"host": [request(4, "x")]},
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"{nonsense\n",
        b'{"a": 1, "a": 2}\n',
        b"\n",
        b"\xef\xbb\xbf{}\n",
        b"NaN\r\n",
        b'{"$x": "${y}"\n',
    ],
)
def test_what_is_odd_is_kept_byte_by_byte(line: bytes) -> None:
    _, step = recorded(host(line))
    match step["host"]:
        case {"$text": text}:
            assert text.encode() == line
        case {"$bytes": _}:
            assert b"${" in line
        case other:
            raise AssertionError(other)


def test_pieces_are_put_together_and_the_end_is_kept() -> None:
    _, *steps = recorded(
        Event(BEGAN, "host", b'{"jsonrpc": "2.0", "me'),
        Event(BEGAN, "host", b'thod": "a"}\n{"half"'),
        Event(BEGAN, "host", b""),
        Event(BEGAN, "exit", status=0),
    )
    assert steps == [
        {"notify": "a"},
        {"host": {"$text": '{"half"'}},
        {"close": "stdin"},
        {"exit": {"within": 2, "status": [0]}},
    ]
    _, *steps = recorded(Event(BEGAN, "signal", "SIGTERM"), Event(BEGAN, "exit", status=-15))
    assert steps == [{"signal": "SIGTERM"}, {"exit": {"within": 2, "status": [-15]}}]


def test_an_id_of_the_server_is_bound_where_it_comes_first() -> None:
    _, *steps = recorded(
        host(request(1, "add")),
        server(reply(1, "Reminder rem_12345678 set (~60s), see rem_12345678")),
        host(request(2, "cancel", id="rem_12345678", note="not rem_12345678!")),
        server(reply(2, "rem_12345678 is gone")),
    )
    first, cancel, second = steps[1], steps[2], steps[3]
    regex = r"^Reminder (?P<id1>[\w-]+) set \(~\d+(\.\d+)?s\), see (?P=id1)$"
    assert first == {"reply": {"result": {"text": {"$re": regex}}}, "to": 1}
    assert cancel["params"] == {"id": {"$ref": "id1"}, "note": "not ${id1}!"}
    assert second["reply"]["result"]["text"] == {"$re": "^${id1} is gone$"}


def test_a_word_of_the_host_is_no_id() -> None:
    _, _, answer = recorded(
        host(request(1, "echo", word="version-20250618")), server(reply(1, "version-20250618"))
    )
    assert answer["reply"]["result"]["text"] == "version-20250618"


def test_pushes_and_their_answers() -> None:
    event = "reminder_rem_12345678_1790000060000"
    params = {"eventId": event, "timestamp": "2026-09-21T14:14:20.000Z", "data": {"at": BEGAN}}
    ask = {"jsonrpc": "2.0", "id": "p-1", "method": "push/event", "params": params}
    _, *steps = recorded(
        server(ask),
        server({**ask, "id": "p-2"}, BEGAN + 2_000),
        host({"jsonrpc": "2.0", "id": "p-2", "error": {"code": -32002, "message": "no"}}),
        host({"jsonrpc": "2.0", "id": "p-1", "result": {"accepted": True}}),
        host({"jsonrpc": "2.0", "id": "p-9", "result": {}}),
    )
    assert steps[0]["push"]["eventId"]["$bind"] == "id1"
    assert steps[0]["push"]["data"] == {"at": "$integer"}
    assert steps[0]["id"] == {"$bind": "push0"}
    assert steps[1]["push"]["eventId"] == {"$ref": "id1"}
    assert steps[1]["within"] == 7
    refusal = {"error": {"code": -32002, "message": "no"}}
    assert steps[2] == {"answer_push": {"$ref": "push1"}, "with": refusal}
    assert steps[3]["answer_push"] == {"$ref": "push0"}
    assert steps[4] == {"host": {"jsonrpc": "2.0", "id": "p-9", "result": {}}}


def test_what_waits_long_needs_a_virtual_clock() -> None:
    ask = {"jsonrpc": "2.0", "id": "p-1", "method": "push/event", "params": {}}
    assert recorded(server(ask, BEGAN + 10_000))[0]["clock"] == "either"
    assert recorded(server(ask, BEGAN + 14_400_000))[0]["clock"] == "virtual"


def test_times_of_the_host_stay_as_far_away() -> None:
    _, step = recorded(
        host(
            request(
                1,
                "x",
                utc="2026-09-21T15:13:20Z",
                local="2026-09-21T17:13:20",
                ms=BEGAN + 500,
                text="at 2026-09-21T15:13:20Z",
            )
        ),
        environment={"AGENT_TIMEZONE": "Europe/Berlin"},
    )
    assert step["params"] == {
        "utc": {"$now": 3600.0, "as": "iso"},
        "local": {"$now": 3600.0, "as": "iso"},
        "ms": {"$now": 0.5},
        "text": "at 2026-09-21T15:13:20Z",
    }


def test_files_before_and_after() -> None:
    rows = json.dumps([{"id": "rem_old00001", "fireAt": BEGAN + 1_000}]).encode()
    head, *steps = recorded(
        before={"reminders": rows, "config": b"\xff"}, after={"reminders": rows}
    )
    assert head["files"] == {
        "reminders": [{"id": "rem_old00001", "fireAt": {"$now": 1.0}}],
        "config": {"$bytes": "/w=="},
    }
    assert steps == [{"file": "reminders", "is": [{"id": "rem_old00001", "fireAt": "$integer"}]}]


def test_paths_of_the_files_are_those_of_the_replay() -> None:
    (_, step) = recorded(server(reply(1, "see /data/r.json.unreadable-1a2b3c4d")))
    regex = r"^see ${folder}/heartbeat-reminders\.json\.(?P<id1>[\w-]+)$"
    assert step["reply"]["result"]["text"] == {"$re": regex}


def test_what_looks_like_a_pattern_is_literal() -> None:
    schema = {"$ref": "#/x", "name": "${y}"}
    _, said, heard = recorded(
        host(request(1, "x", schema=schema, text="${y}")),
        server({"jsonrpc": "2.0", "id": 1, "result": {"schema": schema, "text": "$any"}}),
    )
    assert said["params"] == {"schema": {"$literal": schema}, "text": {"$literal": "${y}"}}
    assert heard["reply"]["result"] == {
        "schema": {"$literal": schema},
        "text": {"$literal": "$any"},
    }


@pytest.mark.requirement("conformance.record-secrets")
def test_secrets_are_nowhere_in_it() -> None:
    environment = {"MY_API_TOKEN": "hunter2hunter2", "PATH": "/usr/bin", "SHORT_TOKEN": "abc"}
    jwt = "eyJhbGciOi.eyJzdWIiOi.abc-def"
    secrets = [
        "hunter2hunter2",
        "sk-abcdefghijklmnop1234",
        jwt,
        "pass:word",
        "opensesame",
        "Xy7!Xy7!",
    ]
    head, *steps = recorded(
        host(request(0, "first", text="before it is known: opensesame")),
        host(request(1, "a", text=f"use hunter2hunter2 and {secrets[1]}", password="opensesame")),
        host(request(2, "b", progressToken="visible", url="https://pass:word@example.org/")),
        server(reply(1, f"opensesame, Bearer {jwt} hunter2hunter2")),
        host(b"{broken hunter2hunter2\n"),
        host(request(3, "c", headers={"Authorization": "Xy7!Xy7!"})),
        environment=environment,
        before={"config": b'{"message": "hunter2hunter2"}'},
    )
    whole = json.dumps([head, *steps])
    assert not [secret for secret in secrets if secret in whole]
    assert "visible" in whole
    # One secret has one placeholder, as long as it is, so that what repeats it still matches.
    assert head["files"]["config"]["message"] in steps[3]["reply"]["result"]["text"]["$re"]
    assert len(steps[1]["params"]["password"]) == len("opensesame")


texts = st.text() | st.lists(
    st.sampled_from(
        ["rem_1a2b3c4d", "~12s", "2026-09-21T14:14:20Z", "1790000000000", " ", "x", ".*", "\n", "$"]
    )
).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 10**14) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)


@given(st.lists(values, max_size=4))
def test_what_was_heard_matches_its_own_form(heard: list[Any]) -> None:
    forms = Forms({"config": "/data/c.json"}, None)
    names: Any = {"folder": "/data"}
    for value in heard:
        pattern = exact.read(exact.write(forms.heard(value)))
        assert patterns.complaint(pattern) is None
        names = patterns.match(pattern, value, names, Clock(BEGAN, 5))
        assert not isinstance(names, Miss), str(names)


@given(st.lists(texts))
def test_hiding_secrets_leaves_none_and_keeps_lengths(items: list[str]) -> None:
    hidden = Secrets({"TOKEN": "rem_1a2b3c4d"}).hide(items)
    assert all("rem_1a2b3c4d" not in item for item in hidden)
    assert list(map(len, hidden)) == list(map(len, items))
