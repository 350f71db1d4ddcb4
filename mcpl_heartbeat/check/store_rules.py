"""Rules on the shared store: its URL, the key that names an agent in it, its variables. Pure."""

import difflib
from collections.abc import Callable, Iterable, Iterator

from mcpl_heartbeat.check.case import Case
from mcpl_heartbeat.check.findings import Finding, error, note, warning
from mcpl_heartbeat.check.hosts import AGENT_KEY, AGENT_TIMEZONE, DEFAULTS, STORE
from mcpl_heartbeat.check.recipe import Host

SHORTEST_KEY = 32
_NEAR = 0.87
"""How like one of our names another has to be; HEARTBEAT_SECRET, a worker's, is not."""
_SETS = ("watch", "tasks")
"""The feature sets that need a store."""
_OURS = (*DEFAULTS, AGENT_TIMEZONE, STORE, AGENT_KEY)
_NAME_IT = (
    f'Write "{STORE}": "sqlite:////path/to/data/heartbeat-store.db", or the URL of a PostgreSQL '
    "database."
)


def _store(case: Case) -> Iterator[Finding]:
    if case.facts.store_trouble:
        yield error(
            "store",
            case.in_launch(f"env.{STORE}"),
            f"The watch tools cannot be used: {case.facts.store_trouble}",
            _NAME_IT,
        )


def _key(case: Case) -> Iterator[Finding]:
    key = case.plan.environment.get(AGENT_KEY, "")
    where = case.in_launch(f"env.{AGENT_KEY}")
    if not key:
        return
    if case.plan.store is None:
        yield warning(
            "store",
            where,
            f"A key without a store: {STORE} is not set, so there are no watch tools.",
            f"Set {STORE} as well, or leave the key out.",
        )
    elif len(key.strip()) < SHORTEST_KEY:
        yield error(
            "store",
            where,
            f"A key has {SHORTEST_KEY} characters or more; with this one the agent has no identity "
            "in the store.",
            "Put the agent_secret of register there, or leave it out: the server then makes a key "
            "of its own beside its config.",
        )
    elif case.facts.key_known is False:
        yield error(
            "store",
            where,
            "The store does not know this key, so each tool of the store will be refused.",
            f"Name the store in which it was registered ({STORE}), correct the key, or register "
            "it in this store: register with it as agent_secret, over HTTP or by the tool.",
        )
    elif case.facts.key_unseen:
        yield note(
            "store",
            where,
            f"Whether the store knows this key could not be seen: {case.facts.key_unseen}. With "
            "one that it does not know each tool of the store is refused.",
        )


def _sets_without_store(case: Case) -> Iterator[Finding]:
    member = "enableFeatureSets" if case.host is Host.BRIDGE else "enabledFeatureSets"
    patterns = case.entry.members.get(member)
    named = [
        pattern
        for pattern in (patterns if isinstance(patterns, list) else ())
        # What means others as well, such as "*", asks for no store.
        if pattern in _SETS
    ]
    if case.plan.store is not None or not named:
        return
    near = next((name for name, right in near_misses(case) if right == STORE), None)
    what = "is empty" if STORE in case.plan.environment else "is not set"
    slip = "" if near is None else f" (there is {near})"
    yield warning(
        "store",
        case.at(member),
        f"It names {' and '.join(named)}, and {STORE} {what}{slip}: a server without a store has "
        f"neither the tools nor the wakes of {'it' if len(named) == 1 else 'them'}.",
        f"Call {near} {STORE}." if near is not None else _NAME_IT,
    )


def _names(case: Case) -> Iterator[Finding]:
    for name, right in near_misses(case):
        yield warning(
            "env",
            case.in_launch(f"env.{name}"),
            f"The server reads no {name}; it reads {right}, which is not set.",
            f"Call it {right}.",
        )


def near_misses(case: Case) -> list[tuple[str, str]]:
    """Find variables of the entry that are probably meant for one of ours, which is not set."""
    missing = [name for name in _OURS if not case.plan.environment.get(name)]
    found = []
    for name in sorted(case.plan.declared - set(_OURS)):
        near = difflib.get_close_matches(name.upper(), missing, 1, _NEAR)
        if near:
            found.append((name, near[0]))
    return found


RULES: tuple[Callable[[Case], Iterable[Finding]], ...] = (
    _store,
    _key,
    _sets_without_store,
    _names,
)
