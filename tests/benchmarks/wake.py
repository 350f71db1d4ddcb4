"""Measure a heartbeat server, any command, over pipes: ``wake.py -- COMMAND… [--versus …]``.

Each figure stands beside a bare program timed in the same run, in turn with the server. Nothing is
asserted: a figure over its goal is printed as "over" and the exit code stays 0. It is 1 only when a
figure could not be taken, and 2 for a wrong command line.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import report
from tests.benchmarks.bare import IMPORT, Bare
from tests.benchmarks.figures import FIGURES
from tests.benchmarks.rounds import Bench
from tests.benchmarks.system import python_of


def main(arguments: Sequence[str]) -> int:
    """Run the figures asked for and print them; the exit code."""
    options, commands = parse(arguments)
    python = options.python or python_of(commands[0])

    def bench(folder: Path) -> Bench:
        bare = Bare(python, folder)
        bare.run(IMPORT)
        return Bench(commands, bare, folder, options.quick, not options.no_pin, report.progress)

    about = {"commands": [list(command) for command in commands], "bare_python": python}
    return report.run(FIGURES, options, bench, about)


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[list[str]]]:
    """Options before ``--``; behind it one command, or two with ``--versus`` between them."""
    parser = argparse.ArgumentParser(
        prog="wake.py",
        usage="%(prog)s [options] -- COMMAND… [--versus COMMAND…]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_options(parser, FIGURES)
    parser.add_argument("--no-pin", action="store_true", help="leave calls to the scheduler's luck")
    parser.add_argument("--python", help="for the bare programs (default: the command's own)")
    before, _, after = (
        (arguments[: arguments.index("--")], "--", arguments[arguments.index("--") + 1 :])
        if "--" in arguments
        else (arguments, "", [])
    )
    options = parser.parse_args(before)
    commands: list[list[str]] = [[]]
    for word in after:
        if word == "--versus" and len(commands) == 1:
            commands.append([])
        else:
            commands[-1].append(word)
    if not all(commands):
        parser.error("say which server: wake.py -- COMMAND…, for example -- mcpl-heartbeat --stdio")
    return options, commands


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
