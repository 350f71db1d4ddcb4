"""Pages, requirements, tests and transcripts name the same rules."""

from pathlib import Path

import pytest

from spec import links

NOT_OF_THE_PROTOCOL = {
    "conformance": "what the suite promises those who run it",
    "people": "what people see and type, no part of what server and host owe each other",
    "host.40": "about the README",
    "seed.recipe.wake-first": "about the README",
    "watch.store.postgres-tests": "about the tests",
}
MOST_LINES = 400

ROWS = links.requirements()
BUILT = [name for name, row in ROWS.items() if row.get("status") != "not built"]
PAGES = links.in_pages()


def _is_of_the_protocol(name: str) -> bool:
    return name not in NOT_OF_THE_PROTOCOL and name.partition(".")[0] not in NOT_OF_THE_PROTOCOL


def test_each_rule_of_the_pages_is_a_requirement() -> None:
    unknown = [f"{name}: {', '.join(at)}" for name, at in PAGES.items() if name not in BUILT]
    assert not unknown, "spec/requirements.toml has no such row that is built:\n" + "\n".join(
        unknown
    )


def test_each_requirement_of_the_protocol_stands_in_a_page() -> None:
    missing = [name for name in BUILT if _is_of_the_protocol(name) and name not in PAGES]
    assert not missing, "in no page of spec/:\n" + "\n".join(missing)


def test_each_rule_is_shown_by_a_test_or_a_transcript() -> None:
    shown = links.in_tests().keys() | links.in_transcripts().keys()
    missing = [name for name in BUILT if name not in shown]
    assert not missing, "shown by no test and no transcript:\n" + "\n".join(missing)


def test_each_rule_of_a_transcript_is_a_requirement() -> None:
    unknown = [f"{n}: {', '.join(at)}" for n, at in links.in_transcripts().items() if n not in ROWS]
    assert not unknown, "spec/requirements.toml has no such row:\n" + "\n".join(unknown)


@pytest.mark.parametrize("page", links.PAGES)
def test_a_page_stays_readable(page: str) -> None:
    text = (links.HERE / page).read_text("utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert "\n## Own decisions\n" in text
    assert "<!-- generated: sources -->" in text


@pytest.mark.parametrize("page", links.PAGES)
def test_each_mark_of_an_own_decision_leads_to_it(page: str) -> None:
    text, _, decisions = (links.HERE / page).read_text("utf-8").partition("\n## Own decisions\n")
    for piece in text.split("**(own ")[1:]:
        assert f"\n{piece.partition(')')[0]}. " in decisions, piece[:20]


def test_rules_of_heads_and_steps_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "some-host"
    folder.mkdir()
    (folder / "one.jsonl").write_text(
        '{"transcript": "t", "rules": ["a.b"]}\n\n// note\n{"request": "ping", "rules": ["c.d"]}\n'
        "[]\n"
    )
    found = links.in_transcripts(tmp_path)
    assert {name: [at.rpartition(":")[2] for at in where] for name, where in found.items()} == {
        "a.b": ["1"],
        "c.d": ["4"],
    }


def test_the_report_names_page_test_and_transcript(capsys: pytest.CaptureFixture[str]) -> None:
    assert links.main(["jsonrpc.id-echo"]) == 0
    said = capsys.readouterr().out
    assert "  page       spec/errors.md:" in said
    assert "  test       tests/" in said
    assert links.main(["no.such-rule"]) == 1
