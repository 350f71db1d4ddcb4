"""The watch wing on real pipes and a real store: who died, what was freed, where to resume."""

import signal
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host import Host
from tests.e2e.wire import NEVER, Message, error, event_id, origin, shown
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

BOTH = ("heartbeat", "watch")
Agent = Callable[..., Host]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a fresh store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Return a function that starts the server of an agent, by the name of its folder."""
    hosts: list[Host] = []

    def start(name: str, store: str, *, grant: bool = True, **options: Any) -> Host:
        env = {"HEARTBEAT_STORE": store} | options.pop("env", {})
        host = Host(tmp_path / name, env=env, **options)
        hosts.append(host)
        host.initialize(version="2025-06-18")
        if grant:
            host.policy(enabled=BOTH)
        return host

    yield start
    for host in hosts:
        host.kill()
    for host in hosts:
        host.check()


def told(host: Host, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed and return its values."""
    reply = host.call(tool, **arguments)
    assert not reply.is_error, reply.text
    content: dict[str, Any] = reply.result["structuredContent"]
    return content


def failed(host: Host, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must fail and return the failure."""
    reply = host.call(tool, **arguments)
    assert reply.is_error, reply.text
    content: dict[str, Any] = reply.result["structuredContent"]
    return content


def is_watch(push: Message) -> bool:
    return bool(push["params"]["featureSet"] == "watch")


def arm(host: Host, scope: str, notify: str, seconds: int = 2) -> dict[str, Any]:
    return told(
        host,
        "heartbeat",
        scope=scope,
        expect_within_seconds=seconds,
        on_expiry=["release_leases", "mark_failed", "queue_alert"],
        notify_address=notify,
        agent_id=f"worker of {scope}",
    )


@pytest.mark.requirement("watch.push.alert", "watch.identity.registers-itself")
def test_one_dies_and_the_other_is_woken_and_takes_over(agent: Agent, store: str) -> None:
    worker, other = agent("worker", store), agent("other", store)
    address = told(other, "whoami")["address"]
    assert told(worker, "whoami")["address"] != address
    lease = told(worker, "lease", key="deploy", holder="w1", scope="permits", ttl_seconds=600)
    assert lease["acquired"] is True
    point = {"objective": "review permits", "next_action": "open page 4"}
    told(worker, "checkpoint_put", scope="permits", **point)
    # That other can be woken is told to the store a moment after its policy came.
    while arm(worker, "permits", address, seconds=600)["alert_delivery"] != "push":
        worker.quiet(0.1)
    arm(worker, "permits", address)
    worker.kill()

    push = other.wait_push(is_watch)
    assert origin(push) == {"source": "alert", "scope": "permits", "generation": 1}
    for word in ("worker of permits", "deploy", "open page 4", "inbox_ack"):
        assert word in shown(push)
    envelope = told(other, "inbox_poll")["envelope"]
    assert (envelope["kind"], envelope["scope"]) == ("alert", "permits")
    assert event_id(push) == f"alert_{envelope['task_id']}"
    assert [freed["key"] for freed in envelope["released"]] == ["deploy"]
    assert envelope["resume"]["next_action"] == "open page 4"
    assert told(other, "inbox_ack", task_id=envelope["task_id"])["acked"] is True
    assert told(other, "inbox_poll")["envelope"] is None
    assert len([push for push in other.pushes if is_watch(push)]) == 1

    # The worker comes back, finds its key, and is told what the server saw.
    again = agent("worker", store)
    packet = told(again, "resume_packet", scope="permits")
    assert (packet["failed"], len(packet["deaths"])) == (True, 1)
    back = arm(again, "permits", address, seconds=600)
    assert (back["fired"], back["generation"], back["fired_generation"]) == (True, 2, 1)


@pytest.mark.requirement("watch.push.nudge")
def test_an_agent_is_nudged_before_its_deadline(agent: Agent, store: str) -> None:
    host = agent("one", store)
    beat = told(host, "heartbeat", scope="permits", expect_within_seconds=600, nudge_seconds=599)
    push = host.wait_push(is_watch)
    assert origin(push) == {"source": "nudge", "scope": "permits", "generation": 1}
    assert "disarm" in shown(push)
    assert event_id(push).startswith("nudge_")
    status = told(host, "switch_status", scope="permits")
    assert status["switches"][0]["deadline"] == beat["deadline"], "it is no beat"
    assert "nudged" in [entry["kind"] for entry in status["journal"]]


@pytest.mark.requirement("watch.push.held", "watch.push.again-after-restart")
def test_an_alert_that_was_not_taken_waits_in_the_inbox_and_is_pushed_again(
    agent: Agent, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    other = agent("other", store, answers=error(-32603, "stopping"))
    address = told(other, "whoami")["address"]
    arm(other, "permits", address)
    first = other.wait_push(is_watch)
    other.settle()
    notes = told(other, "whoami")["notes"]
    assert any("stopping" in note for note in notes)
    other.answers = {"result": {"accepted": True}}
    other.policy(enabled=BOTH)
    again = other.wait_push(is_watch, count=2)
    assert event_id(again) == event_id(first)
    other.settle()
    assert told(other, "inbox_poll")["envelope"]["scope"] == "permits"
    assert told(other, "whoami")["notes"] == []


@pytest.mark.requirement("watch.push.again-after-restart", "watch.push.let-go")
@pytest.mark.parametrize("by", ["end of input", signal.SIGTERM])
def test_a_server_that_leaves_hands_its_push_to_the_next(
    agent: Agent, tmp_path: Path, by: Any
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    other = agent("other", store, answers=NEVER)
    arm(other, "permits", told(other, "whoami")["address"])
    first = other.wait_push(is_watch)
    if by == "end of input":
        other.close_stdin()
    else:
        other.signal(by)
    other.exit_status()
    again = agent("other", store)
    assert event_id(again.wait_push(is_watch)) == event_id(first)


@pytest.mark.requirement("watch.push.policy", "watch.push.told")
def test_without_a_grant_nothing_is_pushed_and_the_replies_say_so(
    agent: Agent, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    host = agent("one", store, grant=False)
    host.policy(enabled=["heartbeat"])
    address = told(host, "whoami")["address"]
    reply = arm(host, "permits", address)
    assert reply["alert_delivery"] == "inbox"
    envelope = None
    while envelope is None:
        envelope = told(host, "inbox_poll")["envelope"]
    assert envelope["scope"] == "permits"
    assert host.pushes == []
    assert any("cannot wake you" in note for note in told(host, "switch_status")["notes"])


@pytest.mark.requirement("watch.identity.own-key", "watch.mcp.key")
def test_one_agent_whatever_becomes_of_its_servers(agent: Agent, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    first, second = agent("one", store), agent("one", store)
    address = told(first, "whoami")["address"]
    assert told(second, "whoami")["address"] == address
    key = tmp_path / "one" / "heartbeat-config.agent-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    first.kill()
    again = agent("one", store)
    assert told(again, "whoami")["address"] == address
    secret = key.read_text("utf-8").strip()
    other = agent("other", store)
    assert told(other, "whoami")["address"] != address
    assert told(other, "whoami", agent_key=secret)["address"] == address
    third = agent("third", store, env={"HEARTBEAT_AGENT_KEY": secret})
    assert told(third, "whoami")["address"] == address
    assert not list((tmp_path / "third").glob("*.agent-key"))
    for host in (first, second, again, other, third):
        assert secret not in host.stderr
        assert "alembic" not in host.stderr


@pytest.mark.requirement("watch.identity.registers-itself")
def test_registering_makes_further_identities(agent: Agent, tmp_path: Path) -> None:
    host = agent("one", f"sqlite:///{tmp_path}/store.db")
    own = told(host, "whoami")["address"]
    second = told(host, "register", label="second")
    assert second["created"] is True
    assert second["address"] != own
    assert told(host, "whoami", agent_key=second["agent_secret"])["address"] == second["address"]
    assert told(host, "whoami")["address"] == own


@pytest.mark.requirement("watch.identity.given-key")
def test_a_given_key_of_another_store_is_refused_until_it_is_registered(
    agent: Agent, store: str
) -> None:
    secret = "a secret of thirty-two and more characters"
    host = agent("one", store, env={"HEARTBEAT_AGENT_KEY": secret})
    for tool, arguments in [
        ("whoami", {}),
        ("heartbeat", {"scope": "permits", "expect_within_seconds": 60}),
    ]:
        failure = failed(host, tool, **arguments)
        assert failure["code"] == "unauthorized"
        assert "HEARTBEAT_AGENT_KEY is not known in the store" in failure["message"]
    host.wait_log("HEARTBEAT_AGENT_KEY")
    assert told(host, "register", agent_secret=secret)["created"] is True, "nobody had before"
    assert arm(host, "permits", told(host, "whoami")["address"], seconds=600)["generation"] == 1
    assert secret not in host.stderr


@pytest.mark.requirement("watch.identity.registered-anew", "watch.identity.own-label")
def test_a_key_file_of_another_store_is_registered_anew_and_said(
    agent: Agent, tmp_path: Path
) -> None:
    first = agent("one", f"sqlite:///{tmp_path}/store.db")
    before = told(first, "whoami")
    assert (before["label"], before["notes"]) == ("one", [])
    again = agent("one", f"sqlite:///{tmp_path}/another.db")
    after = told(again, "whoami")
    assert after["address"] != before["address"]
    (note,) = after["notes"]
    assert after["address"] in note
    again.wait_log(after["address"])


@pytest.mark.requirement("watch.identity.key-kept")
def test_an_empty_key_file_is_named_and_left(agent: Agent, tmp_path: Path) -> None:
    key = tmp_path / "one" / "heartbeat-config.agent-key"
    key.parent.mkdir()
    key.touch()
    host = agent("one", f"sqlite:///{tmp_path}/store.db")
    failure = failed(host, "whoami")
    assert failure["code"] == "unauthorized"
    assert str(key) in failure["message"]
    assert key.read_bytes() == b""
    host.wait_log(str(key))
    assert not host.call("heartbeat_status").is_error


@pytest.mark.requirement("watch.mcp.no-store")
@pytest.mark.parametrize(
    ("url", "said"),
    [("mysql://x", "mysql"), ("sqlite:///relative.db", "whole path"), ("nonsense", "nonsense")],
)
def test_a_url_that_is_none_is_said_and_the_wakes_go_on(agent: Agent, url: str, said: str) -> None:
    host = agent("one", url)
    failure = failed(host, "lease", key="deploy", holder="w1")
    assert (failure["code"], failure["status"]) == ("unavailable", 503)
    assert failure["acquired"] is None
    assert said in failure["message"]
    host.wait_log(said)
    assert not host.call("heartbeat_trigger").is_error
    host.wait_push()


@pytest.mark.requirement("watch.mcp.no-store")
def test_a_store_that_is_not_there_yet_is_used_once_it_is(agent: Agent, tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.write_text("not mounted yet", "utf-8")
    host = agent("one", f"sqlite:///{place}/store.db")
    assert failed(host, "whoami")["code"] == "unavailable"
    assert not host.call("heartbeat_trigger").is_error
    place.unlink()
    place.mkdir()
    for _ in range(100):
        reply = host.call("whoami")
        if not reply.is_error:
            break
        host.quiet(0.2)
    assert not reply.is_error, reply.text


@pytest.mark.requirement("watch.mcp.no-store", "watch.mcp.asked")
def test_a_store_that_is_locked_holds_up_no_wake(agent: Agent, tmp_path: Path) -> None:
    host = agent("one", f"sqlite:///{tmp_path}/store.db")
    told(host, "whoami")
    locks = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    locks.execute("BEGIN IMMEDIATE")
    waits = host.request(
        "tools/call",
        {"name": "heartbeat", "arguments": {"scope": "a", "expect_within_seconds": 60}},
    )
    host.ping()
    assert not host.call("heartbeat_trigger").is_error
    host.add("in an hour", inHours=1)
    assert host.replies(waits) == []
    locks.execute("ROLLBACK")
    locks.close()
    assert not host.called(host.reply(waits)).is_error


@pytest.mark.requirement("watch.mcp.leaves", "stdio.ends-without-loss")
def test_what_was_asked_before_the_end_of_input_is_answered(agent: Agent, tmp_path: Path) -> None:
    host = agent("one", f"sqlite:///{tmp_path}/store.db")
    told(host, "whoami")
    asked = [
        host.request(
            "tools/call",
            {"name": "heartbeat", "arguments": {"scope": f"s{n}", "expect_within_seconds": 60}},
        )
        for n in range(20)
    ]
    host.close_stdin()
    assert host.exit_status() == 0
    assert all(not host.called(host.reply(id)).is_error for id in asked)


@pytest.mark.requirement("watch.mcp.only-with-a-store")
def test_without_a_store_nothing_is_made(agent: Agent, tmp_path: Path) -> None:
    host = Host(tmp_path / "one")
    with host:
        host.ready()
        assert "heartbeat" not in [
            tool["name"] for tool in host.ask("tools/list")["result"]["tools"]
        ]
    assert not list((tmp_path / "one").glob("*.agent-key"))


@pytest.mark.requirement("watch.push.one-at-a-time")
def test_many_that_die_at_once_are_one_push(agent: Agent, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    worker, other = agent("worker", store), agent("other", store)
    address = told(other, "whoami")["address"]
    asked = [
        worker.request(
            "tools/call",
            {
                "name": "heartbeat",
                "arguments": {
                    "scope": f"s{n}",
                    "expect_within_seconds": 4,
                    "on_expiry": ["queue_alert"],
                    "notify_address": address,
                },
            },
        )
        for n in range(30)
    ]
    for id in asked:
        assert not worker.called(worker.reply(id)).is_error
    worker.kill()

    def heard() -> int:
        return sum(origin(push).get("count", 1) for push in other.pushes if is_watch(push))

    other.wait("thirty alerts", lambda: heard() == 30)
    assert len([push for push in other.pushes if is_watch(push)]) <= 5
    assert told(other, "whoami")["due"] == 30


@pytest.mark.requirement("stdio.ends-quickly", "watch.mcp.leaves")
def test_a_store_that_is_locked_does_not_keep_it_from_leaving(agent: Agent, tmp_path: Path) -> None:
    host = agent("one", f"sqlite:///{tmp_path}/store.db")
    told(host, "whoami")
    locks = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    locks.execute("BEGIN IMMEDIATE")
    host.request(
        "tools/call",
        {"name": "heartbeat", "arguments": {"scope": "a", "expect_within_seconds": 60}},
    )
    host.ping()
    host.signal(signal.SIGTERM)
    assert host.exit_status() == -signal.SIGTERM
    locks.close()
