"""Our own requests: only the first answer with the very id settles one."""

import json

import pytest

from mcpl_heartbeat.jsonrpc.messages import Answer, parse
from mcpl_heartbeat.jsonrpc.outgoing import Outgoing


def answer(text: str) -> Answer:
    message = parse(text.encode())
    assert isinstance(message, Answer)
    return message


@pytest.mark.requirement("jsonrpc.answer-matching")
def test_an_answer_brings_back_what_its_request_was_about() -> None:
    outgoing: Outgoing[str] = Outgoing("a1b2")
    id, line = outgoing.open("push/event", {"eventId": "e"}, "first")
    other, _ = outgoing.open("push/event", {}, "second")
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": id,
        "method": "push/event",
        "params": {"eventId": "e"},
    }
    assert outgoing.settle(answer(json.dumps({"id": other, "result": {}}))) == "second"
    assert outgoing.settle(answer(json.dumps({"id": id, "error": {}}))) == "first"


@pytest.mark.requirement("jsonrpc.request-ids", "host.20")
def test_ids_are_strings_that_begin_with_the_prefix_and_never_repeat() -> None:
    outgoing: Outgoing[None] = Outgoing("a1b2")
    ids = []
    for _ in range(5):
        id, line = outgoing.open("push/event", {}, None)
        assert json.loads(line)["id"] == id
        outgoing.forget(id)
        ids.append(id)
    assert len(set(ids)) == 5
    assert all(id.startswith("a1b2-") for id in ids)


@pytest.mark.requirement("jsonrpc.answer-matching", "jsonrpc.unexpected-answer", "field.47")
@pytest.mark.parametrize("id", ["1", '"1"', "99", "null", "true", "1.0", "[]", "1e999", '"a-2"'])
def test_an_answer_under_another_id_or_type_settles_nothing(id: str) -> None:
    outgoing: Outgoing[str] = Outgoing("a")
    mine, _ = outgoing.open("push/event", {}, "subject")
    assert outgoing.settle(answer(f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}')) is None
    assert outgoing.settle(Answer(id=mine, result=None, error=None)) == "subject"


@pytest.mark.requirement("jsonrpc.answer-matching", "field.47")
def test_a_second_answer_settles_nothing() -> None:
    outgoing: Outgoing[str] = Outgoing("a")
    id, _ = outgoing.open("push/event", {}, "subject")
    said = Answer(id=id, result=None, error=None)
    assert outgoing.settle(said) == "subject"
    assert outgoing.settle(said) is None


@pytest.mark.requirement("jsonrpc.answer-matching")
def test_a_forgotten_request_is_settled_by_nothing() -> None:
    outgoing: Outgoing[str] = Outgoing("a")
    id, _ = outgoing.open("push/event", {}, "subject")
    outgoing.forget(id)
    outgoing.forget("never-opened")
    assert outgoing.settle(Answer(id=id, result=None, error=None)) is None
