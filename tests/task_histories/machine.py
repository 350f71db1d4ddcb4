"""Random calls on tasks, clocks and servers, held against the model."""

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcpl_heartbeat.catalogue import READS
from mcpl_heartbeat.storage.store.ports import Unsettled
from tests.task_histories.calls import CONTRACT, ask
from tests.task_histories.kept import Kept
from tests.task_histories.model import LEASES_S, TaskModel
from tests.watch_histories.drive import STALLED, STOPPED, Drive
from tests.watch_histories.fileclock import WALL, FileClock

AGENTS = st.integers(0, 1)
SCOPES = st.sampled_from(["build", "ship"])
SERVERS = st.integers(0, 1)
WINDOWS = st.sampled_from([2, 10, 29, 31, 60])
NUMBERS = st.integers(0, 9)
LABELS = st.sampled_from(["w1", "w2"])
NOTES = st.none() | st.sampled_from(["begun", "half way"])
OUTPUTS = st.sampled_from(
    [
        {"n": {"value": 1}},
        {"n": {"value": 1}},
        {"n": {"value": 2.0}},
        {"n": {"value": "1"}},
        {"n": {"value": True}},
        {},
        {"n": {"value": 1}, "m": {"value": 1}},
    ]
)
NOBODYS = "00000000-0000-4000-8000-000000000000"
FALLTHROUGHS = st.sampled_from(["route_to_review", "continue_without_output", "fail"])


class TaskDrive(Drive):
    """Up to two servers on one store, and the model of tasks beside them."""

    model: TaskModel

    def __init__(self, url: str, clock: FileClock) -> None:
        super().__init__(url, clock)
        told, self.model = self.model, TaskModel(WALL)
        vars(self.model).update(vars(told))

    def ask_all(
        self, slot: int, calls: list[tuple[str, int | None, Mapping[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Calls in one transaction, or one that only reads."""
        store = self.stores[slot]
        assert store is not None
        asks = [ask(tool, who, dict(args)) for tool, who, args in calls]
        outcomes = None
        # Who only reads notes no gap: what it tells of one is not to be learned.
        watched = self.model.real - self.model.watched_until < STALLED - STOPPED
        if len(asks) == 1 and asks[0].tool in READS and watched:
            with contextlib.suppress(Unsettled):
                outcomes = [store.look(asks[0])]
        if outcomes is None:
            outcomes = store.answer(asks)
            self.learn(STALLED)
        return [msgspec.json.decode(msgspec.json.encode(outcome)) for outcome in outcomes]


class TaskHistories(RuleBasedStateMachine):
    """What workers, time and operators do to the tasks of a store; a subclass says to which."""

    def make(self) -> TaskDrive:
        """A drive on an empty store."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.drive = self.make()
        self.model = self.drive.model
        self.made: list[tuple[int, str]] = []

    def teardown(self) -> None:
        """At the end all of it is over, and the store is looked through."""
        if not self.drive.running:
            self.drive.open(0)
        last = max((job.timeout for job in self.model.jobs.values()), default=0)
        self.drive.advance(max(0, last - self.model.real))
        (slot, *_) = self.drive.running
        self.drive.sweep(slot)
        for who, id in self.made:
            self.model.get(who, {"task_id": id}, self.call(slot, "get_agent_task", who, task_id=id))
        self.drive.close()
        kept = Kept(self.drive.url, [], self.model.addresses)
        kept.given_back()
        kept.reviews()
        for life in kept.lives.values():
            kept.life(life)

    def call(self, server: int, tool: str, who: int, **args: Any) -> dict[str, Any]:
        """Ask a server that is there."""
        return self.drive.ask(self.slot(server), tool, who, **args)

    def slot(self, wish: int) -> int:
        """A server that runs, the wished one if it does."""
        running = self.drive.running
        return wish if wish in running else running[0]

    def chosen(self, number: int, stranger: int) -> tuple[int, str]:
        """Whose task, and which: mostly one of the last few, and seldom one of another."""
        if not self.made:
            return 0, NOBODYS
        who, id = self.made[-1 - number % len(self.made)]
        return ((who + 1) % 2 if stranger == 0 else who), id

    def epoch(self, id: str, back: int) -> int:
        """The present epoch, or one that was."""
        job = self.model.jobs.get(id)
        return max(1, (job.epoch if job else 1) - back)

    # Time and servers

    @rule(ms=st.sampled_from([1, 1_999, 2_000, 5_000, 29_999, 30_000, 31_000]))
    def time_passes(self, ms: int) -> None:
        self.drive.let_pass(ms)

    @rule(ms=st.sampled_from([2_499, 2_501, 29_000, 61_000]))
    def nobody_watches(self, ms: int) -> None:
        for slot in self.drive.running:
            self.drive.sweep(slot)
        self.drive.advance(ms)

    @rule(off=st.sampled_from([0, 900, 3_600_000, -3_600_000]))
    def the_wall_clock_is_set(self, off: int) -> None:
        self.drive.set_wall(off)

    @rule(server=SERVERS)
    def sweep(self, server: int) -> None:
        self.drive.sweep(self.slot(server))

    @precondition(lambda self: len(self.drive.running) < 2)
    @rule(server=SERVERS)
    def a_server_starts(self, server: int) -> None:
        self.drive.open(server)

    @precondition(lambda self: len(self.drive.running) == 1)
    @rule(ms=st.sampled_from([0, 999, 1_001, 5_000, 40_000]))
    def the_only_server_restarts(self, ms: int) -> None:
        (slot,) = self.drive.running
        self.drive.stop(slot)
        self.drive.advance(ms)
        self.drive.open(slot)

    # What is called

    @rule(
        server=SERVERS,
        who=AGENTS,
        lease=st.sampled_from(LEASES_S),
        longer=st.sampled_from([0, 5, 60, 600]),
        fallthrough=FALLTHROUGHS,
        key=st.none() | st.sampled_from(["k1", "k2"]),
    )
    def create(self, server, who, lease, longer, fallthrough, key) -> None:
        args: dict[str, Any] = {
            "input_snapshot": {"number": len(self.made)},
            "output_contract": CONTRACT,
            "lease_seconds": lease,
            "timeout_seconds": lease + longer,
            "timeout_fallthrough": fallthrough,
        }
        if key is not None:
            args["dedupe_key"] = key
        told = self.call(server, "create_agent_task", who, **args)
        self.model.create(who, args, told)
        if told["created"]:
            self.made.append((who, told["id"]))

    @rule(
        server=SERVERS,
        number=NUMBERS,
        stranger=NUMBERS,
        label=LABELS,
        key=st.none() | st.sampled_from(["a", "b"]),
        scope=st.none() | SCOPES,
        guard=st.booleans(),
    )
    def claim(self, server, number, stranger, label, key, scope, guard) -> None:
        who, id = self.chosen(number, stranger)
        args: dict[str, Any] = {"task_id": id, "agent_id": label}
        if key is not None:
            args["idempotency_key"] = key
        if scope is not None:
            args["scope"] = scope
        if guard:
            args["guard"] = {}
        self.model.claim(who, args, self.call(server, "claim_agent_task", who, **args))

    @rule(
        server=SERVERS,
        number=NUMBERS,
        stranger=NUMBERS,
        back=st.sampled_from([0, 0, 1]),
        note=NOTES,
    )
    def heartbeat(self, server, number, stranger, back, note) -> None:
        who, id = self.chosen(number, stranger)
        args: dict[str, Any] = {"task_id": id, "execution_epoch": self.epoch(id, back)}
        if note is not None:
            args["note"] = note
        told = self.call(server, "heartbeat_agent_task", who, **args)
        self.model.renew_claim(who, args, told)

    @rule(
        server=SERVERS,
        number=NUMBERS,
        stranger=NUMBERS,
        back=st.sampled_from([0, 0, 1]),
        outputs=OUTPUTS,
        summary=st.none() | st.just("done"),
    )
    def submit(self, server, number, stranger, back, outputs, summary) -> None:
        who, id = self.chosen(number, stranger)
        args = {"task_id": id, "execution_epoch": self.epoch(id, back), "outputs": outputs}
        if summary is not None:
            args["summary"] = summary
        self.model.submit(who, args, self.call(server, "submit_agent_task", who, **args))

    @rule(
        server=SERVERS,
        number=NUMBERS,
        stranger=NUMBERS,
        back=st.sampled_from([0, 0, 1]),
        note=NOTES,
        final=st.integers(0, 3),
    )
    def release(self, server, number, stranger, back, note, final) -> None:
        who, id = self.chosen(number, stranger)
        args: dict[str, Any] = {"task_id": id, "execution_epoch": self.epoch(id, back)}
        if note is not None:
            args["note"] = note
        if final == 0:
            args |= {"final": True, "reason": "no use"}
        told = self.call(server, "release_agent_task", who, **args)
        self.model.release_task(who, args, told)

    @precondition(lambda self: len(self.made) > 2)
    @rule(server=SERVERS, number=NUMBERS, stranger=NUMBERS)
    def cancel(self, server, number, stranger) -> None:
        who, id = self.chosen(number, stranger)
        args = {"cancel_task_id": id}
        self.model.cancel(who, args, self.call(server, "create_agent_task", who, **args))

    @rule(server=SERVERS, who=AGENTS, scope=SCOPES, window=WINDOWS, disarm=st.integers(0, 4))
    def beat(self, server, who, scope, window, disarm) -> None:
        args: dict[str, Any] = {"scope": scope, "expect_within_seconds": window}
        if disarm == 0:
            args["disarm"] = True
        told = self.call(server, "heartbeat", who, **args)
        self.model.heartbeat(who, args, told)

    @rule(server=SERVERS, number=NUMBERS, stranger=NUMBERS)
    def look_at_the_guard(self, server, number, stranger) -> None:
        who, id = self.chosen(number, stranger)
        told = self.call(server, "switch_status", who, scope=f"task:{id}")
        self.model.guard_seen(who, id, told)

    @rule(server=SERVERS, number=NUMBERS, stranger=NUMBERS)
    def get(self, server, number, stranger) -> None:
        who, id = self.chosen(number, stranger)
        args = {"task_id": id}
        self.model.get(who, args, self.call(server, "get_agent_task", who, **args))

    @rule(
        server=SERVERS,
        who=AGENTS,
        status=st.none()
        | st.sampled_from(
            ["available", "claimed", "submitted", "timed_out", "cancelled", "failed"]
        ),
        limit=st.sampled_from([1, 2, 100]),
    )
    def list(self, server, who, status, limit) -> None:
        args: dict[str, Any] = {"limit": limit} | ({"status": status} if status else {})
        pages = [self.call(server, "list_agent_tasks", who, **args)]
        while cursor := pages[-1]["pagination"]["next_cursor"]:
            more = self.call(server, "list_agent_tasks", who, **args, cursor=cursor)
            pages.append(more)
        self.model.listed(who, args, pages)

    @invariant()
    def somebody_is_there(self) -> None:
        assert self.drive.running
