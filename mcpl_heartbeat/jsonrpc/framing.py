"""Bytes to lines: one message a line, ended by LF alone (MCP stdio transport).

A line may be cut anywhere between two reads; what comes out is the same for every cutting. Each
byte is looked at once, so a line that comes a byte at a time costs no more than its length.
"""

from collections.abc import Iterable

import msgspec

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The longest line that is read, in bytes, its LF not counted."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"


class TooLong(msgspec.Struct, frozen=True):
    """Stands for one line over the limit; its bytes are gone."""


_TOO_LONG = TooLong()

Line = bytes | TooLong


class LineBuffer:
    """Cuts a byte stream into lines.

    Only 0x0A ends a line; a CR before it goes with it. Blank lines (nothing but spaces, tabs and
    CR) are left out, and so is a byte order mark before the first line that is not blank. A line
    over ``limit`` bytes gives one ``TooLong``, as soon as it is over, and no more than ``limit``
    bytes of it are ever held. Never raises.
    """

    __slots__ = ("_begun", "_limit", "_skipping", "_waiting")

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        """Start at the beginning of a stream."""
        self._limit = limit
        self._waiting = bytearray()
        self._skipping = False
        self._begun = False

    def feed(self, data: bytes) -> list[Line]:
        """Take the next bytes; give the lines that they complete, in order."""
        ended = data.split(b"\n")
        rest = ended.pop()
        lines: list[Line] = []
        if ended:
            if self._skipping:
                self._skipping = False
                del ended[0]
            elif self._waiting:
                ended[0] = self._take_waiting(ended[0])
            lines = self._tidy(ended)
        if rest and not self._skipping:
            if len(self._waiting) + len(rest) > self._limit:
                self._waiting = bytearray()
                self._skipping = self._begun = True
                lines.append(_TOO_LONG)
            else:
                self._waiting += rest
        return lines

    def end(self) -> list[Line]:
        """The stream is over: give the last line, if it came without its LF."""
        self._skipping = False
        return self._tidy([self._take_waiting(b"")])

    def _take_waiting(self, last: bytes) -> bytes:
        """The line that was waiting, completed; one that became too long stays so by its length."""
        # One byte over is enough to be refused, so the rest of a far longer piece is not copied.
        room = self._limit + 1 - len(self._waiting)
        self._waiting += last[:room]
        line = bytes(self._waiting)
        self._waiting = bytearray()
        return line

    def _tidy(self, ended: Iterable[bytes]) -> list[Line]:
        lines: list[Line] = []
        for found in ended:
            if len(found) > self._limit:
                self._begun = True
                lines.append(_TOO_LONG)
                continue
            line = found if self._begun else found.removeprefix(_BYTE_ORDER_MARK)
            if line.strip(_BLANKS):
                self._begun = True
                lines.append(line.removesuffix(b"\r"))
        return lines
