"""What no server may do is noticed, files and time are as told, and each rule gets its verdict."""

import json
from typing import Any

import pytest

from conformance.outcome import Verdict
from tests.conformance.toy import (
    NOISE,
    PING,
    PONG,
    ToyStage,
    failure,
    play,
    play_on,
    polite,
    push,
    silent,
)

pytestmark = pytest.mark.requirement("conformance.steps")


# What no server may ------------------------------------------------------------------------------


@pytest.mark.requirement("conformance.always-checked")
@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (["hello"], "no line of JSON"),
        (["NaN"], "no line of JSON"),
        (["17"], "no JSON-RPC 2.0 message"),
        (["[]"], "no JSON-RPC 2.0 message"),
        ([{"id": 9001, "result": {}}], "no JSON-RPC 2.0 message"),
        ([{"jsonrpc": "2.0", "id": 9001}], "neither request nor reply"),
        ([{"jsonrpc": "2.0", "id": 9001, "result": 1, "error": {}}], "neither request nor reply"),
        ([{"jsonrpc": "2.0", "id": "9001", "result": 1}], "nobody asks"),
        ([{"jsonrpc": "2.0", "id": 9001, "result": 1}] * 2, "nobody asks"),
        ([push(1), push(1)], "an id it has used"),
        ([push(1), push(1.0)], "an id it has used"),
        ([json.dumps(NOISE)] * 50_001, "floods"),
        ([push(number) for number in range(5_001)], "floods"),
    ],
)
def test_what_no_server_may_say_is_always_noticed(said: list[Any], complaint: str) -> None:
    outcome, _ = play(lambda message: said if "method" in message else [], PING, {"wait": 1})
    assert complaint in failure(outcome).why
    assert failure(outcome).line == 2


@pytest.mark.requirement("conformance.always-checked")
@pytest.mark.parametrize(
    ("id", "echo"),
    [(0, "0"), (1.5, "1.50"), (10**30, str(10**30)), (10, "1E1"), ("a", '"a"'), (True, "true")],
)
def test_ids_are_told_by_their_value(id: Any, echo: str) -> None:
    def behave(message: dict[str, Any]) -> list[str]:
        return [f'{{"jsonrpc": "2.0", "id": {echo}, "result": {{}}}}']

    outcome, _ = play(behave, {"request": "x", "id": id}, PONG)
    assert outcome.passed, outcome.failure


@pytest.mark.requirement("conformance.always-checked")
def test_batches_and_errors_without_an_id_are_fine() -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "m"}}
    batch = [{"id": 1, "method": "a"}, {"id": 2, "method": "b"}]

    def behave(messages: Any) -> list[str]:
        return [
            '[{"jsonrpc": "2.0", "id": 2, "result": 1}, {"jsonrpc": "2.0", "id": 1, "result": 1}]'
        ]

    outcome, _ = play(
        behave,
        {"host": batch},
        {"server": [{"id": 2}, {"id": 1}]},
        {"server": error},
        later={1: error},
    )
    assert outcome.passed, outcome.failure


# Files, logs, time -------------------------------------------------------------------------------


def test_files_are_seen_and_changed() -> None:
    steps: list[dict[str, Any]] = [
        {"file": "config", "is": {"a": [1]}},
        {"file": "config", "is": {"$text": {"$contains": '"a"'}}},
        {"file": "reminders", "is": "torn"},
        {"file": "extra", "is": {"at": {"$now": 60}}},
        {"file": {"$re": "^ext"}, "is": "$object"},
        {"file": "config", "is": {"a": [2]}, "at_once": True},
    ]
    head: Any = {
        "files": {
            "config": {"a": [1]},
            "reminders": {"$text": "torn"},
            "extra": {"at": {"$now": 60}},
        }
    }
    outcome, _ = play(silent, *steps, **head)
    assert failure(outcome).line == 7
    outcome, _ = play(
        silent,
        {"write": "config", "content": {"b": "${folder}"}},
        {"file": "config", "is": {"b": {"$ref": "folder"}}},
        {"write": "sub/x", "content": {"$bytes": "eA=="}},
        {"file": "sub/x", "is": "x"},
        {"remove": "config"},
        {"file": "config", "is": "$absent"},
        {"write": "reminders", "content": {"$directory": True}},
        {"folder": ["heartbeat-reminders.json", "sub"]},
        {"remove": "reminders"},
        {"write": "link", "content": {"$link": "${folder}/target"}},
        {"write": "link", "content": 1},
        {"file": "target", "is": 1},
        {"folder": {"$unordered": ["sub", "link", "target"]}},
    )
    assert outcome.passed, outcome.failure


def test_where_the_files_are_follows_the_environment() -> None:
    env = {"HEARTBEAT_CONFIG_FILE": "${folder}/deep/c.json", "HEARTBEAT_REMINDERS_FILE": None}
    outcome, _ = play(
        silent,
        {"folder": ["deep", "heartbeat-reminders.json"]},
        {"file": "deep/c.json", "is": 1},
        env=env,
        files={"config": 1, "reminders": 2},
    )
    assert outcome.passed, outcome.failure


def test_the_log_is_searched_and_counted() -> None:
    def logging(message: dict[str, Any]) -> list[dict[str, Any]]:
        assert stage.peer is not None
        stage.peer._seat.logged("one WARNING\ntwo\n")
        return []

    for step, passes in (
        ({"stderr": "^one .*NING$"}, True),
        ({"stderr": "^two", "times": 2}, True),
        ({"stderr": "^two", "times": 1}, False),
        ({"stderr": "three", "times": 0}, True),
        ({"stderr": "two", "times": 0}, False),
        ({"stderr": "three"}, False),
    ):
        stage = ToyStage(logging)
        outcome = play_on(stage, {"notify": "a"}, {"notify": "b"}, step)
        assert outcome.passed is passes, step


def test_time_goes_by_as_told() -> None:
    outcome, stage = play(
        silent,
        {"pass": 86_400},
        {"wait": 0.5},
        {"until": "2026-09-22T14:13:21Z"},
        {"clock": -3600},
        {"suspend": 1.5},
    )
    assert outcome.passed, outcome.failure
    assert stage.passed == 86_401
    assert stage.heard == [("clock", -3_600_000), ("suspend", 1_500)]
    outcome, _ = play(silent, {"pass": 10}, {"until": "2026-09-21T14:13:21Z"})
    assert "later than" in failure(outcome).why


def test_life_and_death() -> None:
    outcome, _ = play(silent, {"signal": "SIGTERM"}, {"exit": {"status": [0, -15]}}, {"start": {}})
    assert outcome.passed, outcome.failure
    outcome, _ = play(silent, {"close": "stdin"}, {"exit": {"status": 0}})
    assert outcome.passed, outcome.failure
    outcome, _ = play(silent, {"signal": "SIGKILL"}, {"exit": {"status": [0, -15]}})
    assert '"status": -9' in failure(outcome).got
    outcome, _ = play(silent, {"signal": "SIGKILL"}, {"exit": {}})
    assert outcome.passed, outcome.failure
    outcome, _ = play(silent, {"exit": {"within": 1}})
    assert "still there after 1 s" in failure(outcome).why
    outcome, _ = play(silent, {"start": {}, "within": 1})
    assert "still running after 1 s" in failure(outcome).why
    outcome, _ = play(silent, {**PING, "on": "second"})
    assert "no server has been started" in failure(outcome).why
    outcome, _ = play(silent, PING, start=False)
    assert "no server has been started" in failure(outcome).why


# Verdicts ----------------------------------------------------------------------------------------


@pytest.mark.requirement("conformance.verdicts")
def test_the_rules_of_a_transcript_are_judged_one_by_one() -> None:
    steps: list[Any] = [
        {**PING, "rules": ["before"]},
        {**PONG, "rules": ["here", "twice"]},
        {**PING, "rules": ["after", "before"]},
        {"quiet": 0},
    ]
    head: Any = {"rules": ["whole", "here"]}
    outcome, _ = play(polite, *steps[:3], PONG, **head)
    assert set(outcome.rules.values()) == {Verdict.HOLDS}
    outcome, _ = play(silent, *steps, **head, within=1)
    assert outcome.rules == {
        "whole": Verdict.NOT_REACHED,
        "here": Verdict.BROKEN,
        "before": Verdict.NOT_REACHED,
        "twice": Verdict.BROKEN,
        "after": Verdict.NOT_REACHED,
    }
    outcome, _ = play(polite, *steps, **head)
    assert outcome.rules == {
        "whole": Verdict.BROKEN,
        "here": Verdict.HOLDS,
        "before": Verdict.HOLDS,
        "twice": Verdict.HOLDS,
        "after": Verdict.HOLDS,
    }


@pytest.mark.requirement("conformance.verdicts")
def test_a_name_that_nothing_bound_fails_its_step_alone() -> None:
    outcome, _ = play(polite, PING, {"reply": {"$ref": "never"}})
    assert "nothing has bound 'never'" in failure(outcome).why


@pytest.mark.requirement("conformance.verdicts")
def test_a_fault_of_the_suite_is_a_failure_of_that_transcript() -> None:
    def faulty(message: dict[str, Any]) -> list[dict[str, Any]]:
        raise ZeroDivisionError("oops")

    outcome, _ = play(faulty, PING, rules=["a"])
    assert "suite itself failed: ZeroDivisionError: oops" in failure(outcome).why
    assert outcome.rules == {"a": Verdict.BROKEN}
