"""Values to lines: one line of ASCII each, valid whatever is in it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpl_heartbeat.jsonrpc.encoding import (
    encode_batch,
    encode_error,
    encode_request,
    encode_result,
)
from mcpl_heartbeat.jsonrpc.messages import (
    Answer,
    PeerError,
    Refusal,
    Request,
    parse,
)

LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"

texts = st.text() | st.text(alphabet=LINE_ENDS + '"\\é\U0001f378')
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(texts, children),
    max_leaves=6,
)


def one_object(line: bytes) -> Any:
    """The object of a line, which must be one line however it is split."""
    assert line.endswith(b"\n")
    assert line.isascii()
    assert len(line.decode().splitlines()) == 1
    assert b"\r" not in line
    return json.loads(line)


@pytest.mark.requirement("jsonrpc.encode", "stdio.escapes", "stdio.one-line", "field.11", "host.34")
@given(result=values, id=texts | st.integers())
def test_a_result_parses_back_to_what_was_meant(result: object, id: str | int) -> None:
    raw_id = Raw(json.dumps(id, ensure_ascii=False).encode())
    line = encode_result(raw_id, result)
    assert one_object(line) == {"jsonrpc": "2.0", "id": id, "result": result}

    said = parse(line[:-1])
    assert isinstance(said, Answer)
    assert said.id == id
    assert said.result is not None
    assert msgspec.json.decode(said.result) == result


@pytest.mark.requirement("jsonrpc.encode", "stdio.escapes")
@given(code=st.integers(-(2**31), 2**31), message=texts, data=values)
def test_an_error_parses_back_to_what_was_meant(code: int, message: str, data: object) -> None:
    line = encode_error(Raw(b'"a"'), Refusal(code, message, data))
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    assert one_object(line) == {"jsonrpc": "2.0", "id": "a", "error": error}
    assert parse(line[:-1]) == Answer("a", None, PeerError(code, message, data))


@pytest.mark.requirement("jsonrpc.encode")
@given(params=st.dictionaries(texts, values), id=texts, method=texts)
def test_a_request_parses_back_to_what_was_meant(
    params: dict[str, object], id: str, method: str
) -> None:
    line = encode_request(id, method, params)
    assert one_object(line) == {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    sent = parse(line[:-1])
    assert isinstance(sent, Request)
    assert sent.method == method
    assert sent.params is not None
    assert msgspec.json.decode(sent.params) == params


@pytest.mark.requirement("jsonrpc.encode")
def test_an_error_without_an_id_has_id_null_and_no_data() -> None:
    line = encode_error(None, Refusal(-32700, "not JSON"))
    assert line == b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}\n'


@pytest.mark.requirement("stdio.escapes", "field.11")
@pytest.mark.parametrize("character", LINE_ENDS + "é\U0001f378\ud7ff\uffff\U0010ffff")
def test_echoed_ids_and_texts_hold_no_character_that_ends_a_line(character: str) -> None:
    id = json.dumps(f"a{character}b", ensure_ascii=False).encode()
    line = encode_result(Raw(id), {"text": character})
    assert one_object(line) == {
        "jsonrpc": "2.0",
        "id": f"a{character}b",
        "result": {"text": character},
    }


@pytest.mark.requirement("stdio.escapes", "stdio.one-line")
def test_line_breaks_between_the_tokens_of_raw_json_become_spaces() -> None:
    line = encode_result(Raw(b"1"), Raw(b'{\r\n  "a": [\n1,\r2]}'))
    assert one_object(line)["result"] == {"a": [1, 2]}
    assert encode_result(Raw(b"1"), Raw(b"[1,\r2]")).count(b"\r") == 0


@pytest.mark.requirement("jsonrpc.encode")
def test_raw_bytes_that_are_not_utf8_still_leave_as_json() -> None:
    line = encode_error(Raw(b'"a\xff"'), Refusal(1, "m"))
    assert one_object(line)["id"] == "a\ufffd"


@pytest.mark.requirement("jsonrpc.encode", "jsonrpc.lone-surrogate")
@pytest.mark.parametrize(
    "odd", ["\ud800", "\udc00", "a\ud800b", "\udc00\ud800", "\ud800\ud83c\udf78"]
)
def test_a_lone_surrogate_of_our_own_leaves_as_the_replacement_character(odd: str) -> None:
    plain = odd.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert "\ufffd" in plain

    class Result(msgspec.Struct, rename="camel"):
        some_text: str
        raw: Raw
        items: tuple[str, ...] = ()
        left_out: str | msgspec.UnsetType = msgspec.UNSET

    result = Result(odd, Raw(b'{"n":1}'), (odd, "x"))
    assert one_object(encode_result(Raw(b"1"), result))["result"] == {
        "someText": plain,
        "raw": {"n": 1},
        "items": [plain, "x"],
    }
    error = one_object(encode_error(None, Refusal(1, odd, {odd: [odd, 2.5, None]})))["error"]
    assert error == {"code": 1, "message": plain, "data": {plain: [plain, 2.5, None]}}
    assert one_object(encode_request("a", "m", {"text": odd}))["params"] == {"text": plain}


@pytest.mark.requirement("jsonrpc.encode")
def test_a_value_that_json_cannot_hold_is_our_own_fault() -> None:
    with pytest.raises(TypeError):
        encode_result(Raw(b"1"), object())
    with pytest.raises(TypeError):
        encode_result(Raw(b"1"), ["\ud800", object()])


@pytest.mark.requirement("jsonrpc.batch", "jsonrpc.encode")
@given(st.lists(values, min_size=1, max_size=4))
def test_a_batch_holds_its_replies_in_order(results: list[object]) -> None:
    replies = [encode_result(Raw(str(n).encode()), result) for n, result in enumerate(results)]
    batch = one_object(encode_batch(replies))
    assert batch == [json.loads(reply) for reply in replies]
