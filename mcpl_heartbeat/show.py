"""``mcpl-heartbeat show``: the schedule and the reminders on disk, as a table.

It reads the two files and nothing else: no server is started, no lock taken, no file written or
copied aside. What only a running server knows (which reminders are held, whether wakes can be
delivered) it does not guess at.
"""

import json
import os
import sys
import time
from typing import IO, Any

import msgspec
from rich.console import Console
from rich.table import Table

from mcpl_heartbeat.actions import Opened
from mcpl_heartbeat.shell import environment
from mcpl_heartbeat.storage.documents import DocumentFile
from mcpl_heartbeat.times import Zone, local_time
from mcpl_heartbeat.wake import files, texts
from mcpl_heartbeat.wake.delivery import seconds

HELD = (
    "Which reminders the host refused (held), and whether wakes can be delivered, is known only to "
    "a running server: ask its heartbeat_status and reminder_list."
)
_MESSAGE = 60
_ID = 16
_OPTIONS = {
    "config": ("--config", "HEARTBEAT_CONFIG_FILE"),
    "reminders": ("--reminders", "HEARTBEAT_REMINDERS_FILE"),
}


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """One reminder as shown. ``next_at`` is wall ms, ``left_seconds`` negative once overdue."""

    id: str
    next_at: int
    next: str
    left_seconds: int
    overdue: bool
    every_seconds: int | float | None
    message: str


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """The two files as shown. ``next_at`` is ``None`` while no wake is set.

    ``problems`` are sentences on files that could not be used, or only in part.
    """

    config_file: str
    reminders_file: str
    zone: str
    now: str
    paused: bool
    interval_seconds: int | float
    delivery_mode: str
    message: str
    next_at: int | None
    next: str | None
    overdue: bool
    reminders: tuple[Row, ...]
    problems: tuple[str, ...]
    absent: tuple[str, ...]
    """Which of ``config`` and ``reminders`` is not there; its members then are the defaults."""
    usable: bool
    """Whether each file is there and holds something that a server could go on with."""


def look(  # noqa: PLR0913, PLR0917 - each is one fact
    paths: tuple[str, str],
    config: Opened,
    reminders: Opened,
    zone: Zone,
    now: int,
    absent: tuple[str, ...] = (),
) -> Shown:
    """Put together what is shown of both documents at ``now`` (wall ms). Pure.

    ``absent`` names the documents whose files are not there (``config``, ``reminders``).
    """
    settings: files.Config = config.value or files.Config()
    at = None if settings.paused else settings.next_at
    rows = sorted(reminders.value or (), key=lambda row: (row.fire_at, row.created_at, row.id))
    troubles = [opened.trouble for opened in (config, reminders) if opened.trouble]
    return Shown(
        config_file=paths[0],
        reminders_file=paths[1],
        zone=zone.name,
        now=local_time(now, zone),
        paused=settings.paused,
        interval_seconds=settings.interval_seconds,
        delivery_mode=settings.delivery_mode,
        message=settings.message,
        next_at=at,
        next=None if at is None else local_time(at, zone),
        overdue=at is not None and at <= now,
        reminders=tuple(
            Row(
                id=row.id,
                next_at=row.fire_at,
                next=local_time(row.fire_at, zone),
                left_seconds=(row.fire_at - now) // 1000,
                overdue=row.fire_at <= now,
                every_seconds=row.every_seconds,
                message=row.message,
            )
            for row in rows
        ),
        problems=tuple(trouble.text for trouble in troubles),
        absent=absent,
        usable=not absent
        and not any(opened.trouble and opened.value is None for opened in (config, reminders)),
    )


def run(config: str | None, reminders: str | None, *, as_json: bool = False) -> int:
    """Print what is on disk; 0, or 1 when a file is not there or cannot be used at all.

    ``None`` stands for the file that the environment names.
    """
    found = environment.read(os.environ)
    paths = (config or found.config_file, reminders or found.reminders_file)
    documents = (
        DocumentFile(paths[0], files.decode_config, files.encode_config, "config"),
        DocumentFile(paths[1], files.decode_reminders, files.encode_reminders, "reminders"),
    )
    opened = [document.peek() for document in documents]
    # Path raises where the file cannot be seen, or can never be.
    absent = tuple(
        name
        for name, document, one in zip(_OPTIONS, documents, opened, strict=True)
        if one.value is None and one.trouble is None and not os.path.exists(document.path)  # noqa: PTH110
    )
    shown = look(
        (environment.shown(documents[0].path), environment.shown(documents[1].path)),
        opened[0],
        opened[1],
        found.zone,
        time.time_ns() // 1_000_000,
        absent,
    )
    for warning in found.warnings:
        print(f"WARNING: {warning}", file=sys.stderr)
    if as_json:
        # ASCII, since a program may have given us a stdout that takes nothing else.
        print(json.dumps(msgspec.to_builtins(shown), indent=2))
    else:
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        write(shown, sys.stdout)
    return 0 if shown.usable else 1


def write(shown: Shown, file: IO[str]) -> None:
    """Write it for a person; of a file that is not there only that is said."""
    console = Console(file=file, highlight=False, emoji=False, markup=False)

    def say(text: str) -> None:
        # On a terminal wrapped between words; in a pipe a line stays a line.
        console.print(text, soft_wrap=not console.is_terminal)

    for name, path in zip(_OPTIONS, (shown.config_file, shown.reminders_file), strict=True):
        if name in shown.absent:
            option, variable = _OPTIONS[name]
            say(f"{name:<10}no such file: {path}; name it with {option} or set {variable}")
        else:
            say(f"{name:<10}{path}")
    for problem in shown.problems:
        say(f"WARNING   {problem}")
    say(f"{'now':<10}{shown.now}")
    say("")
    if "config" not in shown.absent:
        say(_schedule(shown))
    if "reminders" not in shown.absent:
        overdue = sum(row.overdue for row in shown.reminders)
        late = f", {overdue} overdue" if overdue else ""
        say(f"{len(shown.reminders)} reminder(s){late}:" if shown.reminders else "No reminders.")
        if shown.reminders:
            _rows(shown, console)
    if shown.absent:
        say("A server that has saved nothing yet has not made its files either.")
        return
    say("")
    say(HELD)


def _schedule(shown: Shown) -> str:
    hours = f"{shown.interval_seconds / 3600:.2f}h"
    state = "PAUSED" if shown.paused else "ACTIVE"
    return (
        f"Heartbeat {state} | mode={shown.delivery_mode} | "
        f"interval={_plain(shown.interval_seconds)}s ({hours}) | {_next(shown)} | "
        f"message={texts.quoted(shown.message, _MESSAGE)}"
    )


def _next(shown: Shown) -> str:
    if shown.paused:
        return "no wake is coming"
    if shown.next is None:
        return "the first wake is an interval after the server's next start"
    return f"next {shown.next}{' (overdue)' if shown.overdue else ''}"


def _rows(shown: Shown, console: Console) -> None:
    cells = [_cells(row) for row in shown.reminders]
    if not console.is_terminal:
        for line in cells:
            console.print("  ".join(line), soft_wrap=True)
        return
    table = Table()
    # A moment is never broken but before its zone, and an id of ours not at all. Widths that are
    # fixed, since rich narrows all others alike and then crops what is too wide.
    table.add_column("id", overflow="fold", width=min(_ID, max(len(line[0]) for line in cells)))
    words = [len(word) for line in cells for word in line[1].split()]
    table.add_column("next", overflow="fold", width=max(words))
    table.add_column("message", overflow="fold")
    for row, (id, moment, left, repeats, message) in zip(shown.reminders, cells, strict=True):
        style = "yellow" if row.overdue else None
        table.add_row(id, f"{moment} {left}\n{repeats}", message, style=style)
    console.print(table)


def _cells(row: Row) -> list[Any]:
    left = "(overdue)" if row.overdue else f"(~{row.left_seconds}s)"
    every = row.every_seconds
    repeats = "one-shot" if every is None else f"repeats every {_plain(every)}s"
    return [row.id, row.next, left, repeats, texts.quoted(row.message, _MESSAGE)]


def _plain(length: float) -> str:
    return seconds(round(length * 1000))
