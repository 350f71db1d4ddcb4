"""Whether what the processes of a history were told fits together, and fits the store's end."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpl_heartbeat.watch.tools import READS
from tests.watch_histories.audit import Shelf, audit
from tests.watch_histories.facts import Disagrees, expect, instant

NEVER = 1 << 62
TOLERANCE = 3_000
"""How much of a noted gap (ms) somebody may have watched: a note of the watch is so old at most."""


@dataclass
class Act:
    """One call of one process: made between ``begun`` and ``ended``, real time (ms)."""

    process: str
    what: str
    begun: int
    ended: int = NEVER
    tool: str = ""
    who: int = -1
    args: dict[str, Any] | None = None
    told: Any = None
    """``None``: it was never told, and may or may not have been carried out."""

    @property
    def known(self) -> bool:
        """Whether an answer came."""
        return self.told is not None


def read(paths: Iterable[Path]) -> list[Act]:
    """All calls of all processes, those made together one by one."""
    acts: list[Act] = []
    for path in paths:
        open_acts: list[Act] = []
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if "what" in line:
                calls = line["calls"] or [["", -1, {}]]
                open_acts = [
                    Act(path.stem, line["what"], line["at"], NEVER, *call) for call in calls
                ]
                acts += open_acts
            elif isinstance(line["told"], dict) and "unavailable" in line["told"]:
                # It may have been carried out all the same, but surely not later than now.
                for act in open_acts:
                    act.ended = line["at"]
            else:
                told = line["told"] if isinstance(line["told"], list) else [line["told"]]
                for act, answer in zip(open_acts, told, strict=True):
                    act.ended, act.told = line["at"], answer if answer is not None else True
    return sorted(acts, key=lambda act: act.begun)


class Reckoning:
    """The checks; ``run`` does them all and raises ``Disagrees`` for the first that fails."""

    def __init__(self, url: str, logs: Iterable[Path], agents: list[str]) -> None:
        self.acts = read(logs)
        self.shelf: Shelf = audit(url)
        self.agents = agents
        by_agent = {row["agent"]: row["namespace"] for row in self.shelf.identities}
        self.namespaces = [by_agent[agent.removeprefix("agent:")] for agent in agents]
        self.fires = self.shelf.fires()

    def run(self) -> None:
        """Everything."""
        for act in self.acts:
            if isinstance(act.told, dict):
                expect(f"a fault of the store's own: {act}", act.told.get("code"), None)
        self.gaps()
        self.switches()
        self.leases()
        self.mail()

    def watched(self, real: int) -> int:
        """Watched time as it was at a real time, when later gaps were not known of."""
        gaps = self.shelf.gaps
        return real - sum(gap["ended"] - gap["began"] for gap in gaps if gap["ended"] <= real)

    def unwatched(self, begin: int, end: int) -> int:
        """How much of a stretch is in gaps."""
        shares = (min(end, gap["ended"]) - max(begin, gap["began"]) for gap in self.shelf.gaps)
        return sum(share for share in shares if share > 0)

    # The watch

    def gaps(self) -> None:
        """A gap was noted where nobody watched, and nowhere else."""
        # Who only reads notes nothing, and so is no watch.
        writers = [act for act in self.acts if act.tool not in READS]
        done = [act for act in writers if act.known and act.what != "close"]
        for gap in self.shelf.gaps:
            inside = [
                act
                for act in done
                if act.begun > gap["began"] + TOLERANCE and act.ended < gap["ended"]
            ]
            expect(f"watched in the gap {gap}", inside, [])
        until = writers[0].begun
        for act in writers:
            if act.begun - until > 2 * TOLERANCE:
                missed = act.begun - until - self.unwatched(until, act.begun)
                if missed > TOLERANCE:
                    raise Disagrees(f"{missed} ms from {until} on were no gap, before {act}")
            until = max(until, act.begun if act.ended == NEVER else act.ended)

    # Switches

    def switches(self) -> None:
        """Beats that were confirmed count; no switch fires before its deadline."""
        beats: dict[tuple[str, str], list[Act]] = defaultdict(list)
        for act in self.acts:
            if act.tool == "heartbeat" and act.args is not None:
                beats[self.namespaces[act.who], act.args["scope"]].append(act)
        rows = {(row["namespace"], row["scope"]): row for row in self.shelf.switches}
        for key, made in beats.items():
            known = [act for act in made if act.known]
            highest = 0
            for act in sorted(known, key=lambda act: act.ended):
                earlier = [b.told["generation"] for b in known if b.ended < act.begun]
                if earlier and max(earlier) > act.told["generation"]:
                    raise Disagrees(f"the generation fell: {act}")
                highest = max(highest, act.told["generation"])
            if highest:
                expect(f"generation of {key}", rows[key]["generation"] >= highest, True)
                expect(f"{key} at the end", rows[key]["state"] in ("fired", "disarmed"), True)
        for fire in self.fires:
            self.fire(fire, beats[fire["namespace"], fire["scope"]])

    def fire(self, fire: dict[str, Any], made: list[Act]) -> None:
        """It rests on a beat, the last one, and came when that one's time was over."""
        detail, generation = fire["detail"], fire["generation"]
        shift = moment(detail["noticed_at"]) - fire["at"]
        last = moment(detail["last_beat_at"]) - shift
        deadline = moment(detail["deadline"]) - shift
        armed = [act for act in made if not (act.args or {}).get("disarm")]
        of_it = [act for act in armed if act.known and act.told["generation"] == generation]
        for act in of_it:
            expect(f"a beat in time that came to nothing: {act}, {fire}", act.begun <= last, True)
        causes = [
            act
            for act in armed
            if act.begun <= last <= act.ended and (act in of_it or not act.known)
        ]
        if not causes:
            raise Disagrees(f"a fire that rests on no beat: {fire}")
        window = min((act.args or {})["expect_within_seconds"] * 1000 for act in causes)
        expect(f"early: {fire}", deadline <= fire["at"], True)
        passed = self.watched(fire["at"]) - self.watched(last)
        if passed < window:
            raise Disagrees(f"fired {window - passed} ms of watched time too early: {fire}")

    # Leases

    def leases(self) -> None:
        """Never two holders: before another gets it, the one before has let go or lost it."""
        held: dict[tuple[int, str], dict[int, list[Act]]] = defaultdict(lambda: defaultdict(list))
        for act in self.acts:
            taken = isinstance(act.told, dict) and (
                act.told.get("acquired") or act.told.get("renewed")
            )
            if act.tool in ("lease", "lease_renew") and taken and act.args is not None:
                held[act.who, act.args["key"]][act.told["generation"]].append(act)
        for (who, key), generations in held.items():
            fences = [{act.told["fence"] for act in acts} for acts in generations.values()]
            expect(f"fences of one generation of {key}", {len(fence) for fence in fences}, {1})
            expect(f"fences of {key}", len(set.union(*fences)), len(fences))
            for before, after in itertools.pairwise(sorted(generations)):
                first = min(generations[after], key=lambda act: act.ended)
                self.passed_on(who, key, before, generations[before], first)

    def passed_on(self, who: int, key: str, generation: int, holds: list[Act], next_: Act) -> None:
        """Why the lease was free when ``next_`` was told that it has it."""
        fence = holds[0].told["fence"]
        for act in holds:
            expect(f"renewed after {next_} had it: {act}", act.begun <= next_.ended, True)
        unsure = []
        for act in self.acts:
            mine = act.who == who and act.args is not None and act.args.get("fence") == fence
            if not mine or act.begun > next_.ended:
                continue
            if act.tool == "lease_release" and (not act.known or act.told.get("released")):
                return
            if not act.known and "ttl_seconds" in (act.args or {}):
                unsure.append(act)
        for fire in self.fires:
            freed = {(one["key"], one["generation"]) for one in fire["detail"]["released"]}
            mine = fire["namespace"] == self.namespaces[who]
            if mine and (key, generation) in freed and fire["at"] <= next_.ended:
                return
        newest = max(act.begun for act in holds)
        last = [act for act in holds if act.ended >= newest]
        for act in [*last, *unsure]:
            ttl = (act.args or {})["ttl_seconds"] * 1000
            if self.watched(next_.ended) - self.watched(act.begun) >= ttl:
                return
        raise Disagrees(f"{key} got a second holder: {next_}, while {holds} had it")

    # Mail

    def mail(self) -> None:
        """What was queued is there; nobody got it while it was another's, or was done."""
        there = {row["task_id"] for row in self.shelf.envelopes}
        deliveries: dict[str, list[Act]] = defaultdict(list)
        given_back: dict[str, list[Act]] = defaultdict(list)
        for act in self.acts:
            if act.tool == "send" and act.known and act.told["task_id"] not in there:
                raise Disagrees(f"mail that was lost: {act}")
            if act.tool == "inbox_poll" and act.known and act.told["envelope"]:
                deliveries[act.told["envelope"]["task_id"]].append(act)
            if act.tool in ("inbox_ack", "inbox_nack") and act.args is not None:
                given_back[act.args["task_id"]].append(act)
        for task_id, polls in deliveries.items():
            polls.sort(key=lambda act: act.told["envelope"]["attempts"])
            tokens = {act.told["envelope"]["delivery_token"] for act in polls}
            expect(f"tokens of {task_id}", len(tokens), len(polls))
            for before, after in itertools.pairwise(polls):
                back = [
                    act
                    for act in given_back[task_id]
                    if act.tool == "inbox_nack" and act.begun <= after.ended
                ]
                hidden = (before.args or {})["visibility_timeout_seconds"] * 1000
                if not back and after.ended - before.begun < hidden:
                    raise Disagrees(f"handed out while hidden: {before}, {after}")
            for act in given_back[task_id]:
                if act.tool == "inbox_ack" and act.known and act.told["acked"]:
                    late = [poll for poll in polls if poll.begun > act.ended]
                    expect(f"handed out after {act}", late, [])


def moment(text: str | None) -> int:
    """An instant that must be there."""
    found = instant(text)
    assert found is not None
    return found
