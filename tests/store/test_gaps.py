"""Watch gaps: what is noticed of a time in which nobody watched, and what it does to deadlines."""

from collections.abc import Callable

import pytest

from mcpl_heartbeat.storage.store.ports import Unsettled
from mcpl_heartbeat.storage.store.store import Store
from tests.store.world import HandClock, World, abandon, ask, beat, call, register

HOUR = 3_600_000


def gaps(world: World) -> list[int]:
    return [ended - began for began, ended in world.rows("SELECT began, ended FROM gaps")]


def state(store: Store, scope: str = "work") -> str:
    [view] = call(store, "switch_status", scope=scope).switches
    return str(view.state)


@pytest.mark.requirement("watch.gap.restart", "field.23.renewal-chance", "field.25.fired-stays")
def test_a_time_without_a_server_is_a_gap_from_the_last_one_s_leaving(world: World) -> None:
    first = world.store()
    register(first)
    beat(first, seconds=30)
    world.watch(first, ms=10_000)
    first.close()
    world.advance(HOUR)
    second = world.store()
    assert gaps(world) == [HOUR]
    assert second.sweep(200).gap is not None
    assert second.sweep(200).gap is None
    [view] = call(second, "switch_status", scope="work").switches
    # 20 s were left, and a restart gives time to beat.
    assert view.state == "armed"
    assert view.seconds_left == 30
    world.watch(second, ms=29_500)
    assert state(second) == "armed"
    world.watch(second, ms=500)
    assert state(second) == "fired"


@pytest.mark.requirement("watch.gap.restart", "field.26.restarts")
def test_a_switch_longer_than_the_restarts_still_fires(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=10 * 20)
    for _ in range(9):
        world.watch(store, ms=20_000, every=2_000)
        store.close()
        store = world.store()
    assert gaps(world) == []
    assert state(store) == "armed"
    world.watch(store, ms=20_000, every=2_000)
    assert state(store) == "fired"


@pytest.mark.requirement("watch.gap.killed")
def test_after_a_kill_the_gap_begins_when_the_store_was_last_seen(world: World) -> None:
    first = world.store()
    register(first)
    beat(first, seconds=60)
    world.watch(first, ms=10_000)
    abandon(first)
    world.advance(20_000)
    second = world.store()
    [gap] = gaps(world)
    assert 20_000 <= gap <= 22_000
    assert state(second) == "armed"


@pytest.mark.requirement("watch.gap.restart")
def test_a_quick_restart_is_no_gap(world: World) -> None:
    first = world.store()
    world.watch(first, ms=3_000)
    first.close()
    world.advance(900)
    world.store()
    assert gaps(world) == []


@pytest.mark.requirement("watch.gap.others-watch")
def test_while_another_server_watches_there_is_no_gap(world: World) -> None:
    first, second = world.store(), world.store()
    world.watch(first, second, ms=3_000)
    first.close()
    world.watch(second, ms=60_000)
    third = world.store()
    third.sweep(200)
    world.watch(second, third, ms=3_000)
    assert gaps(world) == []


@pytest.mark.requirement("watch.gap.others-watch")
def test_a_server_that_slept_beside_one_that_watched_finds_no_gap(world: World) -> None:
    watching, sleeping = world.store(), world.store()
    register(watching)
    beat(watching, seconds=5)
    world.watch(watching, ms=60_000)
    assert sleeping.sweep(200).gap is None
    assert gaps(world) == []
    assert state(sleeping) == "fired"


@pytest.mark.requirement("watch.gap.others-watch")
def test_one_that_comes_while_the_others_hang_finds_the_gap(world: World) -> None:
    hanging = world.store()
    register(hanging)
    beat(hanging, seconds=5)
    world.advance(HOUR)
    coming = world.store()
    assert gaps(world) == [HOUR]
    assert coming.sweep(200).fired == 0
    assert hanging.sweep(200).fired == 0
    assert gaps(world) == [HOUR]


CALLS: dict[str, Callable[[Store], object]] = {
    "sweep": lambda store: store.sweep(200),
    "answer": lambda store: beat(store, scope="another"),
    "news": lambda store: store.news("a", "b", "token", 10),
    "present": lambda store: store.present("a", "token", here=True),
    "housekeeping": lambda store: store.housekeeping(),
}


@pytest.mark.requirement("watch.gap.before-anything", "field.23.renewal-chance")
@pytest.mark.parametrize("name", CALLS)
def test_whatever_comes_first_after_a_stall_notes_the_gap(world: World, name: str) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=5)
    world.advance(20_000)
    CALLS[name](store)
    assert gaps(world) == [20_000]
    assert state(store) == "armed"


@pytest.mark.requirement("watch.gap.before-anything")
def test_the_late_beat_itself_finds_the_gap_first(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=5)
    world.advance(20_000)
    result = beat(store, seconds=5)
    assert (result.state, result.generation, result.fired) == ("armed", 1, False)


@pytest.mark.requirement("watch.gap.before-anything")
def test_a_look_counts_the_gap_without_noting_it(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=5)
    world.advance(20_000)
    found = store.look(ask("switch_status", scope="work"))
    [view] = found.switches
    assert (view.state, view.seconds_left) == ("armed", 5)
    assert [gap.seconds for gap in found.watch_gaps] == [20.0]
    assert gaps(world) == []


@pytest.mark.requirement("watch.store.settled-first")
def test_a_look_that_meets_a_due_switch_asks_for_it_to_be_settled(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=2)
    world.advance(2_000)
    with pytest.raises(Unsettled):
        store.look(ask("switch_status", scope="work"))
    assert state(store) == "fired"


@pytest.mark.requirement("watch.gap.never-early", "field.17.never-early")
def test_what_was_due_when_the_watch_ended_fires(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=5)
    world.watch(store, ms=4_500)
    world.advance(500)
    store.close()
    world.advance(HOUR)
    assert world.store().sweep(200).fired == 1


@pytest.mark.requirement("watch.gap.no-writing")
def test_a_time_in_which_nothing_could_be_written_is_a_gap(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """News is still asked for, and asks nothing of the disk: it is no sign of watching."""
    store = world.store()
    register(store)
    beat(store, seconds=5)
    with monkeypatch.context() as patch:
        patch.setattr(store._transactions, "watch", lambda: None)
        for _ in range(20):
            world.advance(500)
            store.news("a", "b", "token", 10)
    assert sum(gaps(world)) >= 7_500
    assert state(store) == "armed"


@pytest.mark.requirement("watch.store.clock-anchored", "field.19.wall-steps")
@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_step_of_the_wall_moves_no_deadline_but_the_told_one(world: World, step: int) -> None:
    store = world.store()
    register(store)
    told = beat(store, seconds=60).deadline
    world.watch(store, ms=10_000)
    world.step(step)
    world.watch(store, ms=2_000)
    result = call(store, "switch_status", scope="work")
    [view] = result.switches
    assert view.seconds_left == 48
    assert view.deadline != told
    assert gaps(world) == []
    world.watch(store, ms=47_500)
    assert state(store) == "armed"
    world.watch(store, ms=500)
    assert state(store) == "fired"


class Crooked(HandClock):
    """The clocks of a host that are off; its steady one, too, where it is a host of its own."""

    def __init__(self, right: HandClock, off: int, *, own_host: bool) -> None:
        super().__init__(right.source)
        self._right, self._off, self._own = right, off, own_host

    def steady(self) -> int:
        return self._right.steady() + (self._off if self._own else 0)

    def wall(self) -> int:
        return self._right.wall() + self._off


@pytest.mark.requirement("field.22.one-clock")
@pytest.mark.parametrize("off", [-HOUR, HOUR])
def test_a_server_whose_clocks_are_wrong_changes_no_deadline(world: World, off: int) -> None:
    right = world.store()
    register(right)
    crooked = world.store(clock=Crooked(world.clock, off, own_host=world.postgres))
    beat(right, seconds=60)
    world.watch(right, crooked, ms=10_000)
    [seen] = call(crooked, "switch_status", scope="work").switches
    assert seen.seconds_left == 50
    assert beat(crooked, seconds=60).seconds_left == 60
    world.watch(crooked, right, ms=59_500)
    assert (state(right), state(crooked)) == ("armed", "armed")
    world.watch(crooked, ms=500)
    assert state(right) == "fired"
    assert gaps(world) == []


@pytest.mark.requirement("watch.store.clock-anchored", "watch.gap.restart")
@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_restart_of_the_host_with_the_wall_set_kills_nobody(world: World, step: int) -> None:
    first = world.store()
    register(first)
    beat(first, seconds=60)
    world.watch(first, ms=10_000)
    first.close()
    world.advance(5_000)
    world.step(step)
    rebooted = HandClock("boot 2")
    rebooted.now, rebooted.on_the_wall = 100, world.clock.on_the_wall
    world.clock = rebooted
    second = world.store()
    world.watch(second, ms=45_000)
    assert state(second) == "armed"
    world.watch(second, ms=20_000)
    assert state(second) == "fired"


@pytest.mark.requirement("watch.gap.sum")
def test_gaps_are_told_newest_hundred_and_all_count(world: World) -> None:
    store = world.store()
    register(store)
    beat(store, seconds=100_000)
    for _ in range(102):
        world.advance(3_000)
        store.sweep(200)
    assert len(gaps(world)) == 102
    [view] = call(store, "switch_status", scope="work").switches
    assert view.seconds_left == 100_000


@pytest.mark.requirement("watch.gap.onlooker")
def test_an_onlooker_takes_no_part_in_the_watch(world: World) -> None:
    onlooker = world.store(watch=False)
    world.advance(5_000)
    onlooker.look(ask("whoami"))
    world.store()
    assert gaps(world) == [5_000]
