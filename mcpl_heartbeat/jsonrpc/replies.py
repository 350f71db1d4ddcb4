"""Where a reply goes: straight out, or into the batch its request came in (JSON-RPC 2.0 §6)."""

from mcpl_heartbeat.jsonrpc.encoding import encode_batch


class _Gathering:
    """The replies to one batch, in the order of their requests, until none is missing."""

    __slots__ = ("missing", "replies")

    def __init__(self, count: int) -> None:
        self.replies: list[bytes | None] = [None] * count
        self.missing = count

    def settle(self, place: int, reply: bytes | None) -> bytes | None:
        self.replies[place] = reply
        self.missing -= 1
        if self.missing:
            return None
        there = [reply for reply in self.replies if reply is not None]
        return encode_batch(there) if there else None


class ReplySlot:
    """The place of one request's reply. Both verbs give the line to write now, if there is one.

    A slot is settled once, by ``fill`` or ``drop``; whatever comes later is passed over.
    """

    __slots__ = ("_gathering", "_open", "_place")

    def __init__(self, gathering: _Gathering | None = None, place: int = 0) -> None:
        """Use ``single_slot`` or ``batch_slots``."""
        self._gathering = gathering
        self._place = place
        self._open = True

    def fill(self, line: bytes) -> bytes | None:
        """The reply is ready: itself, the whole batch if it was the last to come, or nothing."""
        return self._settle(line)

    def drop(self) -> bytes | None:
        """There will be no reply (the request was cancelled): the rest of its batch, or nothing."""
        return self._settle(None)

    def _settle(self, line: bytes | None) -> bytes | None:
        if not self._open:
            return None
        self._open = False
        if self._gathering is None:
            return line
        return self._gathering.settle(self._place, line)


def single_slot() -> ReplySlot:
    """The slot of a request that came alone."""
    return ReplySlot()


def batch_slots(count: int) -> list[ReplySlot]:
    """The slots of a batch, one for each of its ``count`` items that get a reply.

    Those are its ``Request`` and ``Invalid`` items; a batch without any is never replied to.
    """
    gathering = _Gathering(count)
    return [ReplySlot(gathering, place) for place in range(count)]
