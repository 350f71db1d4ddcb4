"""What the host sends: names, moments, texts."""

from decimal import Decimal
from typing import Any

import pytest

from conformance import exact, values

pytestmark = pytest.mark.requirement("conformance.format")

NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("content", "filled"),
    [
        ({"a": [{"$ref": "id"}, "x${id}y"]}, {"a": ["rem_1", "xrem_1y"]}),
        ({"$now": 1.5}, NOW + 1_500),
        ({"$now": Decimal("-0.25")}, NOW - 250),
        ({"$now": 0, "as": "iso"}, "2026-09-21T14:13:20.000Z"),
        ({"$now": 60, "as": "local"}, "2026-09-21T14:14:20"),
        ({"$literal": "${id}"}, "${id}"),
        ({"$schema": "x", "$ref": "#/a", "b": 1}, {"$schema": "x", "$ref": "#/a", "b": 1}),
        (None, None),
    ],
)
def test_names_and_moments_are_filled_in(content: Any, filled: Any) -> None:
    assert values.fill(content, {"id": "rem_1"}, NOW) == filled


def test_a_name_that_nothing_has_bound_is_an_error() -> None:
    with pytest.raises(values.UnboundError, match="'id'"):
        values.fill(["${id}"], {}, NOW)


def test_texts_are_put_together() -> None:
    pieces = ["a", {"$repeat": "bc", "times": 3}, "${x}\n"]
    assert values.text(pieces, {"x": "d"}) == "abcbcbcd\n"
    with pytest.raises(ValueError, match="no text"):
        values.text({"$repeat": "x"}, {})


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "", "1 2", "[" * 100_000])
def test_what_is_not_json_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        exact.read(text)


def test_numbers_keep_their_spelling() -> None:
    text = "[1.50, 12345678901234567890123, 1E+400, -0.0]"
    assert exact.write(exact.read(text)) == text


def test_half_a_surrogate_pair_is_escaped() -> None:
    assert exact.write({"\ud83d": "ä"}) == '{"\\ud83d": "\\u00e4"}'


def test_a_name_given_twice_is_noticed() -> None:
    assert exact.read_without_twins('{"a": {"a": 1}}') == {"a": {"a": 1}}
    with pytest.raises(ValueError, match="twice"):
        exact.read_without_twins('[{"a": 1, "a": 1}]')
