"""Our own server keeps every rule that its transcripts reach."""

import ast
import sys

import pytest

from conformance import runner, transcripts
from conformance.outcome import Outcome
from conformance.transcripts import Transcript

pytestmark = pytest.mark.requirement("conformance.ours")

EVERY = [transcripts.read(path) for path in transcripts.find()]
COMMAND = [sys.executable, "-m", "mcpl_heartbeat", "--stdio"]


def story(outcome: Outcome) -> str:
    failure = outcome.failure
    assert failure is not None
    return f"line {failure.line}: {failure.why}\n{failure.step}\n{failure.got}\n{failure.log}"


@pytest.mark.requirement("conformance.virtual")
@pytest.mark.parametrize(
    "transcript",
    [pytest.param(each, id=each.name) for each in EVERY if each.plays("virtual")],
)
def test_in_virtual_time(transcript: Transcript) -> None:
    (outcome,) = runner.replay_virtual([transcript])
    assert outcome.passed, story(outcome)


@pytest.mark.parametrize(
    "transcript", [pytest.param(each, id=each.name) for each in EVERY if each.clock == "real"]
)
def test_in_real_time_what_needs_it(transcript: Transcript) -> None:
    """The others run in real time as well, side by side, by ``python -m conformance``."""
    (outcome,) = runner.replay_real([transcript], COMMAND)
    assert outcome.passed, story(outcome)


@pytest.mark.requirement("conformance.host-answers")
def test_only_the_virtual_stage_and_the_broken_servers_know_the_server() -> None:
    """The host's side shares no code with the server that it judges."""
    knowing = set()
    for path in transcripts.ROOT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            if any(module.split(".")[0] == "mcpl_heartbeat" for module in modules):
                knowing.add(path.name)
    assert knowing == {"virtual.py", "virtual_store.py"}
