"""Capability paths and feature-set names, and the patterns that stand for several of them.

MCPL §5.4, §6.2, §6.3. A path is segments joined by dots. In a pattern ``*`` stands for exactly one
whole segment and the numbers of segments must be equal: ``channels.*`` covers
``channels.publish``, a bare ``*`` covers only paths of one segment, and ``channels`` covers none
of its leaves. ``chan*`` is no pattern.
"""

from collections.abc import Iterable

VOCABULARY = frozenset(
    {
        "pushEvents",
        "tools",
        "modelInfo",
        "inferenceRequest",
        "inferenceRequest.streaming",
        "inferenceLifecycle",
        "contextHooks.beforeInference.observe",
        "contextHooks.beforeInference.inject.system",
        "contextHooks.beforeInference.inject.beforeUser",
        "contextHooks.beforeInference.inject.afterUser",
        "channels.register",
        "channels.lifecycle",
        "channels.publish",
        "channels.incoming",
        "channels.streaming",
        "channels.acknowledge",
        "channels.typing",
        "toolLifecycle.observe",
        "toolLifecycle.inputs",
    }
)
"""Every capability path there is: MCPL §6.2, and the two that newer hosts know besides."""

_SEGMENTS = {path: path.split(".") for path in VOCABULARY}


_KNOWN_SEGMENTS = {"*", *(segment for known in _SEGMENTS.values() for segment in known)}


def covers(pattern: str, path: str) -> bool:
    """Say whether ``pattern`` stands for ``path``, segment by segment (MCPL §5.4)."""
    return _segments_cover(pattern.split("."), path.split("."))


def expand(patterns: Iterable[str]) -> frozenset[str]:
    """Give the paths of the vocabulary that the patterns stand for; unknown ones stand for none."""
    distinct = set(patterns)
    granted = VOCABULARY & distinct
    for pattern in distinct:
        # A list of a million strings must stay cheap: most that match nothing are told at a look.
        if "*" in pattern and pattern.count(".") <= _MOST_DOTS:
            segments = pattern.split(".")
            if not _KNOWN_SEGMENTS.issuperset(segments):
                continue
            granted |= {p for p, known in _SEGMENTS.items() if _segments_cover(segments, known)}
    return granted


def names_feature_set(pattern: str, name: str) -> bool:
    """Say whether an entry of ``enabled`` or ``disabled`` means the set ``name`` (MCPL §6.3).

    The name itself, a pattern with ``*`` for one segment, or ``prefix.*`` for every set under that
    prefix, however deep.
    """
    if pattern == name:
        return True
    if "*" not in pattern:
        return False
    wanted, segments = pattern.split("."), name.split(".")
    if wanted[-1] == "*" and 1 < len(wanted) < len(segments):
        segments = segments[: len(wanted)]
    return _segments_cover(wanted, segments)


_MOST_DOTS = max(path.count(".") for path in VOCABULARY)


def _segments_cover(pattern: list[str], path: list[str]) -> bool:
    return len(pattern) == len(path) and all(
        wanted in ("*", segment) for wanted, segment in zip(pattern, path, strict=True)
    )
