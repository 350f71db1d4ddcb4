"""The matrix: every broken server is caught, by name."""

import sys

import pytest

from conformance import mutants, runner, transcripts
from conformance.broken_cli import caught_by, replay
from conformance.mutants import Mutant, Patch

pytestmark = pytest.mark.requirement("conformance.broken")

EVERY = mutants.load()


def test_there_are_enough_of_them() -> None:
    assert len(EVERY) >= 25
    assert all(mutant.sentence.endswith(".") and mutant.caught_by for mutant in EVERY.values())


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        pytest.param(mutant, name, id=f"{mutant.name}:{name}")
        for mutant in EVERY.values()
        for name in mutant.caught_by
    ],
)
def test_it_is_caught(mutant: Mutant, name: str) -> None:
    (transcript,) = [each for each in caught_by(mutant) if each.name == name]
    outcome = replay(mutant, transcript)
    assert not outcome.passed, f"{mutant.sentence} {name} has not noticed it"
    assert outcome.failure is not None
    assert outcome.failure.line > 1, "it did not even start"


def test_each_caught_by_exists() -> None:
    known = {transcripts.name_of(path) for path in transcripts.find()}
    assert {name for mutant in EVERY.values() for name in mutant.caught_by} <= known


class Thing:
    """Something to be patched."""

    def method(self) -> str:
        return "whole"

    @staticmethod
    def static() -> str:
        return "whole"


class Heir(Thing):
    """Something that inherits what is patched."""


def test_a_patch_leaves_nothing_behind() -> None:
    before, heirs = dict(vars(Thing)), dict(vars(Heir))
    patch = Patch()
    patch(Thing, "method", lambda self: "broken")
    patch(Thing, "static", staticmethod(lambda: "broken"))
    patch(Thing, "method", lambda self: "more broken")
    patch(Heir, "method", lambda self: "broken heir")
    assert (Thing().method(), Thing.static(), Heir().method()) == (
        "more broken",
        "broken",
        "broken heir",
    )
    patch.undo()
    assert (dict(vars(Thing)), dict(vars(Heir))) == (before, heirs)
    with pytest.raises(AttributeError):
        patch(Thing, "nothing", 1)


def cached() -> int:
    """Return how much the package has cached."""
    functions = [
        function
        for name, module in list(sys.modules.items())
        if name.startswith("mcpl_heartbeat")
        for function in vars(module).values()
        if hasattr(function, "cache_info")
    ]
    return sum(function.cache_info().currsize for function in functions)


def test_nothing_that_a_broken_server_worked_out_serves_another() -> None:
    mutant = next(mutant for mutant in EVERY.values() if mutant.name == "dropped-on-refusal")
    transcript = caught_by(mutant)[0]
    list(runner.replay_virtual([transcript]))
    assert cached()
    with mutants.applied(mutant):
        assert not cached()
        list(runner.replay_virtual([transcript]))
        assert cached()
    assert not cached()


def test_two_mutants_of_one_name_are_refused() -> None:
    name = next(iter(EVERY)).replace("-", "_")

    def twin(patch: Patch) -> None:
        """Break nothing."""

    twin.__name__ = name
    with pytest.raises(ValueError, match="two mutants"):
        mutants.mutant("A twin.", caught_by="x")(twin)
