"""Tool calls whose replies come later: after their save, or after the files have been read.

Until then such a call can be cancelled: it gets no reply, and what it changed stays changed (MCP).
"""

from collections.abc import Callable

import msgspec
from msgspec import Raw

from mcpl_heartbeat.actions import Action, Reply
from mcpl_heartbeat.jsonrpc.encoding import encode_result
from mcpl_heartbeat.jsonrpc.replies import ReplySlot
from mcpl_heartbeat.mcp.tools import ToolResult, call_result


class _Cancelled(msgspec.Struct, rename="camel"):
    request_id: Raw


class WaitingCalls:
    """Every call that waits. ``emit`` takes the replies as they come."""

    def __init__(self, emit: Callable[[Action], None]) -> None:
        self._emit = emit
        self._slots: dict[bytes, ReplySlot] = {}

    def cancel(self, params: Raw | None) -> None:
        """Take a ``notifications/cancelled``; one for a call that does not wait changes nothing."""
        try:
            id = msgspec.json.decode(params or b"", type=_Cancelled).request_id
        except (msgspec.MsgspecError, RecursionError):
            return
        slot = self._slots.pop(bytes(id), None)
        self._write(slot.drop() if slot is not None else None)

    def remember(self, id: Raw, slot: ReplySlot) -> None:
        """From now on this call waits."""
        self._slots[bytes(id)] = slot

    def reply(self, id: Raw, slot: ReplySlot, result: ToolResult, version: str) -> None:
        """Its reply has come."""
        self._slots.pop(bytes(id), None)
        self._write(slot.fill(encode_result(id, call_result(result, version))))

    def _write(self, line: bytes | None) -> None:
        if line is not None:
            self._emit(Reply(line))


class Later:
    """One call whose reply may have to wait; it is remembered only when it does."""

    __slots__ = ("_answered", "_calls", "_id", "_slot", "_version")

    def __init__(self, calls: WaitingCalls, id: Raw, slot: ReplySlot, version: str) -> None:
        self._calls = calls
        self._id = id
        self._slot = slot
        self._version = version
        self._answered = False

    def answer(self, result: ToolResult) -> None:
        """Reply with ``result``."""
        self._answered = True
        self._calls.reply(self._id, self._slot, result, self._version)

    def settle(self, result: ToolResult | None) -> None:
        """Reply with what carrying it out gave, if that was the reply already."""
        if result is not None:
            self.answer(result)

    def wait(self) -> None:
        """The reply comes later, unless it has come already."""
        if not self._answered:
            self._id = self._id.copy()
            self._calls.remember(self._id, self._slot)
