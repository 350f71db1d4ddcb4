"""Two servers on the same files where the lock of the first has gone: one of them goes on."""

import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.host import Host
from tests.e2e.wire import is_reminder


def remove_locks(folder: Path) -> None:
    """Do as a hand does that tidies up."""
    locks = list(folder.glob(".*.lock"))
    assert len(locks) == 2
    for lock in locks:
        lock.unlink()


def add_when_taken_over(host: Host, message: str) -> None:
    """Try until a server that stands by has the files."""
    for _ in range(100):
        reply = host.call("reminder_add", message=message, inHours=1)
        if not reply.is_error and "not saved" not in reply.text.lower():
            return
        host.quiet(0.2)
    raise AssertionError("it never took over")


@pytest.mark.requirement("file.lock", "file.lock-takeover")
def test_a_server_finds_at_a_save_that_its_files_were_taken(spawn: Spawn) -> None:
    first = spawn().ready()
    stays = first.add("stays", inHours=1)
    remove_locks(first.reminders.parent)
    second = spawn().ready()
    mine = second.add("mine", inHours=1)

    said = first.call("reminder_add", message="lost", inHours=1).text
    assert f"another server (process {second.pid})" in said
    assert "lost" not in {row["message"] for row in second.rows()}
    again = first.call("reminder_add", message="lost", inHours=1)
    assert again.is_error
    assert f"process {second.pid}" in first.status()

    second.kill()
    add_when_taken_over(first, "saved again")
    listed = first.listed()
    assert stays in listed
    assert mine in listed
    assert "another server" not in listed
    assert {row["message"] for row in first.rows()} == {"stays", "mine", "saved again"}


@pytest.mark.requirement("file.lock")
def test_what_falls_due_after_the_files_were_taken_fires_once(spawn: Spawn) -> None:
    first = spawn().ready()
    due = first.add("due", inSeconds=3)
    # Else it might lock them again before a slow machine has started the second.
    first.signal(signal.SIGSTOP)
    remove_locks(first.reminders.parent)
    second = spawn().ready()
    first.signal(signal.SIGCONT)
    second.wait_push(is_reminder)
    second.settle()
    second.wait("removal", lambda: due not in second.reminders.read_text())
    first.quiet(1)
    assert first.pushes == []
    assert f"process {second.pid}" in first.status()
