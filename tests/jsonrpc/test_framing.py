"""Bytes to lines: every cutting gives the same lines, and nothing costs more than its length."""

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.jsonrpc.framing import MAX_LINE_BYTES, LineBuffer, TooLong

BOM = b"\xef\xbb\xbf"
PING = b'{"jsonrpc":"2.0","id":9,"method":"ping"}'


def lines_of(*chunks: bytes, limit: int = MAX_LINE_BYTES) -> list[bytes | TooLong]:
    buffer = LineBuffer(limit)
    lines = [line for chunk in chunks for line in buffer.feed(chunk)]
    return lines + buffer.end()


def one_at_a_time(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


streams = st.lists(
    st.sampled_from(
        [
            b"\n",
            b"\r",
            b" ",
            b"\t",
            b"\x0b",
            b"\xe2\x80\xa8",
            BOM,
            b"{}",
            PING,
            "é\U0001f378".encode(),
        ]
    )
    | st.binary(max_size=12)
).map(b"".join)


@pytest.mark.requirement("stdio.any-cut", "field.13", "field.19")
@given(stream=streams, cuts=st.lists(st.integers(0, 200)), limit=st.integers(1, 30))
def test_any_cutting_gives_the_same_lines(stream: bytes, cuts: list[int], limit: int) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(edges)]

    whole = lines_of(stream, limit=limit)

    assert lines_of(*chunks, limit=limit) == whole
    assert lines_of(*one_at_a_time(stream), limit=limit) == whole


@pytest.mark.requirement("stdio.one-line", "stdio.too-long")
@given(stream=streams, limit=st.integers(1, 30))
def test_lines_are_what_lies_between_the_line_feeds(stream: bytes, limit: int) -> None:
    expected: list[bytes | TooLong] = []
    for line in stream.split(b"\n"):
        if len(line) > limit:
            expected.append(TooLong())
            continue
        bare = line if expected else line.removeprefix(BOM)
        if bare.strip(b" \t\r"):
            expected.append(bare.removesuffix(b"\r"))

    assert lines_of(stream, limit=limit) == expected


@pytest.mark.requirement("stdio.one-line", "field.22")
def test_blank_lines_give_nothing_and_a_first_byte_order_mark_is_dropped() -> None:
    assert lines_of(b"\n   \n\r\n\t\n" + BOM + PING + b"\n") == [PING]


@pytest.mark.requirement("stdio.one-line")
def test_a_byte_order_mark_after_the_first_message_is_kept() -> None:
    assert lines_of(PING + b"\n" + BOM + PING + b"\n") == [PING, BOM + PING]


@pytest.mark.requirement("stdio.one-line", "field.19")
def test_crlf_ends_a_line_and_two_frames_come_in_one_write() -> None:
    assert lines_of(PING + b"\r\n" + PING + b"\r\n") == [PING, PING]


@pytest.mark.requirement("stdio.one-line", "field.11")
@pytest.mark.parametrize("not_an_end", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\r", "\x1e"])
def test_only_a_line_feed_ends_a_line(not_an_end: str) -> None:
    text = f'"a{not_an_end}b"'.encode()
    assert lines_of(text + b"\n") == [text]


@pytest.mark.requirement("stdio.one-line")
def test_the_last_line_may_lack_its_line_feed() -> None:
    buffer = LineBuffer()
    assert buffer.feed(PING) == []
    assert buffer.end() == [PING]
    assert buffer.end() == []


@pytest.mark.requirement("stdio.half-line")
def test_half_a_line_gives_nothing_and_holds_nothing_up() -> None:
    buffer = LineBuffer()
    assert buffer.feed(PING + b"\n" + PING[:5]) == [PING]
    assert buffer.feed(b"") == []
    assert buffer.feed(PING[5:] + b"\n") == [PING]


@pytest.mark.requirement("field.16")
def test_content_length_framing_costs_one_line_a_header() -> None:
    assert lines_of(b"Content-Length: 40\r\n\r\n" + PING + b"\n") == [b"Content-Length: 40", PING]


@pytest.mark.requirement("stdio.too-long")
@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("cut", [1, 4, 7, 100])
def test_the_limit_is_exact_and_the_next_line_is_served(over: int, cut: int) -> None:
    line = b"x" * (10 + over)
    stream = line + b"\nnext\n"
    chunks = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    first = TooLong() if over else line
    assert lines_of(*chunks, limit=10) == [first, b"next"]


@pytest.mark.requirement("stdio.too-long")
def test_a_line_over_the_limit_is_told_once_and_before_it_ends() -> None:
    buffer = LineBuffer(limit=10)
    assert buffer.feed(b"x" * 11) == [TooLong()]
    assert buffer.feed(b"x" * 50) == []
    assert buffer.feed(b"x\n") == []
    assert buffer.feed(b"next\n") == [b"next"]


@pytest.mark.requirement("stdio.too-long")
def test_a_line_over_the_limit_without_an_end_is_told_once() -> None:
    assert lines_of(b"x" * 11, b"x" * 11, limit=10) == [TooLong()]


@pytest.mark.requirement("stdio.too-long")
def test_a_byte_order_mark_after_a_line_over_the_limit_is_not_the_first() -> None:
    assert lines_of(b"x" * 11 + b"\n" + BOM + b"{}\n", limit=10) == [TooLong(), BOM + b"{}"]
    assert lines_of(b"x" * 11, b"\n" + BOM + b"{}\n", limit=10) == [TooLong(), BOM + b"{}"]


@pytest.mark.requirement("stdio.too-long")
def test_a_line_far_over_the_limit_costs_no_more_memory_than_the_limit() -> None:
    limit, chunk = 1 << 20, b"x" * 65536
    buffer = LineBuffer(limit)
    tracemalloc.start()
    try:
        told = [line for _ in range(128) for line in buffer.feed(chunk)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told == [TooLong()]
    assert peak < 2 * limit


@pytest.mark.requirement("stdio.too-long", "field.14")
def test_lines_up_to_sixteen_mebibytes_are_read() -> None:
    chunk = b"x" * (1 << 20)
    at_limit = LineBuffer()
    for _ in range(16):
        assert at_limit.feed(chunk) == []
    assert at_limit.feed(b"\n") == [chunk * 16]
    over = lines_of(*[chunk] * 16, b"x\n", PING)
    assert over == [TooLong(), PING]
