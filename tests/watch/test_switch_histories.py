"""Switches and leases over long histories: what must hold whatever is called and whenever."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcpl_heartbeat.watch import leases, switches
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.results import LeaseReleaseResult, LeaseRenewResult, LeaseResult
from mcpl_heartbeat.watch.rows import Lease
from tests.watch.switching import (
    ADDRESS,
    NAMESPACE,
    START,
    World,
    at,
    call,
    disarming,
    lease,
    releasing,
    renewing,
    taking,
)

Step = Callable[[World], Any]


def named(name: str, do: Step) -> Step:
    do.__qualname__ = name
    return do


def beating(window: int, settings: dict[str, Any]) -> Step:
    arguments = call(expect_within_seconds=window, **settings)
    return named(f"beat {window} {settings}", lambda world: world.call(arguments))


def passing(ms: int) -> Step:
    return named(f"pass {ms}", lambda world: world.pass_ms(ms))


def unwatched(ms: int) -> Step:
    return named(f"gap {ms}", lambda world: world.gap(ms))


def stepping(ms: int) -> Step:
    return named(f"step {ms}", lambda world: world.step_wall(ms))


settings = st.sampled_from(
    [
        {},
        {"on_expiry": ["release_leases", "mark_failed"]},
        {"on_expiry": ["queue_alert"], "notify_address": ADDRESS},
        {"agent_id": "a"},
        {"agent_id": "b"},
        {"nudge_seconds": 1},
    ]
)
beat_steps = st.builds(beating, st.sampled_from([2, 30, 300]), settings)
disarm_step = st.just(named("disarm", lambda world: world.call(disarming())))
# Moments on and beside the deadlines come often.
spans = st.sampled_from([1, 1_999, 2_000, 29_999, 30_000, 100_000]) | st.integers(0, 400_000)
steps = st.lists(
    beat_steps
    | disarm_step
    | st.builds(passing, spans)
    | st.builds(unwatched, st.integers(1_000, 10_000_000))
    | st.builds(stepping, st.sampled_from([-3_600_000, 3_600_000])),
    max_size=25,
)


def run(history: list[Step], sweeps: list[bool]) -> tuple[World, list[Any]]:
    """Carry ``history`` out, with a sweep before each step where ``sweeps`` says so."""
    world, told = World(), []
    for n, step in enumerate(history):
        if n < len(sweeps) and sweeps[n]:
            world.sweep()
        told.append(step(world))
    world.sweep()
    return world, told


@pytest.mark.requirement("watch.switch.never-early", "watch.switch.once", "watch.gap.stands-still")
@given(steps, st.lists(st.booleans(), max_size=25))
def test_a_fire_is_never_early_and_comes_once_a_generation(
    history: list[Step], sweeps: list[bool]
) -> None:
    world, _ = run(history, sweeps)
    generations = [before.generation for _, before, _ in world.fires]
    assert generations == sorted(set(generations))
    for now, before, done in world.fires:
        # Counted anew from what an agent saw: that long, gaps left out, nobody beat.
        silent = now.real - before.last_beat_at
        missed = sum(gap.length for gap in now.gaps if gap.began >= before.last_beat_at)
        assert silent - missed >= before.window_ms
        assert done.switch.fired_generation == before.generation
    if world.switch is not None:
        assert world.switch.fires == len(world.fires)
        assert world.switch.state != "armed" or not switches.is_due(world.switch, world.now)


@pytest.mark.requirement("watch.switch.generation")
@given(steps)
def test_generations_count_armings_and_never_fall(history: list[Step]) -> None:
    world, armings, last = World(), 0, 0
    for step in history:
        world.sweep()
        stood = world.switch is not None and world.switch.state == "armed"
        step(world)
        generation = 0 if world.switch is None else world.switch.generation
        stands = world.switch is not None and world.switch.state == "armed"
        armings += stands and not stood
        assert generation >= last
        assert generation == armings
        last = generation
    assert [entry.generation for entry in world.journal if entry.kind == "armed"] == list(
        range(1, armings + 1)
    )


def timeless(world: World) -> Any:
    """The journal and the switch without the moment at which a fire was noticed."""
    journal = []
    for entry in world.journal:
        detail = {key: value for key, value in entry.detail.items() if key != "noticed_at"}
        at = 0 if entry.kind == "fired" else entry.at
        journal.append(msgspec.structs.replace(entry, at=at, detail=detail))
    return journal, world.switch


@pytest.mark.requirement("watch.switch.late-is-the-deadline", "field.28.sweep-period")
@given(steps, st.lists(st.booleans(), min_size=25, max_size=25))
def test_how_often_is_swept_changes_nothing_but_when_a_fire_is_noticed(
    history: list[Step], sweeps: list[bool]
) -> None:
    # The wall clock's steps change how the same moment is told before and after them.
    history = [step for step in history if not step.__qualname__.startswith("step")]
    never, told_never = run(history, [])
    sometimes, told_sometimes = run(history, sweeps)
    always, told_always = run(history, [True] * len(history))
    assert timeless(never) == timeless(sometimes) == timeless(always)
    assert told_never == told_sometimes == told_always


@pytest.mark.requirement("watch.switch.wall-steps", "field.20.durations")
@given(steps)
def test_steps_of_the_wall_clock_change_only_what_is_told(history: list[Step]) -> None:
    steady = [step for step in history if not step.__qualname__.startswith("step")]
    assert run(history, [])[0].switch == run(steady, [])[0].switch


@pytest.mark.requirement("watch.switch.new-generation", "field.41.nothing-inherited")
@given(steps, beat_steps)
def test_a_beat_on_what_is_not_armed_gives_the_same_row_whatever_came_before(
    history: list[Step], beat: Step
) -> None:
    world, _ = run(history, [])
    fresh = World()
    fresh.now = world.now
    if world.switch is not None and world.switch.state == "armed":
        world.call(disarming())
    old = world.switch
    beat(world)
    beat(fresh)
    assert world.switch is not None
    assert fresh.switch is not None
    history_of = {
        "generation": 1 if old is None else old.generation + 1,
        "fires": 0 if old is None else old.fires,
        "fired_generation": None if old is None else old.fired_generation,
        "failed": old is not None and old.failed,
    }
    assert world.switch == msgspec.structs.replace(fresh.switch, **history_of)


@pytest.mark.requirement("watch.gap.renewal-chance", "field.23.renewal-chance")
@given(steps, st.integers(1_000, 10_000_000))
def test_nobody_who_was_alive_before_a_gap_is_dead_right_after_it(
    history: list[Step], length: int
) -> None:
    world, _ = run(history, [])
    before = world.switch
    world.gap(length)
    if before is not None and before.state == "armed":
        assert world.switch is not None
        left = world.switch.deadline_watched - world.now.watched
        had = before.deadline_watched - world.now.watched
        assert left == max(had, min(before.window_ms, 60_000))
        assert left <= before.window_ms
    else:
        assert world.switch == before


class Client:
    """One who takes a lease, and what it was told of it."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self.fence: str | None = None
        self.fences: set[str] = set()


class LeaseWorld:
    """One key, two clients under one label and one under another."""

    def __init__(self) -> None:
        self.now = at()
        self.row: Lease | None = None
        self.clients = [Client("w"), Client("w"), Client("v")]
        self.made = 0

    def act(self, who: int, what: str, ttl: int) -> None:
        client = self.clients[who]
        shown = client.fence if client.fence is not None else "none"
        match what:
            case "take" | "retake":
                self.made += 1
                fence: Any = client.fence if what == "retake" and client.fence else UNSET
                arguments = taking(holder=client.holder, fence=fence, ttl_seconds=ttl)
                taken = leases.take(self.row, NAMESPACE, arguments, f"fence-{self.made}", self.now)
            case "renew":
                renewal = renewing(holder=client.holder, fence=shown, ttl_seconds=ttl)
                taken = leases.renew(self.row, renewal, self.now)
            case _:
                taken = leases.release(
                    self.row, releasing(holder=client.holder, fence=shown), self.now
                )
        self.check(client, taken)
        if taken.lease is not None:
            self.row = taken.lease

    def check(self, client: Client, taken: leases.Taken) -> None:
        result = taken.result
        if isinstance(result, LeaseResult) and result.acquired:
            assert isinstance(result.fence, str)
            client.fence = result.fence
            client.fences.add(result.fence)
        elif isinstance(result, LeaseReleaseResult) and result.released:
            client.fence = None
        elif isinstance(result, LeaseRenewResult) and result.renewed:
            assert result.fence == client.fence
        else:
            assert taken.lease is None
        said = msgspec.json.encode((result, taken.entries)).decode()
        others = {f"fence-{n}" for n in range(1, self.made + 1)} - client.fences
        # Encoded strings end with a quotation mark, so that fence-1 is not found in fence-12.
        assert not [fence for fence in others if f'{fence}"' in said]

    def holders(self) -> list[Client]:
        """Whoever could renew at this moment, by any fence it was ever given."""
        return [
            client
            for client in self.clients
            if any(
                leases.renew(self.row, renewing(holder=client.holder, fence=f), self.now).lease
                for f in client.fences
            )
        ]


lease_steps = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["take", "take", "retake", "renew", "release", "pass", "fire"]),
        st.integers(1, 60),
    ),
    max_size=40,
)


@pytest.mark.requirement("watch.lease.one-holder", "watch.lease.generation", "watch.lease.fence")
@given(lease_steps)
def test_a_lease_has_one_holder_a_rising_number_and_a_fence_that_only_it_learns(
    history: list[tuple[int, str, int]],
) -> None:
    world = LeaseWorld()
    last = Lease(
        namespace=NAMESPACE, key="db", holder="", fence="", generation=0, expires_watched=0
    )
    for who, what, n in history:
        if what == "pass":
            world.now = msgspec.structs.replace(world.now, real=world.now.real + n * 1_000)
        elif what == "fire" and world.row is not None:
            world.row = leases.free(world.row)
        elif what != "fire":
            world.act(who, what, n)
        row = world.row
        if row is not None:
            # A new number with each new fence, and the same one with the same fence.
            rise = row.generation - last.generation
            assert rise == (row.fence != last.fence)
            last = row
            assert len(world.holders()) == leases.is_held(row, world.now)


@pytest.mark.requirement("watch.lease.lost-stays-lost", "field.1.lapsed-lease")
@given(st.integers(1, 3_600), st.integers(0, 10_000_000))
def test_no_call_brings_back_what_has_lapsed(ttl: int, later: int) -> None:
    row = lease(expires_watched=START + ttl * 1_000)
    now = Reading(row.expires_watched + later)
    assert leases.renew(row, renewing(), now).lease is None
    assert leases.release(row, releasing(), now).lease is None
    taken = leases.take(row, NAMESPACE, taking(fence=row.fence), "fresh", now)
    assert taken.lease is not None
    assert (taken.lease.fence, taken.lease.generation) == ("fresh", row.generation + 1)


@pytest.mark.requirement("field.47.one-missed")
@given(st.integers(3, 3_600), st.lists(st.booleans(), min_size=2, max_size=30))
def test_at_each_third_one_time_may_be_missed(seconds: int, wishes: list[bool]) -> None:
    """As the descriptions advise, and never two times in a row."""
    world, row = World(), lease(expires_watched=START + seconds * 1_000)
    world.call(call(expect_within_seconds=seconds))
    missed = 0
    for wish in wishes:
        world.pass_ms(seconds * 1_000 // 3)
        missed = missed + 1 if wish and not missed else 0
        if not missed:
            reply = world.call(call(expect_within_seconds=seconds))
            assert (reply.generation, reply.fired) == (1, False)
            held = leases.renew(row, renewing(fence=row.fence, ttl_seconds=seconds), world.now)
            assert held.lease is not None
            row = held.lease
