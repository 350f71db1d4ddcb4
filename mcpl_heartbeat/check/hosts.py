"""What each host passes on to its servers, grants them and says to them. Pure.

Taken from what the hosts do (host list, chapters 1 and 5). Where a host's rule is not known the
narrower one is assumed, so that what passes here passes there.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mcpl_heartbeat.check.recipe import Entry, Host, Recipe
from mcpl_heartbeat.policy.paths import expand, names_feature_set

CONFIG_FILE, REMINDERS_FILE = "HEARTBEAT_CONFIG_FILE", "HEARTBEAT_REMINDERS_FILE"
AGENT_TIMEZONE = "AGENT_TIMEZONE"
STORE, AGENT_KEY = "HEARTBEAT_STORE", "HEARTBEAT_AGENT_KEY"
DEFAULTS = {CONFIG_FILE: "heartbeat-config.json", REMINDERS_FILE: "heartbeat-reminders.json"}

_BASIC = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What the MCP SDKs pass on to a child unless told otherwise."""
_FRAMEWORK = frozenset(
    {
        *_BASIC, "LANG", "TZ", "TMPDIR", "TMP", "TEMP", "DISPLAY", "WAYLAND_DISPLAY",
        "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
        "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    }
)  # fmt: skip
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Profile(msgspec.Struct, frozen=True):
    """How a host speaks. ``mcpl`` is what it advertises, ``None`` for a plain MCP client.

    ``initialize_seconds`` and ``policy_seconds`` are how long it waits before it gives up.
    """

    title: str
    protocol: str
    client: dict[str, str]
    mcpl: dict[str, Any] | None
    initialize_seconds: float = 30.0
    policy_seconds: float = 30.0
    checks_pushes: bool = False
    passes_all: bool = False


PROFILES = {
    Host.AGENT_FRAMEWORK: Profile(
        title="agent-framework",
        protocol="2024-11-05",
        client={"name": "agent-framework", "version": "1.0.0"},
        mcpl={
            "version": "0.5",
            "pushEvents": True,
            "eventCoalescing": {"pushEvents": True, "retryWindowMs": 3_600_000},
            "contextHooks": {"beforeInference": True},
            "inferenceLifecycle": True,
            "featureSets": True,
        },
        policy_seconds=15.0,
        checks_pushes=True,
    ),
    Host.BRIDGE: Profile(
        title="mcpl-cc-bridge",
        protocol="2024-11-05",
        client={"name": "mcpl-cc-bridge", "version": "0.1.0"},
        mcpl={"version": "0.5", "pushEvents": True, "modelInfo": True, "featureSets": True},
        passes_all=True,
    ),
    Host.CLAUDE_CODE: Profile(
        title="Claude Code",
        protocol="2025-06-18",
        client={"name": "claude-code", "version": "1.0.0"},
        mcpl=None,
        passes_all=True,
    ),
    Host.CLAUDE_DESKTOP: Profile(
        title="Claude Desktop",
        protocol="2025-06-18",
        client={"name": "claude-ai", "version": "0.1.0"},
        mcpl=None,
    ),
    Host.MCP: Profile(
        title="a plain MCP client",
        protocol="2025-11-25",
        client={"name": "mcp", "version": "0.1.0"},
        mcpl=None,
    ),
}


class Plan(msgspec.Struct, frozen=True):
    """How a host would start one entry: the command line, the child's whole environment, its files.

    ``unset`` are the ``${NAME}`` that the entry uses and nobody sets. ``files`` are the state files
    by variable, as the server would take them.
    """

    command: str
    args: tuple[str, ...]
    environment: dict[str, str]
    cwd: str | None
    files: dict[str, str]
    declared: frozenset[str]
    unset: tuple[str, ...] = ()

    @property
    def store(self) -> str | None:
        """The URL of the shared store, ``None`` where the server has none."""
        return self.environment.get(STORE, "").strip() or None


def plan(recipe: Recipe, entry: Entry, environ: Mapping[str, str]) -> Plan:
    """Work out how ``recipe.host`` starts ``entry`` from a shell with ``environ``."""
    unset: list[str] = []

    def filled(value: str) -> str:
        if not recipe.substitutes:
            return value

        def one(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if default is not None:
                return environ.get(name) or default
            if name not in environ:
                unset.append(name)
            return environ.get(name, match[0])

        return _VARIABLE.sub(one, value)

    launch = entry.launch
    own = {
        name: filled(value)
        for name, value in _mapping(launch.get("env")).items()
        if isinstance(value, str)
    }
    zone = recipe.agent_timezone or environ.get(AGENT_TIMEZONE)
    if recipe.host is Host.AGENT_FRAMEWORK and zone:
        own[AGENT_TIMEZONE] = zone
    environment = {
        name: value for name, value in environ.items() if passes(recipe.host, entry, name)
    } | own
    command = launch.get("command")
    cwd = launch.get("cwd")
    return Plan(
        command=filled(command) if isinstance(command, str) else "",
        args=tuple(filled(word) for word in _words(launch.get("args"))),
        environment=environment,
        cwd=cwd if isinstance(cwd, str) and recipe.host is not Host.AGENT_FRAMEWORK else None,
        files={name: environment.get(name) or default for name, default in DEFAULTS.items()},
        declared=frozenset(own),
        unset=tuple(dict.fromkeys(unset)),
    )


def passes(host: Host, entry: Entry, name: str) -> bool:
    """Say whether the host hands its own variable ``name`` on to the child."""
    if PROFILES[host].passes_all or entry.members.get("inheritEnv") is True:
        return True
    if host is Host.AGENT_FRAMEWORK:
        return name in _FRAMEWORK or name.startswith("LC_")
    return name in _BASIC


class Policy(msgspec.Struct, frozen=True):
    """What the host will send as ``featureSets/update``; ``None`` members are left out."""

    granted: tuple[str, ...]
    enabled: tuple[str, ...] | None
    disabled: tuple[str, ...] | None
    denied: tuple[str, ...] | None

    def params(self) -> dict[str, Any]:
        """Give the params of the Request."""
        lists = {
            "effectiveCapabilities": self.granted,
            "enabled": self.enabled,
            "disabled": self.disabled,
            "deniedCapabilities": self.denied,
        }
        return {name: list(value) for name, value in lists.items() if value is not None}

    def allows(self, feature_set: str) -> bool:
        """Say whether its ``enabled`` and ``disabled`` let the set work."""
        off = any(names_feature_set(pattern, feature_set) for pattern in self.disabled or ())
        on = self.enabled is None or any(names_feature_set(p, feature_set) for p in self.enabled)
        return on and not off


def policy(host: Host, entry: Entry, advertised: frozenset[str]) -> Policy:
    """Work out the policy for an entry whose server advertises the paths ``advertised``."""
    members = entry.members
    if host is Host.BRIDGE:
        grant = members.get("grant")
        granted = advertised if grant is None else advertised & expand(_words(grant))
        enabled = members.get("enableFeatureSets")
        named = ("*",) if enabled is None else _words(enabled)
        return Policy(tuple(sorted(granted)), named, None, None)
    allowed = members.get("enabledCapabilities")
    granted = advertised if allowed is None else advertised & expand(_words(allowed))
    denied = expand(_words(members.get("disabledCapabilities")))
    enabled = members.get("enabledFeatureSets")
    return Policy(
        granted=tuple(sorted(granted - denied)),
        # An empty list enables nothing; one that is left out constrains nothing.
        enabled=None if enabled is None else _words(enabled),
        disabled=_words(members.get("disabledFeatureSets")) or None,
        denied=tuple(sorted(denied)) or None,
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))
