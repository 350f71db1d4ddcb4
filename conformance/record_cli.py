"""``python -m conformance record``: a real host and a real server, written down."""

import sys
from pathlib import Path

import click

from conformance import record as recorder
from conformance.main import CONTEXT


@click.command("record", context_settings=CONTEXT)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The transcript to write; what is there is replaced.",
)
@click.option("--title", default="A recorded session", show_default=True, help="Its title.")
def record(command: tuple[str, ...], out: Path, title: str) -> int:
    """Stand between a host and COMMAND, as the host's recipe starts it, and write a transcript.

    Every byte passes unchanged and at once, in both directions, and so do signals and the exit
    status. In the transcript ids, times and secrets are replaced by patterns. From another folder:
    python /path/to/checkout/conformance record --out FILE -- COMMAND…
    """
    try:
        out.touch()
    except OSError as error:
        raise click.UsageError(f"{out} cannot be written: {error.strerror}.") from None
    status = recorder.run(list(command), out.absolute(), title)
    sys.stdout.flush()
    return status
