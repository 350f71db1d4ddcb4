"""Servers that lose what is in a file, or say that they saved what they did not."""

# Each mutant's sentence stands in its decorator.
# ruff: noqa: D103

from typing import Any

import msgspec

from conformance.mutants import Patch, mutant
from mcpl_heartbeat.actions import Changed, Decoded, Opened, Saved
from mcpl_heartbeat.storage import disk
from mcpl_heartbeat.storage.documents import DocumentFile
from mcpl_heartbeat.storage.lock import Lock
from mcpl_heartbeat.wake import files, wing
from mcpl_heartbeat.wake.calls import WakeCalls
from mcpl_heartbeat.wake.ledger import Ledger, Note


@mutant(
    "A save leaves half a file.",
    caught_by=("files/said-means-done", "agent-framework-0.20/one-shot-reminder"),
)
def torn_save(patch: Patch) -> None:
    begin = disk.Draft.__init__

    def half(self: disk.Draft, target: str, data: bytes, like: Any) -> None:
        begin(self, target, data[: len(data) // 2], like)

    patch(disk.Draft, "__init__", half)


@mutant(
    "The reply says saved before anything was, and whatever comes of it.",
    caught_by=("files/unreadable", "files/unwritable"),
)
def saved_before_saving(patch: Patch) -> None:
    def at_once(self: Ledger, finish: Any) -> None:
        finish(Note(True))

    patch(Ledger, "when_saved", at_once)


@mutant(
    "Nothing is ever written.",
    caught_by=("files/said-means-done", "misbehaving/reconnecting"),
)
def nothing_is_written(patch: Patch) -> None:
    patch(DocumentFile, "save", lambda self, value: Saved())


@mutant(
    "A taken one-shot stays in the file, and fires again after a restart.",
    caught_by=("agent-framework-0.20/one-shot-reminder", "misbehaving/reconnecting"),
)
def taken_but_not_saved(patch: Patch) -> None:
    reminder_answered = wing.WakeWing._reminder_answered

    def unsaved(self: wing.WakeWing, *args: Any) -> None:
        change = self.reminders_ledger.change
        self.reminders_ledger.change = lambda: None  # type: ignore[method-assign]
        try:
            reminder_answered(self, *args)
        finally:
            self.reminders_ledger.change = change  # type: ignore[method-assign]

    patch(wing.WakeWing, "_reminder_answered", unsaved)


@mutant(
    "A file that cannot be used is overwritten without a copy.",
    caught_by=("files/torn-reminders", "files/torn-config", "files/rows-that-cannot-be-used"),
)
def no_copy_aside(patch: Patch) -> None:
    def pretended(target: str, content: Any) -> str:
        return f"{target}.unreadable-000000000000"

    patch(disk, "copy_aside", pretended)


@mutant(
    "Replies do not say that a file could not be used.",
    caught_by=("files/torn-reminders", "files/rows-that-cannot-be-used", "files/not-utf-8"),
)
def file_trouble_unsaid(patch: Patch) -> None:
    patch(WakeCalls, "_troubles", lambda self, *ledgers: ())


@mutant(
    "One row that cannot be used costs the whole file.",
    caught_by="files/rows-that-cannot-be-used",
)
def one_bad_row_costs_all(patch: Patch) -> None:
    decode_reminders = files.decode_reminders

    def strict(data: bytes) -> Any:
        decoded = decode_reminders(data)
        return decoded if decoded.problem is None else Decoded(None, decoded.problem)

    patch(files, "decode_reminders", strict)


@mutant("A second server on the same files works on them too.", caught_by="files/two-servers")
def second_server_fires_too(patch: Patch) -> None:
    patch(Lock, "acquire", lambda self: None)


@mutant("Rows deleted by hand come back with the next save.", caught_by="files/edited-by-hand")
def deleted_rows_come_back(patch: Patch) -> None:
    def keeping(base: Any, theirs: Any, ours: Any, *, whole: bool = True) -> Any:
        return files.merge_reminders(base, theirs, ours, whole=False)

    patch(wing, "merge_reminders", keeping)


@mutant(
    "What another hand wrote is overwritten.",
    caught_by=("files/edited-by-hand", "files/config-edited-by-hand"),
)
def other_hands_overwritten(patch: Patch) -> None:
    patch(DocumentFile, "_foreign", lambda self, target: None)


@mutant(
    "The reply does not say that another hand's changes were taken over.",
    caught_by=("files/edited-by-hand", "files/config-edited-by-hand"),
)
def other_hands_unsaid(patch: Patch) -> None:
    merged = Ledger.merged

    def silent(self: Ledger, base: Any, trouble: Any, took: Any) -> None:
        merged(self, base, trouble, None)

    patch(Ledger, "merged", silent)


@mutant(
    "Members that the server does not know are dropped.",
    caught_by=("files/edited-by-hand", "files/config-edited-by-hand"),
)
def unknown_members_dropped(patch: Patch) -> None:
    patch(files, "_kept", lambda members, known: msgspec.UNSET)


@mutant("A symbolic link is replaced by a file.", caught_by="files/symbolic-link")
def links_replaced(patch: Patch) -> None:
    replace = DocumentFile._replace

    def blunt(self: DocumentFile, target: str, data: bytes) -> Any:
        return replace(self, self.path, data)

    patch(DocumentFile, "_replace", blunt)


@mutant(
    "A file that was removed or emptied is not written again with what it held.",
    caught_by="files/removed-under-the-server",
)
def removed_means_forgotten(patch: Patch) -> None:
    foreign = DocumentFile._foreign

    def believing(self: DocumentFile, target: str) -> Any:
        found = disk.read(target)
        if self._known is not None and (found is None or not found.data.strip()):
            empty = () if "reminders" in self._name else files.Config()
            self._known = None if found is None else found.fingerprint
            return Changed(Opened(empty))
        return foreign(self, target)

    patch(DocumentFile, "_foreign", believing)


@mutant(
    "A failed save leaves its temporary file behind.",
    caught_by="files/unwritable",
)
def temporary_files_left(patch: Patch) -> None:
    patch(disk.Draft, "discard", lambda self: None)
