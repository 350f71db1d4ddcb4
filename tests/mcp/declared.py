"""What the tests of each wing's tools share: what tools say of themselves, and what they take."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import jsonschema
import msgspec

from mcpl_heartbeat import catalogue
from mcpl_heartbeat.mcp.arguments import Accepted, Refused, check
from mcpl_heartbeat.mcp.tools import Tool, encoded_tools_list, schema
from mcpl_heartbeat.wake.tools import TOOLS as WAKE

EVERY = {tool.name: tool for tool in (*WAKE, *catalogue.TOOLS)}


def names(tool: Tool) -> set[str]:
    """The names of its arguments."""
    return set(schema(tool.arguments)["properties"])


def hints(tool: Tool) -> tuple[bool, bool, bool, bool]:
    """Its hints for a client."""
    return tool.read_only, tool.idempotent, tool.destructive, tool.open_world


def unsaid(tool: str, argument: str | None, words: Iterable[str]) -> list[str]:
    """Those of ``words`` that neither the tool nor, if one is named, its argument says."""
    text = EVERY[tool].description
    if argument is not None:
        text = schema(EVERY[tool].arguments)["properties"][argument]["description"]
    return [word for word in words if word not in text]


def no_host_drops(tools: tuple[Tool, ...], version: str) -> None:
    """Each schema is one that hosts take; only a result can be null, and says so."""
    for tool in msgspec.json.decode(encoded_tools_list(tools, version))["tools"]:
        for key in ("inputSchema", "outputSchema"):
            if key not in tool:
                continue
            root = tool[key]
            jsonschema.Draft202012Validator.check_schema(root)
            assert root["type"] == "object"
            assert isinstance(root["properties"], dict)
            banned = {"anyOf", "oneOf", "allOf", "not", "$ref", "$defs"}
            if key == "outputSchema":
                banned.remove("anyOf")
            for node in _walk(root):
                if not isinstance(node, dict):
                    continue
                assert node.keys().isdisjoint(banned)
                assert isinstance(node.get("type", ""), str | dict)
                for choice in node.get("anyOf", ()):
                    assert set(choice) <= {"type", "enum", "properties", "required"}


def fits(tool: Tool, value: msgspec.Struct) -> None:
    """What is sent of a result is as its schema says, and nothing else."""
    sent = msgspec.json.decode(msgspec.json.encode(value))
    jsonschema.Draft202012Validator(schema(tool.result)).validate(sent)
    assert set(sent) <= set(schema(tool.result)["properties"])


def taken(tool: str, **arguments: Any) -> Any:
    """The arguments of a call that is taken."""
    outcome = _checked(tool, arguments)
    assert isinstance(outcome, Accepted), outcome
    assert outcome.ignored == ()
    return outcome.arguments


def problems(tool: str, **arguments: Any) -> dict[str, str]:
    """The problems of a call that is refused, by argument."""
    outcome = _checked(tool, arguments)
    assert isinstance(outcome, Refused), outcome
    return {problem.argument: problem.text for problem in outcome.problems}


def _checked(tool: str, arguments: dict[str, Any]) -> Any:
    return check(EVERY[tool], msgspec.Raw(json.dumps(arguments).encode()), tuple(EVERY.values()))


def _walk(node: Any) -> Iterator[Any]:
    yield node
    if isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _walk(item)
