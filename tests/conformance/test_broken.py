"""The matrix: every broken server is caught, by name."""

import sys
from collections import Counter

import msgspec
import pytest

from conformance import mutants, runner, transcripts
from conformance.broken_cli import caught_by, missed, replay
from conformance.mutants import Mutant, Patch
from conformance.outcome import Failure, Outcome

pytestmark = pytest.mark.requirement("conformance.broken")

EVERY = mutants.load()


def test_there_are_enough_of_them() -> None:
    assert len(EVERY) >= 25
    of = Counter(mutant.apply.__module__.rpartition(".")[2] for mutant in EVERY.values())
    assert of["tasks"] + of["task_clocks"] >= 12
    assert of["switches"] + of["leases"] >= 8
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
    assert not missed(mutant, outcome), f"{mutant.sentence} {name} has not noticed it"
    assert outcome.failure is not None
    assert outcome.failure.line > 1, "it did not even start"


def test_each_caught_by_exists() -> None:
    known = {transcripts.name_of(path) for path in transcripts.find()}
    assert {name for mutant in EVERY.values() for name in mutant.caught_by} <= known


def test_each_step_that_must_fail_is_one_of_its_transcript() -> None:
    for mutant in EVERY.values():
        for transcript in caught_by(mutant):
            at = mutant.caught_by[transcript.name]
            steps = [step.line for step in transcript.steps if at in step.text]
            assert not at or len(steps) == 1, f"{mutant.name}: {at} stands in the steps {steps}"


def test_a_transcript_that_fails_elsewhere_has_not_noticed_it() -> None:
    mutant = EVERY["dropped-on-refusal"]
    (name, *_) = mutant.caught_by
    failure = Failure(line=2, step='{"call":"reminder_list"}', why="another reason")
    outcome = Outcome(
        name=name, title="", host="", clock="virtual", seconds=0, rules={}, failure=failure
    )
    for at, noticed in (("", True), ("reminder_list", True), ("reminder_cancel", False)):
        sharp = msgspec.structs.replace(mutant, caught_by={name: at})
        assert bool(missed(sharp, outcome)) is not noticed
    assert missed(mutant, msgspec.structs.replace(outcome, failure=None)) == "NOT CAUGHT"


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
