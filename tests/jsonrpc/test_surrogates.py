"""Surrogate escapes: pairs are read as one character, halves as the replacement character."""

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.jsonrpc.messages import PARSE_ERROR, Batch, Notification, PeerError, parse
from tests.jsonrpc.support import answered, refused, request


@pytest.mark.requirement("jsonrpc.lone-surrogate", "field.31")
@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (r"\ud83c\udf78", "\U0001f378"),
        (r"\uD83C\uDF78", "\U0001f378"),
        (r"\ud83c", "\ufffd"),
        (r"\uDF78", "\ufffd"),
        (r"a\ud83cb", "a\ufffdb"),
        (r"\ud83c\ud83c\udf78", "\ufffd\U0001f378"),
        (r"\ud83c\udf78\udf78", "\U0001f378\ufffd"),
        (r"\udf78\ud83c", "\ufffd\ufffd"),
        (r"\ud83c\u0041", "\ufffdA"),
        (r"\ud83c\\udf78", "\ufffd\\udf78"),
        (r"\\ud83c", "\\ud83c"),
        (r"\\\ud83c", "\\\ufffd"),
        (r"\\\\ud83c \ud83c", "\\\\ud83c \ufffd"),
        (r"\"\ud83c\"", '"\ufffd"'),
    ],
)
def test_a_surrogate_without_its_other_half_becomes_the_replacement_character(
    sent: str, read: str
) -> None:
    call = request(f'{{"jsonrpc":"2.0","id":"{sent}","method":"{sent}","params":{{"a":"{sent}"}}}}')
    assert call.method == read
    assert call.params is not None
    assert msgspec.json.decode(call.params) == {"a": read}
    assert msgspec.json.decode(call.id) == read


@pytest.mark.requirement("jsonrpc.lone-surrogate", "field.31")
@given(
    st.lists(
        st.sampled_from([r"\ud83c", r"\uDF78", r"\\", r"\"", r"\n", r"\u0041", "u", "ud83c", "é"])
    ).map("".join)
)
def test_only_lone_surrogates_are_replaced(text: str) -> None:
    read = re.sub("[\ud800-\udfff]", "\ufffd", json.loads(f'"{text}"'))
    assert request(f'{{"jsonrpc":"2.0","id":1,"method":"{text}"}}').method == read


@pytest.mark.requirement("jsonrpc.lone-surrogate", "jsonrpc.parse-error")
def test_a_surrogate_in_what_is_not_json_anyway_stays_a_parse_error() -> None:
    assert refused(r'{"jsonrpc":"2.0","id":1,"method":"\ud83c"') == (PARSE_ERROR, None)
    assert refused(r"\ud83c") == (PARSE_ERROR, None)


@pytest.mark.requirement("jsonrpc.lone-surrogate", "jsonrpc.batch")
def test_surrogates_in_a_batch_and_in_an_answer_are_read_alike() -> None:
    assert parse(rb'[{"jsonrpc":"2.0","method":"\ud83c"}]') == Batch((Notification("�", None),))
    error = answered(r'{"id":"a","error":{"code":1,"message":"\ud83c"}}').error
    assert error == PeerError(1, "\ufffd", None)
