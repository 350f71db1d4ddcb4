"""News for a stdio server: what is looked for, what is settled, who can be woken."""

import threading

import pytest
import trio
import trio.testing

from mcpl_heartbeat.actions import Listen, Seek, Settle, Unsent, Woken
from mcpl_heartbeat.storage.store.ports import News, Work
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.rows import Nudge
from tests.session.watching import alert
from tests.shell.bench import settle, until
from tests.shell.shelf import Post, answered, jump, posted

pytestmark = pytest.mark.trio
NUDGE = Nudge("permits", 1, 1_000)
SOME = News(Reading(real=0), (alert(1),))
ALL = Listen(100, here=True)


@pytest.mark.requirement("watch.push.looked-for")
async def test_news_are_looked_for_while_they_are_wanted(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        await settle()
        await jump(mock_clock, 5)
        assert post.shelf.count("news") == 0
        post.watching.take(Listen(7, here=True))
        await until(lambda: post.shelf.count("news") == 1)
        assert ("news", "a" * 16, "n" * 64, "me", 7) in post.shelf.did
        assert post.news == []
        post.shelf.to_tell.append(SOME)
        before = post.watching._clock.now()
        await jump(mock_clock, 0.5)
        await until(lambda: post.shelf.count("news") == 2 and len(post.news) == 1)
        assert post.news[0][0] == SOME
        assert post.news[0][1].monotonic >= before.monotonic
        await jump(mock_clock, 0.5)
        await until(lambda: len(post.news) == 2)
        assert post.news[1][0].empty, "once, so that what was held is known to be gone"
        assert post.news[1][0].quiet == {"alerts"}
        await jump(mock_clock, 2)
        assert len(post.news) == 2
        post.watching.take(Listen(None, here=False))
        await settle()
        looked = post.shelf.count("news")
        await jump(mock_clock, 60)
        assert post.shelf.count("news") == looked


@pytest.mark.requirement("watch.push.told")
async def test_only_a_look_for_alerts_can_say_that_there_are_none_any_more(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        post.watching.take(ALL)
        post.shelf.to_tell.append(SOME)
        await until(lambda: len(post.news) == 1)
        post.watching.take(Listen(0, here=True))
        looked = post.shelf.count("news")
        await jump(mock_clock, 5)
        await until(lambda: post.shelf.count("news") > looked)
        assert len(post.news) == 1
        post.watching.take(ALL)
        await until(lambda: len(post.news) == 2)
        assert post.news[1][0].empty


@pytest.mark.requirement("watch.push.told", "tasks.push.told")
async def test_of_each_kind_it_is_said_once_that_there_is_nothing_any_more(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        work = Work(of="abcd0123", claimable=3, number=1, real=1, watched=1)
        post.shelf.to_tell.append(News(Reading(real=0), (alert(1),), work=work))
        post.watching.take(ALL)
        post.watching.take(Seek(True))
        await until(lambda: len(post.news) == 1)
        post.watching.take(Seek(False))
        await jump(mock_clock, 2)
        await until(lambda: len(post.news) == 2)
        assert post.news[1][0].quiet == {"alerts"}
        post.watching.take(Seek(True, reviews=9))
        await jump(mock_clock, 2)
        await until(lambda: len(post.news) == 3)
        assert "work" in post.news[2][0].quiet, "it was not looked for until now"
        await jump(mock_clock, 5)
        assert len(post.news) == 3


@pytest.mark.requirement("watch.push.nudge-in-time")
async def test_the_store_is_asked_of_the_nudges_that_are_held(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        post.shelf.to_tell.append(News(Reading(real=0), void=(NUDGE,)))
        post.watching.take(Listen(0, here=True, held=(NUDGE,)))
        await until(lambda: len(post.news) == 1)
        assert ("news", "a" * 16, "n" * 64, "me", 0, NUDGE) in post.shelf.did
        assert post.news[0][0].void == (NUDGE,)
        await jump(mock_clock, 1)
        assert post.shelf.count("news") > 1


@pytest.mark.requirement("watch.push.presence")
async def test_the_store_is_told_who_can_be_woken(mock_clock: trio.testing.MockClock) -> None:
    def presences(post: Post) -> list[bool]:
        return [done[3] for done in post.shelf.did if done[0] == "present"]

    async with posted() as post:
        post.watching.take(ALL)
        await until(lambda: presences(post) == [True])
        await jump(mock_clock, 19)
        assert presences(post) == [True]
        await jump(mock_clock, 2)
        await until(lambda: presences(post) == [True, True])
        post.watching.take(Listen(None, here=False))
        await until(lambda: presences(post) == [True, True, False])
        await jump(mock_clock, 60)
        assert presences(post) == [True, True, False]
        post.watching.take(ALL)
        await until(lambda: presences(post)[3:] == [True])
        await post.watching.aclose()
        assert presences(post)[4:] == [False]
        assert post.shelf.did[-1] == ("close",)


@pytest.mark.requirement("watch.push.presence")
async def test_what_the_store_is_just_being_told_is_taken_back_at_the_end(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        told: list[bool] = []
        on = threading.Event()

        def present(agent: str, token: str, *, here: bool, work: bool = False) -> None:
            told.append(here)
            on.wait()

        post.shelf.present = present
        post.watching.take(ALL)
        await until(lambda: told == [True])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(post.watching.aclose)
            await settle()
            on.set()
        assert told == [True, False]


@pytest.mark.requirement("watch.push.presence", "tasks.push.shell")
async def test_it_is_told_at_once_under_which_feature_set(
    mock_clock: trio.testing.MockClock,
) -> None:
    def presences(post: Post) -> list[tuple[bool, bool]]:
        return [done[3:] for done in post.shelf.did if done[0] == "present"]

    async with posted() as post:
        post.watching.take(Seek(True, reviews=9, here=True))
        await until(lambda: presences(post) == [(False, True)])
        post.watching.take(ALL)
        await until(lambda: presences(post)[1:] == [(True, True)])
        await jump(mock_clock, 21)
        await until(lambda: presences(post)[2:] == [(True, True)])
        post.watching.take(Seek(False))
        await until(lambda: presences(post)[3:] == [(True, False)])
        post.watching.take(Listen(None, here=False))
        await until(lambda: presences(post)[4:] == [(False, False)])
        await jump(mock_clock, 60)
        assert len(presences(post)) == 5


@pytest.mark.requirement("watch.push.once-taken")
async def test_what_was_taken_is_settled_before_the_next_look(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        post.watching.take(ALL)
        await until(lambda: post.shelf.count("news") == 1)
        post.shelf.down = "it is locked"
        post.watching.take(Settle((1, 2), taken=True))
        post.watching.take(Settle((3,), taken=False))
        await settle()
        post.shelf.down = None
        done = len(post.shelf.did)
        await jump(mock_clock, 6)
        await until(lambda: post.shelf.count("news") > 1)
        after = [what for what in post.shelf.did[done:] if what[0] in ("pushed", "news")]
        assert after[:2] == [("pushed", "me", (1, 2), True), ("pushed", "me", (3,), False)]


@pytest.mark.requirement("watch.push.let-go")
async def test_leaving_settles_what_is_open_and_leaves_the_watch() -> None:
    async with posted() as post:
        post.ask(1)
        await answered(post, 1)
        post.watching.take(Settle((4,), taken=False))
        await post.watching.aclose()
        assert post.shelf.did[-2:] == [("pushed", "me", (4,), False), ("close",)]


@pytest.mark.requirement("watch.push.nudge-given-back")
async def test_nudges_are_given_back_as_soon_as_the_store_can_be_used(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        await settle()
        post.shelf.down = "it is locked"
        post.watching.take(Unsent((NUDGE,)))
        await settle()
        post.shelf.down = None
        await jump(mock_clock, 6)
        await until(lambda: ("unsent", "n" * 64, NUDGE) in post.shelf.did)
        post.watching.take(Unsent((NUDGE, NUDGE)))
        await post.watching.aclose()
        assert post.shelf.did[-2:] == [("unsent", "n" * 64, NUDGE, NUDGE), ("close",)]


@pytest.mark.requirement("tasks.push.shell")
async def test_claimable_work_is_looked_for_while_it_is_sought(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        await settle()
        post.watching.take(Seek(True))
        await until(lambda: post.shelf.count("news") == 1)
        looked = ("news", "a" * 16, "n" * 64, "me", None, "work")
        assert post.shelf.did[-1] == looked, "for nothing else, while alerts are not wanted"
        work = Work(of="abcd0123", claimable=3, number=1, real=1, watched=1)
        post.shelf.to_tell.append(News(Reading(real=0), work=work))
        await jump(mock_clock, 0.5)
        await until(lambda: len(post.news) == 1)
        assert post.news[0][0].work == work
        post.watching.take(Woken(work, taken=True))
        await until(lambda: ("woken", "n" * 64, "me", 1, True) in post.shelf.did)
        post.watching.take(Seek(False, reviews=9))
        looked = ("news", "a" * 16, "n" * 64, "me", None, 9)
        await until(lambda: looked in post.shelf.did)
        post.watching.take(Seek(False))
        await settle()
        looks = post.shelf.count("news")
        await jump(mock_clock, 60)
        assert post.shelf.count("news") == looks


@pytest.mark.requirement("tasks.push.shell")
async def test_what_a_host_took_is_told_to_the_store_once_it_can_be_used(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        await settle()
        post.watching.take(Seek(True))
        await until(lambda: post.shelf.count("news") == 1)
        work = Work(of="abcd0123", claimable=3, number=4, real=1, watched=1)
        post.shelf.down = "it is away"
        post.watching.take(Woken(work, taken=True))
        await jump(mock_clock, 5)
        assert post.shelf.count("woken") == 0
        post.shelf.down = None
        await jump(mock_clock, 10)
        await until(lambda: post.shelf.count("woken") == 1)
