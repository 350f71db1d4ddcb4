"""A line to a message (JSON-RPC 2.0, with MCP's narrower rules for ids).

What the peer sent wrongly comes back as ``Invalid``, never as an exception. Ids and params stay raw
bytes: ids so that they can be sent back exactly (big integers and fractions included), params so
that whoever knows the method decodes them once, into its own Struct.
"""

import re
import struct

import msgspec
from msgspec import Raw

from mcpl_heartbeat.jsonrpc.framing import MAX_LINE_BYTES, TooLong

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request is not carried out: the ``error`` member of its reply (JSON-RPC 2.0 §5.1)."""

    code: int
    message: str
    data: object = None


class Request(msgspec.Struct, frozen=True, gc=False):
    """A call that wants a reply. ``params`` is an object or an array, ``None`` when absent or null.

    ``id`` and ``params`` keep their whole line in memory; ``copy()`` what is to be kept for long.
    """

    id: Raw
    method: str
    params: Raw | None


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A call that wants no reply, whatever becomes of it."""

    method: str
    params: Raw | None


class PeerError(msgspec.Struct, frozen=True):
    """The ``error`` of an answer. ``code`` is ``None`` and ``message`` empty where it had none."""

    code: int | None
    message: str
    data: object


class Answer(msgspec.Struct, frozen=True):
    """What the peer says to a request of ours; it is never replied to.

    ``id`` is ``None`` when it was no string or number: nobody waits for such an answer.
    ``error`` decides: an answer without one is a success, ``result`` ``None`` when it had none.
    """

    id: str | int | float | None
    result: Raw | None
    error: PeerError | None


class Invalid(msgspec.Struct, frozen=True):
    """Not a message: reply with ``refusal``, under ``id``, or under null when that is ``None``."""

    refusal: Refusal
    id: Raw | None
    method: str | None = None
    """The method, when it was a request that only its params spoil."""


Single = Request | Notification | Answer | Invalid


class Batch(msgspec.Struct, frozen=True):
    """Several messages in one line (JSON-RPC 2.0 §6); never empty."""

    items: tuple[Single, ...]


Message = Single | Batch

_ABSENT = Raw()


class _Envelope(msgspec.Struct, gc=False):
    """A message whose ``jsonrpc`` and ``method`` have the right types: nearly every one."""

    jsonrpc: str = ""
    id: Raw = _ABSENT
    method: str | None = None
    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


class _LooseEnvelope(msgspec.Struct, gc=False):
    """Any object."""

    jsonrpc: Raw = _ABSENT
    id: Raw = _ABSENT
    method: Raw = _ABSENT
    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


class _LooseError(msgspec.Struct, gc=False):
    code: Raw = _ABSENT
    message: Raw = _ABSENT
    data: Raw = _ABSENT


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_loose = msgspec.json.Decoder(_LooseEnvelope).decode
_decode_error = msgspec.json.Decoder(_LooseError).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_value = msgspec.json.Decoder().decode
_check_syntax = msgspec.json.Decoder(Raw).decode

# A JSON value's first byte tells its type. Of the ways to read it from a Raw this is the quickest,
# by half, and it copies nothing.
_first_byte = struct.Struct("B").unpack_from
_ID_STARTS = frozenset(b'"-0123456789')
_OBJECT_START, _ARRAY_START, _NULL_START = b"{[n"
_PARAMS_STARTS = frozenset((_OBJECT_START, _ARRAY_START))

_UNDECODABLE = (msgspec.MsgspecError, RecursionError)

# Nobody waits for this one, so it does nothing and gets no reply: what a notification with params
# that it cannot have comes to (JSON-RPC 2.0 §4.1: its sender would not learn of any error).
_VOID = Answer(id=None, result=None, error=None)


def _invalid(message: str, id: Raw | None = None, code: int = INVALID_REQUEST) -> Invalid:
    return Invalid(Refusal(code, message), id)


_NOT_AN_OBJECT = _invalid("Not a request: a message is a JSON object.")
MAX_BATCH = 1_000
"""How many messages a batch may hold: a reply to each of millions would keep all others waiting."""
MAX_BATCH_COMMAS = 200_000
"""A batch with more commas than this is refused before its items are told apart."""
_LONG_BATCH = _invalid(f"The batch is too long: send at most {MAX_BATCH} messages in one.")
_EMPTY_BATCH = _invalid("Not a request: the batch is empty; it must hold at least one message.")
_BAD_ID = _invalid(
    "id must be a string or a number (not null, a boolean, an object or an array); "
    "leave it out to send a notification."
)
_BAD_VERSION = 'jsonrpc must be exactly "2.0".'
_BAD_METHOD = "method must be a string."
_NO_METHOD = "method is missing: send the name of the method, a string."
_BAD_PARAMS = "params must be an object or an array; leave it out when there are none."
_TOO_DEEP = _invalid("This JSON is nested too deeply to be read.", code=PARSE_ERROR)
_OVERSIZED = _invalid(
    f"This line is over {MAX_LINE_BYTES} bytes and was not read; send a shorter one.",
    code=PARSE_ERROR,
)


def parse(line: bytes | TooLong, what: str = "This line") -> Message:
    """Read one line as ``LineBuffer`` gives it, or ``what`` else it is called. Never raises.

    An object with a ``method`` is a call; one without, but with a ``result`` or an ``error``, is an
    answer, whatever else is wrong with it. Members that JSON-RPC does not know are ignored. A
    surrogate escape without its other half is read as U+FFFD.
    """
    if not isinstance(line, bytes):
        return _OVERSIZED
    if not line.isascii() and not _is_utf8(line):
        text = f"{what} is not UTF-8; send JSON text encoded as UTF-8."
        return _invalid(text, code=PARSE_ERROR)
    try:
        return _from_envelope(_decode_envelope(line))
    except _UNDECODABLE:
        return _parse_unusual(line, what)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse_unusual(line: bytes, what: str) -> Message:
    """Read a line that is no plain message: other JSON, hardly JSON, or none."""
    try:
        value = _check_syntax(line)
    except RecursionError:
        return _TOO_DEEP
    except msgspec.MsgspecError as problem:
        repaired = _without_lone_surrogates(line)
        if repaired != line:
            return parse(repaired, what)
        return _invalid(f"{what} is not JSON: {problem}.", code=PARSE_ERROR)
    # The syntax is right from here on, so that only types can be wrong.
    if _first_byte(value)[0] != _ARRAY_START:
        return _parse_single(value)
    if line.count(b",") > MAX_BATCH_COMMAS:
        return _LONG_BATCH
    items = _decode_items(value)
    if not items:
        return _EMPTY_BATCH
    if len(items) > MAX_BATCH:
        return _LONG_BATCH
    return Batch(tuple(_parse_single(item) for item in items))


def _parse_single(value: Raw) -> Single:
    """Read one message of which it is known that it is JSON."""
    if _first_byte(value)[0] != _OBJECT_START:
        return _NOT_AN_OBJECT
    try:
        return _from_envelope(_decode_envelope(value))
    except _UNDECODABLE:
        pass
    try:
        loose = _decode_loose(value)
    except RecursionError:
        return _TOO_DEEP
    method_is_absent = loose.method is _ABSENT or bytes(loose.method) == b"null"
    if method_is_absent and (loose.result is not _ABSENT or loose.error is not _ABSENT):
        return _answer(loose.id, loose.result, loose.error)
    id = None if loose.id is _ABSENT else loose.id
    if id is not None and not _is_id(id):
        return _BAD_ID
    if bytes(loose.jsonrpc) != b'"2.0"':
        return _invalid(_BAD_VERSION, id)
    return _invalid(_NO_METHOD if method_is_absent else _BAD_METHOD, id)


def _from_envelope(envelope: _Envelope) -> Single:
    method = envelope.method
    if method is None and (envelope.result is not _ABSENT or envelope.error is not _ABSENT):
        return _answer(envelope.id, envelope.result, envelope.error)
    id = None if envelope.id is _ABSENT else envelope.id
    if id is not None and not _is_id(id):
        return _BAD_ID
    if envelope.jsonrpc != "2.0":
        return _invalid(_BAD_VERSION, id)
    if method is None:
        return _invalid(_NO_METHOD, id)
    params: Raw | None = envelope.params
    if params is _ABSENT or (first := _first_byte(envelope.params)[0]) == _NULL_START:
        params = None
    elif first not in _PARAMS_STARTS:
        if id is None:
            return _VOID
        return Invalid(Refusal(INVALID_PARAMS, _BAD_PARAMS), id, method)
    return Notification(method, params) if id is None else Request(id, method, params)


def _is_id(id: Raw) -> bool:
    return _first_byte(id)[0] in _ID_STARTS


def _answer(id: Raw, result: Raw, error: Raw) -> Answer:
    said = _value(id) if id is not _ABSENT else None
    known = said if isinstance(said, str | int | float) and not isinstance(said, bool) else None
    return Answer(known, None if result is _ABSENT else result, _peer_error(error))


def _peer_error(raw: Raw) -> PeerError | None:
    # Peers that always send both members say "no error" with null.
    if raw is _ABSENT or bytes(raw) == b"null":
        return None
    try:
        error = _decode_error(raw)
    except _UNDECODABLE:
        said = _value(raw)
        return PeerError(None, said if isinstance(said, str) else "", None)
    code, message = _value(error.code), _value(error.message)
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    return PeerError(
        code if isinstance(code, int) and not isinstance(code, bool) else None,
        message if isinstance(message, str) else "",
        _value(error.data),
    )


def _value(raw: Raw) -> object:
    """The decoded value; ``None`` for one that is absent or that Python cannot hold (1e999)."""
    if raw is _ABSENT:
        return None
    try:
        value: object = _decode_value(raw)
    except _UNDECODABLE:
        return None
    return value


# A backslash that escapes another, or halves that belong together, are passed over; a half alone is
# the first group. Nothing is ever given back, so that the time is linear in the line. (Possessive
# quantifiers would say so, but the first releases of Python 3.11 match them wrongly.)
_SURROGATES = re.compile(
    rb"(?:\\\\)+"
    rb"|(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})+"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _without_lone_surrogates(line: bytes) -> bytes:
    return _SURROGATES.sub(lambda found: rb"\ufffd" if found[1] else found[0], line)
