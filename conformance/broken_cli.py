"""``python -m conformance broken``: servers that must fail, and the transcripts that notice."""

import sys

import click

from conformance import mutants, runner, transcripts
from conformance.main import CONTEXT
from conformance.mutants import Mutant
from conformance.outcome import Outcome
from conformance.transcripts import ROOT, Transcript, TranscriptError


def command_of(mutant: Mutant) -> list[str]:
    """Return the command that serves as ``mutant``, from whatever folder."""
    return [sys.executable, str(ROOT / "broken" / "__main__.py"), mutant.name, "--stdio"]


def caught_by(mutant: Mutant) -> list[Transcript]:
    """Read the transcripts that ``mutant`` must fail, or raise ``TranscriptError``."""
    return [transcripts.read(ROOT / f"{name}.jsonl") for name in mutant.caught_by]


def replay(mutant: Mutant, transcript: Transcript) -> Outcome:
    """Replay one transcript against ``mutant``: in virtual time where it can be."""
    if transcript.plays("virtual"):
        with mutants.applied(mutant):
            (outcome,) = runner.replay_virtual([transcript])
    else:
        (outcome,) = runner.replay_real([transcript], command_of(mutant))
    return outcome


def missed(mutant: Mutant, outcome: Outcome) -> str:
    """Say how the transcript has not noticed what is wrong with ``mutant``; ``""``: it has."""
    if outcome.failure is None:
        return "NOT CAUGHT"
    at = mutant.caught_by[outcome.name]
    if at not in outcome.failure.step:
        return f"NOT AT THE STEP OF {at!r}: line {outcome.failure.line}: {outcome.failure.why}"
    return ""


@click.command("broken", context_settings=CONTEXT)
@click.argument("names", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the broken servers and stop.")
def broken(names: tuple[str, ...], listing: bool) -> int:
    """Replay against broken servers (all, or those of these NAMES) what must fail on them.

    The exit status is 0 when every transcript that a server names has caught it, at the step that
    it names.
    """
    known = mutants.load()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"There is no broken server {', '.join(unknown)}; --list shows all.")
    chosen = [known[name] for name in names or known]
    width = max((len(mutant.name) for mutant in chosen), default=0)
    uncaught = 0
    for mutant in chosen:
        if listing:
            click.echo(f"{mutant.name:<{width}}  {mutant.sentence}")
            continue
        try:
            replays = [(each, replay(mutant, each)) for each in caught_by(mutant)]
        except TranscriptError as error:
            raise click.UsageError(str(error)) from None
        for transcript, outcome in replays:
            found = missed(mutant, outcome)
            uncaught += bool(found)
            if not found and outcome.failure is not None:
                found = f"line {outcome.failure.line}: {outcome.failure.why}"
            click.echo(f"{mutant.name:<{width}}  {transcript.name}: {found}")
    return 1 if uncaught else 0
