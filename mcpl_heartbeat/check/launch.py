"""Rules on how the server is started: its command, its files, its environment. Pure."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

from mcpl_heartbeat.check.case import Case, FileFact
from mcpl_heartbeat.check.findings import Finding, error, note, warning
from mcpl_heartbeat.check.hosts import (
    AGENT_KEY,
    AGENT_TIMEZONE,
    CONFIG_FILE,
    DEFAULTS,
    PROFILES,
    REMINDERS_FILE,
    STORE,
    passes,
)
from mcpl_heartbeat.check.recipe import Host


def _transport(case: Case) -> Iterator[Finding]:
    members, launch = case.entry.members, case.entry.launch
    if members.get("disabled") is True:
        yield error(
            "disabled",
            case.at("disabled"),
            "The host does not start this server.",
            'Remove "disabled": true.',
        )
    if "url" in launch and "command" not in launch:
        yield error(
            "transport",
            case.in_launch("url"),
            "This server speaks over stdio and has no address.",
            'Give "command" and "args" in place of "url".',
        )
    if case.host is Host.AGENT_FRAMEWORK and members.get("protocol") == "modern":
        yield error(
            "transport",
            case.at("protocol"),
            "The modern protocol has no MCPL, so no wakes.",
            'Remove "protocol": "modern".',
        )


def _command(case: Case) -> Iterator[Finding]:
    plan = case.plan
    for name in plan.unset:
        yield error(
            "unset-variable",
            case.entry.where,
            f"${{{name}}} is used, and {name} is not set: the host does not load such a recipe.",
            f"Set {name}, or write ${{{name}:-some default}}.",
        )
    if plan.unset:
        return
    if not plan.command:
        if "url" not in case.entry.launch:
            yield error(
                "command",
                case.in_launch("command"),
                "There is no command to start.",
                'Give "command", the path of mcpl-heartbeat.',
            )
        return
    if case.facts.command is None:
        yield error(
            "command",
            case.in_launch("command"),
            f"{plan.command} is not there or cannot be run.",
            _install(plan.command),
        )
    elif "/" in plan.command and not PurePath(plan.command).is_absolute():
        yield warning(
            "command",
            case.in_launch("command"),
            f"{plan.command} is found only if the host runs in the folder you are in now.",
            f"Write {case.facts.command}",
        )
    elif "/" not in plan.command and case.host is Host.CLAUDE_DESKTOP:
        yield warning(
            "command",
            case.in_launch("command"),
            f"{plan.command} is looked up in PATH, and a desktop program's PATH is short.",
            f"Write {case.facts.command}",
        )


def _install(command: str) -> str:
    """What to do about a command that is not there."""
    program = PurePath(command).name
    path = "give the path that `python3 start.py install` prints"
    if program in ("uv", "uvx", "pipx"):
        tool = "pipx" if program == "pipx" else "uv"
        whole = "" if "/" in command else f" (or write the whole path of {program})"
        return f'Install {tool}{whole}, or {path}, with "args": ["--stdio"].'
    if PurePath(command).parent.parts[-2:] == (".local", "bin"):
        return f"Run `pipx install /path/to/mcpl-heartbeat`, or {path}."
    return f"{path[0].upper()}{path[1:]}."


def _arguments(case: Case) -> Iterator[Finding]:
    args = case.entry.launch.get("args", [])
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        yield error(
            "args",
            case.in_launch("args"),
            "args must be an array of strings.",
            'Write ["--stdio"].',
        )
        return
    for path in case.facts.missing_arguments:
        yield warning(
            "args", case.in_launch("args"), f"There is nothing at {path}.", "Correct the path."
        )
    if case.plan.command and "--stdio" not in case.plan.args:
        yield error(
            "args",
            case.in_launch("args"),
            "--stdio is missing: the server ends at once.",
            'Write "args": ["--stdio"].',
        )


def _state_files(case: Case) -> Iterator[Finding]:
    where = case.in_launch("env")
    one, other = (case.facts.files[name].real for name in (CONFIG_FILE, REMINDERS_FILE))
    if one == other:
        yield error(
            "state-path",
            where,
            f"Both files are {one}; neither is read or written.",
            "Give each a path of its own.",
        )
    env = case.entry.launch.get("env")
    for name in DEFAULTS:
        if isinstance(env, dict) and name in env and not isinstance(env[name], str):
            # Reported as what it is, a value of the wrong type.
            continue
        path = case.plan.files[name]
        if "\0" in path or path.startswith("~"):
            yield error(
                "state-path",
                f"{where}.{name}",
                f"{path} is no path: nobody expands ~ here.",
                "Write the whole path.",
            )
        elif not PurePath(path).is_absolute():
            what = "It is not set" if name not in case.plan.declared else f"{path} is relative"
            yield warning(
                "state-path",
                f"{where}.{name}",
                f"{what}: the file lands in whatever folder the host runs in.",
                f'Add "{name}": "/path/to/data/{DEFAULTS[name]}" to env.',
            )
        elif why := case.facts.files[name].unwritable:
            yield error(
                "state-path",
                f"{where}.{name}",
                f"{path} cannot be written: {why}.",
                "Name a file in a folder that the host's user may write to.",
            )
        yield from _content(f"{where}.{name}", case.facts.files[name])
    if case.facts.held_by:
        yield note(
            "in-use",
            where,
            f"A server works on these files now ({case.facts.held_by}). While the host runs that "
            "is as it should be; a second one on them would wait.",
        )


def _content(where: str, fact: FileFact) -> Iterator[Finding]:
    if fact.unreadable:
        yield error(
            "state-file",
            where,
            f"{fact.unreadable} The server leaves it alone and saves nothing to it.",
            "Let the host's user read it, or name another file.",
        )
    elif fact.unusable:
        yield warning(
            "state-file",
            where,
            f"{fact.unusable} It will be copied aside, and the defaults used for what is missing.",
            "Correct the file, or name another if this is not the server's own.",
        )


def _environment(case: Case) -> Iterator[Finding]:
    env = case.entry.launch.get("env")
    where = case.in_launch("env")
    if env is not None and not isinstance(env, dict):
        yield error("env", where, "env must be an object.", 'Write {"NAME": "value"}.')
    for name, value in env.items() if isinstance(env, dict) else ():
        if not isinstance(value, str):
            yield error(
                "env",
                f"{where}.{name}",
                "A variable's value must be a string.",
                f'Write "{name}": "{_as_text(value)}".',
            )
    scrubbed = [
        name
        for name in sorted(case.environ)
        if _matters(name, case.plan.command)
        and name not in case.plan.declared
        and not passes(case.host, case.entry, name)
    ]
    if scrubbed:
        yield warning(
            "env",
            where,
            f"{', '.join(scrubbed)}: set in this shell, and the host does not pass "
            f"{'it' if len(scrubbed) == 1 else 'them'} on to the server.",
            "Add to env what the server needs.",
        )


def _as_text(value: object) -> str:
    """What a variable's value was meant to be, as far as that can be told."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else "…"


def _matters(name: str, command: str) -> bool:
    program = PurePath(command).name
    if name in DEFAULTS or name in (AGENT_TIMEZONE, STORE, AGENT_KEY):
        return True
    if program.startswith("python"):
        return name in ("PYTHONPATH", "PYTHONHOME")
    if program in ("uvx", "uv", "pipx"):
        return name.startswith(("UV_", "PIP_", "PIPX_"))
    return False


def _timezone(case: Case) -> Iterator[Finding]:
    zone = case.plan.environment.get(AGENT_TIMEZONE, "")
    if zone.strip() and not case.facts.zone_known:
        from_agent = case.recipe.agent_timezone is not None
        yield warning(
            "timezone",
            "agent.timezone" if from_agent else case.in_launch(f"env.{AGENT_TIMEZONE}"),
            f"{zone} is not the name of a time zone here; the system's zone is shown instead.",
            "Write an IANA name such as Europe/Berlin.",
        )


def _reconnect(case: Case) -> Iterator[Finding]:
    if PROFILES[case.host].mcpl is not None and case.entry.members.get("reconnect") is not True:
        yield warning(
            "reconnect",
            case.at("reconnect"),
            "The host does not start the server again when it has died.",
            'Add "reconnect": true.',
        )


RULES: tuple[Callable[[Case], Iterable[Finding]], ...] = (
    _transport,
    _command,
    _arguments,
    _state_files,
    _environment,
    _timezone,
    _reconnect,
)
