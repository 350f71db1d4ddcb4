"""Rules on what the host lets the server do, and on what wakes the agent. Pure."""

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mcpl_heartbeat import catalogue
from mcpl_heartbeat.check import gate, wake_rules
from mcpl_heartbeat.check.case import Case
from mcpl_heartbeat.check.findings import Finding, error, note, warning
from mcpl_heartbeat.check.hosts import PROFILES, policy
from mcpl_heartbeat.check.recipe import Host
from mcpl_heartbeat.policy.paths import names_feature_set

TOOLS = (
    "heartbeat_status",
    "heartbeat_configure",
    "heartbeat_trigger",
    "reminder_add",
    "reminder_list",
    "reminder_cancel",
)
STORE_TOOLS = tuple(tool.name for tool in catalogue.TOOLS)
"""What an agent has besides where its server has a store."""
_FEATURE_SET, _WATCH, _TASKS = "heartbeat", "watch", "tasks"
_KNOWN = (_FEATURE_SET, _WATCH, _TASKS)
_NEEDS = ("pushEvents", "tools")


def _server_id(case: Case) -> Iterator[Finding]:
    id = case.entry.id
    if case.host is not Host.AGENT_FRAMEWORK or id in ("", "heartbeat"):
        return
    text = f"The server's id is {id}; the host knows silent wakes and sleep by the id heartbeat."
    rename = "Rename the entry to heartbeat"
    if wake_rules.bound_to(case.recipe.wake, id):
        rename += f", and write heartbeat for {id} in its wake rule"
    if not _to_rename(case):
        rename = "Leave the id heartbeat to the entry that has it, and this one in message mode"
    if case.facts.silent:
        yield error(
            "server-id",
            case.entry.where,
            f"{text} Silent mode is on, and each silent wake will be refused or empty.",
            f"{rename}, or set deliveryMode to message." if _to_rename(case) else f"{rename}.",
        )
    else:
        yield warning("server-id", case.entry.where, text, f"{rename}.")


def _to_rename(case: Case) -> bool:
    """Whether the entry has another id than heartbeat and may have that one."""
    ids = [entry.id for entry in case.recipe.entries]
    return case.entry.id not in ("", wake_rules.ID) and wake_rules.ID not in ids


def _feature_sets(case: Case) -> Iterator[Finding]:
    if case.host is Host.AGENT_FRAMEWORK:
        member, other = "enabledFeatureSets", "enableFeatureSets"
    elif case.host is Host.BRIDGE:
        member, other = "enableFeatureSets", "enabledFeatureSets"
    else:
        return
    members = case.entry.members
    yield from _unknown_sets(case, member)
    sets = '"heartbeat", "watch", "tasks"' if case.plan.store else '"heartbeat"'
    remedy = f'Write "{member}": [{sets}].'
    if other in members:
        yield warning(
            "feature-sets",
            case.at(other),
            f"This host does not read {other}.",
            f"Call it {member}.",
        )
    enabled = members.get(member)
    if enabled is None:
        if case.host is Host.AGENT_FRAMEWORK:
            yield warning(
                "feature-sets",
                case.at(member),
                "It is missing; some versions of the host enable nothing then.",
                remedy,
            )
    elif not _strings(enabled):
        yield error("feature-sets", case.at(member), "It must be an array of strings.", remedy)
    elif not _names_ours(enabled):
        yield error(
            "feature-sets",
            case.at(member),
            "It leaves heartbeat out: tools, but no wakes.",
            "Add heartbeat to it.",
        )
    elif case.plan.store and not _names(enabled, _WATCH):
        yield warning(
            "feature-sets",
            case.at(member),
            "It leaves watch out, and the server has a store: alerts and nudges wake nobody, they "
            "wait in the inbox.",
            "Add watch to it.",
        )
    elif case.plan.store and not _names(enabled, _TASKS):
        yield note(
            "feature-sets",
            case.at(member),
            "It leaves tasks out: nobody is woken when work appears; the tools answer as ever.",
            "Add tasks to it.",
        )
    disabled = members.get("disabledFeatureSets")
    if _names_ours(disabled):
        yield error(
            "feature-sets",
            case.at("disabledFeatureSets"),
            "It names heartbeat: tools, but no wakes.",
            "Take heartbeat out of it.",
        )


def _unknown_sets(case: Case, member: str) -> Iterator[Finding]:
    """Mention names of sets that this server does not have."""
    named = case.entry.members.get(member)
    for name in named if isinstance(named, list) else ():
        if not isinstance(name, str) or "*" in name or name in _KNOWN:
            continue
        near = difflib.get_close_matches(name.lower(), _KNOWN, 1)
        text = f'The server has no feature set "{name}"; it has {", ".join(_KNOWN)}.'
        if near:
            yield warning("feature-sets", case.at(member), text, f'Write "{near[0]}".')
        else:
            yield note("feature-sets", case.at(member), text)


def _capabilities(case: Case) -> Iterator[Finding]:
    if PROFILES[case.host].mcpl is None:
        return
    granted = policy(case.host, case.entry, frozenset(_NEEDS)).granted
    missing = [path for path in _NEEDS if path not in granted]
    if missing:
        members = ("grant",) if case.host is Host.BRIDGE else _CAPABILITY_MEMBERS
        where = next((name for name in members if name in case.entry.members), members[0])
        yield error(
            "capabilities",
            case.at(where),
            f"The host does not grant {' and '.join(missing)}: no wakes.",
            'Grant both: ["tools", "pushEvents"].',
        )


_CAPABILITY_MEMBERS = ("disabledCapabilities", "enabledCapabilities")


def _tools(case: Case) -> Iterator[Finding]:
    if case.host is not Host.AGENT_FRAMEWORK:
        return
    enabled, disabled = (case.entry.members.get(f"{word}Tools") for word in ("enabled", "disabled"))
    tools = TOOLS + (STORE_TOOLS if case.plan.store else ())
    shown = [tool for tool in tools if enabled is None or _any_glob(enabled, tool)]
    shown = [tool for tool in shown if not _any_glob(disabled, tool)]
    hidden = [tool for tool in tools if tool not in shown]
    if hidden:
        yield warning(
            "tools",
            case.at("enabledTools" if enabled is not None else "disabledTools"),
            f"The agent does not get {', '.join(hidden)}.",
            "List those it is to have, by their bare names.",
        )


def _wake_policy(case: Case) -> Iterator[Finding]:
    recipe = case.recipe
    if case.host is Host.AGENT_FRAMEWORK:
        if not case.entry.where:
            # This command by itself, with no recipe that could hold any.
            return
        if recipe.wake is None and not recipe.modules:
            yield note(
                "wake-policy",
                recipe.wake_where,
                "This file holds no wake rules, so what wakes the agent was not checked.",
                "Check the recipe, or give the host's gate.json with --gate.",
            )
        else:
            yield from wake_rules.judge(
                recipe.wake,
                recipe.wake_where,
                case.entry.id or wake_rules.ID,
                renamed=_to_rename(case),
                sets=_on_the_store(case),
            )
    elif case.host is Host.BRIDGE:
        yield from _held_by_bridge(case)


def _on_the_store(case: Case) -> list[str]:
    """Give the feature sets that need a store and are in force."""
    update = policy(case.host, case.entry, frozenset(_NEEDS))
    return [name for name in (_WATCH, _TASKS) if case.plan.store and update.allows(name)]


def asleep(case: Case) -> list[str]:
    """Give the kinds of pushes that the host's rules keep from waking the agent."""
    if case.host is Host.AGENT_FRAMEWORK and case.entry.where:
        server = case.entry.id or wake_rules.ID
        return wake_rules.asleep(case.recipe.wake, server, _on_the_store(case))
    return [event.kind for event in _held(case)] if case.host is Host.BRIDGE else []


def _held_by_bridge(case: Case) -> Iterator[Finding]:
    for event in _held(case):
        yield error(
            "wake-policy",
            case.at("wake.hold"),
            f"A rule holds {event.kind} back until something else wakes the session.",
            f'Take "{event.tags[0]}" out of hold.',
        )


def _held(case: Case) -> Iterator[gate.Event]:
    wake = case.entry.members.get("wake")
    if not isinstance(wake, dict):
        return
    for event in gate.events("", sets=_on_the_store(case)):
        tags = set(event.tags)
        if any(rule and tags.issuperset(rule) for rule in _tag_rules(wake.get("wake"))):
            continue
        if any(rule and tags.issuperset(rule) for rule in _tag_rules(wake.get("hold"))):
            yield event


def _unknown_members(case: Case) -> Iterator[Finding]:
    known = _MEMBERS.get(case.host)
    for name in case.entry.members if known else ():
        near = difflib.get_close_matches(name.lower(), _lower(known or ()), 1, 0.85)
        if near and name not in (known or ()) and name not in ("enableFeatureSets", *_SETS):
            right = next(member for member in known or () if member.lower() == near[0])
            yield warning(
                "unknown-member",
                case.at(name),
                f"The host reads no {name}; it reads {right}.",
                f"Call it {right}.",
            )


_SETS = ("enabledFeatureSets", "disabledFeatureSets")
_MEMBERS = {
    Host.AGENT_FRAMEWORK: (
        "command",
        "args",
        "env",
        "url",
        "transport",
        "token",
        "access",
        "toolPrefix",
        "disabled",
        *_SETS,
        "enabledCapabilities",
        "disabledCapabilities",
        "enabledTools",
        "disabledTools",
        "reconnect",
        "reconnectIntervalMs",
        "reconnectMaxIntervalMs",
        "requestTimeoutMs",
        "protocol",
        "inheritEnv",
        "toolLifecycle",
        "channelSubscription",
        "source",
        "credentialFiles",
    ),
    Host.BRIDGE: (
        "transport",
        "grant",
        "enableFeatureSets",
        "toolPrefix",
        "inferenceRequest",
        "wake",
        "disabled",
        "openChannels",
        "openOnAddressed",
        "openChannelsOnly",
        "dmAllowlist",
        "reconnect",
        "reconnectIntervalMs",
        "reconnectMaxIntervalMs",
    ),
}

RULES: tuple[Callable[[Case], Iterable[Finding]], ...] = (
    _server_id,
    _feature_sets,
    _capabilities,
    _tools,
    _wake_policy,
    _unknown_members,
)


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _names_ours(patterns: Any) -> bool:
    return _names(patterns, _FEATURE_SET)


def _names(patterns: Any, feature_set: str) -> bool:
    return isinstance(patterns, list) and any(
        isinstance(pattern, str) and names_feature_set(pattern, feature_set) for pattern in patterns
    )


def _any_glob(patterns: Any, name: str) -> bool:
    return isinstance(patterns, list) and any(
        isinstance(p, str) and gate.glob(p, name) for p in patterns
    )


def _tag_rules(value: Any) -> list[list[str]]:
    return [rule for rule in value if _strings(rule)] if isinstance(value, list) else []
