"""Whatever a host sends, nothing raises and nothing is granted beyond its last valid Request."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mcpl_heartbeat.jsonrpc.messages import Refusal
from mcpl_heartbeat.policy.grant import Policy, Receipt, State
from mcpl_heartbeat.policy.manifest import HEARTBEAT
from tests.policy.support import BOTH, MEMORY, policy, raw

WORDS = ["pushEvents", "tools", "*", "heartbeat", "memory.*", "modelInfo", "memory.recall", "é"]
ODD = [None, True, 1, -0.5, "tools", {}, {"tools": True}, [1], ["tools", None], [["tools"]]]
NAMES = st.lists(st.sampled_from(WORDS), max_size=4)
MEMBER = NAMES | NAMES | st.sampled_from(ODD)
UPDATE = st.sampled_from(ODD) | st.fixed_dictionaries(
    {"effectiveCapabilities": st.just(BOTH) | MEMBER},
    optional={
        "deniedCapabilities": st.just([]) | MEMBER,
        "enabled": MEMBER,
        "disabled": MEMBER,
        "other": st.sampled_from(ODD),
    },
)
NOTICE = UPDATE | st.fixed_dictionaries({}, optional={"enabled": NAMES, "disabled": NAMES})
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=5,
)
SETS = (HEARTBEAT, MEMORY)


def open_sets(made: Policy) -> set[str]:
    return {declared.name for declared in SETS if made.verdict(declared.name) is None}


@pytest.mark.requirement("policy.malformed")
@given(st.binary(max_size=60) | JSON.map(msgspec.json.encode))
def test_nothing_a_host_can_send_raises(data: bytes) -> None:
    made = policy()
    made.notification(msgspec.Raw(data))
    assert isinstance(made.request(msgspec.Raw(data)), Receipt | Refusal)


@pytest.mark.requirement("policy.malformed")
@pytest.mark.parametrize(
    "data", [b'{"x":' + b"[" * 100_000, b'{"enabled":' + b"[" * 5000 + b"]" * 5000 + b"}"]
)
def test_nesting_that_no_parser_survives_is_malformed(data: bytes) -> None:
    assert isinstance(policy().request(msgspec.Raw(data)), Refusal)


@pytest.mark.requirement("policy.allowlist", "policy.replaces")
@given(UPDATE, UPDATE)
def test_a_policy_is_what_the_last_request_says_alone(first: object, second: object) -> None:
    made, fresh = policy(*SETS), policy(*SETS)
    made.request(raw(first))
    assert made.request(raw(second)) == fresh.request(raw(second))
    assert open_sets(made) == open_sets(fresh)


class AnyHost(RuleBasedStateMachine):
    """A host that sends whatever it likes, watched by a model that knows three rules."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = Policy(SETS)
        self.may_be_open: set[str] = set()

    @rule(host=st.none() | st.just({"version": "0.5"}))
    def initialize(self, host: object) -> None:
        self.policy.initialized(host)
        self.may_be_open = set()

    @rule(update=UPDATE)
    def request(self, update: object) -> None:
        answer = self.policy.request(raw(update))
        if isinstance(answer, Receipt):
            off = {entry.feature_set for entry in answer.unavailable_features}
            assert self.policy.state is State.GRANTED
            assert (answer.mode == "full") is (not off)
            self.may_be_open = {declared.name for declared in SETS} - off
        else:
            self.may_be_open = set()

    @rule(update=NOTICE)
    def notify(self, update: object) -> None:
        assert all("\n" not in line for line in self.policy.notification(raw(update)))
        assert open_sets(self.policy) <= self.may_be_open
        self.may_be_open = open_sets(self.policy)

    @invariant()
    def what_may_push_is_what_the_last_valid_request_left(self) -> None:
        assert open_sets(self.policy) == self.may_be_open
        if self.policy.state is not State.GRANTED:
            assert not self.may_be_open


AnyHost.TestCase.settings = settings(max_examples=40, stateful_step_count=15)
TestAnyHost = pytest.mark.requirement(
    "policy.no-grant-before-request",
    "policy.notification-narrows",
    "seed.policy.nothing-before-request",
)(AnyHost.TestCase)
