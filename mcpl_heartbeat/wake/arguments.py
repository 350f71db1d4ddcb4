"""What the wake wing's tools take, and the rules between arguments.

Names on the wire are those of the Node server (host-interop §10), so that agents and recipes that
know it need not learn anew; ``offset`` of ``reminder_list`` is added. The rules need neither a
clock nor a zone: whether a time is past, or beyond the year 9999, the wing decides.

Every rule that is enforced stands in a description, since that is all a language model sees of it.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mcpl_heartbeat.mcp.tools import Problem
from mcpl_heartbeat.wake.files import MIN_EVERY_SECONDS, MIN_INTERVAL_SECONDS

LONGEST_SECONDS = 252_460_800_000
"""8,000 years: the longest delay or interval, whichever units it is sent in."""

MICROSECONDS = {"seconds": 1_000_000, "minutes": 60_000_000, "hours": 3_600_000_000}

Seconds = Annotated[float, Meta(ge=0, le=LONGEST_SECONDS)]
Minutes = Annotated[float, Meta(ge=0, le=LONGEST_SECONDS // 60)]
Hours = Annotated[float, Meta(ge=0, le=LONGEST_SECONDS // 3600)]
Moment = Annotated[str, Meta(max_length=64)]


# --- lengths of time ---------------------------------------------------------------------------


def microseconds(
    seconds: float | UnsetType, minutes: float | UnsetType, hours: float | UnsetType
) -> int | None:
    """Add up the units that were sent, each rounded to the microsecond; ``None`` when none was.

    Decimal keeps what was written, 0.1 hours being 360 s to the last digit; the rounding lets a
    third of an hour come out as 1,200 s.
    """
    sent = [
        (length, MICROSECONDS[unit])
        for length, unit in ((seconds, "seconds"), (minutes, "minutes"), (hours, "hours"))
        if length is not UNSET
    ]
    if not sent:
        return None
    return sum(
        int(length) * unit if length == int(length) else round(Decimal(repr(length)) * unit)
        for length, unit in sent
    )


def _milliseconds(total: int | None) -> int | None:
    return None if total is None else (total + 500) // 1000


# --- arguments ---------------------------------------------------------------------------------


class NoArguments(msgspec.Struct, frozen=True, kw_only=True):
    """For a tool that takes nothing."""


class ConfigureArguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What ``heartbeat_configure`` changes; what was not sent stays as it is."""

    interval_seconds: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Seconds between heartbeats, 0 or more; may have a fraction. Adds up with "
            "intervalMinutes and intervalHours to the whole interval, which must be at least 60 "
            "seconds and at most 8,000 years, and end before the year 10000."
        ),
    ] = UNSET
    interval_minutes: Annotated[
        Minutes | UnsetType,
        Meta(
            description="Minutes between heartbeats, 0 or more; may have a fraction. Adds up with "
            "intervalSeconds and intervalHours; at least 60 seconds in all."
        ),
    ] = UNSET
    interval_hours: Annotated[
        Hours | UnsetType,
        Meta(
            description="Hours between heartbeats, 0 or more; may have a fraction. Adds up with "
            "intervalSeconds and intervalMinutes; at least 60 seconds in all."
        ),
    ] = UNSET
    paused: Annotated[
        bool | UnsetType,
        Meta(
            description="true stops the scheduled heartbeats, false starts them again. "
            "Reminders go on either way."
        ),
    ] = UNSET
    delivery_mode: Annotated[
        Literal["message", "silent"] | UnsetType,
        Meta(
            description='"message" sends the configured message with the current time; "silent" '
            "wakes you without a message, on hosts that support it. Nothing else is taken."
        ),
    ] = UNSET
    message: Annotated[
        str | UnsetType,
        Meta(
            description="The text that each heartbeat in message mode brings you. Must not be "
            "blank. The current time is put before it, so leave that out."
        ),
    ] = UNSET

    @property
    def interval_ms(self) -> int | None:
        """The whole interval in milliseconds; ``None`` when no unit of it was sent."""
        return _milliseconds(self._interval)

    @property
    def _interval(self) -> int | None:
        return microseconds(self.interval_seconds, self.interval_minutes, self.interval_hours)


class AddArguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What ``reminder_add`` sets: a message, when it first comes, and whether it repeats."""

    message: Annotated[
        str,
        Meta(
            description="What to tell you when the time comes. Must not be blank. Write it so that "
            "it makes sense on its own, later."
        ),
    ]
    in_seconds: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Delay from now in seconds, 0 or more; may have a fraction. Adds up with "
            "inMinutes and inHours to the whole delay, which must be more than 0 and end before "
            "the year 10000; 0.001 is the least. Not together with atIso."
        ),
    ] = UNSET
    in_minutes: Annotated[
        Minutes | UnsetType,
        Meta(
            description="Delay from now in minutes, 0 or more; may have a fraction. Adds up with "
            "inSeconds and inHours. Not together with atIso."
        ),
    ] = UNSET
    in_hours: Annotated[
        Hours | UnsetType,
        Meta(
            description="Delay from now in hours, 0 or more; may have a fraction. Adds up with "
            "inSeconds and inMinutes. Not together with atIso."
        ),
    ] = UNSET
    at_iso: Annotated[
        Moment | UnsetType,
        Meta(
            description="The moment it first comes, in the form 2030-01-31T09:00:00 (seconds may "
            "be left out or have a fraction), then Z, an offset such as -08:00, or nothing for "
            "your own time zone. No other ISO 8601 form is taken: no date alone, week or hour 24. "
            "Must lie ahead (up to a minute ago counts as now) and before the year 10000; at "
            "most 64 characters. Not together with inSeconds, inMinutes or inHours.",
        ),
    ] = UNSET
    every_seconds: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Makes it recurring: seconds from one time to the next, 0 or more; may "
            "have a fraction. Adds up with everyMinutes and everyHours to the whole interval, "
            "which must be at least 5 seconds and at most 8,000 years, and end before the year "
            "10000."
        ),
    ] = UNSET
    every_minutes: Annotated[
        Minutes | UnsetType,
        Meta(
            description="Makes it recurring: minutes from one time to the next, 0 or more; may "
            "have a fraction. Adds up with everySeconds and everyHours; at least 5 seconds in all."
        ),
    ] = UNSET
    every_hours: Annotated[
        Hours | UnsetType,
        Meta(
            description="Makes it recurring: hours from one time to the next, 0 or more; may have "
            "a fraction. Adds up with everySeconds and everyMinutes; at least 5 seconds in all."
        ),
    ] = UNSET

    @property
    def delay_ms(self) -> int | None:
        """The whole delay in milliseconds, 1 or more; ``None`` when no unit of it was sent."""
        return _milliseconds(self._delay)

    @property
    def every_ms(self) -> int | None:
        """The whole interval in milliseconds; ``None`` when no unit was sent (a one-shot)."""
        return _milliseconds(self._every)

    @property
    def _delay(self) -> int | None:
        return microseconds(self.in_seconds, self.in_minutes, self.in_hours)

    @property
    def _every(self) -> int | None:
        return microseconds(self.every_seconds, self.every_minutes, self.every_hours)


class ListArguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where ``reminder_list`` starts."""

    offset: Annotated[
        int,
        Meta(
            ge=0,
            le=2**53 - 1,
            description="How many of the soonest reminders to skip, a whole number of 0 or more "
            "(at most 9007199254740991); 0 when left out. For the next part of a long list, send "
            "the offset it names.",
        ),
    ] = 0


class CancelArguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which reminder ``reminder_cancel`` takes away."""

    id: Annotated[
        str,
        Meta(
            description="The id of a pending reminder, such as rem_…, as reminder_add and "
            "reminder_list give it."
        ),
    ]


# --- rules between arguments -------------------------------------------------------------------

# Names on the wire, and the fields that hold their values.
INTERVAL = {
    "intervalSeconds": "interval_seconds",
    "intervalMinutes": "interval_minutes",
    "intervalHours": "interval_hours",
}
DELAY = {"inSeconds": "in_seconds", "inMinutes": "in_minutes", "inHours": "in_hours"}
AT = {"atIso": "at_iso"}
EVERY = {
    "everySeconds": "every_seconds",
    "everyMinutes": "every_minutes",
    "everyHours": "every_hours",
}


def configure_rules(arguments: ConfigureArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check the whole interval and the message."""
    if bad.isdisjoint(INTERVAL) and (total := arguments._interval) is not None:
        names = sent_names(arguments, INTERVAL)
        yield from _length(names, total, MIN_INTERVAL_SECONDS * MICROSECONDS["seconds"])
    yield from _not_blank(arguments.message)


def add_rules(arguments: AddArguments, bad: frozenset[str]) -> Iterable[Problem]:
    """Check that it is said when, in one way; and the whole delay, the interval and the message."""
    yield from _not_blank(arguments.message)
    delays = sent_names(arguments, DELAY, bad)
    recurring = sent_names(arguments, EVERY, bad)
    at = sent_names(arguments, AT, bad)
    if not delays and not at and not recurring:
        yield Problem(
            "inSeconds, inMinutes, inHours or atIso",
            "is required; say when, or send everySeconds, everyMinutes or everyHours to repeat it",
        )
    if delays and at:
        yield Problem(
            " + ".join((*delays, *at)),
            "contradict each other; send either the delay or the moment, not both",
        )
    if bad.isdisjoint(DELAY) and (delay := arguments._delay) is not None:
        yield from _delay_length(delays, delay)
    if bad.isdisjoint(EVERY) and (every := arguments._every) is not None:
        yield from _length(recurring, every, MIN_EVERY_SECONDS * MICROSECONDS["seconds"])


def sent_names(
    arguments: msgspec.Struct, names: Mapping[str, str], bad: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Give those of ``names`` (wire to field) that the call sent, readable or not."""
    return tuple(
        name
        for name, attribute in names.items()
        if name in bad or getattr(arguments, attribute) is not UNSET
    )


def _not_blank(message: str | UnsetType) -> Iterable[Problem]:
    if message is not UNSET and not message.strip():
        yield Problem("message", "must not be blank; send the words you want to read")


def _length(names: tuple[str, ...], total: int, least: int) -> Iterable[Problem]:
    yield from _not_too_long(names, total)
    if total < least:
        short, floor = _in_seconds(total), _in_seconds(least)
        yield Problem(" + ".join(names), f"must come to {floor} or more, not {short}")


def _delay_length(names: tuple[str, ...], total: int) -> Iterable[Problem]:
    yield from _not_too_long(names, total)
    if total < 1000:
        yield Problem(
            " + ".join(names),
            "must come to more than 0 s (0.001 s is the least); to be woken at once use "
            "heartbeat_trigger",
        )


def _not_too_long(names: tuple[str, ...], total: int) -> Iterable[Problem]:
    if total > LONGEST_SECONDS * MICROSECONDS["seconds"]:
        yield Problem(
            " + ".join(names), f"must come to {LONGEST_SECONDS} s (8,000 years) or less in all"
        )


def _in_seconds(total: int) -> str:
    whole, part = divmod(total, MICROSECONDS["seconds"])
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".") + " s"
