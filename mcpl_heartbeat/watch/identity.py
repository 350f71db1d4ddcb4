"""Who an agent is: a secret that is never kept, and what is derived from it (issue 4 §2).

The *namespace* is a keyed hash of the secret: the key of everything the agent owns, known to the
store alone. The *address* is a hash of the namespace, so it says nothing of it: whoever is told an
address can send mail to it and do nothing else. Both follow from the secret and the store's salt,
so the same secret is the same agent for ever and nothing has to be looked up to know who asks.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence

from msgspec import UNSET

from mcpl_heartbeat.watch.arguments import RegisterArguments
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.failures import Failure, invalid
from mcpl_heartbeat.watch.results import BoxView, RegisterResult, WhoamiResult
from mcpl_heartbeat.watch.rows import Identity

SECRET_BYTES = 32
"""How many random bytes make a secret."""
_AGENT_CHARACTERS = 16


def namespace_of(salt: bytes, secret: str) -> str:
    """Hash a secret with the store's salt; in hex. Rows are found by it, never by the secret."""
    # A header may hold what no UTF-8 text can; that too has to be some namespace and no exception.
    return hmac.new(salt, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def agent_of(salt: bytes, namespace: str) -> str:
    """The ``<id>`` of a namespace's address: 16 characters of ``a`` to ``z`` and ``2`` to ``7``."""
    digest = hmac.new(salt, f"agent:{namespace}".encode(), hashlib.sha256).digest()
    return base64.b32encode(digest).decode().lower()[:_AGENT_CHARACTERS]


def new_secret(random: bytes) -> str:
    """Make a secret of ``SECRET_BYTES`` random bytes: ``hb_`` and 43 characters."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a secret takes {SECRET_BYTES} random bytes, not {len(random)}")
    return f"hb_{base64.urlsafe_b64encode(random).decode().rstrip('=')}"


def namespace_id(namespace: str) -> str:
    """How a namespace is told: enough to compare two, too little to be one."""
    return f"ns_{namespace[:24]}"


def address(agent: str) -> str:
    """The address of an agent's own mailbox."""
    return f"agent:{agent}"


def register(  # noqa: PLR0913, PLR0917 - the secret and what the store derived from it
    existing: Identity | None,
    arguments: RegisterArguments,
    secret: str,
    namespace: str,
    agent: str,
    now: Reading,
) -> tuple[Identity | None, RegisterResult | Failure]:
    """Make an identity of ``secret``, or find that it has one: then nothing changes.

    Gives the identity to keep, or ``None``.
    """
    label = arguments.label
    if UNSET not in (label, arguments.agent_id) and label != arguments.agent_id:
        return None, invalid("register", ("label + agent_id: are one thing: send one of them",))
    label = arguments.agent_id if label is UNSET else label
    sent = None if label is UNSET else label
    kept = existing or Identity(
        namespace=namespace, agent=agent, label=sent, registered_at=now.real
    )
    notes: tuple[str, ...] = ()
    if existing is not None and sent is not None and sent != existing.label:
        notes = ("This secret was registered before: its label stays as it was.",)
    result = RegisterResult(
        server_time=now.server_time,
        agent_secret=secret,
        address=address(kept.agent),
        namespace_id=namespace_id(namespace),
        label=kept.label,
        created=existing is None,
        notes=notes,
    )
    return (kept if existing is None else None), result


def whoami(  # noqa: PLR0913, PLR0917 - each is one count, all named
    identity: Identity,
    boxes: Sequence[BoxView],
    dead: int,
    next_due: int | None,
    switches: Mapping[str, int],
    leases: int,
    now: Reading,
) -> WhoamiResult:
    """Tell who is asking; ``next_due`` is the real time (ms) of the next envelope to come due."""
    return WhoamiResult(
        server_time=now.server_time,
        address=address(identity.agent),
        namespace_id=namespace_id(identity.namespace),
        label=identity.label,
        registered_at=now.tell(identity.registered_at),
        total=sum(box.total for box in boxes),
        due=sum(box.due for box in boxes),
        next_due_at=None if next_due is None else now.tell(next_due),
        dead_lettered=dead,
        boxes=tuple(boxes),
        switches=dict(switches),
        leases=leases,
    )
