"""What a check finds, and what its exit code says of it. Pure."""

import enum
from collections.abc import Iterable

import msgspec


class Level(enum.StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    """It will not work: no wakes, or not even the tools."""
    WARNING = "warning"
    """It works today or on this host, and will fail on another or later."""
    NOTE = "note"
    """Worth knowing; nothing to mend."""


class Finding(msgspec.Struct, frozen=True):
    """One thing found, with one line on what to do about it.

    ``id`` names the rule (``server-id``), ``where`` the member of the config that it is about
    (``mcpServers.heartbeat.env``). ``remedy`` is empty only for notes.
    """

    id: str
    level: Level
    where: str
    text: str
    remedy: str = ""


def error(id: str, where: str, text: str, remedy: str) -> Finding:
    """A finding of something that will not work."""
    return Finding(id, Level.ERROR, where, text, remedy)


def warning(id: str, where: str, text: str, remedy: str) -> Finding:
    """A finding of something that will fail elsewhere or later."""
    return Finding(id, Level.WARNING, where, text, remedy)


def note(id: str, where: str, text: str, remedy: str = "") -> Finding:
    """A finding that is only worth knowing."""
    return Finding(id, Level.NOTE, where, text, remedy)


def graded(findings: Iterable[Finding]) -> list[Finding]:
    """Give the findings with the gravest first, otherwise in the order they came, none twice."""
    order = list(Level)
    return sorted(dict.fromkeys(findings), key=lambda finding: order.index(finding.level))


def exit_code(findings: Iterable[Finding], *, strict: bool) -> int:
    """Give 2 when something will not work, 1 for warnings when ``strict``, else 0 (issue 3, §4)."""
    levels = {finding.level for finding in findings}
    if Level.ERROR in levels:
        return 2
    return 1 if strict and Level.WARNING in levels else 0
