"""The story the demo tells, step by step; each step is checked, and a failed one ends it."""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from mcpl_heartbeat.demo.host import Failure, Host
from mcpl_heartbeat.demo.screen import Screen

COMMAND = (sys.executable, "-m", "mcpl_heartbeat", "--stdio")
WAKE_SECONDS = 10.0
"""How long a wake that is due may take before the demo calls it missing."""


def run(*, raw: bool = False, command: tuple[str, ...] = COMMAND) -> int:
    """Tell the story on stdout and return the exit code: 0, 1 for a failed step, 130 for Ctrl-C.

    ``raw`` shows the messages as JSON lines. ``command`` starts the server to play with.
    """
    screen = Screen(raw)
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminated}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        with tempfile.TemporaryDirectory(prefix="mcpl-heartbeat-demo-") as folder:
            return _play(screen, command, Path(folder))
    except KeyboardInterrupt:
        screen.note("Stopped.")
        return 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminated(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def _play(screen: Screen, command: tuple[str, ...], folder: Path) -> int:
    started = time.monotonic()
    files = {
        "HEARTBEAT_CONFIG_FILE": str(folder / "heartbeat-config.json"),
        "HEARTBEAT_REMINDERS_FILE": str(folder / "heartbeat-reminders.json"),
    }
    screen.chapter("A host starts the server as a child and speaks with it over pipes.")
    screen.note(" ".join(command))
    screen.note(f"with its files in {folder}, which goes when the demo ends.")
    screen.note("→ is to the server, ← is from the server, log is a line on its stderr.")
    try:
        with Host(command, {**os.environ, **files}, folder, screen) as host:
            _greet(host, screen)
            _grant(host, screen)
            _wake(host, screen)
            _deny(host, screen)
            _grant_again(host, screen)
            _end(host, screen)
    except Failure as failure:
        screen.failed(str(failure))
        return 1
    screen.note(f"Three wakes in {time.monotonic() - started:.0f} s, none lost.")
    return 0


def _greet(host: Host, screen: Screen) -> None:
    screen.chapter("1. They introduce themselves.")
    mcpl = {"version": "0.5", "pushEvents": True, "featureSets": True}
    result = host.request(
        "initialize",
        {
            "protocolVersion": "2024-11-05",
            "clientInfo": {"name": "agent-framework", "version": "1.0.0"},
            "capabilities": {"experimental": {"mcpl": mcpl}},
        },
    )
    host.notify("notifications/initialized")
    capabilities = result.get("capabilities") or {}
    _check("mcpl" in (capabilities.get("experimental") or {}), "the server did not offer MCPL")
    host.request("tools/list", {})


def _grant(host: Host, screen: Screen) -> None:
    screen.chapter("2. The host grants what the server may do. Before that it may push nothing.")
    receipt = _policy(host, "pushEvents", "tools")
    _check(receipt.get("mode") == "full", "the receipt does not say mode full")


def _wake(host: Host, screen: Screen) -> None:
    screen.chapter("3. The agent sets its schedule and a reminder, and asks for one heartbeat now.")
    check_in = {"intervalHours": 2, "message": "Anything left open?"}
    _call(host, "heartbeat_configure", check_in)
    _call(host, "reminder_add", {"message": "Look whether the build has passed.", "inSeconds": 3})
    status = _call(host, "heartbeat_status", {})
    _check("delivery=ok" in status, f"heartbeat_status does not say delivery=ok but: {status}")
    _call(host, "heartbeat_trigger", {})
    _expect_wake(host, screen, "heartbeat")
    screen.note("Three seconds after it was set, the reminder is due:")
    _expect_wake(host, screen, "reminder")


def _deny(host: Host, screen: Screen) -> None:
    screen.chapter(
        "4. The host takes the capability pushEvents away. Nothing is lost, all is said."
    )
    receipt = _policy(host, "tools")
    _check(receipt.get("mode") == "degraded", "the receipt does not say mode degraded")
    status = _call(host, "heartbeat_status", {})
    _check("delivery=BLOCKED" in status, f"heartbeat_status does not say BLOCKED but: {status}")
    _call(host, "heartbeat_trigger", {}, refused=True)
    _call(host, "reminder_add", {"message": "Water the plants.", "inSeconds": 1})
    if host.next_wake(1.5) is not None:
        raise Failure("the server pushed a wake that the policy denies")
    screen.note("The reminder has fallen due meanwhile, and waits:")
    waiting = _call(host, "reminder_list", {})
    _check("(overdue)" in waiting, f"reminder_list does not show it overdue but: {waiting}")


def _grant_again(host: Host, screen: Screen) -> None:
    screen.chapter("5. The grant comes back, and so does what waited.")
    _policy(host, "pushEvents", "tools")
    _expect_wake(host, screen, "reminder")
    remaining = _call(host, "reminder_list", {})
    _check("Water the plants" not in remaining, f"the reminder taken is still there: {remaining}")


def _end(host: Host, screen: Screen) -> None:
    screen.chapter("6. The host closes the pipe, and the server ends.")
    code = host.close()
    _check(code == 0, f"the server's exit code was {code}, not 0")


def _policy(host: Host, *capabilities: str) -> dict[str, Any]:
    # A host applies its policy before it sends it, so that no push slips through in between.
    host.granted = frozenset(capabilities)
    receipt = host.request(
        "featureSets/update",
        {"effectiveCapabilities": sorted(capabilities), "enabled": ["heartbeat"]},
    )
    _check(receipt.get("accepted") is True, "the receipt does not say accepted true")
    return receipt


def _call(host: Host, tool: str, arguments: dict[str, Any], *, refused: bool = False) -> str:
    text, is_error = host.call(tool, arguments)
    _check(is_error is refused, f"{tool} was {'answered' if refused else 'refused'}: {text}")
    return text


def _expect_wake(host: Host, screen: Screen, source: str) -> None:
    event = host.next_wake(WAKE_SECONDS)
    if event is None:
        raise Failure(f"no {source} came within {WAKE_SECONDS:.0f} s")
    found = (event.get("origin") or {}).get("source")
    _check(found == source, f"a wake from {found!r} came where one from {source!r} was due")
    content = (event.get("payload") or {}).get("content") or []
    text = "\n".join(str(block.get("text", "")) for block in content)
    _check(bool(text.strip()), f"the {source} came without text")
    screen.agent_reads(text)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Failure(otherwise)
