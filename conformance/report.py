"""What a run found, told to a person (in colour or plain), to a program, and to a build server."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from conformance.outcome import Failure, Outcome, Rule, Verdict

_COLOURS = {Verdict.HOLDS: "green", Verdict.BROKEN: "bold red", Verdict.NOT_REACHED: "yellow"}
_MOST_NAMED = 3


class Run(msgspec.Struct, frozen=True):
    """One run: what was replayed against what, and what came of it.

    ``texts`` holds the sentence of each rule, where one is known.
    """

    command: tuple[str, ...]
    clock: str
    seconds: float
    outcomes: tuple[Outcome, ...]
    rules: tuple[Rule, ...]
    texts: Mapping[str, str]

    @property
    def holds(self) -> bool:
        """Whether every rule that was reached holds, and every transcript passed."""
        return all(outcome.passed for outcome in self.outcomes)

    def summary(self) -> str:
        """Say it in one line."""
        verdicts = Counter(rule.verdict for rule in self.rules)
        failed = sum(not outcome.passed for outcome in self.outcomes)
        return (
            f"{len(self.rules)} rules: {verdicts[Verdict.HOLDS]} hold, "
            f"{verdicts[Verdict.BROKEN]} broken, {verdicts[Verdict.NOT_REACHED]} not reached; "
            f"{len(self.outcomes)} transcripts, {failed} failed, in {self.seconds:.1f} s "
            f"({self.clock} time)"
        )


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CONTROLS |= {0x09: "\t", 0x0A: "\n"}


def _visible(text: str) -> str:
    """Return ``text`` with control characters spelled out: a server does not paint our terminal."""
    return text.translate(_CONTROLS)


def where(outcome: Outcome) -> str:
    """Return the place of a failure, as editors and terminals understand it."""
    failure = outcome.failure
    return f"conformance/{outcome.name}.jsonl:{failure.line if failure else 1}"


# Plain -------------------------------------------------------------------------------------------


def plain(run: Run) -> str:
    """Return the whole report as text without colour."""
    parts = [
        _failed_plainly(outcome, outcome.failure) for outcome in run.outcomes if outcome.failure
    ]
    width = max((len(rule.id) for rule in run.rules), default=0)
    rows = []
    for rule in run.rules:
        rows.append(f"{rule.verdict:<12} {rule.id:<{width}}  {_behind(rule)}".rstrip())
        if rule.verdict is Verdict.BROKEN and rule.id in run.texts:
            rows.append(f"{'':<12} {run.texts[rule.id]}")
    return "\n".join([*parts, *rows, "", run.summary(), ""])


def _failed_plainly(outcome: Outcome, failure: Failure) -> str:
    lines = [f"{where(outcome)}: {outcome.title}", f"  {_visible(failure.why)}"]
    for heading, text in (
        ("line", failure.step),
        ("wanted", failure.wanted),
        ("got", failure.got),
        ("log", failure.log),
    ):
        first, *rest = _visible(text).splitlines() or [""]
        if text:
            lines.append(f"  {heading + ':':<8}{first}")
            lines.extend(f"          {line}" for line in rest)
    return "\n".join([*lines, ""])


def _behind(rule: Rule) -> str:
    names = rule.broken if rule.verdict is Verdict.BROKEN else rule.holds
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


# In colour ---------------------------------------------------------------------------------------


def print_in_colour(run: Run) -> None:
    """Print the whole report to a terminal."""
    from rich.console import Console  # noqa: PLC0415  (only people need it)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False)
    for outcome in run.outcomes:
        failure = outcome.failure
        if failure is None:
            continue
        console.print(Text(f"{where(outcome)}: {outcome.title}", style="bold"))
        console.print(Text(_visible(failure.why), style="red"))
        console.print(Text(_visible(failure.step), style="dim"))
        if failure.wanted or failure.got:
            side_by_side = Table("wanted", "got", expand=True)
            side_by_side.add_row(Text(_visible(failure.wanted)), Text(_visible(failure.got)))
            console.print(side_by_side)
        if failure.log:
            console.print(Text(_visible(failure.log.rstrip()), style="dim"))
        console.print()
    table = Table("rule", "verdict", "shown by", title="Rule by rule", title_justify="left")
    for rule in run.rules:
        broken = rule.verdict is Verdict.BROKEN
        sentence = f"\n{run.texts.get(rule.id, '')}" if broken else ""
        verdict = Text(rule.verdict, style=_COLOURS[rule.verdict])
        table.add_row(Text(rule.id + sentence), verdict, _behind(rule))
    console.print(table)
    console.print(Text(run.summary(), style="bold green" if run.holds else "bold red"))


# For programs ------------------------------------------------------------------------------------


def as_json(run: Run) -> dict[str, Any]:
    """Return everything as a JSON object."""
    return {
        "command": list(run.command),
        "clock": run.clock,
        "seconds": round(run.seconds, 3),
        "holds": run.holds,
        "summary": run.summary(),
        "rules": [
            {
                "id": rule.id,
                "verdict": str(rule.verdict),
                "text": run.texts.get(rule.id, ""),
                "holds": list(rule.holds),
                "broken": list(rule.broken),
            }
            for rule in run.rules
        ],
        "transcripts": [_outcome_as_json(outcome) for outcome in run.outcomes],
    }


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    failure = outcome.failure
    return {
        "name": outcome.name,
        "title": outcome.title,
        "host": outcome.host,
        "passed": outcome.passed,
        "seconds": round(outcome.seconds, 3),
        "failure": None if failure is None else msgspec.to_builtins(failure),
    }


def as_junit(run: Run) -> bytes:
    """Return a JUnit XML file: one suite with the transcripts, one with the rules."""
    root = ET.Element("testsuites", name="conformance")
    _suite(root, "transcripts", run.seconds, [_case_of_outcome(each) for each in run.outcomes])
    _suite(root, "rules", 0, [_case_of_rule(rule, run.texts) for rule in run.rules])
    ET.indent(root)
    return str(ET.tostring(root, encoding="unicode", xml_declaration=True)).encode()


def _suite(root: ET.Element, name: str, seconds: float, cases: Sequence[ET.Element]) -> None:
    counts = Counter(child.tag for case in cases for child in case)
    suite = ET.SubElement(
        root,
        "testsuite",
        name=f"conformance.{name}",
        tests=str(len(cases)),
        failures=str(counts["failure"]),
        skipped=str(counts["skipped"]),
        errors="0",
        time=f"{seconds:.3f}",
    )
    suite.extend(cases)


def _case_of_outcome(outcome: Outcome) -> ET.Element:
    folder, _, name = outcome.name.rpartition("/")
    case = ET.Element(
        "testcase", classname=f"conformance.{folder}", name=name, time=f"{outcome.seconds:.3f}"
    )
    failure = outcome.failure
    if failure is not None:
        element = ET.SubElement(case, "failure", message=_xml(f"{where(outcome)}: {failure.why}"))
        element.text = _xml(_failed_plainly(outcome, failure))
    return case


def _case_of_rule(rule: Rule, texts: Mapping[str, str]) -> ET.Element:
    case = ET.Element("testcase", classname="conformance.rules", name=rule.id, time="0")
    if rule.verdict is Verdict.BROKEN:
        element = ET.SubElement(case, "failure", message=_xml(texts.get(rule.id, rule.id)))
        element.text = _xml("\n".join(rule.broken))
    elif rule.verdict is Verdict.NOT_REACHED:
        ET.SubElement(case, "skipped", message="not reached")
    return case


def _xml(text: str) -> str:
    """Return ``text`` without the characters that no XML file may hold."""
    return "".join(
        character
        if character in "\t\n" or " " <= character <= "\ud7ff" or character >= "\ue000"
        else "�"
        for character in text
        if character not in "\ufffe\uffff"
    )
