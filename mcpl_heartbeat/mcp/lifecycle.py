"""``initialize``: what the client says of itself, and what the server answers (MCP lifecycle).

Only ``protocolVersion`` is required of a client. Everything else is read leniently, since a client
with odd details can still call tools.
"""

from typing import Any

import msgspec

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Refusal
from mcpl_heartbeat.mcp.reading import read_object

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The protocol versions spoken here, newest last. They are dates, so they compare as strings."""

NEWEST = VERSIONS[-1]


class Initialize(msgspec.Struct, frozen=True):
    """What a client's ``initialize`` came to."""

    protocol_version: str
    """The version to answer with and to speak from now on."""
    client_name: str
    """``clientInfo.name``, or ``""`` when it is missing or no string."""
    client_version: str
    """``clientInfo.version``, or ``""`` when it is missing or no string."""
    experimental: dict[str, object]
    """``capabilities.experimental``, or ``{}`` when it is missing or no object."""


class ServerInfo(msgspec.Struct, frozen=True):
    """How the server introduces itself."""

    name: str
    title: str
    version: str


def read_initialize(params: msgspec.Raw | None) -> Initialize | Refusal:
    """Read the params of ``initialize``; ``Refusal`` (-32602) only for a version that is no string.

    A supported version is answered with itself, any other string with the newest (MCP lifecycle).
    """
    sent = read_object(params if params is not None else b"{}", "params")
    if isinstance(sent, Refusal):
        return sent
    version = sent.get("protocolVersion")
    if not isinstance(version, str):
        fault = "must be a string" if "protocolVersion" in sent else "is missing"
        return Refusal(
            INVALID_PARAMS,
            f'protocolVersion: {fault}; send the MCP version you speak, such as "{NEWEST}"',
            {"supported": VERSIONS},
        )
    client = _object(sent.get("clientInfo"))
    return Initialize(
        protocol_version=version if version in VERSIONS else NEWEST,
        client_name=_string(client.get("name")),
        client_version=_string(client.get("version")),
        experimental=_object(_object(sent.get("capabilities")).get("experimental")),
    )


def initialize_result(
    version: str,
    server: ServerInfo,
    experimental: dict[str, Any] | None = None,
    instructions: str | None = None,
) -> dict[str, Any]:
    """Make the result of ``initialize``; ``version`` is the one ``read_initialize`` chose."""
    capabilities: dict[str, Any] = {"tools": {}}
    if experimental:
        capabilities["experimental"] = experimental
    info = {"name": server.name, "version": server.version}
    if supports_titles(version):
        info["title"] = server.title
    result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
    if instructions:
        result["instructions"] = instructions
    return result


def supports_batches(version: str) -> bool:
    """Whether an array of messages is allowed (JSON-RPC 2.0 §6; dropped in MCP 2025-06-18)."""
    return version < "2025-06-18"


def supports_titles(version: str) -> bool:
    """Whether a tool and the server have a ``title`` of their own (MCP 2025-06-18)."""
    return version >= "2025-06-18"


def supports_structured_content(version: str) -> bool:
    """Whether tools have ``outputSchema`` and results ``structuredContent`` (MCP 2025-06-18)."""
    return version >= "2025-06-18"


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
