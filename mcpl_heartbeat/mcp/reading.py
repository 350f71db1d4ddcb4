"""JSON objects read so that nothing that was sent is lost: names sent twice, numbers of any size.

The stdlib's parser is used here: msgspec keeps only the last of two equal names and fails as a
whole at 1e999 or at half a surrogate pair, where one argument is at fault.
"""

import json
import re
from typing import Any, NoReturn

import msgspec

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Refusal


class Members(tuple[tuple[str, Any], ...]):
    """The members of an object as sent, in order, doubles included. Nested objects are the same."""

    __slots__ = ()


def read_members(raw: msgspec.Raw | bytes, where: str) -> Members | Refusal:
    """Read an object; null counts as an empty one, anything else is a ``Refusal`` (-32602).

    ``where`` names the value in the refusal. A number too large to hold comes as infinity, and a
    lone surrogate escape in a name stays (see ``repaired``).
    """
    try:
        value = _loads(bytes(raw).decode())
    except RecursionError:
        return Refusal(INVALID_PARAMS, f"{where}: nested too deep; send plain values")
    except ValueError:
        return Refusal(INVALID_PARAMS, f"{where}: must be a JSON object")
    if value is None:
        return Members()
    if isinstance(value, Members):
        return value
    return Refusal(INVALID_PARAMS, f"{where}: must be an object, not {kind_of(value)}")


def member_texts(raw: msgspec.Raw | bytes) -> dict[str, str]:
    """Give each member of an object as the JSON text that was sent; of two equal names the last.

    Only for what ``read_members`` could read; even then RecursionError is possible.
    """
    text = bytes(raw).decode()
    texts: dict[str, str] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        name, end = _huge.raw_decode(text, at)
        start = _skip(text, _skip(text, end) + 1)
        _, end = _huge.raw_decode(text, start)
        texts[name] = text[start:end]
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return texts


def read_object(raw: msgspec.Raw | bytes, where: str) -> dict[str, Any] | Refusal:
    """Read an object into a dict, for params in which a doubled name does not matter."""
    members = read_members(raw, where)
    if isinstance(members, Refusal):
        return members
    try:
        return _plain_object(members)
    except RecursionError:
        return Refusal(INVALID_PARAMS, f"{where}: nested too deep; send plain values")


def _plain_object(members: Members) -> dict[str, Any]:
    return {repaired(name): _plain(value) for name, value in members}


def _plain(value: Any) -> Any:
    if isinstance(value, Members):
        return _plain_object(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return repaired(value) if isinstance(value, str) else value


def repaired(text: str) -> str:
    """Give ``text`` with U+FFFD for each lone surrogate, which no UTF-8 output could hold."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def kind_of(value: object) -> str:
    """Name the JSON type of a value with its article; null and booleans as they are written."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float):
        return "a number"
    return "an object" if isinstance(value, Members | dict) else "a list"


_space = re.compile(r"[ \t\n\r]*")


def _skip(text: str, at: int) -> int:
    """Where the space that may begin at ``at`` ends."""
    found = _space.match(text, at)
    return found.end() if found else at


def _loads(text: str) -> Any:
    try:
        return _decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Python reads no integer of more than some 4,000 digits; as a float it is infinite.
        return _decode_huge(text)


def _refuse(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is not JSON", constant, 0)


_decode = json.JSONDecoder(object_pairs_hook=Members, parse_constant=_refuse).decode
_huge = json.JSONDecoder(object_pairs_hook=Members, parse_constant=_refuse, parse_int=float)
_decode_huge = _huge.decode
