"""What came of a replay: of one transcript, and of each rule over all of them."""

import enum
from collections.abc import Iterable, Mapping

import msgspec

from conformance.transcripts import Step, Transcript


class Verdict(enum.StrEnum):
    """What a run says of a rule."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_REACHED = "not reached"


class Failure(msgspec.Struct, frozen=True):
    """Why a transcript ended early: at which line, and the two messages to be held side by side."""

    line: int
    step: str
    why: str
    wanted: str = ""
    got: str = ""
    log: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """One transcript, replayed."""

    name: str
    title: str
    host: str
    clock: str
    seconds: float
    rules: Mapping[str, Verdict]
    failure: Failure | None = None

    @property
    def passed(self) -> bool:
        """Whether every step passed."""
        return self.failure is None


def of_rules(transcript: Transcript, failed: Step | None) -> dict[str, Verdict]:
    """Judge every rule of one transcript that passed, or that ended at the step ``failed``."""
    judged: dict[str, Verdict] = {}
    for rule in transcript.all_rules():
        lines = [step.line for step in transcript.steps if rule in step.rules]
        if failed is None:
            judged[rule] = Verdict.HOLDS
        elif rule in failed.rules or (not lines and not failed.rules):
            judged[rule] = Verdict.BROKEN
        elif lines and lines[-1] < failed.line:
            judged[rule] = Verdict.HOLDS
        else:
            judged[rule] = Verdict.NOT_REACHED
    return judged


class Rule(msgspec.Struct, frozen=True):
    """One rule over all transcripts: the verdict, and the transcripts behind it."""

    id: str
    verdict: Verdict
    holds: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def over_all(outcomes: Iterable[Outcome], known: Iterable[str] = ()) -> list[Rule]:
    """Judge every rule that a transcript names, sorted; those of ``known`` are listed anyhow."""
    holds: dict[str, list[str]] = {rule: [] for rule in known}
    broken: dict[str, list[str]] = {rule: [] for rule in holds}
    for outcome in outcomes:
        for rule, verdict in outcome.rules.items():
            holds.setdefault(rule, [])
            broken.setdefault(rule, [])
            if verdict is Verdict.HOLDS:
                holds[rule].append(outcome.name)
            elif verdict is Verdict.BROKEN:
                broken[rule].append(outcome.name)
    return [
        Rule(rule, _verdict(holds[rule], broken[rule]), tuple(holds[rule]), tuple(broken[rule]))
        for rule in sorted(holds)
    ]


def _verdict(holds: list[str], broken: list[str]) -> Verdict:
    if broken:
        return Verdict.BROKEN
    return Verdict.HOLDS if holds else Verdict.NOT_REACHED
