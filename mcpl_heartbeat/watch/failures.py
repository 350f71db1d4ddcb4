"""What could not be done, in the one shape that every door gives (F.2, "Errors").

A refusal that is an ordinary answer (a lease that another holds, an ack for an unknown task) is no
failure: it is a result with its flag false.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from mcpl_heartbeat.mcp.arguments import Refused, was_refused
from mcpl_heartbeat.mcp.tools import Tool

STATUS = {
    "invalid_arguments": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "not_registered": 404,
    "unknown_task": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "mailbox_full": 409,
    "already_claimed": 409,
    "lease_expired": 409,
    "stale_epoch": 409,
    "task_closed": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "invalid_outputs": 422,
    "internal": 500,
    "unavailable": 503,
}
"""The HTTP status of each code; the codes are the same on every door."""

NEXT = {
    "unavailable": "State unknown: do not proceed. Try again in some seconds; what you hold "
    "stands until its known end.",
}


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that changed nothing. Every member is for the one who called."""

    code: str
    message: str
    """What is wrong: the field, the rule."""
    status: int
    """As HTTP says it."""
    next: str
    """What to do."""
    problems: tuple[str, ...] | UnsetType = UNSET
    """``<argument>: <rule>``, all of them at once."""
    server_time: str | UnsetType = UNSET
    # Of leases, where the state is unknown (A.1, "Three-valued answers"): null, so do not proceed.
    acquired: UnsetType | None = UNSET
    renewed: UnsetType | None = UNSET
    released: UnsetType | None = UNSET
    # Of tasks: what stands, so that whoever was refused can tell who came after it.
    execution_epoch: int | UnsetType = UNSET
    """The present one; never told to one who would claim what is claimed."""
    holder: str | UnsetType | None = UNSET
    """The label of whoever holds the task."""
    lease_expires_at: str | UnsetType = UNSET


_UNKNOWN = {"lease": "acquired", "lease_renew": "renewed", "lease_release": "released"}


def failure(code: str, message: str, next: str, **more: Any) -> Failure:
    """Make a ``Failure``, with ``more`` of its members, whose status follows from its code."""
    return Failure(code=code, message=message, status=STATUS[code], next=next, **more)


def unavailable(tool: str, why: str) -> Failure:
    """Give a call of ``tool`` of which nobody knows what became; ``why`` is one clause."""
    unknown = {_UNKNOWN[tool]: None} if tool in _UNKNOWN else {}
    return failure(
        "unavailable", f"The store cannot be used now: {why}.", NEXT["unavailable"], **unknown
    )


def invalid(tool: str, problems: Iterable[str], *, reads: bool = False) -> Failure:
    """Give a call of ``tool`` whose arguments are wrong; a problem is ``<argument>: <rule>``.

    ``reads``: it is a tool that changes nothing anyway.
    """
    all_of_them = tuple(problems)
    said = "; ".join(all_of_them)
    stop = "" if said.endswith("?") else "."
    return failure(
        "invalid_arguments",
        f"{was_refused(tool, reads=reads)}: {said}{stop}",
        "Mend every problem named and call again.",
        problems=all_of_them,
    )


def refused(tool: Tool, why: Refused) -> Failure:
    """Give a call whose arguments were refused, with every problem."""
    problems = (f"{problem.argument}: {problem.text}" for problem in why.problems)
    return invalid(tool.name, problems, reads=tool.read_only)
