"""What the two files of the wake wing hold: their rows, decode, encode and three-way merge.

The shapes are those of the Node server this one follows, so its files load unchanged and it can
read ours: the config is an object ``{intervalSeconds, paused, message, deliveryMode?}``, the
reminders are a bare array of ``{id, message, createdAt, fireAt, everySeconds|null}``. We only ever
add members.

Times are whole milliseconds since 1970-01-01T00:00Z, lengths are seconds. Decoding judges
(``Decoded``) and never raises, whatever the bytes. It has a fast road, one typed decode of the
whole, and a slow one, row by row, for files that somebody else had a hand in: rows with members we
do not know, times with fractions, rows that cannot be used.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from mcpl_heartbeat.actions import Decoded
from mcpl_heartbeat.wake.lenient import BOM, UNDECODABLE, member_value, repaired, torn

LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999; the first usable time is 0, the start of 1970."""
LONGEST = 253_402_300_799
"""The longest interval in seconds: from 1970 to the end of 9999."""
MIN_INTERVAL_SECONDS = 60
MIN_EVERY_SECONDS = 5
DEFAULT_INTERVAL_SECONDS = 14_400
DEFAULT_MESSAGE = (
    "This is your regular check-in with yourself: look over what you left open, what has changed "
    "since, and what you promised to come back to. If something is worth doing, do it now or set a "
    "reminder for the right moment; if nothing is, resting until the next wake is a fine answer."
)

DeliveryMode = Literal["message", "silent"]
Extras = dict[str, Raw]
Time = Annotated[int, Meta(ge=0, le=LATEST)]
Every = (
    Annotated[int, Meta(ge=MIN_EVERY_SECONDS, le=LONGEST)]
    | Annotated[float, Meta(ge=MIN_EVERY_SECONDS, le=LONGEST)]
)


class Config(Struct, frozen=True, kw_only=True, rename="camel"):
    """The heartbeat's settings and its next wake (seed: "Schedule is persisted").

    ``next_at`` (ms) and ``next_event_id`` are the wake that comes next, or one that the host has
    not taken yet. ``extras`` are members we do not know, kept as they stand and written back.
    """

    interval_seconds: int | float = DEFAULT_INTERVAL_SECONDS
    paused: bool = False
    message: str = DEFAULT_MESSAGE
    delivery_mode: DeliveryMode = "message"
    next_at: int | None = None
    next_event_id: str | None = None
    extras: Extras | UnsetType = field(default=UNSET, name="")


class Reminder(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """One pending reminder, a row of the reminders file.

    ``created_at`` and ``fire_at`` are ms; ``every_seconds`` is ``None`` for a one-shot.
    ``by_clock`` says that the appointment was given as a local time (``atIso``), so that it moves
    with the wall clock; it is written only when true. ``extras`` are members we do not know, kept
    as they stand and written back; a row in the file cannot set them by a member of empty name.
    """

    id: Annotated[str, Meta(min_length=1)]
    message: str
    created_at: Time
    fire_at: Time
    every_seconds: Every | None
    by_clock: bool = False
    extras: Extras | UnsetType = field(default=UNSET, name="")


class Merged(Struct, frozen=True):
    """A three-way merge: what to run on and save, and a clause on what was taken over."""

    value: Any
    took: str | None = None


_REMINDERS = msgspec.json.Decoder(list[Reminder])
_RAWS = msgspec.json.Decoder(list[Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_ENCODER = msgspec.json.Encoder()


def _kept(members: dict[str, Raw], known: Iterable[str]) -> Extras | UnsetType:
    # Without their white space, so that what was read is equal to what was written.
    extras = {
        name: Raw(msgspec.json.format(bytes(raw), indent=-1))
        for name, raw in members.items()
        if name not in known
    }
    return extras or UNSET


def _time(value: Any) -> int | None:
    if type(value) in {int, float} and 0 <= value < LATEST + 0.5:
        return min(int(value + 0.5) if isinstance(value, float) else int(value), LATEST)
    return None


def _seconds(value: Any, least: int) -> bool:
    return type(value) in {int, float} and least <= value <= LONGEST


# --- Reminders -----------------------------------------------------------------------------------


def decode_reminders(data: bytes) -> Decoded:
    """The reminders in ``data`` as a tuple in file order, or why it holds none. Never raises."""
    body = data.removeprefix(BOM)
    try:
        rows = tuple(_REMINDERS.decode(body))
    except UNDECODABLE:
        return _decode_row_by_row(body)
    ids = {row.id for row in rows}
    # msgspec checks no bounds on integers over 64 bits.
    whole = all(
        row.extras is UNSET and row.fire_at <= LATEST and row.created_at <= LATEST for row in rows
    )
    if not whole or len(ids) < len(rows) or any(map(str.isspace, ids)) or _any_huge(rows):
        return _decode_row_by_row(body)
    return Decoded(rows)


def _any_huge(rows: Sequence[Reminder]) -> bool:
    return any(
        row.every_seconds is not None and not _seconds(row.every_seconds, MIN_EVERY_SECONDS)
        for row in rows
    )


def _decode_row_by_row(body: bytes) -> Decoded:
    body, problems = repaired(body)
    try:
        raws = _RAWS.decode(body)
    except UNDECODABLE as error:
        return torn(body, error, "a list of reminders")
    rows: dict[str, Reminder] = {}
    left_out = 0
    for number, raw in enumerate(raws, 1):
        row = _row(raw)
        if isinstance(row, Reminder) and row.id in rows:
            row = f"its id {row.id} is that of a row before it"
        if isinstance(row, Reminder):
            rows[row.id] = row
            continue
        left_out += 1
        if left_out == 1:
            first = f"row {number}: {row}"
    if left_out:
        which = first if left_out == 1 else f"the first is {first}"
        problems.append(f"{left_out} of {len(raws)} rows could not be used ({which})")
    return Decoded(tuple(rows.values()), "; ".join(problems) or None)


def _row(raw: Raw) -> Reminder | str:
    """The reminder in ``raw``, or the first rule it breaks."""
    try:
        members = _MEMBERS.decode(raw)
    except UNDECODABLE:
        return "it is not an object"
    values = {name: member_value(members[name]) for name in _ROW_MEMBERS if name in members}
    for name, (is_right, rule) in _ROW_MEMBERS.items():
        if name not in values:
            if name != "byClock":
                return f"{name} is missing"
        elif not is_right(values[name]):
            return f"{name} must be {rule}"
    return Reminder(
        id=values["id"],
        message=values["message"],
        created_at=_time(values["createdAt"]) or 0,
        fire_at=_time(values["fireAt"]) or 0,
        every_seconds=values["everySeconds"],
        by_clock=values.get("byClock", False),
        extras=_kept(members, _ROW_MEMBERS),
    )


_Rule = tuple[Callable[[Any], bool], str]
_TIME_RULE: _Rule = (
    lambda value: _time(value) is not None,
    "a time in milliseconds, from 1970 to 9999",
)
_BOOLEAN_RULE: _Rule = (lambda value: type(value) is bool, "true or false")
_TEXT_RULE: _Rule = (lambda value: isinstance(value, str), "a string")
_WORDS_RULE: _Rule = (
    lambda value: isinstance(value, str) and not (not value or value.isspace()),
    "a string that is not blank",
)
_ROW_MEMBERS: dict[str, _Rule] = {
    "id": _WORDS_RULE,
    "message": _TEXT_RULE,
    "createdAt": _TIME_RULE,
    "fireAt": _TIME_RULE,
    "everySeconds": (
        lambda value: value is None or _seconds(value, MIN_EVERY_SECONDS),
        f"null or {MIN_EVERY_SECONDS} seconds or more, and no longer than up to the year 9999",
    ),
    "byClock": _BOOLEAN_RULE,
}


def encode_reminders(rows: Sequence[Reminder]) -> bytes:
    """The file for ``rows``: a JSON array, one row a line, so that people can read and edit it."""
    if not rows:
        return b"[]\n"
    if any(row.extras is not UNSET for row in rows):
        lines = b",\n".join(map(_encode_row, rows))
    else:
        # JSON holds a line feed only between rows here: inside strings it is escaped.
        lines = _ENCODER.encode_lines(rows)[:-1].replace(b"\n", b",\n")
    return b"[\n%b\n]\n" % lines


def _encode_row(row: Reminder) -> bytes:
    if row.extras is UNSET:
        return _ENCODER.encode(row)
    members: dict[str, Any] = {
        "id": row.id,
        "message": row.message,
        "createdAt": row.created_at,
        "fireAt": row.fire_at,
        "everySeconds": row.every_seconds,
    }
    if row.by_clock:
        members["byClock"] = True
    return msgspec.json.format(_ENCODER.encode(members | row.extras), indent=-1)


# --- Config --------------------------------------------------------------------------------------

_CONFIG_MEMBERS: dict[str, tuple[str, _Rule]] = {
    "intervalSeconds": (
        "interval_seconds",
        (
            lambda value: _seconds(value, MIN_INTERVAL_SECONDS),
            f"{MIN_INTERVAL_SECONDS} seconds or more, and no longer than up to the year 9999",
        ),
    ),
    "paused": ("paused", _BOOLEAN_RULE),
    "message": ("message", _WORDS_RULE),
    "deliveryMode": (
        "delivery_mode",
        (lambda value: value in ("message", "silent"), '"message" or "silent"'),
    ),
    "nextAt": (
        "next_at",
        (lambda value: value is None or _TIME_RULE[0](value), f"null or {_TIME_RULE[1]}"),
    ),
    "nextEventId": (
        "next_event_id",
        (lambda value: value is None or _WORDS_RULE[0](value), f"null or {_WORDS_RULE[1]}"),
    ),
}


def decode_config(data: bytes) -> Decoded:
    """The ``Config`` in ``data``, defaults where a member is missing or wrong. Never raises.

    Wrong members are named in the problem; missing ones are not worth a word.
    """
    body, problems = repaired(data.removeprefix(BOM))
    try:
        members = _MEMBERS.decode(body)
    except UNDECODABLE as error:
        return torn(body, error, "an object with the heartbeat's settings")
    values: dict[str, Any] = {"extras": _kept(members, _CONFIG_MEMBERS)}
    for name, (attribute, (is_right, rule)) in _CONFIG_MEMBERS.items():
        if name not in members:
            continue
        value = member_value(members[name])
        if not is_right(value):
            problems.append(f"{name} must be {rule}, so the default was used")
        elif attribute == "next_at" and value is not None:
            values[attribute] = _time(value)
        else:
            values[attribute] = value
    return Decoded(Config(**values), "; ".join(problems) or None)


def encode_config(config: Config) -> bytes:
    """The file for ``config``: one member a line; the next wake only while there is one."""
    members: dict[str, Any] = {
        "intervalSeconds": config.interval_seconds,
        "paused": config.paused,
        "message": config.message,
        "deliveryMode": config.delivery_mode,
    }
    if config.next_at is not None:
        members["nextAt"] = config.next_at
    if config.next_event_id is not None:
        members["nextEventId"] = config.next_event_id
    if config.extras is not UNSET:
        members |= config.extras
    return msgspec.json.format(_ENCODER.encode(members), indent=2) + b"\n"


# --- Three-way merge -----------------------------------------------------------------------------


def merge_config(base: Config, theirs: Config, ours: Config, *, whole: bool = True) -> Merged:
    """Take over, member by member, what the file (``theirs``) changed since ``base``.

    ``base`` is what we last read from the file or wrote to it. With ``whole`` false the file could
    be used only in part: a member that stands at its default there says nothing. The next wake
    (``next_at`` with ``next_event_id``) is one member, and its absence says nothing: the Node
    server drops it when it saves.
    """
    values: dict[str, Any] = {}
    took: list[str] = []
    fresh = Config()
    for name, (attribute, _) in _CONFIG_MEMBERS.items():
        then, now, mine = (getattr(c, attribute) for c in (base, theirs, ours))
        if attribute in ("next_at", "next_event_id"):
            changed = theirs.next_at is not None and _wake(theirs) != _wake(base)
        else:
            changed = now != then and (whole or now != getattr(fresh, attribute))
        values[attribute] = now if changed else mine
        if changed and now != mine and attribute != "next_event_id":
            took.append(name)
    values["extras"], others = _merge_extras(base.extras, theirs.extras, ours.extras, whole)
    took += others
    return Merged(Config(**values), f"{', '.join(took)} changed in the file" if took else None)


def _wake(config: Config) -> tuple[int | None, str | None]:
    return config.next_at, config.next_event_id


def _merge_extras(
    base: Extras | UnsetType, theirs: Extras | UnsetType, ours: Extras | UnsetType, whole: bool
) -> tuple[Extras | UnsetType, list[str]]:
    then, now, mine = ({} if e is UNSET else e for e in (base, theirs, ours))
    result = {
        name: raw for name, raw in mine.items() if name in now or name not in then or not whole
    }
    result |= {name: raw for name, raw in now.items() if then.get(name) != raw}
    took = [name for name in mine | now if result.get(name) != mine.get(name)]
    return result or UNSET, took


def merge_reminders(
    base: Sequence[Reminder],
    theirs: Sequence[Reminder],
    ours: Sequence[Reminder],
    *,
    whole: bool = True,
) -> Merged:
    """Take over, row by row, what the file (``theirs``) changed since ``base``; else ``ours``.

    Rows are the same when their ids are. A row edited in the file wins over whatever we did with
    it, a row added there joins at the end, a row deleted there is gone. With ``whole`` false the
    file could be used only in part, and a row that is missing there may be one of those that could
    not be read: it stays.
    """
    then = {row.id: row for row in base}
    now = {row.id: row for row in theirs}
    mine = {row.id: row for row in ours}
    written = {id_: row for id_, row in now.items() if then.get(id_) != row}
    gone = {id_ for id_ in then if id_ not in now} if whole else set()
    merged = mine | written
    for id_ in gone & merged.keys():
        del merged[id_]
    counts = {
        "changed": sum(id_ in then and mine.get(id_) != row for id_, row in written.items()),
        "added": sum(id_ not in then and mine.get(id_) != row for id_, row in written.items()),
        "removed": len(gone & mine.keys()),
    }
    took = [f"{count} {what}" for what, count in counts.items() if count]
    if not took:
        return Merged(tuple(merged.values()))
    head, *rest = took
    noun = "row" if head.startswith("1 ") else "rows"
    number, what = head.split()
    return Merged(
        tuple(merged.values()), ", ".join([f"{number} {noun} {what}", *rest]) + " in the file"
    )
