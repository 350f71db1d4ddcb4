"""When an argument name that a tool does not take is a slip for one that is taken (seed).

A slip is, upper and lower case being the same,

* the known name itself,
* a name a few edits away,
* a part of the known name, of three letters or more,
* for a known name of three letters or more, a longer name that holds it, if the call does not also
  send the known name.

Each name is weighed on its own.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

MAX_CANDIDATES = 3
"""How many meant names a slip offers."""


class Slip(msgspec.Struct, frozen=True):
    """A wrong name and what it was probably meant to be."""

    meant: tuple[str, ...]
    """One to three known names, the likeliest first."""
    tools: tuple[str, ...]
    """The tools that take ``meant[0]``; empty when the called tool does."""


def find_slip(
    name: str,
    sent: Collection[str],
    own: Sequence[str],
    others: Iterable[tuple[str, Sequence[str]]],
) -> Slip | None:
    """Weigh ``name``, which the called tool does not take; ``None`` when it is no slip.

    ``sent`` are all names of the call, ``own`` those the tool takes, ``others`` the other tools
    with the names they take. A name that another tool takes exactly is a slip for that one,
    whatever it resembles here; else the called tool's names come first.
    """
    takers: dict[str, tuple[str, ...]] = {}
    for tool, names in others:
        for known in names:
            takers[known] = (*takers.get(known, ()), tool)
    if name in takers:
        return Slip((name,), takers[name])
    if meant := _meant(name, sent, own):
        return Slip(meant, ())
    if meant := _meant(name, sent, takers):
        return Slip(meant, takers[meant[0]])
    return None


_SAME = (0, 0)


def _meant(name: str, sent: Collection[str], known: Iterable[str]) -> tuple[str, ...]:
    ranked = [(rank, each) for each in known if (rank := _rank(name, each, sent)) is not None]
    if not ranked:
        return ()
    ranked.sort()
    if ranked[0][0] == _SAME:
        del ranked[1:]
    return tuple(each for _, each in ranked[:MAX_CANDIDATES])


def _rank(name: str, known: str, sent: Collection[str]) -> tuple[int, int] | None:
    """Give which rule makes it a slip, the closest first, and how far apart the names are."""
    a, b = name.lower(), known.lower()
    if a == b:
        return _SAME
    if (distance := edits(a, b, allowed_edits(b))) is not None and _likely(a, b):
        return 1, distance
    holds = len(b) >= 3 and b in a and known not in sent
    if holds or (len(a) >= 3 and a in b):
        return 2, abs(len(a) - len(b))
    return None


def allowed_edits(known: str) -> int:
    """How many edits are "a few": the longer the known name, the more of them it survives."""
    return 1 if len(known) < 5 else 2 if len(known) < 9 else 3


def _likely(a: str, b: str) -> bool:
    # One edit turns "id" into "in", "is" or "i", which are words of their own; only swapped letters
    # or one added to both are taken for a slip of so short a name.
    return len(b) > 2 or len(a) > len(b) or sorted(a) == sorted(b)


def edits(a: str, b: str, limit: int) -> int | None:
    """Count insertions, deletions, replacements and swaps of neighbours; ``None`` beyond ``limit``.

    The optimal string alignment distance; no stretch is edited twice.
    """
    if abs(len(a) - len(b)) > limit:
        return None
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return None
    return row[-1] if row[-1] <= limit else None
