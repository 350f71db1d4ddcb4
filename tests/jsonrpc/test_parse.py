"""A line to a message: each rule of JSON-RPC 2.0, and what peers really send."""

import bisect
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.jsonrpc import messages
from mcpl_heartbeat.jsonrpc.encoding import encode_error, encode_result
from mcpl_heartbeat.jsonrpc.framing import LineBuffer, TooLong
from mcpl_heartbeat.jsonrpc.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Answer,
    Invalid,
    Notification,
    Request,
    parse,
)
from tests.jsonrpc.support import answered, refused, request

IDS = [
    "1",
    '"1"',
    '"init-1"',
    "0",
    "-0",
    "-7",
    "1.5",
    "1.0",
    "1e3",
    "1e999",
    "-1E-400",
    "123456789012345678901234567890.50",
    "9007199254740993",
    "1" + "0" * 5000,
    '""',
    '"\\u0041\\n\\/"',
    '"\\ud83c\\udf78"',
]


def nested(shape: str, depth: int) -> bytes:
    return (shape % ("[" * depth + "]" * depth)).encode()


# Calls


@pytest.mark.requirement("jsonrpc.id-echo")
def test_a_request_keeps_its_id_and_params_as_they_were_sent() -> None:
    sent = request('{ "jsonrpc" : "2.0", "id" : 1.50 , "method":"m", "params": {"a": [1 ,2]} }')
    assert bytes(sent.id) == b"1.50"
    assert sent.method == "m"
    assert sent.params is not None
    assert bytes(sent.params) == b'{"a": [1 ,2]}'


@pytest.mark.requirement("jsonrpc.id-echo", "field.28", "host.1")
@pytest.mark.parametrize("id", IDS)
def test_ids_of_every_kind_come_back_exactly(id: str) -> None:
    sent = request(f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}')
    assert encode_result(sent.id, {}) == f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}\n'.encode()
    wrong = parse(f'{{"jsonrpc":"1.0","id":{id},"method":"ping"}}'.encode())
    assert isinstance(wrong, Invalid)
    assert encode_error(wrong.id, wrong.refusal).startswith(
        f'{{"jsonrpc":"2.0","id":{id},"error":{{'.encode()
    )


@pytest.mark.requirement("jsonrpc.invalid-params")
@pytest.mark.parametrize("params", ["", ',"params":null'])
def test_params_absent_or_null_are_none(params: str) -> None:
    assert request(f'{{"jsonrpc":"2.0","id":1,"method":"m"{params}}}').params is None


@pytest.mark.requirement("jsonrpc.invalid-params")
def test_params_may_be_an_array() -> None:
    sent = request('{"jsonrpc":"2.0","id":1,"method":"m","params":[]}')
    assert sent.params is not None
    assert bytes(sent.params) == b"[]"


@pytest.mark.requirement("jsonrpc.invalid-params")
@pytest.mark.parametrize("params", ["5", "-1", '"x"', "true", "false"])
def test_params_of_another_type_are_refused_under_the_id(params: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":"a","method":"m","params":{params}}}'
    assert refused(line) == (INVALID_PARAMS, b'"a"')


@pytest.mark.requirement("jsonrpc.unknown-notification", "field.34")
def test_a_call_without_an_id_is_a_notification() -> None:
    message = parse(b'{"jsonrpc":"2.0","method":"notifications/x","params":{}}')
    assert isinstance(message, Notification)
    assert message.method == "notifications/x"
    assert message.params is not None
    assert parse(b'{"jsonrpc":"2.0","method":"foo"}') == Notification("foo", None)


@pytest.mark.requirement("jsonrpc.unknown-notification")
@pytest.mark.parametrize("params", ["5", '"x"', "true"])
def test_a_notification_with_wrong_params_is_neither_done_nor_answered(params: str) -> None:
    line = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}'
    assert answered(line) == Answer(None, None, None)


@pytest.mark.requirement("jsonrpc.invalid-request")
def test_members_that_json_rpc_does_not_know_are_ignored() -> None:
    sent = request('{"_meta":{"a":[1]},"jsonrpc":"2.0","id":1,"method":"m","result":1,"x":null}')
    assert sent.method == "m"


@pytest.mark.requirement("jsonrpc.invalid-request")
def test_names_are_compared_after_their_escapes() -> None:
    assert request('{"\\u006asonrpc":"\\u0032.0","i\\u0064":1,"method":"\\u006d"}').method == "m"


# What is not a request


@pytest.mark.requirement("jsonrpc.bad-id", "field.29")
@pytest.mark.parametrize("id", ["null", "true", "false", "{}", "[]", '{"a":1}'])
@pytest.mark.parametrize("version", ['"2.0"', '"1.0"', "2"])
def test_an_id_that_is_no_string_or_number_is_refused_under_null(id: str, version: str) -> None:
    line = f'{{"jsonrpc":{version},"id":{id},"method":"heartbeat_configure"}}'
    assert refused(line) == (INVALID_REQUEST, None)


@pytest.mark.requirement("jsonrpc.invalid-request")
@pytest.mark.parametrize(
    "version", ["", '"jsonrpc":"1.0",', '"jsonrpc":"2.0 ",', '"jsonrpc":2.0,', '"jsonrpc":null,']
)
def test_another_version_of_json_rpc_is_refused_under_the_id_when_there_is_one(
    version: str,
) -> None:
    assert refused(f'{{{version}"id":7,"method":"ping"}}') == (INVALID_REQUEST, b"7")
    assert refused(f'{{{version}"method":"ping"}}') == (INVALID_REQUEST, None)


@pytest.mark.requirement("jsonrpc.invalid-request")
@pytest.mark.parametrize("method", ["", ',"method":null', ',"method":5', ',"method":["m"]'])
def test_a_method_that_is_missing_or_no_string_is_refused_under_the_id(method: str) -> None:
    assert refused(f'{{"jsonrpc":"2.0","id":7{method}}}') == (INVALID_REQUEST, b"7")
    assert refused(f'{{"jsonrpc":"2.0"{method}}}') == (INVALID_REQUEST, None)


@pytest.mark.requirement("jsonrpc.invalid-request", "host.3")
@pytest.mark.parametrize("value", ["5", '"ping"', "null", "true", " 1.5 ", "{}"])
def test_a_bare_value_is_refused_under_null(value: str) -> None:
    assert refused(value) == (INVALID_REQUEST, None)


@pytest.mark.requirement("jsonrpc.invalid-request")
def test_refusals_name_the_member_that_is_wrong() -> None:
    def text(line: str) -> str:
        message = parse(line.encode())
        assert isinstance(message, Invalid)
        return message.refusal.message

    assert "jsonrpc" in text('{"id":1,"method":"m"}')
    assert "jsonrpc" in text('{"jsonrpc":2,"id":1,"method":"m"}')
    assert "method" in text('{"jsonrpc":"2.0","id":1}')
    assert "method" in text('{"jsonrpc":"2.0","id":1,"method":1}')
    assert "id" in text('{"jsonrpc":"2.0","id":null,"method":"m"}').split()
    assert "params" in text('{"jsonrpc":"2.0","id":1,"method":"m","params":1}')


# What is not JSON


@pytest.mark.requirement("jsonrpc.parse-error", "field.17", "field.23", "host.3")
@pytest.mark.parametrize(
    "line",
    [
        b"ping",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}',
        b'{"jsonrpc":"2.0","id":01,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"a\tb"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud8"}',
        b"[1,",
        b"[1,]",
        b"Content-Length: 40",
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":"\xed\xa0\x80","method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xc3"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","x":"\xc3"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"intervalSeconds":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"intervalSeconds":Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"intervalSeconds":-Infinity}}',
        b'{"jsonrpc":1,"id":1,"method":"m","params":{"intervalSeconds":NaN}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b"",
    ],
)
def test_what_is_not_json_is_a_parse_error_under_null(line: bytes) -> None:
    assert refused(line) == (PARSE_ERROR, None)


@pytest.mark.requirement("jsonrpc.parse-error", "field.23")
def test_a_number_too_large_for_a_float_is_left_to_the_rules_for_arguments() -> None:
    sent = request('{"jsonrpc":"2.0","id":1,"method":"m","params":{"intervalSeconds":1e999}}')
    assert sent.params is not None
    assert bytes(sent.params) == b'{"intervalSeconds":1e999}'


@pytest.mark.requirement("jsonrpc.parse-error", "field.26")
@pytest.mark.parametrize(
    "shape",
    [
        '{"a":%s}',
        '{"jsonrpc":"2.0","id":1,"method":"m","params":%s}',
        '{"jsonrpc":"2.0","id":%s,"method":"m"}',
        '{"jsonrpc":2,"id":1,"method":%s}',
        '{"jsonrpc":"2.0","id":1,"error":{"data":%s}}',
        "%s",
        "[%s]",
    ],
)
def test_nesting_that_no_parser_survives_is_a_parse_error(shape: str) -> None:
    assert refused(nested(shape, 100_000)) == (PARSE_ERROR, None)


@pytest.mark.requirement("jsonrpc.never-raises", "field.26")
@pytest.mark.parametrize("shape", ["%s", '{"id":1,"error":{"data":%s}}', '{"id":1,"method":%s}'])
def test_up_to_the_deepest_nesting_that_can_be_read_it_is_read_as_what_it_is(shape: str) -> None:
    def reading(depth: int) -> tuple[type, object]:
        message = parse(nested(shape, depth))
        return type(message), message.refusal if isinstance(message, Invalid) else None

    shallow, deep = reading(10), reading(100_000)
    # How deep that is depends on the interpreter; next to it no step of the reading may differ.
    limit = bisect.bisect(range(100_000), False, key=lambda depth: reading(depth) == deep)
    assert limit > 500
    near = [reading(depth) for depth in range(limit - 8, limit + 9)]
    readable = near.count(shallow)
    assert near == [shallow] * readable + [deep] * (len(near) - readable)
    assert 0 < readable < len(near)


@pytest.mark.requirement("stdio.too-long")
def test_a_line_over_the_limit_is_one_error_under_null() -> None:
    message = parse(TooLong())
    assert isinstance(message, Invalid)
    assert message.refusal.code == PARSE_ERROR
    assert message.id is None
    assert "16777216" in message.refusal.message


# Any bytes

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children),
    max_leaves=6,
)
envelopes = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]),
    st.just("2.0") | json_values,
)
almost_json = st.lists(
    st.sampled_from(
        [b"{", b"}", b"[", b"]", b'"', b":", b",", b" ", b"-", b"0", b"\\", b"\xc3", b"\xa9"]
    )
    | st.sampled_from([b'"id"', b'"method"', b'"jsonrpc":"2.0"', b'"result":', b'"error":'])
    | st.sampled_from([rb"\ud800", rb"\udc00", b"null", b"NaN", b"1e999", b'{"code":']),
    max_size=20,
).map(b"".join)


def plain_json(line: bytes) -> tuple[bool, Any]:
    """What the standard library's strictest reading makes of a line."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return True, json.loads(line.decode(), parse_constant=refuse)
    except ValueError:
        return False, None


@pytest.mark.requirement("jsonrpc.never-raises", "jsonrpc.parse-error")
@given(st.binary(max_size=60) | almost_json | json_values.map(json.dumps).map(str.encode))
def test_no_bytes_raise_and_what_is_not_json_is_a_parse_error(line: bytes) -> None:
    message = parse(line)
    is_json, _ = plain_json(line)
    is_parse_error = isinstance(message, Invalid) and message.refusal.code == PARSE_ERROR
    assert is_parse_error == (not is_json)


@pytest.mark.requirement("jsonrpc.never-raises", "jsonrpc.invalid-request", "jsonrpc.bad-id")
@given(envelopes)
def test_every_object_is_read_by_the_rules(envelope: dict[str, Any]) -> None:
    line = json.dumps(envelope).encode()
    message = parse(line)

    id, method = envelope.get("id"), envelope.get("method")
    good_id = isinstance(id, str | int | float) and not isinstance(id, bool)
    if method is None and ("result" in envelope or "error" in envelope):
        assert isinstance(message, Answer)
    elif "id" in envelope and not good_id:
        assert refused(line) == (INVALID_REQUEST, None)
    elif envelope.get("jsonrpc") != "2.0" or not isinstance(method, str):
        assert refused(line) == (INVALID_REQUEST, json.dumps(id).encode() if good_id else None)
    elif not isinstance(envelope.get("params"), dict | list | None):
        assert isinstance(message, Invalid if good_id else Answer)
    else:
        assert isinstance(message, Request if good_id else Notification)


@pytest.mark.requirement("stdio.any-cut", "field.13")
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_every_message_is_read_alike_byte_by_byte(end: bytes) -> None:
    lines = [
        '{"jsonrpc":"2.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","method":"né","params":{"a":"\U0001f378"}}',
        '{"jsonrpc":"2.0","id":"a","result":{}}',
        '{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"é"}}',
        '[{"jsonrpc":"2.0","id":1,"method":"ping"},1]',
        '{"jsonrpc":"1.0","id":1}',
        "not JSON",
    ]
    buffer = LineBuffer()
    stream = b"".join(line.encode() + end for line in lines)
    cut = [parse(line) for byte in stream for line in buffer.feed(bytes([byte]))]
    assert [msgspec.json.encode(message) for message in cut] == [
        msgspec.json.encode(parse(line.encode())) for line in lines
    ]


@pytest.mark.requirement("field.14")
def test_a_line_of_200_kib_is_a_message_like_any_other() -> None:
    text = "x" * 200 * 1024
    sent = request(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"message":"{text}"}}}}')
    assert msgspec.json.decode(sent.params or b"") == {"message": text}


@pytest.mark.requirement("jsonrpc.unknown-method")
def test_the_error_codes_are_those_of_json_rpc() -> None:
    assert messages.METHOD_NOT_FOUND == -32601
    assert messages.INTERNAL_ERROR == -32603
    assert (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS) == (-32700, -32600, -32602)
