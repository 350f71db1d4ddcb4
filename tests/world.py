"""A world in which a ``Session`` lives without a process: clocks, a disk and a host, all in hand.

Time passes only when ``pass_time`` says so, and then alarm by alarm, as the shell would serve them;
a save ends at once unless the disk is told to be slow or to fail; the host answers each push with
whatever ``answer`` returns.
"""

import itertools
import json
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from mcpl_heartbeat.actions import (
    Action,
    Ask,
    Changed,
    Document,
    Listen,
    Log,
    Moment,
    NotSaved,
    Opened,
    Opening,
    Push,
    Reply,
    Save,
    Saved,
    SaveOutcome,
    Seek,
    Settle,
    Trouble,
    Unsent,
    WakeAt,
    Woken,
)
from mcpl_heartbeat.session import Session
from mcpl_heartbeat.times import UTC, Zone
from mcpl_heartbeat.wake import files
from mcpl_heartbeat.wings import Annex

START = 1_790_000_000_000
BEGAN = 1_000_000
"""The wall and the monotonic time (ms) of a world's beginning."""
LONGEST_SLEEP = 30_000
GRANT = {"effectiveCapabilities": ["tools", "pushEvents"], "enabled": ["heartbeat"]}
ACCEPTED = {"result": {"accepted": True}}
SILENCE = None

Answer = dict[str, Any] | None


def accept(push: dict[str, Any]) -> Answer:
    return ACCEPTED


def refuse(code: int, message: str = "no") -> Callable[[dict[str, Any]], Answer]:
    return lambda push: {"error": {"code": code, "message": message}}


def silence(push: dict[str, Any]) -> Answer:
    return SILENCE


class Disk:
    """Two files as bytes. ``fail`` is what a save fails with; ``slow`` leaves it under way."""

    decode: ClassVar = {
        Document.CONFIG: files.decode_config,
        Document.REMINDERS: files.decode_reminders,
    }
    encode: ClassVar[dict[Document, Callable[[Any], bytes]]] = {
        Document.CONFIG: files.encode_config,
        Document.REMINDERS: files.encode_reminders,
    }

    def __init__(self) -> None:
        self.bytes: dict[Document, bytes | None] = {Document.CONFIG: None, Document.REMINDERS: None}
        self.known: dict[Document, bytes | None] = dict(self.bytes)
        self.fail: str | None = None
        self.slow = False
        self.held_by: str | None = None
        self.saves: list[Save] = []

    def opening(self) -> Opening:
        self.known = dict(self.bytes)
        return Opening(*map(self._open, Document), held_by=self.held_by)

    def save(self, save: Save) -> SaveOutcome:
        self.saves.append(save)
        document = save.document
        if self.fail is not None:
            return NotSaved(self.fail)
        if self.bytes[document] not in (self.known[document], None):
            self.known[document] = self.bytes[document]
            return Changed(self._open(document))
        self.bytes[document] = self.known[document] = self.encode[document](save.value)
        return Saved()

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.bytes[Document.REMINDERS] or b"[]")
        return rows

    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.bytes[Document.CONFIG] or b"{}")
        return config

    def _open(self, document: Document) -> Opened:
        data = self.bytes[document]
        if data is None:
            return Opened()
        decoded = self.decode[document](data)
        trouble = decoded.problem and Trouble(f"{document}: {decoded.problem}", savable=True)
        return Opened(decoded.value, trouble or None)


class World:
    """See the module. ``pushes`` are the params of every push, in the order they left."""

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        answer: Callable[[dict[str, Any]], Answer] = accept,
        zone: Zone = UTC,
        wall: int = START,
        annexes: tuple[Annex, ...] = (),
    ) -> None:
        self.disk = disk or Disk()
        self.answer = answer
        self.zone = zone
        self.annexes = annexes
        self.wall = wall
        self.monotonic = BEGAN
        self.pushes: list[dict[str, Any]] = []
        self.push_ids: list[str] = []
        self.sent_at: list[int] = []
        self.replies: list[Any] = []
        self.logs: list[str] = []
        self.asks: list[Ask] = []
        self.settled: list[Settle] = []
        self.woken: list[Woken] = []
        self.unsent: list[Unsent] = []
        self.seeking = False
        self.seek = Seek(False)
        self.listening = Listen(None, here=False)
        self._ids = itertools.count(1)
        self._names = itertools.count()
        self._queue: deque[Action] = deque()
        self._saving: list[Save] = []
        self._alarm = WakeAt(None, None)
        self.boot()

    # Life -----------------------------------------------------------------------------------------

    def boot(self, *, open_files: bool = True) -> None:
        """Start a new process on the same disk."""
        self._saving = []
        self._alarm = WakeAt(None, None)
        token = f"process{next(self._names)}"
        self.session = Session(
            zone=self.zone, token=token, random_id=self._random_id, annexes=self.annexes
        )
        self._do(self.session.start(self.now))
        if open_files:
            self.open_files()

    def open_files(self) -> None:
        self._do(self.session.opened(self.disk.opening(), self.now))

    def connect(
        self,
        *,
        version: str = "2025-06-18",
        client: str = "agent-framework",
        mcpl: Any = None,
        policy: dict[str, Any] | None = GRANT,
    ) -> dict[str, Any]:
        """Initialize as an MCPL host and grant; returns the result of ``initialize``."""
        experimental = {"mcpl": {"version": "0.5", "pushEvents": True} if mcpl is None else mcpl}
        if mcpl is False:
            experimental = {}
        result: dict[str, Any] = self.request(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": {"experimental": experimental},
                "clientInfo": {"name": client, "version": "1"},
            },
        )["result"]
        self.notify("notifications/initialized")
        if policy is not None:
            self.request("featureSets/update", policy)
        return result

    # The host speaks ------------------------------------------------------------------------------

    def send(self, message: Any) -> None:
        self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        self._do(self.session.receive(data, self.now))

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def request(self, method: str, params: Any = None) -> dict[str, Any]:
        """One request; returns its reply, which must come in the same pass or by a save's end."""
        id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return self.reply(id)

    def begin_call(self, tool: str, **arguments: Any) -> int:
        id = next(self._ids)
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        return id

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One tool call; returns its result."""
        result: dict[str, Any] = self.reply(self.begin_call(tool, **arguments))["result"]
        return result

    def text(self, tool: str, **arguments: Any) -> str:
        text: str = self.call(tool, **arguments)["content"][0]["text"]
        return text

    def reply(self, id: Any) -> dict[str, Any]:
        found = [r for r in self.replies if isinstance(r, dict) and r.get("id") == id]
        assert len(found) == 1, f"expected one reply to {id!r}, got {found}"
        reply: dict[str, Any] = found[0]
        return reply

    def answered(self, id: Any) -> bool:
        return any(isinstance(r, dict) and r.get("id") == id for r in self.replies)

    def answer_push(self, index: int, answer: dict[str, Any]) -> None:
        """Answer the ``index``-th push now."""
        self.send({"jsonrpc": "2.0", "id": self.push_ids[index], **answer})

    # The store speaks -----------------------------------------------------------------------------

    def tell(self, ask: Ask, outcome: Any) -> None:
        """Let the store answer an ask."""
        self._do(self.session.told(ask.id, outcome, self.now))

    def news(self, news: Any, *, took: int = 0) -> None:
        """Let the store have news, which it took ``took`` ms to give."""
        asked = self.now
        self._move(took)
        self._do(self.session.news(news, asked, self.now))

    def leave(self) -> None:
        """End the host's input."""
        self._do(self.session.end_of_input(self.now))

    # Time -----------------------------------------------------------------------------------------

    @property
    def now(self) -> Moment:
        return Moment(self.wall, self.monotonic)

    def pass_time(self, ms: int) -> None:
        """Let ``ms`` go by on both clocks, serving every alarm on its way."""
        end = self.monotonic + ms
        while True:
            sleep = self._sleep()
            if sleep > end - self.monotonic:
                break
            self._move(sleep)
            self._use_up_alarm()
            self._do(self.session.tick(self.now))
        self._move(end - self.monotonic)

    def step_clock(self, ms: int) -> None:
        """Set the wall clock; the server notices at its next pass."""
        self.wall += ms

    def suspend(self, ms: int) -> None:
        """Both clocks go on while nothing runs; then the alarm that was missed is served."""
        self._move(ms)
        self._do(self.session.tick(self.now))

    def end_save(self, outcome: SaveOutcome | None = None) -> None:
        """End the oldest save that is under way on a slow disk."""
        save = self._saving.pop(0)
        outcome = outcome or self.disk.save(save)
        self._do(self.session.saved(save.document, outcome, self.now))

    def _sleep(self) -> int:
        waits = [LONGEST_SLEEP]
        if self._alarm.wall is not None:
            waits.append(self._alarm.wall - self.wall)
        if self._alarm.monotonic is not None:
            waits.append(self._alarm.monotonic - self.monotonic)
        return max(0, min(waits))

    def _use_up_alarm(self) -> None:
        # As the shell does: a moment that is reached rings once.
        wall, monotonic = self._alarm.wall, self._alarm.monotonic
        self._alarm = WakeAt(
            wall if wall is not None and wall > self.wall else None,
            monotonic if monotonic is not None and monotonic > self.monotonic else None,
        )

    def _move(self, ms: int) -> None:
        self.wall += ms
        self.monotonic += ms

    def _random_id(self) -> str:
        return f"{next(self._names):08x}"

    def _do(self, actions: list[Action]) -> None:
        # In order of emission, whatever an answer or a save's end brings about on the way.
        idle = not self._queue
        self._queue.extend(actions)
        while idle and self._queue:
            self._carry_out(self._queue[0])
            self._queue.popleft()

    def _carry_out(self, action: Action) -> None:
        match action:
            case Reply(line=line):
                self.replies.append(json.loads(line))
            case Push(line=line):
                self._pushed(json.loads(line))
            case Save():
                self._saving.append(action)
                if not self.disk.slow:
                    self.end_save()
            case WakeAt():
                self._alarm = action
            case Log(text=text):
                self.logs.append(text)
            case Ask():
                self.asks.append(action)
            case Settle():
                self.settled.append(action)
            case Unsent():
                self.unsent.append(action)
            case Woken():
                self.woken.append(action)
            case Seek():
                self.seek, self.seeking = action, action.wanted
            case Listen():
                self.listening = action

    def _pushed(self, message: dict[str, Any]) -> None:
        assert message["method"] == "push/event"
        self.pushes.append(message["params"])
        self.push_ids.append(message["id"])
        self.sent_at.append(self.wall)
        answer = self.answer(message["params"])
        if answer is not None:
            self.send({"jsonrpc": "2.0", "id": message["id"], **answer})
