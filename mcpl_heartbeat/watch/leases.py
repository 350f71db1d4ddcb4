"""Leases: locks by name that lapse by themselves, and that a dead agent's switch lets go.

A lease has two numbers. The *fence* is a secret made anew for each acquisition: whoever shows it is
the holder, and a label that merely reads the same is not. The *generation* only rises, over expiry
and release too, so that a resource can tell a late writer from the present holder. For both the row
of a key stays for ever; it is *free* when it was let go or its time has run out, and then anybody
takes it, as the next generation under a new fence.

What was lost is never revived: a lease that has lapsed cannot be renewed, even while nobody else
wants it, because the answer must not depend on who came first (F.4). Expiries are in watched time
(``clock.py``). The same ``free`` serves a release and the fire of a switch.

Sources: `liveness-surfaces` A.2 (``lease``, ``lease_renew``, ``lease_release``), F.2 and F.4.
"""

import hmac
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from mcpl_heartbeat.watch.arguments import (
    LeaseArguments,
    LeaseReleaseArguments,
    LeaseRenewArguments,
)
from mcpl_heartbeat.watch.clock import Reading
from mcpl_heartbeat.watch.results import (
    LeaseReleaseResult,
    LeaseRenewResult,
    LeaseResult,
    Result,
)
from mcpl_heartbeat.watch.rows import Entry, Lease

_LABEL_ONLY = (
    "The label in holder does not show that the lease is yours: to renew it, send the fence that "
    "acquiring it returned."
)
_ANEW = (
    "The fence you sent is no longer in force: that lease had expired or was released. This is a "
    "new acquisition with a new fence; what it guards may have changed hands meanwhile."
)
_OTHER_LABEL = (
    "The fence shows that the lease is yours. It is held under the label {}; to change that, call "
    "lease with the fence and the new holder."
)
_LAPSED = "It expired and cannot be revived: stop the work it guards, then take it anew with lease."
_LET_GO = (
    "That acquisition is over: it was released, by its holder or because the switch of its scope "
    "fired. Stop the work it guards, then take it anew with lease."
)


class Taken(msgspec.Struct, frozen=True):
    """What a call came to. ``lease`` is the row to keep; ``None``: it stays as it is."""

    lease: Lease | None
    result: Result
    """The result Struct of the tool that was called."""
    entries: tuple[Entry, ...] = ()


def is_held(lease: Lease, now: Reading) -> bool:
    """Whether it keeps others out now: neither let go nor run out."""
    return lease.held and lease.expires_watched > now.watched


def free(lease: Lease) -> Lease:
    """Let a lease go. The one way there is; generation and fence stay in the row."""
    return msgspec.structs.replace(lease, held=False)


def take(
    before: Lease | None, namespace: str, arguments: LeaseArguments, fence: str, now: Reading
) -> Taken:
    """Acquire a lease that is free, as the next generation under ``fence``, a fresh secret.

    One that is held is refused to anybody but the holder, who by showing its fence renews it and
    may give it another label and another scope.
    """
    if before is None or not is_held(before, now):
        return _acquired(before, namespace, arguments, fence, now)
    if not _is_holder(before, arguments.fence):
        return Taken(None, _refused(before, arguments, now))
    scope = before.scope if arguments.scope is UNSET else arguments.scope
    lease = msgspec.structs.replace(
        before,
        holder=arguments.holder,
        scope=scope,
        expires_watched=_expiry(arguments.ttl_seconds, now),
        ttl_ms=arguments.ttl_seconds * 1000,
    )
    moved = scope != before.scope
    entries = (*_entries("lease_released", before, now), *_entries("leased", lease, now))
    return Taken(lease, _held(lease, now, renewed=True), entries if moved else ())


def renew(before: Lease | None, arguments: LeaseRenewArguments, now: Reading) -> Taken:
    """Hold it for ``ttl_seconds`` from now; refused once it has expired, was let go or taken."""
    if before is None or not is_held(before, now) or not _is_holder(before, arguments.fence):
        reason, holder, notes = _why_not(before, arguments, now)
        return Taken(
            None,
            LeaseRenewResult(
                server_time=now.server_time,
                notes=notes,
                renewed=False,
                key=arguments.key,
                holder=holder,
                reason=reason,
            ),
        )
    lease = msgspec.structs.replace(
        before,
        expires_watched=_expiry(arguments.ttl_seconds, now),
        ttl_ms=arguments.ttl_seconds * 1000,
    )
    return Taken(
        lease,
        LeaseRenewResult(
            server_time=now.server_time,
            notes=_other_label(lease, arguments),
            renewed=True,
            key=lease.key,
            holder=lease.holder,
            fence=lease.fence,
            generation=lease.generation,
            expires_at=now.tell_watched(lease.expires_watched),
        ),
    )


def release(before: Lease | None, arguments: LeaseReleaseArguments, now: Reading) -> Taken:
    """Let it go; refused to anybody but its holder, and when it was over already."""
    if before is None or not is_held(before, now) or not _is_holder(before, arguments.fence):
        reason, holder, notes = _why_not(before, arguments, now)
        return Taken(
            None,
            LeaseReleaseResult(
                server_time=now.server_time,
                notes=notes,
                released=False,
                key=arguments.key,
                holder=holder,
                reason=reason,
            ),
        )
    result = LeaseReleaseResult(
        server_time=now.server_time,
        notes=_other_label(before, arguments),
        released=True,
        key=before.key,
        holder=before.holder,
        generation=before.generation,
    )
    return Taken(free(before), result, _entries("lease_released", before, now))


def _acquired(
    before: Lease | None, namespace: str, arguments: LeaseArguments, fence: str, now: Reading
) -> Taken:
    lease = Lease(
        namespace=namespace,
        key=arguments.key,
        holder=arguments.holder,
        scope=None if arguments.scope is UNSET else arguments.scope,
        fence=fence,
        generation=1 if before is None else before.generation + 1,
        expires_watched=_expiry(arguments.ttl_seconds, now),
        ttl_ms=arguments.ttl_seconds * 1000,
    )
    notes = () if arguments.fence is UNSET else (_ANEW,)
    return Taken(
        lease, _held(lease, now, renewed=False, notes=notes), _entries("leased", lease, now)
    )


def _held(lease: Lease, now: Reading, *, renewed: bool, notes: tuple[str, ...] = ()) -> LeaseResult:
    return LeaseResult(
        server_time=now.server_time,
        notes=notes,
        acquired=True,
        key=lease.key,
        holder=lease.holder,
        scope=lease.scope,
        fence=lease.fence,
        generation=lease.generation,
        expires_at=now.tell_watched(lease.expires_watched),
        renewed=renewed,
    )


def _refused(lease: Lease, arguments: LeaseArguments, now: Reading) -> LeaseResult:
    return LeaseResult(
        server_time=now.server_time,
        notes=(_LABEL_ONLY,) if lease.holder == arguments.holder else (),
        acquired=False,
        key=lease.key,
        holder=lease.holder,
        generation=lease.generation,
        expires_at=now.tell_watched(lease.expires_watched),
        reason="held",
        retry_after_seconds=(lease.expires_watched - now.watched) / 1000,
    )


_Proof = LeaseRenewArguments | LeaseReleaseArguments


def _other_label(lease: Lease, proof: _Proof) -> tuple[str, ...]:
    same = lease.holder == proof.holder
    return () if same else (_OTHER_LABEL.format(repr(lease.holder)),)


def _is_holder(lease: Lease, fence: str | UnsetType) -> bool:
    return fence is not UNSET and hmac.compare_digest(
        lease.fence.encode(), fence.encode("utf-8", "surrogatepass")
    )


def _why_not(
    lease: Lease | None, proof: _Proof, now: Reading
) -> tuple[Literal["expired", "not_holder"], str | UnsetType, tuple[str, ...]]:
    """Give the reason, the present holder's label if there is one, and what else to say."""
    if lease is None:
        return "not_holder", UNSET, ("Nobody ever took a lease of this key.",)
    if is_held(lease, now):
        return "not_holder", lease.holder, ()
    if not _is_holder(lease, proof.fence):
        return "not_holder", UNSET, ("Nobody holds it now.",)
    if lease.held:
        return "expired", UNSET, (_LAPSED,)
    return "not_holder", UNSET, (_LET_GO,)


def _expiry(ttl_seconds: int, now: Reading) -> int:
    return now.watched + ttl_seconds * 1000


def _entries(
    kind: Literal["leased", "lease_released"], lease: Lease, now: Reading
) -> tuple[Entry, ...]:
    if lease.scope is None:
        return ()
    detail = {"key": lease.key, "holder": lease.holder, "lease_generation": lease.generation}
    return (
        Entry(namespace=lease.namespace, scope=lease.scope, at=now.real, kind=kind, detail=detail),
    )
