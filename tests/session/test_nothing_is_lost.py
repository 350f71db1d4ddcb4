"""Whatever happens in whatever order, no acknowledged reminder is lost and none fires unbidden.

Hypothesis drives a world: reminders are added and cancelled, time passes, the clock is stepped, the
host grants, denies, refuses, keeps silent or answers late, the process is killed, the disk fails.
The model beside it knows only what the agent was told and what the host took.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.world import ACCEPTED, GRANT, Disk, World, accept, refuse, silence

HOUR = 3_600_000
ANSWERS = {
    "accept": accept,
    "refuse": refuse(-32603, "stopping"),
    "deny": refuse(-32002, "denied"),
    "silence": silence,
    "duplicate": lambda push: {"result": {"accepted": False, "reason": "duplicate"}},
    "nonsense": lambda push: {"result": [1]},
}
POLICIES: dict[str, Any] = {
    "grant": GRANT,
    "deny": {"effectiveCapabilities": ["tools"]},
    "none": {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": []},
    "malformed": {"effectiveCapabilities": 5},
}


class Night(RuleBasedStateMachine):
    """One night of an agent."""

    @initialize()
    def begin(self) -> None:
        self.mode = "accept"
        self.granted = False
        self.promised: dict[str, bool] = {}
        self.cancelled: set[str] = set()
        self.taken: set[str] = set()
        self.taken_events: set[str] = set()
        self.stepped = False
        self.world = World(Disk(), answer=self.answer)
        self.connect()

    def connect(self) -> None:
        self.granted = True
        self.world.connect()

    def answer(self, push: dict[str, Any]) -> dict[str, Any] | None:
        assert self.granted, "pushed without a grant"
        answer = ANSWERS[self.mode](push)
        if self.mode in ("accept", "duplicate"):
            self.note_taken(push)
        return answer

    def note_taken(self, push: dict[str, Any]) -> None:
        self.taken_events.add(push["eventId"])
        if "reminderId" in push["origin"]:
            self.taken.add(push["origin"]["reminderId"])

    @rule(seconds=st.integers(1, 9_000), recurring=st.booleans())
    def add(self, seconds: int, recurring: bool) -> None:
        when = {"everySeconds": max(5, seconds)} if recurring else {"inSeconds": seconds}
        result = self.world.call("reminder_add", message="m", **when)["structuredContent"]
        assert result["added"]
        assert result["saved"] is (self.world.disk.fail is None)
        if result["saved"]:
            self.promised[result["reminder"]["id"]] = recurring

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        pending = sorted(set(self.promised) - self.cancelled)
        if not pending:
            return
        id = data.draw(st.sampled_from(pending))
        result = self.world.call("reminder_cancel", id=id)["structuredContent"]
        if result["cancelled"]:
            self.cancelled.add(id)

    @rule(seconds=st.integers(0, 20_000))
    def pass_time(self, seconds: int) -> None:
        self.world.pass_time(seconds * 1000)

    @rule(seconds=st.integers(1, 90_000))
    def suspend(self, seconds: int) -> None:
        self.world.suspend(seconds * 1000)

    @rule(seconds=st.integers(-90_000, 90_000))
    def step_clock(self, seconds: int) -> None:
        self.stepped = True
        self.world.step_clock(seconds * 1000)

    @rule(mode=st.sampled_from(sorted(ANSWERS)))
    def host_answers(self, mode: str) -> None:
        self.mode = mode

    @rule(policy=st.sampled_from(sorted(POLICIES)))
    def policy(self, policy: str) -> None:
        self.granted = policy == "grant"
        self.world.request("featureSets/update", POLICIES[policy])

    @rule(data=st.data())
    def late_answer(self, data: st.DataObject) -> None:
        if self.world.pushes:
            index = data.draw(st.integers(0, len(self.world.pushes) - 1))
            before = set(self.world.disk.bytes)
            self.world.answer_push(index, ACCEPTED)
            assert set(self.world.disk.bytes) == before
            self.note_taken(self.world.pushes[index])

    @rule()
    def kill(self) -> None:
        self.world.boot()
        self.connect()

    @rule(full=st.booleans())
    def disk(self, full: bool) -> None:
        self.world.disk.fail = "No space left on device" if full else None

    @invariant()
    def nothing_promised_is_missing(self) -> None:
        if self.world.disk.fail is not None:
            return
        rows = {row["id"] for row in self.world.disk.rows()}
        for id, recurring in self.promised.items():
            if id in self.cancelled or (id in self.taken and not recurring):
                continue
            assert id in rows, f"{id} is lost"

    @invariant()
    def the_world_still_answers(self) -> None:
        assert self.world.request("ping")["result"] == {}
        assert not any("internal error" in line for line in self.world.logs)

    def teardown(self) -> None:
        """In the end the host is well again: every one-shot must reach it."""
        if not hasattr(self, "world"):
            return
        self.world.disk.fail = None
        self.mode = "accept"
        self.world.pass_time(30_000)
        self.world.boot()
        self.connect()
        self.world.pass_time(30 * HOUR)
        rows = {row["id"] for row in self.world.disk.rows()}
        for id, recurring in self.promised.items():
            if id not in self.cancelled:
                assert id in self.taken, f"{id} never reached the host"
                assert (id in rows) is recurring


TestNight = Night.TestCase
# A night is long: a seventh of what others try.
NIGHTS = settings.default.max_examples // 7
TestNight.settings = settings(max_examples=NIGHTS, stateful_step_count=25, deadline=None)
TestNight = pytest.mark.requirement(
    "seed.reminder.taken-changes", "seed.reminder.file-until-taken", "file.said-means-done"
)(TestNight)
