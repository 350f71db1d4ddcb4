"""The messages for which the code has no Struct, but for pushes (``pushes.py``), as Structs."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from spec.shared import NotBlank, Read, Sent, Text, Yes


class Info(Read, frozen=True):
    """Who speaks."""

    name: str
    version: str
    title: str | UnsetType = UNSET


class Coalescing(Read, frozen=True):
    """A host's event coalescing, method by method."""

    push_events: bool | UnsetType = UNSET


class HostMcpl(Read, frozen=True):
    """A host's ``experimental.mcpl``."""

    version: str | UnsetType = UNSET
    event_coalescing: bool | Coalescing | UnsetType = UNSET


class HostExperimental(Read, frozen=True):
    """A client's experimental capabilities."""

    mcpl: Annotated[
        HostMcpl | bool | UnsetType, Meta(description="An object or true asks for MCPL.")
    ] = UNSET


class HostCapabilities(Read, frozen=True):
    """A client's capabilities."""

    experimental: HostExperimental | UnsetType = UNSET


class Initialize(Read, frozen=True):
    """The params of ``initialize``."""

    protocol_version: str
    capabilities: HostCapabilities | UnsetType = UNSET
    client_info: Info | UnsetType = UNSET


class Declaration(Sent, frozen=True):
    """A feature set under its name."""

    description: str
    uses: list[str]


class NamedDeclaration(Declaration, frozen=True):
    """A feature set as an entry of an array."""

    name: Literal["heartbeat", "watch", "tasks"]


class FeatureSets(Sent, frozen=True):
    """The feature sets by name; ``watch`` and ``tasks`` where a store is configured."""

    heartbeat: Declaration
    watch: Declaration | UnsetType = UNSET
    tasks: Declaration | UnsetType = UNSET


class Manifest(Sent, frozen=True):
    """The manifest."""

    version: Literal["0.5"]
    push_events: Yes
    feature_sets: FeatureSets | list[NamedDeclaration]
    revision: Annotated[str, Meta(pattern=r"^sha256:[A-Za-z0-9_-]{43}$")]


class Experimental(Sent, frozen=True):
    """The server's experimental capabilities."""

    mcpl: Manifest


class ToolsCapability(Sent, frozen=True):
    """Nothing more than that there are tools."""


class Capabilities(Sent, frozen=True):
    """The server's capabilities."""

    tools: ToolsCapability
    experimental: Experimental | UnsetType = UNSET


class Initialized(Sent, frozen=True):
    """The result of ``initialize``."""

    protocol_version: Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    capabilities: Capabilities
    server_info: Info
    instructions: str | UnsetType = UNSET


class Update(Read, frozen=True):
    """The params of ``featureSets/update``."""

    effective_capabilities: list[str] | UnsetType = UNSET
    denied_capabilities: list[str] | UnsetType = UNSET
    enabled: list[str] | UnsetType = UNSET
    disabled: list[str] | UnsetType = UNSET


# --- tools, cancellation -------------------------------------------------------------------------


class CallParams(Read, frozen=True):
    """The params of ``tools/call``."""

    name: str
    arguments: dict[str, Any] | UnsetType | None = UNSET


class CallResult(Sent, frozen=True):
    """The result of ``tools/call``."""

    content: Annotated[list[Text], Meta(min_length=1, max_length=1)]
    structured_content: dict[str, Any] | UnsetType = UNSET
    is_error: Yes | UnsetType = UNSET


class Annotations(Sent, frozen=True):
    """Hints for a client."""

    title: str
    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class ToolMeta(Sent, frozen=True, kw_only=True):
    """MCPL's word on a tool (RFC-008)."""

    classes: Annotated[list[str], Meta(min_length=1)] = msgspec.field(name="mcpl/class")


class ListedTool(Sent, frozen=True, kw_only=True):
    """A tool as it is listed."""

    name: str
    title: str | UnsetType = UNSET
    description: NotBlank
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: Annotations
    meta: ToolMeta = msgspec.field(name="_meta")


class ListedTools(Sent, frozen=True):
    """The result of ``tools/list``."""

    tools: list[ListedTool]


class Cancelled(Read, frozen=True):
    """The params of ``notifications/cancelled``."""

    request_id: str | int | float
    reason: str | UnsetType = UNSET


class Error(Sent, frozen=True):
    """Why a request was not carried out; the code's Refusal, whose ``data`` no schema can name."""

    code: Annotated[int, Meta(extra_json_schema={"enum": [-32700, -32600, -32601, -32602, -32603]})]
    message: NotBlank
    data: Any | UnsetType = UNSET
