"""Servers that read a policy otherwise than MCPL says, or tell a host something else about it."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

import json
from collections.abc import Callable
from typing import Any

import msgspec

from conformance.mutants import Patch, mutant
from mcpl_heartbeat import session
from mcpl_heartbeat.mcp import lifecycle
from mcpl_heartbeat.policy import grant, pushing
from mcpl_heartbeat.policy.grant import Policy, Receipt, State, Unavailable
from mcpl_heartbeat.policy.manifest import HEARTBEAT, manifest


def _open_in(*states: State) -> Callable[[Policy, str], Any]:
    """Return a verdict that lets everything pass in ``states``."""
    verdict = Policy.verdict

    def lenient(self: Policy, feature_set: str) -> Any:
        return None if self.state in states else verdict(self, feature_set)

    return lenient


def _without(member: str) -> Callable[[Policy, Any], Any]:
    """Return a policy Request that does not read ``member``."""
    request = Policy.request

    def blind(self: Policy, params: Any) -> Any:
        members = json.loads(bytes(params)) if params is not None else {}
        if isinstance(members, dict):
            members.pop(member, None)
        return request(self, msgspec.Raw(json.dumps(members).encode()))

    return blind


@mutant(
    "The receipt says full when wakes are denied.",
    caught_by=("agent-framework-0.20/without-push-events", "mcpl-cc-bridge/nothing-selected"),
)
def receipt_that_lies(patch: Patch) -> None:
    request = Policy.request

    def always_full(self: Policy, params: Any) -> Any:
        answer = request(self, params)
        return Receipt("full") if isinstance(answer, Receipt) else answer

    patch(Policy, "request", always_full)


@mutant(
    "A receipt gives missingCapabilities as null where there is none to name.",
    caught_by="mcpl-cc-bridge/nothing-selected",
)
def missing_capabilities_as_null(patch: Patch) -> None:
    def unavailable(name: str, missing: Any) -> Any:
        nothing: Any = None
        return Unavailable(name, missing or nothing)

    patch(grant, "Unavailable", unavailable)


@mutant(
    "After the grant a Notification can widen it.",
    caught_by="agent-framework-0.20/notification-after-the-grant",
)
def widening_notification_taken(patch: Patch) -> None:
    notification = Policy.notification

    def widened(self: Policy, params: Any) -> Any:
        if self.state is State.GRANTED:
            self.request(params)
            return ()
        return notification(self, params)

    patch(Policy, "notification", widened)


@mutant(
    "A Notification establishes the grant.",
    caught_by=(
        "agent-framework-0.1/notification-that-grants",
        "agent-framework-0.1/notification-only",
    ),
)
def ready_by_notification(patch: Patch) -> None:
    patch(Policy, "verdict", _open_in(State.NOTIFIED))


@mutant(
    "Wakes leave before the host has sent any policy.",
    caught_by=(
        "agent-framework-0.9/policy-comes-late",
        "mcpl-harness/no-policy-until-told",
        "misbehaving/wakes-before-initialize",
    ),
)
def wake_before_policy(patch: Patch) -> None:
    patch(Policy, "verdict", _open_in(State.WAITING))


@mutant(
    "A grant without pushEvents, or without this feature set, pushes all the same.",
    caught_by=("agent-framework-0.20/without-push-events", "mcpl-cc-bridge/nothing-selected"),
)
def denied_and_still_pushing(patch: Patch) -> None:
    patch(Policy, "verdict", _open_in(State.GRANTED))


@mutant("Wakes are pushed to plain MCP clients.", caught_by="mcpl-cc-bridge/configured-as-plain")
def pushes_to_plain_clients(patch: Patch) -> None:
    patch(Policy, "verdict", _open_in(State.PLAIN))


@mutant(
    "A malformed policy is refused, but the old grant stays in force.",
    caught_by=(
        "agent-framework-0.20/policy-contradicts-itself",
        "misbehaving/malformed-after-the-grant",
    ),
)
def malformed_keeps_the_grant(patch: Patch) -> None:
    request = Policy.request

    def kept(self: Policy, params: Any) -> Any:
        state, held = self.state, self._grant
        answer = request(self, params)
        if not isinstance(answer, Receipt):
            self.state, self._grant = state, held
            self._settle()
        return answer

    patch(Policy, "request", kept)


@mutant(
    "A path granted and denied at once counts as granted.",
    caught_by="agent-framework-0.20/policy-contradicts-itself",
)
def denied_list_unread(patch: Patch) -> None:
    patch(Policy, "request", _without("deniedCapabilities"))


@mutant("disabled subtracts nothing.", caught_by="agent-framework-0.20/which-sets-are-enabled")
def disabled_list_unread(patch: Patch) -> None:
    patch(Policy, "request", _without("disabled"))


@mutant(
    "enabled is no allowlist.",
    caught_by=("agent-framework-0.20/which-sets-are-enabled", "mcpl-cc-bridge/nothing-selected"),
)
def enabled_list_unread(patch: Patch) -> None:
    patch(Policy, "request", _without("enabled"))


@mutant(
    "A policy adds to the one before it instead of replacing it.",
    caught_by=("agent-framework-0.20/policy-is-replaced", "mcpl-cc-bridge/policy-after-a-manifest"),
)
def policies_add_up(patch: Patch) -> None:
    request = Policy.request

    def added(self: Policy, params: Any) -> Any:
        held = self._grant
        answer = request(self, params)
        if held is None or self._grant is None:
            return answer
        self._grant = msgspec.structs.replace(self._grant, paths=self._grant.paths | held.paths)
        self._settle()
        return self._receipt()

    patch(Policy, "request", added)


@mutant(
    "A policy Request has to wait until the host has answered every push.",
    caught_by="agent-framework-0.20/policy-while-pushes-are-out",
)
def policy_waits_for_answers(patch: Patch) -> None:
    policy_request = session.Session._policy_request

    def waiting(self: Any, *args: Any) -> Any:
        return None if self._outgoing._waiting else policy_request(self, *args)

    patch(session.Session, "_policy_request", waiting)


@mutant(
    "featureSets is an object whoever asks.",
    caught_by=("mcpl-harness/array-feature-sets", "mcpl-harness/manifest-again"),
)
def sets_always_an_object(patch: Patch) -> None:
    patch(session, "wants_array", lambda name: False)


@mutant(
    "The manifest is sent to clients that did not ask for MCPL.",
    caught_by=("plain-mcp/version-2024-11-05", "mcpl-cc-bridge/configured-as-plain"),
)
def manifest_for_everybody(patch: Patch) -> None:
    initialize_result = lifecycle.initialize_result

    def declared(version: str, server: Any, experimental: Any, instructions: Any) -> Any:
        anyway = experimental or {"mcpl": manifest((HEARTBEAT,))}
        return initialize_result(version, server, anyway, instructions)

    patch(lifecycle, "initialize_result", declared)


@mutant(
    "A host that answers with -32001, -32002 or -32003 is not shown as blocking.",
    caught_by=(
        "agent-framework-0.20/capability-denied-in-an-answer",
        "agent-framework-0.20/set-unknown-in-an-answer",
    ),
)
def blocking_answers_unsaid(patch: Patch) -> None:
    patch(pushing, "BLOCKING_CODES", {})


@mutant(
    "Coalescing keys are sent to hosts that never offered to coalesce.",
    caught_by=(
        "agent-framework-0.9/first-contact",
        "agent-framework-0.20/coalescing-of-other-things",
    ),
)
def coalescing_unasked(patch: Patch) -> None:
    initialized = Policy.initialized

    def always(self: Policy, host: object) -> None:
        initialized(self, host)
        self.coalesces = True

    patch(Policy, "initialized", always)
