"""Reading a host's config: which host's it is, and which entries start a heartbeat server. Pure."""

import difflib
import enum
import re
from pathlib import PurePath
from typing import Any

import msgspec

from mcpl_heartbeat.check import jsonc
from mcpl_heartbeat.check.findings import Finding, error, note, warning

_OURS = re.compile(r"mcpl[-_]heartbeat|heartbeat[-_]mcpl", re.IGNORECASE)
_FRAMEWORK_MEMBERS = frozenset(
    {
        "enabledFeatureSets", "disabledFeatureSets", "enabledCapabilities", "disabledCapabilities",
        "reconnect", "toolPrefix", "inheritEnv", "protocol", "channelSubscription",
        "requestTimeoutMs", "toolLifecycle",
    }
)  # fmt: skip
_FRAMEWORK_TOP = frozenset({"agent", "modules", "systemPrompt"})


class Host(enum.StrEnum):
    """The hosts whose configs are understood."""

    AGENT_FRAMEWORK = "agent-framework"
    BRIDGE = "mcpl-cc-bridge"
    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    MCP = "mcp"


class Entry(msgspec.Struct, frozen=True):
    """One server of a config.

    ``launch`` is the object that holds ``command``, ``args`` and ``env``: the entry itself, or its
    ``transport`` in the bridge's config. ``id`` is empty where the config gives none.
    """

    id: str
    where: str
    members: dict[str, Any]
    launch: dict[str, Any]
    launch_where: str


class Recipe(msgspec.Struct, frozen=True):
    """A config as far as it concerns this server.

    ``wake`` is ``modules.wake`` (``None``: not given), ``modules`` says whether there are any.
    """

    host: Host
    entries: tuple[Entry, ...]
    wake: Any = None
    wake_where: str = "modules.wake"
    modules: bool = False
    agent_timezone: str | None = None
    substitutes: bool = False
    """Whether the host puts environment variables in place of ``${NAME}``."""


def read(
    text: str, name: str, host: Host | None, server: str | None
) -> tuple[Recipe | None, list[Finding]]:
    """Read the config ``text`` from the file ``name``; ``None`` when nothing in it can be checked.

    ``host`` and ``server`` (an id) settle what the file leaves open. Never raises.
    """
    parsed = jsonc.parse(text)
    if isinstance(parsed, str):
        return None, [not_json(name, parsed)]
    top = parsed.value
    if not isinstance(top, dict):
        return None, [
            error("shape", name, "The config is not an object.", 'Begin it with { "mcpServers": …')
        ]
    findings: list[Finding] = []
    for twice in parsed.twice:
        findings.append(
            warning(
                "twice",
                name,
                f'"{twice}" is given twice in one object, and only the last one counts.',
                "Remove or rename one of them.",
            )
        )
    if parsed.comments:
        findings.append(
            note(
                "comments",
                name,
                "It holds comments. Several hosts read strict JSON and refuse them.",
                "Remove the comments if the host does not load the file.",
            )
        )
    entries = _entries(top)
    host = host or _host(top, entries, name)
    chosen = [entry for entry in entries if _is_heartbeat(entry, server)]
    if not chosen:
        findings.append(_misnamed(top, name) or _none_found(entries, server, name))
        return None, findings
    return _recipe(top, tuple(chosen), host), findings


def _recipe(top: dict[str, Any], entries: tuple[Entry, ...], host: Host) -> Recipe:
    modules, agent = top.get("modules"), top.get("agent")
    zone = agent.get("timezone") if isinstance(agent, dict) else None
    framework = host is Host.AGENT_FRAMEWORK
    return Recipe(
        host=host,
        entries=entries,
        wake=modules.get("wake") if isinstance(modules, dict) else None,
        modules=isinstance(modules, dict),
        agent_timezone=zone if isinstance(zone, str) and framework else None,
        substitutes=framework,
    )


def _entries(top: dict[str, Any]) -> list[Entry]:
    if isinstance(top.get("command"), str):
        return [Entry("", "", top, top, "")]
    found = []
    for section in ("mcpServers", "servers"):
        servers = top.get(section)
        if not isinstance(servers, dict):
            continue
        for id, members in servers.items():
            if isinstance(members, dict):
                where = f"{section}.{id}"
                transport = members.get("transport")
                if isinstance(transport, dict):
                    found.append(Entry(id, where, members, transport, f"{where}.transport"))
                else:
                    found.append(Entry(id, where, members, members, where))
    return found


def _host(top: dict[str, Any], entries: list[Entry], name: str) -> Host:
    file = PurePath(name).name.lower()
    if any(entry.launch is not entry.members for entry in entries):
        return Host.BRIDGE
    if _FRAMEWORK_TOP & top.keys() or file.startswith("mcpl-servers"):
        return Host.AGENT_FRAMEWORK
    if any(_FRAMEWORK_MEMBERS & entry.members.keys() for entry in entries):
        return Host.AGENT_FRAMEWORK
    if "desktop" in file:
        return Host.CLAUDE_DESKTOP
    if file == ".mcp.json" or "claude" in file:
        return Host.CLAUDE_CODE
    return Host.MCP


def _is_heartbeat(entry: Entry, server: str | None) -> bool:
    if server is not None:
        return entry.id == server
    if entry.id in ("", "heartbeat"):
        return True
    args = entry.launch.get("args")
    words = [entry.launch.get("command"), *(args if isinstance(args, list) else [])]
    return any(isinstance(word, str) and _OURS.search(word) for word in words)


def not_json(name: str, why: str) -> Finding:
    """The finding of a file that could not be parsed; ``why`` as ``jsonc.parse`` gives it."""
    remedy = "Correct that line." if why.startswith("line ") else "Give it its content."
    return error("json", name, f"This is not JSON: {why}.", remedy)


def _misnamed(top: dict[str, Any], name: str) -> Finding | None:
    """What is said of ``mcpServer`` and other slips of the name that holds the servers."""
    if "mcpServers" in top or "servers" in top:
        return None
    for member, value in top.items():
        if isinstance(value, dict) and difflib.get_close_matches(
            member.lower(), ("mcpservers", "servers"), 1, 0.8
        ):
            right = "servers" if member.lower().startswith("serv") else "mcpServers"
            return error(
                "no-server",
                name,
                f"No host reads {member}; did you mean {right}?",
                f"Call it {right}.",
            )
    return None


def _none_found(entries: list[Entry], server: str | None, name: str) -> Finding:
    ids = ", ".join(entry.id for entry in entries) or "none"
    if server is not None:
        return error(
            "no-server",
            name,
            f"There is no server {server} here (there are: {ids}).",
            "Give an id that is there.",
        )
    return error(
        "no-server",
        name,
        f"No entry here starts a heartbeat server (servers: {ids}).",
        'Add one under "mcpServers" with the id heartbeat, or name yours with --server ID.',
    )
