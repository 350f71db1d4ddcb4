"""The host's wake rules: which one decides on a push, and which ones never come to it. Pure.

agent-framework asks its gate whether an event wakes the agent. The rules stand in a list and the
first that matches decides (seed, "Recipe wiring"; host list, chapter 5). Here each rule is matched
against the events this server sends, in a logic of three values: a rule with a text filter may or
may not match, depending on what the wake says, and one that asks for metadata on how many it is of.
"""

import enum
import re
from collections.abc import Callable, Collection
from typing import Any

import msgspec

SCOPE, OLD_SCOPE = "mcpl:push-event", "push:event"
"""How the host's gate calls a push: today, and in agent-framework before 0.9."""
NO_WAKE = ("skip", "defer")


class Match(enum.Enum):
    """Whether a rule matches an event."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


class Event(msgspec.Struct, frozen=True):
    """A push as the gate sees it."""

    kind: str
    scope: str
    source: str
    tags: tuple[str, ...]
    metadata: frozenset[str]
    sometimes: frozenset[str] = frozenset()
    """What of the metadata one carries that tells of a single thing, but not of several."""


class Decision(msgspec.Struct, frozen=True):
    """What becomes of an event. ``rule`` is the rule's place in the list, ``None`` for the default.

    ``wakes`` is the answer, ``how`` the behaviour in words, ``doubtful`` the places of rules that
    come first and may keep the agent asleep.
    """

    rule: int | None
    wakes: bool
    how: str
    doubtful: tuple[int, ...] = ()


def events(server: str, scope: str = SCOPE, *, sets: Collection[str] = ()) -> tuple[Event, ...]:
    """Give one push of each kind that the server with this id sends.

    ``sets``: its feature sets beside heartbeat that are in force.
    """
    kinds = [kind for name in ("heartbeat", *sets) for kind in _KINDS[name]]
    return tuple(
        Event(kind, scope, server, (tag,), _ALWAYS | always, sometimes)
        for kind, tag, always, sometimes in kinds
    )


_ALWAYS = frozenset({"serverId", "featureSet", "eventId", "eventType", "tags", "source"})
_NEVER: frozenset[str] = frozenset()
_SWITCH = frozenset({"scope", "generation"})
# Of each feature set what it pushes: what it is called, its tag, and the members that its origin
# has always, and where it tells of one thing alone.
_KINDS = {
    "heartbeat": (
        ("heartbeats", "heartbeat:tick", frozenset({"reason"}), _NEVER),
        ("reminders", "heartbeat:reminder", frozenset({"reminderId"}), _NEVER),
    ),
    "watch": (
        ("alerts", "watch:alert", _NEVER, _SWITCH),
        ("nudges", "watch:nudge", _NEVER, _SWITCH),
    ),
    "tasks": (
        ("claimable tasks", "tasks:available", frozenset({"claimable"}), _NEVER),
        ("reviews", "tasks:review", _NEVER, frozenset({"task_id"})),
    ),
}


def decide(policies: list[Any], default: str, event: Event) -> Decision:
    """Find the rule that decides on ``event``; the first match wins."""
    doubtful: list[int] = []
    for place, rule in enumerate(policies):
        match, _ = matches(rule, event)
        if match is Match.NO:
            continue
        wakes, how = behaviour(rule)
        if rule.get("passthrough") is True and isinstance(rule.get("behavior"), dict):
            # It only counts what passes; it ends the search when it fires, and then it wakes.
            continue
        if match is Match.YES:
            return Decision(place, wakes, how, tuple(doubtful))
        if not wakes:
            doubtful.append(place)
    return Decision(None, default not in NO_WAKE, f"the default, {default}", tuple(doubtful))


def matches(rule: Any, event: Event) -> tuple[Match, str]:
    """Say whether the rule matches, and if not, why not, in one clause."""
    conditions = rule.get("match") if isinstance(rule.get("match"), dict) else {}
    for name, test in _CONDITIONS.items():
        wanted = conditions.get(name)
        if wanted and (why := test(wanted, event)):
            return Match.NO, why
    if isinstance(conditions.get("filter"), dict):
        return Match.MAYBE, "its filter looks at the text of a wake"
    members = _strings(conditions.get("metadataTrue"))
    if members and not event.metadata.intersection(members):
        return Match.MAYBE, f"several {event.kind} in one push do not carry {', '.join(members)}"
    return Match.YES, ""


def behaviour(rule: Any) -> tuple[bool, str]:
    """Say whether a rule that matches wakes the agent, and how, in words."""
    how = rule.get("behavior")
    if isinstance(how, dict):
        if "debounce" in how:
            return True, f"wakes late (debounce, {how['debounce']} ms)"
        if "rate_limit" in how:
            return True, "wakes while its rate limit is not used up"
        sample = how.get("passive_sample")
        every = sample.get("every") if isinstance(sample, dict) else None
        return every == 1, f"wakes at each {every}th event only (passive_sample)"
    if how in NO_WAKE:
        return False, f"keeps the agent asleep ({how})"
    return True, "always wakes"


def as_list(value: Any) -> list[Any]:
    """Give a JSON array, and nothing for anything else."""
    return value if isinstance(value, list) else []


def _strings(value: Any) -> list[str]:
    return [item for item in as_list(value) if isinstance(item, str)]


def glob(pattern: Any, text: str) -> bool:
    """Match the whole of ``text``; ``*`` stands for any characters."""
    wanted = ".*".join(re.escape(part) for part in str(pattern).split("*"))
    return re.fullmatch(wanted, text) is not None


def _scope(wanted: Any, event: Event) -> str:
    names = _strings(wanted)
    if not names or event.scope in names:
        return ""
    if event.scope == SCOPE and OLD_SCOPE in names:
        return f"its scope is {OLD_SCOPE}, which today's hosts call {SCOPE}"
    return f"its scope is {', '.join(names)}, and a push is {event.scope}"


def _source(wanted: Any, event: Event) -> str:
    if not isinstance(wanted, str) or glob(wanted, event.source):
        return ""
    return f"its source is {wanted}, and this server's id is {event.source}"


def _channel(wanted: Any, event: Event) -> str:
    return "" if glob(wanted, "") else "it wants a channel, and a push has none"


def _workspace(wanted: Any, event: Event) -> str:
    return "it is for files of a workspace"


def _metadata(wanted: Any, event: Event) -> str:
    names = _strings(wanted)
    if not names or (event.metadata | event.sometimes).intersection(names):
        return ""
    return f"it wants one of {', '.join(names)}, which {event.kind} do not carry"


def _tags(how: Callable[[list[bool]], bool], clause: str) -> Callable[[Any, Event], str]:
    def test(wanted: Any, event: Event) -> str:
        patterns = _strings(wanted)
        hits = [any(glob(pattern, tag) for tag in event.tags) for pattern in patterns]
        return "" if not patterns or how(hits) else clause % ", ".join(patterns)

    return test


_CONDITIONS: dict[str, Callable[[Any, Event], str]] = {
    "scope": _scope,
    "source": _source,
    "channel": _channel,
    "mount": _workspace,
    "pathGlob": _workspace,
    "metadataTrue": _metadata,
    "tagsAny": _tags(any, "it wants one of the tags %s"),
    "tagsAll": _tags(all, "it wants all of the tags %s"),
    "tagsNone": _tags(lambda hits: not any(hits), "it leaves out what is tagged %s"),
}
