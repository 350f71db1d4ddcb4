"""Lists, forms, any JSON and strict names: what a schema says of a value is what is enforced."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcpl_heartbeat.jsonrpc.messages import Refusal
from mcpl_heartbeat.mcp.arguments import MAX_TAKERS, Accepted, Refused, check
from mcpl_heartbeat.mcp.tools import MAX_JSON_BYTES, schema
from mcpl_heartbeat.mcp.values import MAX_JSON_DEPTH, holds_nul
from tests.mcp.shop import ORDER, SHOP, STOCK, problems
from tests.mcp.warehouse import HALL, LOAD, PACK, pack, packed

# --- lists -------------------------------------------------------------------------------------


@pytest.mark.requirement("watch.args.lists")
def test_a_list_is_taken_in_the_order_sent() -> None:
    taken = packed('"marks":["heavy","cold"],"lines":["b","a"]')
    assert taken.marks == ["heavy", "cold"]
    assert taken.lines == ["b", "a"]
    assert packed("").marks is UNSET


@pytest.mark.requirement("watch.args.lists", "watch.args.json-text", "words.for-models")
@pytest.mark.parametrize(
    ("members", "text"),
    [
        ('"marks":[]', "must not be empty"),
        ('"lines":[]', "must have at least 2 items"),
        ('"lines":["a"]', "must have at least 2 items, not 1"),
        ('"marks":["heavy","cold","fragile","heavy"]', "must have at most 3 items, not 4"),
        ('"marks":["heavy","heavy"]', "item 2 repeats item 1"),
        ('"lines":["a","b","a","b"]', "item 3 repeats item 1; item 4 repeats item 2"),
        (
            '"marks":["Heavy",1,null]',
            'item 1 must be "cold" or "fragile" or "heavy", not "Heavy"; '
            'item 2 must be "cold" or "fragile" or "heavy", not the number 1; '
            'item 3 must be "cold" or "fragile" or "heavy", not null',
        ),
        ('"lines":["a","sixsix"]', "item 2 must have at most 5 characters, not 6"),
        ('"lines":["a",["b"]]', "item 2 must be a string, not a list"),
        ('"lines":["a",7]', "item 2 must be a string, not the number 7 (put it in quotes)"),
        (
            r'"marks":"[\"heavy\"]"',
            'must be a list such as ["fragile","cold"], not the string "[\\"heavy\\"]" '
            "(send the list itself, not its JSON text)",
        ),
        (
            '"marks":"heavy"',
            'must be a list such as ["fragile","cold"], not the string "heavy"',
        ),
        ('"lines":7', "must be a list, not the number 7"),
        ('"lines":{"a":1}', "must be a list, not an object"),
        ('"lines":null', "must be a list, not null; leave lines out when there is nothing to set"),
    ],
)
def test_a_wrong_list_is_one_problem_that_names_each_item(members: str, text: str) -> None:
    assert problems(pack(members)) == {members.split('"')[1]: text}


@pytest.mark.requirement("watch.args.lists", "words.for-models")
def test_a_list_of_mistakes_is_cut() -> None:
    class Long(msgspec.Struct, kw_only=True):
        lines: list[str]

    tool = msgspec.structs.replace(STOCK, arguments=Long)
    outcome = check(tool, msgspec.Raw(json.dumps({"lines": [1] * 500}).encode()), (tool,))
    text = problems(outcome)["lines"]
    assert text.endswith("; and 495 more items are wrong")
    assert len(text) < 500


# --- forms and lengths -------------------------------------------------------------------------


@pytest.mark.requirement("watch.args.form", "watch.args.least-length", "words.for-models")
@pytest.mark.parametrize(
    ("members", "text"),
    [
        ('"crate":""', "must not be empty"),
        ('"seal":"short-secret"', None),
        ('"seal":"short"', "must have at least 12 characters, not 5"),
        ('"seal":""', "must have at least 12 characters"),
        ('"door":"south/12"', None),
        ('"door":"South/12"', 'must have the form of "north/7", not "South/12"'),
        (r'"door":"south/12\n"', r'must have the form of "north/7", not "south/12\n"'),
        ('"door":""', 'must have the form of "north/7", not ""'),
        ('"tag":"axa"', None),
        ('"tag":"a"', 'must match x, not "a"'),
    ],
)
def test_a_form_is_told_by_an_example_and_a_secret_by_its_length(
    members: str, text: str | None
) -> None:
    if text is None:
        assert getattr(packed(members), members.split('"')[1])
    else:
        assert problems(pack(members)) == {members.split('"')[1]: text}


@pytest.mark.requirement("watch.args.nul")
@pytest.mark.parametrize("members", [r'"crate":"a\u0000"', r'"lines":["a","b\u0000"]'])
def test_no_string_may_hold_the_character_that_stores_cannot(members: str) -> None:
    name = members.split('"')[1]
    assert problems(pack(members)) == {name: "must not hold the character U+0000"}


@pytest.mark.requirement("watch.args.nul", "seed.args.applied-or-refused")
def test_a_tool_that_is_not_strict_takes_it_as_before() -> None:
    outcome = check(ORDER, msgspec.Raw(rb'{"item":"a\u0000"}'), SHOP)
    assert isinstance(outcome, Accepted)
    assert outcome.arguments.item == "a\0"


# --- any JSON ----------------------------------------------------------------------------------


@pytest.mark.requirement("watch.args.any-json")
@pytest.mark.parametrize(
    "text",
    [
        "null",
        "true",
        "-0.0",
        "1.10",
        "1e5",
        "123456789012345678901234567890",
        '"a\\u0000b"',
        r'"\ud83c\udf78"',
        '"é✓"',
        '{"b":1,"a":2,"b":3}',
        '{ "a" : [ 1 , 2 ] ,\n"}":"{" }',
        "[]",
        "[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH,
        '{"a":' * (MAX_JSON_DEPTH - 1) + "[1]" + "}" * (MAX_JSON_DEPTH - 1),
    ],
)
def test_any_json_is_kept_as_it_was_sent(text: str) -> None:
    taken = packed(f'"slip" : {text} , "note":[ ]')
    assert bytes(taken.slip) == text.encode()
    assert bytes(taken.note) == b"[ ]"
    assert packed("").slip is UNSET


@pytest.mark.requirement("watch.args.any-json")
def test_it_is_found_by_its_name_however_that_is_written() -> None:
    taken = packed(r'"sl\u0069p":{"note":1},"note":{"slip":2}')
    assert bytes(taken.slip) == b'{"note":1}'
    assert bytes(taken.note) == b'{"slip":2}'


@pytest.mark.requirement("watch.args.any-json", "words.for-models")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1e999", "holds a number too large to hold; send it as a string"),
        ('{"a":[-1e999]}', "holds a number too large to hold; send it as a string"),
        ("9" * 5000, "holds a number too large to hold; send it as a string"),
        (r'"\ud800"', "holds half of a surrogate pair, which is no character"),
        (r'{"\udc00":1}', "holds half of a surrogate pair, which is no character"),
        ("[" * 101 + "]" * 101, "must not be nested more than 100 deep"),
        ('{"a":' * 100 + "[1]" + "}" * 100, "must not be nested more than 100 deep"),
        ('"' + "a" * 65_535 + '"', "must have at most 65536 bytes, not 65537"),
        ('"' + "é" * 32_768 + '"', "must have at most 65536 bytes, not 65538"),
    ],
)
def test_json_that_cannot_be_kept_is_refused(text: str, problem: str) -> None:
    assert problems(pack(f'"slip":{text}')) == {"slip": problem}


@pytest.mark.requirement("watch.args.any-json")
def test_the_most_that_may_be_sent_is_taken() -> None:
    text = '"' + "a" * (MAX_JSON_BYTES - 2) + '"'
    assert bytes(packed(f'"slip":{text}').slip) == text.encode()


@pytest.mark.requirement("watch.args.any-json", "field.26")
@pytest.mark.parametrize("depth", [*range(100, 1100, 50), 5_000, 100_000])
def test_what_is_sent_beside_it_may_be_nested_as_deep_as_it_likes(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    outcome = pack(f'"slip":1,"zz":{deep}')
    assert isinstance(outcome, Refused | Refusal)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Half of a surrogate pair is no character, and refused.
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner)
    ),
    max_leaves=8,
)


@pytest.mark.requirement("watch.args.any-json")
@given(JSON, JSON, st.booleans(), st.sampled_from([None, 0, 2]))
def test_all_json_comes_through(slip: Any, note: Any, ascii: bool, indent: int | None) -> None:
    first = json.dumps(slip, ensure_ascii=ascii, indent=indent)
    second = json.dumps(note, ensure_ascii=ascii, indent=indent)
    taken = packed(f'"note":{second},\n"slip":{first}')
    assert bytes(taken.slip) == first.encode()
    assert bytes(taken.note) == second.encode()


# --- names -------------------------------------------------------------------------------------


@pytest.mark.requirement("watch.args.unknown-refused")
def test_a_strict_tool_refuses_every_name_that_it_does_not_take() -> None:
    outcome = pack('"zz":1,"checkpoint":{},"_meta":null,"mark":["heavy"]')
    assert isinstance(outcome, Refused)
    assert outcome.ignored == ()
    assert problems(outcome) == {
        "mark": "pack does not take this; did you mean marks?",
        "zz": "pack does not take this",
        "checkpoint": "pack does not take this",
        "_meta": "pack does not take this",
    }


@pytest.mark.requirement("watch.args.unknown-refused")
def test_a_strict_tool_names_slips_for_any_tool() -> None:
    assert problems(pack('"maxPrice":1')) == {
        "maxPrice": "pack does not take this; order can take this"
    }


@pytest.mark.requirement("watch.args.lenient-apart", "host.37")
def test_a_strict_tool_makes_no_name_a_slip_where_names_may_be_ignored() -> None:
    outcome = check(ORDER, msgspec.Raw(b'{"item":"tea","crate":1,"note":2}'), HALL)
    assert isinstance(outcome, Accepted)
    assert outcome.ignored == ("crate", "note")


@pytest.mark.requirement("watch.args.unknown-refused", "words.for-models")
def test_of_many_tools_that_take_a_name_some_are_told() -> None:
    class Bare(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
        pass

    many = [msgspec.structs.replace(LOAD, name=f"load{n}") for n in range(MAX_TAKERS + 2)]
    bare = msgspec.structs.replace(STOCK, name="bare", arguments=Bare)
    outcome = check(bare, msgspec.Raw(b'{"crate":1}'), (bare, *many))
    assert problems(outcome) == {
        "crate": "bare does not take this; load0 and load1 and load2 and 2 more can take this"
    }


# --- what is required, and by whom -------------------------------------------------------------


@pytest.mark.requirement("watch.args.forgiven")
def test_what_has_no_use_in_this_call_need_not_be_sent() -> None:
    outcome = check(PACK, msgspec.Raw(b'{"crate":"c","stop":true}'), HALL)
    assert isinstance(outcome, Accepted)
    assert outcome.arguments.hours is UNSET
    assert packed('"stop":true,"hours":5').hours == 5
    missing = {"hours": "is required and was not sent"}
    assert problems(check(PACK, msgspec.Raw(b'{"crate":"c"}'), HALL)) == missing
    assert problems(check(PACK, msgspec.Raw(b'{"crate":"c","stop":false}'), HALL)) == missing
    assert problems(check(LOAD, msgspec.Raw(b'{"crate":"c","stop":true}'), HALL)) == missing
    assert list(problems(pack('"stop":true,"hours":0'))) == ["hours"], "sent, it is weighed"


@pytest.mark.requirement("mcp.arguments-shape", "watch.args.body")
@pytest.mark.parametrize("body", [b"[]", b"5", b"", b"{", b"\xff"])
def test_what_is_no_object_is_named_as_the_door_calls_it(body: bytes) -> None:
    outcome = check(PACK, msgspec.Raw(body), HALL, where="body")
    assert isinstance(outcome, Refusal)
    assert outcome.message.startswith("body: must be a")


# --- anything ----------------------------------------------------------------------------------

STRICT = schema(PACK.arguments)["properties"]
MARKS = st.lists(st.sampled_from(["fragile", "heavy", "cold", "hot", 1]), max_size=4)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "crate": st.text(max_size=9),
    "hours": st.integers(-1, 3) | st.floats(0, 2),
    "marks": MARKS | st.just('["heavy"]') | JSON,
    "lines": st.lists(st.sampled_from(["a", "b", "c", "sixsix"]), max_size=5) | JSON,
    "door": st.from_regex(r"[a-zA-Z]*/[0-9]*\n?", fullmatch=True),
    "seal": st.text(max_size=14),
    "stop": st.booleans() | st.sampled_from(["true", 1]),
    "slip": JSON,
}


@pytest.mark.requirement("watch.args.lists", "watch.args.form", "watch.args.least-length")
@given(st.fixed_dictionaries({}, optional=VALUES))
def test_what_an_independent_validator_refuses_is_refused(arguments: dict[str, Any]) -> None:
    outcome = check(PACK, msgspec.Raw(json.dumps(arguments).encode()), HALL)
    named = problems(outcome) if isinstance(outcome, Refused) else {}
    for name, value in arguments.items():
        fits = jsonschema.Draft202012Validator(STRICT[name]).is_valid(value)
        # That validator takes Python's "$", which is also before a last newline.
        fits = fits and not (name == "door" and value.endswith("\n"))
        if isinstance(value, list) and name == "marks":
            fits = fits and len(set(value)) == len(value)
        if name != "slip":
            fits = fits and not holds_nul(value)
        assert (name in named) is not fits, (name, value, named)
