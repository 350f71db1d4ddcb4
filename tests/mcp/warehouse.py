"""A tool that is strict: unknown names are refused, and it takes lists, forms and any JSON."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from mcpl_heartbeat.mcp.arguments import Accepted, Outcome, check
from mcpl_heartbeat.mcp.tools import Tool
from tests.mcp.shop import ORDER, OrderResult

Mark = Literal["fragile", "heavy", "cold"]
Mode = Literal["now", "later"]


class PackArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    crate: Annotated[str, Meta(min_length=1, max_length=8, description="Which.")]
    hours: Annotated[Annotated[int, Meta(ge=1)] | UnsetType, Meta(description="How long.")]
    marks: Annotated[
        Annotated[list[Mark], Meta(min_length=1, max_length=3)] | UnsetType,
        Meta(description="What it is.", examples=[["fragile", "cold"]]),
    ] = UNSET
    lines: Annotated[
        Annotated[
            list[Annotated[str, Meta(max_length=5)]],
            Meta(min_length=2, max_length=4, extra_json_schema={"uniqueItems": True}),
        ]
        | UnsetType,
        Meta(description="Words."),
    ] = UNSET
    door: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z]+/[0-9]+$")] | UnsetType,
        Meta(description="Where.", examples=["north/7"]),
    ] = UNSET
    tag: Annotated[Annotated[str, Meta(pattern="x")] | UnsetType, Meta(description="A tag.")] = (
        UNSET
    )
    seal: Annotated[
        Annotated[str, Meta(min_length=12)] | UnsetType, Meta(description="A secret.")
    ] = UNSET
    stop: bool = False
    slip: Annotated[Raw | UnsetType, Meta(description="Any JSON.")] = UNSET
    note: Annotated[Raw | UnsetType, Meta(description="Any JSON.")] = UNSET


def forgives(sent: Mapping[str, Any]) -> frozenset[str]:
    return frozenset({"hours"}) if sent.get("stop") is True else frozenset()


PACK = Tool(
    name="pack",
    title="Pack",
    description="Packs.",
    arguments=PackArguments,
    result=OrderResult,
    read_only=False,
    idempotent=True,
    destructive=False,
    forgives=forgives,
)
LOAD = msgspec.structs.replace(PACK, name="load", forgives=None)
HALL = (ORDER, PACK, LOAD)


def pack(members: str, tool: Tool = PACK) -> Outcome:
    """Check a call that sends ``members``, JSON text without its braces, beside what is required.

    What is required is left out when ``members`` name it.
    """
    required = {"crate": '"c"', "hours": "1"}
    rest = [f'"{name}":{value}' for name, value in required.items() if f'"{name}"' not in members]
    body = ",".join([*rest, *([members] if members else [])])
    return check(tool, msgspec.Raw(f"{{{body}}}".encode()), HALL)


def packed(members: str) -> PackArguments:
    """The arguments of an accepted call."""
    outcome = pack(members)
    assert isinstance(outcome, Accepted), outcome
    assert isinstance(outcome.arguments, PackArguments)
    assert outcome.ignored == ()
    return outcome.arguments
