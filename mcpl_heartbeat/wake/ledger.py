"""One document on disk: what is saved, what is not yet, and which replies wait for which save.

* ``OPENING``  not read yet; nothing is known and nothing is saved.
* ``CLEAN``    the file holds what memory holds.
* ``SAVING``   a save is under way, and holds all there is.
* ``STALE``    a save is under way, and memory has moved on since it began: another follows.
* ``FAILED``   the last save failed; memory is ahead of the file. The next change tries again, and
  so does the clock every 30 s.
* ``SEALED``   the file must be left as it is (it could not be read or copied aside): nothing is
  saved over it until a restart (seed).
* ``STANDBY``  another server holds the files: this one saves nothing.

Replies that speak of a save wait here and are finished by its outcome, so that "saved" is said only
after the sync (law 4). Saves of one document never overlap; changes that come meanwhile share the
next one.
"""

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from mcpl_heartbeat.actions import (
    Changed,
    Document,
    NotSaved,
    Save,
    Saved,
    SaveOutcome,
    Trouble,
)

RETRY_AFTER_MS = 30_000
"""How long (ms) after a failed save it is tried again without a new change."""
MOST_TOOK = 5
"""How many sentences about another hand wait for the next reply; the log has them all."""


class Disk(enum.StrEnum):
    """The states of a document on disk."""

    OPENING = "opening"
    CLEAN = "clean"
    SAVING = "saving"
    STALE = "stale"
    FAILED = "failed"
    SEALED = "sealed"
    STANDBY = "standby"


class Event(enum.StrEnum):
    """What can happen to it."""

    READ = "read"
    READ_SEALED = "read, and must be left as it is"
    READ_STANDBY = "read for show, another server holds it"
    CHANGE = "memory changed"
    BEGUN = "a save began"
    SAVED = "the save is on disk"
    NOT_SAVED = "the save failed"
    SEALED = "the file turned out to be one to leave alone"
    FOREIGN = "somebody else changed the file; merged, to be saved again"
    RETRY = "30 s after a failure"


TRANSITIONS: dict[tuple[Disk, Event], Disk] = {
    (Disk.OPENING, Event.READ): Disk.CLEAN,
    (Disk.OPENING, Event.READ_SEALED): Disk.SEALED,
    **{(state, Event.READ_STANDBY): Disk.STANDBY for state in Disk},
    (Disk.STANDBY, Event.READ): Disk.CLEAN,
    (Disk.STANDBY, Event.READ_SEALED): Disk.SEALED,
    (Disk.CLEAN, Event.CHANGE): Disk.STALE,
    (Disk.SAVING, Event.CHANGE): Disk.STALE,
    (Disk.FAILED, Event.CHANGE): Disk.STALE,
    (Disk.FAILED, Event.RETRY): Disk.STALE,
    (Disk.STALE, Event.BEGUN): Disk.SAVING,
    (Disk.SAVING, Event.SAVED): Disk.CLEAN,
    (Disk.STALE, Event.SAVED): Disk.STALE,
    (Disk.SAVING, Event.NOT_SAVED): Disk.FAILED,
    (Disk.STALE, Event.NOT_SAVED): Disk.STALE,
    (Disk.SAVING, Event.FOREIGN): Disk.STALE,
    (Disk.STALE, Event.FOREIGN): Disk.STALE,
    (Disk.SAVING, Event.SEALED): Disk.SEALED,
    (Disk.STALE, Event.SEALED): Disk.SEALED,
}
"""(state, event) → state; a pair that is not listed changes nothing."""


class Note(msgspec.Struct, frozen=True):
    """What came of the save a reply waited for."""

    saved: bool
    reason: str | None = None
    """Why it was not saved, as a clause."""
    kept: bool = True
    """Whether memory still holds a change that was not saved."""
    took: tuple[str, ...] = ()
    """Sentences about what another hand had written there."""


Finish = Callable[[Note], None]


class _Waiting(msgspec.Struct, frozen=True):
    version: int
    finish: Finish


class Ledger:
    """The state of one document. ``base`` is what the file was last known to hold."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.state = Disk.OPENING
        self.base: Any = None
        self.trouble: Trouble | None = None
        self.failure: str | None = None
        self._under_way: Any = None
        self._saving = False
        self._version = 0
        self._saving_version = 0
        self._retry_at: int | None = None
        self._waiting: list[_Waiting] = []
        # The latest last; a dict, since a hand that keeps at it gives the same sentence each time.
        self._took: dict[str, None] = {}

    @property
    def saving(self) -> bool:
        """Whether a save is under way or about to begin."""
        return self._saving or self.state is Disk.STALE

    def opened(self, base: Any, trouble: Trouble | None, standby: bool) -> None:
        """The file was read: ``base`` is what it held (``None``: nothing that could be used)."""
        self.base = base
        self.trouble = trouble
        self.failure = None
        self._retry_at = None
        if standby:
            self._move(Event.READ_STANDBY)
            # What has not been saved by now never will be: another server has the file.
            self._finish(self._version, False)
        elif trouble is not None and not trouble.savable:
            self._move(Event.READ_SEALED)
        else:
            self._move(Event.READ)

    def change(self) -> None:
        """Memory changed: it is to be saved."""
        self._version += 1
        self._move(Event.CHANGE)

    def when_saved(self, finish: Finish) -> None:
        """Call ``finish`` once it is known whether all changes up to now are on disk."""
        if self.state in (Disk.STALE, Disk.SAVING):
            self._waiting.append(_Waiting(self._version, finish))
        else:
            finish(self._note())

    def begin(self, value: Callable[[], Any]) -> Save | None:
        """The save to carry out now, if one is due and none is under way."""
        if self.state is not Disk.STALE or self._saving:
            return None
        self._move(Event.BEGUN)
        self._saving = True
        self._saving_version = self._version
        self._under_way = value()
        return Save(self.document, self._under_way)

    def settle(self, outcome: SaveOutcome, monotonic: int) -> None:
        """Take the outcome of the save that was under way (``Changed`` goes to ``merged``)."""
        self._saving = False
        version = self._saving_version
        kept = True
        match outcome:
            case Saved(note=note):
                self.base = self._under_way
                self.failure = None
                self._retry_at = None
                if note:
                    self._take_note(note)
                self._move(Event.SAVED)
            case NotSaved(reason=reason, trouble=trouble, kept=kept):
                self.failure = reason
                self._retry_at = monotonic + RETRY_AFTER_MS
                if trouble is not None and not trouble.savable:
                    self.trouble = trouble
                    self._retry_at = None
                    version = self._version
                    self._move(Event.SEALED)
                else:
                    self._move(Event.NOT_SAVED)
            case Changed():
                raise TypeError("a changed file is merged first: call merged()")
        self._under_way = None
        self._finish(version, isinstance(outcome, Saved), kept=kept)

    def merged(self, base: Any, trouble: Trouble | None, took: str | None) -> None:
        """What somebody else wrote, now ``base``, was merged into memory: save again."""
        self._saving = False
        self._under_way = None
        self.base = base
        self.trouble = trouble or self.trouble
        if took is not None:
            self._take_note(took)
        self._move(Event.FOREIGN)

    def save_again(self) -> None:
        """Try a failed save again at once: there may be no later."""
        self._retry_at = None
        self._move(Event.RETRY)

    def pass_time(self, monotonic: int) -> None:
        """Try a failed save again when its time has come."""
        if self._retry_at is not None and monotonic >= self._retry_at:
            self.save_again()

    @property
    def next_monotonic(self) -> int | None:
        """When (monotonic ms) ``pass_time`` next has something to do."""
        return self._retry_at if self.state is Disk.FAILED else None

    def _finish(self, version: int, saved: bool, *, kept: bool = True) -> None:
        ready = [entry for entry in self._waiting if entry.version <= version]
        if not ready:
            return
        self._waiting = self._waiting[len(ready) :]
        reason = self._note().reason if self.state is Disk.STANDBY else self.failure
        kept = kept and self.state is not Disk.STANDBY
        note = Note(saved, None if saved else reason, kept, tuple(self._took))
        self._took = {}
        for entry in ready:
            entry.finish(note)

    def _take_note(self, sentence: str) -> None:
        self._took.pop(sentence, None)
        self._took[sentence] = None
        if len(self._took) > MOST_TOOK:
            del self._took[next(iter(self._took))]

    def _note(self) -> Note:
        if self.state is Disk.CLEAN:
            return Note(True)
        if self.state is Disk.SEALED and self.trouble is not None:
            return Note(False, self.trouble.text)
        return Note(False, self.failure or "another server holds the files")

    def _move(self, event: Event) -> None:
        self.state = TRANSITIONS.get((self.state, event), self.state)
