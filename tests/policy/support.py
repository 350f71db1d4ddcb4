"""What the tests of the policy machine share."""

import msgspec

from mcpl_heartbeat.policy.grant import Policy, Receipt
from mcpl_heartbeat.policy.manifest import HEARTBEAT, FeatureSet

BOTH = ["pushEvents", "tools"]
MEMORY = FeatureSet("memory.recall", "Remembers.", ("tools",), "Nothing is recalled.")


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def policy(*sets: FeatureSet, host: object = None) -> Policy:
    made = Policy(sets or (HEARTBEAT,))
    made.initialized({"version": "0.5"} if host is None else host)
    return made


def grant(made: Policy, **members: object) -> Receipt:
    receipt = made.request(raw({"effectiveCapabilities": BOTH, **members}))
    assert isinstance(receipt, Receipt)
    return receipt


def reason(made: Policy, feature_set: str = "heartbeat") -> str:
    denied = made.verdict(feature_set)
    assert denied is not None
    return denied.reason
