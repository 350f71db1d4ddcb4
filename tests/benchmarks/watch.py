"""Measure the watch wing on SQLite: ``watch.py [-- COMMAND…]``, the command being the one to serve.

Each figure stands beside SQLite alone doing the same in the same run. Nothing is asserted: a
figure over its goal is printed as "over" and the exit code stays 0. It is 1 only when a figure
could not be taken, and 2 for a wrong command line.
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.bench import Unmeasurable
from tests.benchmarks.load import command_of
from tests.benchmarks.rounds import Row
from tests.benchmarks.wake import plain, progress, show
from tests.benchmarks.watched import FIGURES, Watch


def main(arguments: Sequence[str]) -> int:
    """Run the figures asked for and print them; the exit code."""
    options, command = parse(arguments)
    folder = Path(tempfile.mkdtemp(prefix="watch-bench-", dir=options.dir))
    watch = Watch(command, folder, options.quick, progress)
    rows: list[Row] = []
    failed: dict[str, str] = {}
    try:
        for name in options.only or FIGURES:
            try:
                rows.extend(FIGURES[name](watch))
            except (Unmeasurable, OSError) as error:
                failed[name] = str(error)
    finally:
        progress("")
        shutil.rmtree(folder, ignore_errors=True)
    about = {
        "bare_python": f"SQLite {sqlite3.sqlite_version} in {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "load_average": round(os.getloadavg()[0], 2),
        "quick": options.quick,
    }
    if options.json:
        print(json.dumps({**about, "figures": list(map(plain, rows)), "failed": failed}, indent=1))
    else:
        show(about, rows, failed)
    return 1 if failed else 0


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Options before ``--``; behind it the command, else this checkout's."""
    parser = argparse.ArgumentParser(
        prog="watch.py",
        usage="%(prog)s [options] [-- COMMAND…]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", metavar="NAME", action="append", choices=list(FIGURES), help=", ".join(FIGURES)
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller loads")
    parser.add_argument("--json", action="store_true", help="with every round, for machines")
    parser.add_argument("--dir", help="where the stores go (its disk is what commits wait for)")
    before, after = list(arguments), []
    if "--" in before:
        cut = before.index("--")
        before, after = before[:cut], before[cut + 1 :]
    return parser.parse_args(before), command_of(after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
