"""The rules between arguments of the tasks wing's tools that need no stored row and no time.

Called by ``mcp.arguments``; see ``Rules`` and ``Companions`` in ``mcp.tools``.
"""

from collections.abc import Collection, Iterable

from msgspec import UNSET

from mcpl_heartbeat.mcp.tools import Problem
from mcpl_heartbeat.tasks.arguments import (
    ClaimAgentTaskArguments,
    CreateAgentTaskArguments,
    ReleaseAgentTaskArguments,
)

NEEDED = ("input_snapshot", "output_contract")
"""What a new task needs."""
BESIDE_CANCEL = {"cancel_task_id", "reason", "agent_key"}


def create_companions(sent: Collection[str]) -> Iterable[Problem]:
    """Check that a call either makes a task or cancels one."""
    if "cancel_task_id" not in sent:
        for name in NEEDED:
            if name not in sent:
                yield Problem(name, "is required for a new task and was not sent")
        if "reason" in sent:
            yield Problem("reason", "says why a task is cancelled; it needs cancel_task_id")
        return
    others = [name for name in CreateAgentTaskArguments.__struct_fields__ if name in sent]
    for name in others:
        if name not in BESIDE_CANCEL:
            yield Problem(
                f"cancel_task_id + {name}",
                "contradict each other; a call that cancels a task makes none and takes only "
                "reason beside it",
            )


def create_rules(arguments: CreateAgentTaskArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check that a task lasts as long as a lease at least, and asks for each output once."""
    lease, timeout = arguments.lease_seconds, arguments.timeout_seconds
    if bad.isdisjoint({"lease_seconds", "timeout_seconds"}) and timeout < lease:
        yield Problem(
            "lease_seconds + timeout_seconds",
            f"contradict each other; a task that times out in {timeout} seconds has no use for a "
            f"lease of {lease}; send a lease_seconds of at most {timeout}, or a later timeout",
        )
    if isinstance(arguments.output_contract, list):
        first: dict[str, int] = {}
        repeats = [
            f"item {i} repeats the key of item {first[field.key]}"
            for i, field in enumerate(arguments.output_contract, 1)
            if first.setdefault(field.key, i) != i
        ]
        if repeats:
            yield Problem("output_contract", "; ".join(repeats))


def claim_rules(arguments: ClaimAgentTaskArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check that a guard's alert has an address, and an address an alert."""
    guard = arguments.guard
    if guard is UNSET:
        return
    alerts = guard.on_expiry is not UNSET and "queue_alert" in guard.on_expiry
    addressed = guard.notify_address is not UNSET
    if alerts and not addressed:
        yield Problem("guard", "notify_address is required with queue_alert in on_expiry")
    if addressed and not alerts:
        yield Problem(
            "guard",
            "on_expiry and notify_address contradict each other; add queue_alert to on_expiry, or "
            "leave notify_address out",
        )


def release_rules(arguments: ReleaseAgentTaskArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check that a reason is given exactly where a task ends for good."""
    if not bad.isdisjoint({"final", "reason"}):
        return
    if arguments.final and arguments.reason is UNSET:
        yield Problem("reason", "is required with final true; say why it cannot be done")
    if not arguments.final and arguments.reason is not UNSET:
        yield Problem(
            "final + reason",
            "contradict each other; reason goes with final true, and what the next worker should "
            "know is the note",
        )
