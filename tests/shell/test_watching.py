"""The shared store as a stdio server uses it, over trio's own clock."""

import threading

import msgspec
import pytest
import trio
import trio.testing

from mcpl_heartbeat.actions import Listen
from mcpl_heartbeat.shell.agent_key import Key, NoKeyError
from mcpl_heartbeat.storage.store.ports import News, StoreError
from mcpl_heartbeat.watch.arguments import HeartbeatArguments, RegisterArguments
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.rows import Identity, Nudge
from tests.shell.bench import settle, until
from tests.shell.shelf import GIVEN, OWN, SECRET, Shelf, answered, jump, posted, warnings

pytestmark = pytest.mark.trio
SOME = News(Reading(real=0), (), (Nudge("permits", 1, 1_000),))
ALL = Listen(100, here=True)


@pytest.mark.requirement("watch.mcp.asked")
async def test_asks_reach_the_store_in_the_order_in_which_they_came() -> None:
    async with posted() as post:
        post.shelf.register("other")
        for id in range(50):
            post.ask(id, secret="other" if id % 3 else None)
        await answered(post, *range(50))
        scopes = [
            ask.arguments.scope
            for ask in post.shelf.asked
            if isinstance(ask.arguments, HeartbeatArguments)
        ]
        assert scopes == [f"scope-{id}" for id in range(50)]
        assert not post.watching.busy


@pytest.mark.requirement("watch.identity.registers-itself")
async def test_a_key_that_the_store_does_not_know_is_registered_once() -> None:
    async with posted() as post:
        for id in range(3):
            post.ask(id)
        await answered(post, 0, 1, 2)
        registered = [ask for ask in post.shelf.asked if ask.tool == "register"]
        assert len(registered) == 1
        assert list(post.shelf.known) == [SECRET]
        assert {ask.secret for ask in post.shelf.asked if ask.tool == "heartbeat"} == {SECRET}


@pytest.mark.requirement("watch.identity.registers-itself")
async def test_it_happens_though_nobody_asks_as_soon_as_the_store_answers(
    mock_clock: trio.testing.MockClock,
) -> None:
    shelf = Shelf()
    shelf.down = "it is gone"
    async with posted(shelf) as post:
        await settle()
        shelf.down = None
        for _ in range(40):
            await jump(mock_clock, 1)
            if post.shelf.known:
                break
        assert list(post.shelf.known) == [SECRET]


@pytest.mark.requirement("watch.identity.registers-itself")
async def test_a_store_that_has_forgotten_us_is_told_again() -> None:
    async with posted() as post:
        post.ask(1)
        await answered(post, 1)
        post.shelf.known.clear()
        post.ask(2)
        await answered(post, 2)
        assert not isinstance(post.outcome(2), Failure)
        assert list(post.shelf.known) == [SECRET]


@pytest.mark.requirement("watch.identity.registered-anew")
async def test_a_new_key_is_registered_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async with posted() as post:
        post.ask(1, tool="whoami")
        await answered(post, 1)
        assert post.outcome(1).notes == ()
        registered = next(ask.arguments for ask in post.shelf.asked if ask.tool == "register")
        assert isinstance(registered, RegisterArguments)
        assert registered.label == "keeper"
    assert warnings(caplog) == []


@pytest.mark.requirement("watch.identity.registered-anew")
@pytest.mark.parametrize("when", ["before the start", "meanwhile"])
async def test_a_key_of_another_store_is_registered_anew_and_said(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = msgspec.structs.replace(OWN, new=when == "meanwhile")
    async with posted(find_key=lambda: old) as post:
        post.ask(1)
        await answered(post, 1)
        if when == "meanwhile":
            assert warnings(caplog) == []
            post.shelf.known.clear()
        post.ask(2)
        post.ask(3, tool="whoami")
        post.ask(4, tool="inbox_poll")
        await answered(post, 2, 3, 4)
        (note,) = post.outcome(3).notes
        for part in ("sqlite:////s.db", "/data/keeper.agent-key", f"agent:{'a' * 16}"):
            assert part in note
        assert (post.outcome(2).notes, post.outcome(4).notes) == ((), ())
    assert warnings(caplog) == [note]
    assert SECRET not in note


@pytest.mark.requirement("watch.identity.registered-anew")
async def test_a_key_that_another_server_registered_first_is_no_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf = Shelf()
    find = shelf.identify

    def identify(secret: str) -> Identity | None:
        found = find(secret)
        shelf.register(secret)  # by another, just after we looked
        return found

    shelf.identify = identify
    async with posted(shelf, lambda: msgspec.structs.replace(OWN, new=False)) as post:
        post.ask(1, tool="whoami")
        await answered(post, 1)
        assert post.outcome(1).notes == ()
        assert [ask.tool for ask in shelf.asked] == ["register", "whoami"]
    assert warnings(caplog) == []


@pytest.mark.requirement("watch.identity.given-key")
async def test_a_given_key_that_the_store_does_not_know_is_refused(
    mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with posted(find_key=lambda: GIVEN) as post:
        post.watching.take(ALL)
        post.shelf.register("other")
        post.ask(1)
        post.ask(2, tool="whoami")
        post.ask(3, secret="other")
        await answered(post, 1, 2, 3)
        for id in (1, 2):
            failure = post.outcome(id)
            assert (failure.code, failure.status) == ("unauthorized", 401)
            assert "HEARTBEAT_AGENT_KEY" in failure.message
            assert "sqlite:////s.db" in failure.message
            assert "agent_secret" in failure.next
            assert "HEARTBEAT_STORE" in failure.next
            assert SECRET not in failure.message + failure.next
        assert not isinstance(post.outcome(3), Failure)
        await jump(mock_clock, 30)
        assert list(post.shelf.known) == ["other"], "nothing is registered for it"
        assert (post.shelf.count("news"), post.shelf.count("present")) == (0, 0)
    assert len(warnings(caplog)) == 1
    assert "HEARTBEAT_AGENT_KEY" in warnings(caplog)[0]


@pytest.mark.requirement("watch.identity.given-key")
async def test_a_given_key_is_used_once_somebody_has_registered_it(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted(find_key=lambda: GIVEN) as post:
        post.watching.take(ALL)
        post.ask(1)
        await answered(post, 1)
        assert isinstance(post.outcome(1), Failure)
        post.shelf.register(SECRET)
        post.ask(2)
        await answered(post, 2)
        assert not isinstance(post.outcome(2), Failure), "whoever asks is told what holds now"
        await jump(mock_clock, 1)
        await until(lambda: post.shelf.count("news") > 0 and post.shelf.count("present") > 0)


@pytest.mark.requirement("watch.identity.given-key")
async def test_it_is_looked_for_now_and_then_though_nobody_asks(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted(find_key=lambda: GIVEN) as post:
        post.watching.take(ALL)
        await jump(mock_clock, 20)
        assert post.shelf.count("present") == 0
        post.shelf.register(SECRET)
        await jump(mock_clock, 10)
        await until(lambda: post.shelf.count("present") > 0)


@pytest.mark.requirement("watch.identity.given-key")
async def test_a_given_key_that_the_store_has_forgotten_is_refused_and_said_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with posted(find_key=lambda: GIVEN) as post:
        for id in (1, 3):
            post.shelf.register(SECRET)
            post.ask(id)
            await answered(post, id)
            assert not isinstance(post.outcome(id), Failure)
            post.shelf.known.clear()
            post.ask(id + 1)
            await answered(post, id + 1)
            assert "sqlite:////s.db" in post.outcome(id + 1).message
        assert [ask.tool for ask in post.shelf.asked] == ["heartbeat"] * 4
    assert len(warnings(caplog)) == 2


@pytest.mark.requirement("watch.identity.given-key")
async def test_with_the_store_away_nothing_is_said_of_the_key() -> None:
    async with posted(find_key=lambda: GIVEN) as post:
        post.ask(1)
        await answered(post, 1)
        post.shelf.down = "the disk is full"
        post.ask(2)
        await answered(post, 2)
        assert post.outcome(2).code == "unavailable"


@pytest.mark.requirement("watch.identity.given-key")
@pytest.mark.parametrize("quote", ['"', "'"])
async def test_quotation_marks_around_a_given_key_are_named(quote: str) -> None:
    async with posted(find_key=lambda: Key(f"{quote}{SECRET}{quote}")) as post:
        post.shelf.register(SECRET)
        post.ask(1)
        await answered(post, 1)
        assert "quotation marks" in post.outcome(1).message


@pytest.mark.requirement("watch.mcp.failure")
async def test_a_store_that_cannot_be_used_is_said_and_used_again_when_it_can(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with posted() as post:
        post.ask(1)
        await answered(post, 1)
        post.shelf.down = "the disk is full"
        post.ask(2)
        await answered(post, 2)
        assert post.outcome(2).code == "unavailable"
        assert "the disk is full" in post.outcome(2).message
        post.shelf.down = None
        await jump(mock_clock, 6)
        post.ask(3)
        await answered(post, 3)
        assert not isinstance(post.outcome(3), Failure)


@pytest.mark.requirement("watch.mcp.no-store")
async def test_a_store_that_never_answers_is_said_to_all_who_ask(
    mock_clock: trio.testing.MockClock,
) -> None:
    shelf = Shelf()
    gate, at_the_gate = threading.Event(), threading.Event()

    def hang() -> None:
        at_the_gate.set()
        gate.wait()

    shelf.open = hang
    async with posted(shelf) as post:
        await until(at_the_gate.is_set)
        post.ask(1)
        post.ask(2, secret="other")
        await jump(mock_clock, 12)
        assert [post.outcome(id).code for id in (1, 2)] == ["unavailable"] * 2
        post.ask(3)
        await answered(post, 3)
        assert "has not answered" in post.outcome(3).message
        gate.set()


@pytest.mark.requirement("watch.mcp.no-store")
async def test_a_store_that_is_none_is_said_for_good() -> None:
    async with posted() as post:
        post.broken = StoreError("a store is named otherwise")
        post.ask(1)
        await answered(post, 1)
        post.ask(2, secret=SECRET)
        await answered(post, 2)
        for id in (1, 2):
            assert post.outcome(id).code == "unavailable"
            assert "named otherwise" in post.outcome(id).message
            assert "operator" in post.outcome(id).next
        assert not post.watching.busy
        await post.watching.aclose()


@pytest.mark.requirement("watch.mcp.no-store")
async def test_a_fault_of_ours_ends_the_watch_wing_and_nothing_else() -> None:
    def broken() -> Key:
        raise LookupError("no such luck")

    async with posted(find_key=broken) as post:
        post.ask(1)
        await answered(post, 1)
        post.ask(2)
        await answered(post, 2)
        assert post.outcome(2).code == "unavailable"
        assert "luck" not in post.outcome(2).message


@pytest.mark.requirement("watch.identity.key-kept")
async def test_without_a_key_the_reason_is_said_and_other_keys_go_on(
    mock_clock: trio.testing.MockClock,
) -> None:
    troubles = [NoKeyError("The key file is empty.", "Mend it.")]

    def find() -> Key:
        if troubles:
            raise troubles[0]
        return OWN

    async with posted(find_key=find) as post:
        post.ask(1)
        post.shelf.register("other")
        post.ask(3, secret="other")
        await answered(post, 1, 3)
        assert post.outcome(1).code == "unauthorized"
        assert (post.outcome(1).message, post.outcome(1).next) == (
            "The key file is empty.",
            "Mend it.",
        )
        assert not isinstance(post.outcome(3), Failure)
        troubles.clear()
        await jump(mock_clock, 2)
        post.ask(4)
        await answered(post, 4)
        assert not isinstance(post.outcome(4), Failure)


@pytest.mark.requirement("watch.identity.key-kept")
async def test_what_is_wrong_with_the_key_is_said_where_one_looks() -> None:
    async with posted(
        find_key=lambda: msgspec.structs.replace(OWN, note="Others can read it.")
    ) as post:
        post.ask(1, tool="whoami")
        post.ask(2)
        await answered(post, 1, 2)
        assert post.outcome(1).notes == ("Others can read it.",)
        assert post.outcome(2).notes == ()
