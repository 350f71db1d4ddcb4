"""The manifest: what this server tells a host that it can do (MCPL §5.1, §6.1, §17).

It never changes while the program runs, so its revision is computed once and no
``mcpl/manifestChanged`` is ever sent.
"""

import functools
import re
from typing import Any

import msgspec

VERSION = "0.5"
"""The MCPL version this server speaks."""


class FeatureSet(msgspec.Struct, frozen=True):
    """A named bundle of behaviour (MCPL §6.1).

    ``uses`` are the capability paths without which it is off. ``consequence`` is a sentence for
    receipts: what the host's people lose while it is off.
    """

    name: str
    description: str
    uses: tuple[str, ...]
    consequence: str = ""


HEARTBEAT = FeatureSet(
    name="heartbeat",
    description="Wakes the agent on its own schedule and at its reminders.",
    uses=("pushEvents", "tools"),
    consequence=(
        "The tools keep answering and nothing stored is lost, but no heartbeat and no reminder "
        "is delivered; reminders that fall due wait."
    ),
)
"""The feature set of the wake wing."""

WATCH = FeatureSet(
    name="watch",
    description="Notices from outside when an agent has died, frees its leases and alerts others.",
    uses=("pushEvents", "tools"),
    consequence=(
        "The tools keep answering and switches fire all the same, but no alert and no nudge is "
        "pushed; alerts wait in the inbox until they are collected with inbox_poll."
    ),
)
"""The feature set of the watch wing."""

TASKS = FeatureSet(
    name="tasks",
    description="Hands out work under a lease, to one agent at a time, and says when there is any.",
    uses=("pushEvents", "tools"),
    consequence=(
        "The tools keep answering and claims hold, but nobody is woken when work appears; it "
        "waits until list_agent_tasks is called."
    ),
)
"""The feature set of the tasks wing."""


class ManifestError(ValueError):
    """A manifest that has no revision. ``rule`` is ``identifier_charset`` or ``not_json``."""

    def __init__(self, rule: str, where: str) -> None:
        """Name the broken rule, and where it was broken for whoever reads the traceback."""
        super().__init__(f"{rule}: {where}")
        self.rule = rule


def wants_array(client_name: str) -> bool:
    """Say whether this client reads ``featureSets`` only as an array (issue 2, §1)."""
    return client_name.startswith("mcpl-harness")


@functools.cache
def manifest(
    feature_sets: tuple[FeatureSet, ...],
    capabilities: tuple[str, ...] = ("pushEvents",),
    as_array: bool = False,
) -> dict[str, Any]:
    """Build the ``experimental.mcpl`` object, revision included; the same object each time.

    ``capabilities`` are the paths to advertise, each as ``true``. ``as_array`` gives
    ``featureSets`` as ``[{name, …}]``. Do not change what is returned. Raises ``ManifestError``
    for names that MCPL does not allow.
    """
    built: dict[str, Any] = {"version": VERSION}
    for path in capabilities:
        *parents, leaf = path.split(".")
        node = built
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = True
    declared = {s.name: {"description": s.description, "uses": list(s.uses)} for s in feature_sets}
    built["featureSets"] = (
        [{"name": name, **declaration} for name, declaration in declared.items()]
        if as_array
        else declared
    )
    built["revision"] = revision(built)
    return built


def revision(manifest: dict[str, Any]) -> str:
    """Give the canonical content digest of a manifest (MCPL §17.2, RFC 8785).

    Total but for one rule: raises ``ManifestError`` with ``identifier_charset`` when a name in an
    identifier position has a character outside ``[A-Za-z0-9._:*-]``. A Python value that no JSON
    text can hold raises it with ``not_json``.
    """
    # All are needed once, and only where a host speaks MCPL.
    import binascii  # noqa: PLC0415
    import hashlib  # noqa: PLC0415

    import rfc8785  # noqa: PLC0415

    content = {name: value for name, value in manifest.items() if name != "revision"}
    for name, value in content.items():
        if name not in ("version", "featureSets"):
            _check_capability(name, value)
    if isinstance(content.get("featureSets"), dict):
        content["featureSets"] = {
            _identifier("a feature set", name): _normalized(declaration)
            for name, declaration in content["featureSets"].items()
        }
    try:
        canonical = rfc8785.dumps(_as_javascript(content))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ManifestError("not_json", str(error)) from error
    digest = binascii.b2a_base64(hashlib.sha256(canonical).digest(), newline=False)
    return "sha256:" + digest.decode().rstrip("=").replace("+", "-").replace("/", "_")


_IDENTIFIER = re.compile(r"[A-Za-z0-9._:*-]+")
_MATCHERS = ("tagsAny", "tagsAll", "tagsNone")
_LARGEST_EXACT = 2**53 - 1


def _identifier(where: str, name: str) -> str:
    if not _IDENTIFIER.fullmatch(name):
        raise ManifestError("identifier_charset", f"{where} is named {name!r}")
    return name


def _check_capability(name: str, value: Any) -> None:
    _identifier("a capability", name)
    if isinstance(value, dict):
        for inner, content in value.items():
            _check_capability(inner, content)


def _normalized(declaration: Any) -> Any:
    """Check the identifiers of one feature set and sort its three sets; all else stays as it is."""
    if not isinstance(declaration, dict):
        return declaration
    result = _with_set(declaration, "uses")
    ontology = result.get("tagOntology")
    if not isinstance(ontology, dict):
        return result
    ontology = _with_set(ontology, "coreTags")
    tags = ontology.get("tags")
    if isinstance(tags, dict):
        ontology["tags"] = {
            _identifier("a tag", tag): _with_set(about, "implies")
            if isinstance(about, dict)
            else about
            for tag, about in tags.items()
        }
    keyed = ontology.get("keyed")
    if isinstance(keyed, dict):
        for key, family in keyed.items():
            _identifier("a tag key", key)
            _check_strings("values", family)
    rules = ontology.get("suggestedTreatment")
    for rule in rules if isinstance(rules, list) else ():
        for matcher in _MATCHERS:
            _check_strings(matcher, rule)
    return {**result, "tagOntology": ontology}


def _check_strings(member: str, holder: Any) -> list[str] | None:
    """Give the array of strings at ``holder[member]``, its identifiers checked, if it is one."""
    value = holder.get(member) if isinstance(holder, dict) else None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    for item in value:
        _identifier(f"an entry of {member}", item)
    return value


def _with_set(holder: dict[str, Any], member: str) -> dict[str, Any]:
    entries = _check_strings(member, holder)
    # The charset is ASCII, where the order of strings is the order of their UTF-8 bytes.
    return dict(holder) if entries is None else {**holder, member: sorted(set(entries))}


def _as_javascript(value: Any) -> Any:
    """RFC 8785 knows only doubles; a larger integer is the double that JavaScript reads it as."""
    if isinstance(value, dict):
        return {name: _as_javascript(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_javascript(inner) for inner in value]
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return float(value)
    return value
