"""``tools/list``, ``tools/call`` in and out, and the schemas."""

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Refusal
from mcpl_heartbeat.mcp.lifecycle import VERSIONS
from mcpl_heartbeat.mcp.tools import (
    Call,
    ToolResult,
    call_result,
    encoded_tools_list,
    read_call,
    schema,
    shown,
    tools_list,
)
from tests.mcp.shop import ORDER, RETURN, SHOP, STOCK, Line, OrderResult


def as_sent(value: object) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(value))


def by_name(version: str) -> dict[str, dict[str, object]]:
    return {tool["name"]: tool for tool in tools_list(SHOP, version)["tools"]}


@pytest.mark.requirement("mcp.tools-list", "host.37")
@pytest.mark.parametrize("version", VERSIONS)
def test_all_tools_come_on_one_page(version: str) -> None:
    listed = tools_list(SHOP, version)
    assert set(listed) == {"tools"}
    assert [tool["name"] for tool in listed["tools"]] == ["order", "stock", "return"]


@pytest.mark.requirement("mcp.tools-list")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_encoded_list_is_the_same_and_made_once(version: str) -> None:
    encoded = encoded_tools_list(SHOP, version)
    decoded = msgspec.json.decode(encoded)
    assert decoded == tools_list(SHOP, version)
    assert encoded_tools_list(SHOP, version) is encoded


@pytest.mark.requirement("mcp.tools-output-schema")
def test_only_newer_versions_have_output_schema_and_title() -> None:
    for version in VERSIONS:
        newer = version >= "2025-06-18"
        for tool in by_name(version).values():
            assert ("outputSchema" in tool) is newer
            assert ("title" in tool) is newer


@pytest.mark.requirement("mcp.tools-annotations")
@pytest.mark.parametrize("version", VERSIONS)
def test_annotations_are_always_there(version: str) -> None:
    tools = by_name(version)
    assert tools["order"]["annotations"] == {
        "title": "Order",
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert tools["stock"]["annotations"] == {
        "title": "Stock",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert tools["return"]["annotations"]["destructiveHint"] is True


@pytest.mark.requirement("mcp.tools-class")
def test_the_class_is_told_where_there_is_one() -> None:
    tools = msgspec.json.decode(encoded_tools_list(SHOP, "2024-11-05"))["tools"]
    assert [tool.get("_meta") for tool in tools] == [None, {"mcpl/class": ["control"]}, None]


@pytest.mark.requirement("mcp.tools-schema", "field.41")
def test_a_schema_says_what_the_struct_says() -> None:
    assert schema(ORDER.arguments) == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "maxLength": 10, "description": "What to buy."},
            "amount": {
                "type": "integer",
                "minimum": 1,
                "maximum": 2**53,
                "description": "How many.",
            },
            "maxPrice": {"type": "number", "description": "Price limit."},
            "wrap": {"type": "boolean", "description": "As a gift."},
            "speed": {"type": "string", "enum": ["fast", "slow"], "description": "How fast."},
        },
        "required": ["item"],
    }


@pytest.mark.requirement("mcp.tools-schema", "field.43")
def test_no_arguments_are_an_object_with_empty_properties() -> None:
    assert schema(STOCK.arguments) == {"type": "object", "properties": {}}


@pytest.mark.requirement("mcp.tools-output-schema")
def test_nested_structs_are_written_out() -> None:
    line = {
        "type": "object",
        "properties": {"itemName": {"type": "string"}, "price": {"type": "number"}},
        "required": ["itemName", "price"],
    }
    assert schema(OrderResult) == {
        "type": "object",
        "properties": {
            "ordered": {"type": "boolean"},
            "first": line,
            "lines": {"type": "array", "items": line},
        },
        "required": ["ordered"],
    }


# --- calls -------------------------------------------------------------------------------------


def read(params: bytes | None) -> Call | Refusal:
    return read_call(None if params is None else msgspec.Raw(params), SHOP)


@pytest.mark.requirement("mcp.arguments-absent")
def test_a_call_finds_its_tool() -> None:
    assert read(b'{"name":"stock"}') == Call(STOCK, None)
    call = read(b'{"name":"return","arguments":{"id":"a"},"_meta":{"progressToken":1}}')
    assert isinstance(call, Call)
    assert call.tool is RETURN
    assert call.arguments is not None
    assert bytes(call.arguments) == b'{"id":"a"}'


@pytest.mark.requirement("mcp.unknown-tool")
@pytest.mark.parametrize("name", ["shop", "Order", "", "order ", "a\nb", "x" * 5000])
def test_an_unknown_tool_is_refused_by_name(name: str) -> None:
    outcome = read(msgspec.json.encode({"name": name}))
    assert isinstance(outcome, Refusal)
    assert outcome.code == INVALID_PARAMS
    assert outcome.message.endswith("the tools are order, stock, return")
    assert shown(name) in outcome.message
    assert "\n" not in outcome.message
    assert len(outcome.message) < 200


@pytest.mark.requirement("mcp.unknown-tool")
@pytest.mark.parametrize("params", [None, b"{}", b'{"name":5}', b"[]", b'{"name":"\\ud800"}'])
def test_a_name_that_is_no_string_is_refused(params: bytes | None) -> None:
    outcome = read(params)
    assert isinstance(outcome, Refusal)
    assert outcome.code == INVALID_PARAMS
    assert outcome.message.startswith("name: must be a string")


@pytest.mark.requirement("mcp.unknown-tool")
@given(st.binary(max_size=60))
def test_bytes_never_raise(data: bytes) -> None:
    assert isinstance(read(data), Call | Refusal)


# --- results -----------------------------------------------------------------------------------


@pytest.mark.requirement("mcp.structured-content")
def test_structured_content_comes_with_newer_versions_only() -> None:
    result = ToolResult("Done.", OrderResult(True, Line("tea", 2.5), (Line("tea", 2.5),)))
    text = [{"type": "text", "text": "Done."}]
    for version in VERSIONS:
        reply = as_sent(call_result(result, version))
        assert reply["content"] == text
        assert "isError" not in reply
        if version < "2025-06-18":
            assert "structuredContent" not in reply
        else:
            jsonschema.validate(reply["structuredContent"], schema(OrderResult))
            assert reply["structuredContent"]["first"] == {"itemName": "tea", "price": 2.5}


@pytest.mark.requirement("mcp.tool-error", "mcp.structured-content")
def test_an_error_says_so_and_keeps_its_values() -> None:
    reply = as_sent(call_result(ToolResult("No.", OrderResult(False), True), "2025-06-18"))
    assert reply == {
        "content": [{"type": "text", "text": "No."}],
        "structuredContent": {"ordered": False, "lines": []},
        "isError": True,
    }


@pytest.mark.requirement("words.for-models")
def test_names_from_a_peer_cannot_break_a_sentence() -> None:
    assert shown("maxPrice") == "maxPrice"
    assert shown("two words") == '"two words"'
    assert shown('a"\n') == '"a\\"\\n"'
    assert shown("\ud800") == '"?"'
    assert len(shown("x" * 1000)) == 63
