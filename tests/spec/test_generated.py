"""What is committed in ``spec/`` is what the code gives now, and the pictures hold every arrow."""

import enum
import json
import re

import pytest

from mcpl_heartbeat.policy.manifest import HEARTBEAT, manifest
from spec import diagrams, generate, links

OUTPUTS = generate.outputs()


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: str(path.relative_to(links.HERE)))
def test_what_is_committed_is_what_the_code_gives(path: object) -> None:
    found = next(p for p in OUTPUTS if p == path)
    assert found.exists(), "run python -m spec.generate"
    assert found.read_text("utf-8") == OUTPUTS[found], "run python -m spec.generate"


def test_no_schema_is_left_of_what_is_gone() -> None:
    assert set(generate.SCHEMAS.rglob("*.json")) <= set(OUTPUTS), "run python -m spec.generate"


def test_each_diagram_stands_in_one_page() -> None:
    pages = "".join((links.HERE / name).read_text("utf-8") for name in links.PAGES)
    for name in diagrams.MACHINES:
        assert pages.count(f"<!-- generated: {name} diagram -->\n```mermaid\n") == 1, name


@pytest.mark.requirement("policy.table", "schedule.table", "reminder.table")
@pytest.mark.parametrize("name", diagrams.MACHINES)
def test_a_diagram_says_what_the_table_says(name: str) -> None:
    machine = diagrams.MACHINES[name]
    arrows = set()
    for line in diagrams.diagram(machine).splitlines():
        if found := re.fullmatch(r"    (\w+) --> (\w+): ([^:;\n]+)", line):
            labels = found[3].split(diagrams.BETWEEN_EVENTS)
            arrows |= {(found[1], label, found[2]) for label in labels}
    assert arrows == {
        (state.value, diagrams.label(event), after.value)
        for (state, event), after in machine.table.items()
    }


@pytest.mark.parametrize("name", diagrams.MACHINES)
def test_each_state_is_explained_on_its_page(name: str) -> None:
    machine = diagrams.MACHINES[name]
    states = {state for way in machine.table.items() for state in (way[0][0], way[1])}
    page = next(
        text
        for text in ((links.HERE / each).read_text("utf-8") for each in links.PAGES)
        if f"generated: {name} diagram" in text
    )
    for state in states:
        assert f"\n| `{state.value}` | " in page, state


def test_a_label_holds_nothing_that_ends_it() -> None:
    class Odd(enum.Enum):
        EVENT = "read; merged: saved"

    assert diagrams.label(Odd.EVENT) == "read, merged, saved"


@pytest.mark.requirement("policy.manifest", "policy.revision")
def test_the_manifest_on_the_page_is_ours() -> None:
    page = (links.HERE / "policy.md").read_text("utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.+?)```", page, re.DOTALL)]
    assert manifest((HEARTBEAT,)) in blocks
