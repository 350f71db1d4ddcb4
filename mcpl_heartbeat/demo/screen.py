"""What a person sees of the demo: one line a message, coloured on a terminal, plain in a pipe."""

import json
import sys
import threading
import time
from typing import IO, Any

from rich.console import Console
from rich.text import Text

TO_SERVER, TO_HOST = "→", "←"
INDENT = " " * 10


class Screen:
    """Prints the demo. Safe to use from several threads; a line is never torn by another.

    ``raw`` shows each message as the JSON line it is; otherwise a terminal's lines are wrapped
    between words. Times are seconds since the screen was made. A file that takes no more raises
    ``OSError`` in the thread that tells the story, and is silently left alone by the others.
    """

    def __init__(self, raw: bool = False, file: IO[str] | None = None) -> None:
        file = file or sys.stdout
        reconfigure = getattr(file, "reconfigure", None)
        if reconfigure is not None:
            # A terminal without arrows gets question marks, not a traceback.
            reconfigure(errors="replace")
        self._console = Console(file=file, highlight=False, emoji=False, markup=False)
        self._raw = raw
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._teller = threading.get_ident()

    def chapter(self, text: str) -> None:
        """Begin a part of the story."""
        self._print(Text("\n" + text, style="bold"))

    def note(self, text: str) -> None:
        """Say something between the messages."""
        self._print(Text(INDENT + text))

    def agent_reads(self, text: str) -> None:
        """Show the text of a wake as the agent would have it before its eyes."""
        self._print(Text(INDENT + "The agent wakes and reads:", style="bold green"))
        for line in text.splitlines() or [""]:
            self._print(Text(INDENT + "  " + line, style="green"))

    def failed(self, text: str) -> None:
        """Say what went wrong."""
        self._print(Text(f"\nThe demo failed: {text}", style="bold red"))

    def sent(self, line: str, message: dict[str, Any], answered: str = "") -> None:
        """Show a message to the server; ``answered`` is the method it answers."""
        self._message(TO_SERVER, "cyan", line, message, answered)

    def received(self, line: str, message: dict[str, Any], answered: str = "") -> None:
        """Show a message from the server; ``answered`` is the method it answers."""
        self._message(TO_HOST, "yellow", line, message, answered)

    def logged(self, line: str) -> None:
        """Show a line of the server's log (its stderr)."""
        self._print(Text(f"{self._clock()}  log {line}", style="dim"))

    def _message(
        self, arrow: str, style: str, line: str, message: dict[str, Any], answered: str
    ) -> None:
        head = Text(f"{self._clock()}  ")
        head.append(f"{arrow} ", style=f"bold {style}")
        if self._raw:
            self._print(head.append(line))
            return
        name, detail = essentials(message, answered)
        head.append(name, style=style)
        self._print(head.append(f"  {detail}" if detail else ""))

    def _clock(self) -> str:
        return f"{time.monotonic() - self._started:5.2f} s"

    def _print(self, text: Text) -> None:
        with self._lock:
            try:
                for line in self._wrapped(text):
                    self._console.print(line, soft_wrap=True)
            except OSError:
                # The server's messages go on being read; the story ends at its own next line.
                if threading.get_ident() == self._teller:
                    raise

    def _wrapped(self, text: Text) -> list[Text]:
        if self._raw or not self._console.is_terminal:
            return [text]
        first, *others = text.wrap(self._console, max(40, self._console.width - len(INDENT)))
        blank = INDENT if text.plain[:1].isspace() or text.plain[:1].isdigit() else ""
        if text.plain.startswith("\n"):
            blank = ""
        return [first, *(Text(blank) + line for line in others)]


def essentials(message: dict[str, Any], answered: str = "") -> tuple[str, str]:
    """Give a message's kind with its method, and what matters of it, as one line each.

    ``answered`` is the method that an answer belongs to. Never raises, whatever the message holds.
    """
    identity = f" #{message['id']}" if "id" in message else ""
    if "method" in message:
        kind = "request" if "id" in message else "notification"
        params = message.get("params")
        detail = _request(str(message["method"]), params if isinstance(params, dict) else {})
        return f"{kind} {message['method']}{identity}", detail
    if "error" in message:
        error = message["error"] if isinstance(message["error"], dict) else {}
        return f"error to {answered}{identity}", f"{error.get('code')} {error.get('message')}"
    result = message.get("result")
    return f"answer to {answered}{identity}", _answer(
        answered, result if isinstance(result, dict) else {}
    )


def _request(method: str, params: dict[str, Any]) -> str:
    match method:
        case "initialize":
            client = _dict(params, "clientInfo")
            mcpl = _dict(params, "capabilities", "experimental", "mcpl")
            return (
                f"protocol {params.get('protocolVersion')}, "
                f"client {client.get('name')} {client.get('version')}, MCPL {mcpl.get('version')}"
            )
        case "featureSets/update":
            granted = _names(params.get("effectiveCapabilities"))
            return f"granted: {granted}; enabled: {_names(params.get('enabled'))}"
        case "tools/call":
            return f"{params.get('name')} {_pairs(params.get('arguments'))}".rstrip()
        case "push/event":
            return f"{params.get('eventId')} {_pairs(params.get('origin'))}"
    return _pairs(params)


def _answer(method: str, result: dict[str, Any]) -> str:
    match method:
        case "initialize":
            server = _dict(result, "serverInfo")
            mcpl = _dict(result, "capabilities", "experimental", "mcpl")
            return (
                f"protocol {result.get('protocolVersion')}, "
                f"server {server.get('name')} {server.get('version')}, "
                f"MCPL {mcpl.get('version')}, feature sets: {_names(mcpl.get('featureSets'))}"
            )
        case "tools/list":
            return _names([_dict(tool).get("name") for tool in _list(result.get("tools"))])
        case "tools/call":
            texts = [str(_dict(block).get("text")) for block in _list(result.get("content"))]
            flag = "tool error: " if result.get("isError") else ""
            return flag + " / ".join(line for text in texts for line in text.splitlines())
        case "featureSets/update":
            parts = [
                f"receipt: accepted={_short(result.get('accepted'))} mode={result.get('mode')}"
            ]
            for entry in map(_dict, _list(result.get("unavailableFeatures"))):
                missing = _names(entry.get("missingCapabilities"))
                parts.append(f"{entry.get('featureSet')} {entry.get('effect')}, missing: {missing}")
            return "; ".join(parts + [str(note) for note in _list(result.get("notes"))])
    return _pairs(result)


def _dict(value: Any, *path: str) -> dict[str, Any]:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: Any) -> str:
    found = ", ".join(map(str, value)) if isinstance(value, list | dict) else ""
    return found or "nothing"


def _pairs(value: Any) -> str:
    return " ".join(f"{name}={_short(part)}" for name, part in _dict(value).items())


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else text[:159] + "…"
