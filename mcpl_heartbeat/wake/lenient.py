"""Reading JSON that another program or a person wrote: repairs, and words for what is beyond it."""

import re
from typing import Any

import msgspec

from mcpl_heartbeat.actions import Decoded

BOM = b"\xef\xbb\xbf"
UNDECODABLE = (msgspec.MsgspecError, RecursionError, ValueError)
"""Everything msgspec raises for bytes it cannot decode."""

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|u(?P<lone>[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_OTHER = object()


def repaired(data: bytes) -> tuple[bytes, list[str]]:
    """UTF-8 without lone surrogate escapes, and a clause for each kind of repair that it took.

    Both kinds of flaw are read as U+FFFD (seed: "a file with bytes that aren't UTF-8").
    """
    repairs = []
    try:
        data.decode()
    except UnicodeDecodeError:
        data = data.decode(errors="replace").encode()
        repairs.append("bytes that are not UTF-8 were read as U+FFFD")
    lone = False

    def replacement(match: re.Match[bytes]) -> bytes:
        nonlocal lone
        if match["lone"] is None:
            return match[0]
        lone = True
        return b"\\ufffd"

    data = _ESCAPE.sub(replacement, data)
    if lone:
        repairs.append("lone surrogates were read as U+FFFD")
    return data, repairs


def torn(data: bytes, error: Exception, shape: str) -> Decoded:
    """The verdict on ``data`` that could not be decoded as ``shape`` because of ``error``."""
    if not data.strip():
        return Decoded(None, "it is empty")
    if isinstance(error, msgspec.ValidationError):
        return Decoded(None, f"it is not {shape}")
    if isinstance(error, RecursionError):
        return Decoded(None, "it is nested too deeply")
    detail = str(error).removeprefix("JSON is malformed: ").replace(" (byte ", " at byte ")
    return Decoded(None, f"it is not JSON: {detail.removesuffix(')')}")


def member_value(raw: msgspec.Raw) -> Any:
    """A member's value; a number beyond any float or a nest too deep is no value of any type."""
    try:
        return msgspec.json.decode(raw)
    except UNDECODABLE:
        return _OTHER
