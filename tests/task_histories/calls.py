"""Calls of every tool as they come over a wire: arguments as JSON, answers as JSON."""

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from mcpl_heartbeat.catalogue import BY_NAME, READS, TOOLS
from mcpl_heartbeat.mcp.arguments import Accepted, check
from mcpl_heartbeat.storage.store.ports import Ask, Unsettled
from mcpl_heartbeat.storage.store.store import Store
from tests.watch_histories.worker import SECRETS, Call

CONTRACT = [{"key": "n", "dataType": "integer"}]
"""What the tasks of these tests ask for."""


def ask(tool: str, who: int | None, args: dict[str, Any]) -> Ask:
    """A call that the rules for its arguments let through."""
    checked = check(BY_NAME[tool], msgspec.Raw(json.dumps(args).encode()), TOOLS)
    assert isinstance(checked, Accepted), checked
    return Ask(tool, checked.arguments, None if who is None else SECRETS[who])


def answer(store: Store, calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Make calls in one transaction, or one that only reads beside them all."""
    asks = [ask(*call) for call in calls]
    outcomes = None
    if len(asks) == 1 and asks[0].tool in READS:
        with contextlib.suppress(Unsettled):
            outcomes = [store.look(asks[0])]
    if outcomes is None:
        outcomes = store.answer(asks)
    return [msgspec.json.decode(msgspec.json.encode(outcome)) for outcome in outcomes]


def outputs(number: int) -> dict[str, Any]:
    """A result that fits the contract."""
    return {"n": {"value": number}}
