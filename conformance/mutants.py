"""Broken servers: our own with one thing patched, to show that the transcripts notice.

What a mutant looks like is in ``FORMAT.md``, *Broken servers*; they live in ``conformance/broken``.
"""

import contextlib
import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

_INHERITED = object()
_CACHED = type(functools.cache(lambda: None))


class Patch:
    """``patch(owner, name, value)`` is ``setattr`` that ``undo`` takes back."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def __call__(self, owner: Any, name: str, value: Any) -> None:
        """Replace what ``owner`` calls ``name``; it must be there already.

        In a class, a plain function becomes a method, as in any class.
        """
        # From the class itself, so that a static or class method is put back as one.
        held = vars(owner).get(name, _INHERITED)
        if held is _INHERITED:
            getattr(owner, name)
        self._before.append((owner, name, held))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back, the latest first."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


class Mutant(msgspec.Struct, frozen=True):
    """One broken server: its name, what is wrong with it, and the transcripts that must fail."""

    name: str
    sentence: str
    caught_by: Mapping[str, str]
    """The transcripts, each with the text by which the step that must fail is known; ``""``: any
    step."""
    apply: Callable[[Patch], None]


_mutants: dict[str, Mutant] = {}


def mutant(
    sentence: str, *, caught_by: str | tuple[str, ...] | Mapping[str, str]
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Register the decorated function as a mutant under its own name, hyphens for underscores.

    ``caught_by`` names the transcripts; a mapping also says at which step, by a text that stands in
    no other step.
    """

    def register(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
        name = getattr(apply, "__name__", "").replace("_", "-")
        if name in _mutants:
            raise ValueError(f"two mutants are called {name}")
        names = (caught_by,) if isinstance(caught_by, str) else caught_by
        caught = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
        _mutants[name] = Mutant(name, sentence, caught, apply)
        return apply

    return register


def load() -> dict[str, Mutant]:
    """Return every mutant in ``conformance.broken``, sorted by name."""
    package = importlib.import_module("conformance.broken")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "__main__":
            importlib.import_module(f"conformance.broken.{module.name}")
    return dict(sorted(_mutants.items()))


@contextlib.contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Break the package inside ``with``."""
    patch = Patch()
    _forget()
    try:
        mutant.apply(patch)
        yield
    finally:
        patch.undo()
        _forget()


def _forget() -> None:
    """Empty the package's caches: what one server has worked out must not serve another."""
    for value in _caches(tuple(name for name in sys.modules if name.startswith("mcpl_heartbeat"))):
        value.cache_clear()


@functools.lru_cache(1)
def _caches(modules: tuple[str, ...]) -> list[Any]:
    """Find the caches in modules: to look through them all for each server takes long."""
    return [
        value
        for name in modules
        for value in list(vars(sys.modules[name]).values())
        if isinstance(value, _CACHED)
    ]
