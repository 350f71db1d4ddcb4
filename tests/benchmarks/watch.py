"""Measure the watch wing on SQLite: ``watch.py [-- COMMAND…]``, the command being the one to serve.

Each figure stands beside SQLite alone doing the same in the same run. Nothing is asserted: a
figure over its goal is printed as "over" and the exit code stays 0. It is 1 only when a figure
could not be taken, and 2 for a wrong command line.
"""

import argparse
import platform
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import report
from tests.benchmarks.load import command_of
from tests.benchmarks.watched import FIGURES, Watch


def main(arguments: Sequence[str]) -> int:
    """Run the figures asked for and print them; the exit code."""
    options, command = parse(arguments)
    bare = f"SQLite {sqlite3.sqlite_version} in {platform.python_version()}"

    def watch(folder: Path) -> Watch:
        return Watch(command, folder, options.quick, report.progress)

    return report.run(FIGURES, options, watch, {"bare_python": bare})


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Options before ``--``; behind it the command, else this checkout's."""
    parser = argparse.ArgumentParser(
        prog="watch.py",
        usage="%(prog)s [options] [-- COMMAND…]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_options(parser, FIGURES)
    before, after = list(arguments), []
    if "--" in before:
        cut = before.index("--")
        before, after = before[:cut], before[cut + 1 :]
    return parser.parse_args(before), command_of(after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
