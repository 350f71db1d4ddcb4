"""The beats of one batch, taken together: read at once, decided in order, written at once."""

from collections.abc import Sequence

import msgspec

from mcpl_heartbeat.storage.store import due, identities, journal, mail, switches
from mcpl_heartbeat.storage.store.sql import Key
from mcpl_heartbeat.storage.store.switches import Loaded
from mcpl_heartbeat.storage.store.transaction import Transaction
from mcpl_heartbeat.watch.arguments import HeartbeatArguments
from mcpl_heartbeat.watch.beats import with_delivery
from mcpl_heartbeat.watch.failures import Failure, failure
from mcpl_heartbeat.watch.results import HeartbeatResult
from mcpl_heartbeat.watch.rows import Entry, Identity, Switch
from mcpl_heartbeat.watch.switches import beat, split_address

Beat = tuple[Identity, HeartbeatArguments]


def take(tx: Transaction, beats: Sequence[Beat]) -> list[HeartbeatResult | Failure]:
    """Take calls of ``heartbeat`` in their order; what is due on their scopes fires first."""
    keys = {(who.namespace, arguments.scope) for who, arguments in beats}
    found = due.settle(tx, keys)
    known = identities.registered(tx, {_agent(a.notify_address) for _, a in beats} - {""})
    now: dict[Key, Switch] = dict(found.switches)
    outcomes: list[HeartbeatResult | Failure] = []
    entries: list[Entry] = []
    resolved: dict[mail.Of, mail.Resolution] = {}
    for who, arguments in beats:
        key = (who.namespace, arguments.scope)
        agent = _agent(arguments.notify_address)
        if agent and not arguments.disarm and agent not in known:
            outcomes.append(not_registered(arguments.notify_address))
            continue
        before = now.get(key) or _set_aside(tx, found, key)
        beaten = beat(before, who.namespace, arguments, tx.now, who.label)
        if isinstance(beaten, Failure):
            outcomes.append(beaten)
            continue
        if beaten.switch is not None:
            now[key] = beaten.switch
        entries.extend(beaten.entries)
        if beaten.resolves is not None and beaten.resolution is not None:
            resolved[(*key, beaten.resolves)] = beaten.resolution
        outcomes.append(_told(beaten.result, found, key))
    switches.save(tx, found, now)
    mail.resolve(tx, resolved)
    journal.write(tx, entries)
    return _deliveries(tx, beats, outcomes)


def not_registered(address: object) -> Failure:
    """Refuse an address that nobody has: at a death it would be too late to find that out."""
    return failure(
        "not_registered",
        f"No agent is registered at {address}: nothing was changed.",
        "Check the address with its owner, whose register or whoami tells it.",
    )


def _agent(address: object) -> str:
    return split_address(address)[0] if isinstance(address, str) else ""


def _set_aside(tx: Transaction, found: Loaded, key: Key) -> Switch | None:
    """Give what was saved of a row that was set aside; its generations go on where they were."""
    saved = found.aside.get(key)
    if saved is None:
        return None
    generation = max(saved.generation, journal.generation(tx, *key))
    return msgspec.structs.replace(saved, generation=generation)


def _told(result: HeartbeatResult, found: Loaded, key: Key) -> HeartbeatResult:
    if key not in found.aside:
        return result
    note = (
        "The record of this scope could not be read and had been set aside: no deadline was kept."
    )
    return msgspec.structs.replace(result, notes=(*result.notes, note))


def _deliveries(
    tx: Transaction, beats: Sequence[Beat], outcomes: Sequence[HeartbeatResult | Failure]
) -> list[HeartbeatResult | Failure]:
    """Add to each reply whom a push would reach."""
    sought = set()
    for (who, _), outcome in zip(beats, outcomes, strict=True):
        if isinstance(outcome, HeartbeatResult):
            if outcome.notify_address:
                sought.add(_agent(outcome.notify_address))
            if outcome.nudge_seconds or outcome.wake_on_tasks:
                sought.add(who.agent)
    if not sought:
        return list(outcomes)
    here = identities.present(tx, sought)
    return [
        outcome
        if isinstance(outcome, Failure)
        else with_delivery(
            outcome,
            alert=(_agent(outcome.notify_address), identities.WATCH) in here,
            nudge=(who.agent, identities.WATCH) in here,
            work=(who.agent, identities.TASKS) in here,
        )
        for (who, _), outcome in zip(beats, outcomes, strict=True)
    ]
