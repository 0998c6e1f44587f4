from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.time import (
    DURATION_WRONG,
    HOUR,
    MINUTE,
    SECOND,
    SECONDS_MAX,
    SECONDS_MIN,
    TIMESTAMP_OVERFLOW,
    TIMESTAMP_WRONG,
    Duration,
    Timestamp,
    civil_of,
    offset_of,
)
from moorage.cel.lang.values import INT_MAX, INT_MIN

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

durations = st.integers(INT_MIN, INT_MAX).map(Duration)
# As long as a double of seconds still has nine decimal places.
exact_durations = st.integers(-(10**15), 10**15).map(Duration)
offsets = st.integers(-24 * 60, 24 * 60).map(lambda minutes: minutes * 60)
timestamps = st.builds(
    Timestamp, st.integers(SECONDS_MIN * SECOND, SECONDS_MAX * SECOND + SECOND - 1)
)


def refusal_of(function: Any, *args: Any) -> str:
    with pytest.raises(EvalError) as refusal:
        function(*args)
    return str(refusal.value)


# --- durations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("+5s", 5 * SECOND),
        ("1h", HOUR),
        ("-1.5h", -90 * MINUTE),
        ("1h30m2.5s", 90 * MINUTE + 2 * SECOND + SECOND // 2),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("1ms1ns", 1_000_001),
        (".5s", SECOND // 2),
        ("5.s", 5 * SECOND),
        ("1s1s", 2 * SECOND),
        ("0.000000001s", 1),
        ("0.9ns", 0),
        ("0.3333333333333333333h", 1_200_000_000_000),
        ("9007199254.7409931s", 9007199254740993100),
        ("00000000000000000000000001s", SECOND),
        ("9223372036854775807ns", INT_MAX),
        ("-9223372036854775808ns", INT_MIN),
        ("2562047h47m16.854775807s", INT_MAX),
        ("0." + "0" * 400 + "1s", 0),
        ("0." + "0" * 5000 + "s", 0),
    ],
)
def test_durations_are_read(text: str, nanoseconds: int) -> None:
    assert Duration.parse(text) == Duration(nanoseconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "1", "s", ".s", "1d", "1S", "1 s", " 1s", "1s ", "--1s", "1e3s", "1_0s"),
        *("1h-1m", "9223372036854775808ns", "-9223372036854775809ns", "9999999h", "٣s", "1s\n"),
        *("2562047h47m16.854775808s", "1" * 5000 + "s"),
    ],
)
def test_other_texts_are_no_durations(text: str) -> None:
    assert refusal_of(Duration.parse, text) == DURATION_WRONG


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (90 * MINUTE, "5400s"),
        (-1_000_000, "-0.001s"),
        (1, "0.000000001s"),
        (1_500_000_000, "1.5s"),
        (INT_MAX, "9223372036.854776s"),
        (INT_MIN, "-9223372036.854776s"),
    ],
)
def test_durations_are_printed_in_seconds(nanoseconds: int, text: str) -> None:
    assert str(Duration(nanoseconds)) == text


@given(exact_durations)
def test_printed_durations_are_read_back(duration: Duration) -> None:
    assert Duration.parse(str(duration)) == duration


@given(durations)
def test_whole_nanoseconds_are_read_back(duration: Duration) -> None:
    assert Duration.parse(f"{duration.nanoseconds}ns") == duration


@pytest.mark.parametrize(
    ("duration", "hours", "minutes", "seconds", "milliseconds"),
    [
        (Duration(-90 * MINUTE), -1, -90, -5400, -5_400_000),
        (Duration(3_723_456_789_000), 1, 62, 3723, 3_723_456),
        (Duration(HOUR - 1), 0, 59, 3599, 3_599_999),
        # The double that they go through has no room for the last nanosecond.
        (Duration(2_000_000 * HOUR - 1), 2_000_000, 120_000_000, 7_200_000_000, 7_199_999_999_999),
    ],
)
def test_whole_units(
    duration: Duration, hours: int, minutes: int, seconds: int, milliseconds: int
) -> None:
    assert duration.whole(HOUR) == hours
    assert duration.whole(MINUTE) == minutes
    assert duration.whole(SECOND) == seconds
    assert duration.whole_milliseconds == milliseconds


def test_sums_and_differences_of_durations_have_to_fit() -> None:
    largest, least, one = Duration(INT_MAX), Duration(INT_MIN), Duration(1)
    assert largest.minus(one).plus(one) == largest
    assert refusal_of(largest.plus, one) == "integer overflow"
    assert refusal_of(least.minus, one) == "integer overflow"
    assert refusal_of(least.negated) == "integer overflow"
    assert largest.negated() == Duration(-INT_MAX)


# --- timestamps -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1970-01-01T00:00:00Z", None),
        ("2024-02-29T12:34:56.789Z", None),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59.999999999Z", None),
        ("2024-01-01T00:00:00+02:00", None),
        ("2024-01-01T00:00:00-23:59", None),
        ("2024-01-01T00:00:00+24:60", "2024-01-01T00:00:00+25:00"),
        ("2024-01-01T00:00:00+00:00", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.500Z", "2024-01-01T00:00:00.5Z"),
        ("2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00.5Z"),
        ("2024-01-01T00:00:00.1234567891Z", "2024-01-01T00:00:00.123456789Z"),
        ("2024-01-01T5:00:00Z", "2024-01-01T05:00:00Z"),
        ("0001-01-01T23:00:00+23:00", None),
        ("9999-12-31T23:59:59-00:00", "9999-12-31T23:59:59Z"),
    ],
)
def test_timestamps_are_read_and_printed_again(text: str, printed: str | None) -> None:
    assert str(Timestamp.parse(text)) == (printed or text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "not a time", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z"),
        *("2024-01-01t00:00:00z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z"),
        *("2024-00-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-01-01T24:00:00Z"),
        *("2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z", "2024-01-01T00:00:00.Z"),
        *("2024-01-01T00:00:00+0200", "2024-01-01T00:00:00+25:00", "2024-01-01T00:00:00+00:61"),
        *("10000-01-01T00:00:00Z", "2024-01-01T00:00:00Z ", "２024-01-01T00:00:00Z"),
    ],
)
def test_other_texts_are_no_timestamps(text: str) -> None:
    assert refusal_of(Timestamp.parse, text) == TIMESTAMP_WRONG


@pytest.mark.parametrize(
    "text",
    [
        "0000-12-31T23:59:59Z",
        "0000-02-29T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_timestamps_outside_of_the_years_1_to_9999_overflow(text: str) -> None:
    assert refusal_of(Timestamp.parse, text) == TIMESTAMP_OVERFLOW


def test_seconds_have_a_range() -> None:
    assert str(Timestamp.from_seconds(SECONDS_MIN)) == "0001-01-01T00:00:00Z"
    assert str(Timestamp.from_seconds(SECONDS_MAX)) == "9999-12-31T23:59:59Z"
    assert refusal_of(Timestamp.from_seconds, SECONDS_MIN - 1) == TIMESTAMP_OVERFLOW
    assert refusal_of(Timestamp.from_seconds, SECONDS_MAX + 1) == TIMESTAMP_OVERFLOW


@given(timestamps, offsets)
def test_printed_timestamps_are_read_back(timestamp: Timestamp, offset_s: int) -> None:
    if not SECONDS_MIN <= timestamp.seconds + offset_s <= SECONDS_MAX:
        offset_s = 0
    written = Timestamp(timestamp.nanoseconds, offset_s)
    read = Timestamp.parse(str(written))
    assert read == timestamp
    assert read.offset_s == offset_s


def test_the_offset_survives_arithmetic_and_does_not_count_in_comparisons() -> None:
    paris = Timestamp.parse("2024-01-01T01:00:00+01:00")
    assert paris == Timestamp.parse("2024-01-01T00:00:00Z")
    assert hash(paris) == hash(Timestamp.parse("2024-01-01T00:00:00Z"))
    assert str(paris.plus(Duration(HOUR))) == "2024-01-01T02:00:00+01:00"
    assert str(paris.minus(Duration(HOUR))) == "2024-01-01T00:00:00+01:00"


def test_arithmetic_of_timestamps_overflows() -> None:
    last, first = Timestamp.from_seconds(SECONDS_MAX), Timestamp.from_seconds(SECONDS_MIN)
    assert refusal_of(last.plus, Duration(SECOND)) == TIMESTAMP_OVERFLOW
    assert refusal_of(first.minus, Duration(1)) == TIMESTAMP_OVERFLOW
    assert refusal_of(last.since, first) == "integer overflow"
    assert refusal_of(first.minus, Duration(INT_MIN)) == "integer overflow"
    assert last.plus(Duration(SECOND - 1)).nanoseconds == SECONDS_MAX * SECOND + SECOND - 1


def test_a_difference_whose_whole_seconds_do_not_fit_overflows_although_it_would_fit() -> None:
    seconds = INT_MAX // SECOND + 1
    later, earlier = Timestamp(seconds * SECOND), Timestamp(SECOND - 1)
    assert later.nanoseconds - earlier.nanoseconds < INT_MAX
    assert refusal_of(later.since, earlier) == "integer overflow"


@given(timestamps, st.integers(INT_MIN + 2 * SECOND, INT_MAX - 2 * SECOND).map(Duration))
def test_adding_is_undone_by_subtracting(timestamp: Timestamp, duration: Duration) -> None:
    try:
        later = timestamp.plus(duration)
    except EvalError:
        return
    assert later.since(timestamp) == duration


# --- clock and calendar ---------------------------------------------------------------------------


@given(timestamps)
def test_clock_and_calendar_agree_with_the_standard_library(timestamp: Timestamp) -> None:
    moment = EPOCH + timedelta(seconds=timestamp.seconds)
    civil = timestamp.utc
    assert civil[:6] == moment.timetuple()[:6]
    assert civil.day_of_week == moment.isoweekday() % 7
    assert civil.day_of_year == moment.timetuple().tm_yday


@pytest.mark.parametrize(
    ("text", "zone", "year", "hour"),
    [
        ("0001-01-01T00:00:00Z", "-01:00", 0, 23),
        ("9999-12-31T23:00:00Z", "+01:00", 10000, 0),
        ("0001-01-01T00:00:00Z", "America/New_York", 0, 19),
        ("2024-03-10T08:05:06.789Z", "-09:30", 2024, 22),
        ("2024-03-10T08:05:06.789Z", "02:00", 2024, 10),
        ("2024-03-10T08:05:06.789Z", "", 2024, 8),
        ("2024-03-10T08:05:06.789Z", "UTC", 2024, 8),
        ("2024-03-10T08:05:06.789Z", "Europe/Paris", 2024, 9),
        ("2024-07-10T08:05:06.789Z", "Europe/Paris", 2024, 10),
        ("2500-07-10T08:05:06.789Z", "Europe/Paris", 2500, 10),
    ],
)
def test_zones(text: str, zone: str, year: int, hour: int) -> None:
    civil = Timestamp.parse(text).in_zone(zone)
    assert (civil.year, civil.hour) == (year, hour)


@pytest.mark.parametrize(
    ("zone", "offset_s"),
    [
        ("+01:30", 5400),
        ("-01:30", -5400),
        ("-00:30", -1800),
        ("1:-30", 1800),
        ("+1:99", 9540),
        # Minutes are computed in 64 bits and run over.
        ("9223372036854775807:00", -60 * 60),
    ],
)
def test_offsets_are_read_leniently(zone: str, offset_s: int) -> None:
    assert offset_of(zone, 0) == offset_s


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("bogus/zone", "unknown time zone bogus/zone"),
        ("+0100", "unknown time zone +0100"),
        ("utc ", "unknown time zone utc "),
        ("America", "unknown time zone America"),
        ("a\0b", "unknown time zone a\0b"),
        ("../etc/passwd", "time: invalid location name"),
        ("/etc/localtime", "time: invalid location name"),
        ("\\x", "time: invalid location name"),
        (":30", 'strconv.Atoi: parsing "": invalid syntax'),
        ("+01:", 'strconv.Atoi: parsing "": invalid syntax'),
        ("a:00", 'strconv.Atoi: parsing "a": invalid syntax'),
        ("1:0:0", 'strconv.Atoi: parsing "0:0": invalid syntax'),
        ("1_0:00", 'strconv.Atoi: parsing "1_0": invalid syntax'),
        (
            "9223372036854775808:00",
            'strconv.Atoi: parsing "9223372036854775808": value out of range',
        ),
    ],
)
def test_what_is_no_zone_is_refused(zone: str, message: str) -> None:
    assert refusal_of(offset_of, zone, 0) == message


@given(st.integers(-(10**13), 10**13))
def test_days_follow_each_other(seconds: int) -> None:
    today, tomorrow = civil_of(seconds), civil_of(seconds + 86_400)
    assert tomorrow.day_of_week == (today.day_of_week + 1) % 7
    assert tomorrow.day in (today.day + 1, 1)
    assert tomorrow[3:6] == today[3:6]
