"""JSON read and written without loss: numbers keep their value and spelling, strings their text."""

import json
from decimal import Decimal
from typing import Any, NoReturn


def read(text: str) -> Any:
    """Return the value of ``text``; numbers with a fraction or exponent become ``Decimal``.

    Raises ``ValueError`` for what is not JSON (``NaN`` and ``Infinity`` included), and for nesting
    too deep to read.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep to be read") from None


def read_leniently(text: str) -> Any:
    """Return the value of ``text`` with ``NaN`` and the like taken, or ``None`` for no JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None


def write(value: Any, *, ascii_only: bool = False) -> str:
    """Return ``value`` as JSON on one line."""
    match value:
        case Decimal():
            return str(value)
        case list() | tuple():
            return "[" + ", ".join(write(item, ascii_only=ascii_only) for item in value) + "]"
        case dict():
            members = (
                f"{json.dumps(name, ensure_ascii=ascii_only)}: {write(item, ascii_only=ascii_only)}"
                for name, item in value.items()
            )
            return "{" + ", ".join(members) + "}"
    return json.dumps(value, ensure_ascii=ascii_only)


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
