"""The rules for the six tools' arguments, those between arguments included."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.mcp.arguments import Accepted, Refused, check, ignored_text
from mcpl_heartbeat.mcp.tools import Tool, schema
from mcpl_heartbeat.wake.arguments import LONGEST_SECONDS
from mcpl_heartbeat.wake.tools import TOOLS

BY_NAME = {tool.name: tool for tool in TOOLS}
HOURS_IN_ALL = LONGEST_SECONDS // 3600


def call(name: str, arguments: dict[str, Any] | str | None) -> Accepted | Refused:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    outcome = check(BY_NAME[name], msgspec.Raw(text.encode()), TOOLS)
    assert isinstance(outcome, Accepted | Refused)
    return outcome


def accepted(name: str, arguments: dict[str, Any] | str | None) -> Any:
    outcome = call(name, arguments)
    assert isinstance(outcome, Accepted), outcome
    return outcome.arguments


def problems(name: str, arguments: dict[str, Any] | str | None) -> dict[str, str]:
    outcome = call(name, arguments)
    assert isinstance(outcome, Refused), outcome
    return {problem.argument: problem.text for problem in outcome.problems}


# --- heartbeat_configure -----------------------------------------------------------------------


@pytest.mark.requirement("seed.configure.interval-adds-up", "seed.args.milliseconds")
@pytest.mark.parametrize(
    ("arguments", "ms"),
    [
        ({}, None),
        ({"paused": True}, None),
        ({"intervalSeconds": 60}, 60_000),
        ({"intervalSeconds": 60.0}, 60_000),
        ({"intervalMinutes": 1}, 60_000),
        ({"intervalHours": 4}, 14_400_000),
        ({"intervalSeconds": 1, "intervalMinutes": 1, "intervalHours": 1}, 3_661_000),
        ({"intervalSeconds": 30, "intervalMinutes": 0.5}, 60_000),
        ({"intervalSeconds": 60.0004}, 60_000),
        ({"intervalSeconds": 60.0006}, 60_001),
        ({"intervalHours": 0.1}, 360_000),
        ({"intervalHours": 1 / 60}, 60_000),
        ({"intervalMinutes": 1.1, "intervalSeconds": 0.1}, 66_100),
        ({"intervalHours": HOURS_IN_ALL}, LONGEST_SECONDS * 1000),
        ({"intervalSeconds": LONGEST_SECONDS}, LONGEST_SECONDS * 1000),
    ],
)
def test_the_units_of_an_interval_add_up(arguments: dict[str, Any], ms: int | None) -> None:
    assert accepted("heartbeat_configure", arguments).interval_ms == ms


@pytest.mark.requirement("seed.configure.interval-floor", "field.61")
@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"intervalSeconds": 0}, "intervalSeconds"),
        ({"intervalSeconds": 59.999}, "intervalSeconds"),
        ({"intervalSeconds": 59.9996}, "intervalSeconds"),
        ({"intervalMinutes": 0.99999}, "intervalMinutes"),
        ({"intervalHours": 0}, "intervalHours"),
        ({"intervalMinutes": 0.5, "intervalSeconds": 29.999}, "intervalSeconds + intervalMinutes"),
    ],
)
def test_an_interval_under_60_s_is_refused(arguments: dict[str, Any], argument: str) -> None:
    found = problems("heartbeat_configure", arguments)
    assert list(found) == [argument]
    assert found[argument].startswith("must come to 60 s or more, not ")


@pytest.mark.requirement("seed.args.out-of-range", "field.23", "field.61")
@pytest.mark.parametrize("value", ["-5", "-0.001", "1e999", "1e18", "252460800001", "9" * 5000])
def test_an_interval_out_of_range_is_refused(value: str) -> None:
    found = problems("heartbeat_configure", f'{{"intervalSeconds":{value}}}')
    assert list(found) == ["intervalSeconds"]
    assert found["intervalSeconds"].startswith("must be from 0 to 252460800000, not ")


@pytest.mark.requirement("seed.args.out-of-range", "reminder.range")
@pytest.mark.parametrize(
    ("tool", "hours", "seconds"),
    [
        ("heartbeat_configure", "intervalHours", "intervalSeconds"),
        ("reminder_add", "inHours", "inSeconds"),
        ("reminder_add", "everyHours", "everySeconds"),
    ],
)
def test_a_sum_out_of_range_is_refused(tool: str, hours: str, seconds: str) -> None:
    arguments = {hours: HOURS_IN_ALL, seconds: 1, "message": "x"}
    found = problems(tool, arguments)
    assert list(found) == [f"{seconds} + {hours}"]
    assert "8,000 years" in found[f"{seconds} + {hours}"]


@pytest.mark.requirement("seed.configure.delivery-mode")
def test_delivery_mode() -> None:
    assert accepted("heartbeat_configure", {"deliveryMode": "silent"}).delivery_mode == "silent"
    assert accepted("heartbeat_configure", {"deliveryMode": "message"}).delivery_mode == "message"
    for wrong in ("Silent", "", "both", None, True):
        assert list(problems("heartbeat_configure", {"deliveryMode": wrong})) == ["deliveryMode"]


@pytest.mark.requirement("seed.configure.paused", "field.25")
def test_paused() -> None:
    assert accepted("heartbeat_configure", {"paused": True}).paused is True
    assert accepted("heartbeat_configure", {"paused": False}).paused is False
    assert list(problems("heartbeat_configure", '{"paused":true,"paused":false}')) == ["paused"]


@pytest.mark.requirement("seed.args.out-of-range", "seed.configure.message")
@pytest.mark.parametrize("tool", ["heartbeat_configure", "reminder_add"])
@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u2003"])
def test_a_blank_message_is_refused(tool: str, blank: str) -> None:
    found = problems(tool, {"message": blank, **({"inHours": 1} if tool == "reminder_add" else {})})
    assert list(found) == ["message"]
    assert "blank" in found["message"]


@pytest.mark.requirement("seed.args.all-problems", "field.44")
def test_both_strings_are_named() -> None:
    found = problems("heartbeat_configure", {"paused": "false", "intervalHours": "1"})
    assert list(found) == ["paused", "intervalHours"]
    assert "send false without quotes" in found["paused"]
    assert "send 1 without quotes" in found["intervalHours"]


@pytest.mark.requirement("seed.args.all-problems")
def test_a_bad_unit_leaves_the_sum_unjudged() -> None:
    found = problems("heartbeat_configure", {"intervalHours": "1", "intervalSeconds": 1})
    assert list(found) == ["intervalHours"], "an hour and a second would have been right"


# --- reminder_add ------------------------------------------------------------------------------


@pytest.mark.requirement("seed.reminder.units-add-up", "seed.args.milliseconds")
def test_the_units_of_delay_and_interval_add_up() -> None:
    sent = accepted(
        "reminder_add",
        {
            "message": "x",
            "inSeconds": 0.001,
            "inMinutes": 1,
            "inHours": 1,
            "everySeconds": 5.5,
            "everyMinutes": 2,
            "everyHours": 24,
        },
    )
    assert sent.delay_ms == 3_660_001
    assert sent.every_ms == 86_525_500


@pytest.mark.requirement("seed.reminder.first-fire")
@pytest.mark.parametrize(
    ("when", "delay", "every"),
    [
        ({"inSeconds": 1}, 1000, None),
        ({"atIso": "2030-01-01T00:00:00Z"}, None, None),
        ({"everySeconds": 5}, None, 5000),
        ({"everyHours": 1, "inSeconds": 10}, 10_000, 3_600_000),
        ({"everyHours": 1, "atIso": "2030-01-01T00:00:00Z"}, None, 3_600_000),
        ({"inHours": 720}, 2_592_000_000, None),
    ],
)
def test_ways_to_say_when(when: dict[str, Any], delay: int | None, every: int | None) -> None:
    sent = accepted("reminder_add", {"message": "x", **when})
    assert (sent.delay_ms, sent.every_ms) == (delay, every)


@pytest.mark.requirement("seed.args.all-problems", "field.46")
def test_nothing_at_all() -> None:
    found = problems("reminder_add", {})
    assert list(found) == ["message", "inSeconds, inMinutes, inHours or atIso"]
    assert problems("reminder_add", {"message": "x"}).keys() == {
        "inSeconds, inMinutes, inHours or atIso"
    }


@pytest.mark.requirement("seed.args.contradiction", "field.46")
@pytest.mark.parametrize("more", [{}, {"everySeconds": 5}])
def test_delay_and_moment_contradict(more: dict[str, Any]) -> None:
    found = problems(
        "reminder_add", {"message": "x", "inSeconds": 1, "atIso": "2030-01-01T00:00:00Z", **more}
    )
    assert list(found) == ["inSeconds + atIso"]
    assert "contradict" in found["inSeconds + atIso"]


@pytest.mark.requirement("seed.args.contradiction", "seed.args.all-problems")
def test_a_bad_value_still_counts_as_sent() -> None:
    assert list(problems("reminder_add", {"message": "x", "inMinutes": "5"})) == ["inMinutes"]
    found = problems("reminder_add", {"message": "x", "inMinutes": "5", "atIso": "2030-01-01"})
    assert list(found) == ["inMinutes", "inMinutes + atIso"]
    assert list(problems("reminder_add", {"message": "x", "inMinuts": 5})) == ["inMinuts"]


@pytest.mark.requirement("reminder.past", "field.61")
@pytest.mark.parametrize("delay", [0, 0.0, 0.0004, 1e-9])
def test_a_delay_of_nothing_is_refused(delay: float) -> None:
    for every in ({}, {"everyHours": 1}):
        found = problems("reminder_add", {"message": "x", "inSeconds": delay, **every})
        assert list(found) == ["inSeconds"]
        assert "heartbeat_trigger" in found["inSeconds"]


@pytest.mark.requirement("seed.reminder.interval-floor", "field.61")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("everySeconds", 4.999),
        ("everySeconds", 4.9999),
        ("everySeconds", 1e-9),
        ("everyMinutes", 0),
    ],
)
def test_an_interval_under_5_s_is_refused(name: str, value: float) -> None:
    found = problems("reminder_add", {"message": "x", name: value})
    assert list(found) == [name]
    assert found[name].startswith("must come to 5 s or more, not ")


@pytest.mark.requirement("seed.args.out-of-range")
def test_a_moment_is_a_short_string() -> None:
    assert accepted("reminder_add", {"message": "x", "atIso": "9" * 64})
    found = problems("reminder_add", {"message": "x", "atIso": "9" * 65})
    assert found == {"atIso": "must have at most 64 characters, not 65"}
    assert list(problems("reminder_add", {"message": "x", "atIso": 1893456000})) == ["atIso"]


@pytest.mark.requirement("reminder.no-cap")
def test_a_message_has_no_cap() -> None:
    message = "x" * 200_000
    assert accepted("reminder_add", {"message": message, "inHours": 1}).message == message


@pytest.mark.requirement("seed.args.all-problems")
def test_a_whole_heap_of_problems() -> None:
    values = {"inSeconds": -1, "atIso": 5, "everySeconds": 1, "Paused": True, "offset": 3}
    found = problems("reminder_add", {"message": " ", **values})
    sent = ["inSeconds", "atIso", "Paused", "offset"]
    assert list(found) == [*sent, "message", "inSeconds + atIso", "everySeconds"]


# --- reminder_list, reminder_cancel ------------------------------------------------------------


@pytest.mark.requirement("reminder.list-pages")
def test_offset() -> None:
    assert accepted("reminder_list", None).offset == 0
    assert accepted("reminder_list", {"offset": 20.0}).offset == 20
    for wrong in (-1, 1.5, "2", True, None, 2**53):
        assert list(problems("reminder_list", {"offset": wrong})) == ["offset"]


@pytest.mark.requirement("seed.reminder.manage")
def test_cancel_takes_an_id() -> None:
    assert accepted("reminder_cancel", {"id": "rem_1"}).id == "rem_1"
    assert problems("reminder_cancel", {}) == {"id": "is required and was not sent"}
    assert list(problems("reminder_cancel", {"ID": "rem_1"})) == ["ID"]
    assert list(problems("reminder_cancel", {"ids": ["rem_1"]})) == ["ids"]


# --- names, with the real tools ----------------------------------------------------------------


@pytest.mark.requirement(
    "seed.args.slip-part", "seed.args.slip-longer", "seed.args.slip-own-merits"
)
@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"mode": "silent"}, "deliveryMode"),
        ({"heartbeatIntervalMinutes": 5}, "intervalMinutes"),
        ({"paused": True, "pausedMessage": "x"}, "message"),
        ({"pausedReason": "x"}, "paused"),
    ],
)
def test_the_examples_of_the_seed(sent: dict[str, Any], meant: str) -> None:
    found = problems("heartbeat_configure", sent)
    assert list(found) == [list(sent)[-1]]
    assert found[list(sent)[-1]].endswith(f"did you mean {meant}?")


@pytest.mark.requirement("seed.args.slip-own-merits", "seed.args.unknown-ignored")
def test_a_reason_beside_paused_is_no_slip() -> None:
    outcome = call("heartbeat_configure", {"paused": True, "pausedReason": "x"})
    assert isinstance(outcome, Accepted)
    assert outcome.ignored == ("pausedReason",)


@pytest.mark.requirement("host.37", "seed.args.unknown-ignored", "seed.args.unknown-no-arguments")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("heartbeat_status", {}),
        ("heartbeat_configure", {"paused": True}),
        ("heartbeat_trigger", {}),
        ("reminder_add", {"message": "x", "inHours": 1}),
        ("reminder_list", {"offset": 0}),
        ("reminder_cancel", {"id": "rem_1"}),
    ],
)
def test_what_hosts_add_is_ignored(tool: str, arguments: dict[str, Any]) -> None:
    extras = {"_meta": {"progressToken": 1}, "state": {"a": 1}, "checkpoint": "c"}
    outcome = call(tool, {**arguments, **extras})
    assert isinstance(outcome, Accepted), outcome
    assert outcome.ignored == tuple(extras)
    assert f"; {tool} takes " in ignored_text(BY_NAME[tool], outcome.ignored)


@pytest.mark.requirement("seed.args.unknown-alone")
@pytest.mark.parametrize("tool", ["heartbeat_configure", "reminder_list"])
def test_extras_alone_are_refused_by_a_tool_with_arguments(tool: str) -> None:
    assert list(problems(tool, {"_meta": {}})) == ["_meta"]


@pytest.mark.requirement("seed.args.slip-other-tool")
@pytest.mark.parametrize("tool", TOOLS)
def test_names_of_one_tool_are_slips_at_the_others(tool: Tool) -> None:
    own = schema(tool.arguments)["properties"]
    for other in TOOLS:
        for name in schema(other.arguments)["properties"]:
            if name not in own:
                found = problems(tool.name, {name: 1})
                assert other.name in found[name]


# --- anything ----------------------------------------------------------------------------------

LENGTHS = st.floats(0, 1e6) | st.integers(0, 10**6) | st.decimals(0, 10**4, places=3).map(float)
UNITS = {"Seconds": 1, "Minutes": 60, "Hours": 3600}


@pytest.mark.requirement("seed.args.milliseconds", "seed.reminder.units-add-up")
@given(st.dictionaries(st.sampled_from(sorted(UNITS)), LENGTHS, min_size=1))
def test_lengths_are_kept_to_the_millisecond(sent: dict[str, float]) -> None:
    exact = sum(Decimal(repr(value)) * UNITS[unit] for unit, value in sent.items())
    arguments = {f"every{unit}": value for unit, value in sent.items()}
    outcome = call("reminder_add", {"message": "x", **arguments})
    if isinstance(outcome, Accepted):
        assert exact > Decimal("4.99999")
        assert abs(outcome.arguments.every_ms - exact * 1000) <= Decimal("0.502")
    else:
        assert exact < 5


NAMES = [name for tool in TOOLS for name in schema(tool.arguments)["properties"]]
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | LENGTHS
    | st.text(max_size=70)
    | st.sampled_from(["message", "silent", "5", "2030-01-01T00:00:00Z"])
    | st.lists(st.integers(), max_size=2)
)


@pytest.mark.requirement("seed.args.applied-or-refused", "field.23")
@given(
    st.sampled_from(TOOLS),
    st.dictionaries(st.sampled_from([*NAMES, "_meta", "zz"]) | st.text(max_size=6), VALUES),
)
def test_any_arguments_get_an_answer(tool: Tool, arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments).replace("Infinity", "1e999")
    outcome = call(tool.name, text)
    if isinstance(outcome, Accepted):
        struct = outcome.arguments
        taken = json.loads(msgspec.json.encode(struct))
        for name in schema(tool.arguments)["properties"]:
            if name in arguments:
                assert taken[name] == arguments[name]
        assert set(outcome.ignored) == set(arguments) - set(schema(tool.arguments)["properties"])
    else:
        assert outcome.problems
