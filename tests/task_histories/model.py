"""A small model of tasks, written from their rules alone and kept in plain memory.

Like the model of the watch, which it stands on for switches, gaps and clocks, it judges what a
store told of a call. A guard is not modelled as a switch: its window is the lease and it is beaten
with it, so its fire is the lapse of the lease, told by another name.

What ends a claim is whatever came first: its timeout, before all that comes in the same
millisecond; the deadline of its scope's switch; that of its guard; the lapse.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.task_histories.calls import CONTRACT
from tests.watch_histories.facts import Told, expect, instant
from tests.watch_histories.model import Model

LEASES_S = (30, 90)
GRACE = 60_000
CLOSED = ("submitted", "timed_out", "cancelled", "failed")


@dataclass
class Held:
    """An epoch; times are real."""

    epoch: int
    label: str | None
    claimed: int
    beats: int = 0
    ended: int | None = None
    cause: str | None = None
    note: str | None = None


@dataclass
class Job:
    """A task; ``expires`` is watched time."""

    who: int
    created: int
    lease: int
    timeout: int
    fallthrough: str
    snapshot: Any
    status: str = "available"
    epoch: int = 1
    expires: int | None = None
    scope: str | None = None
    guard: bool = False
    key: str | None = None
    outputs: Any = None
    summary: str | None = None
    held: list[Held] = field(default_factory=list)


class TaskModel(Model):
    """Several agents' tasks on one store, beside their switches."""

    def __init__(self, real: int) -> None:
        super().__init__(real)
        self.jobs: dict[str, Job] = {}
        """In the order in which they were made."""
        self.keys: dict[tuple[int, str], str] = {}

    # What happens by itself

    def gap(self, began: int, ended: int) -> None:
        """Nobody watched: a lease that lies ahead is given time to be renewed."""
        super().gap(began, ended)
        for job in self.jobs.values():
            least = self.watched + min(job.lease, GRACE)
            held = job.expires is not None and self.real < job.timeout
            if held and self.watched < job.expires < least:
                job.expires = least

    def fire(self, who: int, scope: str) -> None:
        """A missed beat gives back what is claimed under its scope, if nothing else came first."""
        super().fire(who, scope)
        at = self.real_of(self.switches[who, scope].deadline)
        for job in self.jobs.values():
            if job.who == who and job.scope == scope and job.status == "claimed":
                assert job.expires is not None
                lapse = self.real_of(job.expires)
                if job.timeout <= at:
                    self.guard(job)
                    self.time_out(job)
                elif lapse < at:
                    self.give_back(job, "switch_fired" if job.guard else "lapsed", lapse)
                else:
                    self.give_back(job, "switch_fired", at)

    def swept(self, fired: int) -> None:
        """All that is due is done; guards are among what fired."""
        due = self.due()
        for who, scope in due:
            self.fire(who, scope)
        for job in self.jobs.values():
            self.settle(job)
        expect("fired by the sweep, at least", fired >= len(due), True)

    def time_out(self, job: Job) -> None:
        """At its timeout a task is over, whoever holds it."""
        if job.status not in CLOSED and self.real >= job.timeout:
            if job.expires is not None:
                lapse = self.real_of(job.expires)
                early = lapse < job.timeout
                self.end(job, *(("lapsed", lapse) if early else ("timed_out", job.timeout)))
            job.status, job.expires, job.scope, job.guard = "timed_out", None, None, False

    def guard(self, job: Job) -> None:
        """The switch of a claim fires when its lease lapses, if that is before the timeout."""
        if job.status == "claimed" and job.guard and job.expires is not None:
            at = self.real_of(job.expires)
            if job.expires <= self.watched and at < job.timeout:
                self.give_back(job, "switch_fired", at)

    def give_back(self, job: Job, cause: str, at: int) -> None:
        """Its worker lost it then, and it can be claimed again."""
        self.end(job, cause, at)
        job.status, job.expires, job.scope, job.guard = "available", None, None, False

    def end(self, job: Job, cause: str, at: int) -> None:
        """The running epoch was over at that time."""
        job.held[-1].ended, job.held[-1].cause = at, cause

    def settle(self, job: Job) -> None:
        """Do what is due on a task before anything else is done with it, in its order."""
        if job.status == "claimed" and job.scope is not None:
            self.switch(job.who, job.scope)
        self.guard(job)
        self.time_out(job)

    def live(self, job: Job) -> bool:
        """Whether a worker holds it."""
        return job.expires is not None and self.watched < job.expires and self.real < job.timeout

    # The calls

    def find(self, who: int, args: Told, told: Told) -> Job | None:
        """The task that a call is about, settled; ``None`` when it is not the caller's."""
        job = self.jobs.get(args.get("task_id", args.get("cancel_task_id")))
        if job is None or job.who != who:
            expect("code", told.get("code"), "unknown_task")
            return None
        self.settle(job)
        return job

    def create(self, who: int, args: Told, told: Told) -> None:
        """A new one, or the one that the dedupe key names."""
        key = args.get("dedupe_key")
        known = self.keys.get((who, key)) if key is not None else None
        expect("created", told.get("created"), known is None)
        if known is not None:
            expect("the same task", told["id"], known)
            self.settle(self.jobs[known])
        else:
            job = Job(
                who=who,
                created=self.real,
                lease=args["lease_seconds"] * 1000,
                timeout=self.real + args["timeout_seconds"] * 1000,
                fallthrough=args["timeout_fallthrough"],
                snapshot=args["input_snapshot"],
            )
            expect("an id of its own", told["id"] in self.jobs, False)
            self.jobs[told["id"]] = job
            if key is not None:
                self.keys[who, key] = told["id"]
        self.record(self.jobs[told["id"]], told)

    def cancel(self, who: int, args: Told, told: Told) -> None:
        """The end, whoever holds it; twice is as once."""
        job = self.find(who, args, told)
        if job is None:
            return
        if job.status in CLOSED and job.status != "cancelled":
            self.refused(job, told, "task_closed")
            return
        expect("cancelled", told.get("cancelled"), True)
        if job.status != "cancelled":
            self.stop(job, "cancelled", "cancelled")
        self.record(job, told)

    def stop(self, job: Job, status: str, cause: str) -> None:
        """It comes to this status; a claim in force ends with it, one that lapsed did before."""
        if job.expires is not None:
            lapse = self.real_of(job.expires)
            live = self.live(job)
            self.end(job, *((cause, self.real) if live else ("lapsed", lapse)))
        job.status, job.expires, job.scope, job.guard = status, None, None, False

    def claim(self, who: int, args: Told, told: Told) -> None:
        """Take it, unless somebody holds it."""
        if args.get("scope") is not None:
            self.switch(who, args["scope"])
        job = self.find(who, args, told)
        if job is None:
            return
        if job.status in CLOSED:
            self.refused(job, told, "task_closed")
            return
        key = args.get("idempotency_key")
        replayed = self.live(job) and key is not None and key == job.key
        if self.live(job) and not replayed:
            self.refused(job, told, "already_claimed")
            return
        expect("code", told.get("code"), None)
        expect("replayed", told["replayed"], replayed)
        if not replayed:
            if job.status == "claimed":
                assert job.expires is not None
                self.end(job, "lapsed", self.real_of(job.expires))
            job.epoch += 1
            job.status, job.expires, job.key = "claimed", self.watched + job.lease, key
            job.scope, job.guard = args.get("scope"), "guard" in args
            job.held.append(Held(job.epoch, args.get("agent_id"), self.real))
        expect("snapshot", told["input_snapshot"], job.snapshot)
        expect("contract", [field["key"] for field in told["output_contract"]], ["n"])
        guarded = f"task:{args['task_id']}" if job.guard else None
        expect("guard_scope", told["guard_scope"], guarded)
        self.record(job, told)
        if not replayed:
            self.handover(job, told["handover"])

    def handover(self, job: Job, told: Told | None) -> None:
        """What the claimant before left; a new claim has left nothing itself yet."""
        before = job.held[-2] if len(job.held) > 1 else None
        if told is None or before is None:
            expect("handover", told, before)
            return
        expect("epoch handed over", told["epoch"], before.epoch)
        expect("worker before", told["agent_id"], before.label)
        expect("cause handed over", told["cause"], before.cause)
        noted = [held for held in job.held[:-1] if held.note is not None]
        note = (noted[-1].note, noted[-1].epoch) if noted else (None, None)
        expect("note", (told["note"], told["note_epoch"]), note)

    def under(self, who: int, args: Told, told: Told) -> Job | None:
        """The task of a call under a claim that is in force; ``None``: it had to be refused."""
        job = self.find(who, args, told)
        if job is None:
            return None
        code = None
        if job.status in CLOSED:
            code = "task_closed"
        elif args["execution_epoch"] != job.epoch:
            code = "stale_epoch"
        elif not self.live(job):
            code = "lease_expired"
        if code is not None:
            self.refused(job, told, code)
            return None
        return job

    def renew_claim(self, who: int, args: Told, told: Told) -> None:
        """A heartbeat: a whole lease from now; the timeout stays."""
        job = self.under(who, args, told)
        if job is None:
            return
        expect("code", told.get("code"), None)
        job.expires = self.watched + job.lease
        job.held[-1].beats += 1
        job.held[-1].note = args.get("note", job.held[-1].note)
        self.record(job, told)

    def submit(self, who: int, args: Told, told: Told) -> None:
        """A result; the same again is the stored one."""
        job = self.find(who, args, told)
        if job is None:
            return
        result = (args["outputs"], args.get("summary"))
        again = job.status == "submitted" and args["execution_epoch"] == job.epoch
        if again and result == (job.outputs, job.summary):
            expect("replayed", told.get("replayed"), True)
            self.record(job, told)
            return
        job = self.under(who, args, told)
        if job is None:
            return
        if problems := self.problems(args["outputs"]):
            expect("code", told.get("code"), "invalid_outputs")
            expect("problems", len(told["problems"]), problems)
            expect("epoch", told["execution_epoch"], job.epoch)
            return
        expect("replayed", told.get("replayed"), False)
        job.outputs, job.summary = result
        self.stop(job, "submitted", "submitted")
        self.record(job, told)

    @staticmethod
    def problems(outputs: Told) -> int:
        """How many: the contract asks for a whole number ``n`` and nothing else."""
        count = sum(key != CONTRACT[0]["key"] for key in outputs)
        value = outputs.get("n", {}).get("value")
        whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
        return count + (not whole)

    def release_task(self, who: int, args: Told, told: Told) -> None:
        """Back to where it can be claimed, or with ``final`` its end."""
        job = self.under(who, args, told)
        if job is None:
            return
        expect("code", told.get("code"), None)
        job.held[-1].note = args.get("note", job.held[-1].note)
        if args.get("final"):
            self.stop(job, "failed", "failed")
        else:
            self.stop(job, "available", "released")
        self.record(job, told)

    def guard_seen(self, who: int, id: str, told: Told) -> None:
        """The switch of a guard: armed just while the claim is in force."""
        job = self.jobs.get(id)
        mine = job is not None and job.who == who
        if mine:
            self.settle(job)
        armed = [view["state"] for view in told["switches"]] == ["armed"]
        expect("the guard is armed", armed, mine and job.guard)

    # What is told

    def refused(self, job: Job, told: Told, code: str) -> None:
        """A refusal, and what it says of the claim that stands."""
        expect("code", told.get("code"), code)
        expect("status", told["status"], 409)
        epoch = None if code == "already_claimed" else job.epoch
        expect("epoch told", told.get("execution_epoch"), epoch)
        if self.live(job):
            expect("holder", told.get("holder"), job.held[-1].label)
            expect("lease_expires_at", instant(told["lease_expires_at"]), self.lease_end(job))
        if code != "already_claimed":
            expect("what to do", told["next"].startswith("Stop: discard the work"), True)

    def lease_end(self, job: Job) -> int | None:
        """When the lease ends, as told."""
        if job.expires is None:
            return None
        return self.told(min(self.real_of(job.expires), job.timeout))

    def record(self, job: Job, told: Told) -> None:
        """The metadata."""
        expect("status", told["status"], job.status)
        claimable = job.status not in CLOSED and not self.live(job)
        expect("claimable", told["claimable"], claimable)
        expect("epoch", told["execution_epoch"], job.epoch)
        expect("lease_expires_at", instant(told["lease_expires_at"]), self.lease_end(job))
        expect("timeout_at", instant(told["timeout_at"]), self.told(job.timeout))
        expect("created_at", instant(told["created_at"]), self.told(job.created))
        if "seconds_left" in told:
            end = self.lease_end(job)
            left = None
            if end is not None:
                left = (end - self.told(self.real)) / 1000 if self.live(job) else 0
            expect("seconds_left", told["seconds_left"], left)
            expect("server_time", instant(told["server_time"]), self.told(self.real))
        if job.status == "claimed":
            expect("agent_id", told["agent_id"], job.held[-1].label)

    def get(self, who: int, args: Told, told: Told) -> None:
        """All of it, with the audit."""
        job = self.find(who, args, told)
        if job is None:
            return
        self.record(job, told)
        expect("outputs", told["outputs"], job.outputs)
        expect("how many epochs", len(told["epochs"]), len(job.held))
        for view, held in zip(told["epochs"], job.held, strict=True):
            rule = (held.epoch, held.label, held.beats, held.note)
            names = ("execution_epoch", "agent_id", "beats", "note")
            expect("an epoch", tuple(view[name] for name in names), rule)
            expect("claimed_at", instant(view["claimed_at"]), self.told(held.claimed))
            ended = None if held.ended is None else self.told(held.ended)
            expect("ended_at", instant(view["ended_at"]), ended)
            expect("cause", view["cause"], held.cause)

    def listed(self, who: int, args: Told, pages: Sequence[Told]) -> None:
        """A list, page by page: each task once, in their order, as it is now."""
        for owner, scope in self.due():
            if owner == who:
                self.fire(owner, scope)
        status = args.get("status")
        mine = {}
        for id, job in self.jobs.items():
            if job.who == who:
                self.settle(job)
                mine[id] = job
        shown = [told for page in pages for told in page["data"]]
        wanted = [id for id, job in mine.items() if status in (None, self.place(job))]
        if status == "claimed":
            wanted = [id for id in wanted if self.live(mine[id])]
        expect("listed", [told["id"] for told in shown], wanted)
        for told in shown:
            self.record(mine[told["id"]], told)

    def place(self, job: Job) -> str:
        """Which list it is in: what has lapsed is to be had."""
        return "available" if job.status == "claimed" and not self.live(job) else job.status
