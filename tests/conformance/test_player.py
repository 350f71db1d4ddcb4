"""Each kind of step does what ``FORMAT.md`` says, against a toy server with time in hand."""

from typing import Any

import pytest

from tests.conformance.toy import NOISE, PING, PONG, failure, play, polite, push, silent

pytestmark = pytest.mark.requirement("conformance.steps")


def text(text: str, **more: Any) -> Any:
    """Return a server whose every reply is a tool's result with this text."""

    def behave(message: dict[str, Any]) -> list[dict[str, Any]]:
        result = {"content": [{"type": "text", "text": text}], **more}
        return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]

    return behave


# The host speaks ---------------------------------------------------------------------------------


def test_the_host_speaks_in_every_way() -> None:
    outcome, stage = play(
        polite,
        {"host": {"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"at": {"$now": 1}}}},
        {"host": {"$text": ['{"id": 2, "method": "', {"$repeat": "b", "times": 3}, '"}\n']}},
        {"host": {"$bytes": "eyJpZCI6MywibWV0aG9kIjoiYyJ9Cg=="}},
        {"host": {"$lines": [{"id": 4, "method": "d"}, {"id": 5, "method": "e"}]}},
        {"request": "f", "params": [1]},
        {"notify": "g", "params": {"folder": "${folder}"}},
        {"call": "h", "arguments": {"x": 1}, "id": "mine"},
    )
    assert outcome.passed, outcome.failure
    methods = [message["method"] for message in stage.heard]
    assert methods == ["a", "bbb", "c", "d", "e", "f", "g", "tools/call"]
    assert stage.heard[0]["params"]["at"] == 1_790_000_001_000
    assert stage.heard[5] == {"jsonrpc": "2.0", "id": 9001, "method": "f", "params": [1]}
    assert "id" not in stage.heard[6]
    assert "conformance-" in stage.heard[6]["params"]["folder"]
    assert stage.heard[7]["id"] == "mine"
    assert stage.heard[7]["params"] == {"name": "h", "arguments": {"x": 1}}


def test_a_handshake_is_what_a_host_says_first() -> None:
    outcome, stage = play(polite, {"handshake": {}})
    assert outcome.passed, outcome.failure
    initialize, initialized, policy = stage.heard
    assert (initialize["id"], initialize["params"]["protocolVersion"]) == (0, "2024-11-05")
    assert initialize["params"]["capabilities"]["experimental"]["mcpl"]["version"] == "0.5"
    assert initialized == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert policy["params"]["enabled"] == ["heartbeat"]


def test_a_handshake_can_be_said_otherwise() -> None:
    given = {
        "version": "2025-06-18",
        "id": 7,
        "client": {"name": "c", "version": "2", "title": "C"},
        "mcpl": False,
        "initialized": {},
    }
    outcome, stage = play(polite, {"handshake": given})
    assert outcome.passed, outcome.failure
    initialize, initialized = stage.heard
    assert initialize["params"] == {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": given["client"],
    }
    assert initialized["params"] == {}
    outcome, stage = play(polite, {"handshake": {"policy": None, "initialized": False}})
    assert [message["method"] for message in stage.heard] == ["initialize"]
    policy: dict[str, Any] = {"effectiveCapabilities": []}
    outcome, stage = play(polite, {"handshake": {"mcpl": False, "policy": policy}})
    assert stage.heard[-1]["params"] == policy


@pytest.mark.parametrize(
    "given", [{"result": {"protocolVersion": "2024-10-07"}}, {"receipt": {"accepted": False}}]
)
def test_a_handshake_demands_its_answers(given: dict[str, Any]) -> None:
    outcome, _ = play(polite, {"handshake": given})
    assert "wanted" in failure(outcome).why


# The server speaks -------------------------------------------------------------------------------


def test_a_reply_is_found_behind_other_traffic() -> None:
    def chatty(message: dict[str, Any]) -> list[dict[str, Any]]:
        return [push(f"p{message['id']}", n=1), *polite(message)] if "method" in message else []

    steps: list[Any] = [PING, PONG, {"push": {"n": 1}, "id": "p9001"}, {"quiet": 1}]
    outcome, _ = play(chatty, *steps)
    assert outcome.passed, outcome.failure
    outcome, _ = play(chatty, PING, {"server": {"result": {}}})
    assert failure(outcome).line == 3
    assert '"push/event"' in failure(outcome).got
    outcome, _ = play(chatty, {**PING, "id": 1}, {**PING, "id": 2}, {**PONG, "to": 1})
    assert outcome.passed, outcome.failure


@pytest.mark.parametrize(("order", "passes"), [("given", False), ("any", True)])
def test_messages_come_in_an_order_or_in_any(order: str, passes: bool) -> None:
    wanted = [{"id": 2}, {"id": {"$bind": "first"}}]
    two: list[Any] = [{**PING, "id": 1}, {**PING, "id": 2}, {"server": wanted, "order": order}]
    outcome, _ = play(polite, *two)
    assert outcome.passed is passes
    if passes:
        outcome, _ = play(polite, *two, {"request": "x", "id": {"$ref": "first"}})
        assert outcome.passed, outcome.failure


def test_the_text_of_a_result_is_told_from_its_failure() -> None:
    call = {"call": "t"}
    good, bad = text("fine", isError=False), text("no", isError=True)
    structured = text("fine", structuredContent={"a": 1})
    for server, step, passes in (
        (good, {"result": "fine"}, True),
        (good, {"result": {"$re": "^f"}}, True),
        (good, {"result": "no"}, False),
        (good, {"refused": "fine"}, False),
        (good, {"result": {"content": [{"type": "text"}], "isError": False}}, True),
        (good, {"result": {"$only": {"content": "$any"}}}, False),
        (bad, {"refused": "no"}, True),
        (bad, {"result": "no"}, False),
        (bad, {"result": {"isError": True}}, True),
        (structured, {"result": "fine", "structured": {"a": 1}}, True),
        (structured, {"result": "fine", "structured": {"a": 2}}, False),
        (structured, {"result": "fine", "structured": "$absent"}, False),
    ):
        outcome, _ = play(server, call, step)
        assert outcome.passed is passes, (step, outcome.failure)


def test_an_error_in_place_of_a_result_is_no_text() -> None:
    def refusing(message: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "m"}}]

    outcome, _ = play(refusing, {"call": "t"}, {"result": "$any"})
    assert "answered with an error" in failure(outcome).why
    outcome, _ = play(refusing, {"call": "t"}, {"reply": {"error": {"code": -32602}}})
    assert outcome.passed, outcome.failure


def test_the_line_itself_can_be_looked_at() -> None:
    def spaced(message: dict[str, Any]) -> list[str]:
        return [f'{{"jsonrpc":  "2.0", "id": {message["id"]}, "result": "\\u2028"}}']

    line = {"$line": {"$contains": ["  ", "\\u2028"]}}
    outcome, _ = play(spaced, PING, {"server": line}, PING, {"quiet": 1, "of": line})
    assert failure(outcome).line == 5


def test_quiet_is_over_what_waits_and_what_comes() -> None:
    noise = {2.0: NOISE}
    outcome, stage = play(silent, {"quiet": 1.5}, later=noise)
    assert outcome.passed
    assert stage.passed == 1.5
    outcome, stage = play(silent, {"quiet": 2}, later=noise)
    assert "must not come" in failure(outcome).why
    outcome, _ = play(silent, {"wait": 3}, {"quiet": 0}, later=noise)
    assert not outcome.passed
    for kind in ("push", "reply", {"method": "other"}):
        outcome, _ = play(silent, {"quiet": 3, "of": kind}, later=noise)
        assert outcome.passed, outcome.failure
    outcome, _ = play(silent, {"quiet": 3, "of": {"method": {"$re": "noise$"}}}, later=noise)
    assert not outcome.passed


def test_a_step_waits_no_longer_than_within() -> None:
    noise = {4.0: NOISE}
    outcome, stage = play(silent, {"server": NOISE, "within": 4}, later=noise)
    assert outcome.passed
    assert stage.passed == 4.0
    outcome, _ = play(silent, {"server": NOISE, "within": 3}, later=noise)
    assert "no message came within 3 s" in failure(outcome).why


# Pushes ------------------------------------------------------------------------------------------


def answers(stage: Any) -> list[Any]:
    return [
        message.get("result") or message.get("error", {}).get("code")
        for message in stage.heard
        if "method" not in message
    ]


@pytest.mark.requirement("conformance.host-answers")
def test_pushes_are_answered_as_they_come() -> None:
    pushes = {1.0: push("a", n=1), 2.0: push("b", n=2), 3.0: push("c", n=3), 4.0: push("d", n=4)}
    refusal = {"error": {"code": -32002, "message": "no", "data": {"capability": "pushEvents"}}}
    outcome, stage = play(
        silent,
        {"push": {"n": 1}},
        {"answer": [refusal, {"result": {"accepted": False}}, "never"]},
        {"push": {"n": 2}},
        {"push": {"n": 3}},
        {"push": {"n": 4}},
        later=pushes,
    )
    assert outcome.passed, outcome.failure
    assert answers(stage) == [{"accepted": True}, -32002, {"accepted": False}]
    assert stage.heard[1] == {"jsonrpc": "2.0", "id": "b", "error": refusal["error"]}


@pytest.mark.requirement("conformance.host-answers")
def test_pushes_are_answered_later_twice_or_by_their_id() -> None:
    pushes = {1.0: push("a", n=1), 2.0: push("b", n=2)}
    outcome, stage = play(
        silent,
        {"push": {"n": 1}, "id": {"$bind": "first"}},
        {"push": {"n": 2}, "answer": {"error": {"code": 5}}},
        {"answer_push": 0},
        {"answer_push": {"$ref": "first"}, "with": {"result": {"accepted": False}}},
        {"answer_push": -1},
        later=pushes,
        answer="later",
    )
    assert outcome.passed, outcome.failure
    assert [message["id"] for message in stage.heard] == ["b", "a", "a", "b"]
    assert answers(stage) == [5, {"accepted": True}, {"accepted": False}, {"accepted": True}]
    outcome, _ = play(silent, {"answer_push": 0})
    assert "no such push" in failure(outcome).why


@pytest.mark.requirement("conformance.host-answers")
def test_other_questions_and_odd_pushes_get_errors() -> None:
    asked = {
        1.0: {"jsonrpc": "2.0", "id": 1, "method": "roots/list"},
        2.0: push("a"),
        3.0: {"jsonrpc": "2.0", "method": "push/event", "params": {}},
        4.0: {"jsonrpc": "2.0", "id": "b", "method": "push/event", "params": "text"},
    }
    outcome, stage = play(silent, {"wait": 5}, later=asked)
    assert outcome.passed, outcome.failure
    assert answers(stage) == [-32601, {"accepted": True}, -32600]
