"""Random calls, clocks and servers, held against the model."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.watch_histories.audit import audit
from tests.watch_histories.drive import Drive

AGENTS = st.integers(0, 2)
SCOPES = st.sampled_from(["build", "review", "ship"])
KEYS = st.sampled_from(["db", "disk", "key"])
BOXES = st.sampled_from(["inbox", "alerts"])
WINDOWS = st.sampled_from([2, 3, 5, 10, 30, 90])
TTLS = st.sampled_from([1, 3, 10, 60, 120])
SERVERS = st.integers(0, 1)
ACTIONS = st.lists(
    st.sampled_from(["release_leases", "mark_failed", "queue_alert"]), min_size=1, unique=True
)
FENCES = st.sampled_from(["none", "newest", "older", "made up"])
NOBODY = "agent:aaaaaaaaaaaaaaaa"


class Histories(RuleBasedStateMachine):
    """What agents, time and operators do to a store; a subclass says to which."""

    def make(self) -> Drive:
        """A drive on an empty store."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.drive = self.make()
        self.model = self.drive.model
        self.fences: dict[tuple[int, str], list[str]] = {}
        self.tasks: list[tuple[int, str, str]] = []

    def teardown(self) -> None:
        """At the end, all of the store is looked through."""
        if not self.drive.running:
            self.drive.open(0)
        self.drive.close()
        audit(self.drive.url)

    def call(self, server: int, tool: str, who: int, **args: Any) -> dict[str, Any]:
        """Ask a server that is there."""
        return self.drive.ask(self.slot(server), tool, who, **args)

    def slot(self, wish: int) -> int:
        """A server that runs, the wished one if it does."""
        running = self.drive.running
        return wish if wish in running else running[0]

    # Time and servers

    @rule(ms=st.sampled_from([1, 400, 1_999, 2_000, 5_000, 12_000]))
    def time_passes(self, ms: int) -> None:
        self.drive.let_pass(ms)

    @rule(ms=st.sampled_from([2_499, 2_500, 2_501, 4_000, 61_000, 3_600_000]))
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

    @precondition(lambda self: len(self.drive.running) == 2)
    @rule(server=SERVERS)
    def a_server_stops(self, server: int) -> None:
        self.drive.stop(server)

    @precondition(lambda self: len(self.drive.running) == 1)
    @rule(ms=st.sampled_from([0, 999, 1_000, 1_001, 5_000, 600_000]))
    def the_only_server_restarts(self, ms: int) -> None:
        (slot,) = self.drive.running
        self.drive.stop(slot)
        self.drive.advance(ms)
        self.drive.open(slot)

    # Switches

    @rule(
        server=SERVERS,
        who=AGENTS,
        scope=SCOPES,
        window=WINDOWS,
        actions=st.none() | ACTIONS,
        notify=AGENTS,
        box=BOXES,
        nudge=st.none() | st.integers(1, 4),
        label=st.none() | st.sampled_from(["w1", "w2"]),
    )
    def beat(self, server, who, scope, window, actions, notify, box, nudge, label) -> None:
        args: dict[str, Any] = {"scope": scope, "expect_within_seconds": window}
        if actions is not None:
            args["on_expiry"] = actions
            if "queue_alert" in actions:
                args["notify_address"] = f"{self.model.addresses[notify]}/{box}"
        if nudge is not None and nudge < window:
            args["nudge_seconds"] = nudge
        if label is not None:
            args["agent_id"] = label
        self.model.heartbeat(who, args, self.call(server, "heartbeat", who, **args))

    @rule(server=SERVERS, who=AGENTS, scope=SCOPES, window=WINDOWS, notify=st.none() | AGENTS)
    def another_address(self, server, who, scope, window, notify) -> None:
        address = NOBODY if notify is None else self.model.addresses[notify]
        args = {"scope": scope, "expect_within_seconds": window, "notify_address": address}
        self.model.heartbeat(who, args, self.call(server, "heartbeat", who, **args))

    @rule(
        server=SERVERS, beats=st.lists(st.tuples(AGENTS, SCOPES, WINDOWS), min_size=2, max_size=6)
    )
    def beats_together(self, server, beats) -> None:
        calls = [
            ("heartbeat", who, {"scope": scope, "expect_within_seconds": window})
            for who, scope, window in beats
        ]
        told = self.drive.ask_all(self.slot(server), calls)
        for (_, who, args), answer in zip(calls, told, strict=True):
            self.model.heartbeat(who, args, answer)

    @rule(server=SERVERS, who=AGENTS, scope=SCOPES)
    def disarm(self, server, who, scope) -> None:
        args = {"scope": scope, "expect_within_seconds": 5, "disarm": True}
        self.model.heartbeat(who, args, self.call(server, "heartbeat", who, **args))

    @rule(server=SERVERS, who=AGENTS)
    def status(self, server, who) -> None:
        self.model.status(who, self.call(server, "switch_status", who))

    # Leases

    def fence(self, who: int, key: str, which: str) -> str:
        """A fence such as somebody might show."""
        known = self.fences.get((who, key), [])
        if which == "newest" and known:
            return known[-1]
        if which == "older" and len(known) > 1:
            return known[-2]
        return "made up"

    @rule(
        server=SERVERS,
        who=AGENTS,
        key=KEYS,
        holder=st.sampled_from(["h1", "h2"]),
        scope=st.none() | SCOPES,
        ttl=TTLS,
        which=FENCES,
    )
    def lease(self, server, who, key, holder, scope, ttl, which) -> None:
        args: dict[str, Any] = {"key": key, "holder": holder, "ttl_seconds": ttl}
        if scope is not None:
            args["scope"] = scope
        if which != "none":
            args["fence"] = self.fence(who, key, which)
        told = self.call(server, "lease", who, **args)
        self.model.lease(who, args, told)
        if told["acquired"] and not told["renewed"]:
            self.fences.setdefault((who, key), []).append(told["fence"])

    @rule(server=SERVERS, who=AGENTS, key=KEYS, ttl=TTLS, which=FENCES)
    def renew(self, server, who, key, ttl, which) -> None:
        args = {
            "key": key,
            "fence": self.fence(who, key, which),
            "holder": self.holder(who, key),
            "ttl_seconds": ttl,
        }
        self.model.renew(who, args, self.call(server, "lease_renew", who, **args))

    @rule(server=SERVERS, who=AGENTS, key=KEYS, which=FENCES)
    def release(self, server, who, key, which) -> None:
        args = {
            "key": key,
            "fence": self.fence(who, key, which),
            "holder": self.holder(who, key),
        }
        self.model.release(who, args, self.call(server, "lease_release", who, **args))

    def holder(self, who: int, key: str) -> str:
        """The label of whoever took it last."""
        lock = self.model.locks.get((who, key))
        return lock.holder if lock else "h1"

    # Mail

    @rule(server=SERVERS, who=AGENTS, to=AGENTS, box=BOXES, scope=st.none() | SCOPES)
    def send(self, server, who, to, box, scope) -> None:
        args: dict[str, Any] = {"to": f"{self.model.addresses[to]}/{box}", "objective": "go on"}
        if scope is not None:
            args["scope"] = scope
        told = self.call(server, "send", who, **args)
        self.model.send(args, told, due=0)

    @rule(server=SERVERS, who=AGENTS)
    def send_to_nobody(self, server, who) -> None:
        args = {"to": NOBODY, "objective": "go on"}
        self.model.send(args, self.call(server, "send", who, **args), due=0)

    @rule(server=SERVERS, who=AGENTS, box=BOXES, hidden=st.sampled_from([5, 20, 300]))
    def poll(self, server, who, box, hidden) -> None:
        args = {"box": box, "visibility_timeout_seconds": hidden}
        told = self.call(server, "inbox_poll", who, **args)
        self.model.poll(who, args, told)
        if view := told["envelope"]:
            self.tasks.append((who, view["task_id"], view["delivery_token"]))

    @precondition(lambda self: self.tasks)
    @rule(
        server=SERVERS,
        data=st.data(),
        with_token=st.booleans(),
        status=st.sampled_from(["done", "failed"]),
        stranger=st.integers(0, 9),
    )
    def ack(self, server, data, with_token, status, stranger) -> None:
        who, task_id, token = data.draw(st.sampled_from(self.tasks))
        args = {"task_id": task_id, "status": status}
        if with_token:
            args["delivery_token"] = token
        who = (who + 1) % 3 if stranger == 0 else who
        self.model.ack(who, args, self.call(server, "inbox_ack", who, **args))

    @precondition(lambda self: self.tasks)
    @rule(
        server=SERVERS,
        data=st.data(),
        with_token=st.booleans(),
        delay=st.sampled_from([0, 4]),
        stranger=st.integers(0, 9),
    )
    def nack(self, server, data, with_token, delay, stranger) -> None:
        who, task_id, token = data.draw(st.sampled_from(self.tasks))
        args = {"task_id": task_id, "delay_seconds": delay}
        if with_token:
            args["delivery_token"] = token
        who = (who + 1) % 3 if stranger == 0 else who
        self.model.nack(who, args, self.call(server, "inbox_nack", who, **args))

    @rule(server=SERVERS, who=AGENTS, box=BOXES, tool=st.sampled_from(["inbox_ack", "inbox_nack"]))
    def a_reader_is_too_slow(self, server, who, box, tool) -> None:
        self.send(server, who, who, box, None)
        self.poll(server, who, box, 5)
        _, task_id, token = self.tasks[-1]
        self.drive.let_pass(6_000)
        self.poll(server, who, box, 20)
        args = {"task_id": task_id, "delivery_token": token}
        if tool == "inbox_ack":
            self.model.ack(who, args, self.call(server, tool, who, **args))
        else:
            args["delay_seconds"] = 0
            self.model.nack(who, args, self.call(server, tool, who, **args))

    @rule(server=SERVERS, who=AGENTS, scope=SCOPES, ttls=st.tuples(TTLS, TTLS), box=BOXES)
    def an_agent_dies(self, server, who, scope, ttls, box) -> None:
        for key, ttl in zip(("db", "disk"), ttls, strict=True):
            self.lease(server, who, key, "h1", scope, ttl, "newest")
        all_of_it = ["queue_alert", "mark_failed", "release_leases"]
        self.beat(server, who, scope, 3, all_of_it, who, box, None, None)
        self.drive.let_pass(4_000)
        self.poll(server, who, box, 5)

    # What is told of all this

    @rule(server=SERVERS, who=AGENTS, scope=SCOPES, step=st.sampled_from(["one", "two"]))
    def checkpoint(self, server, who, scope, step) -> None:
        args = {"scope": scope, "objective": f"{scope} it", "next_action": step}
        self.model.checkpoint(who, args, self.call(server, "checkpoint_put", who, **args))

    @rule(server=SERVERS, who=AGENTS, scope=SCOPES, box=BOXES)
    def resume(self, server, who, scope, box) -> None:
        args = {"scope": scope, "box": box}
        self.model.resume(who, args, self.call(server, "resume_packet", who, **args))

    @rule(server=SERVERS, who=AGENTS)
    def whoami(self, server, who) -> None:
        self.model.whoami(who, self.call(server, "whoami", who))

    @invariant()
    def somebody_is_there(self) -> None:
        assert self.drive.running
