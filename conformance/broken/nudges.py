"""Servers that tell an agent of its deadlines too often, too singly, or not at all."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from typing import Any

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.storage.store import news, schema
from mcpl_heartbeat.watch import nudges


@mutant(
    "A nudge counts as a beat.",
    caught_by={"watch/nudged-in-time": '"deadline":{"$ref":"deadline"}'},
)
def nudge_is_a_beat(patch: Patch) -> None:
    later = schema.switches.c.deadline_watched + schema.switches.c.window_ms
    patch(news, "_NUDGED", news._NUDGED.values(deadline_watched=later))


@mutant(
    "An agent is nudged until it beats.",
    caught_by={"watch/nudged-in-time": '"quiet"'},
)
def nudged_again_and_again(patch: Patch) -> None:
    patch(news, "_NUDGED", news._NUDGED.values(nudged=0))


@mutant(
    "Each nudge leaves by itself, so that many at once are as many wakes.",
    caught_by={"watch/nudged-together": '"count":2'},
)
def nudged_one_by_one(patch: Patch) -> None:
    push = nudges.NudgePushes._push

    def apart(self: Any, waiting: Any, coalesces: bool, now: Any) -> None:
        for nudge in waiting:
            push(self, [nudge], coalesces, now)

    patch(nudges.NudgePushes, "_push", apart)


@mutant(
    "A nudge is never sent.",
    caught_by={"watch/nudged-in-time": '"push"'},
)
def never_nudged(patch: Patch) -> None:
    patch(news, "_nudge", lambda *args: [])
