"""The tables of the pages that are drawn from the code and from the requirements."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.mcp.values import MAX_JSON_DEPTH, takes_json
from mcpl_heartbeat.watch.failures import STATUS


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def tools(those: Iterable[Tool]) -> str:
    """List tools with what clients are told of them."""
    hints = ("read_only", "idempotent", "destructive")
    return _table(
        ("tool", "title", "readOnlyHint", "idempotentHint", "destructiveHint"),
        (
            (f"`{tool.name}`", tool.title, *(_word(getattr(tool, hint)) for hint in hints))
            for tool in those
        ),
    )


def arguments(those: Iterable[Tool], besides: Collection[str] = ()) -> str:
    """List every argument of tools with the bounds of its own, but for those in ``besides``."""
    return _table(
        ("tool", "argument", "type", "bounds", "required"),
        (row for tool in those for row in _arguments_of(tool, besides)),
    )


def _arguments_of(tool: Tool, besides: Collection[str]) -> Iterable[Sequence[str]]:
    described = schema(tool.arguments)
    required = described.get("required", ())
    for name, rule in described["properties"].items():
        if name not in besides:
            kind = rule.get("type", "any JSON")
            bounds = (
                f"at most {tool.json_bytes:,} bytes, {MAX_JSON_DEPTH} deep"
                if takes_json(rule)
                else _bounds(rule)
            )
            yield f"`{tool.name}`", f"`{name}`", kind, bounds, _word(name in required)


def _bounds(rule: dict[str, Any]) -> str:
    if "enum" in rule:
        return " or ".join(f'`"{choice}"`' for choice in rule["enum"])
    if "maximum" in rule:
        return f"{rule['minimum']:,} to {rule['maximum']:,}"
    if "pattern" in rule:
        return f"such as `{rule['examples'][0]}`"
    if "maxLength" in rule:
        least = f"{rule['minLength']} to" if "minLength" in rule else "at most"
        return f"{least} {rule['maxLength']} characters"
    if "maxItems" in rule:
        least = f"{rule['minItems']} to" if "minItems" in rule else "at most"
        items = _bounds(rule["items"])
        return (
            f"{least} {rule['maxItems']} of {items}"
            if "enum" in rule["items"]
            else (f"{least} {rule['maxItems']}, each {items}")
        )
    if "properties" in rule:
        members = rule["properties"]
        needed = rule.get("required", ())
        return ", ".join(f"`{name}`{'' if name in needed else '?'}" for name in members)
    return ""


def failures() -> str:
    """List the codes of failures with the HTTP status of each."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code, status in STATUS.items():
        by_status[status].append(f"`{code}`")
    return _table(
        ("status", "code"),
        ((str(status), ", ".join(codes)) for status, codes in sorted(by_status.items())),
    )


def _word(yes: bool) -> str:
    return "yes" if yes else "no"


def sources(names: Iterable[str], rows: dict[str, dict[str, Any]]) -> str:
    """List where the rules of a page come from: a line for each source, with its rules."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=_in_order):
        by_source[_source(name, rows.get(name, {}))].append(name)
    return _table(
        ("source", "rules"),
        ((source, ", ".join(f"`{n}`" for n in ids)) for source, ids in sorted(by_source.items())),
    )


def _source(name: str, row: dict[str, Any]) -> str:
    # Their ids hold the numbers of the entries, so one line does for all.
    numbered = {"field": "field reports", "host": "host list"}
    return numbered.get(name.partition(".")[0]) or str(row.get("source", "unknown"))


def _in_order(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split(".")]
