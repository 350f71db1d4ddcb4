"""The two documents of the wake wing and their locks, as the server uses them."""

import logging
import threading
from typing import Any

from mcpl_heartbeat.actions import Document, NotSaved, Opening, SaveOutcome
from mcpl_heartbeat.shell.ports import Taken
from mcpl_heartbeat.storage.documents import DocumentFile, open_files
from mcpl_heartbeat.storage.lock import Lock, acquire_all
from mcpl_heartbeat.wake import files as wake

_log = logging.getLogger("mcpl_heartbeat")


class WakeFiles:
    """The config file and the reminders file. Every method may block."""

    def __init__(self, config_file: str, reminders_file: str) -> None:
        """Name the files; nothing is touched before ``open``."""
        self._names = (config_file, reminders_file)
        self._documents: dict[Document, DocumentFile] = {}
        self._locks: list[Lock] = []
        self._held_by: str | None = None
        self._noted: set[str] = set()
        # Two documents are saved at a time, each in its thread; their locks are seen to by one.
        self._turn = threading.Lock()
        self._saving = 0

    @property
    def undisturbed(self) -> bool:
        """Whether nothing shows that our locks have gone; quick enough to ask at every tick."""
        return self._held_by is not None or all(lock.stands for lock in self._locks)

    def open(self) -> Opening:
        """Take both locks and read both files; where they could not be locked the log says so.

        Raises ``OSError`` only for relative names in a working directory that is gone.
        """
        if not self._documents:
            config, reminders = self._names
            self._locks = [Lock(config), Lock(reminders)]
            self._documents = {
                Document.CONFIG: DocumentFile(
                    config, wake.decode_config, wake.encode_config, "config"
                ),
                Document.REMINDERS: DocumentFile(
                    reminders, wake.decode_reminders, wake.encode_reminders, "reminders"
                ),
            }
        with self._turn:
            return self._open()

    def take_over(self) -> Opening | None:
        """Open them if nobody else holds them now; ``None`` while somebody does."""
        with self._turn:
            # A save that began before the files were taken from us may still be on its way.
            if self._saving or acquire_all(self._locks) is not None:
                return None
            return self._open()

    def check(self) -> Opening | None:
        """See to our locks: one that has gone is taken anew. ``None`` unless another has it now.

        Then we stand by from here on, and this is what the files hold, for show; said once.
        """
        with self._turn:
            return self._check()

    def save(self, document: Document, value: Any) -> SaveOutcome:
        """Make ``value`` the content of ``document``; only after ``open``.

        The locks are seen to first: ``Taken`` holds what ``check`` would have given.
        """
        with self._turn:
            opening = self._check()
            if self._held_by is not None:
                reason = f"another server ({self._held_by}) has taken these files"
                return Taken(reason, kept=False, opening=opening) if opening else NotSaved(reason)
            self._saving += 1
        try:
            return self._documents[document].save(value)
        finally:
            with self._turn:
                self._saving -= 1

    def _open(self) -> Opening:
        documents = self._documents
        opening = open_files(documents[Document.CONFIG], documents[Document.REMINDERS], self._locks)
        self._held_by = opening.held_by
        self._say_notes()
        return opening

    def _check(self) -> Opening | None:
        if self._held_by is not None:
            return None
        holder = next((holder for lock in self._locks if (holder := lock.keep())), None)
        self._say_notes()
        if holder is None:
            return None
        config, reminders = (
            self._documents[document].peek() for document in (Document.CONFIG, Document.REMINDERS)
        )
        for lock in self._locks:
            lock.release()
        self._held_by = holder
        return Opening(config, reminders, holder)

    def _say_notes(self) -> None:
        for lock in self._locks:
            if lock.note is not None and lock.note not in self._noted:
                self._noted.add(lock.note)
                _log.warning("%s", lock.note)
