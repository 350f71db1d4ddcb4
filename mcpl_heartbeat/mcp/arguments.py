"""The rules for a tool call's arguments: every one is applied, or the call is refused (seed).

A refused call changes nothing, and its answer names each problem at once: a value of the wrong type
or out of range, a name sent twice, a contradiction, a slip for a name that this or another tool
takes. Any other unknown name is ignored and said to be, unless the call sends nothing else to a
tool that takes arguments, or the tool's schema forbids it (``additionalProperties``).

What a value may be is read from the tool's own ``inputSchema``; ``values.py`` weighs each one.
"""

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.jsonrpc.messages import Refusal
from mcpl_heartbeat.mcp.reading import Members, member_texts, read_members, repaired
from mcpl_heartbeat.mcp.slips import Slip, find_slip
from mcpl_heartbeat.mcp.tools import Problem, Rules, Tool, schema, shown
from mcpl_heartbeat.mcp.values import holds_nul, read_json, read_value, takes_json

MAX_UNKNOWN_NAMES = 100
"""With more unknown names than this, none is weighed: the call is no slip but a mistake."""

MAX_NAMES = 1_000
"""With more names than this the call is a mistake as a whole, and none is read."""

MAX_LISTED = 20
"""How many ignored names a reply lists."""

MAX_TAKERS = 3
"""How many tools that take a name a refusal lists."""


class Accepted(msgspec.Struct, frozen=True):
    """The call may be carried out. ``ignored`` are the names it sent in vain, for the reply."""

    arguments: Any
    """An instance of the tool's ``arguments`` Struct."""
    ignored: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """The call must change nothing; its result is ``refusal_text`` with ``isError``."""

    problems: tuple[Problem, ...]
    """All of them, in the order sent, then what is missing, then faults between arguments."""
    ignored: tuple[str, ...] = ()


Outcome = Accepted | Refused | Refusal


def check(
    tool: Tool,
    raw: msgspec.Raw | None,
    tools: Sequence[Tool],
    at_present: Rules | None = None,
    where: str = "params.arguments",
) -> Outcome:
    """Weigh the arguments of a call of ``tool``; never raises, whatever was sent.

    Absent, null and ``{}`` are the same. ``Refusal`` (-32602) for what is no object, and then
    ``where`` names it. ``tools`` are all tools of the server, whose names slips may be meant for.
    ``at_present`` are rules that hold only now, such as that a moment must lie ahead.
    """
    if raw is None or raw == _EMPTY:
        return _without_arguments(tool)
    members = read_members(raw, where)
    if isinstance(members, Refusal):
        return members
    if not members:
        return _without_arguments(tool)
    if len(members) > MAX_NAMES:
        text = f"{len(members)} names were sent; {tool.name} {_takes(tool)}"
        return Refused((Problem("arguments", text),))
    return _weigh(tool, members, tools, at_present, raw)


_EMPTY = msgspec.Raw(b"{}")


@functools.cache
def _without_arguments(tool: Tool) -> Accepted | Refused:
    return _conclude(tool, {}, frozenset(), [], (), None)


def _weigh(
    tool: Tool,
    members: Members,
    tools: Sequence[Tool],
    at_present: Rules | None,
    raw: msgspec.Raw,
) -> Accepted | Refused:
    properties = _properties(tool)
    sent: dict[str, list[Any]] = {}
    for name, value in members:
        sent.setdefault(repaired(name), []).append(value)
    good: dict[str, Any] = {}
    bad: set[str] = set()
    problems: list[Problem] = []
    unknown = [name for name in sent if name not in properties]
    if len(unknown) > MAX_UNKNOWN_NAMES:
        text = f"sends {len(unknown)} names that {tool.name} does not take"
        problems.append(Problem("arguments", text))
        for name in unknown:
            del sent[name]
        unknown = []
    slips = _slips(tool, unknown, sent, tools) if unknown else {}
    texts = {} if _takes_json(tool).isdisjoint(sent) else _texts(raw)
    for name, values in sent.items():
        if len(values) > 1:
            bad.add(name)
            text = f"sent {len(values)} times; send it once"
            problems.append(Problem(shown(name), text))
        elif name in properties:
            value = _read(tool, name, values[0], texts)
            if isinstance(value, Problem):
                bad.add(name)
                problems.append(value)
            else:
                good[name] = value
        elif slip := slips[name]:
            bad.update(slip.meant)
            problems.append(Problem(shown(name), _slip_text(tool, name, slip)))
    ignored = tuple(name for name in unknown if slips[name] is None and len(sent[name]) == 1)
    if ignored and (_is_strict(tool) or (len(ignored) == len(sent) and properties)):
        problems += [Problem(shown(name), f"{tool.name} does not take this") for name in ignored]
        ignored = ()
    return _conclude(tool, good, frozenset(bad), problems, ignored, at_present)


def _slips(
    tool: Tool, unknown: Sequence[str], sent: Collection[str], tools: Sequence[Tool]
) -> dict[str, Slip | None]:
    own = tuple(_properties(tool))
    # Where unknown names may be ignored, no tool that is strict about them can make one a slip.
    strict = _is_strict(tool)
    others = [
        (other.name, tuple(_properties(other)))
        for other in tools
        if other is not tool and (strict or not _is_strict(other))
    ]
    return {name: find_slip(name, sent, own, others) for name in unknown}


def _texts(raw: msgspec.Raw) -> Mapping[str, str]:
    try:
        return member_texts(raw)
    except RecursionError:
        return {}


def _read(tool: Tool, name: str, value: Any, texts: Mapping[str, str]) -> Any | Problem:
    if name in _takes_json(tool):
        if name not in texts:
            return Problem(name, "was sent beside values nested too deep")
        return read_json(name, value, texts[name], _properties(tool)[name], tool.json_bytes)
    read = read_value(name, value, _properties(tool)[name])
    if _is_strict(tool) and holds_nul(read):
        return Problem(name, "must not hold the character U+0000")
    if not isinstance(read, Problem) and name in _holds_structs(tool):
        return msgspec.convert(read, _types(tool)[name])
    return read


def _conclude(  # noqa: PLR0913, PLR0917 - what a call came to, in the order it is found
    tool: Tool,
    good: dict[str, Any],
    bad: frozenset[str],
    problems: list[Problem],
    ignored: tuple[str, ...],
    at_present: Rules | None,
) -> Accepted | Refused:
    """Add what is missing and what the tool's own rules say, and build the Struct."""
    attributes = _attributes(tool)
    values = {attributes[name]: value for name, value in good.items()}
    forgiven = tool.forgives(good) if tool.forgives is not None else frozenset()
    for name in _required(tool):
        if name not in good:
            values[attributes[name]] = UNSET
            if name not in bad and name not in forgiven:
                problems = [*problems, Problem(name, "is required and was not sent")]
    if tool.companions is not None:
        problems = [*problems, *tool.companions(good.keys() | bad)]
    arguments = tool.arguments(**values)
    for rules in (tool.rules, at_present):
        if rules is not None:
            problems = [*problems, *rules(arguments, bad)]
    return Refused(tuple(problems), ignored) if problems else Accepted(arguments, ignored)


# --- words -------------------------------------------------------------------------------------


def refusal_text(tool: Tool, refused: Refused) -> str:
    """Word a refused call: that nothing was changed, each problem, and what the tool takes."""
    lines = [f"{was_refused(tool.name, reads=tool.read_only)}:"]
    lines += [f"- {problem.argument}: {problem.text}" for problem in refused.problems]
    lines.append(
        ignored_text(tool, refused.ignored) if refused.ignored else f"{tool.name} {_takes(tool)}."
    )
    return "\n".join(lines)


def was_refused(name: str, *, reads: bool) -> str:
    """Begin the words of a refused call; of a tool that only reads no change was to be feared."""
    return f"{name} was refused" if reads else f"{name} was refused and changed nothing"


def ignored_text(tool: Tool, ignored: Sequence[str]) -> str:
    """Word what was sent in vain and what the tool takes; empty when nothing was."""
    if not ignored:
        return ""
    names = ", ".join(shown(name) for name in ignored[:MAX_LISTED])
    if len(ignored) > MAX_LISTED:
        names += f" and {len(ignored) - MAX_LISTED} more"
    return f"Ignored: {names}; {tool.name} {_takes(tool)}."


@functools.cache
def _takes(tool: Tool) -> str:
    required = _required(tool)
    names = [f"{name} (required)" if name in required else name for name in _properties(tool)]
    return f"takes {', '.join(names)}" if names else "takes no arguments"


def _slip_text(tool: Tool, name: str, slip: Slip) -> str:
    if not slip.tools:
        return f"{tool.name} does not take this; did you mean {' or '.join(slip.meant)}?"
    takers = " and ".join(slip.tools[:MAX_TAKERS])
    if len(slip.tools) > MAX_TAKERS:
        takers += f" and {len(slip.tools) - MAX_TAKERS} more"
    what = "this" if name == slip.meant[0] else slip.meant[0]
    return f"{tool.name} does not take this; {takers} can take {what}"


# --- what the schema says, looked up once ------------------------------------------------------


def _properties(tool: Tool) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema(tool.arguments)["properties"]
    return properties


def _required(tool: Tool) -> Sequence[str]:
    required: Sequence[str] = schema(tool.arguments).get("required", ())
    return required


@functools.cache
def _takes_json(tool: Tool) -> frozenset[str]:
    return frozenset(name for name, rule in _properties(tool).items() if takes_json(rule))


@functools.cache
def _holds_structs(tool: Tool) -> frozenset[str]:
    return frozenset(
        name
        for name, rule in _properties(tool).items()
        if "properties" in rule or "properties" in rule.get("items", ())
    )


@functools.cache
def _types(tool: Tool) -> Mapping[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(tool.arguments)}


@functools.cache
def _is_strict(tool: Tool) -> bool:
    return schema(tool.arguments).get("additionalProperties") is False


@functools.cache
def _attributes(tool: Tool) -> Mapping[str, str]:
    struct = tool.arguments
    return dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))
