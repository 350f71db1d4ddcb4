"""The report in all its forms, and the command line's exit status."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from conformance import mutants, report
from conformance.main import main
from conformance.outcome import Failure, Outcome, Verdict, over_all
from conformance.report import Run
from tests.conformance.toy import command

pytestmark = pytest.mark.requirement("conformance.reports")

TROUBLE = Failure(
    line=7,
    step='{"push": {"a": 1}}',
    why="the next push: at params.a: wanted 1, got 2",
    wanted='{"method": "push/event", "params": {"a": 1}}',
    got='{"jsonrpc": "2.0", "params": {"a": 2}}',
    log="WARNING: first\nsecond \x1b[31m\x00 ]]> <b>\n",
)


def outcome(name: str, failure: Failure | None = None, **rules: Verdict) -> Outcome:
    judged = {rule.replace("_", "."): verdict for rule, verdict in rules.items()}
    return Outcome(name, f"Title of {name}", "a host", "real", 1.25, judged, failure)


def run(*outcomes: Outcome) -> Run:
    rules = over_all(outcomes, ["z.known"])
    return Run(("serve", "--stdio"), "real", 2.5, outcomes, tuple(rules), {"a.b": "It must."})


GOOD = run(outcome("x/good", a_b=Verdict.HOLDS))
BAD = run(
    outcome("x/good", a_b=Verdict.HOLDS, c_d=Verdict.HOLDS),
    outcome("x/bad", TROUBLE, a_b=Verdict.BROKEN, e_f=Verdict.NOT_REACHED),
)


@pytest.mark.requirement("conformance.verdicts")
def test_broken_anywhere_is_broken() -> None:
    verdicts = {rule.id: rule.verdict for rule in BAD.rules}
    assert verdicts == {
        "a.b": Verdict.BROKEN,
        "c.d": Verdict.HOLDS,
        "e.f": Verdict.NOT_REACHED,
        "z.known": Verdict.NOT_REACHED,
    }
    assert GOOD.holds
    assert not BAD.holds
    assert not run(outcome("x", TROUBLE)).holds


def test_plain() -> None:
    text = report.plain(BAD)
    assert "conformance/x/bad.jsonl:7: Title of x/bad" in text
    wanted = text.index("wanted: " + TROUBLE.wanted)
    assert text.index("got:    " + TROUBLE.got) > wanted
    assert "broken       a.b      x/bad\n             It must.\n" in text
    assert "holds        c.d      x/good\n" in text
    assert "not reached  e.f\n" in text
    assert text.endswith(
        "4 rules: 1 hold, 1 broken, 2 not reached; 2 transcripts, 1 failed, in 2.5 s (real time)\n"
    )


def test_many_transcripts_behind_a_rule_are_counted() -> None:
    many = run(*(outcome(f"x/{number}", a_b=Verdict.HOLDS) for number in range(5)))
    assert "x/0, x/1, x/2 and 2 more" in report.plain(many)


def test_in_colour(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    report.print_in_colour(BAD)
    text = capsys.readouterr().out
    assert "\x1b[" in text
    assert "\x1b[31m\x00" not in text
    (side_by_side,) = [line for line in text.splitlines() if TROUBLE.got[:30] in line]
    assert TROUBLE.wanted[:30] in side_by_side
    assert "1 broken" in text


def test_json() -> None:
    whole = json.loads(json.dumps(report.as_json(BAD)))
    assert whole["holds"] is False
    assert whole["command"] == ["serve", "--stdio"]
    assert whole["rules"][0] == {
        "id": "a.b",
        "verdict": "broken",
        "text": "It must.",
        "holds": ["x/good"],
        "broken": ["x/bad"],
    }
    good, bad = whole["transcripts"]
    assert good["failure"] is None
    assert (bad["failure"]["line"], bad["failure"]["wanted"]) == (7, TROUBLE.wanted)


def test_junit() -> None:
    root = ET.fromstring(report.as_junit(BAD))
    suites: dict[Any, ET.Element] = {suite.get("name"): suite for suite in root}
    counts = {name: (s.get("tests"), s.get("failures")) for name, s in suites.items()}
    assert counts == {"conformance.transcripts": ("2", "1"), "conformance.rules": ("4", "1")}
    assert suites["conformance.rules"].get("skipped") == "2"
    (failure,) = suites["conformance.transcripts"].iter("failure")
    assert "x/bad.jsonl:7" in failure.attrib["message"]
    assert failure.text is not None
    assert "]]> <b>" in failure.text
    assert "\x00" not in failure.text


# The command line --------------------------------------------------------------------------------

HEAD = '{"transcript": "t", "host": "h", "rules": ["seed.status.interval"], "within": 20}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_text(HEAD + '{"request": "ping"}\n{"reply": {"result": "$object"}}\n', "utf-8")
    return path


def test_a_run_from_the_command_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "out.xml"
    words = ["--transcript", str(file), "--junit", str(junit), "--json", "--", *command("polite")]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rules"][0]["verdict"] == "holds"
    assert told["rules"][0]["text"]
    assert ET.parse(junit).getroot().get("name") == "conformance"
    assert main(["--transcript", str(file), "--", *command("dies")]) == 1
    assert "broken       seed.status.interval  mine" in capsys.readouterr().out


def test_ours_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--virtual", "--only", "plain-mcp/first-*", "--plain"]) in {0, 2}
    capsys.readouterr()
    assert main(["--virtual", "--only", "mcpl-harness"]) == 0
    assert "0 failed" in capsys.readouterr().out


def test_what_needs_a_virtual_clock_is_not_reached_in_real_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(HEAD.replace("}", ', "clock": "virtual"}').replace("status", "wake"), "utf-8")
    other = tmp_path / "r.jsonl"
    other.write_text(HEAD, "utf-8")
    paths = ["--transcript", str(path), "--transcript", str(other)]
    assert main([*paths, "--", *command("polite")]) == 0
    assert "not reached  seed.wake.interval" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--virtual"),
        (["--virtual", "--", "x"], "--virtual"),
        (["--", "/no/such/command"], "/no/such/command is no command here"),
        (["--virtual", "--only", "nothing-*"], "no transcript called nothing-*"),
        (["--transcript", "/no/such/file", "--virtual"], "/no/such/file"),
        (["broken", "no-such-mutant"], "no broken server no-such-mutant"),
        (["record", "--", "x"], "--out"),
        (["record", "--out", "/no/such/folder/x", "--", "x"], "cannot be written"),
    ],
)
def test_what_is_not_understood(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_a_transcript_that_makes_no_sense_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(HEAD + '{"pusch": 1}', "utf-8")
    assert main(["--transcript", str(path), "--virtual"]) == 2
    assert "wrong.jsonl:2: there is no step 'pusch'" in capsys.readouterr().err


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "misbehaving"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("misbehaving/") for line in lines)
    assert main(["--list", "--skip", "watch"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert not any(line.startswith("watch/") for line in lines)
    assert any(line.startswith("tasks/") for line in lines)
    assert main(["--list", "--skip", "watch", "--skip", "tasks"]) == 0
    both = capsys.readouterr().out.splitlines()
    assert both == [line for line in lines if not line.startswith("tasks/")]
    assert main(["--list", "--only", "watch/*", "--skip", "watch"]) == 2
    capsys.readouterr()
    assert main(["--list", "--json"]) == 0
    assert {"name", "title", "host", "clock", "rules"} == set(
        json.loads(capsys.readouterr().out)[0]
    )
    assert main(["broken", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(mutants.load())


@pytest.mark.requirement("conformance.broken")
def test_a_broken_server_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broken", "dropped-on-refusal"]) == 0
    assert "line " in capsys.readouterr().out
