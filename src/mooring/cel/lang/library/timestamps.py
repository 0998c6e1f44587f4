"""Parts of timestamps and durations: `t.getFullYear()`, `t.getHours('Europe/Paris')`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mooring.cel.lang.declarations import Function, Overload
from mooring.cel.lang.time import HOUR, MINUTE, SECOND, Civil, Duration, Timestamp, offset_of
from mooring.cel.lang.types import DURATION, INT, STRING, TIMESTAMP

# Name, what the ids of its overloads are called after, and where to look. Months, days of the
# month and of the year are counted from 0, but not for getDate.
_PARTS: Final[tuple[tuple[str, str, Callable[[Civil], int]], ...]] = (
    ("getFullYear", "year", lambda civil: civil.year),
    ("getMonth", "month", lambda civil: civil.month - 1),
    ("getDayOfYear", "day_of_year", lambda civil: civil.day_of_year - 1),
    ("getDayOfMonth", "day_of_month", lambda civil: civil.day - 1),
    ("getDate", "day_of_month_1_based", lambda civil: civil.day),
    ("getDayOfWeek", "day_of_week", lambda civil: civil.day_of_week),
    ("getHours", "hours", lambda civil: civil.hour),
    ("getMinutes", "minutes", lambda civil: civil.minute),
    ("getSeconds", "seconds", lambda civil: civil.second),
)
_WITH_ZONE: Final = {"seconds": "seconds_tz"}  # the one id that is made differently
_UNITS: Final = {"getHours": HOUR, "getMinutes": MINUTE, "getSeconds": SECOND}


def functions() -> tuple[Function, ...]:
    """Return the functions that read a part of a timestamp or duration."""
    return (*(_part(*part) for part in _PARTS), _milliseconds())


def _part(name: str, id_part: str, read: Callable[[Civil], int]) -> Function:
    def in_utc(timestamp: Timestamp) -> int:
        return read(timestamp.utc)

    def in_zone(timestamp: Timestamp, zone: str) -> int:
        return read(timestamp.in_zone(zone))

    overloads = _overloads(id_part, in_utc, in_zone)
    if name in _UNITS:
        overloads += (_duration_overload(id_part, _whole(_UNITS[name])),)
    return Function(name, overloads)


def _milliseconds() -> Function:
    overloads = _overloads("milliseconds", _millisecond, _millisecond_in_zone)
    return Function(
        "getMilliseconds", (*overloads, _duration_overload("milliseconds", _whole_milliseconds))
    )


def _overloads(
    id_part: str, in_utc: Callable[[Timestamp], int], in_zone: Callable[[Timestamp, str], int]
) -> tuple[Overload, ...]:
    id_ = f"timestamp_to_{id_part}"
    zoned_id = f"timestamp_to_{_WITH_ZONE.get(id_part, id_part + '_with_tz')}"
    return (
        Overload(id_, (TIMESTAMP,), INT, in_utc, is_member=True),
        Overload(zoned_id, (TIMESTAMP, STRING), INT, in_zone, is_member=True),
    )


def _duration_overload(id_part: str, evaluate: Callable[[Duration], int]) -> Overload:
    return Overload(f"duration_to_{id_part}", (DURATION,), INT, evaluate, is_member=True)


def _whole(unit: int) -> Callable[[Duration], int]:
    return lambda duration: duration.whole(unit)


def _whole_milliseconds(duration: Duration) -> int:
    return duration.whole_milliseconds


def _millisecond(timestamp: Timestamp) -> int:
    return timestamp.millisecond


def _millisecond_in_zone(timestamp: Timestamp, zone: str) -> int:
    offset_of(zone, timestamp.seconds)  # The zone changes nothing, but it has to exist.
    return timestamp.millisecond
