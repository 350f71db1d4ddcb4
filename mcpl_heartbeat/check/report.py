"""A check's report: a table for people on a terminal, plain lines in a pipe, or one JSON object."""

import json
from typing import IO, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcpl_heartbeat.check.findings import Finding, Level

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.NOTE: "dim"}


class Got(msgspec.Struct, frozen=True):
    """What the agent of one server gets, as sentences: wakes first, then tools, then the rest."""

    server: str
    lines: tuple[str, ...]


class Report(msgspec.Struct, frozen=True):
    """All that a check says. ``checked`` names the config, ``host`` whose it was taken for."""

    checked: str
    host: str
    findings: tuple[Finding, ...]
    got: tuple[Got, ...]
    outcomes: dict[str, Any]
    status: int


def as_json(report: Report) -> str:
    """Give the report as one JSON object, in ASCII, which every stdout takes."""
    return json.dumps(
        {
            "checked": report.checked,
            "host": report.host,
            "findings": msgspec.to_builtins(report.findings),
            "servers": {
                got.server: msgspec.to_builtins(report.outcomes[got.server])
                | {"gets": list(got.lines)}
                for got in report.got
            },
            "status": report.status,
        },
        indent=2,
    )


def write(report: Report, file: IO[str]) -> None:
    """Write the report for a person: coloured and wrapped on a terminal, a line each in a pipe."""
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    console.print(f"{report.checked}, as {report.host} reads it", soft_wrap=True)
    console.print()
    if not report.findings:
        console.print("Nothing is wrong in the wiring.", soft_wrap=True)
    elif console.is_terminal:
        console.print(_table(report.findings))
        _pasted(report.findings, console)
    else:
        for finding in report.findings:
            console.print(
                f"{finding.level.upper():<8}{finding.where}: {finding.text}", soft_wrap=True
            )
            if finding.remedy:
                console.print(f"{'':8}→ {finding.remedy}", soft_wrap=True)
    for got in report.got:
        console.print()
        console.print(f"What an agent gets from {got.server}:", soft_wrap=True)
        for line in got.lines:
            console.print(f"  {line}", soft_wrap=not console.is_terminal)


def _holds_json(finding: Finding) -> bool:
    return any(sign in finding.remedy for sign in ('":', '["', '{"'))


def _pasted(findings: tuple[Finding, ...], console: Console) -> None:
    """The remedies with something to paste, unbroken, since a cell would break them."""
    for number, finding in enumerate(filter(_holds_json, findings), 1):
        console.print()
        console.print(f"({number}) {finding.where}", soft_wrap=True)
        console.print(f"→ {finding.remedy}", soft_wrap=True, style="green")


def _table(findings: tuple[Finding, ...]) -> Table:
    pasted = list(filter(_holds_json, findings))
    table = Table(show_lines=True)
    table.add_column("")
    table.add_column("where", overflow="fold", max_width=36)
    table.add_column("what was found, and what to do", overflow="fold")
    for finding in findings:
        text = Text(finding.text)
        if _holds_json(finding):
            text.append(f"\n→ see ({pasted.index(finding) + 1}) below", style="green")
        elif finding.remedy:
            text.append(f"\n→ {finding.remedy}", style="green")
        level = Text(finding.level, style=_STYLES[finding.level])
        table.add_row(level, Text(finding.where), text)
    return table
