"""What others reported about leases on work (liveness-surfaces D), at a store of either kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from mcpl_heartbeat.shell.desk import Desk
from mcpl_heartbeat.storage.store.ports import Ask, Outcome, StoreError
from mcpl_heartbeat.storage.store.store import Store
from mcpl_heartbeat.watch.failures import Failure
from tests.store.conftest import postgres_server, postgres_url, store_url, world
from tests.store.world import World, abandon
from tests.task_histories.calls import CONTRACT, answer, ask, outputs
from tests.watch_histories.facts import instant
from tests.watch_histories.worker import SECRETS

__all__ = ["postgres_server", "postgres_url", "store_url", "world"]

LEASE_MS = 30_000
HOUR_MS = 3_600_000
STEP_MS = 2_000
"""So often a server looks, or it counts as one that did not watch."""
Told = dict[str, Any]
Way = Callable[["Queue", str, int], Told]


class Queue:
    """A store's tasks, asked for by one agent, and its time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.store = world.store()
        self.call("register", agent_secret=SECRETS[0])

    def call(self, tool: str, *, at: Store | None = None, **args: Any) -> Told:
        who: Any = None if tool == "register" else 0
        return answer(at or self.store, [(tool, who, args)])[0]

    def watch(self, ms: int) -> None:
        """Time passes, and the server looks as it should."""
        self.world.watch(self.store, ms=ms - ms % STEP_MS, every=STEP_MS)
        self.world.advance(ms % STEP_MS)

    def make(self, lease: int = 30, timeout: int = 86_400, **more: Any) -> str:
        told = self.call(
            "create_agent_task",
            input_snapshot={"page": 1},
            output_contract=CONTRACT,
            lease_seconds=lease,
            timeout_seconds=timeout,
            **more,
        )
        return str(told["id"])

    def claim(self, id: str, **more: Any) -> int:
        told = self.call("claim_agent_task", task_id=id, **{"agent_id": "worker-1", **more})
        assert told["status"] == "claimed", told
        return int(told["execution_epoch"])

    def get(self, id: str) -> Told:
        return self.call("get_agent_task", task_id=id)

    def restart(self, *, killed: bool = False) -> None:
        """Another server comes for the one that there was."""
        if killed:
            abandon(self.store)
        else:
            self.store.close()
        self.store = self.world.store()


def beat(queue: Queue, id: str, epoch: int) -> Told:
    return queue.call("heartbeat_agent_task", task_id=id, execution_epoch=epoch, note="late")


def submit(queue: Queue, id: str, epoch: int) -> Told:
    return queue.call(
        "submit_agent_task", task_id=id, execution_epoch=epoch, outputs=outputs(epoch)
    )


def release(queue: Queue, id: str, epoch: int) -> Told:
    return queue.call("release_agent_task", task_id=id, execution_epoch=epoch)


def fail(queue: Queue, id: str, epoch: int) -> Told:
    final: Told = {"final": True, "reason": "no use"}
    return queue.call("release_agent_task", task_id=id, execution_epoch=epoch, **final)


every_way = pytest.mark.parametrize("way", [beat, submit, release, fail])


@pytest.fixture
def queue(world: World) -> Queue:
    return Queue(world)


def rows(queue: Queue) -> list[list[tuple[Any, ...]]]:
    """All that is kept of tasks."""
    tables = ("tasks ORDER BY seq", "task_epochs ORDER BY task, epoch", "task_payloads")
    return [queue.world.rows(f"SELECT * FROM {table}") for table in tables]


@pytest.mark.requirement("field.1.lapsed-task")
@every_way
def test_what_lapsed_is_refused_and_stays_as_it_is(queue: Queue, way: Way) -> None:
    id = queue.make()
    epoch = queue.claim(id)
    queue.watch(LEASE_MS)
    before = rows(queue)
    assert way(queue, id, epoch)["code"] == "lease_expired"
    assert rows(queue) == before
    assert queue.claim(id) == epoch + 1


@pytest.mark.requirement("field.2.equal-workers", "field.7.every-way-fenced")
@every_way
def test_a_worker_that_was_replaced_can_change_nothing_of_its_namesake(
    queue: Queue, way: Way
) -> None:
    id = queue.make()
    old = queue.claim(id)
    queue.watch(LEASE_MS)
    new = queue.claim(id)
    before = rows(queue)
    told = way(queue, id, old)
    assert (told["code"], told["execution_epoch"], told["holder"]) == (
        "stale_epoch",
        new,
        "worker-1",
    )
    assert rows(queue) == before
    assert "code" not in way(queue, id, new)


@pytest.mark.requirement("field.4.no-stealing-back")
def test_a_late_heartbeat_leaves_the_lease_of_the_next_one(queue: Queue) -> None:
    id = queue.make()
    old = queue.claim(id)
    queue.watch(LEASE_MS)
    new = queue.claim(id)
    end = queue.get(id)["lease_expires_at"]
    queue.watch(10_000)
    told = beat(queue, id, old)
    assert (told["status"], told["lease_expires_at"]) == (409, end)
    assert queue.get(id)["lease_expires_at"] == end
    queue.watch(20_000)
    assert beat(queue, id, new)["code"] == "lease_expired"


@pytest.mark.requirement("field.5.epoch-rises")
@pytest.mark.parametrize("killed", [False, True])
def test_the_epoch_rises_over_everything_and_every_restart(queue: Queue, killed: bool) -> None:
    id = queue.make(lease=60)
    switch: Told = {"scope": "build", "expect_within_seconds": 5}
    for expected, way in enumerate(("lapse", "release", "fire", "lapse", "release"), 2):
        queue.call("heartbeat", **switch)
        assert queue.claim(id, scope="build") == expected
        if way == "release":
            release(queue, id, expected)
        queue.watch(60_000 if way == "lapse" else 6_000)
        if way == "lapse":
            queue.call("heartbeat", **switch)
        queue.restart(killed=killed)
        assert queue.get(id)["execution_epoch"] == expected
    last = queue.claim(id)
    for old in range(1, last):
        # It is held and in force, so only the epoch can be what refuses these.
        assert submit(queue, id, old)["code"] == "stale_epoch"
    assert submit(queue, id, last)["status"] == "submitted"


@pytest.mark.requirement("field.8.expiry-never-null")
def test_what_is_claimed_has_an_end_whatever_was_called(queue: Queue) -> None:
    id = queue.make()
    epoch = queue.claim(id, guard={})

    def holds() -> None:
        found = queue.world.rows("SELECT status, expires_watched FROM tasks")
        assert all((status == "claimed") == (end is not None) for status, end in found)

    holds()
    beat(queue, id, epoch)
    holds()
    queue.world.advance(600_000)  # in which nobody watches
    queue.store.sweep(200)
    holds()
    assert beat(queue, id, epoch)["lease_expires_at"] is not None
    queue.watch(LEASE_MS)
    holds()


@pytest.mark.requirement("field.10.all-renewed-or-named")
def test_one_heartbeat_holds_off_both_clocks_of_a_claim(queue: Queue) -> None:
    id = queue.make()
    epoch = queue.claim(id, guard={})
    for _ in range(4):
        queue.watch(LEASE_MS - 500)
        assert beat(queue, id, epoch)["notes"] == []
    assert queue.get(id)["status"] == "claimed"
    scoped = queue.make()
    queue.claim(scoped, scope="build")
    (note,) = beat(queue, scoped, 2)["notes"]
    assert '"build"' in note


@pytest.mark.requirement("field.11.beating-is-never-reaped")
def test_a_worker_that_beats_keeps_its_task_to_the_timeout_and_no_longer(queue: Queue) -> None:
    id = queue.make(timeout=120)
    timeout = queue.get(id)["timeout_at"]
    epoch = queue.claim(id)
    for _ in range(4):
        queue.watch(29_000)
        told = beat(queue, id, epoch)
        assert (told["status"], told["timeout_at"]) == ("claimed", timeout)
    assert told["lease_expires_at"] == timeout
    queue.watch(4_000)
    assert beat(queue, id, epoch)["code"] == "task_closed"
    assert queue.get(id)["status"] == "timed_out"


@pytest.mark.requirement("field.16.claim-cancels")
def test_a_heartbeat_in_time_cancels_what_the_sweep_would_have_done(queue: Queue) -> None:
    id = queue.make()
    epoch = queue.claim(id, guard={})
    queue.watch(LEASE_MS - 1)
    beat(queue, id, epoch)
    queue.world.advance(1)
    assert queue.store.sweep(200).fired == 0
    assert queue.get(id)["status"] == "claimed"


@pytest.mark.requirement("field.17.no-lapse-early")
def test_no_claim_is_lost_before_the_end_that_was_told(queue: Queue) -> None:
    id = queue.make()
    epoch = queue.claim(id, guard={})
    end = instant(queue.get(id)["lease_expires_at"])
    queue.watch(LEASE_MS - 1)
    told = queue.call("claim_agent_task", task_id=id)
    assert (told["code"], instant(told["server_time"])) == ("already_claimed", (end or 0) - 1)
    assert queue.store.sweep(200).fired == 0
    queue.world.advance(1)
    assert beat(queue, id, epoch)["code"] == "lease_expired"


@pytest.mark.requirement("field.19.claim-and-wall-steps")
@pytest.mark.parametrize("step", [-HOUR_MS, HOUR_MS])
def test_a_step_of_the_wall_clock_leaves_what_is_left_of_a_lease(queue: Queue, step: int) -> None:
    id = queue.make()
    queue.claim(id)
    queue.watch(10_000)
    queue.world.step(step)
    queue.store.sweep(200)
    shown = queue.get(id)
    assert shown["seconds_left"] == 20
    end = instant(shown["lease_expires_at"]) or 0
    assert end - (instant(shown["server_time"]) or 0) == 20_000
    queue.watch(20_000)
    assert queue.get(id)["claimable"] is True


@pytest.mark.requirement("field.23.claim-and-gap")
@pytest.mark.parametrize("lease", [30, 300])
def test_after_a_gap_longer_than_the_lease_its_worker_gets_a_chance(
    queue: Queue, lease: int
) -> None:
    id = queue.make(lease=lease)
    epoch = queue.claim(id, guard={})
    queue.watch(lease * 1000 - 500)
    queue.world.advance(2 * HOUR_MS)
    queue.store.sweep(200)
    told = queue.call("claim_agent_task", task_id=id)
    assert told["code"] == "already_claimed"
    assert queue.get(id)["seconds_left"] == min(lease, 60)
    assert beat(queue, id, epoch)["status"] == "claimed"


@pytest.mark.requirement("field.26.timeout-and-restarts")
def test_restarts_move_no_timeout(queue: Queue) -> None:
    id = queue.make(timeout=30 * 3600)
    for hour in range(30):
        assert queue.get(id)["status"] == "available", hour
        queue.world.advance(HOUR_MS)
        if hour < 29:
            queue.restart(killed=hour % 2 == 0)
    assert queue.get(id)["status"] == "timed_out"


@pytest.mark.requirement("field.31.one-review")
def test_many_servers_on_one_store_leave_one_review(queue: Queue) -> None:
    id = queue.make(timeout=60)
    stores = [queue.store, *(queue.world.store() for _ in range(3))]
    queue.world.watch(*stores, ms=59_500)
    queue.world.advance(500)
    assert [store.sweep(200).timed_out for store in stores] == [1, 0, 0, 0]
    assert [queue.call("get_agent_task", at=store, task_id=id)["status"] for store in stores] == [
        "timed_out"
    ] * 4
    assert queue.world.rows("SELECT count(*) FROM envelopes WHERE box = 'review'") == [(1,)]


class SlowToLook:
    """A store whose looks take until they are let go."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.looking = trio.Event()
        self.go_on = trio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def look(self, ask: Ask) -> Outcome:
        trio.from_thread.run_sync(self.looking.set)
        trio.from_thread.run(self.go_on.wait)
        return self._store.look(ask)


@pytest.mark.requirement("field.46.answers-meanwhile")
@pytest.mark.trio
async def test_heartbeats_are_answered_while_a_list_takes_long(tmp_path: Path) -> None:
    slow = SlowToLook(Store(f"sqlite:///{tmp_path}/store.db"))
    desk = Desk(slow)

    async def call(tool: str, **args: Any) -> Any:
        asked = ask(tool, None if tool == "register" else 0, args)
        told = await desk.call(asked.tool, asked.arguments, asked.secret)
        assert not isinstance(told, Failure), told
        return told

    async with trio.open_nursery() as nursery:
        await nursery.start(desk.run)
        await call("register", agent_secret=SECRETS[0])
        made = await call("create_agent_task", input_snapshot={}, output_contract=[])
        claim = await call("claim_agent_task", task_id=made.id)
        async with trio.open_nursery() as lookers:
            lookers.start_soon(lambda: call("list_agent_tasks"))
            await slow.looking.wait()
            for _ in range(20):
                told = await call("heartbeat_agent_task", task_id=made.id, execution_epoch=2)
                assert told.lease_expires_at >= claim.lease_expires_at
            slow.go_on.set()
        await desk.aclose()


@pytest.mark.requirement("field.49.unavailable-is-no-refusal")
def test_a_store_that_is_away_costs_no_claim(tmp_path: Path) -> None:
    world = World(f"sqlite:///{tmp_path}/store.db")
    queue = Queue(world)
    id = queue.make()
    epoch = queue.claim(id)
    away = tmp_path / "away"
    away.mkdir()
    queue.store.close()
    names = [path.name for path in tmp_path.glob("store.db*")]
    for name in names:
        (tmp_path / name).rename(away / name)
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreError):
        beat(queue, id, epoch)
    (tmp_path / "store.db").rmdir()
    for name in names:
        (away / name).rename(tmp_path / name)
    queue.store = world.store()
    queue.watch(LEASE_MS - 1_500)
    told = beat(queue, id, epoch)
    assert (told.get("code"), told["status"]) == (None, "claimed")
    world.close()
