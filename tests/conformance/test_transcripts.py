"""A transcript is read as ``FORMAT.md`` says, or refused with its line."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conformance import cli, transcripts
from conformance.transcripts import TranscriptError, parse

pytestmark = pytest.mark.requirement("conformance.format")

HEAD: dict[str, Any] = {"transcript": "t", "host": "h"}
EVERY = transcripts.find()


def lines(*objects: Any) -> str:
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in objects)


def test_a_transcript_is_read() -> None:
    text = lines(
        "// a remark",
        {**HEAD, "rules": ["a.b"], "within": 2, "now": "2026-01-01T00:00:00Z"},
        "",
        {"request": "ping", "rules": ["c.d"], "note": "n"},
        {"reply": {"result": {}}, "within": 7, "on": "second"},
    )
    read = parse(text, "x/y")
    assert (read.title, read.host, read.clock) == ("t", "h", "either")
    assert read.now == 1_767_225_600_000
    assert read.all_rules() == ("a.b", "c.d")
    ping, reply = read.steps
    assert (ping.line, ping.kind, ping.within, ping.on) == (4, "request", 2, "first")
    assert (reply.line, reply.within, reply.on) == (5, 7, "second")
    assert read.plays("real")
    assert read.plays("virtual")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no head"),
        (lines({"host": "h"}), r"x\.jsonl:1: the head lacks 'transcript'"),
        (lines({**HEAD, "titel": 1}), "takes no titel"),
        (lines({**HEAD, "clock": "both"}), "clock is one of"),
        (lines({**HEAD, "within": "5"}), "within takes a number"),
        (lines({**HEAD, "now": "2026-01-01T00:00:00"}), "now takes ISO 8601"),
        (lines({**HEAD, "limits": {"file_size": 1}}), "limits"),
        (lines({**HEAD, "answer": {"result": 1, "error": 2}}), "answer is"),
        (lines(HEAD, "{"), r"x\.jsonl:2: is not JSON"),
        (lines(HEAD, "[]"), r"x\.jsonl:2: is no object"),
        (lines(HEAD, {"hots": 1}), r"x\.jsonl:2: there is no step 'hots'"),
        (lines(HEAD, {"request": "ping", "parms": {}}), "request step takes no parms"),
        (lines(HEAD, {"push": {"$regex": "x"}}), r"there is no pattern '\$regex'"),
        (lines(HEAD, {"server": [{"$x": 1}], "order": "any"}), "there is no pattern"),
        (lines(HEAD, {"server": {}, "order": "any"}), "order is for a list"),
        (lines(HEAD, {"quiet": 1, "of": "pushes$"}), None),
        (lines(HEAD, {"quiet": "1"}), "quiet takes a number"),
        (lines(HEAD, {"pass": 6}), "more than 5 s"),
        (lines(HEAD, {"clock": 6}), 'clock needs a head that says "clock": "virtual"'),
        (lines(HEAD, {"file": "config"}), "lacks 'is'"),
        (lines(HEAD, {"file": {"$re": "("}, "is": 1}), "no regular expression"),
        (lines(HEAD, {"file": "config", "is": {"$text": {"$re": "("}}}), "no regular expression"),
        (lines(HEAD, {"write": "config"}), "lacks 'content'"),
        (lines(HEAD, {"stderr": "("}), "no regular expression"),
        (lines(HEAD, {"signal": "SIGFPE"}), "signal is one of"),
        (lines(HEAD, {"handshake": {"versions": 1}}), "handshake takes no versions"),
        (lines(HEAD, {"handshake": {"receipt": "$x"}}), "receipt there is no pattern"),
        (lines(HEAD, {"exit": {"code": 1}}), "exit takes no code"),
        (lines(HEAD, {"answer": []}), "answer is"),
        (lines(HEAD, {"answer_push": 0, "with": "yes"}), "with is"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(text: str, complaint: str | None) -> None:
    if complaint is None:
        parse(text, "x")
        return
    with pytest.raises(TranscriptError, match=complaint):
        parse(text, "x")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="nowhere"):
        transcripts.read(tmp_path / "nowhere.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"transcript": "\xe4"}')
    with pytest.raises(TranscriptError, match="latin"):
        transcripts.read(tmp_path / "latin.jsonl")


def test_names_are_globs_and_folders() -> None:
    everything = transcripts.find()
    one_folder = transcripts.find("plain-mcp")
    assert one_folder == transcripts.find("plain-mcp/*")
    assert 0 < len(one_folder) < len(everything)
    assert transcripts.find("no-such-*") == []


@pytest.mark.requirement("conformance.transcripts")
def test_there_are_enough_of_them() -> None:
    assert len(EVERY) >= 80
    hosts = {path.parent.name for path in EVERY}
    assert hosts >= {
        *("agent-framework-0.20", "agent-framework-0.9", "agent-framework-0.1", "mcpl-harness"),
        *("mcpl-cc-bridge", "plain-mcp", "newest-clients", "misbehaving"),
    }


@pytest.fixture(scope="module")
def rules() -> dict[str, object]:
    """The table, which is long to read."""
    return tomllib.loads(cli.RULES.read_text("utf-8"))


@pytest.mark.requirement("conformance.transcripts")
@pytest.mark.parametrize("path", EVERY, ids=transcripts.name_of)
def test_each_one_reads_and_its_rules_exist(path: Path, rules: dict[str, object]) -> None:
    read = transcripts.read(path)
    assert read.all_rules(), "it shows no rule"
    assert set(read.all_rules()) <= set(rules)
