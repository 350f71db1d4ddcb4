"""Clients that say or take nothing more, only dribble, or leave."""

from contextlib import suppress

import pytest
import trio
import trio.testing

from mcpl_heartbeat.shell.http.app import application
from mcpl_heartbeat.shell.http.connections import IDLE, SLOW, Connections
from tests.http.support import NotingDesk
from tests.http.wire import HEAD, PLAIN, stage

pytestmark = pytest.mark.trio


class InMemory:
    """The server's end of a stream without sockets, so that the clock may jump."""

    family = trio.socket.AF_INET

    def __init__(self, stream: trio.StapledStream) -> None:
        self.receive_some = stream.receive_some
        self.send_all = stream.send_all
        self.aclose = stream.aclose
        self.socket = self

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    getsockname = getpeername

    async def send_eof(self) -> None:
        pass


@pytest.mark.requirement("watch.http.slow-clients")
@pytest.mark.parametrize(
    ("sent", "within"),
    [
        (b"", IDLE),
        (HEAD, SLOW),
        (HEAD + b"Content-Length: 2\r\n\r\n{", SLOW),
        (PLAIN, IDLE),
        (PLAIN + HEAD, SLOW),
    ],
)
async def test_a_client_that_says_no_more_is_left(
    sent: bytes, within: float, autojump_clock
) -> None:
    desk = NotingDesk()
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_all(sent)
    await Connections(application(desk, "127.0.0.1")).serve(InMemory(theirs))
    assert trio.current_time() == pytest.approx(within)
    assert len(desk.calls) == sent.count(PLAIN)


@pytest.mark.requirement("watch.http.slow-clients")
@pytest.mark.parametrize(
    ("sent", "drop"),
    [
        (b"", b"P"),
        (HEAD, b"X: y\r\n"),
        (HEAD + b"Content-Length: 99\r\n\r\n", b" "),
        (PLAIN + HEAD, b"X: y\r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
)
async def test_a_client_that_dribbles_is_left_in_time_too(
    sent: bytes, drop: bytes, autojump_clock
) -> None:
    desk = NotingDesk()
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def dribble() -> None:
            await ours.send_all(sent)
            with suppress(trio.BrokenResourceError):
                while True:
                    await ours.send_all(drop)
                    await trio.sleep(7)

        await Connections(application(desk, "127.0.0.1")).serve(InMemory(theirs))
        nursery.cancel_scope.cancel()
    assert trio.current_time() == pytest.approx(SLOW)
    assert len(desk.calls) == sent.count(PLAIN)


@pytest.mark.requirement("watch.http.slow-clients")
@pytest.mark.parametrize(
    "sent", [PLAIN, HEAD.replace(b"POST /v1/whoami", b"GET /healthz") + b"\r\n"]
)
async def test_a_client_that_takes_no_answer_is_left(sent: bytes, autojump_clock, caplog) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    connections = Connections(application(NotingDesk(), "127.0.0.1"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connections.serve, InMemory(theirs))
        await ours.send_all(sent)
    assert trio.current_time() == pytest.approx(SLOW)
    assert not caplog.records


@pytest.mark.requirement("watch.http.slow-clients")
@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\n{", PLAIN])
async def test_a_client_that_leaves_costs_nothing(sent: bytes, caplog) -> None:
    async with stage() as at:
        peer = await at.connect()
        if sent:
            await peer.send(sent)
        await trio.aclose_forcefully(peer.stream)
        await at.ended.wait()
    assert not caplog.records
