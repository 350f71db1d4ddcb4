"""A line to an answer or to a batch."""

import pytest

from mcpl_heartbeat.jsonrpc.messages import (
    INVALID_REQUEST,
    Answer,
    Batch,
    Invalid,
    PeerError,
    parse,
)
from tests.jsonrpc.support import answered, refused

# Answers


@pytest.mark.requirement("jsonrpc.unexpected-answer", "field.47")
@pytest.mark.parametrize("version", ['"jsonrpc":"2.0",', '"jsonrpc":"1.0",', '"jsonrpc":2,', ""])
def test_an_object_with_a_result_and_no_method_is_an_answer(version: str) -> None:
    said = answered(f'{{{version}"id":"a-1","result":{{"accepted":true}}}}')
    assert said.id == "a-1"
    assert said.result is not None
    assert bytes(said.result) == b'{"accepted":true}'
    assert said.error is None


@pytest.mark.requirement("jsonrpc.unexpected-answer")
@pytest.mark.parametrize("method", ["", '"method":null,', '"method": null ,"jsonrpc":2,'])
def test_null_stands_for_absent_in_an_answer(method: str) -> None:
    said = answered(f'{{{method}"id":"a","result":null,"error":null}}')
    assert said.error is None
    assert said.result is not None
    assert bytes(said.result) == b"null"


@pytest.mark.requirement("jsonrpc.answer-matching", "field.47")
@pytest.mark.parametrize(
    ("id", "read"),
    [
        ('"1"', "1"),
        ("1", 1),
        ("1.5", 1.5),
        ("99999999999999999999", 99999999999999999999),
        ("null", None),
        ("true", None),
        ("[1]", None),
        ("{}", None),
        ("1e999", None),
    ],
)
def test_the_id_of_an_answer_keeps_its_type(id: str, read: object) -> None:
    said = answered(f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}')
    assert said.id == read
    assert type(said.id) is type(read)


@pytest.mark.requirement("jsonrpc.unexpected-answer")
@pytest.mark.parametrize(
    ("error", "read"),
    [
        ('{"code":-32002,"message":"m","data":{"a":[1]}}', PeerError(-32002, "m", {"a": [1]})),
        ('{"code":-32002.0,"message":"m"}', PeerError(-32002, "m", None)),
        ('{"code":1.5,"message":5}', PeerError(None, "", None)),
        ('{"code":"-32002","message":null}', PeerError(None, "", None)),
        ('{"code":true}', PeerError(None, "", None)),
        ('{"code":1e999,"data":1e999}', PeerError(None, "", None)),
        ("{}", PeerError(None, "", None)),
        ('"boom"', PeerError(None, "boom", None)),
        ("5", PeerError(None, "", None)),
        ("[]", PeerError(None, "", None)),
        ("null", None),
    ],
)
def test_the_error_of_an_answer_is_read_as_far_as_it_can_be(
    error: str, read: PeerError | None
) -> None:
    said = answered(f'{{"jsonrpc":"2.0","id":"a","error":{error}}}')
    assert said == Answer("a", None, read)


@pytest.mark.requirement("jsonrpc.unexpected-answer")
def test_an_answer_without_an_id_is_an_answer_nobody_waits_for() -> None:
    assert answered('{"jsonrpc":"2.0","error":{"code":-32700}}').id is None


# Batches


@pytest.mark.requirement("jsonrpc.batch", "field.35")
def test_the_items_of_a_batch_are_read_each_by_the_same_rules() -> None:
    batch = parse(
        b' [ {"jsonrpc":"2.0","id":1,"method":"ping"} , {"jsonrpc":"2.0","method":"n"}, 1, [], '
        b'{"jsonrpc":"1.0","id":2,"method":"m"}, {"id":"a","result":{}}, {"jsonrpc":2,"id":null},'
        b'{"jsonrpc":"2.0","method":"n","params":1}, null ]'
    )
    assert isinstance(batch, Batch)
    kinds = [type(item).__name__ for item in batch.items]
    assert kinds == [
        "Request",
        "Notification",
        "Invalid",
        "Invalid",
        "Invalid",
        "Answer",
        "Invalid",
        "Answer",
        "Invalid",
    ]
    invalid = [item for item in batch.items if isinstance(item, Invalid)]
    assert {item.refusal.code for item in invalid} == {INVALID_REQUEST}
    assert [item.id and bytes(item.id) for item in invalid] == [None, None, b"2", None, None]


@pytest.mark.requirement("jsonrpc.batch", "field.35")
def test_an_empty_batch_is_one_invalid_request() -> None:
    assert refused("[]") == (INVALID_REQUEST, None)
    assert refused("[ ]") == (INVALID_REQUEST, None)


@pytest.mark.requirement("jsonrpc.batch", "field.35")
def test_a_batch_of_a_bare_value_is_a_batch() -> None:
    batch = parse(b"[1]")
    assert isinstance(batch, Batch)
    assert [item.refusal.code for item in batch.items if isinstance(item, Invalid)] == [
        INVALID_REQUEST
    ]
