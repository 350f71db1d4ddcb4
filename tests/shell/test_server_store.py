"""The server with a shared store: its outcomes reach the session, and its end waits for them."""

from typing import Any

import pytest
import trio
import trio.testing

from mcpl_heartbeat.actions import Ask, Listen, Moment, Settle
from mcpl_heartbeat.shell.ports import Report, Tell
from mcpl_heartbeat.shell.server import Server
from tests.shell.bench import Bench, settle, until

pytestmark = pytest.mark.trio


class Slow:
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        self.taken: list[Ask | Listen | Settle] = []
        self.waiting: set[int] = set()
        self.closed = False
        self.tell: Tell = lambda id, outcome: None
        self.report: Report = lambda news, asked: None

    async def run(self, tell: Tell, report: Report) -> None:
        def told(id: int, outcome: Any) -> None:
            self.waiting.discard(id)
            tell(id, outcome)

        self.tell, self.report = told, report
        await trio.sleep_forever()

    def take(self, action: Ask | Listen | Settle) -> None:
        self.taken.append(action)
        if isinstance(action, Ask):
            self.waiting.add(action.id)

    @property
    def busy(self) -> bool:
        return bool(self.waiting)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed = True


@pytest.fixture
async def at_work(nursery: trio.Nursery) -> Any:
    bench, store = Bench(), Slow()
    bench.server = Server(
        bench.core, bench.source, bench.sink, bench.files, bench.clock, watching=store
    )
    nursery.start_soon(bench.run)
    await until(lambda: len(bench.core.openings) == 1)
    yield bench, store
    nursery.cancel_scope.cancel()
    bench.clear()


@pytest.mark.requirement("watch.mcp.asked")
async def test_an_outcome_reaches_the_host_and_holds_up_nothing(at_work: Any) -> None:
    bench, store = at_work
    bench.send("ask 1\nping\n")
    assert await bench.line() == b"pong\n"
    assert store.busy
    store.tell(1, "done")
    assert await bench.line() == b"told 1 done\n"
    store.report("bad", Moment(0, 0))
    assert await bench.line() == b"news bad\n"


@pytest.mark.requirement("stdio.ends-without-loss", "watch.mcp.leaves")
async def test_the_end_of_input_waits_for_what_was_asked(at_work: Any) -> None:
    bench, store = at_work
    bench.send("ask 1\n")
    await until(lambda: store.busy)
    bench.hang_up()
    await settle()
    assert not bench.ended.is_set()
    assert not store.closed
    store.tell(1, "done")
    await bench.ended.wait()
    assert bench.taken() == b"told 1 done\n"
    assert store.closed


@pytest.mark.requirement("stdio.ends-quickly", "watch.mcp.leaves")
async def test_but_no_longer_than_a_second(
    at_work: Any, mock_clock: trio.testing.MockClock
) -> None:
    bench, store = at_work
    bench.send("ask 1\n")
    await until(lambda: store.busy)
    bench.server.stop()
    await settle()
    mock_clock.jump(1.01)
    await settle()
    assert bench.ended.is_set()
    assert store.closed, "also then it is left in good order"
