"""Conversions between types, and the parts of timestamps and durations.

int('42'), string(1.5), timestamp('2026-01-01T00:00:00Z'), t.getHours('Europe/Paris')
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from moorage.cel.lang.costs import (
    Argument,
    CallEstimate,
    Range,
    traversal,
    traverses_first,
)
from moorage.cel.lang.environment import Function, Overload
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.time import HOUR, MINUTE, SECOND, Civil, Duration, Timestamp, offset_of
from moorage.cel.lang.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    param,
    type_of,
)
from moorage.cel.lang.values import (
    INT_OVERFLOW,
    UINT_OVERFLOW,
    TypeValue,
    UInt,
    double_text,
    fitting_int,
    fitting_uint,
    parse_bool,
    parse_double,
    parse_int,
    parse_uint,
    runtime_type,
)

NOT_UTF8: Final = "invalid UTF-8 in bytes, cannot convert to string"
PYTHON_TYPES: Final[dict[type, Type]] = {Duration: DURATION, Timestamp: TIMESTAMP}

_DOUBLE_INT_LIMIT: Final = 2.0**63
_DOUBLE_UINT_LIMIT: Final = 2.0**64
_UINT64: Final = 2**64
_BYTES_PER_CHARACTER_MAX: Final = 4


def functions() -> tuple[Function, ...]:
    """Return the conversions, each named after the type that it converts to."""
    return (
        _function("bool", BOOL, (BOOL, _same), (STRING, _reader(parse_bool, "bool"))),
        _to_bytes(),
        _function(
            "double",
            DOUBLE,
            (DOUBLE, _same),
            (INT, float),
            (STRING, _reader(parse_double, "double")),
            (UINT, float),
        ),
        _function("duration", DURATION, (DURATION, _same), (STRING, Duration.parse)),
        _function(
            "int",
            INT,
            (INT, _same),
            (DOUBLE, double_to_int),
            (DURATION, attrgetter("nanoseconds")),
            (STRING, _reader(parse_int, "int")),
            (TIMESTAMP, attrgetter("seconds")),
            (UINT, lambda number: fitting_int(int(number))),
        ),
        _to_string(),
        _function(
            "timestamp",
            TIMESTAMP,
            (TIMESTAMP, _same),
            (INT, Timestamp.from_seconds),
            (STRING, Timestamp.parse),
        ),
        _function(
            "uint",
            UINT,
            (UINT, _same),
            (DOUBLE, double_to_uint),
            (INT, fitting_uint),
            (STRING, _reader(parse_uint, "uint")),
        ),
        Function("dyn", (Overload("to_dyn", (_A,), DYN, _same),)),
        Function("type", (Overload("type", (_A,), type_of(_A), type_value),)),
    )


# --- declarations ---------------------------------------------------------------------------------

_A: Final = param("A")
_ID_NAMES: Final = {
    INT: "int64",
    UINT: "uint64",
    DURATION: "duration",
    TIMESTAMP: "timestamp",
}


def id_name(type_: Type) -> str:
    """Return the name of a type in overload ids."""
    return _ID_NAMES.get(type_, type_.name)


def _function(name: str, result: Type, *sources: tuple[Type, Callable[[Any], Any]]) -> Function:
    return Function(
        name, tuple(_overload(source, result, evaluate) for source, evaluate in sources)
    )


def _overload(source: Type, result: Type, evaluate: Callable[[Any], Any]) -> Overload:
    return Overload(f"{id_name(source)}_to_{id_name(result)}", (source,), result, evaluate)


def _to_bytes() -> Function:
    costs = (traverses_first()[0], _estimate_encoding)
    encoding = Overload("string_to_bytes", (STRING,), BYTES, encoded, False, *costs)
    return Function("bytes", (_overload(BYTES, BYTES, _same), encoding))


def _to_string() -> Function:
    costs = (traverses_first()[0], _estimate_decoding)
    return Function(
        "string",
        (
            _overload(STRING, STRING, _same),
            _overload(BOOL, STRING, lambda value: "true" if value else "false"),
            Overload("bytes_to_string", (BYTES,), STRING, decoded, False, *costs),
            _overload(DOUBLE, STRING, double_text),
            _overload(DURATION, STRING, str),
            _overload(INT, STRING, str),
            _overload(TIMESTAMP, STRING, str),
            _overload(UINT, STRING, int.__repr__),
        ),
    )


def _estimate_encoding(_target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate:
    size = args[0].size
    # Unlike all other estimates this product overflows.
    high = size.high * _BYTES_PER_CHARACTER_MAX % _UINT64
    return CallEstimate(traversal(size), Range(size.low, high))


def _estimate_decoding(_target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate:
    size = args[0].size
    result = Range(size.low // _BYTES_PER_CHARACTER_MAX, size.high)
    return CallEstimate(traversal(size), result)


# --- functions ---------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _reader(parse: Callable[[str], Any], type_name: str) -> Callable[[str], Any]:
    """Return the conversion of a text that may be invalid."""
    message = f"type conversion error from 'string' to '{type_name}'"

    def convert(text: str) -> Any:
        value = parse(text)
        if value is None:
            raise EvalError(message)
        return value

    return convert


def double_to_int(number: float) -> int:
    """Return the whole part; the least int64 itself is out of range already."""
    if not -_DOUBLE_INT_LIMIT < number < _DOUBLE_INT_LIMIT:
        raise EvalError(INT_OVERFLOW)
    return math.trunc(number)


def double_to_uint(number: float) -> UInt:
    """Return the whole part."""
    if not 0 <= number < _DOUBLE_UINT_LIMIT:
        raise EvalError(UINT_OVERFLOW)
    return UInt(math.trunc(number))


def encoded(text: str) -> bytes:
    """Return the bytes of a string; stray bytes in it are kept."""
    return text.encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> str:
    """Return the string of bytes that are UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise EvalError(NOT_UTF8) from None


def type_value(value: Any) -> TypeValue:
    """Return the type of a value of the language; an environment knows those of libraries too."""
    return TypeValue(runtime_type(value, PYTHON_TYPES))


# --- parts of timestamps and durations ------------------------------------------------------------

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


def accessor_functions() -> tuple[Function, ...]:
    """Return the functions that read a part of a timestamp or duration."""
    return (*(_part(*part) for part in _PARTS), _milliseconds())


def _part(name: str, id_part: str, read: Callable[[Civil], int]) -> Function:
    def in_utc(timestamp: Timestamp) -> int:
        return read(timestamp.utc)

    def in_zone(timestamp: Timestamp, zone: str) -> int:
        return read(timestamp.in_zone(zone))

    overloads = _timestamp_overloads(id_part, in_utc, in_zone)
    if name in _UNITS:
        overloads += (_duration_overload(id_part, _whole(_UNITS[name])),)
    return Function(name, overloads)


def _milliseconds() -> Function:
    overloads = _timestamp_overloads(
        "milliseconds", attrgetter("millisecond"), _millisecond_in_zone
    )
    return Function(
        "getMilliseconds",
        (*overloads, _duration_overload("milliseconds", attrgetter("whole_milliseconds"))),
    )


def _timestamp_overloads(
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


def _millisecond_in_zone(timestamp: Timestamp, zone: str) -> int:
    offset_of(zone, timestamp.seconds)  # The zone changes nothing, but it has to exist.
    return timestamp.millisecond
