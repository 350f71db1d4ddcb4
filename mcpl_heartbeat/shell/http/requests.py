"""What a request says beside its body: of which type it is, from where it comes, who sends it."""

import functools
import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from mcpl_heartbeat.catalogue import REQUIRES_SECRET
from mcpl_heartbeat.mcp.tools import Tool
from mcpl_heartbeat.watch.arguments import Arguments
from mcpl_heartbeat.watch.failures import Failure, failure

Headers = Iterable[tuple[bytes, bytes]]


class Secret(msgspec.Struct, frozen=True):
    """Whose call it is; ``None``: nobody's."""

    value: str | None


def header(headers: Headers, name: bytes) -> str | None:
    """Give the first header of that name, lower case."""
    for key, value in headers:
        if key == name:
            return value.decode("latin-1").strip()
    return None


def secret_of(tool: Tool, headers: Headers, arguments: Arguments) -> Secret | Failure:
    """Find the secret: in ``Authorization: Bearer``, else the argument ``agent_key``.

    ``register`` asks for none, so that whatever a proxy has put there does not matter.
    """
    if tool.name not in REQUIRES_SECRET:
        return Secret(None)
    sent = header(headers, b"authorization")
    key = getattr(arguments, "agent_key", UNSET)
    argument = None if key is UNSET else key
    if sent is None:
        return Secret(argument)
    scheme, _, secret = sent.partition(" ")
    secret = _as_meant(secret.strip())
    if scheme.lower() != "bearer" or not secret:
        return failure(
            "unauthorized",
            "Authorization: must be Bearer <agent_secret>.",
            "Send the agent_secret that register returned: Authorization: Bearer <agent_secret>.",
        )
    if argument is not None and argument != secret:
        return failure(
            "invalid_arguments",
            "agent_key: is not the secret of the header Authorization, and only one can be meant.",
            "Send one of them.",
            problems=("agent_key: differs from the header Authorization; send one of them",),
        )
    return Secret(secret)


def _as_meant(text: str) -> str:
    """Read as UTF-8 what can be: some clients send headers so, and others in Latin-1."""
    try:
        return text if text.isascii() else text.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return text


def wrong_type(headers: Headers) -> Failure | None:
    """Refuse a body that says it is something else than JSON; one that says nothing is read."""
    sent = header(headers, b"content-type")
    if not sent or sent.partition(";")[0].strip().lower() in _JSON:
        return None
    return failure(
        "unsupported_media_type",
        "Content-Type: the body must be JSON.",
        "Send Content-Type: application/json, or leave the header out.",
    )


# ``curl -d`` says the second of whatever it sends. A web page's form could say it too: those are
# kept out by where they come from (``Guard``).
_JSON = frozenset({"application/json", "application/x-www-form-urlencoded"})


class Guard(msgspec.Struct, frozen=True):
    """Keeps web pages out: what a browser sends for them names where it comes from.

    A server on a loopback address answers only to a loopback name, so that no page can reach it
    under a name of its own (DNS rebinding).
    """

    host: str
    """The host that is listened on, as it was given."""

    def refusal(self, headers: Headers) -> Failure | None:
        """Say why this request is not answered, if it is not."""
        origin = header(headers, b"origin")
        if origin is not None and not self._known(_host_of_origin(origin)):
            return failure(
                "forbidden",
                "Origin: web pages of other hosts are not answered.",
                "Call from a program, or from a page that this machine serves.",
            )
        named = header(headers, b"host")
        if named and is_loopback(self.host) and not self._known(_host_of(named)):
            return failure(
                "forbidden",
                "Host: this server listens on a loopback address and answers only to its names.",
                "Call it as 127.0.0.1 or localhost.",
            )
        return None

    def _known(self, host: str) -> bool:
        return bool(host) and (is_loopback(host) or host == self.host.lower())


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a name or address, an IPv6 one without its brackets, means this machine alone."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of_origin(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


@functools.lru_cache(maxsize=256)
def _host_of(value: str) -> str:
    try:
        return urlsplit(f"//{value}").hostname or ""
    except ValueError:
        return ""
