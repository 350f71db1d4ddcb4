"""A value to a line: one of ASCII, valid whatever is in it."""

import re
from json.encoder import encode_basestring_ascii

import msgspec
from msgspec import Raw

from mcpl_heartbeat.jsonrpc.messages import Refusal


class _ResultReply(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: Raw
    result: object


class _ErrorReply(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: Raw | None
    error: Refusal


class _Call(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: str
    method: str
    params: object


_encode = msgspec.json.Encoder().encode


def encode_result(id: Raw, result: object) -> bytes:
    """The reply that carries ``result``: a Struct, plain data, or ``Raw`` JSON made beforehand."""
    try:
        return _line(_encode(_ResultReply(id, result)))
    except UnicodeEncodeError:
        return _line(_encode(_ResultReply(id, _encodable(result))))


def encode_error(id: Raw | None, refusal: Refusal) -> bytes:
    """The reply that carries ``refusal``; its ``data`` is there only when it was given."""
    try:
        return _line(_encode(_ErrorReply(id, refusal)))
    except UnicodeEncodeError:
        refusal = msgspec.convert(_encodable(refusal), Refusal)
        return _line(_encode(_ErrorReply(id, refusal)))


def encode_request(id: str, method: str, params: object) -> bytes:
    """A request of our own."""
    try:
        return _line(_encode(_Call(id, method, params)))
    except UnicodeEncodeError:
        return _line(_encode(_Call(id, method, _encodable(params))))


def encode_batch(replies: list[bytes]) -> bytes:
    """The one line that holds all ``replies``, each a line as made by the functions above."""
    return b"[" + b",".join(reply[:-1] for reply in replies) + b"]\n"


def _encodable(value: object) -> object:
    """The same plain value with U+FFFD for each lone surrogate, which UTF-8 cannot hold.

    Such text can come from a file or the environment; a reply with one odd sign beats none.
    """
    return _repair_text(msgspec.to_builtins(value, enc_hook=_open_raw))


def _open_raw(value: object) -> object:
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")


def _repair_text(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_repair_text(name): _repair_text(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repair_text(item) for item in value]
    return value


_NON_ASCII = re.compile(r"[^\x00-\x7f]+")


def _line(body: bytes) -> bytes:
    """One line of ASCII.

    U+2028, U+2029 and U+0085 end a line for some readers, and others cut characters in two at the
    edge of a read; escaped, no character can do either. A raw CR or LF can only be space between
    tokens, since the encoder escapes those in strings.
    """
    if not body.isascii():
        # The one such character that our own words hold.
        body = body.replace(b"\xc2\xb7", rb"\u00b7")
    if not body.isascii():
        body = _NON_ASCII.sub(_escaped, body.decode("utf-8", "replace")).encode("ascii")
    if 0x0A in body or 0x0D in body:
        body = body.replace(b"\n", b" ").replace(b"\r", b" ")
    return body + b"\n"


def _escaped(run: re.Match[str]) -> str:
    return encode_basestring_ascii(run[0])[1:-1]
