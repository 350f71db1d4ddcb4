"""What one process does with tasks: several agents' calls at random, right ones and wrong ones."""

import random
from typing import Any

from tests.task_histories.calls import CONTRACT, answer, outputs
from tests.watch_histories.worker import Server

SCOPES = ("build", "ship")
AGENTS = 2
OFTEN = {
    "sweep": 4,
    "create": 3,
    "claim": 12,
    "heartbeat": 10,
    "submit": 4,
    "release": 1,
    "again": 3,
    "stranger": 1,
    "cancel": 1,
    "beat": 4,
    "look": 3,
}
"""How often each thing is done."""


class Worker:
    """One that claims tasks under its own label; what it was told, it uses."""

    def __init__(self, server: Server, label: str, chance: random.Random) -> None:
        self.server = server
        self.label = label
        self.chance = chance
        self.held: list[tuple[int, str, int]] = []
        """Agent, task and epoch: what it holds as far as it knows."""
        self.past: list[tuple[str, int, dict[str, Any]]] = []
        """Calls under an epoch that was ours."""
        self.number = 0

    def call(self, tool: str, who: int, **args: Any) -> dict[str, Any] | None:
        """Make one call; ``None``: nobody knows what became of it."""
        calls = [(tool, who, args)]
        told = self.server.run("call", calls, lambda: answer(self.server.store, calls))
        return None if told is None else told[0]

    def act(self) -> None:
        """One more thing, and the time it took."""
        self.server.clock.advance(self.chance.choice((10, 100, 400, 900)))
        (kind,) = self.chance.choices(list(OFTEN), list(OFTEN.values()))
        getattr(self, kind)(self.chance.randrange(AGENTS))

    def sweep(self, _who: int) -> None:
        self.server.sweep()

    def create(self, who: int) -> None:
        chance = self.chance
        args: dict[str, Any] = {
            "input_snapshot": {"by": self.label},
            "output_contract": CONTRACT,
            "lease_seconds": 30,
            "timeout_seconds": chance.choice((40, 120, 240, 240)),
            "timeout_fallthrough": chance.choice(
                ("route_to_review", "continue_without_output", "fail")
            ),
        }
        if chance.random() < 0.5:
            args["dedupe_key"] = f"key {chance.randrange(12)}"
        self.call("create_agent_task", who, **args)

    def claim(self, who: int) -> None:
        chance = self.chance
        listed = self.call("list_agent_tasks", who, status="available")
        if not listed or not listed["data"]:
            self.create(who)
            return
        self.number += 1
        args: dict[str, Any] = {
            "task_id": chance.choice(listed["data"])["id"],
            "agent_id": self.label,
            "idempotency_key": f"{self.label}/{self.number}",
        }
        if chance.random() < 0.3:
            args["scope"] = chance.choice(SCOPES)
        if chance.random() < 0.3:
            args["guard"] = {"on_expiry": ["mark_failed"]}
        told = self.call("claim_agent_task", who, **args)
        if told is None or chance.random() < 0.2:
            # The answer is lost, perhaps: so once more.
            told = self.call("claim_agent_task", who, **args)
        if told and told.get("status") == "claimed":
            self.held.append((who, args["task_id"], told["execution_epoch"]))

    def heartbeat(self, who: int) -> None:
        note = {"note": f"at {self.number}"} if self.chance.random() < 0.5 else {}
        self._under("heartbeat_agent_task", who, keep=True, **note)

    def submit(self, who: int) -> None:
        self.number += 1
        wrong = self.chance.random() < 0.2
        result = {"n": {"value": "none"}} if wrong else outputs(self.number)
        self._under("submit_agent_task", who, keep=wrong, outputs=result)

    def release(self, who: int) -> None:
        final = {"final": True, "reason": "no use"} if self.chance.random() < 0.3 else {}
        self._under("release_agent_task", who, keep=False, **final)

    def _under(self, tool: str, who: int, *, keep: bool, **args: Any) -> None:
        """A call under a claim of ours that we believe in."""
        if not self.held:
            self.claim(who)
            return
        held = self.chance.choice(self.held)
        who, task, epoch = held
        args |= {"task_id": task, "execution_epoch": epoch}
        told = self.call(tool, who, **args)
        self.past.append((tool, who, args))
        if not keep or (told and told.get("status") == 409):
            self.held.remove(held)

    def again(self, who: int) -> None:
        """Any call that was made before, lost claim or not: it may not do what it must not."""
        if self.past:
            tool, who, args = self.chance.choice(self.past[-20:])
            self.call(tool, who, **args)

    def stranger(self, who: int) -> None:
        """Another agent's epoch on our task; another task is as one that is not there."""
        if self.held:
            owner, task, epoch = self.chance.choice(self.held)
            args = {"task_id": task, "execution_epoch": epoch}
            self.call("heartbeat_agent_task", (owner + 1) % AGENTS, **args)

    def cancel(self, who: int) -> None:
        if self.held:
            who, task, _ = self.chance.choice(self.held)
            self.call("create_agent_task", who, cancel_task_id=task)

    def beat(self, who: int) -> None:
        args = {
            "scope": self.chance.choice(SCOPES),
            "expect_within_seconds": self.chance.choice((5, 20, 40)),
        }
        self.call("heartbeat", who, **args)

    def look(self, who: int) -> None:
        if self.held and self.chance.random() < 0.5:
            who, task, _ = self.chance.choice(self.held)
            self.call("get_agent_task", who, task_id=task)
        else:
            self.call("list_agent_tasks", who, limit=100)
