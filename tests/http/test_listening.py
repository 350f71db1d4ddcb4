"""--listen: which addresses are taken, and what is said of the others."""

import pytest

from mcpl_heartbeat.shell.http import listening
from mcpl_heartbeat.shell.http.listening import Address, NotListening


@pytest.mark.requirement("watch.serve.listen")
@pytest.mark.parametrize(
    ("text", "address", "url"),
    [
        (listening.DEFAULT, Address("127.0.0.1", 8765), "http://127.0.0.1:8765"),
        ("localhost:0", Address("localhost", 0), "http://localhost:0"),
        ("[::1]:80", Address("::1", 80), "http://[::1]:80"),
        ("127.8.8.8:65535", Address("127.8.8.8", 65_535), "http://127.8.8.8:65535"),
    ],
)
def test_loopback_addresses_are_taken(text: str, address: Address, url: str) -> None:
    assert listening.read(text, allow_remote=False) == address
    assert address.url == url


@pytest.mark.requirement("watch.serve.listen")
@pytest.mark.parametrize(
    "text",
    [
        "", "8765", ":8765", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536",
        "127.0.0.1:-1", "::1:8765", "[127.0.0.1]:80", "[::1]", "[::1]8765", "127.0.0.1:٣",
    ],
)  # fmt: skip
@pytest.mark.parametrize("allowed", [False, True])
def test_what_is_no_address_is_refused(text: str, allowed: bool) -> None:
    with pytest.raises(NotListening, match="--listen"):
        listening.read(text, allow_remote=allowed)


@pytest.mark.requirement("watch.serve.listen-advice")
@pytest.mark.parametrize(
    ("url", "scheme", "right"),
    [
        ("http://127.0.0.1:9000", "http", "127.0.0.1:9000"),
        ("http://[::1]:9000/", "http", "[::1]:9000"),
        ("https://localhost:9000/mcp", "https", "localhost:9000"),
        ("http://", "http", listening.DEFAULT),
    ],
)
def test_of_a_url_it_is_said_what_to_leave_out(url: str, scheme: str, right: str) -> None:
    with pytest.raises(NotListening) as raised:
        listening.read(url, allow_remote=False)
    said = f"--listen {url}: leave {scheme}:// out: --listen {right}."
    assert str(raised.value) == said
    assert listening.read(right, allow_remote=False)


@pytest.mark.requirement("watch.serve.remote")
@pytest.mark.parametrize("text", ["0.0.0.0:8765", "[::]:8765", "10.0.0.7:80", "watch.example:80"])
def test_other_machines_are_let_in_only_when_told_to(text: str) -> None:
    with pytest.raises(NotListening, match="secrets"):
        listening.read(text, allow_remote=False)
    assert listening.read(text, allow_remote=True).port in {80, 8765}


@pytest.mark.trio
@pytest.mark.requirement("watch.serve.listen")
async def test_port_0_takes_one_and_tells_which() -> None:
    taken, address = await listening.listeners(Address("localhost", 0))
    try:
        assert len(taken) == 1
        assert address.port == taken[0].socket.getsockname()[1] > 0
    finally:
        for each in taken:
            await each.aclose()


@pytest.mark.trio
@pytest.mark.requirement("watch.serve.port-taken")
async def test_a_port_that_is_taken_is_named() -> None:
    taken, address = await listening.listeners(Address("127.0.0.1", 0))
    try:
        with pytest.raises(NotListening, match=f"{address.port}.*another program"):
            await listening.listeners(address)
    finally:
        for each in taken:
            await each.aclose()
    with pytest.raises(NotListening, match="cannot be listened on"):
        await listening.listeners(Address("no-such-host.invalid", 0))
