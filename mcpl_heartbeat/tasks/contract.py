"""Whether a result is what the task asked for: looked at whole, before anything is written.

Data types are those of B.1 as JSON has them. ``integer`` takes 5.0 as well, since many languages
write whole numbers so; ``date`` is a string, a day (``YYYY-MM-DD``) or a moment with its offset.
``null`` is of no type.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from mcpl_heartbeat.tasks.rows import DataType, Field
from mcpl_heartbeat.times import UTC, read_instant
from mcpl_heartbeat.watch.fields import MOMENT
from mcpl_heartbeat.watch.words import json_line, quoted

MAX_REASONING = 4000
"""Characters of an output's ``reasoning`` (B.1)."""
SHOWN_UNDECLARED = 50
"""How many outputs that the contract does not name are refused by name; more are counted."""
_MEMBERS = ("value", "confidence", "reasoning")
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,128}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(MOMENT)


def check(outputs: Raw | Mapping[str, Any], contract: Sequence[Field]) -> tuple[str, ...]:
    """Say what is wrong with ``outputs``, all of it: ``outputs.<key>…: <rule>``."""
    sent = _read(outputs)
    if not isinstance(sent, Mapping):
        return ("outputs: must be an object of the outputs by their keys",)
    problems: list[str] = []
    for field in contract:
        if field.key in sent:
            problems += _output(_named(field.key), sent[field.key], field.data_type)
        elif field.required:
            problems.append(f"{_named(field.key)}: is required and was not sent")
    declared = {field.key for field in contract}
    undeclared = [key for key in sent if key not in declared]
    keys = ", ".join(quoted(field.key) for field in contract) or "none"
    for key in undeclared[:SHOWN_UNDECLARED]:
        problems.append(f"{_named(key)}: is not in the contract, whose outputs are: {keys}")
    if len(undeclared) > SHOWN_UNDECLARED:
        more = len(undeclared) - SHOWN_UNDECLARED
        problems.append(f"outputs: has {more} more keys that are not in the contract")
    return tuple(problems)


def same(one: Raw | Mapping[str, Any], other: Raw | Mapping[str, Any]) -> bool:
    """Whether two JSON values say the same; 5 and 5.0 do, and members have no order."""
    return _alike(_read(one), _read(other))


def _read(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, Raw) else value


def _named(key: str) -> str:
    return f"outputs.{key}" if _PLAIN.fullmatch(key) else f"outputs[{quoted(key, 128)}]"


def _output(name: str, output: Any, data_type: DataType) -> list[str]:
    if not isinstance(output, Mapping):
        return [
            f"{name}: must be an object {{value, confidence?, reasoning?}}, not {_kind(output)}"
        ]
    problems = []
    if "value" not in output:
        problems.append(f"{name}.value: is required and was not sent")
    else:
        fault = _TYPES[data_type](output["value"])
        if fault is not None:
            problems.append(f"{name}.value: {fault}")
    if "confidence" in output:
        confidence = output["confidence"]
        if not _is_number(confidence) or not 0 <= confidence <= 1:
            problems.append(f"{name}.confidence: must be a number from 0 to 1")
    if "reasoning" in output:
        reasoning = output["reasoning"]
        if not isinstance(reasoning, str):
            problems.append(f"{name}.reasoning: must be a string, not {_kind(reasoning)}")
        elif len(reasoning) > MAX_REASONING:
            problems.append(
                f"{name}.reasoning: must have at most {MAX_REASONING} characters, not "
                f"{len(reasoning)}"
            )
    unknown = [quoted(member, 128) for member in output if member not in _MEMBERS]
    if unknown:
        named = ", ".join(unknown[:5]) + (" and more" if len(unknown) > 5 else "")
        problems.append(f"{name}: may hold value, confidence and reasoning only, not {named}")
    return problems


# Each gives what is wrong with a value, or None.


def _of(kind: str, fits: Callable[[Any], bool]) -> Callable[[Any], str | None]:
    return lambda value: None if fits(value) else f"must be {kind}, not {_kind(value)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any) -> str | None:
    if not _is_number(value):
        return f"must be a whole number, not {_kind(value)}"
    if value != value // 1:
        return f"must be a whole number, not {json_line(value, 40)}"
    return None


def _date(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be a date as a string, not {_kind(value)}"
    text = f"{value}T00:00Z" if _DAY.fullmatch(value) else value
    if not _MOMENT.fullmatch(text):
        return (
            f"must be a date, YYYY-MM-DD, or a moment such as 2026-08-29T10:20:00Z, not "
            f"{quoted(value, 40)}"
        )
    instant = read_instant(text, UTC)
    return f"{quoted(value, 40)} {instant.partition('; ')[0]}" if isinstance(instant, str) else None


_TYPES: dict[DataType, Callable[[Any], str | None]] = {
    "string": _of("a string", lambda value: isinstance(value, str)),
    "number": _of("a number", _is_number),
    "integer": _integer,
    "boolean": _of("true or false", lambda value: isinstance(value, bool)),
    "date": _date,
    "object": _of("an object", lambda value: isinstance(value, Mapping)),
    "array": _of("an array", lambda value: isinstance(value, list | tuple)),
}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Mapping):
        return "an object"
    return "a number" if _is_number(value) else "an array"


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)
