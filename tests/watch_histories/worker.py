"""One server of a history: it calls a real store at random and writes down what it was told.

Each line of its log is written at once, before the call what is asked and after it what was told,
so that whatever ends the process, the log says all that it knew.
"""

import contextlib
import json
import os
import random
from pathlib import Path
from typing import Any

import msgspec

from mcpl_heartbeat.storage.store.ports import Ask, StoreError, Unsettled
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.tools import READS, TOOLS
from tests.watch_histories.fileclock import FileClock

ARGUMENTS = {tool.name: tool.arguments for tool in TOOLS}
SECRETS = [f"secret of agent {number}, not to be guessed by anybody" for number in range(3)]
SCOPES = ("build", "review", "ship")
KEYS = ("db", "disk")
OFTEN = {
    "sweep": 6,
    "beats": 8,
    "disarm": 1,
    "lease": 4,
    "renew": 2,
    "release": 1,
    "send": 2,
    "poll": 2,
    "ack": 2,
    "look": 1,
}
"""How often each thing is done, of what a worker does."""
Call = tuple[str, int, dict[str, Any]]


class Log:
    """What this process asked and was told."""

    def __init__(self, path: Path, clock: FileClock) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._clock = clock
        self._number = 0

    def asked(self, what: str, calls: list[Call]) -> None:
        """Before."""
        self._number += 1
        self._write({"what": what, "calls": calls})

    def told(self, told: Any) -> None:
        """After."""
        self._write({"told": told})

    def _write(self, line: dict[str, Any]) -> None:
        line |= {"n": self._number, "at": self._clock.real}
        os.write(self._file, json.dumps(line).encode() + b"\n")


class Server:
    """A store, and how calls to it are logged."""

    def __init__(self, url: str, clock: FileClock, log: Path, *, still: bool = False) -> None:
        """``still``: time stands while a call is carried out."""
        self.clock = clock
        self.still = still
        self.log = Log(log, clock)
        self.store = Store(url, clock=clock)

    def run(self, what: str, calls: list[Call], do: Any) -> Any:
        """Do it, with a line before and one after."""
        with self.clock.still() if self.still else contextlib.nullcontext():
            self.log.asked(what, calls)
            try:
                told = do()
            except StoreError as error:
                self.log.told({"unavailable": str(error)})
                return None
            self.log.told(told)
            return told

    def open(self) -> bool:
        """Start."""
        return self.run("open", [], lambda: self.store.open() or True) is True

    def close(self) -> None:
        """Stop in good order."""
        self.run("close", [], self.store.close)

    def sweep(self) -> None:
        """Look for what is due."""
        self.run("sweep", [], lambda: self.store.sweep(100).fired)

    def call(self, *calls: Call) -> list[dict[str, Any]] | None:
        """Calls in one transaction."""
        return self.run("call", list(calls), lambda: self._answer(calls))

    def _answer(self, calls: tuple[Call, ...]) -> list[dict[str, Any]]:
        asks = [Ask(tool, ARGUMENTS[tool](**args), SECRETS[who]) for tool, who, args in calls]
        outcomes = None
        if len(asks) == 1 and asks[0].tool in READS:
            with contextlib.suppress(Unsettled):
                outcomes = [self.store.look(asks[0])]
        if outcomes is None:
            outcomes = self.store.answer(asks)
        return [msgspec.json.decode(msgspec.json.encode(outcome)) for outcome in outcomes]


class Agents:
    """Several agents that call at random; what one process was told, it uses."""

    def __init__(self, server: Server, addresses: list[str], chance: random.Random) -> None:
        self.server = server
        self.addresses = addresses
        self.chance = chance
        self.fences: dict[tuple[int, str], str] = {}
        self.tasks: dict[int, tuple[str, str]] = {}

    def act(self) -> None:
        """One more thing, and the time it took."""
        self.server.clock.advance(self.chance.choice((5, 20, 100, 400)))
        chance = self.chance
        who = chance.randrange(3)
        kind = chance.choices(
            (
                "sweep",
                "beats",
                "disarm",
                "lease",
                "renew",
                "release",
                "send",
                "poll",
                "ack",
                "look",
            ),
            (6, 8, 1, 4, 2, 1, 2, 2, 2, 1),
        )[0]
        if kind == "sweep":
            self.server.sweep()
        else:
            getattr(self, kind)(who)

    def beats(self, who: int) -> None:
        chance, calls = self.chance, []
        for _ in range(chance.choice((1, 1, 2, 5))):
            args: dict[str, Any] = {"scope": chance.choice(SCOPES)}
            args["expect_within_seconds"] = chance.choice((2, 2, 3, 5))
            if chance.random() < 0.7:
                args["on_expiry"] = ["release_leases", "mark_failed", "queue_alert"]
                args["notify_address"] = chance.choice(self.addresses)
            calls.append(("heartbeat", who, args))
        self.server.call(*calls)

    def disarm(self, who: int) -> None:
        scope = self.chance.choice(SCOPES)
        args = {"scope": scope, "expect_within_seconds": 2, "disarm": True}
        self.server.call(("heartbeat", who, args))

    def lease(self, who: int) -> None:
        chance, key = self.chance, self.chance.choice(KEYS)
        args: dict[str, Any] = {
            "key": key,
            "holder": "same label",
            "ttl_seconds": chance.choice((1, 2, 4)),
        }
        if chance.random() < 0.8:
            args["scope"] = chance.choice(SCOPES)
        if (who, key) in self.fences and chance.random() < 0.5:
            args["fence"] = self.fences[who, key]
        told = self.server.call(("lease", who, args))
        if told and told[0].get("acquired"):
            self.fences[who, key] = told[0]["fence"]

    def renew(self, who: int) -> None:
        self._hold("lease_renew", who, ttl_seconds=self.chance.choice((1, 2, 4)))

    def release(self, who: int) -> None:
        self._hold("lease_release", who)

    def _hold(self, tool: str, who: int, **more: int) -> None:
        key = self.chance.choice(KEYS)
        if fence := self.fences.get((who, key)):
            args = {"key": key, "fence": fence, "holder": "same label", **more}
            self.server.call((tool, who, args))

    def send(self, who: int) -> None:
        args = {"to": self.chance.choice(self.addresses), "objective": "go on"}
        self.server.call(("send", who, args))

    def poll(self, who: int) -> None:
        told = self.server.call(("inbox_poll", who, {"visibility_timeout_seconds": 5}))
        if told and (view := told[0].get("envelope")):
            self.tasks[who] = (view["task_id"], view["delivery_token"])

    def ack(self, who: int) -> None:
        if who in self.tasks:
            task_id, token = self.tasks.pop(who)
            tool = self.chance.choice(("inbox_ack", "inbox_ack", "inbox_nack"))
            self.server.call((tool, who, {"task_id": task_id, "delivery_token": token}))

    def look(self, who: int) -> None:
        tool = self.chance.choice(("switch_status", "whoami", "resume_packet"))
        args = {"scope": self.chance.choice(SCOPES)} if tool == "resume_packet" else {}
        self.server.call((tool, who, args))
