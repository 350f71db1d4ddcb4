"""A host that plays its part on real pipes: handshake, policy, tool calls, answers to pushes."""

import contextlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from tests.e2e.pipes import PATIENCE, Pipes
from tests.e2e.wire import ACCEPT, AGENT_FRAMEWORK, Message, ToolReply


class Host(Pipes):
    """One server process and the host's side of its pipes; use it in a ``with`` block.

    ``answers`` is a dict answered to every push, ``NEVER``, or a function from the push to one of
    these or to a list of them (sent one after the other). ``answer`` answers a push by hand, later.
    """

    def __init__(self, folder: Path, *, answers: Any = ACCEPT, **options: Any) -> None:
        self.answers: Any = answers
        self._next_id = 0
        self._settled: set[int] = set()
        super().__init__(folder, **options)

    def asked(self, message: Message) -> None:
        """Answer a push by the script; hosts answer nothing else."""
        if message["method"] != "push/event":
            self.violations.append(f"the server asked for {message['method']}")
            return
        answer = self.answers(message) if callable(self.answers) else self.answers
        for one in answer if isinstance(answer, list) else [answer]:
            if one is not None:
                self.answer(message, one)

    def answer(self, push: Message, answer: dict[str, Any]) -> None:
        """Answer a push now."""
        with contextlib.suppress(OSError, ValueError):
            self.send({"jsonrpc": "2.0", "id": push["id"], **answer})
        with self._changed:
            self._settled.add(id(push))
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until every push so far has been answered."""
        self.wait("answers", lambda: all(id(push) in self._settled for push in self.pushes))

    def notify(self, method: str, params: Any = None) -> None:
        """Send a Notification."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def request(self, method: str, params: Any = None) -> int:
        """Send a Request and return its id."""
        self._next_id += 1
        message: Message = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return self._next_id

    def reply(self, to: Any, timeout: float = PATIENCE) -> Message:
        """Wait for the reply with exactly this id (``1`` and ``"1"`` differ)."""

        def find() -> Message | None:
            for message in self.messages:
                if "method" not in message and "id" in message:
                    given = message["id"]
                    if given == to and type(given) is type(to):
                        return message
            return None

        found: Message = self.wait(f"reply to id {to!r}", find, timeout)
        return found

    def replies(self, to: Any) -> list[Message]:
        """Return the replies so far with this id."""
        with self._changed:
            return [m for m in self.messages if "method" not in m and m.get("id", ...) == to]

    @property
    def pushes(self) -> list[Message]:
        """Every push so far."""
        with self._changed:
            return [m for m in self.messages if m.get("method") == "push/event"]

    def wait_push(
        self,
        predicate: Callable[[Message], bool] = lambda push: True,
        timeout: float = PATIENCE,
        *,
        count: int = 1,
    ) -> Message:
        """Wait until ``count`` pushes satisfy ``predicate``; return the last of these."""

        def find() -> Message | None:
            fitting = [m for m in self.messages if m.get("method") == "push/event"]
            fitting = [m for m in fitting if predicate(m)]
            return fitting[count - 1] if len(fitting) >= count else None

        found: Message = self.wait(f"push number {count}", find, timeout)
        return found

    def quiet(self, seconds: float) -> None:
        """Let real time pass, for what only time can show; the server must then answer."""
        time.sleep(seconds)
        self.ping()

    # Talking

    def ask(self, method: str, params: Any = None, timeout: float = PATIENCE) -> Message:
        """Send a Request and wait for its reply."""
        return self.reply(self.request(method, params), timeout)

    def ping(self) -> None:
        """Ping and demand the empty answer."""
        assert self.ask("ping")["result"] == {}

    def initialize(
        self,
        *,
        version: Any = "2024-11-05",
        mcpl: Any = AGENT_FRAMEWORK,
        client: str = "agent-framework",
        initialized: bool = True,
    ) -> dict[str, Any]:
        """Do the handshake and return its result; ``mcpl=None`` is a plain MCP host."""
        capabilities = {"experimental": {"mcpl": mcpl}} if mcpl is not None else {}
        params = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": client, "version": "1.0.0"},
        }
        reply = self.ask("initialize", params)
        assert "result" in reply, reply
        if initialized:
            self.notify("notifications/initialized")
        result: dict[str, Any] = reply["result"]
        return result

    def policy(
        self,
        effective: Iterable[str] | None = ("pushEvents", "tools"),
        enabled: Iterable[str] | None = ("heartbeat",),
        **more: Any,
    ) -> dict[str, Any]:
        """Send ``featureSets/update`` as a Request and return the receipt."""
        params: dict[str, Any] = dict(more)
        if effective is not None:
            params["effectiveCapabilities"] = list(effective)
        if enabled is not None:
            params["enabled"] = list(enabled)
        reply = self.ask("featureSets/update", params)
        assert "result" in reply, reply
        receipt: dict[str, Any] = reply["result"]
        return receipt

    def ready(self, **handshake: Any) -> Self:
        """Do the handshake and grant the policy."""
        self.initialize(**handshake)
        receipt = self.policy()
        assert receipt["accepted"] is True, receipt
        return self

    def call(self, tool: str, /, **arguments: Any) -> ToolReply:
        """Call a tool and wait for its result."""
        return self.called(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def called(self, reply: Message) -> ToolReply:
        """Read a reply as a tool call's result."""
        assert "result" in reply, reply
        result = reply["result"]
        text = "".join(block["text"] for block in result["content"])
        return ToolReply(text, bool(result.get("isError", False)), result)

    def add(self, message: str, **when: Any) -> str:
        """Add a reminder and return its id."""
        reply = self.call("reminder_add", message=message, **when)
        assert not reply.is_error, reply.text
        start = reply.text.index("rem_")
        return reply.text[start:].split()[0].rstrip(":")

    def status(self) -> str:
        """Return the text of ``heartbeat_status``."""
        return self.call("heartbeat_status").text

    def listed(self, **arguments: Any) -> str:
        """Return the text of ``reminder_list``."""
        return self.call("reminder_list", **arguments).text

    # What is on disk, and what was said

    def rows(self) -> list[dict[str, Any]]:
        """Return the reminders file's rows."""
        rows: list[dict[str, Any]] = json.loads(self.reminders.read_text("utf-8"))
        return rows
