"""A result against the contract: every type, every problem, and what counts as the same."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpl_heartbeat.tasks import contract
from mcpl_heartbeat.tasks.rows import DataType, Field


def field(data_type: str = "number", key: str = "x", *, required: bool = True) -> Field:
    return msgspec.convert({"key": key, "dataType": data_type, "required": required}, Field)


def problems(outputs: Any, *fields: Field) -> tuple[str, ...]:
    return contract.check(Raw(msgspec.json.encode(outputs)), fields or (field(),))


FITS: dict[str, list[str]] = {
    "string": ['""', '"a"', '"12"', '"\\u0000"'],
    "number": ["0", "-0.0", "12.5", "1e300", "123456789012345678901234567890"],
    "integer": ["0", "-7", "5.0", "1e3", "123456789012345678901234567890"],
    "boolean": ["true", "false"],
    "date": [
        '"2026-08-29"',
        '"2028-02-29"',
        '"2026-08-29T10:20:00Z"',
        '"2026-08-29T10:20:00.123+02:00"',
        '"2026-08-29 10:20+0200"',
    ],
    "object": ["{}", '{"a": [1]}'],
    "array": ["[]", "[1, null]"],
}
FITS_NOT: dict[str, list[str]] = {
    "string": ["null", "1", "true", "[]", "{}"],
    "number": ["null", '"1"', "true", "false", "[]", "{}"],
    "integer": ["null", '"1"', "true", "5.5", "1e-3", "[]", "{}"],
    "boolean": ["null", "0", "1", '"true"', "[]", "{}"],
    "date": [
        "null",
        "1790000000",
        "true",
        '""',
        '"2026-02-30"',
        '"2026-13-01"',
        '"0000-01-01"',
        '"20260829"',
        '"2026-W35-6"',
        '"2026-08-29T10:20:00"',
        '"2026-08-29T25:00Z"',
        '"2026-08-29T10:20:00+25:00"',
        '"2026-08-29T10:20:00Z and more"',
        '"2026-08-29\\n"',
        '"tomorrow"',
        "{}",
    ],
    "object": ["null", "[]", '"{}"', "1", "true"],
    "array": ["null", "{}", '"[]"', "1", "true"],
}


def of_type(value: str, data_type: str) -> tuple[str, ...]:
    return contract.check(Raw(b'{"x": {"value": %s}}' % value.encode()), (field(data_type),))


@pytest.mark.requirement("tasks.contract.types")
@pytest.mark.parametrize(
    ("data_type", "value"), [(kind, value) for kind, values in FITS.items() for value in values]
)
def test_a_value_of_its_type_is_taken(data_type: str, value: str) -> None:
    assert of_type(value, data_type) == ()


@pytest.mark.requirement("tasks.contract.types")
@pytest.mark.parametrize(
    ("data_type", "value"), [(kind, value) for kind, values in FITS_NOT.items() for value in values]
)
def test_a_value_of_another_type_is_named(data_type: str, value: str) -> None:
    (problem,) = of_type(value, data_type)
    assert problem.startswith("outputs.x.value: ")
    assert "\n" not in problem


@pytest.mark.requirement("tasks.contract.types")
def test_these_are_all_the_types() -> None:
    known = set(DataType.__args__)
    assert set(FITS) == set(FITS_NOT) == known


@pytest.mark.requirement("tasks.contract.members")
@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ({"value": 1}, None),
        ({"value": 1, "confidence": 0, "reasoning": ""}, None),
        ({"value": 1, "confidence": 1.0, "reasoning": "r" * 4000}, None),
        (1, "outputs.x: must be an object {value, confidence?, reasoning?}, not a number"),
        (None, "outputs.x: must be an object {value, confidence?, reasoning?}, not null"),
        ([1], "outputs.x: must be an object {value, confidence?, reasoning?}, not an array"),
        ({}, "outputs.x.value: is required and was not sent"),
        ({"value": 1, "confidence": 1.01}, "outputs.x.confidence: must be a number from 0 to 1"),
        ({"value": 1, "confidence": -0.1}, "outputs.x.confidence: must be a number from 0 to 1"),
        ({"value": 1, "confidence": True}, "outputs.x.confidence: must be a number from 0 to 1"),
        ({"value": 1, "confidence": None}, "outputs.x.confidence: must be a number from 0 to 1"),
        ({"value": 1, "confidence": "1"}, "outputs.x.confidence: must be a number from 0 to 1"),
        ({"value": 1, "reasoning": None}, "outputs.x.reasoning: must be a string, not null"),
        (
            {"value": 1, "reasoning": "r" * 4001},
            "outputs.x.reasoning: must have at most 4000 characters, not 4001",
        ),
        (
            {"value": 1, "source": "a"},
            'outputs.x: may hold value, confidence and reasoning only, not "source"',
        ),
    ],
)
def test_an_output_has_its_members_and_no_other(output: Any, problem: str | None) -> None:
    assert problems({"x": output}) == (() if problem is None else (problem,))


@pytest.mark.requirement("tasks.contract.whole")
def test_every_problem_is_named_at_once() -> None:
    fields = (field("number", "total"), field("date", "when"), field("string", "who"))
    sent = {
        "total": {"value": "12", "confidence": 2, "reasoning": 5, "more": 1},
        "when": {},
        "extra": {"value": 1},
    }
    found = problems(sent, *fields)
    assert [problem.partition(":")[0] for problem in found] == [
        "outputs.total.value",
        "outputs.total.confidence",
        "outputs.total.reasoning",
        "outputs.total",
        "outputs.when.value",
        "outputs.who",
        "outputs.extra",
    ]
    assert '"total", "when", "who"' in found[-1]


@pytest.mark.requirement("tasks.contract.whole")
def test_what_is_not_required_may_be_left_out_but_not_wrong() -> None:
    optional = field("string", required=False)
    assert problems({}, optional) == ()
    assert problems({"x": {"value": "a"}}, optional) == ()
    assert problems({"x": {"value": None}}, optional) != ()


@pytest.mark.requirement("tasks.contract.whole")
def test_a_contract_of_nothing_takes_nothing() -> None:
    assert contract.check(Raw(b"{}"), ()) == ()
    (problem,) = contract.check(Raw(b'{"a": {"value": 1}}'), ())
    assert problem == "outputs.a: is not in the contract, whose outputs are: none"
    for other in (b"[]", b"null", b'"a"', b"1"):
        (problem,) = contract.check(Raw(other), ())
        assert problem == "outputs: must be an object of the outputs by their keys"


@pytest.mark.requirement("tasks.contract.whole")
def test_a_key_can_be_no_sentence_of_this_server_and_many_are_counted() -> None:
    (problem,) = problems({"a\nb: c": {"value": 1}}, field(required=False))
    assert problem.startswith('outputs["a\\nb: c"]: is not in the contract')
    found = problems({f"k{n}": 1 for n in range(90)}, field(required=False))
    assert len(found) == 51
    assert found[-1] == "outputs: has 40 more keys that are not in the contract"
    (members,) = problems({"x": {"value": 1, **{f"m{n}": 1 for n in range(9)}}})
    assert members.endswith('"m4" and more')


@pytest.mark.requirement("tasks.contract.same")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a": 1, "b": 2}', b'{"b":2,"a":1.0}', True),
        (b"[1, 2]", b"[2, 1]", False),
        (b"[1]", b"[1, 1]", False),
        (b"1", b"true", False),
        (b"0", b"false", False),
        (b"[0]", b"[false]", False),
        (b"true", b"true", True),
        (b"null", b"null", True),
        (b"null", b"false", False),
        (b"null", b"0", False),
        (b'"1"', b"1", False),
        (b'"\\u00e9"', '"é"'.encode(), True),
        (b'{"a": 1}', b'{"a": 1, "b": null}', False),
        (b"{}", b"[]", False),
        (b'{"a": {"b": [1, {"c": true}]}}', b'{"a": {"b": [1.0, {"c": 1}]}}', False),
        (b"12345678901234567890", b"12345678901234567891", False),
    ],
)
def test_the_same_json_is_the_same_however_it_is_written(
    one: bytes, other: bytes, same: bool
) -> None:
    assert contract.same(Raw(one), Raw(other)) is same
    assert contract.same(Raw(other), Raw(one)) is same


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("tasks.contract.whole", "tasks.contract.same")
@given(st.dictionaries(st.sampled_from(["x", "y"]) | st.text(max_size=3), values, max_size=4))
def test_whatever_is_sent_is_judged_and_is_the_same_as_itself(outputs: Any) -> None:
    fields = (field("string", "x"), field("number", "y", required=False))
    found = problems(outputs, *fields)
    assert all(problem.startswith("outputs") and "\n" not in problem for problem in found)
    fits = set(outputs) <= {"x", "y"} and "x" in outputs
    assert not (not found and not fits)
    sent = Raw(msgspec.json.encode(outputs))
    assert contract.same(sent, Raw(msgspec.json.format(msgspec.json.encode(outputs), indent=2)))
    assert contract.check(outputs, fields) == found


@pytest.mark.requirement("tasks.contract.whole")
@given(
    st.fixed_dictionaries(
        {"value": st.text()},
        optional={"confidence": st.floats(0, 1), "reasoning": st.text(max_size=50)},
    )
)
def test_what_fits_has_no_problem(output: Any) -> None:
    assert problems({"x": output}, field("string")) == ()
