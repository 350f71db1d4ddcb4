"""Every reply comes out once: at once when its request came alone, else with its batch."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.jsonrpc.encoding import encode_result
from mcpl_heartbeat.jsonrpc.replies import batch_slots, single_slot


def reply(number: int) -> bytes:
    return encode_result(msgspec.Raw(str(number).encode()), {})


def ids_of(line: bytes | None) -> list[int]:
    assert line is not None
    assert line.endswith(b"\n")
    return [item["id"] for item in json.loads(line)]


@pytest.mark.requirement("jsonrpc.never-raises")
def test_a_single_reply_goes_straight_out_and_only_once() -> None:
    slot = single_slot()
    assert slot.fill(reply(1)) == reply(1)
    assert slot.fill(reply(1)) is None
    assert slot.drop() is None


@pytest.mark.requirement("jsonrpc.never-raises")
def test_a_dropped_single_reply_never_comes() -> None:
    slot = single_slot()
    assert slot.drop() is None
    assert slot.fill(reply(1)) is None


@pytest.mark.requirement("jsonrpc.batch", "field.35")
def test_a_batch_waits_for_its_last_reply_and_keeps_the_order_of_its_requests() -> None:
    first, second, third = batch_slots(3)
    assert third.fill(reply(3)) is None
    assert first.fill(reply(1)) is None
    assert first.fill(reply(1)) is None
    assert ids_of(second.fill(reply(2))) == [1, 2, 3]


@pytest.mark.requirement("jsonrpc.batch")
def test_a_batch_of_one_is_still_an_array() -> None:
    (slot,) = batch_slots(1)
    assert ids_of(slot.fill(reply(1))) == [1]


@pytest.mark.requirement("jsonrpc.batch")
def test_a_batch_that_nothing_is_said_to_has_no_slots() -> None:
    assert batch_slots(0) == []


@pytest.mark.requirement("jsonrpc.batch", "jsonrpc.never-raises")
@given(
    st.integers(1, 6).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.permutations(range(count)),
            st.lists(st.booleans(), min_size=count, max_size=count),
            st.lists(st.integers(0, count - 1)),
        )
    )
)
def test_a_batch_comes_out_once_with_all_that_was_filled(
    case: tuple[int, list[int], list[bool], list[int]],
) -> None:
    count, order, dropped, again = case
    slots = batch_slots(count)
    lines = []
    for place in order:
        lines.append(slots[place].drop() if dropped[place] else slots[place].fill(reply(place)))
    lines += [slots[place].fill(reply(99)) for place in again]

    filled = [place for place in range(count) if not dropped[place]]
    assert [line for line in lines[: count - 1] + lines[count:] if line is not None] == []
    if filled:
        assert ids_of(lines[count - 1]) == filled
    else:
        assert lines[count - 1] is None
