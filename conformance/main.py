"""The command line of ``python -m conformance``: which command it is, and what comes of it.

Each command is imported only when it is the one: a recorder must not keep its host waiting.
"""

# ruff: noqa: PLC0415

from collections.abc import Sequence
from typing import Any

import click

CONTEXT = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
_NAME = "python -m conformance"


def main(arguments: Sequence[str]) -> int:
    """Run with ``arguments`` and return the exit status: 0 all holds, 1 not, 2 not understood."""
    name, rest = _NAME, list(arguments)
    if rest[:1] in (["record"], ["broken"]):
        name = f"{_NAME} {rest.pop(0)}"
    try:
        return int(_command(name).main(rest, prog_name=name, standalone_mode=False) or 0)
    except click.ClickException as error:
        click.echo(f"{error.format_message()} See {name} --help.", err=True)
        return 2
    except click.Abort:
        return 130


def _command(name: str) -> Any:
    if name.endswith(" record"):
        from conformance.record_cli import record

        return record
    if name.endswith(" broken"):
        from conformance.broken_cli import broken

        return broken
    from conformance.cli import replay

    return replay
