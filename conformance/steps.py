"""What each kind of step does; ``FORMAT.md`` says it in words."""

import base64
import re
from collections.abc import Callable
from typing import Any

from conformance import exact, moments, patterns, values
from conformance.host import PUSH, Message, match_message
from conformance.patterns import ABSENT, Miss
from conformance.player import BrokenError, Player
from conformance.transcripts import ACCEPTED, Step

MCPL = {"version": "0.5", "pushEvents": True, "featureSets": True}
POLICY = {"effectiveCapabilities": ["pushEvents", "tools"], "enabled": ["heartbeat"]}
TIME_TO_LEAVE = 2.0


def carry_out(player: Player, step: Step) -> None:
    """Carry out one step, or raise ``BrokenError``, ``StageError`` or ``UnboundError``."""
    _STEPS[step.kind](player, step)


# The host speaks ---------------------------------------------------------------------------------


def _host(player: Player, step: Step) -> None:
    match step.value:
        case {"$text": pieces}:
            text = values.text(pieces, player.names)
            player.write(step, text.encode("utf-8", "surrogatepass"))
        case {"$bytes": str(encoded)}:
            player.write(step, base64.b64decode(encoded))
        case {"$cut": list(cut)}:
            for piece in cut:
                player.write(step, values.text(piece, player.names).encode("utf-8"))
                player.stage.between_writes()
        case {"$lines": list(messages)}:
            lines = [exact.write(player.fill(message)) + "\n" for message in messages]
            player.write(step, "".join(lines).encode())
        case _:
            player.send(step, player.fill(step.value))


def _request(player: Player, step: Step) -> None:
    params, id = player.fill(step.more.get("params")), player.fill(step.more.get("id"))
    player.request(step, step.value, params, id)


def _notify(player: Player, step: Step) -> None:
    message = {"jsonrpc": "2.0", "method": step.value, **player.fill(dict(step.more))}
    player.send(step, message)


def _call(player: Player, step: Step) -> None:
    params = {"name": step.value, "arguments": player.fill(step.more.get("arguments", {}))}
    player.request(step, "tools/call", params, player.fill(step.more.get("id")))


def _handshake(player: Player, step: Step) -> None:
    given = step.value
    version = given.get("version", "2024-11-05")
    client = given.get("client", "agent-framework")
    mcpl = given.get("mcpl", True)
    mcpl = MCPL if mcpl is True else mcpl
    params = {
        "protocolVersion": version,
        "capabilities": {} if mcpl is False else {"experimental": {"mcpl": mcpl}},
        "clientInfo": {"name": client, "version": "1.0.0"} if isinstance(client, str) else client,
    }
    id = player.request(step, "initialize", player.fill(params), given.get("id", 0))
    wanted = {"result": given.get("result", {"protocolVersion": version})}
    player.match(step, wanted, player.take_reply(step, id, wanted), "initialize")
    if given.get("initialized") is not False:
        notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        more = {"params": given["initialized"]} if "initialized" in given else {}
        player.send(step, {**notification, **more})
    policy = given.get("policy", True)
    if policy is True:
        policy = None if mcpl is False else POLICY
    if policy is not None:
        id = player.request(step, "featureSets/update", player.fill(policy))
        wanted = {"result": given.get("receipt", {"accepted": True})}
        player.match(step, wanted, player.take_reply(step, id, wanted), "featureSets/update")


# The server speaks -------------------------------------------------------------------------------


def _server(player: Player, step: Step) -> None:
    if "order" not in step.more:
        message = player.take(step, lambda message: True, "message", step.value)
        return player.match(step, step.value, message, "the next message")
    wanted = step.value
    seat, _ = player.server(step.on).connection()
    if not player.wait(step, lambda: len(seat.inbox) >= len(wanted)):
        why = f"{len(seat.inbox)} of {len(wanted)} messages came within {step.within:g} s"
        raise BrokenError(why, wanted, _lines(seat.inbox))
    taken, seat.inbox[:] = seat.inbox[: len(wanted)], seat.inbox[len(wanted) :]
    if step.more["order"] == "given":
        for number, (pattern, message) in enumerate(zip(wanted, taken, strict=True), 1):
            player.match(step, pattern, message, f"message {number} of these")
    else:
        _in_any_order(player, step, taken)
    return None


def _in_any_order(player: Player, step: Step, taken: list[Message]) -> None:
    clock = player.clock(step)

    def compare(pattern: Any, message: Message, names: values.Names) -> patterns.Result:
        return match_message(pattern, message, names, clock)

    names = patterns.match_unordered(step.value, taken, player.names, compare)
    if names is None:
        raise BrokenError("these do not fit, in whatever order", step.value, _lines(taken))
    player.names = names


def _push(player: Player, step: Step) -> None:
    wanted = {"method": PUSH, "params": step.value}
    if "id" in step.more:
        wanted["id"] = step.more["id"]
    message = player.take(step, lambda message: message.is_push, "push", wanted)
    player.match(step, wanted, message, "the next push")
    if "answer" in step.more:
        _answer(player, message, step.more["answer"])


def _reply_to(player: Player, step: Step, wanted: Any) -> Message:
    seat, _ = player.server(step.on).connection()
    id = player.fill(step.more["to"]) if "to" in step.more else seat.latest_request
    return player.take_reply(step, id, wanted)


def _reply(player: Player, step: Step) -> None:
    message = _reply_to(player, step, step.value)
    player.match(step, step.value, message, "the reply")


def _result(player: Player, step: Step) -> None:
    wanted = {step.kind: step.value, **step.more}
    message = _reply_to(player, step, wanted)
    result = message.value.get("result")
    if not isinstance(result, dict):
        raise BrokenError("the call was answered with an error", wanted, message.line)
    if step.kind == "result" and _is_of_object(step.value):
        compared = patterns.match(step.value, result, player.names, player.clock(step))
        player.demand(compared, "the result", wanted, message.line)
    else:
        failed = result.get("isError", False) is True
        if failed is not (step.kind == "refused"):
            why = "the call failed" if failed else "the call was not refused"
            raise BrokenError(why, wanted, message.line)
        compared = patterns.match(step.value, _text_of(result), player.names, player.clock(step))
        player.demand(compared, "the text", wanted, message.line)
    if "structured" in step.more:
        found = result.get("structuredContent", ABSENT)
        compared = patterns.match(step.more["structured"], found, player.names, player.clock(step))
        player.demand(compared, "structuredContent", wanted, message.line)


def _is_of_object(pattern: Any) -> bool:
    return isinstance(pattern, dict) and all(
        name == "$only" or not name.startswith("$") for name in pattern
    )


def _text_of(result: dict[str, Any]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    )


def _quiet(player: Player, step: Step) -> None:
    seat, _ = player.server(step.on).connection()
    kind = step.more.get("of", "$any")

    def is_of_kind(message: Message) -> bool:
        if kind == "push":
            return message.is_push
        if kind == "reply":
            return message.is_reply
        result = match_message(kind, message, player.names, player.clock(step))
        return not isinstance(result, Miss)

    def found() -> Message | None:
        return next(filter(is_of_kind, seat.inbox), None)

    player.stage.let_pass(
        float(step.value), lambda: found() is not None or player.problem() is not None
    )
    message = found()
    if message is not None:
        raise BrokenError("a message that must not come", {"$not": kind}, message.line)


# How pushes are answered -------------------------------------------------------------------------


def _set_answer(player: Player, step: Step) -> None:
    player.answers.set(player.fill(step.value))


def _answer_push(player: Player, step: Step) -> None:
    which = player.fill(step.value)
    if isinstance(step.value, int):
        found = [message for _, message in player.pushes]
        count = len(found)
        chosen = found[which] if -count <= which < count else None
    else:
        sent = (message for _, message in player.pushes)
        chosen = next((m for m in sent if exact.same(m.value.get("id"), which)), None)
    if chosen is None:
        raise BrokenError(f"there was no such push: {exact.write(which)}")
    _answer(player, chosen, step.more.get("with", ACCEPTED), step.on)
    player.stage.let_pass(0)


def _answer(player: Player, message: Message, answer: Any, on: str | None = None) -> None:
    seat = next(seat for seat, pushed in player.pushes if pushed is message)
    if answer not in ("never", "later"):
        # A host that was restarted in between answers on the connection that it has now.
        now = player.server(on).seat if on is not None else None
        (now or seat).answer(message, player.fill(answer))


# Time --------------------------------------------------------------------------------------------


def _pass(player: Player, step: Step) -> None:
    player.stage.let_pass(float(step.value), lambda: player.problem() is not None)


def _until(player: Player, step: Step) -> None:
    left = (moments.to_ms(step.value) or 0) - player.stage.now()
    if left < 0:
        raise BrokenError(f"it is later than {step.value} already")
    player.stage.let_pass(left / 1000)


def _clock(player: Player, step: Step) -> None:
    player.stage.step_clock(round(step.value * 1000))


def _suspend(player: Player, step: Step) -> None:
    player.stage.suspend(round(step.value * 1000))


# Files, logs, life and death ---------------------------------------------------------------------


def _file(player: Player, step: Step) -> None:
    wanted = step.more["is"]
    if isinstance(wanted, dict) and wanted.keys() == {"$text"}:
        wanted, read = wanted["$text"], player.folder.text
    else:
        read = player.folder.content
    _poll(player, step, wanted, lambda: read(step.value), f"the file {step.value}")


def _folder(player: Player, step: Step) -> None:
    _poll(player, step, step.value, player.folder.names, "the folder")


def _poll(player: Player, step: Step, wanted: Any, read: Callable[[], Any], what: str) -> None:
    def compare() -> patterns.Result:
        return patterns.match(wanted, read(), player.names, player.clock(step))

    if not step.more.get("at_once", False):
        player.stage.let_pass(step.within, lambda: not isinstance(compare(), Miss))
    player.complain()
    found = read()
    player.demand(compare(), what, wanted, repr(found) if found is ABSENT else found)


def _write(player: Player, step: Step) -> None:
    player.folder.write(step.value, step.more["content"], player.names, player.stage.now())


def _remove(player: Player, step: Step) -> None:
    player.folder.take_away(step.value)


def _stderr(player: Player, step: Step) -> None:
    seat, _ = player.server(step.on).connection()
    text = values.interpolate(step.value, player.names, escape=True)
    regex = re.compile(text, re.MULTILINE)
    times = step.more.get("times")
    if times == 0:
        player.stage.let_pass(0)
    else:
        player.stage.let_pass(step.within, lambda: len(regex.findall(seat.log)) >= (times or 1))
    found = len(regex.findall(seat.log))
    if found != times if times is not None else not found:
        raise BrokenError(f"logged {found} times", {"$re": text}, seat.log[-2000:] or "(nothing)")


def _signal(player: Player, step: Step) -> None:
    _, peer = player.server(step.on).connection()
    peer.signal(step.value)


def _close(player: Player, step: Step) -> None:
    seat, peer = player.server(step.on).connection()
    if step.value == "stdin":
        # The end of input ends a line as well.
        seat.spoke(b"\n")
    peer.close(step.value)


def _exit(player: Player, step: Step) -> None:
    _, peer = player.server(step.on).connection()
    within = float(step.value.get("within", TIME_TO_LEAVE))
    if not player.stage.let_pass(within, lambda: peer.status is not None):
        raise BrokenError(f"the server is still there after {within:g} s")
    player.stage.let_pass(within, lambda: peer.ended)
    if "status" not in step.value:
        return
    wanted = step.value["status"]
    wanted = wanted if isinstance(wanted, list) else [wanted]
    # A shell in between says 128 + n for signal n.
    accepted = {*wanted, *(128 - status for status in wanted if status < 0)}
    if peer.status not in accepted:
        raise BrokenError("it ended otherwise", {"status": wanted}, {"status": peer.status})


def _start(player: Player, step: Step) -> None:
    player.start(step.on, step.value, step.within)


def _lines(messages: list[Message]) -> str:
    return "\n".join(message.line for message in messages) or "(nothing)"


_STEPS: dict[str, Callable[[Player, Step], None]] = {
    "host": _host,
    "request": _request,
    "notify": _notify,
    "call": _call,
    "handshake": _handshake,
    "server": _server,
    "push": _push,
    "reply": _reply,
    "result": _result,
    "refused": _result,
    "quiet": _quiet,
    "answer": _set_answer,
    "answer_push": _answer_push,
    "wait": _pass,
    "pass": _pass,
    "until": _until,
    "clock": _clock,
    "suspend": _suspend,
    "file": _file,
    "folder": _folder,
    "write": _write,
    "remove": _remove,
    "stderr": _stderr,
    "signal": _signal,
    "close": _close,
    "exit": _exit,
    "start": _start,
}
