"""Requests that are refused: members of a wrong kind, and paths both effective and denied."""

import pytest

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, Refusal
from mcpl_heartbeat.policy.grant import State
from tests.policy.support import BOTH, grant, policy, raw, reason


@pytest.mark.requirement("policy.malformed", "words.for-models")
@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"effectiveCapabilities": "pushEvents"}, ["effectiveCapabilities"]),
        ({"effectiveCapabilities": None}, ["effectiveCapabilities"]),
        ({"effectiveCapabilities": BOTH, "enabled": None}, ["enabled"]),
        ({"effectiveCapabilities": BOTH, "enabled": ["heartbeat", 5]}, ["enabled"]),
        ({"effectiveCapabilities": BOTH, "disabled": {}}, ["disabled"]),
        ({"effectiveCapabilities": BOTH, "deniedCapabilities": True}, ["deniedCapabilities"]),
        (
            {"effectiveCapabilities": [[]], "enabled": 1, "disabled": 2, "deniedCapabilities": 3},
            ["effectiveCapabilities", "enabled", "disabled", "deniedCapabilities"],
        ),
        ([BOTH], ["params"]),
    ],
)
def test_a_malformed_request_is_refused_naming_every_fault(
    members: object, named: list[str]
) -> None:
    made = policy()
    grant(made)
    answer = made.request(raw(members))
    assert isinstance(answer, Refusal)
    assert answer.code == INVALID_PARAMS
    assert all(f"{name} must be" in answer.message for name in named)
    assert made.state is State.MALFORMED
    assert "malformed" in reason(made)
    grant(made)
    assert made.verdict("heartbeat") is None


@pytest.mark.requirement("policy.denied-overlap", "host.10")
@pytest.mark.parametrize(
    ("effective", "denied", "shown"),
    [
        (BOTH, ["tools"], "tools"),
        (["*"], ["*"], "*"),
        (["*"], ["modelInfo"], "modelInfo"),
        ([*BOTH, "channels.publish"], ["channels.*"], "channels.publish"),
        ([*BOTH, "future.path"], ["future.path"], "future.path"),
        ([*BOTH, "channels"], ["channels"], "channels"),
    ],
)
def test_a_path_both_effective_and_denied_is_malformed(
    effective: list[str], denied: list[str], shown: str
) -> None:
    made = policy()
    grant(made)
    answer = made.request(raw({"effectiveCapabilities": effective, "deniedCapabilities": denied}))
    assert isinstance(answer, Refusal)
    assert answer.code == INVALID_PARAMS
    assert shown in answer.message
    assert made.verdict("heartbeat") is not None


@pytest.mark.requirement("policy.denied-overlap")
@pytest.mark.parametrize("denied", [["channels"], ["contextHooks.*"], ["future.path"], []])
def test_a_denied_path_that_names_nothing_granted_is_only_a_diagnostic(denied: list[str]) -> None:
    made = policy()
    grant(made, deniedCapabilities=denied)
    assert made.verdict("heartbeat") is None


@pytest.mark.requirement("policy.denied-overlap")
def test_a_refusal_stays_short_however_long_the_lists_are() -> None:
    paths = [f"{'x' * 1000}{n}" for n in range(1000)]
    answer = policy().request(raw({"effectiveCapabilities": paths, "deniedCapabilities": paths}))
    assert isinstance(answer, Refusal)
    assert "and 995 more" in answer.message
    assert len(answer.message) < 1000
