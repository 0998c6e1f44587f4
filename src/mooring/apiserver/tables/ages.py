"""Spans of time in few letters, as kubectl shows them: 42s, 6m31s, 3h10m, 2d4h, 3y12d."""

from __future__ import annotations

from mooring.api.timestamp import Timestamp

UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400

# Up to so many seconds a span is shown in a unit, and in a smaller one beside it if there is one.
_SCALES = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def age(since: Timestamp | None, now: Timestamp) -> str:
    """Return how long ago something was."""
    return UNKNOWN if since is None or since.is_zero else span(since, now)


def span(start: Timestamp, end: Timestamp) -> str:
    """Return how long it is from one instant to another."""
    seconds = int((end.instant - start.instant).total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)  # Clocks may differ a little.
    for below, unit_s, unit, part_s, part in _SCALES:
        if seconds < below:
            rest = seconds % unit_s // part_s if part_s else 0
            return f"{seconds // unit_s}{unit}" + (f"{rest}{part}" if rest else "")
    return f"{seconds // _YEAR}y"
