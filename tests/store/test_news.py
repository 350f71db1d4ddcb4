"""Looking for news is reading, until there are some."""

import contextlib
from collections.abc import Iterator

import pytest

from mcpl_heartbeat.storage.store import engine as engines
from mcpl_heartbeat.storage.store import transactions, urls
from mcpl_heartbeat.storage.store.ports import News, StoreError
from tests.store.tasks.queue import new
from tests.store.world import SECRET, World, beat, call, register


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up at once what others are in the way of."""
    monkeypatch.setattr(engines, "BUSY_MS", 1)
    monkeypatch.setattr(transactions, "PATIENCE_S", 0.0)


@contextlib.contextmanager
def _writing(world: World) -> Iterator[None]:
    """Somebody else is at writing."""
    with engines.make_engine(urls.read(world.url)).connect() as conn:
        engines.begin_writing(conn)
        yield


@pytest.mark.requirement("watch.push.looks-only")
def test_who_finds_nothing_new_waits_for_no_writer(world: World, impatient: None) -> None:
    store = world.store()
    me = str(register(store).address)
    beat(store, seconds=30, on_expiry=["queue_alert"], notify_address=me, nudge_seconds=10)
    beat(store, "worker", seconds=600, wake_on_tasks=True)
    who = store.identify(SECRET)
    assert who is not None

    def look(server: str = "a") -> News:
        return store.news(who.agent, who.namespace, server, 5, work=True, reviews=5)

    with _writing(world):
        assert look().empty
    world.watch(store, ms=20_500)
    with _writing(world), pytest.raises(StoreError):
        look()
    store.open()
    assert [nudge.scope for nudge in look().nudges] == ["work"]
    world.watch(store, ms=10_000)
    call(store, "create_agent_task", **new())
    world.watch(store, ms=500)
    with _writing(world), pytest.raises(StoreError):
        look()
    store.open()
    claimed = look()
    assert claimed.work is not None
    with _writing(world):
        # What is claimed already is told again, and stays another's for the others.
        again = look()
        assert (len(again.alerts), again.work) == (1, claimed.work)
        assert look("b").empty
    world.watch(store, ms=31_000)
    with _writing(world), pytest.raises(StoreError):
        # It lapses, unless it is claimed anew.
        look()


@pytest.mark.requirement("watch.push.looks-only", "watch.gap.before-anything")
def test_a_gap_is_noted_before_anything_is_told(world: World) -> None:
    store = world.store()
    me = str(register(store).address)
    beat(store, seconds=30, on_expiry=["queue_alert"], notify_address=me, nudge_seconds=10)
    world.advance(25_000)
    who = store.identify(SECRET)
    assert who is not None
    assert store.news(who.agent, who.namespace, "a", 5).empty
    assert len(world.rows("SELECT * FROM gaps")) == 1
