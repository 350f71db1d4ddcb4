"""``--listen``: which address, who may reach it, and the sockets."""

import errno
import ipaddress
import socket

import msgspec
import trio

from mcpl_heartbeat.shell.http.requests import is_loopback

DEFAULT = "127.0.0.1:8765"


class NotListening(Exception):
    """The address cannot be served; the text is one sentence for people."""


class Address(msgspec.Struct, frozen=True):
    """A host, an IPv6 one without its brackets, and a port; 0 takes any that is free."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Where to call it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def read(text: str, *, allow_remote: bool) -> Address:
    """Weigh ``HOST:PORT``. Raises ``NotListening`` with the rule that it breaks."""
    if "://" in text:
        scheme, _, rest = text.strip().partition("://")
        better = rest.partition("/")[0] or DEFAULT
        raise NotListening(f"--listen {text}: leave {scheme}:// out: --listen {better}.")
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not _is_ipv6(host):
            raise NotListening(f"--listen {text}: what stands in brackets is no IPv6 address.")
    elif ":" in host:
        raise NotListening(f"--listen {text}: put an IPv6 address in brackets, as in [::1]:8765.")
    if not colon or not host:
        raise NotListening(f"--listen {text}: must be HOST:PORT, such as {DEFAULT}.")
    if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise NotListening(f"--listen {text}: the port must be a number from 0 to 65535.")
    if not is_loopback(host) and not allow_remote:
        raise NotListening(
            f"--listen {text}: other machines could reach this address, and plain HTTP carries "
            "the agents' secrets readable; put a proxy with TLS before a loopback address, or "
            "add --allow-remote."
        )
    return Address(host, int(port))


async def listeners(address: Address) -> tuple[list[trio.SocketListener], Address]:
    """Take the address; also gives it with the port that was chosen. Raises ``NotListening``."""
    try:
        taken = await _open(address)
    except OSError as error:
        raise NotListening(f"{address.url} cannot be listened on: {_reason(error)}.") from error
    port = taken[0].socket.getsockname()[1]
    return taken, Address(address.host, port)


async def _open(address: Address) -> list[trio.SocketListener]:
    taken = await trio.open_tcp_listeners(address.port, host=address.host, backlog=1024)
    # A name such as localhost can mean two addresses, which get two ports when any will do.
    if address.port == 0:
        for other in taken[1:]:
            await other.aclose()
        del taken[1:]
    return taken


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program has taken the port; choose another with --listen"
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    return (error.strerror or str(error)).lower()


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False
