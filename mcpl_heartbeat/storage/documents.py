"""One JSON file kept safe: read, copied aside if it cannot be used, replaced whole, never overrun.

What this promises (seed, "No save loses this file"; issue 2 §5):

* what cannot be read is left as it is, and nothing is saved over it until it is opened again;
* what can be read but not used, or only in part, is copied aside before anything replaces it;
* a save leaves the old content or the new one, whole, whatever fails and whenever;
* what somebody else wrote meanwhile is handed back to be merged, not overwritten.

All calls block, so they are made from a worker thread, one at a time for a document. ``OSError``
never leaves this module: outcomes are the values in ``actions``.
"""

# Descriptors and exact system calls are the point here, and pathlib hides them.
# ruff: noqa: PTH100, PTH110, PTH116, PTH120, PTH121

import errno
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from mcpl_heartbeat.actions import (
    Changed,
    Decoded,
    NotSaved,
    Opened,
    Opening,
    Saved,
    SaveOutcome,
    Trouble,
)
from mcpl_heartbeat.storage import disk
from mcpl_heartbeat.storage.lock import Lock, acquire_all

__all__ = ["DocumentFile", "Lock", "acquire_all", "open_files"]

_LOOK_AGAIN_S = 0.05
_LOOKS = 20

Decode = Callable[[bytes], Decoded]
Encode = Callable[[Any], bytes]


class DocumentFile:
    """The document at ``path``; ``label`` names it in sentences ("reminders").

    Symlinks are followed at each call. ``pause`` (seconds) is what waits between two looks at a
    file that seems half written.
    """

    def __init__(
        self,
        path: str,
        decode: Decode,
        encode: Encode,
        label: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.path = os.path.abspath(path)
        self._decode = decode
        self._encode = encode
        self._name = f"The {label} file {_shown(self.path)}"
        self._pause = pause
        self._known: disk.Fingerprint | None = None
        self._known_hash: int | None = None
        self._sealed: Trouble | None = Trouble(f"{self._name} has not been opened.", savable=False)

    # --- Reading -----------------------------------------------------------------------------

    def open(self) -> Opened:
        """Read the file to run on it; what cannot be wholly used is copied aside first.

        Nothing there gives ``Opened()``, and the first save makes it.
        """
        self._sealed = None
        self._remember(None)
        target = os.path.realpath(self.path)
        disk.remove_stale(target)
        try:
            content, decoded = self._read(target)
        except OSError as error:
            return Opened(trouble=self._seal(f"could not be read ({disk.reason(error)})"))
        if content is None or decoded is None:
            return Opened()
        self._remember(content)
        if decoded.problem is None:
            return Opened(decoded.value)
        copy = self._copy_aside(target, content, decoded)
        if isinstance(copy, Trouble):
            return Opened(trouble=copy)
        return Opened(decoded.value, Trouble(self._aside(decoded, copy), savable=True))

    def peek(self) -> Opened:
        """Read the file for show only: nothing is written or copied, and it cannot be saved."""
        try:
            content, decoded = self._read(os.path.realpath(self.path))
        except OSError as error:
            text = f"{self._name} could not be read ({disk.reason(error)})."
            return Opened(trouble=Trouble(text, savable=False))
        if content is None or decoded is None:
            return Opened()
        if decoded.problem is None:
            return Opened(decoded.value)
        how = "could not be used" if decoded.value is None else "could be used only in part"
        text = f"{self._name} {how}: {decoded.problem}."
        return Opened(decoded.value, Trouble(text, savable=True))

    def seal(self, why: str) -> Trouble:
        """Save nothing to this file until it is opened again; ``why`` ends a sentence about it."""
        return self._seal(why)

    def _read(self, target: str) -> tuple[disk.Content | None, Decoded | None]:
        """The file and what it holds; looks again while it seems that somebody is writing it."""
        looks = 0
        while (content := disk.read(target)) is not None:
            decoded = self._decode(content.data)
            if decoded.value is not None or looks == _LOOKS:
                return content, decoded
            looks += 1
            self._pause(_LOOK_AGAIN_S)
            if disk.fingerprint(target) == content.fingerprint:
                return content, decoded
        return None, None

    # --- Saving ------------------------------------------------------------------------------

    def save(self, value: Any) -> SaveOutcome:
        """Make ``value`` the file's content, durably, unless somebody else has changed the file.

        ``Changed`` hands back what was found instead: merge it and save again. A file that is gone
        or empty is written anew, in a new folder if need be. One that was torn meanwhile is copied
        aside, replaced, and told of in the note.
        """
        if self._sealed is not None:
            return NotSaved(self._sealed.text, self._sealed)
        data = self._encode(value)
        try:
            return self._replace(os.path.realpath(self.path), data)
        except OSError as error:
            return NotSaved(disk.reason(error))

    def _replace(self, target: str, data: bytes) -> SaveOutcome:
        folder = os.path.dirname(target)
        found = self._foreign(target)
        if isinstance(found, Changed | NotSaved):
            return found
        disk.make_folder(folder)
        draft = disk.Draft(target, data, _status(target))
        try:
            # Writing took a while; somebody may have come first.
            found_late = self._foreign(target)
            if isinstance(found_late, Changed | NotSaved):
                return found_late
            _require_writable(target)
            draft.rename()
        finally:
            draft.discard()
        self._known = draft.fingerprint
        self._known_hash = hash(data)
        disk.sync_folder(folder)
        return Saved(found_late or found)

    def _foreign(self, target: str) -> Changed | NotSaved | str | None:
        """What another hand has done to the file since we last read or wrote it.

        ``None``: nothing that is in the way of a save. A sentence: it was torn, and is copied
        aside. ``Changed``: it holds something to merge. ``NotSaved``: it must be left alone.
        """
        try:
            now = disk.fingerprint(target)
            if now is None or now == self._known:
                return None
            content, decoded = self._read(target)
        except OSError as error:
            trouble = self._seal(f"could not be read ({disk.reason(error)})")
            return NotSaved(trouble.text, trouble)
        if content is None or decoded is None or not content.data.strip():
            return None
        if hash(content.data) == self._known_hash:
            self._known = content.fingerprint
            return None
        if decoded.problem is None:
            self._remember(content)
            return Changed(Opened(decoded.value))
        copy = self._copy_aside(target, content, decoded)
        if isinstance(copy, Trouble):
            return NotSaved(copy.text, copy)
        self._remember(content)
        if decoded.value is not None:
            return Changed(Opened(decoded.value, Trouble(self._aside(decoded, copy), savable=True)))
        return (
            f"{self._name} was changed by someone else to what could not be used "
            f"({decoded.problem}): it was copied to {_shown(copy)} and written anew from memory."
        )

    # --- Words and memory --------------------------------------------------------------------

    def _remember(self, content: disk.Content | None) -> None:
        self._known = content.fingerprint if content else None
        self._known_hash = hash(content.data) if content else None

    def _copy_aside(self, target: str, content: disk.Content, decoded: Decoded) -> str | Trouble:
        try:
            return disk.copy_aside(target, content)
        except OSError as error:
            how = "used" if decoded.value is None else "used whole"
            return self._seal(
                f"could not be {how} ({decoded.problem}) and could not be copied aside "
                f"({disk.reason(error)})"
            )

    def _aside(self, decoded: Decoded, copy: str) -> str:
        if decoded.value is None:
            return (
                f"{self._name} could not be used: {decoded.problem}. "
                f"It was copied to {_shown(copy)}, and the server started without it."
            )
        return (
            f"{self._name} could be used only in part: {decoded.problem}. "
            f"All of it was copied to {_shown(copy)} first."
        )

    def _seal(self, why: str) -> Trouble:
        text = (
            f"{self._name} {why}, so it is left as it is and nothing is saved over it until this "
            "server is restarted."
        )
        self._sealed = Trouble(text, savable=False)
        return self._sealed


def _shown(path: str) -> str:
    """The path as text that any JSON can carry."""
    return os.fsencode(path).decode(errors="replace")


def _status(target: str) -> os.stat_result | None:
    try:
        return os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _require_writable(target: str) -> None:
    """Respect a file's write protection, as a plain write would: a rename goes over it."""
    if not os.access(target, os.W_OK) and os.path.exists(target):
        raise PermissionError(errno.EACCES, "the file is write-protected")


# --- Both files together -------------------------------------------------------------------------


def open_files(config: DocumentFile, reminders: DocumentFile, locks: Sequence[Lock]) -> Opening:
    """Lock and read both documents; held by another server, read them for show only.

    To take over, call ``acquire_all`` until it gives ``None``, then this again. Two paths that lead
    to one file are trouble: neither is read or written.
    """
    if _same_file(config.path, reminders.path):
        why = "is set as the config file and the reminders file at once"
        return Opening(Opened(trouble=config.seal(why)), Opened(trouble=reminders.seal(why)))
    holder = acquire_all(locks)
    if holder is not None:
        return Opening(config.peek(), reminders.peek(), holder)
    return Opening(config.open(), reminders.open())


def _same_file(one: str, other: str) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
