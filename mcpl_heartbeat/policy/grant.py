"""The policy machine: what the host lets this server push, and what it is told about the rest.

A host that sends no ``experimental.mcpl`` gets a plain MCP server, and that never changes (PLAIN).
Any other host owes a ``featureSets/update`` Request, and until a valid one is in force nothing may
be pushed: not while it has said nothing (WAITING), not when it has only sent the method as a
Notification, which cannot make a server ready (NOTIFIED), and not after a Request that breaks a
rule, which also takes away whatever was granted before (MALFORMED). A valid Request puts a policy
in force (GRANTED), replacing the whole of the one before; it may still grant nothing. While one is
in force a Notification can narrow it and can do nothing else. A new ``initialize`` starts over.

Sources: MCPL §3.2, §5.3, §5.4, §6.3, §6.4, §6.7; the seed's last chapter for the words of the log.

Decisions where the texts are silent:

* The same path in ``effectiveCapabilities`` and ``deniedCapabilities`` is malformed when it stands
  in both as text, and also when patterns make both mean it: an ambiguous grant must not be taken.
* A Notification narrows by any of its fields: paths and sets that it leaves out of a list it sends
  are dropped, sets in ``disabled`` are added. A field it does not send changes nothing. A
  malformed one changes no policy at all, although it still shows that the host speaks in
  Notifications.
* A member that is ``null`` has a wrong type; absent ``params`` are the empty object.
"""

import enum
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from mcpl_heartbeat.jsonrpc.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Refusal
from mcpl_heartbeat.policy.manifest import FeatureSet
from mcpl_heartbeat.policy.paths import VOCABULARY, expand, names_feature_set


class State(enum.Enum):
    """Where the negotiation stands."""

    PLAIN = "plain"
    WAITING = "waiting"
    NOTIFIED = "notified"
    GRANTED = "granted"
    MALFORMED = "malformed"


class Event(enum.Enum):
    """What a host does that moves the machine."""

    INITIALIZE_PLAIN = "initialize without experimental.mcpl"
    INITIALIZE_MCPL = "initialize with experimental.mcpl"
    REQUEST_VALID = "valid featureSets/update Request"
    REQUEST_MALFORMED = "malformed featureSets/update Request"
    NOTIFICATION = "featureSets/update Notification"


START = State.WAITING

TABLE: dict[tuple[State, Event], State] = {
    (State.PLAIN, Event.INITIALIZE_PLAIN): State.PLAIN,
    (State.PLAIN, Event.INITIALIZE_MCPL): State.WAITING,
    (State.PLAIN, Event.REQUEST_VALID): State.PLAIN,
    (State.PLAIN, Event.REQUEST_MALFORMED): State.PLAIN,
    (State.PLAIN, Event.NOTIFICATION): State.PLAIN,
    (State.WAITING, Event.INITIALIZE_PLAIN): State.PLAIN,
    (State.WAITING, Event.INITIALIZE_MCPL): State.WAITING,
    (State.WAITING, Event.REQUEST_VALID): State.GRANTED,
    (State.WAITING, Event.REQUEST_MALFORMED): State.MALFORMED,
    (State.WAITING, Event.NOTIFICATION): State.NOTIFIED,
    (State.NOTIFIED, Event.INITIALIZE_PLAIN): State.PLAIN,
    (State.NOTIFIED, Event.INITIALIZE_MCPL): State.WAITING,
    (State.NOTIFIED, Event.REQUEST_VALID): State.GRANTED,
    (State.NOTIFIED, Event.REQUEST_MALFORMED): State.MALFORMED,
    (State.NOTIFIED, Event.NOTIFICATION): State.NOTIFIED,
    (State.GRANTED, Event.INITIALIZE_PLAIN): State.PLAIN,
    (State.GRANTED, Event.INITIALIZE_MCPL): State.WAITING,
    (State.GRANTED, Event.REQUEST_VALID): State.GRANTED,
    (State.GRANTED, Event.REQUEST_MALFORMED): State.MALFORMED,
    (State.GRANTED, Event.NOTIFICATION): State.GRANTED,
    (State.MALFORMED, Event.INITIALIZE_PLAIN): State.PLAIN,
    (State.MALFORMED, Event.INITIALIZE_MCPL): State.WAITING,
    (State.MALFORMED, Event.REQUEST_VALID): State.GRANTED,
    (State.MALFORMED, Event.REQUEST_MALFORMED): State.MALFORMED,
    (State.MALFORMED, Event.NOTIFICATION): State.MALFORMED,
}


class Denied(msgspec.Struct, frozen=True):
    """Why a feature set may not push: one clause for ``delivery=BLOCKED (…)`` and for the log.

    ``never`` is true on hosts where no push will be let through as they are: plain MCP, and those
    that send their policy only as a Notification.
    """

    reason: str
    never: bool = False


class Unavailable(msgspec.Struct, frozen=True, rename="camel"):
    """One feature set that is off (MCPL §6.7).

    ``missing_capabilities`` is empty when the host left the set out or disabled it.
    """

    feature_set: str
    missing_capabilities: tuple[str, ...]
    effect: str = "disabled"


class Receipt(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to a valid Request: what this server will do under the policy (MCPL §6.7)."""

    mode: str
    unavailable_features: tuple[Unavailable, ...] = ()
    notes: tuple[str, ...] = ()
    accepted: bool = True


WAITING_WARNING = "initial policy has still not arrived as a Request."
_TOLD_BY_NOTIFICATION = (
    f"{WAITING_WARNING} This host sent featureSets/update only as a Notification, which cannot "
    "put a policy in force (MCPL §6.7). Tools keep answering; nothing is delivered until the host "
    "is updated to send it as a Request."
)
_TOLD_NOTHING = (
    f"{WAITING_WARNING} This host has sent no featureSets/update at all. Tools keep answering; "
    "nothing is delivered until the host sends one (MCPL §5.3)."
)

_NO_REQUEST = Denied(
    "no valid featureSets/update Request in force (none yet, or the last was malformed); "
    "nothing can be delivered until the host sends a valid one"
)
_WITHOUT_GRANT = {
    State.PLAIN: Denied(
        "host speaks plain MCP without MCPL, so nothing can ever be delivered here", never=True
    ),
    State.NOTIFIED: Denied(
        "host sent featureSets/update only as a Notification, which permits nothing; "
        "nothing can be delivered until the host sends it as a Request",
        never=True,
    ),
    State.WAITING: _NO_REQUEST,
    State.MALFORMED: _NO_REQUEST,
}


class _Grant(msgspec.Struct, frozen=True):
    """A policy in force, in terms of the vocabulary and of the sets that this server declares."""

    paths: frozenset[str]
    selected: frozenset[str]
    disabled: frozenset[str]


class Policy:
    """The policy of one connection. Pure; every method is total over what a host can send."""

    def __init__(self, feature_sets: tuple[FeatureSet, ...]) -> None:
        """Start before ``initialize``: nothing is granted to any of the declared sets."""
        self._feature_sets = feature_sets
        self._names = frozenset(declared.name for declared in feature_sets)
        self._grant: _Grant | None = None
        self._verdicts: dict[str, Denied | None] = {}
        self.state = START
        """Where the negotiation stands; read it, do not set it."""
        self.coalesces = False
        """Whether the host advertised event coalescing for ``push/event`` (MCPL RFC-006)."""
        self._settle()

    def initialized(self, host: object) -> None:
        """Take in the host's ``capabilities.experimental.mcpl``; anything but an object is none."""
        coalescing = host.get("eventCoalescing") if isinstance(host, dict) else None
        if isinstance(coalescing, dict):
            coalescing = coalescing.get("pushEvents")
        self.coalesces = coalescing is True
        self._grant = None
        self._move(Event.INITIALIZE_MCPL if isinstance(host, dict) else Event.INITIALIZE_PLAIN)

    def request(self, params: msgspec.Raw | None) -> Receipt | Refusal:
        """Put a new policy in force and say what it leaves working, or refuse it (MCPL §6.7).

        The whole policy is replaced, and it holds before this returns. A malformed one is refused
        with -32602 naming every fault, and nothing is granted until a valid one comes. On a plain
        MCP host the method does not exist (-32601).
        """
        if self.state is State.PLAIN:
            return Refusal(
                METHOD_NOT_FOUND,
                "featureSets/update belongs to MCPL, which this host did not ask for in initialize",
            )
        update = _read(params)
        if isinstance(update, _Faults):
            self._grant = None
            self._move(Event.REQUEST_MALFORMED)
            return Refusal(
                INVALID_PARAMS,
                f"featureSets/update is malformed: {'; '.join(update.texts)}. "
                "No grant is in force now; send a valid Request.",
            )
        self._grant = _Grant(
            paths=update.paths or frozenset(),
            selected=self._names if update.enabled is None else self._named(update.enabled),
            disabled=self._named(update.disabled or ()),
        )
        self._move(Event.REQUEST_VALID)
        return self._receipt()

    def notification(self, params: msgspec.Raw | None) -> tuple[str, ...]:
        """Apply what narrows the policy in force; the lines for the log say what and what not.

        Never grants, enables or lifts anything, and never makes the server ready (MCPL §6.7).
        """
        self._move(Event.NOTIFICATION)
        update = _read(params)
        if isinstance(update, _Faults):
            return (f"{_NOTIFICATION} is malformed and ignored: {'; '.join(update.texts)}",)
        if self._grant is None:
            return (f"{_NOTIFICATION} ignored: it cannot put a policy in force (MCPL §6.7)",)
        narrowed, lines = self._narrowed(self._grant, update)
        self._grant = narrowed
        self._settle()
        return lines

    def verdict(self, feature_set: str) -> Denied | None:
        """Say why this set may not push now; ``None`` when it may. Cheap: one look-up."""
        try:
            return self._verdicts[feature_set]
        except KeyError:
            return Denied(f"this server declares no feature set {feature_set}", never=True)

    @property
    def waiting_warning(self) -> str | None:
        """The line to log (after ``WARNING: ``) when the host's first Request is overdue."""
        endings = {State.NOTIFIED: _TOLD_BY_NOTIFICATION, State.WAITING: _TOLD_NOTHING}
        return endings.get(self.state)

    def _move(self, event: Event) -> None:
        self.state = TABLE[self.state, event]
        self._settle()

    def _settle(self) -> None:
        grant = self._grant
        self._verdicts = {
            declared.name: _WITHOUT_GRANT[self.state] if grant is None else _judge(declared, grant)
            for declared in self._feature_sets
        }

    def _receipt(self) -> Receipt:
        unavailable, notes = [], []
        for declared in self._feature_sets:
            denied = self._verdicts[declared.name]
            if denied is not None and self._grant is not None:
                unavailable.append(Unavailable(declared.name, _missing(declared, self._grant)))
                notes.append(
                    f"{declared.name} is disabled: {denied.reason}. {declared.consequence}".strip()
                )
        return Receipt("degraded" if notes else "full", tuple(unavailable), tuple(notes))

    def _named(self, patterns: Iterable[str]) -> frozenset[str]:
        distinct = set(patterns)
        wildcards = [pattern for pattern in distinct if "*" in pattern]
        return (self._names & distinct) | {
            name for name in self._names if any(names_feature_set(p, name) for p in wildcards)
        }

    def _narrowed(self, old: _Grant, update: "_Update") -> tuple[_Grant, tuple[str, ...]]:
        paths = old.paths if update.paths is None else update.paths
        selected = old.selected if update.enabled is None else self._named(update.enabled)
        disabled = old.disabled if update.disabled is None else self._named(update.disabled)
        new = _Grant(old.paths & paths, old.selected & selected, old.disabled | disabled)
        return new, tuple(
            f"{_NOTIFICATION} {text}: {', '.join(sorted(names))}"
            for text, names in (
                ("takes away", old.paths - new.paths),
                ("leaves out of enabled", old.selected - new.selected),
                ("disables", new.disabled - old.disabled),
                ("cannot grant, ignored", paths - old.paths),
                ("cannot enable, ignored", selected - old.selected),
                ("cannot lift disabled, ignored", old.disabled - disabled),
            )
            if names
        )


_NOTIFICATION = "featureSets/update Notification"


def _missing(declared: FeatureSet, grant: _Grant) -> tuple[str, ...]:
    return tuple(path for path in declared.uses if path not in grant.paths)


def _judge(declared: FeatureSet, grant: _Grant) -> Denied | None:
    name = declared.name
    if not declared.uses or not VOCABULARY.issuperset(declared.uses):
        return Denied(f"{name} is declared with invalid uses (MCPL §6.4)", never=True)
    missing = _missing(declared, grant)
    if missing:
        cause, remedy = f"effectiveCapabilities lacks {' and '.join(missing)}", "grants that"
    elif name in grant.disabled:
        cause, remedy = f"the host's disabled list names {name}", "leaves it out"
    elif name not in grant.selected:
        cause, remedy = f"the host's enabled list leaves {name} out", "names it"
    else:
        return None
    return Denied(f"{cause}; nothing can be delivered until a featureSets/update Request {remedy}")


class _Update(msgspec.Struct, frozen=True):
    """A well-formed ``featureSets/update``; ``None`` where the host sent no such member."""

    paths: frozenset[str] | None
    enabled: list[str] | None
    disabled: list[str] | None


class _Faults(msgspec.Struct, frozen=True):
    texts: tuple[str, ...]


class _Members(msgspec.Struct, rename="camel"):
    # Raw, so that each member is judged by itself and every fault is named at once.
    effective_capabilities: msgspec.Raw = msgspec.Raw()
    denied_capabilities: msgspec.Raw = msgspec.Raw()
    enabled: msgspec.Raw = msgspec.Raw()
    disabled: msgspec.Raw = msgspec.Raw()


_UNREADABLE = (ValueError, RecursionError)
_decode_members: Callable[[Any], _Members] = msgspec.json.Decoder(_Members).decode
_decode_names: Callable[[Any], list[str]] = msgspec.json.Decoder(list[str]).decode


def _read(params: msgspec.Raw | None) -> _Update | _Faults:
    try:
        members = _Members() if params is None else _decode_members(params)
    except _UNREADABLE:
        return _Faults(("params must be an object",))
    faults: list[str] = []

    def names(member: str, raw: msgspec.Raw) -> list[str] | None:
        if not bytes(raw):
            return None
        try:
            return _decode_names(raw)
        except _UNREADABLE:
            faults.append(f"{member} must be an array of strings")
            return None

    effective = names("effectiveCapabilities", members.effective_capabilities)
    denied = names("deniedCapabilities", members.denied_capabilities)
    enabled = names("enabled", members.enabled)
    disabled = names("disabled", members.disabled)
    paths = None if effective is None else expand(effective)
    both = set(effective or ()) & set(denied or ())
    both |= (paths or frozenset()) & expand(denied or ())
    if both:
        # Cut, so that a long list cannot make the refusal as long as the message it refuses.
        shown = [path[:_LONGEST_SHOWN] for path in sorted(both)[:_MOST_SHOWN]]
        if len(both) > _MOST_SHOWN:
            shown.append(f"and {len(both) - _MOST_SHOWN} more")
        faults.append(f"effectiveCapabilities and deniedCapabilities both name {', '.join(shown)}")
    return _Faults(tuple(faults)) if faults else _Update(paths, enabled, disabled)


_MOST_SHOWN = 5
_LONGEST_SHOWN = 60
