"""What the two files hold: what loads whole, in part or not at all."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.wake.files import (
    DEFAULT_MESSAGE,
    LATEST,
    Config,
    Reminder,
    decode_config,
    decode_reminders,
    encode_config,
    encode_reminders,
)
from tests.wake.support import REMINDER, reminder

ROW: dict[str, Any] = {
    "id": "rem_1",
    "message": "water the plants",
    "createdAt": 1_790_000_000_000,
    "fireAt": 1_790_000_060_000,
    "everySeconds": None,
}


def rows_of(*rows: Any) -> bytes:
    return json.dumps(rows).encode()


def row(**changes: Any) -> dict[str, Any]:
    return ROW | changes


# --- Files as the Node server wrote them ---------------------------------------------------------


@pytest.mark.requirement("file.node-loads", "seed.configure.default-message-mode")
def test_a_config_of_the_node_server_loads_unchanged() -> None:
    data = b'{\n  "intervalSeconds": 3600,\n  "paused": true,\n  "message": "Hello?"\n}'
    decoded = decode_config(data)
    assert decoded.problem is None
    assert decoded.value == Config(interval_seconds=3600, paused=True, message="Hello?")
    assert decoded.value.delivery_mode == "message"


@pytest.mark.requirement("file.node-loads")
def test_reminders_of_the_node_server_load_unchanged() -> None:
    data = json.dumps([ROW, row(id="rem_2", everySeconds=600)], indent=2).encode()
    decoded = decode_reminders(data)
    assert decoded.problem is None
    assert decoded.value == (REMINDER, reminder("rem_2", every_seconds=600))


@pytest.mark.requirement("file.node-reads")
def test_the_node_server_reads_what_we_write() -> None:
    written = json.loads(encode_reminders([REMINDER, reminder("rem_2", every_seconds=5)]))
    assert written == [ROW, row(id="rem_2", everySeconds=5)]
    by_clock = json.loads(encode_reminders([reminder("rem_1", by_clock=True)]))
    assert by_clock == [row(byClock=True)]
    config = json.loads(encode_config(Config(next_at=5, next_event_id="heartbeat_5_a")))
    assert config == {
        "intervalSeconds": 14400,
        "paused": False,
        "message": DEFAULT_MESSAGE,
        "deliveryMode": "message",
        "nextAt": 5,
        "nextEventId": "heartbeat_5_a",
    }
    assert "nextAt" not in json.loads(encode_config(Config()))


@pytest.mark.requirement("file.node-loads")
def test_numbers_stay_as_they_were_written() -> None:
    assert b'"intervalSeconds": 14400,' in encode_config(Config())
    decoded = decode_config(b'{"intervalSeconds":3600.5}')
    assert b'"intervalSeconds": 3600.5,' in encode_config(decoded.value)
    assert b'"everySeconds":90}' in encode_reminders([reminder("a", every_seconds=90)])


@pytest.mark.requirement("file.node-reads")
def test_reminders_stand_one_a_line() -> None:
    lines = encode_reminders([REMINDER, reminder("rem_2", message="two\nlines")]).split(b"\n")
    assert [line[:1] for line in lines] == [b"[", b"{", b"{", b"]", b""]
    assert encode_reminders([]) == b"[]\n"


@pytest.mark.requirement("file.node-loads")
def test_times_with_fractions_are_rounded_to_the_millisecond() -> None:
    decoded = decode_reminders(rows_of(row(fireAt=1_790_000_060_000.5, createdAt=1.4)))
    assert decoded.problem is None
    assert decoded.value == (reminder("rem_1", fire_at=1_790_000_060_001, created_at=1),)


# --- Encodings -----------------------------------------------------------------------------------


@pytest.mark.requirement("field.92")
def test_a_byte_order_mark_and_carriage_returns_are_no_flaw() -> None:
    config = decode_config(b'\xef\xbb\xbf{\r\n "intervalSeconds": 90,\r\n "paused": false\r\n}\r\n')
    assert (config.value, config.problem) == (Config(interval_seconds=90), None)
    rows = json.dumps([ROW], indent=1).replace("\n", "\r\n").encode()
    reminders = decode_reminders(b"\xef\xbb\xbf" + rows)
    assert (reminders.value, reminders.problem) == ((REMINDER,), None)


@pytest.mark.requirement("seed.file.partial-utf8")
def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    decoded = decode_reminders(rows_of(row(message="caf#")).replace(b"#", b"\xe9"))
    assert decoded.value == (reminder("rem_1", message="caf\ufffd"),)
    assert decoded.problem == "bytes that are not UTF-8 were read as U+FFFD"
    config = decode_config(b'{"message":"caf\xe9"}')
    assert config.value == Config(message="caf\ufffd")
    assert config.problem is not None


@pytest.mark.requirement("seed.file.partial-utf8")
@pytest.mark.parametrize(
    ("escaped", "read"),
    [
        (r"\ud800", "\ufffd"),
        (r"\udc00", "\ufffd"),
        (r"\ud800\ud83c\udf78", "\ufffd\U0001f378"),
        (r"\uD83C\\udf78", "\ufffd\\udf78"),
        (r"\ud83c\n", "\ufffd\n"),
    ],
)
def test_lone_surrogates_become_replacement_characters(escaped: str, read: str) -> None:
    decoded = decode_reminders(rows_of(row(message="#")).replace(b"#", escaped.encode()))
    assert decoded.value == (reminder("rem_1", message=read),)
    assert decoded.problem == "lone surrogates were read as U+FFFD"
    assert decode_reminders(encode_reminders(decoded.value)).problem is None


@pytest.mark.requirement("field.31")
@pytest.mark.parametrize("escaped", [r"\ud83c\udf78", r"\\ud800"])
def test_pairs_and_escaped_backslashes_are_no_lone_surrogates(escaped: str) -> None:
    data = rows_of(row(message="#")).replace(b"#", escaped.encode())
    decoded = decode_reminders(data)
    assert decoded.problem is None
    assert decoded.value[0].message == json.loads(data)[0]["message"]


# --- Torn, in part, kept -------------------------------------------------------------------------

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.requirement("seed.file.torn-starts-without", "file.never-raises")
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is empty"),
        (b" \r\n", "it is empty"),
        (b"\xef\xbb\xbf", "it is empty"),
        (b'[{"id":"rem_1","mess', "it is not JSON"),
        (b"[NaN]", "it is not JSON"),
        (b"[] []", "it is not JSON"),
        (b"null", "it is not a list of reminders"),
        (b'"x"', "it is not a list of reminders"),
        (b"{}", "it is not a list of reminders"),
        (b'{"reminders":[1,{"id":5}]}', "it is not a list of reminders"),
        (DEEP, "it is nested too deeply"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_reminders_file_is_not_used(data: bytes, problem: str) -> None:
    decoded = decode_reminders(data)
    assert decoded.value is None
    assert decoded.problem is not None
    assert decoded.problem.startswith(problem)


@pytest.mark.requirement("seed.file.torn-starts-without", "file.never-raises")
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b"14400", b'{"intervalSeconds":', b'{"a":' + DEEP + b"}"]
)
def test_what_is_no_config_file_is_not_used(data: bytes) -> None:
    decoded = decode_config(data)
    assert decoded.value is None
    assert decoded.problem


RULES = [
    (1, "it is not an object"),
    ([], "it is not an object"),
    ({"id": 5}, "id must be a string that is not blank"),
    (row(id=""), "id must be"),
    (row(id=" \t"), "id must be"),
    (row(id="rem_0"), "its id rem_0 is that of a row before it"),
    (row(message=None), "message must be a string"),
    (row(createdAt="now"), "createdAt must be a time in milliseconds, from 1970 to 9999"),
    (row(createdAt=True), "createdAt must be"),
    (row(fireAt=-1), "fireAt must be"),
    (row(fireAt=LATEST + 1), "fireAt must be"),
    (row(fireAt=10**30), "fireAt must be"),
    (row(fireAt=1e300), "fireAt must be"),
    (row(createdAt=10**30), "createdAt must be"),
    (row(everySeconds=4.999), "everySeconds must be null or 5 seconds or more"),
    (row(everySeconds=1e300), "everySeconds must be"),
    (row(everySeconds=10**30), "everySeconds must be"),
    (row(everySeconds="60"), "everySeconds must be"),
    (row(byClock="yes"), "byClock must be true or false"),
    *(
        ({k: v for k, v in ROW.items() if k != name}, f"{name} is missing")
        for name in ROW
    ),
]  # fmt: skip


@pytest.mark.requirement("seed.file.partial-rows", "file.never-raises")
@pytest.mark.parametrize(("bad", "rule"), RULES, ids=[rule[:30] for _, rule in RULES])
def test_a_row_that_cannot_be_used_is_left_out_and_said(bad: Any, rule: str) -> None:
    decoded = decode_reminders(rows_of(row(id="rem_0"), bad, row(id="rem_9")))
    assert decoded.value == (reminder("rem_0"), reminder("rem_9"))
    assert decoded.problem is not None
    assert decoded.problem.startswith(f"1 of 3 rows could not be used (row 2: {rule}")


@pytest.mark.requirement("seed.file.partial-rows")
def test_rows_left_out_are_counted_and_the_first_is_explained() -> None:
    decoded = decode_reminders(rows_of(1, ROW, row(fireAt=None)))
    assert decoded.value == (REMINDER,)
    assert decoded.problem == (
        "2 of 3 rows could not be used (the first is row 1: it is not an object)"
    )


@pytest.mark.requirement("file.never-raises")
def test_a_number_beyond_any_float_is_no_time() -> None:
    decoded = decode_reminders(rows_of(ROW, row(id="b", fireAt=77)).replace(b"77", b"1e999"))
    assert decoded.value == (REMINDER,)
    assert decoded.problem is not None
    assert "row 2: fireAt must be" in decoded.problem


@pytest.mark.requirement("file.kept-members")
def test_members_we_do_not_know_come_back_as_they_stood() -> None:
    row_text = b'{"id":"a","message":"m","createdAt":1,"fireAt":2,"everySeconds":null'
    extra = b',"note":[1.50,2e999,12345678901234567890123,{"x":"\xc3\xa9"}],"":null}'
    decoded = decode_reminders(
        b"[" + row_text + extra + b"," + row_text.replace(b"a", b"b", 1) + b"}]"
    )
    assert decoded.problem is None
    changed = msgspec.structs.replace(decoded.value[0], fire_at=3)
    lines = encode_reminders([changed, decoded.value[1]]).split(b"\n")
    assert lines[1] == row_text.replace(b'"fireAt":2', b'"fireAt":3') + extra + b","
    assert decode_reminders(encode_reminders(decoded.value)) == decoded

    config = decode_config(b'{"theme": {"a" : [ 1.50 ]}, "paused": true}')
    assert config.problem is None
    again = encode_config(config.value)
    assert json.loads(again)["theme"] == {"a": [1.5]}
    assert b"1.50" in again
    assert decode_config(again) == config


@pytest.mark.requirement("file.kept-members")
def test_a_row_with_members_we_do_not_know_keeps_that_it_goes_by_the_clock() -> None:
    decoded = decode_reminders(rows_of(row(byClock=True, x=1)))
    assert json.loads(encode_reminders(decoded.value)) == [row(byClock=True, x=1)]


@pytest.mark.requirement("file.never-raises")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("intervalSeconds", 59.999),
        ("intervalSeconds", "60"),
        ("intervalSeconds", True),
        ("intervalSeconds", 1e300),
        ("intervalSeconds", None),
        ("paused", "false"),
        ("paused", 0),
        ("message", 5),
        ("message", "  "),
        ("deliveryMode", "loud"),
        ("deliveryMode", ["silent"]),
        ("nextAt", -1),
        ("nextAt", "soon"),
        ("nextEventId", 7),
        ("nextEventId", ""),
    ],
)
def test_a_wrong_member_of_the_config_gets_its_default_and_is_named(name: str, value: Any) -> None:
    other = {"message": "Hello?"} if name != "message" else {"paused": True}
    decoded = decode_config(json.dumps({name: value} | other).encode())
    assert decoded.value == decode_config(json.dumps(other).encode()).value
    assert decoded.problem is not None
    assert decoded.problem.startswith(f"{name} must be ")
    assert ";" not in decoded.problem


@pytest.mark.requirement("file.never-raises")
def test_an_empty_config_object_is_all_defaults() -> None:
    decoded = decode_config(b"{}")
    assert (decoded.value, decoded.problem) == (Config(), None)
    assert decode_config(b'{"nextAt":1.5,"nextEventId":"e"}').value == Config(
        next_at=2, next_event_id="e"
    )
    assert decode_config(b'{"nextAt":null,"nextEventId":null}').problem is None


# --- Any content ---------------------------------------------------------------------------------

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda s: s.strip())
reminders = st.builds(
    Reminder,
    id=ids,
    message=st.text(st.characters(exclude_categories=["Cs"])),
    created_at=st.integers(0, LATEST),
    fire_at=st.integers(0, LATEST),
    every_seconds=st.none() | st.integers(5, 10**9) | st.floats(5, 1e9),
    by_clock=st.booleans(),
)
members = st.sampled_from([*ROW, "byClock", "intervalSeconds", "paused", "nextAt", "", "x"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
wild = st.recursive(
    scalars | st.just(ROW) | st.builds(row, fireAt=scalars),
    lambda inner: st.lists(inner) | st.dictionaries(members, inner),
)


@pytest.mark.requirement("file.node-reads", "file.said-means-done")
@given(st.lists(reminders, unique_by=lambda r: r.id))
def test_reminders_come_back_as_they_were_written(rows: list[Reminder]) -> None:
    decoded = decode_reminders(encode_reminders(rows))
    assert (decoded.value, decoded.problem) == (tuple(rows), None)


@pytest.mark.requirement("file.never-raises")
@given(st.binary() | wild.map(lambda value: json.dumps(value).encode()))
def test_no_content_raises_and_what_was_used_can_be_written_whole(data: bytes) -> None:
    for decode, encode in ((decode_reminders, encode_reminders), (decode_config, encode_config)):
        decoded = decode(data)
        if decoded.value is None:
            assert decoded.problem
            continue
        again = decode(encode(decoded.value))
        assert (again.value, again.problem) == (decoded.value, None)
