"""What the host sends and what files hold, with names and moments filled in."""

import re
from collections.abc import Mapping
from typing import Any

from conformance import moments

Names = Mapping[str, Any]
"""What a transcript has bound so far."""

_NAMED = re.compile(r"\$\{([A-Za-z_]\w*)\}")


class UnboundError(Exception):
    """A transcript uses a name that nothing has bound yet."""

    def __init__(self, name: str) -> None:
        super().__init__(f"nothing has bound {name!r} yet")


def bound(name: str, names: Names) -> Any:
    """Return what ``name`` stands for, or raise ``UnboundError``."""
    try:
        return names[name]
    except KeyError:
        raise UnboundError(name) from None


def interpolate(text: str, names: Names, *, escape: bool = False) -> str:
    """Return ``text`` with each ``${name}`` replaced; ``escape`` makes it literal in a regex."""

    def value(found: re.Match[str]) -> str:
        replacement = str(bound(found[1], names))
        return re.escape(replacement) if escape else replacement

    return _NAMED.sub(value, text)


def fill(content: Any, names: Names, now: int) -> Any:
    """Return ``content`` with ``$ref``, ``$now``, ``$literal`` and ``${name}`` replaced.

    ``now`` is the wall time in milliseconds.
    """
    match content:
        case str():
            return interpolate(content, names)
        case list():
            return [fill(item, names, now) for item in content]
        case {"$ref": str(name), **rest} if not rest:
            return bound(name, names)
        case {"$literal": value, **rest} if not rest:
            return value
        case {"$now": seconds, **rest} if rest.keys() <= {"as"}:
            ms = now + round(seconds * 1000)
            form = str(rest.get("as", "ms"))
            return ms if form == "ms" else moments.to_text(ms, form)
        case dict():
            return {name: fill(value, names, now) for name, value in content.items()}
    return content


def text(pieces: Any, names: Names) -> str:
    """Return the text that a string, or a list of strings and ``$repeat`` pieces, stands for."""
    match pieces:
        case str():
            return interpolate(pieces, names)
        case {"$repeat": str(piece), "times": int(times)}:
            return interpolate(piece, names) * times
        case list():
            return "".join(text(piece, names) for piece in pieces)
    raise ValueError(f"no text: {pieces!r}")


def any_names(regex: str) -> str:
    """Return ``regex`` with each ``${name}`` taken out, to see whether the rest is one."""
    return _NAMED.sub("x", regex)
