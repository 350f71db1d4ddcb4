"""Instants and their texts (issue 2, §4 and §6; field reports 32, 52, 53)."""

import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.times import UTC, Instant, Zone, local_time, read_instant, shows, utc_time

FIRST = -62_135_596_800_000
LAST = 253_402_300_799_999
FORM = "YYYY-MM-DDTHH:MM:SS"


def zone(name: str) -> Zone:
    return Zone(name, ZoneInfo(name))


NEW_YORK = zone("America/New_York")
LOS_ANGELES = zone("America/Los_Angeles")
TOKYO = zone("Asia/Tokyo")
HALF_PAST = Zone("UTC+05:30", datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
ZONES = [
    UTC,
    NEW_YORK,
    LOS_ANGELES,
    TOKYO,
    HALF_PAST,
    zone("Australia/Lord_Howe"),
    zone("Europe/Dublin"),
    zone("Africa/Casablanca"),
    zone("Pacific/Apia"),
    zone("Asia/Kathmandu"),
]


def ms(text: str) -> int:
    """Milliseconds of an ISO text with an offset, by the standard library's own arithmetic."""
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def taken(text: str, in_zone: Zone) -> Instant:
    answer = read_instant(text, in_zone)
    assert isinstance(answer, Instant), answer
    return answer


def refused(text: str, in_zone: Zone) -> str:
    answer = read_instant(text, in_zone)
    assert isinstance(answer, str), answer
    return answer


# --- shown -------------------------------------------------------------------------------------


@pytest.mark.requirement("words.local-time", "host.23")
@pytest.mark.parametrize(
    ("wall_ms", "in_zone", "shown"),
    [
        (1_791_860_556_000, LOS_ANGELES, "2026-10-12T20:02:36-07:00 [America/Los_Angeles]"),
        (1_791_860_556_999, LOS_ANGELES, "2026-10-12T20:02:36-07:00 [America/Los_Angeles]"),
        (1_791_860_556_000, UTC, "2026-10-13T03:02:36+00:00 [UTC]"),
        (1_791_860_556_000, HALF_PAST, "2026-10-13T08:32:36+05:30 [UTC+05:30]"),
        (0, TOKYO, "1970-01-01T09:00:00+09:00 [Asia/Tokyo]"),
        (-1, UTC, "1969-12-31T23:59:59+00:00 [UTC]"),
        (LAST, LOS_ANGELES, "9999-12-31T15:59:59-08:00 [America/Los_Angeles]"),
        # The zone cannot show these: UTC does, and past its years only the number is left.
        (LAST, TOKYO, "9999-12-31T23:59:59+00:00 [UTC]"),
        (FIRST, LOS_ANGELES, "0001-01-01T00:00:00+00:00 [UTC]"),
        (LAST + 1, UTC, "253402300800000 ms after 1970-01-01T00:00:00Z"),
        (FIRST - 1, TOKYO, "-62135596800001 ms after 1970-01-01T00:00:00Z"),
        (10**40, TOKYO, f"{10**40} ms after 1970-01-01T00:00:00Z"),
    ],
)
def test_local_time(wall_ms: int, in_zone: Zone, shown: str) -> None:
    assert local_time(wall_ms, in_zone) == shown


@pytest.mark.requirement("words.local-time")
def test_both_sides_of_a_change_show_their_own_offset() -> None:
    before = ms("2027-11-07T01:59:59-04:00")
    assert local_time(before, NEW_YORK) == "2027-11-07T01:59:59-04:00 [America/New_York]"
    assert local_time(before + 1000, NEW_YORK) == "2027-11-07T01:00:00-05:00 [America/New_York]"


@pytest.mark.requirement("host.23", "schedule.event-shape")
@pytest.mark.parametrize(
    ("wall_ms", "shown"),
    [
        (1_791_860_556_123, "2026-10-13T03:02:36.123Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (LAST, "9999-12-31T23:59:59.999Z"),
        (FIRST, "0001-01-01T00:00:00.000Z"),
        (LAST + 1, "9999-12-31T23:59:59.999Z"),
        (-(10**40), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_utc_time(wall_ms: int, shown: str) -> None:
    assert utc_time(wall_ms) == shown


@pytest.mark.requirement("words.local-time", "field.32")
@given(st.integers(), st.sampled_from(ZONES))
def test_any_integer_can_be_shown(wall_ms: int, in_zone: Zone) -> None:
    assert local_time(wall_ms, in_zone)
    assert utc_time(wall_ms).endswith("Z")


# --- read --------------------------------------------------------------------------------------


@pytest.mark.requirement("reminder.at-iso-forms", "reminder.at-iso-zone")
@pytest.mark.parametrize(
    ("text", "in_zone", "instant"),
    [
        ("2030-01-31T09:00:00Z", NEW_YORK, "2030-01-31T09:00:00+00:00"),
        ("2030-01-31t09:00:00z", NEW_YORK, "2030-01-31T09:00:00+00:00"),
        ("2030-01-31 09:00:00Z", NEW_YORK, "2030-01-31T09:00:00+00:00"),
        ("2030-01-31T09:00Z", NEW_YORK, "2030-01-31T09:00:00+00:00"),
        ("2030-01-31T09:00+02:00", NEW_YORK, "2030-01-31T09:00:00+02:00"),
        ("2030-01-31T09:00-0330", NEW_YORK, "2030-01-31T09:00:00-03:30"),
        ("2030-01-31T09:00:00-00:00", NEW_YORK, "2030-01-31T09:00:00+00:00"),
        ("2030-01-31T09:00:00+23:59", UTC, "2030-01-31T09:00:00+23:59"),
        ("2030-01-31T09:00:00.5Z", UTC, "2030-01-31T09:00:00.500+00:00"),
        ("2030-01-31T09:00:00.0004999999999Z", UTC, "2030-01-31T09:00:00.000+00:00"),
        ("2030-01-31T09:00:00.0005Z", UTC, "2030-01-31T09:00:00.001+00:00"),
        ("2030-12-31T23:59:59.9999Z", UTC, "2031-01-01T00:00:00+00:00"),
        ("2030-01-31T09:00", NEW_YORK, "2030-01-31T09:00:00-05:00"),
        ("2030-07-31T09:00", NEW_YORK, "2030-07-31T09:00:00-04:00"),
        ("2030-01-31 09:00:00", TOKYO, "2030-01-31T09:00:00+09:00"),
        ("2030-01-31T09:00", HALF_PAST, "2030-01-31T09:00:00+05:30"),
        ("2028-02-29T00:00", UTC, "2028-02-29T00:00:00+00:00"),
        ("2000-02-29T00:00", UTC, "2000-02-29T00:00:00+00:00"),
        ("1969-12-31T23:59:59.999Z", UTC, "1969-12-31T23:59:59.999+00:00"),
        (
            "2026-10-12T20:02:36-07:00 [America/Los_Angeles]",
            LOS_ANGELES,
            "2026-10-12T20:02:36-07:00",
        ),
    ],
)
def test_a_time_in_the_profile_is_exactly_one_instant(
    text: str, in_zone: Zone, instant: str
) -> None:
    assert taken(text, in_zone) == Instant(ms(instant))


@pytest.mark.requirement("reminder.at-iso-forms", "words.for-models", "field.52")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2030-01-01", ["date without a time", FORM]),
        ("2030-01-01T24:00", ["hour 24", "00:00"]),
        ("20300101T090000Z", ["basic form", FORM]),
        ("20300101", ["basic form", FORM]),
        ("2030-W01-1", ["week date", FORM]),
        ("2030W011T09:00", ["week date", FORM]),
        ("2030-001", ["ordinal date", FORM]),
        ("2030-001T09:00Z", ["ordinal date", FORM]),
        ("1893456000", ["number", FORM]),
        ("1893456000.5", ["number", FORM]),
        ("2030-01-01T09:00Z [Asia/Tokyo]", ["zone in brackets", FORM]),
        ("2030-01-01T09:00[America/New_York]", ["zone in brackets", FORM]),
        ("2030-01-01T09", [FORM]),
        ("2030-01-01T09:00:00,5", [FORM]),
        ("2030-01-01T09:00+02", [FORM]),
        ("2030-01-01T09:00 +02:00", [FORM]),
        ("2030-01-01T09:00\u221202:00", [FORM]),
        ("2030-1-1T9:00", [FORM]),
        ("+002030-01-01T09:00", [FORM]),
        ("-2030-01-01T09:00", [FORM]),
        (" 2030-01-01T09:00", [FORM]),
        ("2030-01-01T09:00\n", [FORM]),
        ("2030-01-01T09:00:00.Z", [FORM]),
        ("\u0662\u0660\u0663\u0660-01-01T09:00", [FORM]),
        ("tomorrow at nine", [FORM]),
        ("", [FORM]),
        ("2030-01-01T09:00:00." + "0" * 60 + "Z", ["longer than 64", FORM]),
        ("2030-01-01T09:60", ["minute 60"]),
        ("2030-01-01T25:00", ["hour 25"]),
        ("2030-01-01T09:00:60Z", ["second 60"]),
        ("2030-00-01T09:00", ["month 00"]),
        ("2030-13-01T09:00", ["month 13"]),
        ("2030-01-00T09:00", ["day 00"]),
        ("2030-04-31T09:00", ["day 31", "30"]),
        ("2030-02-29T09:00", ["day 29", "28"]),
        ("2100-02-29T09:00", ["day 29", "28"]),
        ("9999-02-29T09:00", ["day 29", "28"]),
        ("0000-01-01T09:00", ["year 0000"]),
        ("2030-01-01T09:00+24:00", ["+24:00"]),
        ("2030-01-01T09:00-0060", ["-0060"]),
    ],
)
def test_another_form_is_refused_with_what_to_send(text: str, said: list[str]) -> None:
    answer = refused(text, NEW_YORK)
    assert all(words in answer for words in said), answer
    if FORM in said:
        assert "America/New_York" in answer


@pytest.mark.requirement("reminder.range", "field.32")
@pytest.mark.parametrize(
    ("text", "in_zone", "wall_ms"),
    [
        ("9999-12-31T23:59:59.999Z", UTC, LAST),
        ("9999-12-31T23:59:59.999Z", LOS_ANGELES, LAST),
        ("9999-12-31T23:59:59.999Z", TOKYO, None),
        ("9999-12-31T23:59:59.999", TOKYO, LAST - 9 * 3_600_000),
        ("9999-12-31T23:59:59.999", LOS_ANGELES, None),
        ("9999-12-31T23:59:59.9995Z", UTC, None),
        ("9999-12-31T23:59-00:01", UTC, None),
        ("0001-01-01T00:00:00Z", UTC, FIRST),
        ("0001-01-01T00:00:00Z", TOKYO, FIRST),
        ("0001-01-01T00:00:00Z", LOS_ANGELES, None),
        ("0001-01-01T00:00:00", TOKYO, None),
        ("0001-01-01T00:00:00+00:01", UTC, None),
    ],
)
def test_the_edges_of_the_calendar_are_taken_exactly_or_refused_by_range(
    text: str, in_zone: Zone, wall_ms: int | None
) -> None:
    if wall_ms is None:
        answer = refused(text, in_zone)
        assert "out of range" in answer
        assert "0001 to 9999" in answer
    else:
        assert taken(text, in_zone) == Instant(wall_ms)


@pytest.mark.requirement("reminder.range", "field.32")
@pytest.mark.parametrize(
    ("wall_ms", "in_zone", "shown"),
    [
        (FIRST, UTC, True),
        (LAST, UTC, True),
        (FIRST - 1, UTC, False),
        (LAST + 1, UTC, False),
        (LAST, LOS_ANGELES, True),
        (FIRST, LOS_ANGELES, False),
        (LAST, TOKYO, False),
        (FIRST, TOKYO, True),
        (10**40, UTC, False),
    ],
)
def test_shows_says_which_instants_have_a_date_in_both_zones(
    wall_ms: int, in_zone: Zone, shown: bool
) -> None:
    assert shows(wall_ms, in_zone) is shown


# --- gaps and folds ----------------------------------------------------------------------------


@pytest.mark.requirement("reminder.gap-fold", "field.53")
@pytest.mark.parametrize(
    ("text", "in_zone", "instant"),
    [
        ("2027-03-14T02:30:00", NEW_YORK, "2027-03-14T03:30:00-04:00"),
        ("2027-03-14T02:00:00", NEW_YORK, "2027-03-14T03:00:00-04:00"),
        ("2027-10-03T02:15:00", zone("Australia/Lord_Howe"), "2027-10-03T02:45:00+11:00"),
        ("2011-12-30T12:00:00", zone("Pacific/Apia"), "2011-12-31T12:00:00+14:00"),
    ],
)
def test_a_time_the_clocks_skip_moves_forward_by_what_is_skipped(
    text: str, in_zone: Zone, instant: str
) -> None:
    answer = taken(text, in_zone)
    assert answer.wall_ms == ms(instant)
    assert answer.note is not None
    assert "skip" in answer.note
    assert local_time(answer.wall_ms, in_zone) in answer.note


@pytest.mark.requirement("reminder.gap-fold", "field.53")
@pytest.mark.parametrize(
    ("text", "in_zone", "first", "second"),
    [
        (
            "2027-11-07T01:30:00",
            NEW_YORK,
            "2027-11-07T01:30:00-04:00",
            "2027-11-07T01:30:00-05:00",
        ),
        (
            "2027-04-04T01:45:00",
            zone("Australia/Lord_Howe"),
            "2027-04-04T01:45:00+11:00",
            "2027-04-04T01:45:00+10:30",
        ),
    ],
)
def test_of_a_time_shown_twice_the_first_is_taken(
    text: str, in_zone: Zone, first: str, second: str
) -> None:
    answer = taken(text, in_zone)
    assert answer.wall_ms == ms(first)
    assert answer.note is not None
    assert "twice" in answer.note
    assert first in answer.note
    assert second in answer.note
    # What the note shows can be sent as it is, and then nothing is left to decide.
    assert taken(second, in_zone) == Instant(ms(second))


@pytest.mark.requirement("reminder.gap-fold", "field.53")
@pytest.mark.parametrize(
    "text",
    [
        "2027-03-14T01:59:59.999",
        "2027-03-14T03:00:00",
        "2027-11-07T00:59:59.999",
        "2027-11-07T02:00:00",
        "2027-11-07T01:30:00-05:00",
        "2027-03-14T02:30:00-05:00",
    ],
)
def test_beside_a_change_and_with_an_offset_there_is_nothing_to_note(text: str) -> None:
    assert taken(text, NEW_YORK).note is None


# --- both ways ---------------------------------------------------------------------------------

# Before 1980 some zones have offsets with seconds, which no ISO 8601 text to the minute can carry.
MODERN = st.integers(ms("1980-01-01T00:00:00+00:00"), ms("9999-12-30T00:00:00+00:00"))


@pytest.mark.requirement("words.local-time", "reminder.at-iso-forms")
@given(MODERN, st.sampled_from(ZONES))
def test_a_time_that_was_shown_reads_as_the_same_second(wall_ms: int, in_zone: Zone) -> None:
    assert taken(local_time(wall_ms, in_zone), in_zone) == Instant(wall_ms // 1000 * 1000)
    assert taken(utc_time(wall_ms), in_zone) == Instant(wall_ms)


@pytest.mark.requirement("reminder.at-iso-zone", "reminder.gap-fold")
@given(st.datetimes(datetime.datetime(1980, 1, 1), datetime.datetime(9999, 12, 30)), st.data())
def test_a_local_time_is_shown_as_it_was_sent_unless_a_note_says_otherwise(
    local: datetime.datetime, data: st.DataObject
) -> None:
    in_zone = data.draw(st.sampled_from(ZONES))
    text = local.isoformat(timespec="seconds")
    answer = taken(text, in_zone)
    same = local_time(answer.wall_ms, in_zone).startswith(text)
    assert same or (answer.note is not None and "skip" in answer.note)


@pytest.mark.requirement("reminder.range", "field.32")
@given(
    st.text(max_size=40)
    | st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
        r"(Z|[+-][0-9]{2}:?[0-9]{2})?",
        fullmatch=True,
    ),
    st.sampled_from(ZONES),
)
def test_no_text_can_raise(text: str, in_zone: Zone) -> None:
    answer = read_instant(text, in_zone)
    if isinstance(answer, Instant):
        assert FIRST <= answer.wall_ms <= LAST
        assert local_time(answer.wall_ms, in_zone).endswith(f"[{in_zone.name}]")


class Shapeless(datetime.tzinfo):
    """A zone that knows nothing, which ``tzinfo`` allows."""

    def utcoffset(self, dt: datetime.datetime | None) -> datetime.timedelta | None:
        return None

    def dst(self, dt: datetime.datetime | None) -> datetime.timedelta | None:
        return None

    def tzname(self, dt: datetime.datetime | None) -> str | None:
        return None


@pytest.mark.requirement("words.local-time", "reminder.range")
def test_a_zone_without_offsets_is_shown_in_utc_and_refuses_by_range() -> None:
    nowhere = Zone("Nowhere", Shapeless())
    assert local_time(0, nowhere) == "1970-01-01T00:00:00+00:00 [UTC]"
    assert "out of range" in refused("2030-01-01T00:00", nowhere)
