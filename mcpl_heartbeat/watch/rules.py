"""The rules between arguments of the watch wing's tools that need no stored row and no time.

Called by ``mcp.arguments`` with the names that were sent but refused on their own (``bad``).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from mcpl_heartbeat.mcp.tools import Problem
from mcpl_heartbeat.watch.arguments import (
    CheckpointPutArguments,
    HeartbeatArguments,
    RegisterArguments,
)


def heartbeat_forgives(sent: Mapping[str, Any]) -> frozenset[str]:
    """Ask for no window where none is armed."""
    return frozenset({"expect_within_seconds"}) if sent.get("disarm") is True else frozenset()


def heartbeat_rules(arguments: HeartbeatArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check that an alert has an address and a nudge its place; not with disarm: nothing is armed.

    Whether an address has a use when ``on_expiry`` was left out depends on the stored switch.
    """
    if arguments.disarm or "disarm" in bad:
        return
    if "on_expiry" not in bad and arguments.on_expiry is not UNSET:
        alerts = "queue_alert" in arguments.on_expiry
        addressed = arguments.notify_address is not UNSET or "notify_address" in bad
        if alerts and not addressed:
            yield Problem(
                "notify_address",
                "is required with queue_alert in on_expiry; send the address that is to be told, "
                'such as "agent:<id>"',
            )
        if addressed and not alerts:
            yield Problem(
                "on_expiry + notify_address",
                "contradict each other; add queue_alert to on_expiry, or leave notify_address out",
            )
    window, nudge = arguments.expect_within_seconds, arguments.nudge_seconds
    if window is not UNSET and nudge is not UNSET and nudge >= window:
        yield Problem(
            "expect_within_seconds + nudge_seconds",
            f"contradict each other; a nudge comes less than {window} seconds before the "
            f"deadline, not {nudge}",
        )


def register_rules(arguments: RegisterArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check that the two names of the label say the same."""
    yield from _alike(arguments.label, arguments.agent_id, "label + agent_id")


def checkpoint_rules(arguments: CheckpointPutArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check that a scope was named, once."""
    scope, alias = arguments.scope, arguments.workflow_id
    if scope is UNSET and alias is UNSET and bad.isdisjoint({"scope", "workflow_id"}):
        yield Problem("scope", "is required and was not sent")
    yield from _alike(scope, alias, "scope + workflow_id")


def _alike(one: str | UnsetType, other: str | UnsetType, names: str) -> Iterable[Problem]:
    if one is not UNSET and other is not UNSET and one != other:
        yield Problem(names, "are two names of one thing and differ; send one of them")
