"""``mcpl-heartbeat check``: reads a config, judges it, starts what it starts, and reports."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import msgspec

from mcpl_heartbeat.check import facts, grants, jsonc, report, rules, start, wake_rules
from mcpl_heartbeat.check.case import Case
from mcpl_heartbeat.check.findings import Finding, Level, error, exit_code, graded
from mcpl_heartbeat.check.hosts import PROFILES, STORE, plan
from mcpl_heartbeat.check.recipe import Entry, Host, Recipe, not_json, read


class Options(msgspec.Struct, frozen=True):
    """How to check. ``path`` is the config, ``None`` for this command as it stands.

    ``host`` and ``server`` (an id) settle what the config leaves open; ``gate`` is the file of the
    host's wake rules. ``starts`` false starts nothing; ``seconds`` bounds each wait for an answer.
    """

    path: str | None = None
    host: Host | None = None
    server: str | None = None
    gate: str | None = None
    strict: bool = False
    starts: bool = True
    seconds: float | None = None


def run(options: Options, *, as_json: bool = False) -> int:
    """Check, print the report and return the exit code.

    0: it will work; 1: with ``strict``, there are warnings; 2: something will not work.
    """
    waiting = contextlib.nullcontext() if sys.stderr is None else telling(sys.stderr)
    made = check(options, os.environ, waiting)
    if as_json:
        print(report.as_json(made))
    else:
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        report.write(made, sys.stdout)
    return made.status


SILENT_FOR = 1.0
"""Seconds after which also a reader that is no terminal is told what takes so long."""
STARTING = "Starting the server to see what it answers; this takes a few seconds."


@contextlib.contextmanager
def telling(stream: TextIO, silent_for: float = SILENT_FOR) -> Iterator[None]:
    """Say what is being waited for: on a terminal at once, else when it takes long."""
    late = threading.Timer(silent_for, _tell, (stream,))
    late.daemon = True
    if stream.isatty():
        _tell(stream)
    else:
        late.start()
    try:
        yield
    finally:
        late.cancel()


def _tell(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(STARTING, file=stream, flush=True)


def check(
    options: Options,
    environ: Mapping[str, str],
    waiting: contextlib.AbstractContextManager[None] | None = None,
) -> report.Report:
    """Do what ``run`` does in a shell with ``environ``, and give the report.

    ``waiting`` is entered while servers are tried out.
    """
    path, host = options.path, options.host
    name = path or "this command with this shell's environment"
    recipe, findings = _own(environ, host) if path is None else _read(path, host, options.server)
    if recipe is not None and options.gate is not None:
        recipe, more = _with_gate(recipe, options.gate)
        findings += more
    got: list[report.Got] = []
    outcomes: dict[str, Any] = {}
    if recipe is not None:
        cases = [_case(recipe, entry, environ) for entry in recipe.entries]
        found = {case.entry.id: rules.judge(case) for case in cases}
        findings += [finding for each in found.values() for finding in each]
        findings += rules.judge_together(cases)
        starting = options.starts and any(map(_startable, cases))
        with (waiting if starting else None) or contextlib.nullcontext():
            for case in cases if options.starts else ():
                if _startable(case):
                    outcome, more = start.try_out(case, options.seconds)
                else:
                    outcome, more = start.Outcome(why_not="its command cannot be started"), []
                findings += more
                outcomes[case.entry.id or "heartbeat"] = outcome
                got.append(_got(case, outcome, [*found[case.entry.id], *more]))
    findings = graded(findings)
    return report.Report(
        checked=name,
        host=PROFILES[recipe.host].title if recipe else "no host",
        findings=tuple(findings),
        got=tuple(got),
        outcomes=outcomes,
        status=exit_code(findings, strict=options.strict),
    )


def _startable(case: Case) -> bool:
    return case.facts.command is not None and not case.plan.unset


def _read(path: str, host: Host | None, server: str | None) -> tuple[Recipe | None, list[Finding]]:
    text = _text(path)
    if isinstance(text, Finding):
        return None, [text]
    return read(text, path, host, server)


def _text(path: str, remedy: str = "Name the host's config file.") -> str | Finding:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as failure:
        reason = failure.strerror or str(failure)
    except ValueError:
        reason = "it is not UTF-8"
    return error("file", path, f"It cannot be read: {reason}.", remedy)


def _is_ours(name: str) -> bool:
    # Those too that are meant for one of ours, and misspelled.
    return name.startswith("HEARTBEAT_")


def _own(environ: Mapping[str, str], host: Host | None) -> tuple[Recipe, list[Finding]]:
    """The entry that a host would need to start this very command with this very environment."""
    here = Path(sys.argv[0])
    named = here.name == "mcpl-heartbeat" and here.exists()
    command, args = (
        (str(here.absolute()), ["--stdio"])
        if named
        else (sys.executable, ["-m", "mcpl_heartbeat", "--stdio"])
    )
    entry = {
        "command": command,
        "args": args,
        "env": {name: value for name, value in environ.items() if value and _is_ours(name)},
        "enabledFeatureSets": ["heartbeat", *(["watch", "tasks"] if environ.get(STORE) else [])],
        "reconnect": True,
    }
    one = Entry("heartbeat", "", entry, entry, "")
    return Recipe(host or Host.AGENT_FRAMEWORK, (one,)), []


def _with_gate(recipe: Recipe, path: str) -> tuple[Recipe, list[Finding]]:
    text = _text(path, "Name the host's gate.json, or leave --gate out.")
    if isinstance(text, Finding):
        return recipe, [text]
    parsed = jsonc.parse(text)
    if isinstance(parsed, str):
        return recipe, [not_json(path, parsed)]
    return (
        msgspec.structs.replace(
            recipe,
            wake=parsed.value if parsed.value is not None else [],
            wake_where=path,
            modules=True,
        ),
        [],
    )


def _case(recipe: Recipe, entry: Entry, environ: Mapping[str, str]) -> Case:
    planned = plan(recipe, entry, environ)
    return Case(recipe, entry, planned, facts.gather(planned), environ)


def _got(case: Case, outcome: start.Outcome, findings: list[Finding]) -> report.Got:
    server = case.entry.id or "heartbeat"
    asleep = grants.asleep(case)
    without = _is_without_store(findings)
    kinds = _kinds(outcome, without=without)
    awake = [kind for kind in kinds if kind not in asleep]
    lines = []
    if not outcome.wakes:
        lines.append(f"Wakes: none. {_sentence(outcome.why_not)}")
        if PROFILES[case.host].mcpl is None and outcome.tools:
            lines.append(
                "The tools keep the schedule and the reminders, and say that nothing will fire."
            )
    elif not awake:
        lines.append(
            "Wakes: none. Each reaches the agent's context, and the wake rules let it sleep."
        )
    else:
        named = wake_rules.listed(_ASKED.get(kind, kind) for kind in awake)
        silent = ", heartbeats silently" if outcome.silent and "heartbeats" in awake else ""
        lines.append(f"Wakes: {named}{silent}. {_deciding(case, awake[0])}")
        if len(awake) < len(kinds):
            lost = wake_rules.listed(kind for kind in kinds if kind in asleep)
            lines.append(f"The wake rules let {lost} sleep; each reaches the agent's context.")
        if outcome.watches and without:
            lines.append("No alerts and nudges: see what is said of the store.")
    if outcome.tools:
        lines.append(f"Tools: {', '.join(outcome.tools)}")
    else:
        lines.append("Tools: none.")
    if outcome.status:
        # What the agent would be told, without the heartbeat's own text at the end of the line.
        lines.append(f"Status: {outcome.status.splitlines()[0].partition(' | message=')[0]}")
    if outcome.seconds is not None:
        lines.append(f"Ready {outcome.seconds:.1f} s after its start: {outcome.server}")
    return report.Got(server, tuple(lines))


def _is_without_store(findings: list[Finding]) -> bool:
    return any(found.id == "store" and found.level is Level.ERROR for found in findings)


_ASKED = {"claimable tasks": "claimable tasks (where wake_on_tasks asks for it)"}


def _kinds(outcome: start.Outcome, *, without: bool) -> list[str]:
    """List what the server pushes; ``without``: it cannot use the store."""
    kinds = ["heartbeats", "reminders"]
    if outcome.watches and not without:
        kinds += ["alerts", "nudges"]
    if outcome.tasks and not without:
        kinds += ["reviews", "claimable tasks"]
    return kinds


def _deciding(case: Case, kind: str) -> str:
    if case.host is Host.AGENT_FRAMEWORK:
        server = case.entry.id or wake_rules.ID
        return _sentence(wake_rules.deciding_rule(case.recipe.wake, server, kind))
    return "The session is woken for each."


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:].rstrip('.')}."
