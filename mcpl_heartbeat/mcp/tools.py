"""A tool as it is declared, listed, called and answered (MCP tools).

A tool's arguments and its result are Structs, and the schemas that clients see are generated from
them: ``arguments.py`` enforces those same schemas, so that what is stated is what is enforced.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Refusal
from mcpl_heartbeat.mcp.lifecycle import supports_structured_content, supports_titles

MAX_JSON_BYTES = 65_536
"""The most that a value of any JSON may have, as it was sent (UTF-8), where a tool says no other
number."""


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a call's arguments."""

    argument: str
    """The name on the wire, or several joined by ``+`` when the fault lies between them."""
    text: str
    """The rule and what to do, as a clause that follows ``<argument>: ``."""


Rules = Callable[[Any, frozenset[str]], Iterable[Problem]]
"""The checks between arguments: called with the argument Struct and the wire names that were sent
but refused on their own (their fields hold the default, a missing required field holds UNSET)."""

Forgives = Callable[[Mapping[str, Any]], frozenset[str]]
"""Which required arguments a call need not send after all: called with those that were sent and are
right, by wire name. The field of one that is forgiven holds UNSET."""


Companions = Callable[[Collection[str]], Iterable[Problem]]
"""The checks between names, whatever their values: called with every known name that was sent."""


class Tool(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One tool's declaration, compared by identity: what is derived from it is cached."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    """A keyword-only Struct of strings, numbers, booleans, lists, Structs of the same kind, and
    ``Raw`` for any JSON or, with ``type`` in its schema, any object; an optional one has UNSET or a
    default. With ``forbid_unknown_fields`` a call that sends another name is refused."""
    result: type[msgspec.Struct]
    """The shape of ``structuredContent``, error results included."""
    read_only: bool
    idempotent: bool
    destructive: bool
    open_world: bool = False
    classes: tuple[str, ...] = ()
    """What the tool acts on, for ``_meta`` ``mcpl/class`` (MCPL RFC-008)."""
    rules: Rules | None = None
    forgives: Forgives | None = None
    companions: Companions | None = None
    json_bytes: int = MAX_JSON_BYTES
    """The most that an argument of any JSON may have."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool call came to: words for the agent, the same as values, and whether it failed."""

    text: str
    structured: msgspec.Struct | None = None
    """An instance of the tool's ``result`` Struct. Error results carry one as well."""
    is_error: bool = False


class Call(msgspec.Struct, frozen=True):
    """A ``tools/call`` whose tool is known; its arguments are still unread."""

    tool: Tool
    arguments: msgspec.Raw | None


class _CallParams(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw()


_call_params = msgspec.json.Decoder(_CallParams)


def read_call(params: msgspec.Raw | None, tools: Sequence[Tool]) -> Call | Refusal:
    """Read the params of ``tools/call``; -32602 for an unknown tool or a name that is no string.

    ``arguments`` are handed on as they came, ``None`` when absent; the rest, such as ``_meta``, is
    ignored.
    """
    try:
        sent = _call_params.decode(params if params is not None else b"{}")
    except (ValueError, RecursionError):
        names = ", ".join(tool.name for tool in tools)
        return Refusal(INVALID_PARAMS, f"name: must be a string, one of {names}")
    for tool in tools:
        if tool.name == sent.name:
            return Call(tool, sent.arguments if sent.arguments != _ABSENT else None)
    names = ", ".join(tool.name for tool in tools)
    return Refusal(
        INVALID_PARAMS, f"name: there is no tool {shown(sent.name)}; the tools are {names}"
    )


_ABSENT = msgspec.Raw()


def call_result(result: ToolResult, version: str) -> dict[str, Any]:
    """Make the result of ``tools/call``; ``isError`` is left out unless the call failed."""
    reply: dict[str, Any] = {"content": [{"type": "text", "text": result.text}]}
    if result.structured is not None and supports_structured_content(version):
        reply["structuredContent"] = result.structured
    if result.is_error:
        reply["isError"] = True
    return reply


def tools_list(tools: Iterable[Tool], version: str) -> dict[str, Any]:
    """Make the result of ``tools/list``: every tool, on one page."""
    return {"tools": [_listed(tool, version) for tool in tools]}


@functools.cache
def encoded_tools_list(tools: tuple[Tool, ...], version: str) -> msgspec.Raw:
    """Give ``tools_list`` as JSON, made once for each version."""
    return msgspec.Raw(msgspec.json.encode(tools_list(tools, version)))


def _listed(tool: Tool, version: str) -> dict[str, Any]:
    listed: dict[str, Any] = {"name": tool.name}
    if supports_titles(version):
        listed["title"] = tool.title
    listed["description"] = tool.description
    listed["inputSchema"] = schema(tool.arguments)
    if supports_structured_content(version):
        listed["outputSchema"] = schema(tool.result)
    listed["annotations"] = {
        "title": tool.title,
        "readOnlyHint": tool.read_only,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": tool.open_world,
    }
    if tool.classes:
        listed["_meta"] = {"mcpl/class": list(tool.classes)}
    return listed


@functools.cache
def schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Generate the JSON Schema of a Struct: an object with ``properties``, no references.

    Clients drop a tool, or all of them, over a root without ``properties``, a combinator or a
    ``$ref``.
    """
    _, components = msgspec.json.schema_components((struct,))
    flat: dict[str, Any] = _flatten(components[struct.__name__], components)
    return flat


def _flatten(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list | tuple):
        return [_flatten(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        inlined = _flatten(components[node["$ref"].rpartition("/")[2]], components)
        return {**inlined, **{k: v for k, v in node.items() if k != "$ref"}}
    flat = {
        key: {name: _flatten(each, components) for name, each in value.items()}
        if key == "properties"
        else _flatten(value, components)
        for key, value in node.items()
        if key not in {"title", "default"}
    }
    if "properties" in flat:
        # The Struct's docstring, which speaks to readers of the code.
        flat.pop("description", None)
        if not flat.get("required"):
            flat.pop("required", None)  # JSON Schema of old forbids an empty list
    if "enum" in flat:
        # A choice of strings; some clients refuse a property without a type.
        flat.setdefault("type", "string")
    return flat


def shown(text: str, limit: int = 60) -> str:
    """Give ``text`` from a peer as it may stand in a sentence: plain names bare, others quoted."""
    if text.isidentifier() and text.isascii() and len(text) <= limit:
        return text
    cut = text if len(text) <= limit else text[:limit] + "…"
    return msgspec.json.encode(cut.encode("utf-8", "replace").decode()).decode()
