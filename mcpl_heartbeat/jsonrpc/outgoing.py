"""Our own requests: their ids, and which answer belongs to which."""

from typing import Generic, TypeVar

from mcpl_heartbeat.jsonrpc.encoding import encode_request
from mcpl_heartbeat.jsonrpc.messages import Answer

Subject = TypeVar("Subject")


class Outgoing(Generic[Subject]):
    """Requests that are out. ``Subject`` is whatever the sender wants back with the answer.

    ``prefix`` must be unique to this process, so that an answer meant for an earlier one matches
    nothing here.
    """

    __slots__ = ("_count", "_prefix", "_waiting")

    def __init__(self, prefix: str) -> None:
        """Start with no request out."""
        self._prefix = prefix
        self._count = 0
        self._waiting: dict[str, Subject] = {}

    def open(self, method: str, params: object, subject: Subject) -> tuple[str, bytes]:
        """A new request's id and its line; from now on an answer to it is expected."""
        self._count += 1
        id = f"{self._prefix}-{self._count}"
        line = encode_request(id, method, params)
        self._waiting[id] = subject
        return id, line

    def settle(self, answer: Answer) -> Subject | None:
        """What the answer is about, the first time; ``None`` for one that nobody waits for."""
        if not isinstance(answer.id, str):
            return None
        return self._waiting.pop(answer.id, None)

    def forget(self, id: str) -> None:
        """Expect no answer to this request any more; unknown ids are passed over."""
        self._waiting.pop(id, None)
