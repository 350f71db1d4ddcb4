"""A client that loads HTTP: few connections that stay, requests made beforehand, and no library."""

import json
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.bench import Unmeasurable, environment

LISTENS = re.compile(r"Listening on http://([\d.]+):(\d+)")
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Served:
    """``mcpl-heartbeat serve`` on a store, as a process of its own."""

    def __init__(self, command: Sequence[str], url: str, folder: Path) -> None:
        self.errors = folder / "serve.txt"
        with self.errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*command, "serve", "--listen", "127.0.0.1:0", "--store", url],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=environment({}),
            )
        self.address = self._address()

    def _address(self) -> tuple[str, int]:
        for _ in range(600):
            said = self.errors.read_text("utf-8", "replace")
            if found := LISTENS.search(said):
                return found[1], int(found[2])
            if self.process.poll() is not None:
                raise Unmeasurable(f"serve ended: {said.strip()[-300:]}")
            time.sleep(0.05)
        self.stop()
        raise Unmeasurable(f"serve does not listen: {said.strip()[-300:]}")

    def stop(self) -> None:
        """End it in good order."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def request(path: str, body: dict[str, Any], secret: str | None) -> bytes:
    """One request in full."""
    content = json.dumps(body).encode()
    bearer = f"authorization: Bearer {secret}\r\n" if secret else ""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{bearer}"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def one(address: tuple[str, int], asked: bytes) -> dict[str, Any]:
    """Ask on a connection of its own; what is answered."""
    with socket.create_connection(address, 10) as connection:
        connection.sendall(asked)
        status, body = _read(connection)
    if status != b"200":
        raise Unmeasurable(f"answered {status.decode()}: {body[:300]!r}")
    answer: dict[str, Any] = json.loads(body)
    return answer


def _read(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while True:
        data += connection.recv(65536)
        if found := whole(data):
            return found
        if not data:
            raise Unmeasurable("the connection was closed without an answer")


def whole(data: bytes) -> tuple[bytes, bytes] | None:
    """The status and the body of an answer, once all of it is there."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return None
    found = LENGTH.search(head)
    if found is None:
        raise Unmeasurable(f"an answer of unknown length: {head[:300]!r}")
    return (head.split(None, 2)[1], body) if len(body) >= int(found[1]) else None


def load(
    address: tuple[str, int], requests: Sequence[bytes], count: int, connections: int
) -> tuple[float, list[float]]:
    """Ask ``count`` times over ``connections``; seconds, and how long (ms) each answer took."""
    selector = selectors.DefaultSelector()
    sockets = []
    took: list[float] = []
    asked = 0
    for _ in range(connections):
        connection = socket.create_connection(address, 10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        sockets.append(connection)
    begun = time.perf_counter()
    for connection in sockets:
        connection.send(requests[asked % len(requests)])
        selector.register(connection, selectors.EVENT_READ, [b"", time.perf_counter()])
        asked += 1
    while len(took) < count:
        ready = selector.select(10)
        if not ready:
            raise Unmeasurable("no answer for 10 s")
        for key, _ in ready:
            connection, state = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            data = connection.recv(65536)
            if not data:
                raise Unmeasurable("a connection was closed")
            state[0] += data
            found = whole(state[0])
            if found is None:
                continue
            if found[0] != b"200":
                raise Unmeasurable(f"answered {found[0].decode()}: {found[1][:300]!r}")
            now = time.perf_counter()
            took.append((now - state[1]) * 1000)
            if asked < count:
                state[:] = [b"", now]
                connection.send(requests[asked % len(requests)])
                asked += 1
    spent = time.perf_counter() - begun
    for connection in sockets:
        connection.close()
    selector.close()
    return spent, took


def command_of(words: Sequence[str]) -> list[str]:
    """The command to serve with."""
    return list(words) or [sys.executable, "-m", "mcpl_heartbeat"]
