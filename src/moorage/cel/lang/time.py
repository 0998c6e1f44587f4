"""Timestamps and durations with the parsing, printing, arithmetic and errors of Go's.

    duration    a number of nanoseconds that fits an int64: about ±292 years
    timestamp   an instant of the years 1 to 9999, in nanoseconds since 1970; it remembers the
                offset it was written with, because `string()` prints it again

A duration is printed through its seconds as a double, so long ones lose their last digits; so do
the whole hours and minutes of a duration, as in Go.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.values import (
    INT_MAX,
    fitting_int,
    is_int_text,
    parse_int,
    positional_text,
    truncated,
    wrapped_int,
)

SECOND: Final = 1_000_000_000  # all units in nanoseconds
MILLISECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY_S: Final = 86_400

SECONDS_MIN: Final = -62_135_596_800  # 0001-01-01T00:00:00Z
SECONDS_MAX: Final = 253_402_300_799  # 9999-12-31T23:59:59Z

TIMESTAMP_OVERFLOW: Final = "timestamp overflow"
DURATION_WRONG: Final = "type conversion error from 'string' to 'google.protobuf.Duration'"
TIMESTAMP_WRONG: Final = "type conversion error from 'string' to 'google.protobuf.Timestamp'"

_UINT64: Final = 2**64
_MAGNITUDE_MAX: Final = 2**63


# --- durations ------------------------------------------------------------------------------------


_UNITS: Final = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_match_part = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?+([^0-9.]++)").match


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time, in nanoseconds."""

    nanoseconds: int

    @staticmethod
    def parse(text: str) -> Duration:
        """duration = [ "+" | "-" ] ( "0" | 1*( number unit ) )

        unit = "h" | "m" | "s" | "ms" | "us" | "µs" | "ns"; a number may lack the digits on one
        side of its point.
        """
        body = text[1:] if text[:1] in ("+", "-") else text
        magnitude = 0 if body == "0" else _sum_of_parts(body)
        if text[:1] == "-":
            return Duration(-magnitude)
        if magnitude > INT_MAX:
            raise EvalError(DURATION_WRONG)
        return Duration(magnitude)

    def __str__(self) -> str:
        return positional_text(self.seconds) + "s"

    @property
    def seconds(self) -> float:
        """The duration in seconds, as near as a double can be."""
        whole, rest = truncated(self.nanoseconds, SECOND)
        return whole + rest / 1e9

    def whole(self, unit: int) -> int:
        """Return the whole hours, minutes or seconds."""
        whole, rest = truncated(self.nanoseconds, unit)
        return int(whole + rest / unit)

    @property
    def whole_milliseconds(self) -> int:
        """The whole milliseconds."""
        return truncated(self.nanoseconds, MILLISECOND)[0]

    def plus(self, other: Duration) -> Duration:
        """Return the sum."""
        return Duration(fitting_int(self.nanoseconds + other.nanoseconds))

    def minus(self, other: Duration) -> Duration:
        """Return the difference."""
        return Duration(fitting_int(self.nanoseconds - other.nanoseconds))

    def negated(self) -> Duration:
        """Return the duration in the other direction."""
        return Duration(fitting_int(-self.nanoseconds))


def _sum_of_parts(text: str) -> int:
    """Return the sum of numbers with units, modulo 2^64 as Go adds them."""
    if not text:
        raise EvalError(DURATION_WRONG)
    total, position = 0, 0
    while position < len(text):
        part = _match_part(text, position)
        if part is None:
            raise EvalError(DURATION_WRONG)
        total = (total + _nanoseconds(*part.groups(""))) % _UINT64
        if total > _MAGNITUDE_MAX:
            raise EvalError(DURATION_WRONG)
        position = part.end()
    return total


def _nanoseconds(whole: str, fraction: str, unit_name: str) -> int:
    unit = _UNITS.get(unit_name)
    significant = whole.lstrip("0")
    if unit is None or not (whole or fraction) or len(significant) > 19:
        raise EvalError(DURATION_WRONG)
    number = int(significant or "0") * unit
    if number <= _MAGNITUDE_MAX:
        number += _fraction_of(unit, fraction)
    if number > _MAGNITUDE_MAX:
        raise EvalError(DURATION_WRONG)
    return number


def _fraction_of(unit: int, digits: str) -> int:
    """Return the fraction of a unit from the digits behind the point, through a double."""
    zeros = len(digits) - len(digits.lstrip("0"))
    # Go looks at as many digits as fit 63 bits: 18, or 19 if they are small.
    end = zeros + 19
    if int(digits[zeros:end] or "0") > _MAGNITUDE_MAX:
        end -= 1
    scale = 1.0
    for _ in digits[:end]:
        scale *= 10
    return int(int(digits[zeros:end] or "0") * (unit / scale))


# --- timestamps -----------------------------------------------------------------------------------


_match_timestamp = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
).fullmatch


class Civil(NamedTuple):
    """An instant as clock and calendar of some zone show it; the year may be 0 or 10000."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    day_of_week: int  # Sunday is 0
    day_of_year: int  # the first is 1


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant, in nanoseconds since 1970, and the offset of the zone it is printed in."""

    nanoseconds: int
    offset_s: int = field(default=0, compare=False)

    @staticmethod
    def parse(text: str) -> Timestamp:
        """Return the instant of an RFC 3339 text, or raise EvalError.

        As in Go the hour may have one digit, a comma may stand for the point before the
        fraction, and offsets go up to 24:60.
        """
        found = _match_timestamp(text)
        if found is None:
            raise EvalError(TIMESTAMP_WRONG)
        year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
        if hour > 23 or minute > 59 or second > 59:
            raise EvalError(TIMESTAMP_WRONG)
        offset_s = _written_offset(*found.group(8, 9, 10))
        seconds = (_days(year, month, day) * DAY_S) + hour * 3600 + minute * 60 + second - offset_s
        fraction = int((found[7] or "")[:9].ljust(9, "0"))
        return Timestamp.from_seconds(seconds, fraction, offset_s)

    @staticmethod
    def from_seconds(seconds: int, nanoseconds: int = 0, offset_s: int = 0) -> Timestamp:
        """Return the instant a number of seconds after 1970, if it is in the years 1 to 9999."""
        if SECONDS_MIN <= seconds <= SECONDS_MAX:
            return Timestamp(seconds * SECOND + nanoseconds, offset_s)
        raise EvalError(TIMESTAMP_OVERFLOW)

    def __str__(self) -> str:
        civil = civil_of(self.seconds + self.offset_s)
        text = (
            f"{civil.year:04d}-{civil.month:02d}-{civil.day:02d}"
            f"T{civil.hour:02d}:{civil.minute:02d}:{civil.second:02d}"
        )
        if nanosecond := self.nanoseconds % SECOND:
            text += f".{nanosecond:09d}".rstrip("0")
        if not self.offset_s:
            return text + "Z"
        hours, minutes = divmod(abs(self.offset_s) // 60, 60)
        return f"{text}{'-' if self.offset_s < 0 else '+'}{hours:02d}:{minutes:02d}"

    @property
    def seconds(self) -> int:
        """The whole seconds since 1970, rounded down."""
        return self.nanoseconds // SECOND

    @property
    def millisecond(self) -> int:
        """The milliseconds of the second."""
        return self.nanoseconds % SECOND // MILLISECOND

    @property
    def utc(self) -> Civil:
        """Clock and calendar in UTC."""
        return civil_of(self.seconds)

    def in_zone(self, zone: str) -> Civil:
        """Return clock and calendar in a zone: a name such as `Europe/Paris`, or `-09:30`."""
        return civil_of(self.seconds + offset_of(zone, self.seconds))

    def plus(self, duration: Duration) -> Timestamp:
        """Return the instant that much later."""
        nanoseconds = self.nanoseconds + duration.nanoseconds
        return Timestamp.from_seconds(*divmod(nanoseconds, SECOND), self.offset_s)

    def minus(self, duration: Duration) -> Timestamp:
        """Return the instant that much earlier."""
        return self.plus(duration.negated())

    def since(self, other: Timestamp) -> Duration:
        """Return how much later than the other it is."""
        # The whole seconds have to fit by themselves, even where the fraction would save them.
        fitting_int((self.seconds - other.seconds) * SECOND)
        return Duration(fitting_int(self.nanoseconds - other.nanoseconds))


def _days(year: int, month: int, day: int) -> int:
    """Return the days between 1970 and a date of the years 0 to 9999."""
    try:
        # Year 0 has the calendar of year 400, which is 146097 days later.
        if year == 0:
            return date(400, month, day).toordinal() - _CYCLE_DAYS - _EPOCH
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise EvalError(TIMESTAMP_WRONG) from None


def _written_offset(sign: str | None, hours: str | None, minutes: str | None) -> int:
    if sign is None or hours is None or minutes is None:
        return 0
    if int(hours) > 24 or int(minutes) > 60:
        raise EvalError(TIMESTAMP_WRONG)
    offset_s = int(hours) * 3600 + int(minutes) * 60
    return -offset_s if sign == "-" else offset_s


_EPOCH: Final = date(1970, 1, 1).toordinal()
_CYCLE_DAYS: Final = 146_097  # 400 years; then dates and weekdays repeat


def civil_of(seconds: int) -> Civil:
    """Return clock and calendar a number of seconds after 1970."""
    days, clock = divmod(seconds, DAY_S)
    cycles, ordinal = divmod(days + _EPOCH - 1, _CYCLE_DAYS)
    day = date.fromordinal(ordinal + 1)
    minutes, second = divmod(clock, 60)
    return Civil(
        day.year + 400 * cycles,
        day.month,
        day.day,
        *divmod(minutes, 60),
        second,
        day.isoweekday() % 7,
        day.timetuple().tm_yday,
    )


# --- zones ----------------------------------------------------------------------------------------


# zoneinfo counts in datetimes, which end with the years 1 and 9999: two days off is far enough.
_ZONED_MIN: Final = datetime(1, 1, 3)
_ZONED_MAX_S: Final = SECONDS_MAX - SECONDS_MIN - 4 * DAY_S


def offset_of(zone: str, seconds: int) -> int:
    """Return how many seconds a zone is ahead of UTC at an instant, or raise EvalError."""
    hours, colon, minutes = zone.partition(":")
    if colon:
        return _fixed_offset(zone, _int(hours), _int(minutes))
    if zone in ("", "UTC", "Local"):  # the reference runs in UTC
        return 0
    if ".." in zone or zone[0] in "/\\":
        raise EvalError("time: invalid location name")
    try:
        info = ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        raise EvalError(f"unknown time zone {zone}") from None
    after_s = min(max(seconds - SECONDS_MIN - 2 * DAY_S, 0), _ZONED_MAX_S)
    moment = _ZONED_MIN + timedelta(seconds=after_s)
    local = info.fromutc(moment.replace(tzinfo=info)).replace(tzinfo=None)
    return int((local - moment).total_seconds())


def _fixed_offset(zone: str, hours: int, minutes: int) -> int:
    """Return the seconds of `±hours:minutes`, computed in int64 as Go does."""
    total = hours * 60 - minutes if zone.startswith("-") else hours * 60 + minutes
    return int(Duration(wrapped_int(total * MINUTE)).seconds)


def _int(text: str) -> int:
    """Return an int64, or raise the error of Go's Atoi."""
    number = parse_int(text)
    if number is not None:
        return number
    reason = "value out of range" if is_int_text(text) else "invalid syntax"
    raise EvalError(f"strconv.Atoi: parsing {json.dumps(text, ensure_ascii=False)}: {reason}")
