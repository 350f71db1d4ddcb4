"""``python -m conformance.broken NAME --stdio``: a broken server as a command.

It also runs as a script by its path, from any folder: ``python …/conformance/broken/__main__.py``.
"""

import sys
from pathlib import Path

# A host starts its servers in some other folder, where the source checkout is on no path.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main(arguments: list[str]) -> int:
    """Serve as the named mutant; 2 when there is none of this name."""
    from conformance import mutants  # noqa: PLC0415

    match arguments:
        case [name, "--stdio"] if name in (known := mutants.load()):
            from mcpl_heartbeat.shell import stdio  # noqa: PLC0415

            with mutants.applied(known[name]):
                return stdio.run()
    print("Usage: python -m conformance.broken NAME --stdio", file=sys.stderr)
    print("Names: python -m conformance broken --list", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
