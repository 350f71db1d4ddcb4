"""Toy servers: one in process, on a stage of its own, and ``toy_server.py`` as a command."""

import json
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from conformance import runner, transcripts
from conformance.host import Seat
from conformance.outcome import Failure, Outcome

SERVER = Path(__file__).with_name("toy_server.py")
Behaviour = Callable[[dict[str, Any]], Iterable[dict[str, Any] | str]]


def command(mode: str) -> list[str]:
    """Return the command of a toy server that behaves so."""
    # Isolated from all that is installed, which takes most of its start.
    return [sys.executable, "-I", "-S", str(SERVER), mode]


def transcript(*steps: dict[str, Any], **head: Any) -> transcripts.Transcript:
    """Return a transcript of these steps."""
    whole = [{"transcript": "A test", "host": "a toy", "within": 20, **head}, *steps]
    return transcripts.parse("\n".join(map(json.dumps, whole)), "toy/test")


class ToyStage:
    """Time stands still but for ``let_pass``; ``later`` holds what the server says by itself.

    ``behaviour`` gives what the server says to each message of the host's.
    """

    def __init__(
        self, behaviour: Behaviour, later: Mapping[float, dict[str, Any] | str] | None = None
    ) -> None:
        self.behaviour = behaviour
        self.later = sorted((later or {}).items())
        self.passed = 0.0
        self.heard: list[Any] = []
        self.peer: ToyPeer | None = None

    def now(self) -> int:
        return transcripts.START + round(self.passed * 1000)

    def start(self, seat: Seat, environment: Mapping[str, str], folder: str) -> "ToyPeer":
        self.peer = ToyPeer(self, seat)
        return self.peer

    def let_pass(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        end = self.passed + seconds
        while not until():
            if not self.later or self.later[0][0] > end:
                self.passed = end
                return until()
            self.passed, said = self.later.pop(0)
            assert self.peer is not None
            self.peer.say([said])
        return True

    def between_writes(self) -> None:
        pass

    def step_clock(self, ms: int) -> None:
        self.heard.append(("clock", ms))

    def suspend(self, ms: int) -> None:
        self.heard.append(("suspend", ms))

    def close(self) -> None:
        pass


class ToyPeer:
    written = True

    def __init__(self, stage: ToyStage, seat: Seat) -> None:
        self._stage = stage
        self._seat = seat
        self.status: int | None = None

    @property
    def ended(self) -> bool:
        return self.status is not None

    def say(self, messages: Iterable[dict[str, Any] | str]) -> None:
        for message in messages:
            line = message if isinstance(message, str) else json.dumps(message)
            self._seat.feed(line.encode() + b"\n")

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            self._stage.heard.append(message)
            self.say(self._stage.behaviour(message))

    def close(self, end: str) -> None:
        self.status = 0

    def signal(self, name: str) -> None:
        self.status = -getattr(signal, name)


def play(
    behaviour: Behaviour,
    *steps: dict[str, Any],
    later: Any = None,
    **head: Any,
) -> tuple[Outcome, ToyStage]:
    """Play these steps against ``behaviour``."""
    stage = ToyStage(behaviour, later)
    return play_on(stage, *steps, **head), stage


def play_on(stage: ToyStage, *steps: dict[str, Any], **head: Any) -> Outcome:
    """Play these steps on a stage."""
    whole = transcript(*steps, clock="virtual", **head)
    return runner.replay_one(whole, "virtual", lambda _: stage)


def polite(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer every request as a server does that has one tool, which repeats what it hears."""
    if "id" not in message or "method" not in message:
        return []
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    results: dict[str, Any] = {
        "initialize": {"protocolVersion": params.get("protocolVersion")},
        "featureSets/update": {"accepted": True},
        "tools/call": {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]},
    }
    result = results.get(message["method"], {})
    return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]


def push(id: Any, **params: Any) -> dict[str, Any]:
    """Return a push."""
    return {"jsonrpc": "2.0", "id": id, "method": "push/event", "params": params}


PING: dict[str, Any] = {"request": "ping"}
PONG: dict[str, Any] = {"reply": {"result": {}}}
NOISE: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/noise"}


def silent(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer nothing."""
    return []


def failure(outcome: Outcome) -> Failure:
    """Return why it failed; it must have."""
    assert outcome.failure is not None
    return outcome.failure
