"""Tools of a small shop, so that the rules are tested apart from the wake server's own tools."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mcpl_heartbeat.mcp.arguments import Outcome, Refused, check
from mcpl_heartbeat.mcp.tools import Problem, Tool


class OrderArguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    item: Annotated[str, Meta(max_length=10, description="What to buy.")]
    amount: Annotated[int, Meta(ge=1, le=2**53, description="How many.")] = 1
    max_price: Annotated[float | UnsetType, Meta(description="Price limit.")] = UNSET
    wrap: Annotated[bool | UnsetType, Meta(description="As a gift.")] = UNSET
    speed: Annotated[Literal["slow", "fast"] | UnsetType, Meta(description="How fast.")] = UNSET


class Line(msgspec.Struct, frozen=True, rename="camel"):
    """A line of the bill."""

    item_name: str
    price: float


class OrderResult(msgspec.Struct, frozen=True, rename="camel"):
    """The bill."""

    ordered: bool
    first: Line | UnsetType = UNSET
    lines: tuple[Line, ...] = ()


class Nothing(msgspec.Struct, frozen=True, kw_only=True):
    """No arguments."""


class ReturnArguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: Annotated[str, Meta(description="Which order.")]
    reason_text: Annotated[str | UnsetType, Meta(description="Why.")] = UNSET


def order_rules(arguments: OrderArguments, bad: frozenset[str]) -> Iterable[Problem]:
    if arguments.wrap is True and arguments.speed == "fast":
        yield Problem("wrap + speed", "wrapping takes time")
    if bad >= {"wrap", "speed"}:
        yield Problem("wrap + speed", "both bad")


ORDER = Tool(
    name="order",
    title="Order",
    description="Buys.",
    arguments=OrderArguments,
    result=OrderResult,
    read_only=False,
    idempotent=False,
    destructive=False,
    open_world=True,
    rules=order_rules,
)
STOCK = Tool(
    name="stock",
    title="Stock",
    description="Shows.",
    arguments=Nothing,
    result=OrderResult,
    read_only=True,
    idempotent=True,
    destructive=False,
    classes=("control",),
)
RETURN = Tool(
    name="return",
    title="Return",
    description="Gives back.",
    arguments=ReturnArguments,
    result=OrderResult,
    read_only=False,
    idempotent=True,
    destructive=True,
)
SHOP = (ORDER, STOCK, RETURN)


def call(tool: Tool, arguments: str | bytes | None) -> Outcome:
    """Check ``arguments`` as JSON text."""
    if isinstance(arguments, str):
        arguments = arguments.encode()
    return check(tool, None if arguments is None else msgspec.Raw(arguments), SHOP)


def problems(outcome: Outcome) -> dict[str, str]:
    """The problems of a refused call by argument."""
    assert isinstance(outcome, Refused), outcome
    return {problem.argument: problem.text for problem in outcome.problems}
