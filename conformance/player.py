"""Plays a transcript on a stage: the verbs that the steps are made of, and the run itself."""

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

from conformance import exact, patterns, values
from conformance.folder import Folder
from conformance.host import Answers, Message, Seat, match_message
from conformance.outcome import Failure, Outcome, of_rules
from conformance.patterns import Clock, Miss
from conformance.stage import Peer, Stage, StageError
from conformance.transcripts import Step, Transcript

FIRST_ID = 9001
_LONGEST_SHOWN = 4000
_LAST_WORDS = 2000


class BrokenError(Exception):
    """A step found something else than it should: what was wanted and what was there."""

    def __init__(self, why: str, wanted: Any = None, got: Any = None) -> None:
        super().__init__(why)
        self.why = why
        self.wanted = _shown(wanted)
        self.got = _shown(got)


class Server:
    """One server of a transcript: its end and ours, and how it was started last."""

    def __init__(self) -> None:
        self.seat: Seat | None = None
        self.peer: Peer | None = None

    def connection(self) -> tuple[Seat, Peer]:
        """Return both ends; without a start there are none."""
        if self.seat is None or self.peer is None:
            raise BrokenError("no server has been started here yet")
        return self.seat, self.peer


class Player:
    """One replay of ``transcript`` on ``stage``, in a fresh ``folder``."""

    def __init__(self, transcript: Transcript, stage: Stage, folder: Folder) -> None:
        self.transcript = transcript
        self.stage = stage
        self.folder = folder
        self.names: values.Names = {"folder": str(folder.path)}
        self.answers = Answers(transcript.answer)
        self.pushes: list[tuple[Seat, Message]] = []
        self._servers: dict[str, Server] = {}
        self._ids = itertools.count(FIRST_ID)

    # Life -----------------------------------------------------------------------------------------

    def server(self, name: str) -> Server:
        """Return the server called ``name``, started or not."""
        return self._servers.setdefault(name, Server())

    def start(self, name: str, env: Mapping[str, str | None], within: float) -> None:
        """Start (again) the server called ``name``; one that is still there must be on its way."""
        server = self.server(name)
        peer = server.peer
        if peer is not None and not self.stage.let_pass(within, lambda: peer.status is not None):
            raise BrokenError(f"the server before is still running after {within:g} s")
        environment = self.folder.environment({**self.transcript.env, **env}, self.names)
        seat = Seat(lambda data: self._server_writes(server, data), self.answers, self.pushes)
        server.seat = seat
        server.peer = self.stage.start(seat, environment, str(self.folder.path))

    def _server_writes(self, server: Server, data: bytes) -> None:
        if server.peer is not None:
            server.peer.write(data)

    # Values and patterns --------------------------------------------------------------------------

    def fill(self, content: Any) -> Any:
        """Fill names and moments into what the host sends."""
        return values.fill(content, self.names, self.stage.now())

    def clock(self, step: Step) -> Clock:
        """Return what ``$now`` means at this step."""
        return Clock(self.stage.now(), step.within)

    def demand(self, result: patterns.Result, why: str, wanted: Any, got: Any) -> None:
        """Keep the names that a match bound, or fail the step."""
        if isinstance(result, Miss):
            raise BrokenError(f"{why}: {result}", wanted, got)
        self.names = result

    # The host speaks ------------------------------------------------------------------------------

    def new_id(self) -> int:
        """Return an id for a request of the host."""
        return next(self._ids)

    def send(self, step: Step, message: Any) -> None:
        """Write one message as a line."""
        self.write(step, exact.write(message).encode() + b"\n")

    def write(self, step: Step, data: bytes) -> None:
        """Write bytes, and see them taken."""
        seat, peer = self.server(step.on).connection()
        seat.spoke(data)
        peer.write(data)
        if not self.stage.let_pass(step.within, lambda: peer.written):
            raise BrokenError(f"the server has not read what the host wrote {step.within:g} s ago")

    def request(self, step: Step, method: str, params: Any = None, id: Any = None) -> Any:
        """Send a Request; return its id."""
        id = self.new_id() if id is None else id
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send(step, message if params is None else {**message, "params": params})
        return id

    # The server speaks ----------------------------------------------------------------------------

    def wait(self, step: Step, until: Callable[[], Any]) -> bool:
        """Let time go by until something is there, the server is gone, or ``within`` is over."""
        _, peer = self.server(step.on).connection()
        self.stage.let_pass(
            step.within, lambda: bool(until()) or peer.ended or self.problem() is not None
        )
        self.complain()
        return bool(until())

    def take(self, step: Step, fits: Callable[[Message], bool], what: str, wanted: Any) -> Message:
        """Take the oldest message that ``fits``, or fail, saying ``what`` never came."""
        seat, peer = self.server(step.on).connection()

        def found() -> Message | None:
            return next((message for message in seat.inbox if fits(message)), None)

        self.wait(step, found)
        message = found()
        if message is None:
            gone = f"; the server is gone (status {peer.status})" if peer.ended else ""
            raise BrokenError(
                f"no {what} came within {step.within:g} s{gone}", wanted, waiting(seat)
            )
        seat.inbox.remove(message)
        return message

    def take_reply(self, step: Step, id: Any, wanted: Any) -> Message:
        """Take the reply to the Request ``id``."""

        def fits(message: Message) -> bool:
            value = message.value
            return message.is_reply and isinstance(value, dict) and exact.same(value.get("id"), id)

        return self.take(step, fits, f"reply to {exact.write(id)}", wanted)

    def match(self, step: Step, pattern: Any, message: Message, why: str) -> None:
        """Compare a whole message with a pattern."""
        result = match_message(pattern, message, self.names, self.clock(step))
        self.demand(result, why, pattern, message.line)

    def problem(self) -> str | None:
        """Say what a server has said that no server may, if one has."""
        seats = (server.seat for server in self._servers.values())
        return next((seat.problem for seat in seats if seat is not None and seat.problem), None)

    def complain(self) -> None:
        """Fail when a server has said what no server may."""
        problem = self.problem()
        if problem is not None:
            raise BrokenError(problem)

    # The run --------------------------------------------------------------------------------------

    def play(self, carry_out: Callable[["Player", Step], None]) -> Step | None:
        """Carry out every step; ``None``, or the step at which ``BrokenError`` was raised.

        That error is then in ``broken``. The step before all others is the start.
        """
        self.broken: Exception | None = None
        first = Step(1, "", "start", {}, {}, self.transcript.within, (), "first")
        for step in (first, *self.transcript.steps):
            try:
                if step is first:
                    self._set_up()
                else:
                    carry_out(self, step)
                    self.stage.let_pass(0)
                self.complain()
            except (BrokenError, StageError, values.UnboundError) as broken:
                self.broken = broken
                return step
        return None

    def _set_up(self) -> None:
        # The paths first: "config" and "reminders" are where the environment says.
        self.folder.environment(self.transcript.env, self.names)
        for name, content in self.transcript.files.items():
            self.folder.write(name, content, self.names, self.stage.now())
        if self.transcript.start:
            self.start("first", {}, self.transcript.within)

    def last_words(self) -> str:
        """Return the end of every server's log."""
        logs = [server.seat.log for server in self._servers.values() if server.seat is not None]
        return "\n".join(log[-_LAST_WORDS:] for log in logs if log)


def replay(
    transcript: Transcript,
    clock: str,
    open_stage: Callable[[Transcript], Stage],
    carry_out: Callable[[Player, Step], None],
) -> Outcome:
    """Play one transcript from its first step to its end, in a folder that is gone afterwards."""
    began = time.monotonic()
    folder = Folder()
    stage = open_stage(transcript)
    try:
        player = Player(transcript, stage, folder)
        failed = player.play(carry_out)
    finally:
        stage.close()
        folder.remove()
    failure = None
    if failed is not None:
        broken = player.broken
        failure = Failure(
            line=failed.line,
            step=failed.text,
            why=str(broken),
            wanted=broken.wanted if isinstance(broken, BrokenError) else "",
            got=broken.got if isinstance(broken, BrokenError) else "",
            log=player.last_words(),
        )
    return Outcome(
        name=transcript.name,
        title=transcript.title,
        host=transcript.host,
        clock=clock,
        seconds=time.monotonic() - began,
        rules=of_rules(transcript, failed),
        failure=failure,
    )


def waiting(seat: Seat) -> str:
    """Return the lines that no step has taken yet, the latest five."""
    lines = [message.line for message in seat.inbox]
    more = f"({len(lines) - 5} before)\n" if len(lines) > 5 else ""
    return more + "\n".join(lines[-5:]) if lines else "(nothing)"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else exact.write(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
