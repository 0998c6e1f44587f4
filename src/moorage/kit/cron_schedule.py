"""Cron schedules: five fields or a descriptor, read and evaluated in a time zone.

    schedule:    minute hour day-of-month month day-of-week
               | "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight"
               | "@hourly" | "@every " duration
    field:       range ("," range)*
    range:       ("*" | "?" | number ["-" number]) ["/" step]
    number:      digits, or the first three letters of a month or a weekday

A day matches if both day fields match; if both are restricted, one of them is enough. Times that a
clock skips are skipped, and times that it shows twice come twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.kit.go_duration import DurationError, read_duration
from moorage.kit.go_quote import go_quote

YEARS_MAX: Final = 5  # after which a schedule counts as one that never comes
LENGTH_MAX: Final = 1024  # characters of a schedule

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_INT64_MAX = 2**63 - 1
_EVERY = "@every "


class CronError(ValueError):
    """A schedule that cannot be read."""


class _Bounds(NamedTuple):
    least: int
    most: int
    names: dict[str, int]


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class CronSchedule(NamedTuple):
    """The times of a schedule; with `every_s`, one after each interval."""

    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    is_any_day: bool = False  # one of the day fields is not restricted
    every_s: int = 0

    def next(self, after: datetime, zone: tzinfo = UTC) -> datetime | None:
        """Return the first time after a time, in UTC; None if there is none for years."""
        if self.every_s:
            whole = after.astimezone(UTC).replace(microsecond=0)
            return whole + timedelta(seconds=self.every_s)
        start = after.astimezone(zone).replace(tzinfo=None)
        day = start.replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(YEARS_MAX * 366):
            if self._has_day(day):
                found = [t for t in self._times_of(day, zone) if t > after]
                if found:
                    return min(found)
            day += timedelta(days=1)
        return None

    def _has_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month and of_week if self.is_any_day else of_month or of_week

    def _times_of(self, day: datetime, zone: tzinfo) -> Iterator[datetime]:
        for hour in self.hours:
            for minute in self.minutes:
                local = day.replace(hour=hour, minute=minute, tzinfo=zone)
                for fold in (0, 1):
                    moment = local.replace(fold=fold).astimezone(UTC)
                    if moment.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
                        yield moment


@lru_cache(maxsize=256)
def parse_schedule(text: str) -> CronSchedule:
    """Return a schedule, or raise CronError with the words of Kubernetes."""
    if not text:
        raise CronError("empty spec string")
    if len(text) > LENGTH_MAX:
        raise CronError(f"the schedule has more than {LENGTH_MAX} characters")
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, _, text = text.partition(" ")
        name = zone.partition("=")[2]
        try:
            find_zone(name)
        except CronError as error:
            raise CronError(f"provided bad location {name}: {error}") from None
        text = text.strip()
    if text.startswith("@"):
        return _descriptor(text)
    fields = text.split()
    if len(fields) != len(_FIELDS):
        shown = " ".join(fields)
        raise CronError(f"expected exactly 5 fields, found {len(fields)}: [{shown}]")
    read = [_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = read
    return CronSchedule(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        frozenset(months),
        frozenset(weekdays),
        any_day or any_weekday,
    )


def find_zone(name: str) -> tzinfo:
    """Return a time zone by its name, or raise CronError."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CronError(f"unknown time zone {name}") from None


def _descriptor(text: str) -> CronSchedule:
    if text in _DESCRIPTORS:
        return parse_schedule(_DESCRIPTORS[text])
    if text.startswith(_EVERY):
        return CronSchedule(every_s=_whole_seconds(text.removeprefix(_EVERY), text))
    raise CronError(f"unrecognized descriptor: {text}")


def _whole_seconds(written: str, text: str) -> int:
    """Return a duration in whole seconds, at least one, or raise CronError."""
    try:
        nanoseconds = read_duration(written)
    except DurationError as error:
        raise CronError(f"failed to parse duration {text}: {error}") from None
    return max(1, nanoseconds // 10**9)


def _field(text: str, bounds: _Bounds) -> tuple[set[int], bool]:
    """Return the numbers of a field, and whether it is not restricted."""
    numbers: set[int] = set()
    is_star = False
    for part in text.split(","):
        if part:
            found, star = _range(part, bounds)
            numbers |= found
            is_star |= star
    return numbers, is_star


def _range(text: str, bounds: _Bounds) -> tuple[set[int], bool]:
    parts = text.split("/")
    ends = parts[0].split("-")
    is_star = ends[0] in ("*", "?")
    if is_star:
        first, last = bounds.least, bounds.most
    else:
        first = _number(ends[0], bounds)
        if len(ends) > 2:
            raise CronError(f"too many hyphens: {text}")
        last = _number(ends[1], bounds) if len(ends) == 2 else first
    step = 1
    if len(parts) > 2:
        raise CronError(f"too many slashes: {text}")
    if len(parts) == 2:
        step = _integer(parts[1])
        if len(ends) == 1 and not is_star:
            last = bounds.most
        is_star = is_star and step <= 1
    if first < bounds.least:
        raise CronError(f"beginning of range ({first}) below minimum ({bounds.least}): {text}")
    if last > bounds.most:
        raise CronError(f"end of range ({last}) above maximum ({bounds.most}): {text}")
    if first > last:
        raise CronError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")
    return set(range(first, last + 1, step)), is_star


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    sign = text[:1] if text[:1] in "+-" else ""
    digits = text.removeprefix(sign)
    why = "" if digits.isascii() and digits.isdigit() else "invalid syntax"
    if not why and (len(digits.lstrip("0")) > 19 or int(digits) > _INT64_MAX):
        why = "value out of range"
    if why:
        words = f"strconv.Atoi: parsing {go_quote(text)}: {why}"
        raise CronError(f"failed to parse int from {text}: {words}")
    number = int(digits)
    if sign == "-" and number:
        raise CronError(f"negative number (-{number}) not allowed: {text}")
    return number
