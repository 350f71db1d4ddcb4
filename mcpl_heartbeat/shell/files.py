"""The two documents of the wake wing and their locks, as the server uses them."""

from typing import Any

from mcpl_heartbeat.actions import Document, Opening, SaveOutcome
from mcpl_heartbeat.shell.environment import shown
from mcpl_heartbeat.storage.documents import DocumentFile, Lock, acquire_all, open_files
from mcpl_heartbeat.wake import files as wake


class WakeFiles:
    """The config file and the reminders file. Every method may block; none raises ``OSError``."""

    def __init__(self, config_file: str, reminders_file: str) -> None:
        """Name the files; nothing is touched before ``open``."""
        self._config = DocumentFile(
            config_file, wake.decode_config, wake.encode_config, shown(config_file)
        )
        self._reminders = DocumentFile(
            reminders_file, wake.decode_reminders, wake.encode_reminders, shown(reminders_file)
        )
        self._locks = (Lock(config_file), Lock(reminders_file))

    def open(self) -> Opening:
        """Take both locks and read both files."""
        return open_files(self._config, self._reminders, self._locks)

    def take_over(self) -> Opening | None:
        """Open them if nobody else holds them now; ``None`` while somebody does."""
        return None if acquire_all(self._locks) is not None else self.open()

    def save(self, document: Document, value: Any) -> SaveOutcome:
        """Make ``value`` the content of ``document``."""
        file = self._config if document is Document.CONFIG else self._reminders
        return file.save(value)
