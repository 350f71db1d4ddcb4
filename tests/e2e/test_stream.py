"""Bytes, JSON and JSON-RPC rules on the real pipes."""

import json
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.wire import Message, is_reminder, shown

PING = b'{"jsonrpc":"2.0","id":"p","method":"ping"}'


def codes(host: Host) -> list[int]:
    """Return the codes of the error replies with id null so far."""
    return [m["error"]["code"] for m in host.messages if "error" in m and m.get("id") is None]


def strings(value: Any) -> list[str]:
    """Return every string inside a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [found for member in value for found in strings(member)]
    return [value] if isinstance(value, str) else []


def add_line(message: str, id_: Any = 5) -> bytes:
    """Return a ``reminder_add`` line with no character escaped but what JSON demands."""
    call = {"name": "reminder_add", "arguments": {"message": message, "inSeconds": 1}}
    body = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": call}
    return json.dumps(body, ensure_ascii=False).encode()


@pytest.mark.requirement("field.11", "stdio.escapes", "host.34")
def test_odd_line_ends_inside_strings_survive(spawn: Spawn) -> None:
    host = spawn().ready(version="2025-06-18")
    text = "a\u2028b\u2029c\u0085d\u000be\rf"
    host.send(add_line(text))
    assert not host.called(host.reply(5)).is_error
    assert host.rows()[0]["message"] == text
    assert text in strings(host.call("reminder_list").result["structuredContent"])
    assert shown(host.wait_push(is_reminder)).endswith(text)
    for line in host.lines:
        assert len(line.decode().splitlines()) == 1


@pytest.mark.requirement("field.31")
def test_a_surrogate_pair_is_one_character(host: Host) -> None:
    host.send(add_line("X").replace(b"X", rb"\ud83c\udf78"))
    assert "\U0001f378" in host.called(host.reply(5)).text
    assert host.rows()[0]["message"] == "\U0001f378"
    assert shown(host.wait_push(is_reminder)).endswith("\U0001f378")


@pytest.mark.requirement("jsonrpc.lone-surrogate")
def test_a_lone_surrogate_is_replaced(host: Host) -> None:
    host.send(add_line("X").replace(b"X", rb"cut \ud83c off"))
    assert not host.called(host.reply(5)).is_error
    assert host.rows()[0]["message"] == "cut \ufffd off"


@pytest.mark.requirement("field.13", "stdio.any-cut")
def test_a_large_line_is_judged_alike_however_it_is_cut(host: Host) -> None:
    call = {"name": "heartbeat_configure", "arguments": {"message": "m" * (1 << 20), "pausd": 1}}
    replies = []
    for number, cuts in enumerate((1, 16, 4096)):
        body = {"jsonrpc": "2.0", "id": f"c{number}", "method": "tools/call", "params": call}
        line = json.dumps(body).encode() + b"\n"
        if cuts == 1:
            host.write(line)
        elif cuts == 16:
            for start in range(0, len(line), 1 << 16):
                host.write(line[start : start + (1 << 16)])
        else:
            for byte in line[:4096]:
                host.write(bytes([byte]))
            host.write(line[4096:])
        replies.append(host.called(host.reply(f"c{number}")))
    assert replies[0].is_error
    assert "pausd" in replies[0].text
    assert replies[0].result == replies[1].result == replies[2].result


@pytest.mark.requirement("field.14")
def test_a_line_of_200_kib_is_answered(host: Host) -> None:
    reply = host.call("reminder_add", message="m" * 200_000, inHours=1)
    assert not reply.is_error
    host.ping()
    assert len(host.rows()[0]["message"]) == 200_000


@pytest.mark.requirement("stdio.too-long")
def test_a_line_over_the_limit_costs_one_error(host: Host) -> None:
    piece = b"x" * (1 << 20)
    for _ in range(17):
        host.write(piece)
    host.write(b"\n")
    host.ping()
    assert len(codes(host)) == 1


@pytest.mark.requirement("field.16", "jsonrpc.parse-error")
def test_content_length_framing_costs_at_most_an_error_a_line(spawn: Spawn) -> None:
    server = spawn()
    server.write(b"Content-Length: 40\r\n\r\n" + PING + b"\n")
    server.reply("p")
    assert codes(server) in ([], [-32700])


@pytest.mark.requirement("field.17", "jsonrpc.parse-error")
def test_invalid_utf8_costs_one_parse_error(spawn: Spawn) -> None:
    server = spawn()
    server.write(b"\xff\xfe\n" + b'{"jsonrpc":"2.0","id":1,"method":"p\xffng"}\n' + PING + b"\n")
    server.reply("p")
    assert codes(server) == [-32700, -32700]


@pytest.mark.requirement("field.19", "stdio.any-cut", "stdio.one-line")
def test_crlf_two_frames_a_write_and_a_cut_code_point(host: Host) -> None:
    host.write(PING + b"\r\n" + PING.replace(b'"p"', b'"q"') + b"\r\n")
    assert host.reply("p")["result"] == host.reply("q")["result"] == {}
    line = add_line("fire \U0001f525") + b"\r\n"
    middle = line.index("\U0001f525".encode()) + 2
    host.write(line[:middle])
    host.write(line[middle:])
    host.reply(5)
    assert host.rows()[0]["message"] == "fire \U0001f525"


@pytest.mark.requirement("field.22", "stdio.one-line")
def test_blank_lines_and_a_bom_are_nothing(spawn: Spawn) -> None:
    server = spawn()
    server.write(b"\n   \n\r\n\t\n")
    server.ping()
    assert len(server.messages) == 1
    other = spawn()
    other.write(b"\xef\xbb\xbf")
    other.ready()
    assert codes(other) == []


@pytest.mark.requirement("field.23", "jsonrpc.parse-error", "seed.args.out-of-range")
def test_nan_and_infinity_are_no_json_and_1e999_is_out_of_range(host: Host) -> None:
    before = host.status()
    form = (
        '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
        '{"name":"heartbeat_configure","arguments":{"intervalSeconds":%s}}}'
    )
    for word in ("NaN", "Infinity", "-Infinity"):
        host.send((form % (7, word)).encode())
    host.send((form % (8, "1e999")).encode())
    reply = host.called(host.reply(8))
    assert reply.is_error
    assert "intervalSeconds" in reply.text
    assert codes(host) == [-32700] * 3
    assert not host.replies(7)
    assert host.status().split("next in")[0] == before.split("next in")[0]


@pytest.mark.requirement("field.25", "jsonrpc.duplicate-name", "seed.args.applied-or-refused")
def test_an_argument_given_twice_is_refused_by_name(host: Host) -> None:
    host.send(
        b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"heartbeat_configure",'
        b'"arguments":{"paused":true,"paused":false}}}'
    )
    reply = host.called(host.reply(8))
    assert reply.is_error
    assert "paused: " in reply.text
    assert "Heartbeat ACTIVE" in host.status()


def _deep_answers(host: Host) -> list[Message]:
    return [m for m in host.messages if m.get("id", ...) in (8, None)]


@pytest.mark.requirement("field.26", "jsonrpc.parse-error")
def test_deep_nesting_gets_an_error_and_the_server_lives(host: Host) -> None:
    host.write(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    host.ping()
    assert codes(host) in ([-32700], [-32600])
    deep = b"[" * 2000 + b"]" * 2000
    host.write(
        b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"heartbeat_configure",'
        b'"arguments":{"message":' + deep + b"}}}\n"
    )
    host.ping()
    host.wait("the second answer", lambda: len(_deep_answers(host)) == 2)
    found = _deep_answers(host)
    assert "error" in found[1] or found[1]["result"]["isError"]


@pytest.mark.requirement("field.28", "jsonrpc.id-echo", "host.1")
def test_ids_come_back_exactly(host: Host) -> None:
    ids = [b'"1"', b"1000", b'"init-1"', b"0", b"-7", b'""', b"123456789012345678901234567890"]
    ids += [b"1.5", b"1e3", '"é☕"'.encode()]
    for one in ids:
        host.write(b'{"jsonrpc":"2.0","id":' + one + b',"method":"ping"}\n')
    host.ping()
    count = len(ids) + 1
    echoed = host.lines[-count:-1]
    for one, line in zip(ids, echoed, strict=True):
        assert json.loads(line)["result"] == {}
        assert b'"id":' + one in line.replace(b'"id": ', b'"id":') or json.loads(line)["id"] == (
            json.loads(one)
        )
    assert b"123456789012345678901234567890" in echoed[6]
    assert b"1.5" in echoed[7]


@pytest.mark.requirement("host.1")
def test_initialize_with_id_0_is_answered_with_id_0(spawn: Spawn) -> None:
    server = spawn()
    params = {"protocolVersion": "2024-11-05", "capabilities": {}}
    server.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    assert server.reply(0)["result"]["protocolVersion"] == "2024-11-05"


@pytest.mark.requirement("field.29", "jsonrpc.bad-id", "jsonrpc.invalid-request")
@pytest.mark.parametrize("bad", ["null", "true", "[1]", "{}"])
def test_a_request_with_a_bad_id_is_refused_and_not_done(host: Host, bad: str) -> None:
    host.write(
        b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":'
        b'{"name":"heartbeat_configure","arguments":{"paused":true}}}\n' % bad.encode()
    )
    assert "Heartbeat ACTIVE" in host.status()
    assert codes(host) == [-32600]


@pytest.mark.requirement("jsonrpc.invalid-request", "jsonrpc.unknown-method", "host.38")
def test_what_is_not_a_request_is_refused(host: Host) -> None:
    host.send({"id": 11, "method": "ping"}, {"jsonrpc": "1.0", "id": 12, "method": "ping"})
    host.send({"jsonrpc": "2.0", "id": 13, "method": 5}, 7, "x", None)
    assert [host.reply(one)["error"]["code"] for one in (11, 12, 13)] == [-32600] * 3
    for method in ("channels/list", "push/render", "resources/list", "nonsense"):
        assert host.ask(method)["error"]["code"] == -32601
    assert codes(host) == [-32600] * 3


@pytest.mark.requirement("field.34", "jsonrpc.unknown-notification", "host.4", "host.38")
def test_unknown_notifications_get_no_output(host: Host) -> None:
    before = len(host.messages)
    for name in ("notifications/roots/list_changed", "notifications/x", "foo", "tools/call"):
        host.notify(name)
        host.notify(name, {})
    host.notify("notifications/initialized", {})
    host.ping()
    assert len(host.messages) == before + 1


@pytest.mark.requirement("field.47", "jsonrpc.unexpected-answer")
def test_answers_that_nobody_waits_for_get_no_reply(host: Host) -> None:
    before = len(host.messages)
    host.send({"jsonrpc": "2.0", "id": 99, "result": {}}, {"id": "x", "error": {"code": 1}})
    host.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}})
    host.ping()
    assert len(host.messages) == before + 1


def _ping(id_: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "method": "ping"}


@pytest.mark.requirement("field.35", "jsonrpc.batch")
def test_an_old_version_gets_batch_replies(spawn: Spawn) -> None:
    server = spawn()
    server.initialize(version="2025-03-26")
    server.batches = True
    server.send([_ping("a"), 1, {"jsonrpc": "2.0", "method": "notifications/x"}, _ping("b")])
    server.send([], [{"jsonrpc": "2.0", "method": "notifications/x"}], [1])
    server.ping()
    batch, empty, one, pong = (json.loads(line) for line in server.lines[1:])
    assert sorted(str(m["id"]) for m in batch) == ["None", "a", "b"]
    assert empty["error"]["code"] == -32600
    assert [m["error"]["code"] for m in one] == [-32600]
    assert pong["result"] == {}


@pytest.mark.requirement("field.35", "jsonrpc.batch-later")
def test_a_later_version_gets_one_error_a_batch(spawn: Spawn) -> None:
    server = spawn()
    server.initialize(version="2025-06-18")
    for batch in ([_ping("a"), _ping("b")], [], [1]):
        server.send(batch)
    server.ping()
    assert codes(server) == [-32600] * 3
    assert not server.replies("a")


@pytest.mark.requirement("field.37", "mcp.cancelled")
def test_a_cancelled_call_is_all_or_nothing(host: Host) -> None:
    call = {"name": "reminder_add", "arguments": {"message": "x", "inHours": 1}}
    host.send(
        {"jsonrpc": "2.0", "id": 500, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 500}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4711}},
    )
    listed = host.listed()
    replies = host.replies(500)
    assert len(replies) <= 1
    if replies and not host.called(replies[0]).is_error:
        assert "1 reminder(s)" in listed
    assert host.end() == 0
    stored = len(host.rows()) if host.reminders.exists() else 0
    assert ("1 reminder(s)" in listed) == (stored == 1)
