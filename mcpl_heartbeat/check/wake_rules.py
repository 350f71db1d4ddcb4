"""What in a host's wake rules keeps pushes from waking the agent, and what to change. Pure."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from mcpl_heartbeat.check.findings import Finding, error, note, warning
from mcpl_heartbeat.check.gate import (
    NO_WAKE,
    OLD_SCOPE,
    SCOPE,
    Decision,
    Event,
    Match,
    as_list,
    behaviour,
    decide,
    events,
    glob,
    matches,
)

FIRST_RULE = (
    '{"name": "heartbeat-wake", "match": {"scope": ["mcpl:push-event"], "source": "%s"}, '
    '"behavior": "always"}'
)
_ID = "wake-policy"
ID = "heartbeat"
"""The id that a host knows this server by."""


def judge(
    wake: Any, where: str, server: str, *, renamed: bool = False, sets: Collection[str] = ()
) -> list[Finding]:
    """Find what in ``wake`` (``{policies, default}``) keeps pushes from waking the agent.

    ``renamed``: the entry is to be called heartbeat, so the remedies hold for that id. ``sets``:
    the feature sets beside heartbeat that are in force, watch and tasks, which push as well.
    """
    found = _judge(wake, where, server, sets)
    if not renamed:
        return found
    then = {
        (finding.level, finding.where): finding.remedy for finding in _judge(wake, where, ID, sets)
    }
    return [
        msgspec.structs.replace(
            finding,
            remedy=then.get(
                (finding.level, finding.where), "Rename the entry to heartbeat; that mends this."
            ),
        )
        for finding in found
    ]


def bound_to(wake: Any, server: str) -> bool:
    """Say whether a rule goes by the id ``server`` and would not match the id heartbeat."""
    for rule in as_list(wake.get("policies")) if isinstance(wake, dict) else ():
        conditions = rule.get("match") if isinstance(rule, dict) else None
        source = conditions.get("source") if isinstance(conditions, dict) else None
        if isinstance(source, str) and glob(source, server) and not glob(source, ID):
            return True
    return False


def _judge(wake: Any, where: str, server: str, sets: Collection[str]) -> list[Finding]:
    if not isinstance(wake, dict):
        return [_without_rules(wake, where, server)]
    policies = wake.get("policies", [])
    default = wake.get("default", "always")
    broken = list(_broken(policies, default, where))
    if broken:
        return broken
    found: list[Finding] = []
    sent = events(server, sets=sets)
    decisions = [(event, decide(policies, default, event)) for event in sent]
    asleep = [(event, decision) for event, decision in decisions if not decision.wakes]
    for decision in dict.fromkeys(decision for _, decision in asleep):
        lost = [event for event, other in asleep if other == decision]
        found.append(_swallowed(policies, decision, lost, where))
    for event, decision in decisions:
        found += _doubts(policies, event, decision, where)
    found += _ignored_scopes(policies, where)
    if not asleep:
        found += _never_reached(policies, decisions, where)
        found += _old_spelling(policies, default, where, server)
    return list(dict.fromkeys(found))


def asleep(wake: Any, server: str, sets: Collection[str] = ()) -> list[str]:
    """Give the kinds of pushes that the rules let sleep: all, where the host refuses the rules."""
    if wake is None or isinstance(wake, bool):
        return []
    policies, default = [], "always"
    if isinstance(wake, dict):
        policies, default = wake.get("policies", []), wake.get("default", "always")
    refused = not isinstance(wake, dict) or any(_broken(policies, default, ""))
    return [
        event.kind
        for event in events(server, sets=sets)
        if refused or not decide(policies, default, event).wakes
    ]


def deciding_rule(wake: Any, server: str, kind: str = "heartbeats") -> str:
    """Say in a clause what decides on this server's pushes of this kind."""
    if not isinstance(wake, dict):
        return "no wake rules here, so the host's default decides"
    policies = wake.get("policies", [])
    (event,) = (each for each in events(server, sets=("watch", "tasks")) if each.kind == kind)
    decision = decide(policies, wake.get("default", "always"), event)
    if decision.rule is None:
        return f"no wake rule matches {kind}; {decision.how}, decides"
    return f"the wake rule {_name(policies[decision.rule])} decides on {kind}: {decision.how}"


def _without_rules(wake: Any, where: str, server: str) -> Finding:
    if wake is None or isinstance(wake, bool):
        return note(
            _ID,
            where,
            "There are no wake rules here; without a gate.json of its own the host wakes the agent "
            "for every push.",
            f"To be safe put this rule first: {FIRST_RULE % server}",
        )
    return error(
        _ID,
        where,
        "It must be true, false or an object with policies.",
        f'Write {{"policies": [{FIRST_RULE % server}]}}',
    )


def _broken(policies: Any, default: Any, where: str) -> Iterator[Finding]:
    """What makes the host refuse the rules as a whole, or read one otherwise than it looks."""
    if default not in ("always", *NO_WAKE):
        yield error(
            _ID,
            f"{where}.default",
            "The host refuses this: default is no behaviour it knows.",
            'Write "always", "defer" or "skip".',
        )
    if not isinstance(policies, list):
        yield error(_ID, f"{where}.policies", "policies must be an array.", "Write [ … ].")
        return
    for place, rule in enumerate(policies):
        at = f"{where}.policies[{place}]"
        if not isinstance(rule, dict) or not isinstance(rule.get("name"), str) or not rule["name"]:
            yield error(
                _ID,
                at,
                "The host refuses all wake rules for this one: it has no name.",
                'Give it a "name".',
            )
        elif not _known(rule.get("behavior")):
            yield error(
                _ID,
                f"{at}.behavior",
                f"The host refuses all wake rules for {_name(rule)}: it knows no such behaviour.",
                'Write "always", "defer", "skip", or an object with debounce, rate_limit or '
                "passive_sample.",
            )


def _known(behaviour: Any) -> bool:
    if isinstance(behaviour, dict):
        return any(name in behaviour for name in ("debounce", "rate_limit", "passive_sample"))
    return not behaviour or behaviour in ("always", *NO_WAKE)


def _swallowed(policies: list[Any], decision: Decision, lost: list[Event], where: str) -> Finding:
    """``lost``: the pushes that ``decision`` keeps from the agent."""
    server = lost[0].source
    kinds = listed(event.kind for event in lost)
    meant = [
        place
        for place, rule in enumerate(policies)
        if any(_is_meant(rule, event) for event in lost)
    ]
    if decision.rule is None:
        may = [
            place
            for place, rule in enumerate(policies)
            if matches(rule, lost[0])[0] is Match.MAYBE and behaviour(rule)[0]
        ]
        sure, verb = (" for sure", "may") if may else ("", "does")
        text = f"No rule matches {kinds}{sure}, and the default keeps the agent asleep."
        for place in (may or meant)[:1]:
            _, why = matches(policies[place], lost[0])
            text += f" {_name(policies[place])} {verb} not: {why or 'it only counts'}."
        return error(_ID, where, text, f"Put this rule first: {FIRST_RULE % server}")
    taker = policies[decision.rule]
    text = f"{_name(taker)} comes first for {kinds} and {decision.how}"
    later = [
        place
        for place in meant
        if place > decision.rule
        and all(matches(policies[place], event)[0] is Match.YES for event in lost)
    ]
    if later:
        rule = _name(policies[later[0]])
        text += f"; {rule}, below it, is never asked. The first rule that matches wins."
        remedy = f"Move {rule} above {_name(taker)}."
    else:
        text += ". The first rule that matches wins."
        remedy = f"Put this rule above it: {FIRST_RULE % server}"
    return error(_ID, f"{where}.policies[{decision.rule}]", text, remedy)


def _doubts(policies: list[Any], event: Event, decision: Decision, where: str) -> Iterator[Finding]:
    for place in decision.doubtful:
        yield warning(
            _ID,
            f"{where}.policies[{place}]",
            f"{_name(policies[place])} comes first and may keep the agent asleep: "
            f"{matches(policies[place], event)[1]}.",
            "Move the rule for this server's wakes above it.",
        )
    if decision.rule is not None and decision.wakes:
        rule = policies[decision.rule]
        if isinstance(rule.get("behavior"), dict):
            own = _is_meant(rule, event)
            yield warning(
                _ID,
                f"{where}.policies[{decision.rule}]",
                f"{_name(rule)} decides on {event.kind} and {decision.how}.",
                'Write "behavior": "always" in it.'
                if own
                else f'Give {event.kind} a rule of their own with "behavior": "always", and put '
                "it first.",
            )


def _ignored_scopes(policies: list[Any], where: str) -> Iterator[Finding]:
    for place, rule in enumerate(policies):
        conditions = rule.get("match")
        if isinstance(conditions, dict) and isinstance(conditions.get("scope"), str):
            yield warning(
                _ID,
                f"{where}.policies[{place}].match.scope",
                f"{_name(rule)} gives its scope as a string, which the host ignores: the rule "
                "covers every kind of event.",
                f'Write an array: ["{conditions["scope"]}"].',
            )


def _never_reached(
    policies: list[Any], decisions: list[tuple[Event, Decision]], where: str
) -> Iterator[Finding]:
    """Rules that are meant for this server's pushes and decide on none."""
    server = decisions[0][0].source
    deciding = {decision.rule for _, decision in decisions}
    for place, rule in enumerate(policies):
        meant = [event for event, _ in decisions if _is_meant(rule, event)]
        if not meant or place in deciding:
            continue
        if any(matches(rule, event)[0] is not Match.NO for event, _ in decisions):
            continue
        kinds, why = listed(event.kind for event in meant), matches(rule, meant[0])[1]
        yield warning(
            _ID,
            f"{where}.policies[{place}]",
            f"{_name(rule)} never matches: {why}. The agent is woken for {kinds} without it.",
            f"Correct it: {FIRST_RULE % server}",
        )


def _old_spelling(policies: list[Any], default: str, where: str, server: str) -> Iterator[Finding]:
    """What the same rules do where pushes go by their older name."""
    decision = decide(policies, default, events(server, OLD_SCOPE)[0])
    if decision.wakes:
        return
    by = "the default" if decision.rule is None else _name(policies[decision.rule])
    yield note(
        _ID,
        where,
        f"On agent-framework before 0.9, where a push is called {OLD_SCOPE}, {by} would keep the "
        "agent asleep.",
        f'Name both in the rule if you run such a host: "scope": ["{SCOPE}", "{OLD_SCOPE}"]',
    )


def _is_meant(rule: Any, event: Event) -> bool:
    """Whether a rule is meant for such pushes, by its tags, else by its name or its source."""
    conditions = rule.get("match") if isinstance(rule.get("match"), dict) else {}
    words = [*as_list(conditions.get("tagsAny")), *as_list(conditions.get("tagsAll"))]
    family = event.tags[0].partition(":")[0]
    if not words:
        words, family = [rule.get("name"), conditions.get("source")], ID
    named = any(
        isinstance(word, str) and (family in word.lower() or word == event.source) for word in words
    )
    return named and behaviour(rule)[0]


def listed(kinds: Iterable[str]) -> str:
    """Name all of them in one phrase."""
    *others, last = kinds
    return f"{', '.join(others)} and {last}" if others else last


def _name(rule: Any) -> str:
    return f'"{rule.get("name")}"'
