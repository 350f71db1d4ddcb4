"""A policy's Notification narrows what a Request granted, and grants nothing (MCPL §5.4, §6.3)."""

import pytest

from mcpl_heartbeat.policy.grant import State
from tests.policy.support import BOTH, grant, policy, raw


@pytest.mark.requirement("policy.notification-narrows", "host.12")
@pytest.mark.parametrize(
    ("members", "open_", "lines"),
    [
        ({"disabled": ["heartbeat"]}, False, ["disables: heartbeat"]),
        ({"disabled": ["*"]}, False, ["disables: heartbeat"]),
        ({"enabled": []}, False, ["leaves out of enabled: heartbeat"]),
        ({"effectiveCapabilities": ["tools"]}, False, ["takes away: pushEvents"]),
        ({"effectiveCapabilities": BOTH, "enabled": ["heartbeat"], "disabled": []}, True, []),
        ({}, True, []),
        ({"description": "renamed"}, True, []),
        (
            {"effectiveCapabilities": [*BOTH, "modelInfo"]},
            True,
            ["cannot grant, ignored: modelInfo"],
        ),
        ({"disabled": ["heartbeat"], "enabled": 5}, True, ["is malformed and ignored: enabled"]),
        (["heartbeat"], True, ["is malformed and ignored: params"]),
    ],
)
def test_a_notification_narrows_the_policy_in_force(
    members: object, open_: bool, lines: list[str]
) -> None:
    made = policy()
    grant(made)
    said = made.notification(raw(members))
    assert made.state is State.GRANTED
    assert (made.verdict("heartbeat") is None) is open_
    assert len(said) == len(lines)
    assert all(wanted in line for wanted, line in zip(lines, said, strict=True))
    assert all(line.startswith("featureSets/update Notification ") for line in said)


@pytest.mark.requirement("policy.notification-narrows", "host.12")
@pytest.mark.parametrize(
    ("before", "members", "line"),
    [
        (
            {"effectiveCapabilities": ["tools"]},
            {"effectiveCapabilities": BOTH},
            "cannot grant, ignored: pushEvents",
        ),
        ({"enabled": []}, {"enabled": ["heartbeat"]}, "cannot enable, ignored: heartbeat"),
        ({"disabled": ["heartbeat"]}, {"disabled": []}, "cannot lift disabled, ignored: heartbeat"),
    ],
)
def test_a_widening_is_ignored_and_named(
    before: dict[str, object], members: dict[str, object], line: str
) -> None:
    made = policy()
    grant(made, **before)
    said = made.notification(raw(members))
    assert any(line in text for text in said)
    assert made.verdict("heartbeat") is not None


@pytest.mark.requirement("policy.notification-narrows", "policy.replaces")
def test_the_next_request_lifts_what_a_notification_narrowed() -> None:
    made = policy()
    grant(made)
    made.notification(raw({"disabled": ["heartbeat"]}))
    grant(made)
    assert made.verdict("heartbeat") is None


@pytest.mark.requirement("policy.notification-narrows", "seed.policy.notification-not-ready")
def test_before_a_request_a_notification_is_logged_and_grants_nothing() -> None:
    made = policy()
    (line,) = made.notification(raw({"effectiveCapabilities": BOTH}))
    assert "cannot put a policy in force" in line
    assert made.verdict("heartbeat") is not None
