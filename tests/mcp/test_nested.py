"""Objects in a call: those weighed member by member, and those that are kept as they were sent."""

import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Raw, UnsetType

from mcpl_heartbeat.mcp.arguments import Accepted, Refused, check
from mcpl_heartbeat.mcp.tools import MAX_JSON_BYTES, Problem, Tool, schema
from tests.mcp.shop import OrderResult


class Corner(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    kind: Literal["round", "sharp"]
    far_out: Annotated[int, Meta(ge=0, le=9)] = 3
    names: Annotated[list[str], Meta(max_length=2)] | UnsetType = UNSET


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    corner: Annotated[Corner | UnsetType, Meta(description="One.")] = UNSET
    corners: Annotated[
        Annotated[list[Corner], Meta(max_length=8)] | UnsetType,
        Meta(description="All.", examples=[[{"kind": "round"}]]),
    ] = UNSET
    marks: Annotated[
        Raw | UnsetType, Meta(description="Any object.", extra_json_schema={"type": "object"})
    ] = UNSET
    rest: Annotated[Raw | UnsetType, Meta(description="Any JSON.")] = UNSET


def companions(sent: Any) -> list[Problem]:
    return [Problem("corner + rest", "both")] if {"corner", "rest"} <= set(sent) else []


DRAW = Tool(
    name="draw",
    title="Draw",
    description="Draws.",
    arguments=Shape,
    result=OrderResult,
    read_only=False,
    idempotent=True,
    destructive=False,
    companions=companions,
)


def draw(members: str, tool: Tool = DRAW) -> Shape | dict[str, str]:
    outcome = check(tool, Raw(f"{{{members}}}".encode()), (tool,))
    if isinstance(outcome, Refused):
        return {problem.argument: problem.text for problem in outcome.problems}
    assert isinstance(outcome, Accepted)
    assert isinstance(outcome.arguments, Shape)
    return outcome.arguments


@pytest.mark.requirement("tasks.args.objects")
def test_an_object_and_a_list_of_them_become_structs() -> None:
    assert draw('"corner":{"kind":"round","farOut":5.0}') == Shape(
        corner=Corner(kind="round", far_out=5)
    )
    taken = draw('"corners":[{"kind":"sharp"},{"names":["a","b"],"kind":"round"}]')
    assert taken == Shape(corners=[Corner(kind="sharp"), Corner(kind="round", names=["a", "b"])])


@pytest.mark.requirement("tasks.args.objects", "words.for-models")
@pytest.mark.parametrize(
    ("members", "name", "text"),
    [
        ('"corner":7', "corner", "must be an object, not the number 7"),
        ('"corner":[]', "corner", "must be an object, not a list"),
        (
            '"corner":null',
            "corner",
            "must be an object, not null; leave corner out when there is nothing to set",
        ),
        (
            r'"corner":"{\"kind\":\"round\"}"',
            "corner",
            r'must be an object, not the string "{\"kind\":\"round\"}" (send the object itself, '
            "not its JSON text)",
        ),
        ('"corner":{}', "corner", "kind is required and was not sent"),
        (
            '"corner":{"kind":"oval","farOut":10}',
            "corner",
            'kind must be "round" or "sharp", not "oval"; farOut must be from 0 to 9, not 10',
        ),
        (
            '"corner":{"kind":"round","names":["a",1]}',
            "corner",
            "names: item 2 must be a string, not the number 1 (put it in quotes)",
        ),
        (
            '"corner":{"kind":"round","kind":"sharp"}',
            "corner",
            "kind was sent 2 times; send it once",
        ),
        (
            '"corner":{"kind":"round","far_out":1}',
            "corner",
            "far_out is not taken here; did you mean farOut?",
        ),
        (
            '"corner":{"kind":"round","colour!":1}',
            "corner",
            '"colour!" is not taken here, only kind, farOut, names',
        ),
        (r'"corner":{"kind":"round","names":["\u0000"]}', "corner", "U+0000"),
        (
            '"corners":[{"kind":"round"},{"farOut":"1"},5]',
            "corners",
            'item 2: farOut must be a whole number, not the string "1" (send 1 without quotes); '
            "kind is required and was not sent; item 3 must be an object, not the number 5",
        ),
        (
            '"corners":[0,1,2,3,4,5,6]',
            "corners",
            "; and 2 more items are wrong",
        ),
        (
            '"corners":{"kind":"round"}',
            "corners",
            'must be a list such as [{"kind":"round"}], not an object',
        ),
        (
            '"corner":{"kind":"round","a1":1,"b2":1,"c3":1,"d4":1,"e5":1,"f6":1,"g7":1}',
            "corner",
            "and 2 more members are wrong",
        ),
    ],
)
def test_what_is_wrong_inside_is_named_with_its_place(members: str, name: str, text: str) -> None:
    problems = draw(members)
    assert isinstance(problems, dict)
    assert list(problems) == [name]
    assert problems[name] == text or (text in problems[name] and len(text) < 40)


@pytest.mark.requirement("tasks.args.any-object")
@pytest.mark.parametrize(
    "text",
    ["{}", '{ "b" : 1.10 , "a":[{"x":1,"x":2}] }', '{"n":123456789012345678901234567890}'],
)
def test_any_object_is_kept_as_it_was_sent(text: str) -> None:
    taken = draw(f'"marks": {text} ')
    assert isinstance(taken, Shape)
    assert isinstance(taken.marks, Raw)
    assert bytes(taken.marks) == text.encode()


@pytest.mark.requirement("tasks.args.any-object", "words.for-models")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "must be an object, not a list"),
        ('"{}"', 'must be an object, not the string "{}" (send the object itself, not its '
         "JSON text)"),
        ("5", "must be an object, not the number 5"),
        ('{"a":1,"b":2,"a":1}', "a was sent 2 times; send it once"),
        ('{"a":{"value":1,"value":2}}', "a: value was sent 2 times; send it once"),
        ('{"a b":{"x":1,"x":2,"x":3}}', '"a b": x was sent 3 times; send it once'),
        (r'{"a":1,"\u0061":1}', "a was sent 2 times; send it once"),
        ('{"a":1e999}', "holds a number too large to hold; send it as a string"),
        (r'{"a":"\ud800"}', "holds half of a surrogate pair, which is no character"),
        ('{"a":' + "[" * 100 + "]" * 100 + "}", "must not be nested more than 100 deep"),
    ],
)  # fmt: skip
def test_an_object_that_cannot_be_kept_or_read_is_refused(text: str, problem: str) -> None:
    assert draw(f'"marks":{text}') == {"marks": problem}


@pytest.mark.requirement("tasks.args.any-json-size")
def test_a_tool_says_how_much_json_it_takes() -> None:
    long = '"' + "a" * (MAX_JSON_BYTES - 1) + '"'
    assert draw(f'"rest":{long}') == {
        "rest": f"must have at most {MAX_JSON_BYTES} bytes, not {MAX_JSON_BYTES + 1}"
    }
    roomy = msgspec.structs.replace(DRAW, json_bytes=MAX_JSON_BYTES + 1)
    taken = draw(f'"rest":{long}', roomy)
    assert isinstance(taken, Shape)
    assert bytes(taken.rest or b"") == long.encode()


@pytest.mark.requirement("tasks.args.cancel-alone")
def test_rules_between_names_see_every_name_that_was_sent() -> None:
    assert draw('"corner":{"kind":"round"},"rest":null') == {"corner + rest": "both"}
    assert draw('"corner":7,"rest":null') == {
        "corner": "must be an object, not the number 7",
        "corner + rest": "both",
    }
    assert isinstance(draw('"rest":null'), Shape)


@pytest.mark.requirement("tasks.args.objects")
def test_descriptions_of_objects_stand_in_the_schema_and_docstrings_do_not() -> None:
    properties = schema(Shape)["properties"]
    assert properties["corner"]["description"] == "One."
    assert properties["marks"] == {"type": "object", "description": "Any object."}
    assert "description" not in schema(Shape)
    assert "description" not in properties["corners"]["items"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 20) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "farOut", "names", "x"]), inner)
    ),
    max_leaves=6,
)
GOOD = st.fixed_dictionaries(
    {"kind": st.sampled_from(["round", "sharp"])},
    optional={
        "farOut": st.integers(0, 9),
        "names": st.lists(st.text(st.characters(exclude_characters="\0"), max_size=3), max_size=2),
    },
)


@pytest.mark.requirement("tasks.args.objects")
@given(corner=GOOD | JSON, corners=st.lists(GOOD | JSON, max_size=9) | JSON)
def test_what_is_taken_is_what_the_struct_takes(corner: Any, corners: Any) -> None:
    sent = json.dumps({"corner": corner, "corners": corners}).encode()
    outcome = check(DRAW, Raw(sent), (DRAW,))
    if isinstance(outcome, Accepted):
        assert outcome.arguments == msgspec.json.decode(sent, type=Shape)
    else:
        assert isinstance(outcome, Refused)
        for problem in outcome.problems:
            assert problem.argument in {"corner", "corners"}
        try:
            msgspec.json.decode(sent, type=Shape)
        except msgspec.ValidationError:
            pass
        else:
            assert all("U+0000" in problem.text for problem in outcome.problems)
