"""Every argument is applied or the call refused, over the real pipes."""

import re
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host

STATUS = re.compile(
    r"Heartbeat ACTIVE \| mode=message \| interval=14400s \(4\.00h\) \| next in ~\d+s"
    r" \| reminders=0 \| delivery=ok \| message=\".+\""
)


@pytest.mark.requirement("words.status", "schedule.defaults", "seed.configure.default-message-mode")
@pytest.mark.requirement("seed.status.interval", "seed.status.message", "seed.status.delivery")
@pytest.mark.requirement("seed.status.shows-next", "seed.wake.self-configured")
def test_the_status_line_of_a_fresh_server(host: Host) -> None:
    assert STATUS.fullmatch(host.status()), host.status()


@pytest.mark.requirement(
    "field.43", "mcp.arguments-absent", "mcp.arguments-shape", "mcp.unknown-tool"
)
def test_arguments_may_be_absent_null_or_empty(host: Host) -> None:
    forms: list[dict[str, Any]] = [{}, {"arguments": {}}, {"arguments": None}]
    for params in forms:
        reply = host.called(host.ask("tools/call", {"name": "heartbeat_status", **params}))
        assert not reply.is_error
        assert "Heartbeat ACTIVE" in reply.text
    shapes: list[Any] = [[], "x", 5]
    for wrong in shapes:
        reply_ = host.ask("tools/call", {"name": "heartbeat_status", "arguments": wrong})
        assert reply_["error"]["code"] == -32602
    unknown = host.ask("tools/call", {"name": "heartbeat_stop", "arguments": {}})
    assert unknown["error"]["code"] == -32602
    assert "heartbeat_stop" in unknown["error"]["message"]


REFUSED: list[tuple[str, dict[str, Any], list[str]]] = [
    # Wrong types (field 44): all of them in one reply.
    ("heartbeat_configure", {"paused": "false", "intervalHours": "1"}, ["paused", "intervalHours"]),
    ("reminder_add", {"message": "x", "inMinutes": "5"}, ["inMinutes"]),
    ("reminder_add", {"message": 5, "inMinutes": True}, ["message", "inMinutes"]),
    ("heartbeat_configure", {"paused": 1, "deliveryMode": "loud"}, ["paused", "deliveryMode"]),
    ("heartbeat_configure", {"paused": None}, ["paused"]),
    # Ranges (field 61).
    ("heartbeat_configure", {"intervalSeconds": 0}, ["interval", "60"]),
    ("heartbeat_configure", {"intervalSeconds": -5}, ["interval"]),
    ("heartbeat_configure", {"intervalSeconds": 59.999}, ["interval", "60"]),
    ("reminder_add", {"message": "x", "everySeconds": 4.999}, ["every", "5"]),
    ("reminder_add", {"message": "x", "everySeconds": 1e-9}, ["every"]),
    ("reminder_add", {"message": "x", "everyMinutes": 0}, ["every"]),
    ("reminder_add", {"message": "x", "inSeconds": -1}, ["inSeconds"]),
    ("reminder_add", {"message": "x", "inHours": 1e300}, ["inHours"]),
    # Between arguments (field 46).
    ("reminder_add", {}, ["message"]),
    ("reminder_add", {"message": "x"}, ["inSeconds", "atIso"]),
    (
        "reminder_add",
        {"message": "x", "inSeconds": 5, "atIso": "2030-01-01T09:00:00Z"},
        ["inSeconds", "atIso"],
    ),
    ("reminder_add", {"message": " ", "inSeconds": 5}, ["message"]),
    ("reminder_cancel", {}, ["id"]),
    # Slips.
    ("heartbeat_configure", {"Paused": True}, ["Paused", "paused"]),
    ("heartbeat_configure", {"pausd": True}, ["pausd", "paused"]),
    ("heartbeat_configure", {"mode": "silent"}, ["mode", "deliveryMode"]),
    ("heartbeat_configure", {"heartbeatIntervalMinutes": 5}, ["intervalMinutes"]),
    ("heartbeat_configure", {"paused": True, "pausedMessage": "x"}, ["pausedMessage"]),
    ("heartbeat_configure", {"paused": True, "everySeconds": 60}, ["everySeconds"]),
    ("heartbeat_status", {"paused": True}, ["paused"]),
    ("reminder_list", {"Id": "rem_1"}, ["Id"]),
    # Only unknown names to a tool that takes arguments.
    ("heartbeat_configure", {"zzz": 1}, ["zzz"]),
    # Several of these at once.
    (
        "heartbeat_configure",
        {"intervalSeconds": "x", "pausd": True, "deliveryMode": 5, "message": []},
        ["intervalSeconds", "pausd", "deliveryMode", "message"],
    ),
]


@pytest.mark.requirement("field.44", "field.46", "field.61", "mcp.tool-error", "words.for-models")
@pytest.mark.requirement("seed.args.applied-or-refused", "seed.args.all-problems")
@pytest.mark.requirement(
    "seed.args.wrong-type", "seed.args.out-of-range", "seed.args.contradiction"
)
@pytest.mark.requirement("seed.args.slip-case", "seed.args.slip-edits", "seed.args.slip-part")
@pytest.mark.requirement("seed.args.slip-longer", "seed.args.slip-other-tool")
@pytest.mark.requirement("seed.args.unknown-alone", "seed.configure.interval-floor")
@pytest.mark.requirement("seed.reminder.interval-floor", "seed.configure.delivery-mode")
def test_refused_calls_name_each_problem_and_change_nothing(host: Host) -> None:
    wrong = []
    host.call("heartbeat_configure", message="before")
    saved = host.config.read_bytes()
    before = re.sub(r"~\d+s", "", host.status())
    for tool, arguments, named in REFUSED:
        reply = host.call(tool, **arguments)
        if not reply.is_error:
            wrong.append(f"{tool} {arguments} was not refused: {reply.text}")
        wrong += [
            f"{tool} {arguments}: {name} is not named in: {reply.text}"
            for name in named
            if name not in reply.text
        ]
        after = re.sub(r"~\d+s", "", host.status())
        if after != before:
            wrong.append(f"{tool} {arguments} changed {before} to {after}")
    assert not wrong, "\n".join(wrong)
    assert host.config.read_bytes() == saved
    assert not host.reminders.exists()
    assert "rem_" not in host.listed()


IGNORED: list[tuple[str, dict[str, Any], str]] = [
    ("heartbeat_configure", {"paused": False, "pausedReason": "x"}, "pausedReason"),
    ("heartbeat_status", {"zzz": 1}, "zzz"),
    ("heartbeat_status", {"_meta": {}}, "_meta"),
    ("reminder_add", {"message": "x", "inHours": 1, "checkpoint": {}}, "checkpoint"),
    ("reminder_add", {"message": "y", "inHours": 1, "state": {}}, "state"),
]


@pytest.mark.requirement("seed.args.unknown-ignored", "seed.args.slip-own-merits", "host.37")
@pytest.mark.requirement("seed.args.unknown-no-arguments")
def test_other_unknown_names_are_ignored_and_named(host: Host) -> None:
    for tool, arguments, name in IGNORED:
        reply = host.call(tool, **arguments)
        assert not reply.is_error, reply.text
        assert name in reply.text, reply.text
    assert len(host.rows()) == 2


@pytest.mark.requirement("seed.configure.interval-adds-up", "seed.reminder.units-add-up")
@pytest.mark.requirement("seed.args.milliseconds", "words.reminder-add", "seed.configure.message")
def test_units_add_up_to_the_millisecond(host: Host) -> None:
    host.call("heartbeat_configure", intervalSeconds=1.5, intervalMinutes=2, intervalHours=1)
    assert "interval=3721.5s" in host.status()
    host.add("x", inSeconds=0.25, inMinutes=1, everySeconds=5.125, everyHours=1)
    [stored] = host.rows()
    assert stored["fireAt"] - stored["createdAt"] == 60_250
    assert stored["everySeconds"] == 3605.125


ADDED = re.compile(
    r"Reminder (rem_\w+) set: next "
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d-0[78]:00 \[America/Los_Angeles\])"
    r" \(~(\d+)s\) \| (one-shot|repeats every [\d.]+s) \| \"(.*)\""
)


@pytest.mark.requirement("words.reminder-add", "words.reminder-list", "words.local-time")
@pytest.mark.requirement("seed.reminder.manage", "seed.reminder.first-fire")
@pytest.mark.requirement("seed.cancel.unknown-id-error")
def test_add_list_and_cancel_in_the_fixed_words(host: Host) -> None:
    once = ADDED.match(host.call("reminder_add", message="tea", inMinutes=10).text)
    often = ADDED.match(host.call("reminder_add", message="walk", everyHours=2).text)
    assert once
    assert often
    assert once[4] == "one-shot"
    assert 590 <= int(once[3]) <= 600
    assert often[4] == "repeats every 7200s"
    assert 7190 <= int(often[3]) <= 7200
    lines = host.listed().splitlines()
    assert lines[0] == "2 reminder(s):"
    for line, added in zip(lines[1:3], (once, often), strict=True):
        assert line.startswith(f"{added[1]} | next {added[2]} (~"), line
        assert line.endswith(f'"{added[5]}"'), line
    assert not host.call("reminder_cancel", id=once[1]).is_error
    assert host.listed().splitlines()[0] == "1 reminder(s):"
    again = host.call("reminder_cancel", id=once[1])
    assert again.is_error
    assert once[1] in again.text
    assert "reminder_list" in again.text


@pytest.mark.requirement("field.82", "reminder.twin")
def test_a_second_like_reminder_is_added_and_its_twin_named(spawn: Spawn) -> None:
    server = spawn().ready()
    first = server.add("same", everyMinutes=10)
    reply = server.call("reminder_add", message="same", everyMinutes=10)
    assert first in reply.text
    assert len(server.rows()) == 2
    other = server.call("reminder_add", message="same", everyMinutes=11)
    assert first not in other.text
    assert server.end() == 0
    listed = spawn().ready().listed()
    assert listed.count("rem_") >= 3
    assert all(row["id"] in listed for row in server.rows())


@pytest.mark.requirement("reminder.no-cap", "reminder.list-pages")
def test_a_long_list_is_shown_page_by_page(host: Host) -> None:
    ids = []
    for number in range(120):
        ids.append(host.request("tools/call", _long(number)))
    for one in ids:
        assert not host.called(host.reply(one)).is_error
    seen: list[str] = []
    while len(seen) < 120:
        text = host.listed(offset=len(seen)) if seen else host.listed()
        assert len(text) <= 20_000
        found = re.findall(r"^(rem_\w+) \| next", text, re.MULTILINE)
        assert found
        seen += found
        if len(seen) < 120:
            assert "offset" in text
            assert str(120 - len(seen)) in text
    stored = sorted(host.rows(), key=lambda stored: stored["fireAt"])
    assert seen == [stored["id"] for stored in stored]


def _long(number: int) -> dict[str, Any]:
    when = {"inHours": 1, "inSeconds": 120 - number}
    return {"name": "reminder_add", "arguments": {"message": f"{number}" + "m" * 500, **when}}


@pytest.mark.requirement("field.32", "field.49", "field.50", "reminder.range", "host.29")
def test_far_instants_are_taken_or_refused_and_hinder_nothing(host: Host) -> None:
    host.call("heartbeat_configure", intervalHours=1000)
    assert "interval=3600000s" in host.status()
    host.add("month", inHours=720)
    for text in ("9999-12-31T23:59:59.999+05:00", "9999-12-31T23:59:59.999Z"):
        reply = host.call("reminder_add", message="far", atIso=text)
        assert "internal" not in reply.text.lower()
    for text in ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2001-01-01T00:00:00Z"):
        reply = host.call("reminder_add", message="past", atIso=text)
        assert reply.is_error
        assert "atIso" in reply.text
    assert host.call("reminder_add", message="x", inHours=1e15).is_error
    host.add("near", inSeconds=1)
    host.wait_push()
    host.quiet(1)
    assert len(host.pushes) == 1
    month = next(row for row in host.rows() if row["message"] == "month")
    assert month["fireAt"] - month["createdAt"] == 720 * 3_600_000


@pytest.mark.requirement("field.52", "reminder.at-iso-forms", "reminder.at-iso-zone")
def test_odd_forms_of_at_iso_are_refused_or_shown_exactly(host: Host) -> None:
    good = host.call("reminder_add", message="x", atIso="2030-01-01T09:30")
    assert "next 2030-01-01T09:30:00-08:00 [America/Los_Angeles]" in good.text
    utc = host.call("reminder_add", message="y", atIso="2030-01-01T09:30:00Z")
    assert "next 2030-01-01T01:30:00-08:00 [America/Los_Angeles]" in utc.text
    for text in ("2030-01-01", "2030-01-01T24:00", "20300101T090000Z", "2030-W01-1", "tomorrow"):
        reply = host.call("reminder_add", message="z", atIso=text)
        assert (reply.is_error and "atIso" in reply.text) or ADDED.match(reply.text), text


@pytest.mark.requirement("field.53", "reminder.gap-fold")
def test_a_time_in_the_gap_or_the_fold_is_resolved_and_shown(spawn: Spawn) -> None:
    server = spawn(env={"AGENT_TIMEZONE": "America/New_York"}).ready()
    gap = server.call("reminder_add", message="gap", atIso="2027-03-14T02:30:00")
    fold = server.call("reminder_add", message="fold", atIso="2027-11-07T01:30:00")
    assert re.search(r"next 2027-03-14T0[13]:30:00-0[45]:00 \[America/New_York\]", gap.text)
    assert re.search(r"next 2027-11-07T01:30:00-0[45]:00 \[America/New_York\]", fold.text)
    plain = server.call("reminder_add", message="plain", atIso="2027-03-15T02:30:00")
    assert len(gap.text) > len(plain.text) + 5
    assert len(server.rows()) == 3
