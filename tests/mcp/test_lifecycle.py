"""``initialize`` in and out."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Refusal
from mcpl_heartbeat.mcp import lifecycle
from mcpl_heartbeat.mcp.lifecycle import Initialize, ServerInfo, initialize_result, read_initialize

SERVER = ServerInfo("a-server", "A server", "1.2.3")


def read(params: object) -> Initialize | Refusal:
    return read_initialize(msgspec.Raw(msgspec.json.encode(params)))


def opened(params: object) -> Initialize:
    outcome = read(params)
    assert isinstance(outcome, Initialize)
    return outcome


@pytest.mark.requirement("mcp.version-echo", "field.38")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_supported_version_is_echoed(version: str) -> None:
    assert opened({"protocolVersion": version}).protocol_version == version


@pytest.mark.requirement("mcp.version-unknown", "field.38")
@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", "", "2024-11-05 ", "\ufb01"])
def test_another_string_gets_the_newest(version: str) -> None:
    assert opened({"protocolVersion": version}).protocol_version == "2025-11-25"


@pytest.mark.requirement("mcp.version-missing", "field.38")
@pytest.mark.parametrize(
    ("params", "fault"),
    [
        ({}, "is missing"),
        ({"protocolVersion": 5}, "must be a string"),
        ({"protocolVersion": None}, "must be a string"),
        ({"protocolVersion": ["2024-11-05"]}, "must be a string"),
    ],
)
def test_a_version_that_is_no_string_is_refused(params: object, fault: str) -> None:
    outcome = read(params)
    assert isinstance(outcome, Refusal)
    assert outcome.code == INVALID_PARAMS
    assert outcome.message.startswith(f"protocolVersion: {fault}")


@pytest.mark.requirement("mcp.version-missing")
def test_no_params_at_all_lack_the_version() -> None:
    outcome = read_initialize(None)
    assert isinstance(outcome, Refusal)
    assert outcome.message.startswith("protocolVersion: is missing")


@pytest.mark.requirement("mcp.initialize-lenient")
@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"clientInfo": None},
        {"clientInfo": "x"},
        {"clientInfo": []},
        {"clientInfo": {"name": 5, "version": None}},
        {"capabilities": None},
        {"capabilities": "x"},
        {"capabilities": {"experimental": [1]}},
        {"capabilities": {"experimental": None}},
    ],
)
def test_odd_details_are_taken_for_none(odd: dict[str, object]) -> None:
    assert opened({"protocolVersion": "2025-06-18", **odd}) == Initialize("2025-06-18", "", "", {})


@pytest.mark.requirement("mcp.initialize-lenient")
def test_what_the_client_says_is_read() -> None:
    said = {
        "protocolVersion": "2024-11-05",
        "clientInfo": {"name": "agent-framework", "version": "1.0.0", "title": "x"},
        "capabilities": {"experimental": {"mcpl": {"version": "0.5", "list": [{"a": 1}]}}},
        "more": 1,
    }
    assert opened(said) == Initialize(
        "2024-11-05",
        "agent-framework",
        "1.0.0",
        {"mcpl": {"version": "0.5", "list": [{"a": 1}]}},
    )


@pytest.mark.requirement("mcp.initialize-lenient")
def test_values_no_decoder_likes_do_no_harm() -> None:
    raw = msgspec.Raw(
        rb'{"protocolVersion":"2024-11-05","clientInfo":{"name":"a\ud800b"},'
        rb'"capabilities":{"experimental":{"mcpl":{"n":1e999,"m":' + b"9" * 5000 + b"}}}}"
    )
    outcome = read_initialize(raw)
    assert isinstance(outcome, Initialize)
    assert outcome.client_name == "a\ufffdb"


@pytest.mark.requirement("mcp.initialize-lenient", "field.26")
@pytest.mark.parametrize("depth", [300, 450, 600, 900, 2000, 100_000])
def test_nesting_never_raises(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    outcome = read_initialize(msgspec.Raw(b'{"protocolVersion":"2024-11-05","x":' + deep + b"}"))
    assert isinstance(outcome, Initialize | Refusal)


@pytest.mark.requirement("mcp.initialize-lenient")
@given(st.binary(max_size=60))
def test_bytes_never_raise(data: bytes) -> None:
    assert isinstance(read_initialize(msgspec.Raw(data)), Initialize | Refusal)


@pytest.mark.requirement("mcp.tools-capability")
@pytest.mark.parametrize("version", lifecycle.VERSIONS)
def test_the_answer_declares_tools(version: str) -> None:
    result = initialize_result(version, SERVER)
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {}}
    assert "instructions" not in result


@pytest.mark.requirement("mcp.tools-capability")
def test_the_answer_carries_experimental_and_instructions() -> None:
    result = initialize_result("2024-11-05", SERVER, {"mcpl": {"version": "0.5"}}, "Use it.")
    assert result == {
        "protocolVersion": "2024-11-05",
        "capabilities": {"tools": {}, "experimental": {"mcpl": {"version": "0.5"}}},
        "serverInfo": {"name": "a-server", "version": "1.2.3"},
        "instructions": "Use it.",
    }


@pytest.mark.requirement("mcp.version-echo")
def test_what_each_version_knows() -> None:
    table = {
        version: (
            lifecycle.supports_batches(version),
            lifecycle.supports_titles(version),
            lifecycle.supports_structured_content(version),
            "title" in initialize_result(version, SERVER)["serverInfo"],
        )
        for version in lifecycle.VERSIONS
    }
    assert table == {
        "2024-11-05": (True, False, False, False),
        "2025-03-26": (True, False, False, False),
        "2025-06-18": (False, True, True, True),
        "2025-11-25": (False, True, True, True),
    }
