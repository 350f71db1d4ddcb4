"""Servers for tests from outside: started with the test, gone with it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host import Host

Spawn = Callable[..., Host]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Return a function that starts a server on this test's files and cleans up after it."""
    hosts: list[Host] = []

    def start(**options: Any) -> Host:
        host = Host(tmp_path / "data", **options)
        hosts.append(host)
        return host

    yield start
    for host in hosts:
        host.kill()
    for host in hosts:
        host.check()


@pytest.fixture
def host(spawn: Spawn) -> Host:
    """Return a server that has its policy."""
    return spawn().ready()
