"""The two documents of the wake wing and their locks, as the server uses them."""

import logging
from typing import Any

from mcpl_heartbeat.actions import Document, Opening, SaveOutcome
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
        documents = self._documents
        opening = open_files(documents[Document.CONFIG], documents[Document.REMINDERS], self._locks)
        for lock in self._locks:
            if lock.note is not None:
                _log.warning("%s", lock.note)
        return opening

    def take_over(self) -> Opening | None:
        """Open them if nobody else holds them now; ``None`` while somebody does."""
        return None if acquire_all(self._locks) is not None else self.open()

    def save(self, document: Document, value: Any) -> SaveOutcome:
        """Make ``value`` the content of ``document``; only after ``open``."""
        return self._documents[document].save(value)
