"""Servers that let a lease be held by two, or by none, or by whoever says so."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from typing import Any

import sqlalchemy as sa
from msgspec import UNSET
from msgspec.structs import replace

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.storage.store import leases as kept
from mcpl_heartbeat.storage.store import rows, schema
from mcpl_heartbeat.watch import leases


@mutant(
    "The label of the holder is proof enough.",
    caught_by={"watch/whose-fence": "An equal label is no proof."},
)
def label_is_proof(patch: Patch) -> None:
    take = leases.take

    def trusting(before: Any, namespace: str, arguments: Any, *rest: Any) -> Any:
        if before is not None and before.holder == arguments.holder:
            arguments = replace(arguments, fence=before.fence)
        return take(before, namespace, arguments, *rest)

    patch(leases, "take", trusting)


@mutant(
    "Any fence is proof enough.",
    caught_by={"watch/whose-fence": "Nor is a fence that was made up."},
)
def any_fence_is_proof(patch: Patch) -> None:
    patch(leases, "_is_holder", lambda lease, fence: fence is not UNSET)


@mutant(
    "A refusal shows the fence of the holder.",
    caught_by={"watch/whose-fence": '"retry_after_seconds"'},
)
def fence_given_away(patch: Patch) -> None:
    refused = leases._refused

    def generous(lease: Any, *rest: Any) -> Any:
        return replace(refused(lease, *rest), fence=lease.fence)

    patch(leases, "_refused", generous)


@mutant(
    "A lease that has lapsed is renewed, if nobody has taken it.",
    caught_by={"watch/a-lease-that-lapsed": "Nobody wants it, and yet it is over."},
)
def lapsed_lease_renewed(patch: Patch) -> None:
    renew = leases.renew

    def reviving(before: Any, arguments: Any, now: Any) -> Any:
        if before is not None and before.held:
            before = replace(before, expires_watched=now.watched + 1)
        return renew(before, arguments, now)

    patch(leases, "renew", reviving)


@mutant(
    "A lease that is held can be taken a second before it lapses.",
    caught_by={"watch/a-lease-that-lapsed": "Held to its last second."},
)
def lease_ends_early(patch: Patch) -> None:
    def early(lease: Any, now: Any) -> bool:
        return bool(lease.held and lease.expires_watched - 1000 > now.watched)

    patch(leases, "is_held", early)


@mutant(
    "A lease that was let go is renewed with its old fence.",
    caught_by={"watch/whose-fence": "What was let go is over."},
)
def released_lease_renewed(patch: Patch) -> None:
    renew = leases.renew

    def reviving(before: Any, arguments: Any, now: Any) -> Any:
        return renew(None if before is None else replace(before, held=True), arguments, now)

    patch(leases, "renew", reviving)


@mutant(
    "A renewal is a new acquisition, with another generation.",
    caught_by={"watch/whose-fence": "Shown, it renews."},
)
def renewal_acquires(patch: Patch) -> None:
    take = leases.take

    def acquiring(before: Any, namespace: str, arguments: Any, fence: str, now: Any) -> Any:
        taken = take(before, namespace, arguments, fence, now)
        if before is None or taken.lease is None or taken.lease.fence != before.fence:
            return taken
        return take(leases.free(before), namespace, arguments, fence, now)

    patch(leases, "take", acquiring)


@mutant(
    "Each acquisition of a key has the same fence.",
    caught_by={"watch/whose-fence": '"as":{"$not":{"$ref":"fence"}}'},
)
def fence_of_the_key(patch: Patch) -> None:
    take = leases.take

    def same(before: Any, namespace: str, arguments: Any, fence: str, now: Any) -> Any:
        return take(before, namespace, arguments, f"fence_{arguments.key}", now)

    patch(leases, "take", same)


@mutant(
    "A release asks for no fence.",
    caught_by={"watch/whose-fence": "It lets nothing go either."},
)
def release_asks_for_no_fence(patch: Patch) -> None:
    release = leases.release

    def unfenced(before: Any, arguments: Any, now: Any) -> Any:
        if before is not None and leases.is_held(before, now):
            arguments = replace(arguments, fence=before.fence)
        return release(before, arguments, now)

    patch(leases, "release", unfenced)


@mutant(
    "A fence that the key had before still releases it.",
    caught_by={"watch/whose-fence": "The fence of before lets nothing go."},
)
def old_fence_releases(patch: Patch) -> None:
    take, release = leases.take, leases.release
    ever: set[str] = set()

    def noting(*args: Any) -> Any:
        taken = take(*args)
        if taken.lease is not None:
            ever.add(taken.lease.fence)
        return taken

    def forgiving(before: Any, arguments: Any, now: Any) -> Any:
        if before is not None and arguments.fence in ever:
            arguments = replace(arguments, fence=before.fence)
        return release(before, arguments, now)

    patch(leases, "take", noting)
    patch(leases, "release", forgiving)


@mutant(
    "A release forgets the generation of the key.",
    caught_by={"watch/whose-fence": '"generation":2,"fence"'},
)
def generation_forgotten(patch: Patch) -> None:
    free = leases.free
    patch(leases, "free", lambda lease: replace(free(lease), generation=0))


@mutant(
    "A fire frees the leases that name no scope as well.",
    caught_by={"watch/only-its-own-leases": "One was freed"},
)
def unscoped_leases_freed(patch: Patch) -> None:
    of_scopes = kept.of_scopes
    column = schema.leases.c
    free_standing = sa.select(*rows.LEASE).where(column.scope.is_(None), column.held == 1)

    def generous(tx: Any, keys: Any) -> Any:
        found = of_scopes(tx, keys)
        for lease in map(rows.lease, tx.conn.execute(free_standing)):
            for key in keys:
                found[key].append(lease)
        return found

    patch(kept, "of_scopes", generous)


@mutant(
    "A fire frees the leases of every scope.",
    caught_by={"watch/only-its-own-leases": "One was freed"},
)
def all_scopes_freed(patch: Patch) -> None:
    of_scopes = kept.of_scopes
    scoped = sa.select(schema.leases.c.namespace, schema.leases.c.scope).distinct()

    def careless(tx: Any, keys: Any) -> Any:
        every = [tuple(row) for row in tx.conn.execute(scoped) if row[1] is not None]
        held = [lease for leases in of_scopes(tx, every).values() for lease in leases]
        return dict.fromkeys(keys, held)

    patch(kept, "of_scopes", careless)
