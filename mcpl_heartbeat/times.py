"""Milliseconds to text and back, in the agent's zone.

Three promises. What an agent reads is local time with its offset and its zone's name. What goes
out on the wire is UTC. What an agent sends (``atIso``) is either understood as exactly one instant
or refused with the form to send instead; a local time that the zone's clocks skip or show twice is
settled by one rule, and the answer says so.

The rule: **the offset in force before the change counts.** A time inside a gap therefore moves
forward by the length of the gap, and of a time shown twice the first one is meant.

Every wall time is an integer of milliseconds since 1970-01-01T00:00Z. Zones are handed in; nothing
here reads a clock, the environment or the zone database.
"""

import datetime
import functools
import re

import msgspec

_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_MS = -62_135_596_800_000
"""0001-01-01T00:00:00.000Z."""
_LAST_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z."""
_MILLISECOND = datetime.timedelta(milliseconds=1)
_LONGEST_TEXT = 64
_NOT_SHOWN = (ValueError, OverflowError, OSError)
"""What ``datetime`` raises for an instant it cannot show, by platform and by zone."""


class Zone(msgspec.Struct, frozen=True):
    """A time zone and the name it is shown by, such as ``America/Los_Angeles``."""

    name: str
    tzinfo: datetime.tzinfo


UTC = Zone("UTC", datetime.UTC)
"""The zone to fall back to."""


class Instant(msgspec.Struct, frozen=True):
    """A text read as one moment.

    ``note`` is set when the zone's clocks skip that local time or show it twice: one sentence that
    says which instant was taken.
    """

    wall_ms: int
    note: str | None = None


def local_time(wall_ms: int, zone: Zone) -> str:
    """Show an instant as ``2026-10-12T20:02:36-07:00 [America/Los_Angeles]`` (issue 2, §6).

    Whole seconds, rounded down. Never raises: an instant outside the years that the zone can show
    is shown in UTC, and one outside the years 1 to 9999 as its number of milliseconds.
    """
    second = wall_ms // 1000
    if not _FIRST_MS <= wall_ms <= _LAST_MS:
        return f"{wall_ms} ms after 1970-01-01T00:00:00Z"
    return _local_second(second, zone)


# A burst of reminders shows the same few seconds over and over.
@functools.lru_cache(maxsize=512)
def _local_second(second: int, zone: Zone) -> str:
    try:
        shown = datetime.datetime.fromtimestamp(second, zone.tzinfo).isoformat()
    except _NOT_SHOWN:
        return f"{_naive_utc(second * 1000).isoformat(timespec='seconds')}+00:00 [UTC]"
    return f"{shown} [{zone.name}]"


def shows(wall_ms: int, zone: Zone) -> bool:
    """Say whether an instant has a date in the years 1 to 9999, in UTC and in ``zone``."""
    if not _FIRST_MS <= wall_ms <= _LAST_MS:
        return False
    try:
        datetime.datetime.fromtimestamp(wall_ms // 1000, zone.tzinfo)
    except _NOT_SHOWN:
        return False
    return True


@functools.lru_cache(maxsize=16)
def utc_time(wall_ms: int) -> str:
    """Show an instant as ISO 8601 in UTC with milliseconds and ``Z`` (MCPL §9, ``timestamp``).

    Never raises: what lies outside the years 1 to 9999 is shown as the nearest instant inside them,
    so that the wire always carries a valid timestamp.
    """
    within = min(max(wall_ms, _FIRST_MS), _LAST_MS)
    return f"{_naive_utc(within).isoformat(timespec='milliseconds')}Z"


def read_instant(text: str, zone: Zone) -> Instant | str:
    """Read an ISO 8601 date with a time, or say in one clause what to send instead.

    Taken: ``YYYY-MM-DDTHH:MM[:SS[.fff…]]`` followed by ``Z``, ``±HH:MM``, ``±HHMM`` or nothing
    (then it is a local time of ``zone``); a space may stand for the ``T``; a name in brackets is
    taken when it is the zone's own, so that a time this program showed can be sent back as it was.
    Fractions are rounded to the nearest millisecond. The instant must have a date in the years 1
    to 9999 both in UTC and in ``zone``. Never raises. A refusal is text that continues "atIso …".
    """
    if len(text) > _LONGEST_TEXT:
        return f"is longer than {_LONGEST_TEXT} characters; {_wanted(zone)}"
    match = _PROFILE.fullmatch(text.removesuffix(f" [{zone.name}]"))
    if match is None:
        return _other_form(text, zone)
    year, month, day, hour, minute, second = (int(digits or 0) for digits in match.groups()[:6])
    fault = _date_fault(year, month, day) or _time_fault(hour, minute, second)
    if fault is not None:
        return fault
    local = datetime.datetime(year, month, day, hour, minute, second)
    local_ms = _ms(local - _EPOCH) + _fraction_ms(match[7] or "")
    if match[8] is None:
        return _in_zone(local, local_ms, zone)
    offset_ms = _offset_ms(match[8])
    if offset_ms is None:
        return f"has the offset {match[8]}: an offset lies between -23:59 and +23:59"
    return _within_years(Instant(local_ms - offset_ms), zone)


_PROFILE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:\.([0-9]+))?)?(Z|z|[+-][0-9]{2}:?[0-9]{2})?"
)

_OTHER_FORMS = (
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "is a date without a time of day"),
    (re.compile(r"[0-9]{4}-?W[0-9].*"), "is a week date, which is not taken"),
    (re.compile(r"[0-9]{4}-?[0-9]{3}([Tt ].*)?"), "is an ordinal date, which is not taken"),
    (re.compile(r"[0-9]{8}([Tt ].*)?"), "is in the basic form without - and :, which is not taken"),
    (re.compile(r"[+-]?[0-9]+(\.[0-9]+)?"), "is a number, which is not taken"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].*\[.*\]"), "names another zone in brackets"),
)


def _wanted(zone: Zone) -> str:
    return (
        "send YYYY-MM-DDTHH:MM:SS followed by Z or an offset such as +02:00, "
        f"or by nothing for a local time of {zone.name}"
    )


def _other_form(text: str, zone: Zone) -> str:
    for pattern, what in _OTHER_FORMS:
        if pattern.fullmatch(text):
            return f"{what}; {_wanted(zone)}"
    return f"is not a date and time in the form that is taken; {_wanted(zone)}"


def _date_fault(year: int, month: int, day: int) -> str | None:
    if year == 0:
        return "has the year 0000: years run from 0001 to 9999"
    if not 1 <= month <= 12:
        return f"has the month {month:02}: months run from 01 to 12"
    days = _days_in(year, month)
    if not 1 <= day <= days:
        return f"has the day {day:02}: {year:04}-{month:02} has the days 01 to {days}"
    return None


def _time_fault(hour: int, minute: int, second: int) -> str | None:
    if hour == 24:
        return "has the hour 24: midnight is 00:00 of the day that begins then"
    if hour > 24:
        return f"has the hour {hour}: hours run from 00 to 23"
    if minute > 59:
        return f"has the minute {minute}: minutes run from 00 to 59"
    if second > 59:
        return f"has the second {second}: seconds run from 00 to 59"
    return None


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _in_zone(local: datetime.datetime, local_ms: int, zone: Zone) -> Instant | str:
    # PEP 495: for a skipped and for a repeated time alike, fold=0 gives the offset from before the
    # change and fold=1 the one from after it. So fold=0 is the rule; only the note is left to do.
    before = _ms(zone.tzinfo.utcoffset(local.replace(tzinfo=zone.tzinfo)))
    after = _ms(zone.tzinfo.utcoffset(local.replace(tzinfo=zone.tzinfo, fold=1)))
    wall_ms = local_ms - before
    note = None
    if before != after:
        shown = f"{local.isoformat(sep=' ')} in {zone.name}"
        taken = local_time(wall_ms, zone)
        if before < after:
            note = f"The clocks skip {shown}; {taken} was taken, later by the time that is skipped."
        else:
            second = local_time(local_ms - after, zone)
            note = f"The clocks show {shown} twice; the first, {taken}, was taken, not {second}."
    return _within_years(Instant(wall_ms, note), zone)


def _within_years(instant: Instant, zone: Zone) -> Instant | str:
    if shows(instant.wall_ms, zone):
        return instant
    where = "in UTC" if zone.name == "UTC" else f"both in UTC and in {zone.name}"
    return f"is out of range: the instant must lie in the years 0001 to 9999 {where}"


def _offset_ms(text: str) -> int | None:
    if text in "Zz":
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 23 or minutes > 59:
        return None
    size = (hours * 60 + minutes) * 60_000
    return -size if text[0] == "-" else size


def _fraction_ms(digits: str) -> int:
    unit: int = 10 ** len(digits)
    return (int(digits or 0) * 2000 + unit) // (2 * unit)


def _naive_utc(wall_ms: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=wall_ms)


def _ms(span: datetime.timedelta | None) -> int:
    # ``None`` is a zone that knows no offset; only UTC can be meant then.
    return 0 if span is None else span // _MILLISECOND
