"""The store's time: what each reading of the clocks comes to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.storage.store import clock as clocks
from mcpl_heartbeat.storage.store.clock import ClockRow, HostClock, Memory, Sample, Tick, tick
from mcpl_heartbeat.watch.clock import Gap

HOUR = 3_600_000
WALL = 1_800_000_000_000
ROW = ClockRow(source="boot", offset_ms=WALL, cut=0, seen=WALL + 10_000)


def sample(raw: int, wall: int | None = None, source: str = "boot") -> Sample:
    return Sample(source, raw, WALL + raw if wall is None else wall, raw, raw)


def database(raw: int, steady: int, late: int | None = None) -> Sample:
    return Sample("postgresql", raw, raw, steady, steady if late is None else late)


def remember(found: Tick, of: Sample) -> Memory:
    return Memory(of, found.row.offset_ms, found.real, found.real)


@pytest.mark.requirement("watch.store.clock-anchored")
def test_a_store_s_time_begins_on_the_wall_and_follows_the_steady_clock() -> None:
    row = clocks.first_row(sample(500))
    assert row == ClockRow("boot", WALL, 0, WALL + 500)
    assert tick(row, sample(1_700), None) == Tick(row, WALL + 1_700)


@pytest.mark.requirement("watch.store.clock-anchored", "field.19.wall-steps", "field.20.durations")
@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_step_of_the_wall_changes_no_time(step: int) -> None:
    assert tick(ROW, sample(11_000, WALL + 11_000 + step), None) == Tick(ROW, WALL + 11_000)


@pytest.mark.requirement("watch.store.clock-anchored")
def test_after_a_restart_of_the_host_time_goes_on_from_the_wall() -> None:
    found = tick(ROW, sample(30, WALL + 60_000, source="boot 2"), None)
    gap = Gap(WALL + 10_000, WALL + 60_000, 0)
    assert found == Tick(
        ClockRow("boot 2", WALL + 59_970, 50_000, WALL + 60_000), WALL + 60_000, gap
    )


@pytest.mark.requirement("watch.store.clock-forward")
def test_after_a_restart_with_the_wall_set_back_time_goes_on_from_what_was_seen() -> None:
    found = tick(ROW, sample(30, 0, source="boot 2"), None)
    assert found == Tick(ClockRow("boot 2", ROW.seen - 30, 0, ROW.seen), ROW.seen)


@pytest.mark.requirement("watch.store.clock-forward")
def test_a_raw_clock_that_was_set_back_moves_the_anchor() -> None:
    row = ClockRow("wall", 0, 0, WALL)
    before = Memory(sample(WALL, WALL, "wall"), 0, WALL + 800, WALL + 800)
    found = tick(row, Sample("wall", WALL - HOUR, WALL - HOUR, 5, 5), before)
    assert found.real == WALL + 800
    assert found.row == ClockRow("wall", HOUR + 800, 0, WALL + 800)
    assert found.gap is None


@pytest.mark.requirement("watch.store.clock-forward")
def test_a_process_never_reads_an_earlier_time_than_before() -> None:
    before = Memory(sample(11_000), WALL, WALL + 11_000, WALL + 11_000)
    assert tick(ROW, sample(10_400), before) == Tick(ROW, WALL + 11_000)


@pytest.mark.requirement("watch.gap.threshold")
@pytest.mark.parametrize(
    ("raw", "limit", "gap"),
    [
        (12_499, clocks.GAP_MS, False),
        (12_500, clocks.GAP_MS, True),
        (10_999, clocks.ALONE_GAP_MS, False),
        (11_000, clocks.ALONE_GAP_MS, True),
    ],
)
def test_how_long_unwatched_is_a_gap(raw: int, limit: int, gap: bool) -> None:
    found = tick(ROW, sample(raw), None, limit)
    assert (found.gap is not None) == gap
    if gap:
        assert found.gap == Gap(ROW.seen, WALL + raw, 0)
        assert (found.row.cut, found.row.seen) == (WALL + raw - ROW.seen, WALL + raw)
    else:
        assert found.row == ROW


@pytest.mark.requirement("watch.gap.threshold")
def test_what_the_process_watched_itself_is_no_gap() -> None:
    before = Memory(sample(15_000), WALL, WALL + 15_000, WALL + 15_000)
    assert tick(ROW, sample(16_000), before).gap is None
    idle = Memory(sample(15_000), WALL, WALL + 15_000, WALL + 10_500)
    assert tick(ROW, sample(16_000), idle).gap == Gap(WALL + 10_500, WALL + 16_000, 0)


@pytest.mark.requirement("watch.gap.sum")
def test_gaps_add_up() -> None:
    row = ClockRow("boot", WALL, 7_000, WALL + 10_000)
    found = tick(row, sample(20_000), None)
    assert found.gap == Gap(WALL + 10_000, WALL + 20_000, 7_000)
    assert found.row.cut == 17_000


@pytest.mark.requirement("watch.store.database-steps")
@pytest.mark.parametrize("step", [-HOUR, -3_000, 3_000, HOUR])
def test_a_step_of_the_database_s_clock_is_taken_out(step: int) -> None:
    row = ClockRow("postgresql", 0, 0, WALL)
    before = remember(Tick(row, WALL + 200), database(WALL + 200, 200))
    found = tick(row, database(WALL + 700 + step, 700), before)
    assert found.real == WALL + 700
    assert found.row == ClockRow("postgresql", -step, 0, WALL + 700)
    assert found.gap is None


@pytest.mark.requirement("watch.store.database-steps")
@pytest.mark.parametrize("drift", [-2_000, 2_000])
def test_clocks_that_drift_apart_a_little_are_no_step(drift: int) -> None:
    row = ClockRow("postgresql", 0, 0, WALL)
    before = remember(Tick(row, WALL + 10_000), database(WALL + 10_000, 0))
    found = tick(row, database(WALL + 10_200 + drift, 200), before, 10_000_000)
    assert found.row.offset_ms == 0


@pytest.mark.requirement("watch.store.database-steps")
def test_a_slow_answer_of_the_database_is_no_step() -> None:
    row = ClockRow("postgresql", 0, 0, WALL)
    before = remember(Tick(row, WALL), database(WALL, 0))
    # Asked at 100, answered at 9,100: the clock may have been read at any time between.
    for passed in (100, 5_000, 9_100):
        found = tick(row, database(WALL + passed, 100, late=9_100), before, 10_000_000)
        assert found.row.offset_ms == 0, passed


@pytest.mark.requirement("watch.store.database-steps")
def test_a_step_that_another_server_took_out_is_not_taken_out_twice() -> None:
    row = ClockRow("postgresql", 0, 0, WALL)
    before = remember(Tick(row, WALL + 200), database(WALL + 200, 200))
    corrected = ClockRow("postgresql", -HOUR, 0, WALL + 600)
    found = tick(corrected, database(WALL + 700 + HOUR, 700), before)
    assert found == Tick(corrected, WALL + 700)


@pytest.mark.requirement("watch.store.database-steps", "watch.gap.threshold")
def test_a_step_that_nobody_could_compare_is_a_gap() -> None:
    row = ClockRow("postgresql", 0, 0, WALL)
    found = tick(row, database(WALL + HOUR, 700), None)
    assert found.gap == Gap(WALL, WALL + HOUR, 0)
    # The server that remembers comes second: it must not make the step a time that was watched.
    before = remember(Tick(row, WALL + 200), database(WALL + 200, 200))
    later = tick(found.row, database(WALL + HOUR + 100, 800), before)
    assert later.real - later.row.cut <= WALL + 200


@pytest.mark.requirement("watch.store.told-times-stand-still")
def test_told_times_follow_a_step_of_the_wall_and_not_its_drift() -> None:
    assert clocks.shift(WALL, WALL, 0) == 0
    assert clocks.shift(WALL + 2_000, WALL, 0) == 0
    assert clocks.shift(WALL + HOUR + 4, WALL, 0) == HOUR
    assert clocks.shift(WALL + HOUR - 7, WALL, HOUR) == HOUR
    assert clocks.shift(WALL + 1_500, WALL, HOUR) == 0


@pytest.mark.requirement("watch.store.clock-source")
def test_the_host_s_clock_is_named_by_its_boot() -> None:
    one, other = HostClock(), HostClock()
    assert one.source == other.source
    assert one.source != ""
    before = one.steady()
    assert other.steady() >= before
    assert abs(one.wall() - other.wall()) < HOUR


@pytest.mark.requirement("watch.store.clock-source")
def test_a_host_without_a_steady_clock_to_name_counts_on_the_wall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "_boot", lambda: "wall")
    found = clocks.sample_host(HostClock())
    assert found.source == "wall"
    assert found.raw == found.wall


class Ring:
    """Some servers on one store whose database's clock is set now and then."""

    def __init__(self, servers: int) -> None:
        self.true = self.raw = WALL
        self.row = ClockRow("postgresql", 0, 0, WALL)
        self.memories: list[Memory | None] = [None] * servers
        self.steady = [1_000 * each for each in range(servers)]

    def pass_by(self, ms: int) -> None:
        self.true += ms
        self.raw += ms

    def read(self, server: int) -> Tick:
        steady = self.steady[server] + self.true - WALL
        now = database(self.raw, steady)
        found = tick(self.row, now, self.memories[server])
        if found.row != self.row:
            self.row = found.row
        elif found.real - self.row.seen >= clocks.SEEN_EVERY_MS:
            self.row = ClockRow("postgresql", self.row.offset_ms, self.row.cut, found.real)
        self.memories[server] = remember(found, now)
        return found


STEPS = st.one_of(
    st.tuples(st.just("pass"), st.integers(1, 900)),
    st.tuples(st.just("pass"), st.integers(2_500, HOUR)),
    st.tuples(st.just("read"), st.integers(0, 2)),
    st.tuples(st.just("step"), st.integers(2_501, 2 * HOUR)),
    st.tuples(st.just("step"), st.integers(-2 * HOUR, -2_501)),
    st.tuples(st.just("start"), st.integers(0, 2)),
)


@pytest.mark.requirement("watch.gap.never-early", "watch.store.clock-forward", "field.22.one-clock")
@given(st.lists(STEPS, max_size=60))
def test_watched_time_never_runs_ahead_of_time(script: list[tuple[str, Any]]) -> None:
    """Whatever is done to the clocks: no deadline comes before its time has really passed."""
    ring, last, unseen = Ring(3), 0, False
    for what, value in script:
        if what == "pass":
            ring.pass_by(value)
        elif what == "step":
            # One step between two looks is what can be told apart from time that passes.
            if all(memory is not None for memory in ring.memories):
                for server in range(3):
                    ring.read(server)
            elif unseen:
                # Two may come to next to nothing, which is like time that passes.
                continue
            ring.raw += value
            unseen = True
        elif what == "start":
            ring.memories[value] = None
        else:
            found = ring.read(value)
            unseen = False
            assert found.row.seen <= found.real
            watched = found.real - found.row.cut
            assert watched - WALL <= ring.true - WALL
            assert found.real >= last - clocks.SEEN_EVERY_MS
            last = max(last, found.real)
