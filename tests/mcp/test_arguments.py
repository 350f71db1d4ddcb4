"""Every argument is applied, or the call is refused with every problem named."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Refusal
from mcpl_heartbeat.mcp.arguments import (
    MAX_UNKNOWN_NAMES,
    Accepted,
    Refused,
    ignored_text,
    refusal_text,
)
from mcpl_heartbeat.mcp.tools import schema
from tests.mcp.shop import ORDER, RETURN, SHOP, STOCK, Nothing, OrderArguments, call, problems

# --- no arguments, or none that can be read ----------------------------------------------------


@pytest.mark.requirement("mcp.arguments-absent", "field.43")
@pytest.mark.parametrize("arguments", [None, "null", "{}", " { } "])
def test_absent_null_and_empty_are_the_same(arguments: str | None) -> None:
    assert call(STOCK, arguments) == Accepted(Nothing())
    assert problems(call(ORDER, arguments)) == {"item": "is required and was not sent"}


@pytest.mark.requirement("mcp.arguments-shape")
@pytest.mark.parametrize("arguments", ["[]", "[1]", '"x"', "5", "true", "false", "0"])
@pytest.mark.parametrize("tool", SHOP)
def test_what_is_no_object_is_refused(tool: Any, arguments: str) -> None:
    outcome = call(tool, arguments)
    assert isinstance(outcome, Refusal)
    assert outcome.code == INVALID_PARAMS
    assert outcome.message.startswith("params.arguments: must be an object, not ")


@pytest.mark.requirement("field.23", "field.26")
@pytest.mark.parametrize(
    "arguments",
    [
        '{"amount":NaN}',
        '{"amount":Infinity}',
        '{"amount":-Infinity}',
        "{",
        b'{"item":"\xff"}',
        '{"x":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"x":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
    ],
)
def test_what_cannot_be_read_is_refused(arguments: str | bytes) -> None:
    outcome = call(ORDER, arguments)
    assert isinstance(outcome, Refusal)
    assert outcome.code == INVALID_PARAMS


# --- one value ---------------------------------------------------------------------------------


def order(**arguments: object) -> OrderArguments:
    outcome = call(ORDER, json.dumps({"item": "tea", **arguments}))
    assert isinstance(outcome, Accepted), outcome
    assert isinstance(outcome.arguments, OrderArguments)
    return outcome.arguments


@pytest.mark.requirement("seed.args.applied-or-refused")
def test_right_values_are_applied() -> None:
    sent = {"item": "oolong", "amount": 3, "maxPrice": 2.5, "wrap": False, "speed": "slow"}
    assert order(**sent) == OrderArguments(
        item="oolong", amount=3, max_price=2.5, wrap=False, speed="slow"
    )


@pytest.mark.requirement("seed.args.wrong-type")
def test_whole_numbers_are_numbers_either_way() -> None:
    taken = order(amount=5.0, maxPrice=7)
    assert (type(taken.amount), taken.amount) == (int, 5)
    assert (type(taken.max_price), taken.max_price) == (float, 7.0)


@pytest.mark.requirement("seed.args.wrong-type", "words.for-models", "field.44")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"maxPrice":"5"}', 'must be a number, not the string "5" (send 5 without quotes)'),
        (
            '{"maxPrice":" -5.5 "}',
            'must be a number, not the string " -5.5 " (send -5.5 without quotes)',
        ),
        ('{"maxPrice":"five"}', 'must be a number, not the string "five"'),
        ('{"maxPrice":"555555555555555555555"}', 'must be a number, not the string "5555'),
        (r'{"maxPrice":"a\ud800"}', 'must be a number, not the string "a\ufffd"'),
        (r'{"speed":"a\ud800"}', 'must be "fast" or "slow", not "a\ufffd"'),
        ('{"maxPrice":""}', 'must be a number, not the string ""'),
        ('{"maxPrice":"true"}', 'must be a number, not the string "true"'),
        ('{"maxPrice":true}', "must be a number, not true"),
        ('{"maxPrice":[1]}', "must be a number, not a list"),
        ('{"maxPrice":{"a":1}}', "must be a number, not an object"),
        ('{"maxPrice":null}', "must be a number, not null; leave maxPrice out"),
        ('{"amount":"5"}', 'must be a whole number, not the string "5" (send 5 without quotes)'),
        ('{"amount":1.5}', "must be a whole number, not 1.5"),
        ('{"amount":false}', "must be a whole number, not false"),
        (
            '{"wrap":"false"}',
            'must be true or false, not the string "false" (send false without quotes)',
        ),
        ('{"wrap":"no"}', 'must be true or false, not the string "no"'),
        ('{"wrap":0}', "must be true or false, not the number 0"),
        ('{"speed":"Fast"}', 'must be "fast" or "slow", not "Fast"'),
        ('{"speed":1}', 'must be "fast" or "slow", not the number 1'),
        ('{"item":5}', "must be a string, not the number 5 (put it in quotes)"),
        ('{"item":{}}', "must be a string, not an object"),
        ('{"item":"elevenchars"}', "must have at most 10 characters, not 11"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_wanted(arguments: str, text: str) -> None:
    name = next(iter(json.loads(arguments)))
    found = problems(call(ORDER, arguments))[name]
    assert found.startswith(text)
    assert ("without quotes" in text) or ("without quotes" not in found)


@pytest.mark.requirement("seed.args.out-of-range", "field.23")
@pytest.mark.parametrize(
    "value", ["0", "-1", "1e999", "-1e999", "1e300", "9" * 30, "9" * 5000, "-" + "9" * 5000]
)
def test_out_of_range(value: str) -> None:
    found = problems(call(ORDER, f'{{"item":"tea","amount":{value}}}'))
    assert list(found) == ["amount"]
    assert found["amount"].startswith("must be from 1 to 9007199254740992, not ")
    assert len(found["amount"]) < 100


@pytest.mark.requirement("seed.args.out-of-range", "field.23")
@pytest.mark.parametrize("value", ["1e999", "-1e999", "9" * 400, "9" * 5000])
def test_a_number_too_large_to_hold_is_refused_even_without_a_range(value: str) -> None:
    found = problems(call(ORDER, f'{{"item":"tea","maxPrice":{value}}}'))
    assert list(found) == ["maxPrice"]


@pytest.mark.requirement("seed.args.wrong-type")
def test_half_a_surrogate_pair_is_replaced() -> None:
    outcome = call(ORDER, r'{"item":"a\ud800b\ud83c\udf78","x\udc00":1}')
    assert isinstance(outcome, Accepted)
    assert outcome.arguments.item == "a\ufffdb\U0001f378"
    assert outcome.ignored == ("x\ufffd",)
    assert msgspec.json.encode(ignored_text(ORDER, outcome.ignored))


@pytest.mark.requirement("words.refused-reads")
@pytest.mark.parametrize("tool", SHOP)
def test_only_of_a_change_it_is_said_that_nothing_changed(tool: Any) -> None:
    refused = call(tool, '{"zz":1,"zz":2}')
    assert isinstance(refused, Refused)
    begun = "was refused:" if tool.read_only else "was refused and changed nothing:"
    assert refusal_text(tool, refused).splitlines()[0] == f"{tool.name} {begun}"


# --- several at once ---------------------------------------------------------------------------


@pytest.mark.requirement("seed.args.all-problems", "field.44")
def test_all_problems_come_in_one_refusal() -> None:
    outcome = call(ORDER, '{"amount":"2","wrap":1,"wrap":2,"speeed":"fast","maxPrice":null,"zz":1}')
    assert list(problems(outcome)) == [
        "amount",
        "wrap",
        "speeed",
        "maxPrice",
        "item",
        "wrap + speed",
    ]
    assert isinstance(outcome, Refused)
    assert outcome.ignored == ("zz",)
    text = refusal_text(ORDER, outcome)
    assert text.splitlines()[0] == "order was refused and changed nothing:"
    assert '- amount: must be a whole number, not the string "2"' in text
    assert text.splitlines()[-1] == (
        "Ignored: zz; order takes item (required), amount, maxPrice, wrap, speed."
    )


@pytest.mark.requirement("jsonrpc.duplicate-name", "field.25")
@pytest.mark.parametrize("twice", ['"wrap":true,"wrap":false', '"wrap":true,"wrap":true'])
def test_a_name_given_twice_is_refused_by_name(twice: str) -> None:
    found = problems(call(ORDER, f'{{"item":"tea",{twice}}}'))
    assert found == {"wrap": "sent 2 times; send it once"}


@pytest.mark.requirement("jsonrpc.duplicate-name")
def test_an_unknown_name_given_twice_is_refused_too() -> None:
    assert list(problems(call(STOCK, '{"zz":1,"zz":1,"zz":1}'))) == ["zz"]


@pytest.mark.requirement("jsonrpc.duplicate-name")
def test_doubles_inside_a_value_are_its_own_affair() -> None:
    assert isinstance(call(STOCK, '{"zz":{"a":1,"a":2}}'), Accepted)


@pytest.mark.requirement("seed.args.contradiction")
def test_the_rules_of_a_tool_are_asked_too() -> None:
    outcome = call(ORDER, '{"item":"tea","wrap":true,"speed":"fast"}')
    assert problems(outcome) == {"wrap + speed": "wrapping takes time"}


@pytest.mark.requirement("seed.args.contradiction", "seed.args.all-problems")
def test_rules_learn_which_arguments_were_bad() -> None:
    found = problems(call(ORDER, '{"wrap":"x","sped":"fast"}'))
    assert list(found) == ["wrap", "sped", "item", "wrap + speed"]


# --- names -------------------------------------------------------------------------------------


@pytest.mark.requirement("seed.args.unknown-ignored", "host.37")
def test_unknown_names_are_ignored_and_said() -> None:
    outcome = call(RETURN, '{"id":"a","_meta":{},"state":null,"checkpoint":1}')
    assert isinstance(outcome, Accepted)
    assert outcome.ignored == ("_meta", "state", "checkpoint")
    assert ignored_text(RETURN, outcome.ignored) == (
        "Ignored: _meta, state, checkpoint; return takes id (required), reasonText."
    )
    assert ignored_text(RETURN, ()) == ""


@pytest.mark.requirement("seed.args.unknown-no-arguments", "host.37")
def test_a_tool_without_arguments_ignores_them_alone() -> None:
    outcome = call(STOCK, '{"random_string":"","_meta":{}}')
    assert outcome == Accepted(Nothing(), ("random_string", "_meta"))
    assert ignored_text(STOCK, ("_meta",)) == "Ignored: _meta; stock takes no arguments."


@pytest.mark.requirement("seed.args.unknown-alone")
def test_nothing_but_unknown_names_is_refused() -> None:
    assert problems(call(RETURN, '{"zz":1,"yy":2}')) == {
        "zz": "return does not take this",
        "yy": "return does not take this",
        "id": "is required and was not sent",
    }


@pytest.mark.requirement("seed.args.slip-edits", "words.for-models")
def test_a_slip_names_what_was_meant() -> None:
    outcome = call(RETURN, '{"id":"a","reasonTxt":"x"}')
    assert problems(outcome) == {"reasonTxt": "return does not take this; did you mean reasonText?"}


@pytest.mark.requirement("seed.args.slip-other-tool")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("maxPrice", "stock does not take this; order can take this"),
        ("max_price", "stock does not take this; order can take maxPrice"),
    ],
)
def test_a_slip_for_another_tool_names_it(name: str, text: str) -> None:
    assert problems(call(STOCK, json.dumps({name: 1}))) == {name: text}


@pytest.mark.requirement("seed.args.slip-edits", "seed.args.all-problems")
def test_a_slip_stands_for_the_name_it_meant() -> None:
    assert list(problems(call(ORDER, '{"itme":"tea"}'))) == ["itme"], "item is not missing as well"


@pytest.mark.requirement("seed.args.unknown-alone", "words.for-models")
@pytest.mark.parametrize("tool", SHOP)
def test_a_flood_of_unknown_names_is_one_problem(tool: Any) -> None:
    flood = {f"zz{n}": 1 for n in range(MAX_UNKNOWN_NAMES + 1)}
    outcome = call(tool, json.dumps(flood))
    assert problems(outcome)["arguments"] == (
        f"sends {MAX_UNKNOWN_NAMES + 1} names that {tool.name} does not take"
    )
    assert isinstance(outcome, Refused)
    assert len(refusal_text(tool, outcome)) < 500


@pytest.mark.requirement("words.for-models")
def test_a_long_list_of_ignored_names_is_cut() -> None:
    outcome = call(STOCK, json.dumps({f"zz{n}{'x' * 500}": 1 for n in range(50)}))
    assert isinstance(outcome, Accepted)
    text = ignored_text(STOCK, outcome.ignored)
    assert " and 30 more; stock takes no arguments." in text
    assert len(text) < 2000


# --- anything ----------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(1, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["tea", "5", "true", "fast", "slow"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
KNOWN = st.sampled_from(["item", "amount", "maxPrice", "wrap", "speed"])
NAMES = KNOWN | st.sampled_from(["_meta", "zz", "Item", "max_price", "id"]) | st.text(max_size=8)


def fits(name: str, value: Any) -> bool:
    """Whether an independent validator takes the value for the argument."""
    rule = schema(ORDER.arguments)["properties"][name]
    return jsonschema.Draft202012Validator(rule).is_valid(value)


@pytest.mark.requirement("seed.args.applied-or-refused", "seed.args.all-problems")
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_each_known_argument_is_applied_or_named(arguments: dict[str, Any]) -> None:
    outcome = call(ORDER, json.dumps(arguments))
    sent = {name: value for name, value in arguments.items() if name in ORDER_ATTRIBUTES}
    if isinstance(outcome, Accepted):
        for name, value in sent.items():
            applied = getattr(outcome.arguments, ORDER_ATTRIBUTES[name])
            assert applied == (float(value) if name == "maxPrice" else value)
            assert fits(name, value)
        assert set(outcome.ignored) == set(arguments) - set(sent)
    else:
        assert isinstance(outcome, Refused)
        named = problems(outcome)
        for name, value in sent.items():
            assert (name in named) is not fits(name, value)
        assert ("item" in arguments) or ("item" in named) or named
    assert msgspec.json.encode(outcome)


ORDER_ATTRIBUTES = {
    "item": "item",
    "amount": "amount",
    "maxPrice": "max_price",
    "wrap": "wrap",
    "speed": "speed",
}


@pytest.mark.requirement("seed.args.applied-or-refused")
@given(st.sampled_from(SHOP), st.binary(max_size=40))
def test_bytes_never_raise(tool: Any, data: bytes) -> None:
    assert isinstance(call(tool, data), Accepted | Refused | Refusal)


@pytest.mark.requirement("jsonrpc.duplicate-name")
@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_each_doubled_name_is_named(members: list[tuple[str, Any]]) -> None:
    body = ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members)
    outcome = call(ORDER, f"{{{body}}}")
    names = [name for name, _ in members]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        assert isinstance(outcome, Refused)
        texts = [problem.text for problem in outcome.problems if "times" in problem.text]
        assert len(texts) == len(doubled)
