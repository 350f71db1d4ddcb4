"""Running figures one after another, and their table: for people, or as JSON."""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.bench import Unmeasurable
from tests.benchmarks.rounds import Row

HEAD = ("figure", "unit", "server", "bare", "ratio", "goal", "")
PAIRED_HEAD = ("figure", "unit", "server", "versus", "bare", "ratio", "to versus", "goal", "")


def add_options(parser: argparse.ArgumentParser, figures: Mapping[str, Any]) -> None:
    """The options that all benchmarks have."""
    parser.add_argument(
        "--only", metavar="NAME", action="append", choices=list(figures), help=", ".join(figures)
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller loads")
    parser.add_argument("--json", action="store_true", help="with every round, for machines")
    parser.add_argument("--dir", help="where the files go (its disk is what saves are measured on)")


def run(
    figures: Mapping[str, Callable[[Any], Sequence[Row]]],
    options: argparse.Namespace,
    make: Callable[[Path], Any],
    about: Mapping[str, object],
) -> int:
    """Take the figures asked for, of what ``make`` sets up in a folder, and print them.

    The exit code: 1 when a figure could not be taken.
    """
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-", dir=options.dir))
    rows: list[Row] = []
    failed: dict[str, str] = {}
    try:
        bench = make(folder)
        for name in options.only or figures:
            try:
                rows.extend(figures[name](bench))
            except (Unmeasurable, OSError) as error:
                failed[name] = str(error)
    except Unmeasurable as error:
        failed["the bare program"] = str(error)
    finally:
        progress("")
        shutil.rmtree(folder, ignore_errors=True)
    said: dict[str, object] = {
        **about,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "load_average": round(os.getloadavg()[0], 2),
        "quick": options.quick,
    }
    if options.json:
        print(json.dumps({**said, "figures": list(map(plain, rows)), "failed": failed}, indent=1))
    else:
        show(said, rows, failed)
    return 1 if failed else 0


def progress(text: str) -> None:
    """One line that replaces itself on a terminal; elsewhere only the first of each figure."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text.endswith("warming up"):
        print(text, file=sys.stderr, flush=True)


def plain(row: Row) -> dict[str, object]:
    """A row for machines."""
    paired = len(row.rounds) > 2
    return {
        "figure": row.name,
        "unit": row.unit,
        "server": row.value(0),
        "versus": row.value(1) if paired else None,
        "bare": row.bare,
        "ratio": row.ratio(0),
        "goal": f"{row.goal.of} {row.goal.sense} {row.goal.bound:g}" if row.goal else None,
        "reached": row.reached(),
        "faults": row.faults,
        "rounds": dict(zip(("bare", "server", "versus"), row.rounds, strict=False)),
    }


def cells(row: Row, paired: bool) -> list[str]:
    """A row for people."""
    ratio, goal = row.ratio(0), row.goal
    said = [row.name, row.unit, number(row.value(0))]
    if paired:
        said.append(number(row.value(1)))
    said += [number(row.bare), number(ratio)]
    if paired:
        said.append(number(row.value(0) / row.value(1) if row.value(1) else None))
    said.append(f"{goal.of} {goal.sense} {goal.bound:,g}" if goal else "")
    said.append({True: "ok", False: "over", None: ""}[row.reached()])
    return said


def number(value: float | None) -> str:
    """Three figures that mean something."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def show(about: dict[str, object], rows: Sequence[Row], failed: dict[str, str]) -> None:
    """The table, with rich where it is installed, and what does not fit into it below."""
    paired = any(len(row.rounds) > 2 for row in rows)
    head = PAIRED_HEAD if paired else HEAD
    lines = [cells(row, paired) for row in rows]
    print(f"{about['system']}, load {about['load_average']}, bare: {about['bare_python']}")
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        for said in (head, *lines):
            print("  ".join(word.ljust(width) for word, width in zip(said, widths, strict=True)))
    else:
        table = Table(*head, box=None)
        for column in table.columns[2:-2]:
            column.justify = "right"
        for said in lines:
            table.add_row(*said, style="red" if said[-1] == "over" else "")
        console = Console(highlight=False)
        console.width = max(console.width, 110)
        console.print(table)
    for row in rows:
        for fault in row.faults:
            print(f"{row.name}: {fault}")
    for name, reason in failed.items():
        print(f"{name}: not measured: {reason}")
