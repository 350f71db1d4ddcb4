"""JSON read and written without loss: numbers keep their value and spelling, strings their text."""

import json
import re
from decimal import Decimal
from typing import Any, NoReturn

_HALF = re.compile("[\ud800-\udfff]")


def read(text: str) -> Any:
    """Return the value of ``text``; numbers with a fraction or exponent become ``Decimal``.

    Raises ``ValueError`` for what is not JSON (``NaN`` and ``Infinity`` included), and for nesting
    too deep to read.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep to be read") from None


def read_without_twins(text: str) -> Any:
    """Return the value of ``text`` as ``read`` does; ``ValueError`` for a name given twice, too."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            raise ValueError("a name is given twice")
        return value

    try:
        return json.loads(
            text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=members
        )
    except RecursionError:
        raise ValueError("nested too deep to be read") from None


def read_leniently(text: str) -> Any:
    """Return the value of ``text`` with ``NaN`` and the like taken, or ``None`` for no JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None


def write(value: Any) -> str:
    """Return ``value`` as JSON on one line that can be written as UTF-8.

    Half a surrogate pair, which UTF-8 cannot hold, is escaped.
    """
    text = _write(value, ascii_only=False)
    return _write(value, ascii_only=True) if _HALF.search(text) else text


def _write(value: Any, *, ascii_only: bool) -> str:
    def text(value: Any) -> str:
        match value:
            case Decimal():
                return str(value)
            case list() | tuple():
                return "[" + ", ".join(map(text, value)) + "]"
            case dict():
                members = (f"{text(name)}: {text(item)}" for name, item in value.items())
                return "{" + ", ".join(members) + "}"
        return json.dumps(value, ensure_ascii=ascii_only)

    return text(value)


def same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON value; ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case (dict(), dict()):
            return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
        case (list(), list()):
            return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
