"""What the core asks of the shell, and what the shell tells it back.

The core (everything outside ``shell/`` and ``storage/``) never does I/O and never reads a clock.
It is handed bytes, moments and outcomes and returns a list of the actions below; the shell carries
them out in order. Tests compare the lists.

Units: a wall time is milliseconds since 1970-01-01T00:00Z, a monotonic time is milliseconds since
an arbitrary start and keeps counting while the machine is suspended.
"""

import enum
from typing import Any

import msgspec


class Moment(msgspec.Struct, frozen=True):
    """One reading of both clocks, taken together."""

    wall: int
    """Milliseconds since 1970-01-01T00:00Z; can step either way."""
    monotonic: int
    """Milliseconds since an arbitrary start; never steps, counts suspend where the system can."""


class Document(enum.StrEnum):
    """The two files of the wake wing."""

    CONFIG = "config"
    REMINDERS = "reminders"


class Level(enum.StrEnum):
    """How grave a log line is; only ``WARNING`` is marked in its text."""

    INFO = "info"
    WARNING = "warning"


class Reply(msgspec.Struct, frozen=True):
    """Write one line (an answer to the host, LF included)."""

    line: bytes


class Push(msgspec.Struct, frozen=True):
    """Write one line (a ``push/event`` Request of ours, LF included)."""

    line: bytes
    event_id: str


class Save(msgspec.Struct, frozen=True):
    """Make ``value`` the content of ``document`` on disk, then call ``saved``.

    One save of a document is under way at a time. ``value`` is a ``Config`` for the config and a
    tuple of ``Reminder`` rows for the reminders; both are frozen, so a thread may encode them.
    """

    document: Document
    value: Any


class WakeAt(msgspec.Struct, frozen=True):
    """Call ``tick`` when either clock reaches its moment (``None``: not on that clock).

    Each one replaces the one before it. The shell calls ``tick`` at least every 30 s anyway, so
    that no clock step or suspend is missed for longer.
    """

    wall: int | None
    monotonic: int | None


class Log(msgspec.Struct, frozen=True):
    """Write one line to stderr, where the operator looks."""

    level: Level
    text: str


class Ask(msgspec.Struct, frozen=True):
    """Carry out a call of ``tool`` on the shared store, then call ``told`` with its outcome.

    Asks leave in the order in which they came and end in any. ``secret`` is the key that the caller
    sent; ``None``: the server's own.
    """

    id: int
    tool: str
    arguments: Any
    secret: str | None = None


class Listen(msgspec.Struct, frozen=True):
    """From now on look for what is to be pushed and hand it to ``news``; each replaces the last.

    ``alerts``: how many alerts to take at most each time, 0 for none, or ``None`` to look for
    nothing at all. ``here``: whether pushes reach the agent, which is what the store is told.
    """

    alerts: int | None
    here: bool
    held: tuple[Any, ...] = ()
    """Nudges that ``news`` gave and the host has not taken: it is to say which still stand."""


class Settle(msgspec.Struct, frozen=True):
    """This mail (the ``seq`` of each) was taken by the host, or is let go for another to push."""

    seqs: tuple[int, ...]
    taken: bool


class Seek(msgspec.Struct, frozen=True):
    """From now on look for claimable tasks as well, or no longer; each replaces the last.

    Of those that the agent was not told of yet; they are handed to ``news`` with the rest.
    ``reviews``: how many reviews of tasks to take at most each time, as alerts are. ``here``:
    whether a push of either reaches the agent, which is what the store is told.
    """

    wanted: bool
    reviews: int = 0
    here: bool = False


class Woken(msgspec.Struct, frozen=True):
    """The push of this ``work``, as ``news`` gave it, was taken; or another may push it."""

    work: Any
    taken: bool


class Unsent(msgspec.Struct, frozen=True):
    """The host is gone without having taken these nudges, as ``news`` gave them: another may."""

    nudges: tuple[Any, ...]


ForStore = Ask | Listen | Settle | Seek | Woken | Unsent
"""What the shared store is asked to do, or told."""

Action = Reply | Push | Save | WakeAt | Log | ForStore


class Trouble(msgspec.Struct, frozen=True):
    """Why a file's content is not, or not wholly, what the server runs on (seed: "No save loses…").

    ``text`` is one sentence for replies and the log: which file, what was wrong, where the copy is.
    ``savable`` is false for a file that could not be read or copied aside: it is left as it is and
    nothing is saved over it until a restart reads it again.
    """

    text: str
    savable: bool


class Opened(msgspec.Struct, frozen=True):
    """What reading one document gave. ``value`` is ``None`` when there is nothing to start from."""

    value: Any = None
    trouble: Trouble | None = None


class Opening(msgspec.Struct, frozen=True):
    """Both documents as read at start, or when this server takes over from another.

    ``held_by`` names the other server that holds the files' lock ("process 4711"): this one then
    fires nothing and saves nothing until a later ``Opening`` comes without it.
    """

    config: Opened
    reminders: Opened
    held_by: str | None = None


class Saved(msgspec.Struct, frozen=True):
    """The content is on disk: written, synced, renamed, its folder synced.

    ``note`` is a sentence for replies about something done on the way, such as a torn file that
    was found in its place and copied aside first.
    """

    note: str | None = None


class NotSaved(msgspec.Struct, frozen=True):
    """The file is as it was. ``reason`` is a clause such as "No space left on device".

    ``trouble`` is set when the file on disk has turned out to be one that must be left alone.
    """

    reason: str
    trouble: Trouble | None = None
    kept: bool = True
    """Whether memory keeps what was not saved; it does not when another server takes over."""


class Changed(msgspec.Struct, frozen=True):
    """Nothing was written: somebody else changed the file. Merge ``opened`` and save again."""

    opened: Opened


SaveOutcome = Saved | NotSaved | Changed


class Decoded(msgspec.Struct, frozen=True):
    """What a document's bytes hold, judged by the core.

    * ``value`` set, ``problem`` ``None``: used whole.
    * ``value`` set, ``problem`` set: used in part; ``problem`` says what was left out.
    * ``value`` ``None``, ``problem`` set: not what this server writes (torn, other shape).
    """

    value: Any
    problem: str | None = None
