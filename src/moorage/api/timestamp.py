"""Points in time as Kubernetes writes them: RFC 3339, UTC, whole seconds (or microseconds)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Self

from moorage.api.errors import DecodeError

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


REMEMBERED_LENGTH_MAX = 40


def _parts(fraction: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the parts of a layout and what follows each of them."""
    digits = re.compile(r"\d\d", re.ASCII)
    yield "2006", re.compile(r"\d{4}", re.ASCII)
    yield from (("-", re.compile("-")), ("01", digits), ("-", re.compile("-")), ("02", digits))
    yield from (("T", re.compile("T")), ("15", re.compile(r"\d\d?", re.ASCII)))
    yield from ((":", re.compile(":")), ("04", digits), (":", re.compile(":")))
    if fraction:
        yield "05", digits
        yield fraction, re.compile(r"[.,]\d{6}", re.ASCII)
    else:
        yield "05", re.compile(r"\d\d(?:[.,]\d+)?", re.ASCII)
    yield "Z07:00", re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII)


class Timestamp:
    """An instant, written in UTC with whole seconds."""

    __slots__ = ("_json", "instant")

    _form = _RFC3339
    _fraction = ""  # of the layout in which Go reads and writes it

    def __init__(self, instant: datetime) -> None:
        self.instant = instant if instant.tzinfo is UTC else instant.astimezone(UTC)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the instant that an RFC 3339 text names."""
        if len(text) > REMEMBERED_LENGTH_MAX:
            return cls._parse(text)
        found: Self = _remembered(cls, text)  # type: ignore[arg-type]  # classes are hashable
        return found

    @classmethod
    def _parse(cls, text: str) -> Self:
        if (match := cls._form.fullmatch(text)) is None:
            raise DecodeError(f'parsing time "{text[:64]}"{cls._fault(text)}')
        return cls(_read(match))

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a timestamp of a value; "" if there is none."""
        if isinstance(value, str):
            return f"Timestamp.parse({value[:64]!r})"
        return "Timestamp(…) of it" if isinstance(value, datetime) else ""

    @property
    def is_zero(self) -> bool:
        """Whether this is the first instant of the calendar, which is the zero time of Go."""
        return self.instant == NO_TIME.instant

    @property
    def json(self) -> str | None:
        """The text in JSON, kept because objects are written several times; null for zero."""
        try:
            return self._json
        except AttributeError:
            self._json: str | None = None if self.is_zero else str(self)
            return self._json

    @classmethod
    def _fault(cls, text: str) -> str:
        """Return the first part of the layout that a text does not follow, in the words of Go."""
        layout = f"2006-01-02T15:04:05{cls._fraction}Z07:00"
        rest = text
        for part, pattern in _parts(cls._fraction):
            match = pattern.match(rest)
            if match is None:
                return f' as "{layout}": cannot parse "{rest[:64]}" as "{part}"'
            rest = rest[match.end() :]
        return f': extra text: "{rest[:64]}"'

    def truncated(self) -> Timestamp:
        """Return the instant at the start of its second."""
        return Timestamp(self.instant.replace(microsecond=0))

    def after(self, seconds: float) -> Timestamp:
        """Return the instant some seconds later; the calendar's last one if there is none so late.

        Seconds come from objects, where any 64-bit number is valid.
        """
        try:
            return Timestamp(self.instant + timedelta(seconds=seconds))
        except OverflowError:
            return LATEST if seconds > 0 else NO_TIME

    def __str__(self) -> str:
        return _seconds_text(self.instant)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.instant == other.instant

    def __lt__(self, other: Timestamp) -> bool:
        return self.instant < other.instant

    def __hash__(self) -> int:
        return hash(self.instant)


def _read(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    microsecond = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        offset = _offset(sign, int(hours or 0), int(minutes or 0))
        y, m, d, hh, mm, ss = map(int, (year, month, day, hour, minute, second))
        return datetime(y, m, d, hh, mm, ss, microsecond, UTC) - offset
    except (ValueError, OverflowError) as error:
        raise DecodeError(f'parsing time "{match[0][:64]}": {error}') from None


# Most times of a cluster occur many times: the same second in many objects, and several times in
# each of them. They share one value, which nobody changes.
@lru_cache(maxsize=8192)
def _remembered(kind: Any, text: str) -> Any:
    return kind._parse(text)


@lru_cache(maxsize=8192)
def _seconds_text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _offset(sign: str, hours: int, minutes: int) -> timedelta:
    """Return how far a clock is ahead of UTC; Go allows a day, and sixty minutes for an hour."""
    if hours > 24 or minutes > 60:
        raise ValueError("time zone offset out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if sign == "-" else offset


NO_TIME = Timestamp(datetime(1, 1, 1, tzinfo=UTC))
LATEST = Timestamp(datetime.max.replace(microsecond=0, tzinfo=UTC))


class MicroTimestamp(Timestamp):
    """An instant, written in UTC with microseconds (leases and events)."""

    __slots__ = ()

    # Go reads what it writes: neither fewer nor more digits.
    _form = re.compile(_RFC3339.pattern.replace(r"(?:[.,](\d+))?", r"[.,](\d{6})"), re.ASCII)
    _fraction = ".000000"

    def __str__(self) -> str:
        return self.instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
