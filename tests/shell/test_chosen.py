"""Which store a command works on, and what is said of a choice that is none."""

from pathlib import Path

import pytest
import trio

from mcpl_heartbeat.actions import Ask
from mcpl_heartbeat.shell import chosen, watching
from mcpl_heartbeat.shell.environment import read
from mcpl_heartbeat.storage.store.ports import Outcome, StoreError
from mcpl_heartbeat.watch.failures import Failure

ONE, OTHER = "sqlite:////a/one.db", "sqlite:////a/other.db"


@pytest.mark.requirement("watch.serve.store")
def test_the_option_comes_first_then_the_environment_then_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert chosen.store(ONE, {"HEARTBEAT_STORE": OTHER}).url == ONE
    assert chosen.store(None, {"HEARTBEAT_STORE": f" {OTHER}\n"}).url == OTHER
    for unset in ({}, {"HEARTBEAT_STORE": ""}, {"HEARTBEAT_STORE": " "}):
        assert chosen.store(None, unset).url.endswith("/store.db")


@pytest.mark.requirement("watch.serve.store-source")
@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("environ", [{}, {"HEARTBEAT_STORE": OTHER}])
def test_an_empty_option_is_refused(empty: str, environ: dict[str, str]) -> None:
    with pytest.raises(StoreError, match="--store is empty"):
        chosen.store(empty, environ)


@pytest.mark.requirement("watch.serve.store-source")
def test_of_a_wrong_url_it_is_said_where_it_came_from() -> None:
    with pytest.raises(StoreError) as raised:
        chosen.store("/a/one.db", {"HEARTBEAT_STORE": OTHER})
    assert str(raised.value) == f"--store: /a/one.db is a path; write it as a URL, {ONE}"
    with pytest.raises(StoreError) as raised:
        chosen.store(None, {"HEARTBEAT_STORE": "/a/one.db"})
    assert str(raised.value) == f"HEARTBEAT_STORE: /a/one.db is a path; write it as a URL, {ONE}"


@pytest.mark.trio
@pytest.mark.requirement("watch.serve.store-source")
@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("/a/one.db", f"write it as a URL, {ONE}"),
        ("postgresql+psycopg://me@host:port/db", "the store's URL cannot be read"),
    ],
)
async def test_a_stdio_server_says_so_too(tmp_path: Path, url: str, rule: str) -> None:
    files = {
        f"HEARTBEAT_{name}_FILE": str(tmp_path / f"{name}.json") for name in ("CONFIG", "REMINDERS")
    }
    store = watching.on(read(files | {"HEARTBEAT_STORE": url}), "token")
    send, receive = trio.open_memory_channel[Outcome](1)
    store.take(Ask(1, "whoami", None, None))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            store.run, lambda id, outcome: send.send_nowait(outcome), lambda news, asked: None
        )
        outcome = await receive.receive()
        nursery.cancel_scope.cancel()
    assert isinstance(outcome, Failure)
    assert outcome.message.startswith("The store cannot be used now: HEARTBEAT_STORE: ")
    assert rule in outcome.message
