"""How changes that somebody else made to the two files merge with ours."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.wake.files import (
    DEFAULT_MESSAGE,
    Config,
    Reminder,
    decode_config,
    encode_config,
    merge_config,
    merge_reminders,
)
from tests.wake.support import reminder

small = st.lists(
    st.builds(reminder, st.sampled_from("abcde"), fire_at=st.integers(1, 3)),
    unique_by=lambda r: r.id,
)


@pytest.mark.requirement("file.changed-merge", "file.deleted-row")
@given(small, small, small, st.booleans())
def test_rows_merge_as_the_plain_rule_says(
    base: list[Reminder], theirs: list[Reminder], ours: list[Reminder], whole: bool
) -> None:
    tables = [{r.id: r for r in rows} for rows in (base, theirs, ours)]
    expected = {}
    took = 0
    for id_ in "abcde":
        then, now, mine = (table.get(id_) for table in tables)
        theirs_counts = now != then and (whole or now is not None)
        result = now if theirs_counts else mine
        took += result != mine
        if result is not None:
            expected[id_] = result
    merged = merge_reminders(base, theirs, ours, whole=whole)
    assert {r.id: r for r in merged.value} == expected
    assert len(merged.value) == len(expected)
    assert (merged.took is None) == (took == 0)
    kept = [r.id for r in ours if r.id in expected]
    assert [r.id for r in merged.value][: len(kept)] == kept


@pytest.mark.requirement("file.changed-said")
def test_the_clause_counts_what_was_taken_over() -> None:
    base = [reminder(id_) for id_ in "abcd"]
    theirs = [reminder("a", fire_at=1), reminder("b", fire_at=1), reminder("c"), reminder("n")]
    ours = [*base, reminder("o")]
    merged = merge_reminders(base, theirs, ours)
    assert [r.id for r in merged.value] == ["a", "b", "c", "o", "n"]
    assert merged.took == "2 rows changed, 1 added, 1 removed in the file"
    assert merge_reminders(base, base[1:], base).took == "1 row removed in the file"


@pytest.mark.requirement("file.deleted-row")
def test_a_row_missing_from_a_file_used_in_part_may_be_one_that_could_not_be_read() -> None:
    base = [reminder("a"), reminder("b")]
    assert merge_reminders(base, base[:1], base, whole=False).value == tuple(base)
    assert merge_reminders(base, base[:1], base).value == tuple(base[:1])


configs = st.builds(
    Config,
    interval_seconds=st.sampled_from([60, 90, 14400]),
    paused=st.booleans(),
    message=st.sampled_from(["a", "b", DEFAULT_MESSAGE]),
    delivery_mode=st.sampled_from(["message", "silent"]),
    next_at=st.sampled_from([None, 1, 2]),
    next_event_id=st.sampled_from([None, "e"]),
)


@pytest.mark.requirement("file.changed-merge", "file.changed-said")
@given(configs, configs, configs, st.booleans())
def test_settings_merge_as_the_plain_rule_says(
    base: Config, theirs: Config, ours: Config, whole: bool
) -> None:
    merged = merge_config(base, theirs, ours, whole=whole)
    took = set()
    for wire, name in {
        "intervalSeconds": "interval_seconds",
        "paused": "paused",
        "message": "message",
        "deliveryMode": "delivery_mode",
    }.items():
        then, now, mine = (getattr(c, name) for c in (base, theirs, ours))
        usable = whole or now != getattr(Config(), name)
        expected = now if now != then and usable else mine
        assert getattr(merged.value, name) == expected
        if expected != mine:
            took.add(wire)
    wakes = [(c.next_at, c.next_event_id) for c in (base, theirs, ours)]
    moved = theirs.next_at is not None and wakes[1] != wakes[0]
    assert (merged.value.next_at, merged.value.next_event_id) == wakes[1 if moved else 2]
    if moved and theirs.next_at != ours.next_at:
        took.add("nextAt")
    named = set() if merged.took is None else set(merged.took.split(" changed")[0].split(", "))
    assert named == took


@pytest.mark.requirement("file.changed-merge", "file.kept-members")
def test_members_we_do_not_know_merge_too() -> None:
    base, theirs, ours = (
        decode_config(data).value
        for data in (b'{"a":1,"b":1,"c":1}', b'{"a":2,"c":1,"d":1}', b'{"a":1,"b":1,"c":3,"e":1}')
    )
    merged = merge_config(base, theirs, ours)
    assert json.loads(encode_config(merged.value))["a"] == 2
    kept = {k: v for k, v in json.loads(encode_config(merged.value)).items() if len(k) == 1}
    assert kept == {"a": 2, "c": 3, "d": 1, "e": 1}
    assert merged.took == "a, b, d changed in the file"
    assert merge_config(base, base, base).took is None
