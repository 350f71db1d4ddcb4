"""Rows ↔ Structs, strictly: a row that does not hold what it should is a ``CorruptRow``.

Nothing in a row is mended by guessing: a switch whose actions cannot be read must neither fire
something else nor stand in the way of the others.
"""

import contextlib
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec import Raw

from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.watch.fields import ADDRESS
from mcpl_heartbeat.watch.rows import (
    ACTIONS,
    Alert,
    Checkpoint,
    Entry,
    Envelope,
    Identity,
    Lease,
    Switch,
)

S = TypeVar("S", bound=msgspec.Struct)


class CorruptRow(Exception):
    """A row that cannot be read: of which table, its key, and why not."""

    def __init__(self, table: str, key: Sequence[object], why: str) -> None:
        super().__init__(f"{table} {'/'.join(map(str, key))}: {why}")
        self.table = table
        self.key = tuple(key)
        self.why = why


def columns(table: sa.Table, kind: type[msgspec.Struct]) -> tuple[sa.Column[Any], ...]:
    """Return the columns that hold ``kind``'s fields, in their order."""
    return tuple(table.c[name] for name in kind.__struct_fields__)


SWITCH = columns(schema.switches, Switch)
LEASE = columns(schema.leases, Lease)
ENVELOPE = columns(schema.envelopes, Envelope)
CHECKPOINT = columns(schema.checkpoints, Checkpoint)
ENTRY = columns(schema.journal, Entry)
IDENTITY = columns(schema.identities, Identity)


def _struct(kind: type[S], table: str, key: Sequence[object], row: Mapping[str, Any]) -> S:
    try:
        return msgspec.convert(row, kind, strict=True)
    except msgspec.ValidationError as wrong:
        raise CorruptRow(table, key, str(wrong)) from None


def _flag(table: str, key: Sequence[object], row: dict[str, Any], *names: str) -> None:
    """Make booleans of numbers that are 0 or 1."""
    for name in names:
        if row[name] != 0 and row[name] != 1:
            raise CorruptRow(table, key, f"{name} is neither 0 nor 1")
        row[name] = bool(row[name])


def _json(table: str, key: Sequence[object], name: str, text: Any) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, TypeError, ValueError):
        raise CorruptRow(table, key, f"{name} is not JSON") from None


@functools.lru_cache(maxsize=64)
def _actions(text: str) -> tuple[str, ...]:
    """Read a list of actions: some of them, in their order, each once."""
    actions = msgspec.json.decode(text, type=tuple[str, ...])
    if not actions or actions != tuple(a for a in ACTIONS if a in actions):
        raise ValueError(f"on_expiry cannot be {text}")
    return actions


_HOLDS = re.compile(ADDRESS)


def _switch_fault(switch: Switch) -> str | None:
    """Say what no switch can be like, though each of its columns can."""
    if switch.generation < 1 or switch.window_ms < 1:
        return "generation or window_ms is below 1"
    if switch.notify is not None and not _HOLDS.match(switch.notify):
        return "notify is no address"
    if "queue_alert" in switch.on_expiry and switch.notify is None:
        return "queue_alert without notify"
    return None


def switch(row: Sequence[Any]) -> Switch:
    """Read a row of the columns ``SWITCH``."""
    values = dict(zip(Switch.__struct_fields__, row, strict=False))
    key = (values["namespace"], values["scope"])
    _flag("switches", key, values, "nudged", "failed", "wake_on_tasks")
    try:
        values["on_expiry"] = _actions(values["on_expiry"])
    except (msgspec.DecodeError, TypeError, ValueError):
        raise CorruptRow("switches", key, "on_expiry is no list of actions") from None
    found = _struct(Switch, "switches", key, values)
    fault = _switch_fault(found)
    if fault:
        raise CorruptRow("switches", key, fault)
    return found


@functools.lru_cache(maxsize=64)
def actions_text(actions: tuple[str, ...]) -> str:
    """Write a list of actions as its column holds it."""
    return msgspec.json.encode(actions).decode()


def switch_values(switch: Switch) -> dict[str, Any]:
    """Write a switch as its row, to be looked at by a sweep when it is due."""
    values = {name: getattr(switch, name) for name in Switch.__struct_fields__}
    values["on_expiry"] = actions_text(switch.on_expiry)
    values["nudged"] = int(switch.nudged)
    values["failed"] = int(switch.failed)
    values["wake_on_tasks"] = int(switch.wake_on_tasks)
    values["check_watched"] = switch.deadline_watched
    return values


def lease(row: Sequence[Any]) -> Lease:
    """Read a row of the columns ``LEASE``."""
    values = dict(zip(Lease.__struct_fields__, row, strict=True))
    key = (values["namespace"], values["key"])
    _flag("leases", key, values, "held")
    return _struct(Lease, "leases", key, values)


def lease_values(lease: Lease) -> dict[str, Any]:
    """Write a lease as its row."""
    return {**msgspec.structs.asdict(lease), "held": int(lease.held)}


_OPAQUE = ("context", "history", "result")


def envelope(row: Sequence[Any]) -> Envelope:
    """Read a row of the columns ``ENVELOPE``."""
    values = dict(zip(Envelope.__struct_fields__, row, strict=False))
    key = (values["task_id"],)
    opaque = {}
    for name in _OPAQUE:
        text, values[name] = values[name], None
        if text is not None:
            opaque[name] = _raw(key, name, text)
    if values["alert"] is not None:
        values["alert"] = _alert(key, values["alert"])
    elif values["kind"] == "alert":
        raise CorruptRow("envelopes", key, "an alert without its facts")
    found = _struct(Envelope, "envelopes", key, values)
    return msgspec.structs.replace(found, **opaque) if opaque else found


def _raw(key: Sequence[object], name: str, text: Any) -> Raw:
    """Take JSON that nobody here looks into, as it was taken from its sender."""
    # It may nest too deep for where we are now, and is none the worse.
    with contextlib.suppress(RecursionError):
        try:
            msgspec.json.decode(text, type=Raw)
        except (msgspec.DecodeError, TypeError, ValueError):
            raise CorruptRow("envelopes", key, f"{name} is not JSON") from None
    return Raw(text)


def _alert(key: Sequence[object], text: Any) -> Alert:
    try:
        return msgspec.json.decode(text, type=Alert)
    except (msgspec.DecodeError, TypeError, ValueError) as wrong:
        raise CorruptRow("envelopes", key, f"alert: {wrong}") from None


def envelope_values(envelope: Envelope) -> dict[str, Any]:
    """Write an envelope as its row, without the number that it gets or has."""
    values = {name: getattr(envelope, name) for name in Envelope.__struct_fields__}
    del values["seq"]
    for name in _OPAQUE:
        if values[name] is not None:
            values[name] = bytes(values[name]).decode()
    if envelope.alert is not None:
        values["alert"] = msgspec.json.encode(envelope.alert).decode()
    return values


def checkpoint(row: Sequence[Any]) -> Checkpoint:
    """Read a row of the columns ``CHECKPOINT``."""
    values = dict(zip(Checkpoint.__struct_fields__, row, strict=True))
    key = (values["namespace"], values["scope"])
    values["content"] = _json("checkpoints", key, "content", values["content"])
    return _struct(Checkpoint, "checkpoints", key, values)


def checkpoint_values(checkpoint: Checkpoint) -> dict[str, Any]:
    """Write a checkpoint as its row."""
    values = {name: getattr(checkpoint, name) for name in Checkpoint.__struct_fields__}
    values["content"] = msgspec.json.encode(checkpoint.content).decode()
    return values


def entry(row: Sequence[Any]) -> Entry:
    """Read a row of the columns ``ENTRY``."""
    values = dict(zip(Entry.__struct_fields__, row, strict=True))
    key = (values["namespace"], values["scope"], values["seq"])
    values["detail"] = _json("journal", key, "detail", values["detail"])
    return _struct(Entry, "journal", key, values)


def entry_values(entry: Entry) -> dict[str, Any]:
    """Write a line of the journal as its row, without the number that it gets."""
    values = {name: getattr(entry, name) for name in Entry.__struct_fields__}
    del values["seq"]
    values["detail"] = msgspec.json.encode(entry.detail).decode()
    return values


def identity(row: Sequence[Any]) -> Identity:
    """Read a row of the columns ``IDENTITY``."""
    values = dict(zip(Identity.__struct_fields__, row, strict=True))
    return _struct(Identity, "identities", (values["agent"],), values)


def identity_values(identity: Identity) -> dict[str, Any]:
    """Write an identity as its row."""
    return msgspec.structs.asdict(identity)
