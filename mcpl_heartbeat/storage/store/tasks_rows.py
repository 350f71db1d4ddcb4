"""Tasks and their epochs ↔ rows, as strictly as ``rows.py``.

A task is kept in two tables: what changes often is small, and what is large never changes while
somebody works on it. Most calls need only the first part; what they load is a Task without payload,
which is never written over one.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.tasks.rows import Epoch, Field, Task

_LARGE = ("instructions", "output_contract", "input_snapshot", "outputs")
_FIELDS = tuple(name for name in Task.__struct_fields__ if name not in _LARGE)
_KEPT = tuple(name for name in _FIELDS if name != "seq")
TASK = tuple(schema.tasks.c[name] for name in _FIELDS)
PAYLOAD = tuple(schema.task_payloads.c[name] for name in _LARGE)
EPOCH = tuple(schema.task_epochs.c[name] for name in Epoch.__struct_fields__)

_NOTHING = {"input_snapshot": Raw(b"null"), "output_contract": ()}


def task(row: Sequence[Any], *, whole: bool = False) -> Task:
    """Read a row of the columns ``TASK``, or ``whole`` one of ``(*TASK, *PAYLOAD)``."""
    values = dict(zip(_FIELDS, row, strict=False))
    key = (values["id"],)
    payload = _payload(key, row[len(_FIELDS) :]) if whole else _NOTHING
    if values["guard"] != 0 and values["guard"] != 1:
        raise CorruptRow("tasks", key, "guard is neither 0 nor 1")
    values["guard"] = bool(values["guard"])
    try:
        # JSON of others is set afterwards: nothing here looks into it.
        found = msgspec.convert({**values, **_NOTHING}, Task, strict=True)
    except msgspec.ValidationError as wrong:
        raise CorruptRow("tasks", key, str(wrong)) from None
    fault = _fault(found)
    if fault is None and whole and found.status == "submitted" and payload["outputs"] is None:
        fault = "submitted without outputs"
    if fault is not None:
        raise CorruptRow("tasks", key, fault)
    return msgspec.structs.replace(found, **payload) if whole else found


def _fault(task: Task) -> str | None:
    """Say what no task can be like, though each of its columns can."""
    if task.epoch < 1 or task.lease_ms < 1:
        return "epoch or lease_ms is below 1"
    if (task.status == "claimed") != (task.expires_watched is not None):
        return "a lease without a claim, or a claim without a lease"
    return None


def _payload(key: Sequence[object], row: Sequence[Any]) -> dict[str, Any]:
    instructions, contract, snapshot, outputs = row
    if instructions is not None and not isinstance(instructions, str):
        raise CorruptRow("task_payloads", key, "instructions are no text")
    try:
        fields = msgspec.json.decode(contract, type=tuple[Field, ...])
    except (msgspec.DecodeError, TypeError, ValueError):
        raise CorruptRow("task_payloads", key, "output_contract is no contract") from None
    return {
        "instructions": instructions,
        "output_contract": fields,
        "input_snapshot": _raw(key, "input_snapshot", snapshot),
        "outputs": None if outputs is None else _raw(key, "outputs", outputs),
    }


def _raw(key: Sequence[object], name: str, text: Any) -> Raw:
    try:
        msgspec.json.decode(text, type=Raw)
    except (msgspec.DecodeError, TypeError, ValueError):
        raise CorruptRow("task_payloads", key, f"{name} is not JSON") from None
    return Raw(text.encode())


def task_values(task: Task, names: Sequence[str] = _KEPT) -> dict[str, Any]:
    """Write a task as its row, or these columns of it; never the number that it gets or has."""
    values = {name: getattr(task, name) for name in names}
    if "guard" in values:
        values["guard"] = int(task.guard)
    return values


def payload_values(task: Task) -> dict[str, Any]:
    """Write what is large of a task as its row."""
    return {
        "task": task.id,
        "instructions": task.instructions,
        "output_contract": msgspec.json.encode(task.output_contract).decode(),
        "input_snapshot": bytes(task.input_snapshot).decode(),
        "outputs": None if task.outputs is None else bytes(task.outputs).decode(),
    }


def epoch(row: Sequence[Any]) -> Epoch:
    """Read a row of the columns ``EPOCH``."""
    values = dict(zip(Epoch.__struct_fields__, row, strict=True))
    try:
        return msgspec.convert(values, Epoch, strict=True)
    except msgspec.ValidationError as wrong:
        raise CorruptRow("task_epochs", (values["task"], values["epoch"]), str(wrong)) from None
