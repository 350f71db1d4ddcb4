"""The policy machine (MCPL §3.2, §5.3, §5.4, §6.3, §6.4, §6.7; issue 2, §2)."""

import msgspec
import pytest

from mcpl_heartbeat.jsonrpc.messages import METHOD_NOT_FOUND, Refusal
from mcpl_heartbeat.policy.grant import (
    START,
    TABLE,
    WAITING_WARNING,
    Event,
    Policy,
    Receipt,
    State,
    Unavailable,
)
from mcpl_heartbeat.policy.manifest import HEARTBEAT, FeatureSet
from tests.policy.support import BOTH, MEMORY, grant, policy, raw, reason

# --- the table ---------------------------------------------------------------------------------

MALFORMED = raw({"enabled": 1})
DO = {
    Event.INITIALIZE_PLAIN: lambda p: p.initialized(None),
    Event.INITIALIZE_MCPL: lambda p: p.initialized({}),
    Event.REQUEST_VALID: lambda p: p.request(raw({"effectiveCapabilities": BOTH})),
    Event.REQUEST_MALFORMED: lambda p: p.request(MALFORMED),
    Event.NOTIFICATION: lambda p: p.notification(raw({"enabled": ["heartbeat"]})),
}
ROAD = {
    State.PLAIN: [Event.INITIALIZE_PLAIN],
    State.WAITING: [Event.INITIALIZE_MCPL],
    State.NOTIFIED: [Event.INITIALIZE_MCPL, Event.NOTIFICATION],
    State.GRANTED: [Event.INITIALIZE_MCPL, Event.REQUEST_VALID],
    State.MALFORMED: [Event.INITIALIZE_MCPL, Event.REQUEST_VALID, Event.REQUEST_MALFORMED],
}


@pytest.mark.requirement("policy.table")
def test_the_table_says_something_for_every_state_and_event() -> None:
    assert set(TABLE) == {(state, event) for state in State for event in Event}
    assert Policy((HEARTBEAT,)).state is START is State.WAITING


@pytest.mark.requirement("policy.table", "policy.no-grant-before-request")
@pytest.mark.parametrize(("start", "event"), TABLE)
def test_each_event_leads_where_the_table_says(start: State, event: Event) -> None:
    made = Policy((HEARTBEAT,))
    for step in ROAD[start]:
        DO[step](made)
    assert made.state is start
    DO[event](made)
    assert made.state is TABLE[start, event]
    assert (made.verdict("heartbeat") is None) is (made.state is State.GRANTED)


@pytest.mark.requirement(
    "policy.table", "policy.plain", "policy.no-grant-before-request", "policy.notification-narrows"
)
def test_only_a_valid_request_from_an_mcpl_host_leads_to_a_grant() -> None:
    ways_in = {key for key, end in TABLE.items() if end is State.GRANTED}
    assert ways_in == {
        (State.WAITING, Event.REQUEST_VALID),
        (State.NOTIFIED, Event.REQUEST_VALID),
        (State.MALFORMED, Event.REQUEST_VALID),
        (State.GRANTED, Event.REQUEST_VALID),
        (State.GRANTED, Event.NOTIFICATION),
    }


# --- words -------------------------------------------------------------------------------------


@pytest.mark.requirement("seed.policy.log-none", "seed.policy.status-blocked", "field.67")
@pytest.mark.parametrize(
    "steps", [[], [MALFORMED], [raw({"effectiveCapabilities": BOTH}), MALFORMED]]
)
def test_without_a_valid_request_the_reason_begins_as_fixed(steps: list[msgspec.Raw]) -> None:
    made = policy()
    for params in steps:
        made.request(params)
    denied = made.verdict("heartbeat")
    assert denied is not None
    assert not denied.never
    assert denied.reason.startswith(
        "no valid featureSets/update Request in force (none yet, or the last was malformed); "
    )


@pytest.mark.requirement(
    "seed.policy.log-notification", "seed.policy.notification-not-ready", "field.67", "host.12"
)
def test_told_only_by_notification_the_reason_begins_as_fixed() -> None:
    made = policy()
    made.notification(raw({"effectiveCapabilities": BOTH, "enabled": ["heartbeat"]}))
    denied = made.verdict("heartbeat")
    assert denied is not None
    assert denied.never
    assert denied.reason.startswith("host sent featureSets/update only as a Notification, ")


@pytest.mark.requirement("seed.policy.log-waiting")
def test_the_overdue_policy_is_warned_of_in_two_endings() -> None:
    made = policy()
    silent = made.waiting_warning
    made.notification(None)
    notified = made.waiting_warning
    assert WAITING_WARNING == "initial policy has still not arrived as a Request."
    assert silent is not None
    assert notified is not None
    assert silent.startswith(WAITING_WARNING + " ")
    assert notified.startswith(WAITING_WARNING + " ")
    assert "Notification" in notified
    assert "Notification" not in silent
    grant(made)
    assert made.waiting_warning is None


@pytest.mark.requirement("policy.plain", "host.7")
@pytest.mark.parametrize("host", [None, True, [], "0.5"])
def test_a_plain_host_gets_no_push_and_has_no_policy_method(host: object) -> None:
    made = Policy((HEARTBEAT,))
    made.initialized(host)
    answer = made.request(raw({"effectiveCapabilities": BOTH}))
    assert isinstance(answer, Refusal)
    assert answer.code == METHOD_NOT_FOUND
    denied = made.verdict("heartbeat")
    assert denied is not None
    assert denied.never
    assert "plain MCP" in denied.reason
    assert made.waiting_warning is None


@pytest.mark.requirement("seed.policy.status-blocked", "words.for-models")
def test_each_reason_names_its_cause_and_is_one_line() -> None:
    made = policy()
    causes = {
        "pushEvents": {"effectiveCapabilities": ["tools"]},
        "tools": {"effectiveCapabilities": ["pushEvents"]},
        "pushEvents and tools": {},
        "enabled": {"effectiveCapabilities": BOTH, "enabled": []},
        "disabled": {"effectiveCapabilities": BOTH, "disabled": ["heartbeat"]},
    }
    seen = set()
    for words, members in causes.items():
        made.request(raw(members))
        assert words in reason(made)
        assert "\n" not in reason(made)
        seen.add(reason(made))
    assert len(seen) == len(causes)


@pytest.mark.requirement("policy.table")
def test_a_set_that_is_not_declared_may_not_push() -> None:
    made = policy()
    grant(made)
    assert "memory.recall" in reason(made, "memory.recall")


# --- requests ----------------------------------------------------------------------------------


@pytest.mark.requirement("seed.policy.receipt", "policy.receipt-full", "policy.before-answer")
def test_all_granted_is_answered_in_full() -> None:
    made = policy()
    receipt = grant(made, enabled=["heartbeat"])
    assert msgspec.to_builtins(receipt) == {
        "accepted": True,
        "mode": "full",
        "unavailableFeatures": (),
        "notes": (),
    }
    assert made.verdict("heartbeat") is None


@pytest.mark.requirement(
    "policy.receipt-degraded",
    "policy.receipt-notes",
    "seed.policy.denied-set-disabled",
    "seed.policy.absence-denies",
    "host.9",
)
@pytest.mark.parametrize(
    ("members", "missing"),
    [
        ({"effectiveCapabilities": ["tools"]}, ("pushEvents",)),
        ({"effectiveCapabilities": ["pushEvents"]}, ("tools",)),
        ({"effectiveCapabilities": []}, ("pushEvents", "tools")),
        ({"effectiveCapabilities": ["pushEvents.*", "channels.*"]}, ("pushEvents", "tools")),
        ({"effectiveCapabilities": BOTH, "enabled": []}, ()),
        ({"effectiveCapabilities": BOTH, "enabled": ["memory.*"]}, ()),
        ({"effectiveCapabilities": BOTH, "disabled": ["heartbeat"]}, ()),
        ({"effectiveCapabilities": ["tools"], "enabled": []}, ("pushEvents",)),
    ],
)
def test_a_degraded_receipt_says_what_is_off_and_what_that_means(
    members: dict[str, object], missing: tuple[str, ...]
) -> None:
    made = policy()
    receipt = made.request(raw(members))
    assert isinstance(receipt, Receipt)
    assert receipt.mode == "degraded"
    assert receipt.accepted
    assert receipt.unavailable_features == (Unavailable("heartbeat", missing),)
    wire = msgspec.json.decode(msgspec.json.encode(receipt))["unavailableFeatures"]
    assert wire == [
        {"featureSet": "heartbeat", "missingCapabilities": list(missing), "effect": "disabled"}
    ]
    (note,) = receipt.notes
    assert reason(made) in note
    assert "no heartbeat and no reminder" in note


@pytest.mark.requirement("policy.receipt-degraded")
def test_each_set_has_its_own_entry() -> None:
    made = policy(HEARTBEAT, MEMORY)
    receipt = made.request(raw({"effectiveCapabilities": ["tools"]}))
    assert isinstance(receipt, Receipt)
    assert [entry.feature_set for entry in receipt.unavailable_features] == ["heartbeat"]
    assert made.verdict("memory.recall") is None
    receipt = grant(made, disabled=["memory.*"])
    assert [entry.feature_set for entry in receipt.unavailable_features] == ["memory.recall"]
    assert "Nothing is recalled." in receipt.notes[0]


@pytest.mark.requirement("policy.receipt-degraded")
@pytest.mark.parametrize("uses", [(), ("tools", "unknown"), ("channels",)])
def test_a_set_with_invalid_uses_is_always_off(uses: tuple[str, ...]) -> None:
    made = policy(FeatureSet("odd", "", uses))
    receipt = made.request(raw({"effectiveCapabilities": [*BOTH, "unknown", "channels"]}))
    assert isinstance(receipt, Receipt)
    assert receipt.mode == "degraded"
    assert "uses" in reason(made, "odd")


@pytest.mark.requirement("policy.allowlist", "host.10")
@pytest.mark.parametrize("params", [None, raw({}), raw({"enabled": ["heartbeat"]})])
def test_without_effective_capabilities_nothing_is_granted(params: msgspec.Raw | None) -> None:
    made = policy()
    grant(made)
    receipt = made.request(params)
    assert isinstance(receipt, Receipt)
    assert receipt.unavailable_features == (Unavailable("heartbeat", ("pushEvents", "tools")),)
    assert made.verdict("heartbeat") is not None


@pytest.mark.requirement("policy.enabled", "policy.disabled", "host.11")
@pytest.mark.parametrize(
    ("members", "open_"),
    [
        ({}, True),
        ({"enabled": ["heartbeat"]}, True),
        ({"enabled": ["*"]}, True),
        ({"enabled": ["other", "heartbeat"]}, True),
        ({"enabled": []}, False),
        ({"enabled": ["heartbeat.*"]}, False),
        ({"enabled": ["Heartbeat"]}, False),
        ({"disabled": []}, True),
        ({"disabled": ["other"]}, True),
        ({"disabled": ["*"]}, False),
        ({"enabled": ["heartbeat"], "disabled": ["heartbeat"]}, False),
        ({"deniedCapabilities": ["modelInfo", "channels.*"]}, True),
        ({"future": {"a": 1}, "note": None}, True),
    ],
)
def test_selection_narrows(members: dict[str, object], open_: bool) -> None:
    made = policy()
    receipt = grant(made, **members)
    assert (made.verdict("heartbeat") is None) is open_
    assert (receipt.mode == "full") is open_


@pytest.mark.requirement("policy.enabled")
def test_selecting_a_set_grants_it_nothing() -> None:
    made = policy()
    made.request(raw({"effectiveCapabilities": [], "enabled": ["heartbeat"]}))
    assert "effectiveCapabilities" in reason(made)


@pytest.mark.requirement("policy.replaces", "policy.before-answer", "host.8")
def test_each_request_replaces_the_whole_policy() -> None:
    made = policy()
    grant(made, disabled=["heartbeat"])
    grant(made, enabled=[])
    assert "enabled" in reason(made)
    grant(made)
    assert made.verdict("heartbeat") is None


@pytest.mark.requirement("policy.replaces", "field.74")
def test_the_same_request_twice_changes_nothing() -> None:
    made = policy()
    assert grant(made) == grant(made)
    assert made.state is State.GRANTED
    assert made.verdict("heartbeat") is None


# --- what the host advertises ------------------------------------------------------------------


@pytest.mark.requirement("policy.coalescing-advertised", "host.26")
@pytest.mark.parametrize(
    ("coalescing", "expected"),
    [
        (True, True),
        ({"pushEvents": True, "retryWindowMs": 1}, True),
        ({"pushEvents": False}, False),
        ({"pushEvents": 1}, False),
        ({"channelsIncoming": True}, False),
        ({}, False),
        (False, False),
        (1, False),
        ("true", False),
        (None, False),
    ],
)
def test_coalescing_counts_only_when_it_is_said(coalescing: object, expected: bool) -> None:
    assert policy(host={"eventCoalescing": coalescing}).coalesces is expected


@pytest.mark.requirement("policy.coalescing-advertised")
def test_a_host_that_says_nothing_of_coalescing_has_none() -> None:
    made = policy(host={"eventCoalescing": True})
    made.initialized({"version": "0.4"})
    assert made.coalesces is False
