"""What the tests of the document store share."""

import os
from pathlib import Path
from typing import Any

from mcpl_heartbeat.actions import NotSaved, Opened, Trouble
from mcpl_heartbeat.storage.documents import DocumentFile
from mcpl_heartbeat.wake.files import (
    Reminder,
    decode_config,
    decode_reminders,
    encode_config,
    encode_reminders,
)


def rows(*ids: str, **changes: Any) -> tuple[Reminder, ...]:
    fields: dict[str, Any] = {"created_at": 1, "fire_at": 2, "every_seconds": None} | changes
    return tuple(Reminder(id=id_, message=f"do {id_}", **fields) for id_ in ids)


def no_pause(_seconds: float) -> None:
    """Nothing is being written in most tests, so there is nothing to wait for."""


def reminders_file(path: Path | str, pause: Any = no_pause) -> DocumentFile:
    return DocumentFile(str(path), decode_reminders, encode_reminders, "reminders", pause)


def config_file(path: Path | str) -> DocumentFile:
    return DocumentFile(str(path), decode_config, encode_config, "config", no_pause)


def holds(path: Path | str) -> tuple[Reminder, ...] | None:
    """The rows of a file that must be whole; ``None`` when there is no file."""
    if not os.path.lexists(path):
        return None
    decoded = decode_reminders(Path(path).read_bytes())
    assert decoded.problem is None, decoded
    value: tuple[Reminder, ...] = decoded.value
    return value


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def copies(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.unreadable-*"))


def trouble_of(outcome: Any) -> Trouble:
    assert isinstance(outcome, Opened | NotSaved), outcome
    assert outcome.trouble is not None
    return outcome.trouble
