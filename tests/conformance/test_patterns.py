"""Patterns match what ``FORMAT.md`` says they do, and nothing else."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import exact, moments, patterns, values
from conformance.patterns import ABSENT, Clock, Miss, complaint

pytestmark = pytest.mark.requirement("conformance.patterns")

NOW = 1_790_000_000_000
CLOCK = Clock(NOW, 5)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text().filter(lambda text: "$" not in text)
)
names = st.text(max_size=5).filter(lambda name: "$" not in name)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4)
)


def fits(pattern: Any, value: Any, **bound: Any) -> Any:
    """Return the names bound, or ``None`` for a miss."""
    assert complaint(pattern) is None
    result = patterns.match(pattern, value, bound, CLOCK)
    return None if isinstance(result, Miss) else result


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (1, Decimal("1.0")),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": "$absent"}, {"b": 1}),
        ({"$only": {"a": "$any", "b": "$absent"}}, {"a": None}),
        ("$integer", Decimal("1E+1000000")),
        ("$integer", 10**400),
        ("$number", Decimal("1.5")),
        ("$boolean", False),
        ("$object", {}),
        ("$array", []),
        ({"$re": "b+"}, "abbc"),
        ({"$re": "^a$"}, "a"),
        ({"$contains": "b.c"}, "ab.cd"),
        ({"$contains": ["a", "d"]}, "abcd"),
        ({"$any_of": [1, 2]}, 2),
        ({"$all_of": [{"$contains": "a"}, {"$contains": "b"}]}, "ab"),
        ({"$not": 1}, 2),
        ({"a": {"$any_of": ["$absent", 1]}}, {}),
        ({"$unordered": ["$any", 1, {"$re": "x"}]}, ["x", 1, 2]),
        ({"$has": {"a": 1}}, [0, {"a": 1}]),
        ({"$each": "$integer"}, [1, 2]),
        ({"$each": "$integer"}, []),
        ({"$length": 2}, "ab"),
        ({"$length": {"$min": 2}}, {"a": 1, "b": 2}),
        ({"$min": 1, "$max": 2}, 2),
        ({"$max": 2}, Decimal("-0.5")),
        ({"$now": 3}, NOW + 8_000),
        ({"$now": -60, "within": 1}, NOW - 60_999),
        ({"$now": 0}, "2026-09-21T14:13:20.000Z"),
        ({"$now": 0}, "2026-09-21T16:13:20+02:00 [Europe/Berlin]"),
        ({"$literal": {"$re": "x"}}, {"$re": "x"}),
    ],
)
def test_it_fits(pattern: Any, value: Any) -> None:
    assert fits(pattern, value) is not None


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (1, True),
        (1, "1"),
        (None, ABSENT),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, [1]),
        ({"a": "$any"}, {}),
        ({"a": "$absent"}, {"a": None}),
        ({"$only": {"a": 1}}, {"a": 1, "b": 2}),
        ({"$only": {"a": 1}}, {}),
        ([1], [1, 2]),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        ("$integer", Decimal("1.5")),
        ("$integer", True),
        ("$number", "1"),
        ("$string", None),
        ({"$re": "^b"}, "ab"),
        ({"$re": "1"}, 1),
        ({"$contains": ["a", "x"]}, "abcd"),
        ({"$any_of": [1, 2]}, 3),
        ({"$all_of": [{"$contains": "a"}, {"$contains": "x"}]}, "ab"),
        ({"$not": "$integer"}, 2),
        ({"$unordered": [1, 1]}, [1, 2]),
        ({"$unordered": [1]}, [1, 1]),
        ({"$has": 1}, [2, 3]),
        ({"$each": "$integer"}, [1, "2"]),
        ({"$length": 2}, 2),
        ({"$min": 1}, 0),
        ({"$min": 1}, "2"),
        ({"$now": 3}, NOW + 8_001),
        ({"$now": 0}, "2026-09-21T14:13:20"),
        ({"$now": 0}, "soon"),
        ({"$literal": {"a": 1}}, {"a": 1, "b": 2}),
    ],
)
def test_it_does_not_fit(pattern: Any, value: Any) -> None:
    assert fits(pattern, value) is None


@given(json_values)
def test_every_value_matches_itself_and_its_own_type(value: Any) -> None:
    assert fits(value, value) == {}
    assert fits({"$literal": value}, value) == {}
    assert fits({"$not": value}, value) is None
    assert fits({"$only": {"m": value}}, {"m": value}) == {}


@given(json_values, json_values)
def test_two_values_match_each_other_just_if_they_are_the_same(one: Any, other: Any) -> None:
    both = fits({"$literal": one}, other) is not None
    assert both == exact.same(one, other) == (fits({"$literal": other}, one) is not None)


@given(st.lists(st.integers(0, 3), max_size=5), st.randoms())
def test_a_shuffled_list_fits_unordered(items: list[int], random: Any) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    assert fits({"$unordered": items}, shuffled) == {}


@given(json_values)
def test_what_is_written_reads_back(value: Any) -> None:
    text = exact.write(value)
    assert "\n" not in text
    assert exact.same(exact.read(text), value)


@given(st.text(st.characters(), max_size=20))
def test_any_string_can_be_written_as_utf_8(text: str) -> None:
    assert json.loads(exact.write([text]).encode()) == json.loads(json.dumps([text]))


@given(st.integers(-(10**9), 10**13))
def test_moments_read_back(ms: int) -> None:
    assert moments.to_ms(moments.to_text(ms, "iso")) == ms
    assert moments.to_ms(moments.to_text(ms, "local") + "Z") == ms // 1000 * 1000


def test_names_are_bound_and_referred_to() -> None:
    pattern = [{"$bind": "a", "as": "$integer"}, {"$re": "^(?P<b>[a-z]+)-(?P<c>x)?"}, {"$ref": "a"}]
    assert fits(pattern, [7, "id-", 7]) == {"a": 7, "b": "id"}
    assert fits(pattern, [7, "id-", 8]) is None
    assert fits({"$bind": "a", "as": "$string"}, 1) is None
    assert fits({"$re": "^${a}$"}, "1.5", a="1.5") is not None
    assert fits({"$re": "^${a}$"}, "1x5", a="1.5") is None
    assert fits({"$contains": "${a}"}, "1.5", a="1.5") is not None
    assert fits("<${a}>", "<1>", a=1) is not None
    assert fits({"$any_of": [[{"$bind": "a"}, 2], [{"$bind": "b"}, 3]]}, [1, 3]) == {"b": 1}
    assert fits({"$unordered": [{"$bind": "a"}, 1]}, [1, 2]) == {"a": 2}


def test_a_name_that_nothing_has_bound_is_no_miss() -> None:
    for pattern in ({"$ref": "x"}, {"$re": "${x}"}, {"$contains": "${x}"}, "${x}"):
        with pytest.raises(values.UnboundError):
            patterns.match(pattern, "", {}, CLOCK)


def test_a_miss_says_where() -> None:
    miss = patterns.match({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, {}, CLOCK)
    assert str(miss) == "at a.b[1].c: wanted 2, got 3"
    miss = patterns.match({"$only": {"a": 1}}, {"a": 1, "b": 2}, {}, CLOCK)
    assert str(miss) == 'at b: wanted "$absent", got 2'
    assert str(patterns.match("x", ABSENT, {}, CLOCK)) == 'wanted "x", got nothing'


@pytest.mark.parametrize(
    "pattern",
    [
        "$text",
        {"$regex": "x"},
        {"$re": "("},
        {"$re": 1},
        {"$re": "x", "a": 1},
        {"$contains": [1]},
        {"$any_of": 1},
        {"$unordered": {"a": 1}},
        {"$only": [1]},
        {"$not": "$nothing"},
        {"$min": "1"},
        {"$now": "0"},
        {"$bind": 1},
        {"$bind": "a", "as": "$x"},
        {"$ref": ["a"]},
        [{"a": ["$x"]}],
    ],
)
def test_a_pattern_that_makes_no_sense_is_named(pattern: Any) -> None:
    assert complaint(pattern)
