"""What passes between a host and a server, kept in place of being shown."""

from typing import Any

from mcpl_heartbeat.demo.screen import Screen

_KEPT = 50
_EXPECTED = "will not fire"
"""What it says of its reminders before it knows the policy, and on hosts that never wake."""
_STRAY = "not a message, but on stdout: "


class Watch(Screen):
    """Keeps the lines of the server's log, what strays onto its stdout, and what it pushes."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.stray: list[str] = []
        self.pushes: list[str] = []

    @property
    def warnings(self) -> list[str]:
        """The warnings among the lines of the log, less what the outcome says better."""
        return [line for line in self.log if "WARNING" in line and _EXPECTED not in line]

    def sent(self, line: str, message: dict[str, Any], answered: str = "") -> None:
        """Take note of nothing: what the host says is known."""

    def received(self, line: str, message: dict[str, Any], answered: str = "") -> None:
        """Keep how a push was sent."""
        if message.get("method") == "push/event" and len(self.pushes) < _KEPT:
            params = message.get("params")
            origin = params.get("origin") if isinstance(params, dict) else None
            silent = isinstance(origin, dict) and origin.get("silent") is True
            self.pushes.append("silent" if silent else "message")

    def logged(self, line: str) -> None:
        """Keep a line of the log, or of stdout when it is no message."""
        kept = self.stray if line.startswith(_STRAY) else self.log
        if len(kept) < _KEPT:
            kept.append(line.removeprefix(_STRAY))
