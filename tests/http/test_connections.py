"""Raw bytes over a socket: the quick way, what goes to Hypercorn instead, and the stop."""

import msgspec
import pytest
import trio
import trio.testing

from mcpl_heartbeat.shell.http.connections import Connections
from mcpl_heartbeat.shell.http.replies import MAX_BODY
from mcpl_heartbeat.watch.failures import Failure
from tests.http.support import SECRET, NotingDesk
from tests.http.wire import HEAD, PLAIN, stage

pytestmark = pytest.mark.trio


@pytest.mark.requirement("watch.http.connections")
async def test_a_connection_stays_open_for_the_next_request() -> None:
    async with stage() as at:
        peer = await at.connect()
        for _ in range(3):
            await peer.send(PLAIN)
            status, headers, body = await peer.answer()
            assert (status, headers["content-type"]) == (200, "application/json")
            assert headers["date"].endswith("GMT")
            assert body.startswith(b"{")
    assert len(at.desk.calls) == 3


@pytest.mark.requirement("watch.http.connections")
async def test_requests_cut_anywhere_and_sent_ahead_are_answered_in_order() -> None:
    other = PLAIN.replace(b"/v1/whoami", b"/v1/nowhere")
    stream = PLAIN + other + PLAIN
    async with stage() as at:
        peer = await at.connect()
        for cut in range(0, len(stream), 7):
            await peer.send(stream[cut : cut + 7])
        assert [(await peer.answer())[0] for _ in range(3)] == [200, 404, 200]
        peer = await at.connect()
        await peer.send(stream)
        assert [(await peer.answer())[0] for _ in range(3)] == [200, 404, 200]


@pytest.mark.requirement("watch.http.connections")
async def test_a_client_that_says_close_is_answered_and_left() -> None:
    async with stage() as at:
        peer = await at.connect()
        await peer.send(HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
        assert (await peer.answer())[0] == 200
        assert await peer.closed()


@pytest.mark.requirement("watch.http.connections")
@pytest.mark.parametrize(
    "request_bytes",
    [
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"/v1/", b"/%76%31/") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"POST /v1/whoami", b"GET /healthz") + b"\r\n",
        HEAD.replace(b"POST /v1/whoami", b"GET /healthz") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"POST /v1/whoami", b"GET /v1/agent-tasks?limit=1") + b"\r\n",
        HEAD + b"\r\n",
    ],
)
async def test_whatever_is_not_plain_is_answered_too(request_bytes: bytes) -> None:
    async with stage() as at:
        peer = await at.connect()
        await peer.send(PLAIN)
        assert (await peer.answer())[0] == 200
        await peer.send(request_bytes)
        assert (await peer.answer())[0] == 200


@pytest.mark.requirement("watch.http.connections", "tasks.http.query")
async def test_a_worker_that_lists_and_claims_stays_on_the_quick_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handed_over = []

    async def note(self: Connections, stream: object) -> None:
        handed_over.append(stream)

    monkeypatch.setattr(Connections, "_hand_over", note)
    look = HEAD.replace(b"POST /v1/whoami", b"GET /v1/agent-tasks?status=available&limit=7")
    async with stage() as at:
        peer = await at.connect()
        await peer.send(PLAIN + look + b"\r\n" + look + b"Content-Length: 0\r\n\r\n" + PLAIN)
        assert [(await peer.answer())[0] for _ in range(4)] == [200] * 4
    assert [tool for tool, _, _ in at.desk.calls] == [
        "whoami",
        "list_agent_tasks",
        "list_agent_tasks",
        "whoami",
    ]
    assert at.desk.calls[1][1].limit == 7
    assert not handed_over


@pytest.mark.requirement("watch.http.connections")
async def test_a_client_that_waits_to_be_told_to_go_on_is_told() -> None:
    async with stage() as at:
        peer = await at.connect()
        await peer.send(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert (await peer.answer())[0] == 100
        await peer.send(b"{}")
        assert (await peer.answer())[0] == 200


@pytest.mark.requirement("watch.http.too-large")
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 99999999\r\n", b"Transfer-Encoding: chunked\r\n"]
)
async def test_a_body_that_is_too_long_is_refused_while_it_comes(framing: bytes) -> None:
    async with stage() as at:
        peer = await at.connect()
        await peer.send(HEAD + framing + b"\r\n")
        size = MAX_BODY + 70_000
        with trio.CancelScope() as sending:
            async with trio.open_nursery() as nursery:

                @nursery.start_soon
                async def send() -> None:
                    try:
                        chunk = b"%x\r\n" % size if b"chunked" in framing else b""
                        await peer.send(chunk + b" " * size)
                    except trio.BrokenResourceError:
                        pass

                status, _, body = await peer.answer()
                sending.cancel()
    assert status == 413
    assert b"too_large" in body
    assert not at.desk.calls


@pytest.mark.requirement("watch.http.malformed")
@pytest.mark.parametrize(
    "sent",
    [
        b"HELLO\r\n\r\n",
        HEAD + b"Content-Length: two\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        HEAD + b"Bad Header: x\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        HEAD + b"X: " + b"x" * 70_000,
        HEAD.replace(b"Host: localhost\r\n", b"") + b"Content-Length: 2\r\n\r\n{}",
    ],
)
async def test_what_is_no_http_is_refused_in_the_one_shape(sent: bytes) -> None:
    async with stage() as at:
        peer = await at.connect()
        await peer.send(sent)
        status, headers, body = await peer.answer()
        assert msgspec.json.decode(body, type=Failure).status == status
        assert headers["connection"] == "close"
        await at.ended.wait()
    assert status in {400, 413, 431}
    assert not at.desk.calls


@pytest.mark.requirement("watch.http.malformed")
@pytest.mark.parametrize("sent", [b"HELLO\r\n\r\n", b"POST / HTTP/1.1\r\nX: " + b"x" * 70_000])
async def test_what_is_no_http_is_so_for_hypercorn_too(sent: bytes) -> None:
    async with stage() as at:
        peer = await at.connect()
        await peer.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        assert (await peer.answer())[0] == 200
        await peer.send(sent)
        status, headers, body = await peer.answer()
        assert msgspec.json.decode(body, type=Failure).status == status
        assert headers["connection"] == "close"
        assert await peer.closed()
    assert status == (413 if len(sent) > 65_536 else 400)


@pytest.mark.requirement("watch.http.malformed")
async def test_a_body_that_breaks_off_its_framing_is_refused_in_the_one_shape() -> None:
    async with stage() as at:
        peer = await at.connect()
        await peer.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\nno number\r\n")
        status, _, body = await peer.answer()
        assert (status, msgspec.json.decode(body, type=Failure).status) == (400, 400)
        assert await peer.closed()
    assert not at.desk.calls


@pytest.mark.requirement("watch.serve.stop")
async def test_closing_ends_what_is_idle_and_finishes_what_runs() -> None:
    going, answered = trio.Event(), trio.Event()

    class SlowDesk(NotingDesk):
        async def call(self, tool, arguments, secret):
            going.set()
            await answered.wait()
            return await super().call(tool, arguments, secret)

    async with stage(SlowDesk()) as at:
        idle, idle_elsewhere, busy = [await at.connect() for _ in range(3)]
        await idle_elsewhere.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await idle_elsewhere.answer())[0] == 200
        await busy.send(PLAIN + PLAIN)
        await going.wait()
        await at.connections.close()
        assert await idle.closed()
        assert await idle_elsewhere.closed()
        answered.set()
        status, headers, _ = await busy.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert await busy.closed()
    assert len(at.desk.calls) == 1, "the request sent ahead is not begun"


@pytest.mark.requirement("watch.http.own-fault")
async def test_an_application_that_raises_costs_its_connection_alone(caplog) -> None:
    async def broken(scope, receive, send):
        raise RuntimeError("a fault")

    async with stage(app=broken) as at:
        peer = await at.connect()
        await peer.send(PLAIN)
        assert await peer.closed()
        await at.ended.wait()
    assert "a fault" in caplog.text
    assert SECRET not in caplog.text
