"""``python -m conformance -- COMMAND``: replays, and reports rule by rule."""

import json
import shutil
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from conformance import outcome, report, runner, transcripts
from conformance.main import CONTEXT
from conformance.transcripts import Transcript, TranscriptError

RULES = transcripts.ROOT.parent / "spec" / "requirements.toml"


@click.command("replay", context_settings=CONTEXT)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--only", default="*", metavar="GLOB", help="Only transcripts of such a name.")
@click.option(
    "--skip", multiple=True, metavar="GLOB", help="None of such a name; can be given several times."
)
@click.option(
    "--transcript",
    "paths",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="This file instead of the suite's; can be given several times.",
)
@click.option("--virtual", is_flag=True, help="In process against our own session; no COMMAND.")
@click.option("--list", "listing", is_flag=True, help="List the transcripts and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit file as well."
)
@click.option("--plain", is_flag=True, help="No colour (as when the output is no terminal).")
@click.option(
    "--side-by-side",
    type=click.IntRange(1, 64),
    default=runner.SIDE_BY_SIDE,
    show_default=True,
    help="Transcripts replayed at a time.",
)
def replay(  # noqa: PLR0913, PLR0917  (click hands over each option by itself)
    command: tuple[str, ...],
    only: str,
    skip: tuple[str, ...],
    paths: tuple[Path, ...],
    virtual: bool,
    listing: bool,
    as_json: bool,
    junit: Path | None,
    plain: bool,
    side_by_side: int,
) -> int:
    """Replay what hosts say against COMMAND, which starts a heartbeat server on stdio.

    Reports rule by rule: holds, broken, not reached. The exit status is 0 only when every rule that
    was reached holds. Other commands: record (a real session as a transcript), broken (servers that
    must fail).
    """
    chosen = read_all(only, paths, skip)
    if listing:
        _list(chosen, as_json)
        return 0
    if virtual == bool(command):
        raise click.UsageError("Name the server's COMMAND after --, or say --virtual.")
    if command and shutil.which(command[0]) is None:
        raise click.UsageError(f"{command[0]} is no command here.")
    clock = "virtual" if virtual else "real"
    playable = [each for each in chosen if each.plays(clock)]
    if not playable:
        raise click.UsageError(f"No transcript called {only} plays in {clock} time.")
    began = time.monotonic()
    replays = (
        runner.replay_virtual(playable)
        if virtual
        else runner.replay_real(playable, command, side_by_side)
    )
    outcomes = sorted(_counted(replays, len(playable)), key=lambda each: each.name)
    named = {rule for each in chosen for rule in each.all_rules()}
    run = report.Run(
        command=command,
        clock=clock,
        seconds=time.monotonic() - began,
        outcomes=tuple(outcomes),
        rules=tuple(outcome.over_all(outcomes, named)),
        texts=sentences(),
    )
    _tell(run, as_json, plain, junit)
    return 0 if run.holds else 1


def _tell(run: report.Run, as_json: bool, plain: bool, junit: Path | None) -> None:
    if junit is not None:
        junit.write_bytes(report.as_junit(run))
    if as_json:
        click.echo(json.dumps(report.as_json(run), indent=2, ensure_ascii=False))
    elif plain or not sys.stdout.isatty():
        click.echo(report.plain(run), nl=False)
    else:
        report.print_in_colour(run)


def read_all(only: str, paths: Sequence[Path] = (), skip: Sequence[str] = ()) -> list[Transcript]:
    """Read the transcripts so named, or these files; the first that makes no sense ends it."""
    left_out = {path for glob in skip for path in transcripts.find(glob)}
    found = list(paths) or [path for path in transcripts.find(only) if path not in left_out]
    if not found:
        raise click.UsageError(f"There is no transcript called {only}; --list shows all.")
    try:
        return [transcripts.read(path) for path in found]
    except TranscriptError as error:
        raise click.UsageError(str(error)) from None


def sentences() -> dict[str, str]:
    """Return the sentence of each rule."""
    try:
        rows = tomllib.loads(RULES.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return {}
    return {name: str(row.get("text", "")) for name, row in rows.items()}


def _list(chosen: Sequence[Transcript], as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": each.name,
                "title": each.title,
                "host": each.host,
                "clock": each.clock,
                "rules": list(each.all_rules()),
            }
            for each in chosen
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(each.name) for each in chosen)
    for each in chosen:
        click.echo(f"{each.name:<{width}}  {each.clock:<7}  {each.title}")


def _counted(replays: Iterator[outcome.Outcome], of: int) -> Iterator[outcome.Outcome]:
    """Show on a terminal how far the run is."""
    shown = sys.stderr.isatty()
    for number, each in enumerate(replays, 1):
        if shown:
            click.echo(f"\r{number} of {of}", nl=number == of, err=True)
        yield each
