"""One value of a call, weighed by the JSON Schema of its property.

Types are strict, ``"5"`` is no number, ``1`` no boolean and JSON text no list; only ``5.0`` is
taken for an integer. An object whose schema has ``properties`` is weighed member by member, and it
takes no others. A property whose schema names no type takes any JSON, and one that is an object
without ``properties`` any object; both are kept as they were sent.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.mcp.reading import Members, kind_of, repaired
from mcpl_heartbeat.mcp.slips import find_slip
from mcpl_heartbeat.mcp.tools import MAX_JSON_BYTES, Problem, shown

MAX_JSON_DEPTH = 100
"""How deep lists and objects may be nested in it."""

MAX_BAD_ITEMS = 5
"""How many wrong items of a list, or members of an object, a refusal names."""

Rule = Mapping[str, Any]
"""The JSON Schema of a property, or of a list's items."""


class _Inside(Problem, frozen=True):
    """A problem that lies further inside, so that its text begins with a place of its own."""


def read_value(name: str, value: Any, rule: Rule) -> Any | Problem:
    """Give the value as its field holds it, or the ``Problem`` with it."""
    kind = rule["type"]
    if kind == "boolean":
        return value if isinstance(value, bool) else _wrong_type(name, value, rule)
    if kind == "string":
        return _read_string(name, value, rule)
    if kind == "array":
        return _read_list(name, value, rule)
    if kind == "object":
        return _read_object(name, value, rule)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong_type(name, value, rule)
    low, high = rule.get("minimum", -_LARGEST), rule.get("maximum", _LARGEST)
    if not low <= value <= high:
        return Problem(name, f"must be {_range(low, high)}, not {_number(value)}")
    if kind == "number":
        return float(value)
    if value != int(value):
        return Problem(name, f"must be a whole number, not {_number(value)}")
    return int(value)


_LARGEST = 1.7976931348623157e308  # what a float can hold; beyond it "1e999" is infinity


def takes_json(rule: Rule) -> bool:
    """Say whether a property takes JSON that is kept as it was sent."""
    return "type" not in rule or (rule["type"] == "object" and "properties" not in rule)


def read_json(
    name: str, value: Any, text: str, rule: Rule, most: int = MAX_JSON_BYTES
) -> msgspec.Raw | Problem:
    """Keep JSON as the ``text`` that was sent, if a store can give it back; else say why not.

    ``value`` is what that text says, ``most`` how many bytes it may have. Numbers keep their
    digits, objects their order and their doubled names; but where the rule asks for an object, its
    own names and those of its members differ, since somebody reads them.
    """
    if "type" in rule:
        if not isinstance(value, Members):
            return _wrong_type(name, value, rule)
        if faults := [*_doubled(value, ""), *_doubled_inside(value)]:
            return Problem(name, _joined(faults, "names"))
    encoded = text.encode()
    if len(encoded) > most:
        return Problem(name, f"must have at most {most} bytes, not {len(encoded)}")
    if _deeper(value, MAX_JSON_DEPTH):
        return Problem(name, f"must not be nested more than {MAX_JSON_DEPTH} deep")
    try:
        msgspec.json.decode(encoded)
    except msgspec.ValidationError:
        return Problem(name, "holds a number too large to hold; send it as a string")
    except ValueError:
        return Problem(name, "holds half of a surrogate pair, which is no character")
    return msgspec.Raw(encoded)


def _doubled(members: Members, of: str) -> list[str]:
    counted: dict[str, int] = {}
    for name in (repaired(name) for name, _ in members):
        counted[name] = counted.get(name, 0) + 1
    return [
        f"{of}{shown(name)} was sent {times} times; send it once"
        for name, times in counted.items()
        if times > 1
    ]


def _doubled_inside(members: Members) -> list[str]:
    inner = ((f"{shown(repaired(name))}: ", value) for name, value in members)
    return [
        fault for of, value in inner if isinstance(value, Members) for fault in _doubled(value, of)
    ]


def _deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [each for each in level if isinstance(each, list | Members)]
        if not level:
            return False
        level = [inner for each in level for inner in _values(each)]
    return True


def _values(holder: list[Any] | Members) -> list[Any]:
    return [value for _, value in holder] if isinstance(holder, Members) else holder


def holds_nul(value: Any) -> bool:
    """Say whether a string, or one inside, holds U+0000, which not every store can keep."""
    if isinstance(value, dict):
        return any(holds_nul(item) for item in value.values())
    if isinstance(value, list):
        return any(holds_nul(item) for item in value)
    return isinstance(value, str) and "\0" in value


# --- strings and lists -------------------------------------------------------------------------


def _read_string(name: str, value: Any, rule: Rule) -> str | Problem:
    if not isinstance(value, str):
        return _wrong_type(name, value, rule)
    text = repaired(value)
    choices = rule.get("enum")
    if choices is not None and text not in choices:
        return Problem(name, f"must be {_wanted(rule)}, not {_quoted(text)}")
    most = rule.get("maxLength")
    if most is not None and len(text) > most:
        return Problem(name, f"must have at most {most} characters, not {len(text)}")
    least = rule.get("minLength", 0)
    if len(text) < least:
        # Never quoted: it may be a secret.
        few = "must not be empty" if least == 1 else f"must have at least {least} characters"
        return Problem(name, few if not text else f"{few}, not {len(text)}")
    form = rule.get("pattern")
    if form is not None and not _compiled(form).search(text):
        return Problem(name, f"must {_form(rule)}, not {_quoted(text)}")
    return text


@functools.cache
def _compiled(form: str) -> re.Pattern[str]:
    # In JSON Schema "$" is the end of the text; in Python also the place before a last newline.
    return re.compile(form[:-1] + r"\Z" if form.endswith("$") else form)


def _form(rule: Rule) -> str:
    examples = rule.get("examples")
    return f"have the form of {_quoted(examples[0])}" if examples else f"match {rule['pattern']}"


def _read_list(name: str, value: Any, rule: Rule) -> list[Any] | Problem:
    if not isinstance(value, list):
        return _wrong_type(name, value, rule)
    most, least = rule.get("maxItems"), rule.get("minItems", 0)
    if most is not None and len(value) > most:
        return Problem(name, f"must have at most {most} items, not {len(value)}")
    if len(value) < least:
        few = "must not be empty" if least == 1 else f"must have at least {least} items"
        return Problem(name, few if not value else f"{few}, not {len(value)}")
    items = [read_value(f"item {i}", item, rule["items"]) for i, item in enumerate(value, 1)]
    faults = [_inner(item) for item in items if isinstance(item, Problem)]
    if rule.get("uniqueItems") or "enum" in rule["items"]:
        faults += _repeats(items)
    return _Inside(name, _joined(faults, "items")) if faults else items


def _repeats(items: Sequence[Any]) -> list[str]:
    first: dict[Any, int] = {}
    return [
        f"item {i} repeats item {first[item]}"
        for i, item in enumerate(items, 1)
        if not isinstance(item, Problem) and first.setdefault(item, i) != i
    ]


# --- objects -----------------------------------------------------------------------------------


def _read_object(name: str, value: Any, rule: Rule) -> dict[str, Any] | Problem:
    if not isinstance(value, Members):
        return _wrong_type(name, value, rule)
    properties: Mapping[str, Rule] = rule["properties"]
    sent = {repaired(member): inner for member, inner in value}
    faults = _doubled(value, "")
    read: dict[str, Any] = {}
    for member, inner in sent.items():
        if member not in properties:
            faults.append(_unknown(member, sent, properties))
            continue
        read[member] = read_value(member, inner, properties[member])
        if isinstance(read[member], Problem):
            faults.append(_inner(read[member]))
    faults += [
        f"{member} is required and was not sent"
        for member in rule.get("required", ())
        if member not in sent
    ]
    return _Inside(name, _joined(faults, "members")) if faults else read


def _unknown(member: str, sent: Mapping[str, Any], properties: Mapping[str, Rule]) -> str:
    slip = find_slip(member, sent, tuple(properties), ())
    if slip is not None:
        return f"{shown(member)} is not taken here; did you mean {' or '.join(slip.meant)}?"
    return f"{shown(member)} is not taken here, only {', '.join(properties)}"


def _inner(problem: Problem) -> str:
    """Word a problem as part of another one's text."""
    colon = ":" if isinstance(problem, _Inside) else ""
    return f"{problem.argument}{colon} {problem.text}"


def _joined(faults: list[str], what: str) -> str:
    if len(faults) > MAX_BAD_ITEMS:
        faults[MAX_BAD_ITEMS:] = [f"and {len(faults) - MAX_BAD_ITEMS} more {what} are wrong"]
    return "; ".join(faults)


# --- words -------------------------------------------------------------------------------------


def _wrong_type(name: str, value: Any, rule: Rule) -> Problem:
    text = f"must be {_wanted(rule)}, not {_got(value)}"
    if value is None and not name.startswith("item "):
        text += f"; leave {name} out when there is nothing to set"
    elif isinstance(value, str) and rule["type"] == "array":
        text += " (send the list itself, not its JSON text)" if value.strip()[:1] == "[" else ""
    elif isinstance(value, str) and rule["type"] == "object":
        text += " (send the object itself, not its JSON text)" if value.strip()[:1] == "{" else ""
    elif isinstance(value, str) and _fits_unquoted(value.strip(), rule["type"]):
        text += f" (send {value.strip()} without quotes)"
    elif rule["type"] == "string" and "enum" not in rule and isinstance(value, int | float):
        text += " (put it in quotes)"
    return Problem(name, text)


def _wanted(rule: Rule) -> str:
    if choices := rule.get("enum"):
        return " or ".join(f'"{choice}"' for choice in choices)
    if rule["type"] == "array":
        examples = rule.get("examples")
        return f"a list such as {_json(examples[0])}" if examples else "a list"
    if rule["type"] == "object":
        examples = rule.get("examples")
        return f"an object such as {_json(examples[0])}" if examples else "an object"
    names = {"boolean": "true or false", "integer": "a whole number"}
    return names.get(rule["type"], f"a {rule['type']}")


def _got(value: Any) -> str:
    if isinstance(value, str):
        return f"the string {_quoted(value)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {_number(value)}"
    return kind_of(value)


def _fits_unquoted(text: str, kind: str) -> bool:
    if kind == "boolean":
        return text in {"true", "false"}
    if kind == "string" or len(text) > 20 or text in {"true", "false"}:
        return False
    try:
        return isinstance(msgspec.json.decode(text), int | float)
    except ValueError:
        return False


def _range(low: float, high: float) -> str:
    if high == _LARGEST:
        return "a number that a 64-bit float can hold" if low == -high else f"{low} or more"
    return f"from {_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    if abs(value) > _LARGEST:
        return "a number too large to hold"
    if isinstance(value, int) and abs(value) >= 10**20:
        return f"a number of {value.bit_length() * 3 // 10 + 1} digits or so"
    return repr(value)


def _quoted(text: str) -> str:
    return _json(repaired(text if len(text) <= 40 else text[:40] + "…"))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
