"""Reminders over the real pipes: fired, held, kept through crashes, never lost."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.wire import (
    ACCEPT,
    NEVER,
    SIGCONT,
    SIGSTOP,
    Message,
    decline,
    error,
    event_id,
    now_ms,
    origin,
    row,
    shown,
)

ZONED = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d-0[78]:00 \[America/Los_Angeles\]"


def stored(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    """Write a reminders file for a server that starts later."""
    path = tmp_path / "data" / "heartbeat-reminders.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.requirement("seed.reminder.push", "seed.reminder.header", "reminder.event-shape")
@pytest.mark.requirement("reminder.event-id", "seed.reminder.taken-changes", "host.15", "host.21")
@pytest.mark.requirement("host.22", "host.23", "words.local-time")
def test_a_one_shot_fires_with_its_header_and_is_gone(host: Host) -> None:
    name = host.add("drink tea", inSeconds=1)
    [due] = [one["fireAt"] for one in host.rows()]
    push = host.wait_push()
    params = push["params"]
    assert params["featureSet"] == "heartbeat"
    assert params["eventId"] == f"reminder_{name}_{due}"
    assert params["origin"] == {"source": "reminder", "reminderId": name, "recurring": False}
    assert params["tags"] == ["heartbeat:reminder"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", params["timestamp"])
    assert re.fullmatch(
        rf"\[reminder {name}, set {ZONED} · current time: {ZONED}\] drink tea", shown(push)
    )
    assert isinstance(push["id"], str)
    host.settle()
    host.wait("empty file", lambda: host.rows() == [])
    assert "rem_" not in host.listed()


@pytest.mark.requirement("field.71", "seed.reminder.header-recurring", "seed.reminder.header-late")
@pytest.mark.requirement("seed.reminder.catch-up-once", "file.node-loads", "host.27")
@pytest.mark.requirement("reminder.catch-up", "reminder.due-order", "reminder.grid")
def test_missed_ones_of_a_node_file_fire_once_in_order_and_stay_on_grid(
    spawn: Spawn, tmp_path: Path
) -> None:
    due = now_ms() - 3_300_000
    order = "every 10 minutes send me X"
    stored(
        tmp_path,
        row("rem_b", due + 5, text="second"),
        row("rem_a", due, every=600, text=order),
        row("rem_far", now_ms() + 10**9, text="far"),
    )
    server = spawn().ready()
    server.wait_push(count=2)
    server.settle()
    first, second = server.pushes
    assert origin(first) == {"source": "reminder", "reminderId": "rem_a", "recurring": True}
    assert origin(second)["reminderId"] == "rem_b"
    assert re.fullmatch(
        rf"\[reminder rem_a, repeats every 600s, due {ZONED} · current time: {ZONED}\] {order}",
        shown(first),
    ), shown(first)
    server.quiet(1)
    assert len(server.pushes) == 2
    rows = {one["id"]: one for one in server.rows()}
    assert set(rows) == {"rem_a", "rem_far"}
    assert (rows["rem_a"]["fireAt"] - due) % 600_000 == 0
    assert rows["rem_a"]["fireAt"] > now_ms()


@pytest.mark.requirement("seed.reminder.held", "words.reminder-held", "host.17")
@pytest.mark.requirement("seed.reminder.retry-events", "reminder.event-id", "host.18", "host.20")
def test_a_refused_one_is_held_and_tried_at_each_occasion(spawn: Spawn) -> None:
    server = spawn(answers=decline("Unknown server: heartbeat")).ready()
    name = server.add("hold me", inSeconds=1)
    server.wait_push()
    server.settle()
    held = next(line for line in server.listed().splitlines() if name in line)
    assert re.search(rf"held since {ZONED}: .*Unknown server", held), held
    other = server.add("other", inHours=1)
    server.wait_push(count=2)
    server.settle()
    server.call("reminder_cancel", id=other)
    server.wait_push(count=3)
    server.settle()
    server.policy()
    server.wait_push(count=4)
    server.settle()
    server.kill()
    again = spawn(answers=ACCEPT).ready()
    again.wait_push()
    again.settle()
    again.wait("empty file", lambda: again.rows() == [])
    everything = server.pushes + again.pushes
    assert len(everything) == 5
    assert len({event_id(push) for push in everything}) == 1
    assert len({push["id"] for push in everything}) == 5


@pytest.mark.requirement("seed.reminder.retry-interval", "seed.reminder.held", "field.65")
def test_a_held_recurring_one_is_tried_again_an_interval_later(spawn: Spawn) -> None:
    server = spawn(answers=error(-32603, "the host is stopping")).ready()
    server.add("x", everySeconds=5)
    before = server.rows()
    server.wait_push()
    server.settle()
    assert "the host is stopping" in server.listed()
    server.answers = ACCEPT
    again = server.wait_push(count=2)
    assert event_id(again) == event_id(server.pushes[0])
    server.wait("advance", lambda: server.rows()[0]["fireAt"] > before[0]["fireAt"])
    assert "held" not in server.listed()


@pytest.mark.requirement("seed.reminder.taken-changes", "seed.reminder.held", "host.15")
def test_only_accepted_true_is_taken(spawn: Spawn) -> None:
    odd: list[Any] = [{}, None, 5, {"accepted": "yes"}, {"accepted": 1}, {"accepted": False}]
    answers: list[Message] = [{"result": one} for one in odd]
    answers += [{"error": one} for one in (None, "x", {"code": "x"}, {"code": -32601})]
    server = spawn(answers=answers[0]).ready()
    server.add("x", inSeconds=0.05)
    for count, answer in enumerate(answers, 1):
        server.answers = answer
        if count > 1:
            server.policy()
        server.wait_push(count=count)
        server.settle()
        assert "held since" in server.listed(), answer
    assert len(server.rows()) == 1
    assert len({event_id(push) for push in server.pushes}) == 1


@pytest.mark.requirement("host.15", "reminder.duplicate-taken")
def test_duplicate_counts_as_taken(spawn: Spawn) -> None:
    server = spawn(answers=decline("duplicate")).ready()
    server.add("x", inSeconds=1)
    server.wait_push()
    server.settle()
    server.wait("empty file", lambda: server.rows() == [])


@pytest.mark.requirement("field.47", "jsonrpc.answer-matching", "jsonrpc.request-ids")
def test_only_the_exact_first_answer_counts(spawn: Spawn) -> None:
    server = spawn(answers=NEVER).ready()
    server.add("x", everyHours=1, inSeconds=1)
    push = server.wait_push()
    before = server.rows()
    good: Message = {"accepted": True}
    for wrong in (99, push["id"] + "x", [push["id"]], None, 1.5):
        server.send({"jsonrpc": "2.0", "id": wrong, "result": good})
    server.ping()
    assert server.rows() == before
    server.answer(push, {"result": good})
    server.answer(push, error(-32603))
    server.answer(push, {"result": good})
    server.wait("advance", lambda: server.rows()[0]["fireAt"] == before[0]["fireAt"] + 3_600_000)
    assert "held" not in server.listed()
    assert len(server.pushes) == 1


@pytest.mark.requirement("field.56", "seed.reminder.catch-up-once", "host.29")
def test_after_a_suspend_one_push_then_back_on_the_grid(host: Host) -> None:
    host.add("x", everySeconds=5)
    first = host.rows()[0]["fireAt"]
    host.wait_push()
    host.wait("advance", lambda: host.rows()[0]["fireAt"] > first)
    host.signal(SIGSTOP)
    time.sleep(12)
    woken = now_ms()
    host.signal(SIGCONT)
    host.wait_push(count=2)
    host.settle()
    host.wait("advance", lambda: host.rows()[0]["fireAt"] > woken)
    upcoming = host.rows()[0]["fireAt"]
    assert (upcoming - first) % 5000 == 0
    assert upcoming - woken <= 5_000 + 2_000
    host.wait_push(count=3)
    assert f"_{upcoming}" in event_id(host.pushes[2])


@pytest.mark.requirement("field.73", "seed.reminder.taken-changes")
def test_an_accepted_slot_does_not_fire_again_after_a_crash(spawn: Spawn) -> None:
    server = spawn().ready()
    server.add("x", everySeconds=5)
    before = server.rows()[0]["fireAt"]
    push = server.wait_push()
    server.settle()
    server.wait("advance", lambda: server.rows()[0]["fireAt"] > before)
    server.kill()
    again = spawn().ready()
    again.wait_push()
    assert event_id(again.pushes[0]) != event_id(push)


@pytest.mark.requirement("field.77", "seed.reminder.file-until-taken", "seed.reminder.twice-marked")
@pytest.mark.requirement("host.18", "host.19", "reminder.event-id")
def test_one_still_out_at_a_crash_is_sent_again_under_its_id(spawn: Spawn) -> None:
    server = spawn(answers=NEVER).ready()
    server.add("x", inSeconds=1)
    before = server.rows()
    push = server.wait_push()
    server.ping()
    assert server.rows() == before
    server.kill()
    again = spawn(answers=NEVER).ready()
    resent = again.wait_push()
    assert event_id(resent) == event_id(push)
    assert resent["id"] != push["id"]
    again.answer(resent, ACCEPT)
    again.wait("empty file", lambda: again.rows() == [])


@pytest.mark.requirement("field.83", "reminder.cancel-final")
@pytest.mark.parametrize("answer", [ACCEPT, error(-32603), decline("no")])
def test_a_cancel_inside_the_woken_turn_is_final(spawn: Spawn, answer: Message) -> None:
    server = spawn(answers=NEVER).ready()
    name = server.add("x", everySeconds=5)
    push = server.wait_push()
    assert not server.call("reminder_cancel", id=name).is_error
    assert server.rows() == []
    server.answer(push, answer)
    server.policy()
    assert "rem_" not in server.listed()
    assert server.rows() == []
    assert len(server.pushes) == 1


@pytest.mark.requirement("reminder.due-order", "reminder.no-cap", "host.19")
def test_many_due_at_once_leave_in_order_while_none_is_answered(
    spawn: Spawn, tmp_path: Path
) -> None:
    due = now_ms() - 10_000
    rows = [row(f"rem_{n:03}", due + (n * 37) % 200, text=f"{n}") for n in range(200)]
    stored(tmp_path, *rows)
    server = spawn(answers=NEVER).ready()
    server.wait_push(count=200)
    sent = [int(event_id(push).rsplit("_", 1)[1]) for push in server.pushes]
    assert sent == sorted(sent)
    assert len({event_id(push) for push in server.pushes}) == 200
    server.ping()
