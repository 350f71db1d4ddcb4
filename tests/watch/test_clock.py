"""The store's two times: what stands still in a gap, and how either is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.times import utc_time
from mcpl_heartbeat.watch.clock import Gap, Reading
from tests.watch.switching import START, at

HOUR = 3_600_000

stretches = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(1, 10_000)), min_size=0, max_size=8
)


def history(parts: list[tuple[int, int]], last: int) -> Reading:
    """Watch and look away in turns, then watch for ``last`` ms; all from ``START``."""
    real, cut, gaps = START, 0, []
    for watched, unwatched in parts:
        real += watched
        gaps.append(Gap(real, real + unwatched, cut))
        real += unwatched
        cut += unwatched
    return Reading(real + last, cut, 0, tuple(gaps))


@pytest.mark.requirement("watch.gap.stands-still")
def test_watched_time_is_real_time_until_there_is_a_gap_and_stands_still_in_it() -> None:
    assert at(5_000).watched == START + 5_000
    gap = Gap(START + 1_000, START + 4_000, 0)
    assert gap.length == 3_000
    assert gap.watched == START + 1_000
    assert at(4_000, cut=3_000, gaps=(gap,)).watched == START + 1_000
    assert at(6_000, cut=3_000, gaps=(gap,)).watched == START + 3_000


@pytest.mark.requirement("watch.gap.stands-still")
@given(stretches, st.integers(0, 10_000), st.integers(0, 10_000))
def test_every_watched_moment_is_told_as_the_real_one_it_was_or_will_be(
    parts: list[tuple[int, int]], last: int, ahead: int
) -> None:
    now = history(parts, last)
    real, watched = START, START
    for seen, unseen in parts:
        # The first moment after a gap is watched at the same time as the last before it, and that
        # one is told.
        for moment in (real + (seen + 1) // 2, real + seen):
            if moment > real:
                assert now.real_of(watched + moment - real) == moment
        real += seen + unseen
        watched += seen
    if last:
        assert now.real_of(now.watched) == now.real
    assert now.real_of(now.watched + ahead + 1) == now.real + ahead + 1


@pytest.mark.requirement("watch.gap.stands-still")
@given(stretches, st.integers(0, 10_000), st.lists(st.integers(-20_000, 100_000), min_size=2))
def test_a_later_watched_moment_is_never_told_as_an_earlier_one(
    parts: list[tuple[int, int]], last: int, moments: list[int]
) -> None:
    now = history(parts, last)
    told = [now.real_of(START + ms) for ms in sorted(moments)]
    assert told == sorted(told)


@pytest.mark.requirement("watch.gap.told")
def test_a_deadline_that_a_gap_held_back_is_told_later_by_its_length() -> None:
    gap = Gap(START + 10_000, START + 10_000 + HOUR, 0)
    now = at(HOUR + 20_000, cut=HOUR, gaps=(gap,))
    assert now.tell_watched(START + 60_000) == utc_time(START + HOUR + 60_000)
    assert now.tell_watched(START + 5_000) == utc_time(START + 5_000)


@pytest.mark.requirement("watch.switch.wall-steps", "field.20.durations")
@pytest.mark.parametrize("shift", [-HOUR, HOUR, 7])
def test_times_are_told_by_the_wall_clock_and_measured_without_it(shift: int) -> None:
    now, stepped = at(500), at(500, shift=shift)
    assert stepped.watched == now.watched
    assert stepped.server_time == utc_time(START + 500 + shift)
    assert stepped.tell_watched(START + 60_000) == utc_time(START + 60_000 + shift)


@pytest.mark.requirement("watch.args.iso-times")
def test_times_are_iso_8601_in_utc_with_milliseconds() -> None:
    assert Reading(1_790_000_000_007).server_time == "2026-09-21T14:13:20.007Z"
