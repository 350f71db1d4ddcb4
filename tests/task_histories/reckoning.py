"""Whether what processes were told of tasks fits one order of events, and fits the store's end.

The audit in the store says who held a task from when to when. So it is one order of events by
itself, and every answer has to be true of it at some moment between the call and the answer:
then the history is linearizable. What was never answered may have happened or not.
"""

import bisect
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from mcpl_heartbeat.catalogue import READS
from tests.task_histories.kept import CLOSED, LEASE, WORK, Kept, Life, meets, within
from tests.watch_histories.facts import Disagrees, expect, instant
from tests.watch_histories.reckoning import NEVER, Act, moment


class TaskReckoning(Kept):
    """The checks; ``run`` does them all and raises ``Disagrees`` for the first that fails."""

    def __init__(self, url: str, logs: Iterable[Path], agents: list[str]) -> None:
        super().__init__(url, logs, agents)
        # A writer reads the clock when no other one writes, so what came before is kept by the end
        # of any that was called later.
        writers = [act for act in self.every if act.known and act.tool not in READS]
        self.begun = [act.begun for act in writers]
        self.kept = list(itertools.accumulate((act.ended for act in reversed(writers)), min))
        self.kept.reverse()
        self.confirmed: dict[tuple[str, int], int] = {}

    def seen(self, life: Life, at: int) -> int:
        """By when everybody sees what was written of a task at that time.

        What is written bears the time at which its transaction began; who reads beside it sees it
        when it is kept.
        """
        later = bisect.bisect_right(self.begun, at)
        kept = self.kept[later] if later < len(self.kept) else NEVER
        return max(at, min(kept, self.confirmed.get((life.id, at), NEVER)))

    def confirm(self, act: Act) -> None:
        """Whoever was told that it is done can rely on others' seeing it."""
        life = self.lives.get(self.id_of(act))
        if life is None or not self.taken(act) or act.told.get("replayed"):
            return
        if act.tool == "claim_agent_task":
            at = life.held(act.told["execution_epoch"])[0]
        elif act.tool == "create_agent_task":
            at = life.closed_at
        elif act.tool in ("submit_agent_task", "release_agent_task"):
            at = life.held(act.args["execution_epoch"])[1]
        else:
            return
        self.confirmed[life.id, at] = min(act.ended, self.confirmed.get((life.id, at), NEVER))

    def run(self) -> None:
        """Everything."""
        for act in self.acts:
            self.confirm(act)
        claims = [act for act in self.acts if act.tool == "claim_agent_task"]
        for life in self.lives.values():
            self.life(life)
            self.claims(life, [act for act in claims if self.id_of(act) == life.id])
            for held in life.epochs:
                self.epoch(life, held)
            self.caused(life)
        self.given_back()
        self.reviews()
        for act in self.acts:
            if act.known:
                self.answer(act)
        self.created()

    # The answers

    def answer(self, act: Act) -> None:
        """One answer: true at some moment between the call and it."""
        if act.tool == "list_agent_tasks":
            self.listed(act)
            return
        life = self.lives.get(self.id_of(act))
        if life is None:
            return
        if not self.mine(act, life):
            expect(f"a stranger's call: {act}", act.told.get("code"), "unknown_task")
            return
        if self.taken(act):
            self.record(act, life, act.told)
            self.carried_out(act, life)
        else:
            code = act.told["code"]
            check = self.REFUSALS.get(code)
            if check is None:
                raise Disagrees(f"refused for no reason: {act}")
            expect(
                f"refused as {code}: {act}, {life.epochs}, {life.row}", check(self, act, life), True
            )

    def record(self, act: Act, life: Life, told: Any) -> None:
        """The metadata of a task."""
        begun, later = life.at_epoch(told["execution_epoch"])
        reads = act.tool in READS
        later = self.seen(life, later) if reads and later != NEVER else later
        expect(f"an epoch it did not have: {told}", meets(act, (begun, later)), True)
        if told["status"] in CLOSED:
            expect(f"an end it did not have: {told}", told["status"], life.row["status"])
            expect(f"ended before it did: {told}", act.ended >= life.closed_at, True)
            expect(f"closed, and a lease: {told}", told["lease_expires_at"], None)
        else:
            over = life.closed_at
            if reads and life.row["status"] != "timed_out":
                over = self.seen(life, over)
            expect(f"open when it was over: {act}", act.begun <= over, True)
        if told["status"] == "claimed":
            expect(
                f"claimed without an end of it: {told}",
                instant(told["lease_expires_at"]) is None,
                False,
            )
            ahead = moment(told["timeout_at"]) - moment(told["lease_expires_at"])
            expect(f"a lease beyond the timeout: {told}", ahead >= 0, True)
        if "server_time" in told:
            # Set clocks show in all that is told alike.
            now = life.row["timeout_at"] - (
                moment(told["timeout_at"]) - moment(told["server_time"])
            )
            expect(f"the timeout was moved: {act}", within(act, now), True)

    def carried_out(self, act: Act, life: Life) -> None:
        """What changed the task is in the audit under the epoch that was shown."""
        if act.tool == "create_agent_task":
            expect(f"cancelled: {act}", life.row["status"], "cancelled")
            return
        if act.tool not in WORK:
            return
        epoch = act.args["execution_epoch"]
        expect(f"another epoch than it showed: {act}", act.told["execution_epoch"], epoch)
        replayed = act.told.get("replayed", False)
        held = life.by_epoch[epoch]
        if act.tool == "heartbeat_agent_task":
            expect(f"held while it was renewed: {act}", meets(act, life.held(epoch)), True)
            left = moment(act.told["timeout_at"]) - moment(act.told["server_time"])
            expect(f"time left: {act}", round(act.told["seconds_left"] * 1000), min(LEASE, left))
        elif act.tool == "submit_agent_task":
            expect(f"a submit that was lost: {act}", held["cause"], "submitted")
            expect(f"the result of {act}", life.outputs, act.args["outputs"])
            at = act.ended >= held["ended_at"] if replayed else within(act, held["ended_at"])
            expect(f"submitted when it was called: {act}", at, True)
        else:
            final = (act.args or {}).get("final", False)
            expect(
                f"a release that was lost: {act}", held["cause"], "failed" if final else "released"
            )
            expect(f"released when it was called: {act}", within(act, held["ended_at"]), True)

    def listed(self, act: Act) -> None:
        """Each task as it was, and none left out that was there all the time."""
        expect(f"a list: {act}", self.taken(act), True)
        shown = set()
        for told in act.told["data"]:
            life = self.lives.get(told["id"])
            if life is None:
                raise Disagrees(f"a task that was lost: {told}")
            expect(f"another's task: {told}", self.mine(act, life), True)
            self.record(act, life, told)
            shown.add(life.id)
        status = (act.args or {}).get("status")
        if act.told["pagination"]["has_more"]:
            return
        for life in self.lives.values():
            made = self.seen(life, life.row["created_at"])
            if self.mine(act, life) and life.id not in shown and made < act.begun:
                there = status is None or self.claimable_throughout(act, life)
                expect(f"{life.id} is not in {act}", there, False)

    def claimable_throughout(self, act: Act, life: Life) -> bool:
        """Whether nobody held it from the call to the answer, and it was not over."""
        for each in life.epochs:
            begun, ended = life.held(each["epoch"])
            if meets(act, (begun, self.seen(life, ended))):
                return False
        return act.ended < life.closed_at

    def created(self) -> None:
        """What was made is there; a dedupe key names one task."""
        named: dict[tuple[int, str], str] = {}
        for act in self.acts:
            if act.tool != "create_agent_task" or not self.taken(act) or act.told["cancelled"]:
                continue
            if "cancel_task_id" in (act.args or {}):
                continue
            id = act.told["id"]
            expect(f"a task that was lost: {act}", id in self.lives, True)
            if key := (act.args or {}).get("dedupe_key"):
                expect(f"one task for {key}", named.setdefault((act.who, key), id), id)
            if act.told["created"]:
                at = self.lives[id].row["created_at"]
                expect(f"made when it was called: {act}", within(act, at), True)

    # Refusals

    def stale(self, act: Act, life: Life) -> bool:
        """Another epoch was in force, the one that is told."""
        told = act.told["execution_epoch"]
        return told != act.args["execution_epoch"] and meets(act, life.at_epoch(told))

    def expired(self, act: Act, life: Life) -> bool:
        """It was the last epoch, and over."""
        epoch = act.args["execution_epoch"]
        begun, later = life.at_epoch(epoch)
        over = begun if epoch == 1 else life.held(epoch)[1]
        return epoch == act.told["execution_epoch"] and meets(act, (over, later))

    def held_by_another(self, act: Act, life: Life) -> bool:
        """Somebody held it."""
        return any(meets(act, life.held(held["epoch"])) for held in life.epochs)

    def is_closed(self, act: Act, life: Life) -> bool:
        """It was over."""
        return act.ended >= life.closed_at

    def does_not_fit(self, act: Act, life: Life) -> bool:
        """The claim was in force, and the result was not what was asked for."""
        epoch = act.args["execution_epoch"]
        wrong = act.args["outputs"]["n"]["value"] == "none"
        return wrong and meets(act, life.held(epoch))

    REFUSALS: ClassVar[dict[str, Callable[["TaskReckoning", Act, Life], bool]]] = {
        "stale_epoch": stale,
        "lease_expired": expired,
        "already_claimed": held_by_another,
        "task_closed": is_closed,
        "invalid_outputs": does_not_fit,
    }
