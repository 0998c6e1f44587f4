"""Durations as Go writes and reads them: `1h2m3.5s`, `500ms`, `-1.5h`.

duration = [ "+" | "-" ] ( "0" | part+ )
part     = ( digits | digits "." digits ) unit
unit     = "ns" | "us" | "µs" | "ms" | "s" | "m" | "h"
"""

from __future__ import annotations

import re

_INT64_MAX = 2**63 - 1
_SECOND_NS = 1_000_000_000
_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter
    "ms": 1_000_000,
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "h": 3600 * _SECOND_NS,
}

_match_part = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)").match


class DurationError(ValueError):
    """A text that is no duration."""


def read_duration(text: str) -> int:
    """Return the nanoseconds, or raise DurationError with the text of Go's time.ParseDuration."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise _wrong_duration(text)
    total = 0
    while rest:
        part, rest = _read_part(text, rest)
        total += part
    is_negative = text[0] == "-"
    if total > _INT64_MAX + is_negative:
        raise _wrong_duration(text)
    return -total if is_negative else total


def duration_text(nanoseconds: int) -> str:
    """Return the duration as Go prints it: `1h2m3.5s`, `500ms`, `0s`."""
    minus, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    if rest < _SECOND_NS:
        unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _UNITS_NS[unit])
        return minus + _decimal(rest, _UNITS_NS[unit]) + unit
    minutes, rest = divmod(rest, 60 * _SECOND_NS)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    return minus + text + _decimal(rest, _SECOND_NS) + "s"


def _read_part(text: str, rest: str) -> tuple[int, str]:
    """Return the nanoseconds of the first part, and what follows it."""
    match = _match_part(rest)
    assert match is not None  # every group may be empty
    whole, fraction, unit = match.groups()
    if not whole and not fraction:
        raise _wrong_duration(text)
    if not unit:
        raise DurationError(f'time: missing unit in duration "{text[:64]}"')
    if unit not in _UNITS_NS:
        raise DurationError(f'time: unknown unit "{unit[:64]}" in duration "{text[:64]}"')
    if len(whole.lstrip("0")) > 19:
        raise _wrong_duration(text)
    scale = _UNITS_NS[unit]
    digits = (fraction or "")[:18]
    return int(whole or "0") * scale + int(digits or "0") * scale // 10 ** len(digits), rest[
        match.end() :
    ]


def _decimal(value: int, scale: int) -> str:
    whole, rest = divmod(value, scale)
    if not rest:
        return str(whole)
    places = len(str(scale)) - 1
    return f"{whole}.{rest:0{places}d}".rstrip("0")


def _wrong_duration(text: str) -> DurationError:
    return DurationError(f'time: invalid duration "{text[:64]}"')
