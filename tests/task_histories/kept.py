"""The tasks of a history as the store kept them, and whether that is sound in itself.

Epochs rise by one and have one holder each; a task ends once; what ended an epoch was asked for by
somebody, and whoever was told that it is done finds it there.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import sqlalchemy as sa

from tests.watch_histories.audit import Row, audit
from tests.watch_histories.facts import Disagrees, expect
from tests.watch_histories.reckoning import NEVER, Act, moment, read

LEASE = 30_000
"""Of every task in these histories (ms); less than what a gap gives back at most."""
CLOSED = ("submitted", "timed_out", "cancelled", "failed")
WORK = {
    "heartbeat_agent_task": "heartbeat",
    "submit_agent_task": "submit",
    "release_agent_task": "release",
}


class Life:
    """One task as the store kept it: its row, and its epochs from the first claim on."""

    def __init__(self, row: Row, epochs: list[Row], payload: Row) -> None:
        self.row = row
        self.epochs = epochs
        self.outputs = json.loads(payload["outputs"]) if payload["outputs"] else None
        self.id: str = row["id"]
        self.by_epoch = {held["epoch"]: held for held in epochs}

    @property
    def closed_at(self) -> int:
        """When it ended."""
        timed_out = self.row["status"] == "timed_out"
        return int(self.row["timeout_at" if timed_out else "updated_at"])

    def at_epoch(self, epoch: int) -> tuple[int, int]:
        """From when to when it stood at an epoch, held or not."""
        begun = self.row["created_at"] if epoch == 1 else self.held(epoch)[0]
        later = self.by_epoch.get(epoch + 1)
        return begun, NEVER if later is None else later["claimed_at"]

    def held(self, epoch: int) -> tuple[int, int]:
        """From when to when a worker held it under an epoch."""
        row = self.by_epoch.get(epoch)
        if row is None:
            raise Disagrees(f"epoch {epoch} of {self.id} was told, and is not in the audit")
        return row["claimed_at"], row["ended_at"]


def meets(act: Act, span: tuple[int, int]) -> bool:
    """Whether it can have been carried out within that time."""
    return act.begun <= span[1] and act.ended >= span[0]


def within(act: Act, at: int) -> bool:
    """Whether it can have been carried out at that moment."""
    return act.begun <= at <= act.ended


class Kept:
    """All tasks, and what was called."""

    def __init__(self, url: str, logs: Iterable[Path], agents: list[str]) -> None:
        self.every = read(logs)
        self.acts = [act for act in self.every if act.args is not None and act.tool]
        self.shelf = audit(url)
        by_agent = {row["agent"]: row["namespace"] for row in self.shelf.identities}
        self.namespaces = [by_agent[agent.removeprefix("agent:")] for agent in agents]
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.connect() as conn:
            rows = self.shelf._rows(conn, "tasks")
            payloads = {row["task"]: row for row in self.shelf._rows(conn, "task_payloads")}
            epochs = self.shelf._rows(conn, "task_epochs ORDER BY task, epoch")
        engine.dispose()
        of: dict[str, list[Row]] = defaultdict(list)
        for row in epochs:
            of[row["task"]].append(row)
        self.lives = {row["id"]: Life(row, of[row["id"]], payloads[row["id"]]) for row in rows}
        self.work: dict[tuple[str, int], list[Act]] = defaultdict(list)
        """What was called under each epoch, by the task's own agent."""
        for act in self.acts:
            life = self.lives.get(self.id_of(act))
            if act.tool in WORK and life is not None and self.mine(act, life):
                self.work[life.id, act.args["execution_epoch"]].append(act)

    @staticmethod
    def id_of(act: Act) -> str:
        """The task that a call is about."""
        args = act.args or {}
        return str(args.get("task_id") or args.get("cancel_task_id"))

    def mine(self, act: Act, life: Life) -> bool:
        """Whether the caller is of the task's namespace."""
        return bool(self.namespaces[act.who] == life.row["namespace"])

    @staticmethod
    def taken(act: Act) -> bool:
        """Whether the call was carried out, as far as anybody was told."""
        return isinstance(act.told, dict) and "code" not in act.told

    def life(self, life: Life) -> None:
        """Epochs rise by one, one holder each, one end; and nothing is open at the end."""
        row, what = life.row, f"task {life.id}"
        expect(f"{what} at the end", row["status"] in CLOSED, True)
        numbers = [held["epoch"] for held in life.epochs]
        expect(f"epochs of {what}", numbers, list(range(2, row["epoch"] + 1)))
        free = row["created_at"]
        for held in life.epochs:
            begun, ended = life.held(held["epoch"])
            expect(f"an end of {held}", ended is not None and held["cause"] is not None, True)
            expect(f"one holder at a time: {held}", free <= begun <= ended, True)
            free = ended
        expect(f"{what} ends after its last holder", free <= life.closed_at, True)
        expect(f"{what} ends in time", life.closed_at <= row["timeout_at"], True)
        causes = [held["cause"] for held in life.epochs]
        final = [cause for cause in causes if cause in CLOSED]
        expect(f"only the last epoch of {what} ends it", final in ([], causes[-1:]), True)
        if row["status"] in ("submitted", "failed") or final:
            expect(f"{what} is {row['status']}", final, [row["status"]])
        expect(f"outputs of {what}", life.outputs is not None, row["status"] == "submitted")

    def claims(self, life: Life, acts: list[Act]) -> None:
        """Every claim that was confirmed has an epoch of its own, and every epoch a claim."""
        given: dict[int, Act] = {}
        for act in acts:
            if not self.taken(act):
                continue
            epoch = act.told["execution_epoch"]
            expect(f"a claim by a stranger: {act}", self.mine(act, life), True)
            held = life.held(epoch)
            if act.told["replayed"]:
                expect(f"replayed while it held: {act}", meets(act, held), True)
            else:
                expect(
                    f"two claims got epoch {epoch}: {act}, {given.get(epoch)}",
                    epoch in given,
                    False,
                )
                given[epoch] = act
                expect(f"claimed when it was called: {act}", within(act, held[0]), True)
                self.handover(life, act)
            expect(f"who holds it: {act}", life.by_epoch[epoch]["agent_id"], act.args["agent_id"])
        for held_row in life.epochs:
            if held_row["epoch"] in given:
                continue
            lost = [
                act
                for act in acts
                if not act.known
                and self.mine(act, life)
                and act.args["agent_id"] == held_row["agent_id"]
                and within(act, held_row["claimed_at"])
            ]
            expect(f"somebody claimed {held_row}", bool(lost), True)

    def handover(self, life: Life, act: Act) -> None:
        """Whoever claims is told who was there before, and how that ended."""
        before = life.by_epoch.get(act.told["execution_epoch"] - 1)
        told = act.told["handover"]
        if before is None:
            expect(f"handover of the first: {act}", told, None)
            return
        rule = (before["epoch"], before["agent_id"], before["cause"])
        expect("handover", (told["epoch"], told["agent_id"], told["cause"]), rule)
        notes = [held["note"] for held in life.epochs[: before["epoch"] - 1] if held["note"]]
        expect(f"note handed over: {act}", told["note"], notes[-1] if notes else None)

    def epoch(self, life: Life, held: Row) -> None:
        """Beats that were confirmed count; the lease lapses neither early nor late."""
        acts = self.work[life.id, held["epoch"]]
        begun, ended = held["claimed_at"], held["ended_at"]
        beats = [act for act in acts if WORK[act.tool] == "heartbeat"]
        known = [act for act in beats if self.taken(act)]
        unknown = [act for act in beats if not act.known]
        counted = len(known) <= held["beats"] <= len(known) + len(unknown)
        expect(f"beats of {held}: {len(known)}, perhaps {len(unknown)} more", counted, True)
        if held["cause"] == "lapsed":
            last = max([begun, *(act.begun for act in known)])
            expect(f"{held} lapsed early, renewed at {last}", ended >= last + LEASE, True)
        if ended == begun:
            return
        renewals = [(begun, begun), *((act.begun, act.ended) for act in known + unknown)]
        for act in [act for act in acts if self.taken(act) and not act.told.get("replayed")]:
            latest = max(end for start, end in renewals if start <= act.begun)
            if latest < act.begun and not self.gap_between(latest, act.begun):
                expect(f"lapsed when it was taken: {act}", act.begun - latest < LEASE, True)

    def caused(self, life: Life) -> None:
        """What somebody has to have asked for was asked for, and not refused."""
        tools = {"submitted": "submit", "released": "release", "failed": "release"}
        for held in life.epochs:
            if held["cause"] not in tools:
                continue
            acts = [
                act
                for act in self.work[life.id, held["epoch"]]
                if WORK[act.tool] == tools[held["cause"]]
                and (self.taken(act) or not act.known)
                and within(act, held["ended_at"])
                and (held["cause"] != "submitted" or act.args["outputs"] == life.outputs)
            ]
            expect(f"somebody asked for the end of {held}", bool(acts), True)
        if life.row["status"] == "cancelled":
            acts = [
                act
                for act in self.acts
                if (act.args or {}).get("cancel_task_id") == life.id
                and (self.taken(act) or not act.known)
                and within(act, life.closed_at)
            ]
            expect(f"somebody cancelled {life.id}", bool(acts), True)

    def gap_between(self, begin: int, end: int) -> bool:
        """Whether there was a time in which nobody watched."""
        return any(gap["began"] <= end and gap["ended"] >= begin for gap in self.shelf.gaps)

    def given_back(self) -> None:
        """What fires gave back is what was lost by a fire, each once, and at its deadline."""
        told = Counter(
            (task["id"], task["execution_epoch"], self.deadline(fire))
            for fire in self.shelf.fires()
            for task in fire["detail"].get("released_tasks", ())
        )
        lost: dict[tuple[str, int], int] = {
            (life.id, held["epoch"]): held["ended_at"]
            for life in self.lives.values()
            for held in life.epochs
            if held["cause"] == "switch_fired"
        }
        expect("given back twice", [key for key, count in told.items() if count > 1], [])
        given = {(id, epoch): at for id, epoch, at in told}
        expect("given back by fires", given.keys(), lost.keys())
        for key, at in given.items():
            expect(f"when {key} was lost by the fire", lost[key], at)

    @staticmethod
    def deadline(fire: Row) -> int:
        """The true deadline of a fire (real ms), of which the journal tells in wall time."""
        late = moment(fire["detail"]["noticed_at"]) - moment(fire["detail"]["deadline"])
        return int(fire["at"]) - late

    def reviews(self) -> None:
        """Each task that timed out is in the review's box once, if it was to be."""
        found = Counter(
            json.loads(mail["context"])["task_id"]
            for mail in self.shelf.envelopes
            if mail["box"] == "review"
        )
        rule = Counter(
            life.id
            for life in self.lives.values()
            if (life.row["status"], life.row["fallthrough"]) == ("timed_out", "route_to_review")
        )
        expect("reviews", found, rule)
