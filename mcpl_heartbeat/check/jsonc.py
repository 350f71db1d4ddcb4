"""JSON as people keep it in their recipes: with comments, and names given twice. Pure."""

import json
import re
from typing import Any

import msgspec

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


class Parsed(msgspec.Struct, frozen=True):
    """What a text holds; ``twice`` are names an object gives more than once (the last one wins)."""

    value: Any
    twice: tuple[str, ...]
    comments: bool


def parse(text: str) -> Parsed | str:
    """Read JSON with ``//`` and ``/* */`` comments, or say in one clause where it breaks off."""
    text = text.removeprefix("\ufeff")
    bare = _TOKEN.sub(_blank, text)
    if not bare.strip():
        return "it is empty" if not text.strip() else "it holds nothing but comments"
    twice: list[str] = []

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(members)
        if len(found) < len(members):
            names = [name for name, _ in members]
            twice.extend(name for name in found if names.count(name) > 1)
        return found

    try:
        value = json.loads(bare, object_pairs_hook=pairs)
    except json.JSONDecodeError as broken:
        # Where it breaks is the bracket in some Pythons and the comma in others.
        before, after = bare[: broken.pos].rstrip(), bare[broken.pos :]
        trailing = re.match(r",?\s*[}\]]", after) and "," in (after[:1], before[-1:])
        hint = "; a comma before the closing bracket must go" if trailing else ""
        return f"line {broken.lineno}, column {broken.colno}: {broken.msg}{hint}"
    except RecursionError:
        return "it is nested too deeply"
    except ValueError:
        # Python reads no integer of more than some 4,000 digits, and does not say where it stands.
        return "a number in it has thousands of digits"
    return Parsed(value, tuple(twice), bare != text)


def _blank(match: re.Match[str]) -> str:
    token = match[0]
    # Lines stay where they are, so that an error names the right one.
    return token if token.startswith('"') else re.sub(r"[^\n]", " ", token)
