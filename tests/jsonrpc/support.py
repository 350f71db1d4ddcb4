"""What the tests of reading a line share: each kind of message, or a failed test."""

from mcpl_heartbeat.jsonrpc.messages import Answer, Invalid, Request, parse


def request(text: str) -> Request:
    message = parse(text.encode())
    assert isinstance(message, Request), message
    return message


def refused(line: str | bytes) -> tuple[int, bytes | None]:
    message = parse(line if isinstance(line, bytes) else line.encode())
    assert isinstance(message, Invalid), message
    return message.refusal.code, None if message.id is None else bytes(message.id)


def answered(text: str) -> Answer:
    message = parse(text.encode())
    assert isinstance(message, Answer), message
    return message
