"""The process that ``mcpl-heartbeat serve`` is: its start, its troubles and its end."""

import importlib.util
import signal
import sqlite3
import threading
from pathlib import Path

import httpx
import pytest

from mcpl_heartbeat import cli
from tests.http.server import PATIENCE, server

STORE = "sqlite:///{}/store.db"


@pytest.mark.requirement("watch.serve.start")
def test_it_says_in_one_line_where_it_listens_and_on_which_store(tmp_path: Path) -> None:
    with server(tmp_path, "--store", STORE.format(tmp_path)) as started:
        url = started.url
        assert httpx.get(f"{url}/healthz").status_code in {200, 503}
        registered = httpx.post(f"{url}/v1/register", json={})
        assert registered.status_code == 200
        assert started.stop()[0] == 0
        status, out, err = started.ended()
    assert (status, out) == (0, "")
    [line] = err.splitlines()
    assert line.endswith(f"Listening on {url}, on the store {STORE.format(tmp_path)}")
    assert registered.json()["agent_secret"] not in err


@pytest.mark.requirement("watch.serve.store")
def test_the_store_is_the_options_the_environments_or_in_the_data_folder(tmp_path: Path) -> None:
    one, other = STORE.format(tmp_path / "one"), STORE.format(tmp_path / "other")
    with server(tmp_path, "--store", one, HEARTBEAT_STORE=other) as started:
        assert started.said("on the store (.*)")[1] == one
    with server(tmp_path, HEARTBEAT_STORE=other) as started:
        assert started.said("on the store (.*)")[1] == other
    with server(tmp_path, HEARTBEAT_STORE="") as started:
        found = started.said("on the store sqlite:///(.*)")[1]
    assert found.startswith(str(tmp_path))
    assert found.endswith("mcpl-heartbeat/store.db")


@pytest.mark.requirement("watch.serve.stop")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_0_though_clients_stay(tmp_path: Path, number: int) -> None:
    with server(tmp_path, "--store", STORE.format(tmp_path)) as started:
        url = started.url
        with httpx.Client() as idle, httpx.Client() as idle_elsewhere:
            idle.post(f"{url}/v1/register", json={})
            idle_elsewhere.get(f"{url}/healthz")
            status, seconds = started.stop(number)
        assert status == 0
        assert seconds < 5
        assert "Traceback" not in started.ended()[2]


@pytest.mark.requirement("watch.serve.stop")
def test_a_request_that_runs_is_finished_first(tmp_path: Path) -> None:
    with server(tmp_path, "--store", STORE.format(tmp_path)) as started:
        url = started.url
        secret = httpx.post(f"{url}/v1/register", json={}).json()["agent_secret"]
        writer = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        answers: list[httpx.Response] = []

        def beat() -> None:
            answers.append(
                httpx.post(
                    f"{url}/v1/heartbeat",
                    json={"scope": "s", "expect_within_seconds": 300},
                    headers={"authorization": f"Bearer {secret}"},
                    timeout=PATIENCE,
                )
            )

        beating = threading.Thread(target=beat)
        beating.start()
        # The metrics are read beside the writers' lane; two run: the beat and this.
        while "requests_running 2.0" not in httpx.get(f"{url}/metrics").text:
            assert beating.is_alive()
        started.process.send_signal(signal.SIGTERM)
        refused = threading.Event()
        while not refused.wait(0.02):
            try:
                httpx.get(f"{url}/healthz")
            except httpx.TransportError:
                refused.set()
        writer.execute("COMMIT")
        writer.close()
        beating.join(PATIENCE)
        assert answers[0].status_code == 200
        assert answers[0].headers["connection"] == "close"
        assert started.ended()[0] == 0


@pytest.mark.requirement("watch.serve.stop")
def test_a_store_that_hangs_does_not_keep_it(tmp_path: Path) -> None:
    with server(tmp_path, "--store", STORE.format(tmp_path)) as started:
        url = started.url
        httpx.post(f"{url}/v1/register", json={})
        writer = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        try:
            status, seconds = started.stop()
        finally:
            writer.close()
    assert status == 0
    assert seconds < 6


@pytest.mark.requirement("watch.serve.port-taken")
def test_a_port_that_is_taken_ends_it_with_one_line(tmp_path: Path) -> None:
    with server(tmp_path, "--store", STORE.format(tmp_path)) as first:
        listen = first.url.removeprefix("http://")
        with server(tmp_path, "--listen", listen, "--store", STORE.format(tmp_path)) as second:
            status, out, err = second.ended()
    assert (status, out) == (1, "")
    assert err.count("\n") == 0
    assert listen in err
    assert "another program has taken the port; choose another with --listen." in err


@pytest.mark.requirement("watch.serve.unreachable-store")
def test_it_serves_while_the_store_is_not_there_and_comes_up_with_it(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    with server(tmp_path, "--store", STORE.format(tmp_path / "data")) as started:
        url = started.url
        started.said("The store cannot be used now")
        response = httpx.post(f"{url}/v1/register", json={})
        assert response.status_code == 503
        assert response.json()["code"] == "unavailable"
        assert "do not proceed" in response.json()["next"]
        health = httpx.get(f"{url}/healthz")
        assert health.status_code == 503
        assert health.json()["reason"]
        (tmp_path / "data").unlink()
        started.said("can be used again")
        assert httpx.post(f"{url}/v1/register", json={}).status_code == 200
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert started.stop()[0] == 0


def run(capsys, monkeypatch, *arguments: str) -> tuple[object, str, str]:
    monkeypatch.setattr("sys.argv", ["mcpl-heartbeat", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    return ended.value.code, out, err


@pytest.mark.requirement("watch.serve.remote")
def test_the_command_refuses_a_remote_address(capsys, monkeypatch) -> None:
    status, out, err = run(capsys, monkeypatch, "serve", "--listen", "0.0.0.0:8765")
    assert (status, out) == (2, "")
    assert "--allow-remote" in err
    assert err.count("\n") == 1


@pytest.mark.requirement("watch.serve.extras")
def test_what_is_not_installed_is_named_with_the_command(capsys, monkeypatch) -> None:
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> object:
        return None if name in {"starlette", "hypercorn"} else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    status, out, err = run(capsys, monkeypatch, "serve")
    assert (status, out) == (1, "")
    assert "starlette" in err
    assert "are not installed: pip install 'mcpl-heartbeat[serve]'" in err
    assert "or from a checkout: pip install '.[serve]'" in err
    assert err.count("\n") == 1
    postgres = ("--store", "postgresql+psycopg://me@host/db")
    status, out, err = run(capsys, monkeypatch, "serve", *postgres)
    assert (status, out) == (1, "")
    assert "pip install 'mcpl-heartbeat[serve,postgres]'" in err


@pytest.mark.requirement("watch.serve.store")
@pytest.mark.parametrize("command", [("serve",), ("store", "upgrade")])
def test_a_wrong_url_is_one_line(capsys, monkeypatch, command) -> None:
    status, out, err = run(capsys, monkeypatch, *command, "--store", "sqlite:///relative.db")
    assert (status, out) == (1, "")
    assert f"sqlite:///{Path.cwd()}/relative.db" in err
    assert err.count("\n") == 1


@pytest.mark.requirement("watch.serve.store-source")
@pytest.mark.parametrize("command", [("serve",), ("store", "upgrade")])
def test_an_empty_store_is_one_line_too(capsys, monkeypatch, command) -> None:
    status, out, err = run(capsys, monkeypatch, *command, "--store", "")
    assert (status, out) == (1, "")
    assert "--store is empty" in err
    assert err.count("\n") == 1


@pytest.mark.requirement("watch.serve.upgrade")
def test_upgrade_says_from_which_revision_to_which(capsys, monkeypatch, tmp_path) -> None:
    url = STORE.format(tmp_path)
    (tmp_path / "store.db").touch()
    monkeypatch.setenv("HEARTBEAT_STORE", url)
    status, out, err = run(capsys, monkeypatch, "store", "upgrade")
    assert (status, err) == (0, "")
    assert out.startswith(f"{url} was empty and is now at revision ")
    status, out, err = run(capsys, monkeypatch, "store", "upgrade", "--store", url)
    assert (status, err) == (0, "")
    assert out.startswith(f"{url} is up to date already (revision ")


@pytest.mark.requirement("watch.serve.upgrade-nowhere")
def test_upgrade_makes_no_store(capsys, monkeypatch, tmp_path) -> None:
    url = STORE.format(tmp_path / "mistyped")
    status, out, err = run(capsys, monkeypatch, "store", "upgrade", "--store", url)
    assert (status, out) == (1, "")
    assert err == f"mcpl-heartbeat: there is no store at {url}; serve makes one.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("watch.serve.listen-advice")
@pytest.mark.parametrize(
    "arguments", [("--port", "9000"), ("--port=9000",), ("--host", "127.0.0.1"), ("-p", "9000")]
)
def test_another_servers_option_is_answered_with_the_right_one(
    capsys, monkeypatch, arguments
) -> None:
    status, out, err = run(capsys, monkeypatch, "serve", *arguments)
    assert (status, out) == (2, "")
    name = arguments[0].partition("=")[0]
    assert f"No such option: {name}. Use --listen HOST:PORT." in err
    assert err.count("\n") == 1
