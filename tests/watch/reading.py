"""What the tests of a model's reading share: a call's outcome, and the words for it."""

from typing import Any

from mcpl_heartbeat.watch import leases, switches, texts
from mcpl_heartbeat.watch.arguments import HeartbeatArguments, LeaseArguments
from mcpl_heartbeat.watch.rows import Lease, Switch
from tests.watch.mailing import at


def beat(before: Switch | None = None, ms: int = 0, **arguments: Any) -> switches.Beaten:
    asked = HeartbeatArguments(**{"scope": "s", "expect_within_seconds": 300, **arguments})
    outcome = switches.beat(before, "ns", asked, at(ms))
    assert isinstance(outcome, switches.Beaten), outcome
    return outcome


def switch(ms: int = 0, **arguments: Any) -> Switch:
    row = beat(None, ms, **arguments).switch
    assert row is not None
    return row


def read(tool: str, result: Any) -> str:
    text = texts.text_of(tool, result)
    assert "UNSET" not in text
    assert "None" not in text
    return text


def taken(before: Lease | None = None, ms: int = 0, **arguments: Any) -> leases.Taken:
    asked = LeaseArguments(**{"key": "db", "holder": "w1", **arguments})
    return leases.take(before, "ns", asked, "f-secret", at(ms))
