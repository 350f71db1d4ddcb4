"""Patterns: what a server's message, a file or a text must look like.

``match`` compares; ``complaint`` tells, before anything runs, whether a pattern makes sense. The
patterns themselves are described in ``FORMAT.md``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from conformance import exact, moments, values
from conformance.values import Names


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Any = _Absent()
"""Stands for a member, or a file, that is not there."""


class Clock(msgspec.Struct, frozen=True):
    """What ``$now`` is compared with: the wall time in ms, and the tolerance in seconds."""

    wall: int
    within: float


class Miss(msgspec.Struct, frozen=True):
    """Where a value differs from its pattern: the path to the place, what was wanted and found."""

    path: str
    wanted: Any
    got: Any

    def __str__(self) -> str:
        """Say it in one line."""
        path = self.path.removeprefix(".")
        at = f"at {path}: " if path else ""
        return f"{at}wanted {_shown(self.wanted)}, got {_shown(self.got)}"


Result = Names | Miss
"""The names bound after a match, or where it failed."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_whole(number: int | Decimal) -> bool:
    return number == Decimal(number).to_integral_value()


_TYPES: dict[str, Callable[[Any], bool]] = {
    "$any": lambda value: value is not ABSENT,
    "$string": lambda value: isinstance(value, str),
    "$number": _is_number,
    "$integer": lambda value: _is_number(value) and _is_whole(value),
    "$boolean": lambda value: isinstance(value, bool),
    "$object": lambda value: isinstance(value, dict),
    "$array": lambda value: isinstance(value, list),
    "$absent": lambda value: value is ABSENT,
}


def match(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    """Compare ``value`` with ``pattern``; ``names`` is left as it is.

    Raises ``values.UnboundError`` for a ``$ref`` or ``${name}`` to what was never bound.
    """
    match pattern:
        case str() if pattern in _TYPES:
            return names if _TYPES[pattern](value) else Miss("", pattern, value)
        case str():
            wanted = values.interpolate(pattern, names)
            return names if exact.same(wanted, value) else Miss("", wanted, value)
        case dict() if special := _special(pattern):
            return _SPECIAL[special](pattern, value, names, clock)
        case dict():
            return _members(pattern, value, names, clock)
        case list():
            return _list(pattern, value, names, clock)
    return names if exact.same(pattern, value) else Miss("", pattern, value)


def _members(pattern: Mapping[str, Any], value: Any, names: Names, clock: Clock) -> Result:
    if not isinstance(value, dict):
        return Miss("", dict(pattern), value)
    for name, member in pattern.items():
        result = match(member, value.get(name, ABSENT), names, clock)
        if isinstance(result, Miss):
            return _below(f".{name}", result)
        names = result
    return names


def _list(pattern: list[Any], value: Any, names: Names, clock: Clock) -> Result:
    if not isinstance(value, list):
        return Miss("", pattern, value)
    for index, (wanted, got) in enumerate(zip(pattern, value, strict=False)):
        result = match(wanted, got, names, clock)
        if isinstance(result, Miss):
            return _below(f"[{index}]", result)
        names = result
    if len(pattern) != len(value):
        return Miss("", f"a list of {len(pattern)}", value)
    return names


Compare = Callable[[Any, Any, Names], Result]


def match_unordered(
    patterns: Sequence[Any], found: Sequence[Any], names: Names, compare: Compare
) -> Names | None:
    """Give each pattern one of ``found``, of the same number, in whatever order fits."""
    if not patterns:
        return None if found else names
    for index, value in enumerate(found):
        result = compare(patterns[0], value, names)
        if not isinstance(result, Miss):
            rest = [*found[:index], *found[index + 1 :]]
            after = match_unordered(patterns[1:], rest, result, compare)
            if after is not None:
                return after
    return None


# What stands behind each $word -------------------------------------------------------------------


def _only(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    members = pattern["$only"]
    if isinstance(value, dict):
        for name in value:
            if name not in members:
                return Miss(f".{name}", "$absent", value[name])
    return _members(members, value, names, clock)


def _re(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    regex = values.interpolate(pattern["$re"], names, escape=True)
    found = re.search(regex, value) if isinstance(value, str) else None
    if found is None:
        return Miss("", {"$re": regex}, value)
    named = {name: text for name, text in found.groupdict().items() if text is not None}
    return {**names, **named}


def _contains(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    wanted = pattern["$contains"]
    for part in wanted if isinstance(wanted, list) else [wanted]:
        text = values.interpolate(part, names)
        if not isinstance(value, str) or text not in value:
            return Miss("", {"$contains": text}, value)
    return names


def _any_of(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    for choice in pattern["$any_of"]:
        result = match(choice, value, names, clock)
        if not isinstance(result, Miss):
            return result
    return Miss("", pattern, value)


def _all_of(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    for part in pattern["$all_of"]:
        result = match(part, value, names, clock)
        if isinstance(result, Miss):
            return result
        names = result
    return names


def _not(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    fits = not isinstance(match(pattern["$not"], value, names, clock), Miss)
    return Miss("", pattern, value) if fits else names


def _unordered(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    def compare(wanted: Any, item: Any, names: Names) -> Result:
        return match(wanted, item, names, clock)

    after = None
    if isinstance(value, list):
        after = match_unordered(pattern["$unordered"], value, names, compare)
    return Miss("", pattern, value) if after is None else after


def _has(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    for item in value if isinstance(value, list) else []:
        result = match(pattern["$has"], item, names, clock)
        if not isinstance(result, Miss):
            return result
    return Miss("", pattern, value)


def _each(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    if not isinstance(value, list):
        return Miss("", pattern, value)
    return _list([pattern["$each"]] * len(value), value, names, clock)


def _length(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    if not isinstance(value, list | str | dict):
        return Miss("", pattern, value)
    result = match(pattern["$length"], len(value), names, clock)
    return _below(".length", result) if isinstance(result, Miss) else result


def _bounds(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    fits = _is_number(value) and (pattern.get("$min", value) <= value <= pattern.get("$max", value))
    return names if fits else Miss("", pattern, value)


def _bind(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    result = match(pattern.get("as", "$any"), value, names, clock)
    return result if isinstance(result, Miss) else {**result, pattern["$bind"]: value}


def _ref(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    wanted = values.bound(pattern["$ref"], names)
    return names if exact.same(wanted, value) else Miss("", wanted, value)


def _now(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    ms = moments.to_ms(value) if isinstance(value, str) else value
    wanted = clock.wall + pattern["$now"] * 1000
    near = pattern.get("within", clock.within) * 1000
    if not _is_number(ms) or abs(ms - wanted) > near:
        text = (
            f"{moments.to_text(round(wanted), 'iso')} ({round(wanted)}), {near / 1000:g} s about it"
        )
        return Miss("", text, value)
    return names


def _literal(pattern: Any, value: Any, names: Names, clock: Clock) -> Result:
    wanted = pattern["$literal"]
    return names if exact.same(wanted, value) else Miss("", wanted, value)


_SPECIAL: dict[str, Callable[[Any, Any, Names, Clock], Result]] = {
    "$only": _only,
    "$re": _re,
    "$contains": _contains,
    "$any_of": _any_of,
    "$all_of": _all_of,
    "$not": _not,
    "$unordered": _unordered,
    "$has": _has,
    "$each": _each,
    "$length": _length,
    "$min": _bounds,
    "$max": _bounds,
    "$bind": _bind,
    "$ref": _ref,
    "$now": _now,
    "$literal": _literal,
}
_BESIDE = {"$min": {"$max"}, "$max": {"$min"}, "$bind": {"as"}, "$now": {"within"}}
"""What may stand beside a $word in its object."""


def _special(pattern: Mapping[str, Any]) -> str | None:
    return next((name for name in pattern if name in _SPECIAL), None)


# Before anything runs ----------------------------------------------------------------------------


def complaint(pattern: Any) -> str | None:
    """Say what is wrong with ``pattern``, or ``None``."""
    match pattern:
        case str():
            unknown = pattern.startswith("$") and pattern not in _TYPES and pattern[1:2] != "{"
            return f"there is no pattern {pattern!r}" if unknown else None
        case list():
            return _first(map(complaint, pattern))
        case dict():
            special = _special(pattern)
            if special is not None:
                return _special_complaint(special, pattern)
            unknown_word = next((name for name in pattern if name.startswith("$")), None)
            if unknown_word is not None:
                return f"there is no pattern {unknown_word!r}"
            return _first(map(complaint, pattern.values()))
    return None


def _special_complaint(word: str, pattern: Mapping[str, Any]) -> str | None:
    beside = pattern.keys() - {word} - _BESIDE.get(word, set())
    if beside:
        return f"{', '.join(sorted(beside))} cannot stand beside {word}"
    value = pattern[word]
    match word:
        case "$re":
            return regex_complaint(value)
        case "$contains":
            texts = value if isinstance(value, list) else [value]
            return None if all(isinstance(t, str) for t in texts) else "$contains takes text"
        case "$any_of" | "$all_of" | "$unordered":
            is_list = isinstance(value, list)
            return _first(map(complaint, value)) if is_list else f"{word} takes a list"
        case "$only":
            is_object = isinstance(value, dict)
            return _first(map(complaint, value.values())) if is_object else "$only takes an object"
        case "$not" | "$has" | "$each" | "$length":
            return complaint(value)
        case "$min" | "$max" | "$now":
            numbers = all(_is_number(number) for number in pattern.values())
            return None if numbers else f"{word} takes a number"
        case "$bind" | "$ref":
            named = isinstance(value, str)
            return complaint(pattern.get("as", "$any")) if named else f"{word} takes a name"
    return None


def regex_complaint(regex: Any) -> str | None:
    """Say what is wrong with a regular expression, or ``None``; ``${name}`` may stand in it."""
    if not isinstance(regex, str):
        return "takes a regular expression"
    try:
        re.compile(values.any_names(regex))
    except re.error as error:
        return f"{regex!r} is no regular expression: {error}"
    return None


def _first(complaints: Any) -> str | None:
    return next((found for found in complaints if found is not None), None)


def _below(step: str, miss: Miss) -> Miss:
    return Miss(f"{step}{miss.path}", miss.wanted, miss.got)


def _shown(value: Any) -> str:
    text = repr(value) if value is ABSENT else exact.write(value)
    return text if len(text) <= 300 else f"{text[:297]}…"
