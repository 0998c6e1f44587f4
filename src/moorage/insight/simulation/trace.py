"""Traces: which pods arrive when, and how long they run.

    arrival,workload,duration,count
    0,deployment/training,2h,1
    10m,pod/notebook-0,45m,2

A trace is a CSV file with these columns, or a JSON array of objects with these fields. `duration`
may be empty or missing for pods that stay. `count` defaults to 1. Times are seconds or durations in
Go's format: `90`, `1h30m`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf, isfinite, log
from typing import Any, Final

import msgspec
from msgspec import Struct

from moorage.api.errors import DecodeError
from moorage.api.scheduler_config import duration_ns
from moorage.insight.errors import TraceError
from moorage.kit.similar_names import nearest

SECONDS_MAX: Final = 100 * 365 * 86_400.0
COUNT_MAX: Final = 100_000
FIELDS: Final = ("arrival", "workload", "duration", "count")
REQUIRED: Final = ("arrival", "workload")
BYTE_ORDER_MARK: Final = "\ufeff"


class Arrival(Struct, frozen=True, kw_only=True):
    """Pods that arrive at the same moment, `count` of them, all like those of one workload.

    `workload` is the KIND/NAME of a pod, an object that creates pods, a claim or a template. Pods
    with a duration leave after they have run that long; others stay. Times are in seconds.
    """

    at_s: float
    workload: str
    duration_s: float | None = None
    count: int = 1

    def __post_init__(self) -> None:
        check_seconds("at_s", self.at_s)
        if self.duration_s is not None:
            check_seconds("duration_s", self.duration_s)
        if not 1 <= self.count <= COUNT_MAX:
            raise TraceError(f"count: {self.count}: must be between 1 and {COUNT_MAX:,}")


def check_seconds(name: str, value: float) -> None:
    """Raise TraceError for a time that is negative, not a number or longer than 100 years."""
    if not (isfinite(value) and 0 <= value <= SECONDS_MAX):
        raise TraceError(f"{name}: {value:g}: must be between 0 and {SECONDS_MAX:g} seconds")


def seconds_of(value: str | float) -> float:
    """Return the seconds of a number or of a duration such as `1h30m`, or raise TraceError."""
    if isinstance(value, str):
        text = value.strip()
        try:
            found = float(text)
        except ValueError:
            try:
                found = duration_ns(text) / 1e9
            except DecodeError:
                fact = "expected seconds or a duration such as 1h30m"
                raise TraceError(f'"{text}": {fact}') from None
    else:
        found = float(value)
    if not (isfinite(found) and 0 <= found <= SECONDS_MAX):
        raise TraceError(f'"{value}": must be between 0 and 100 years')
    return found


# --- files ----------------------------------------------------------------------------------------


def read_trace(content: bytes, source: str) -> list[Arrival]:
    """Return the arrivals in a CSV or JSON file, or raise TraceError with place and fact."""
    try:
        text = content.decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise TraceError(f"{source}: not UTF-8: byte {error.start}") from None
    if not text.strip():
        raise TraceError(f"{source}: a trace without arrivals")
    rows = _json_rows if text.lstrip().startswith(("[", "{")) else _csv_rows
    found: list[Arrival] = []
    for place, row in rows(text, source):
        if len(found) >= COUNT_MAX:
            raise TraceError(f"{place}: more than {COUNT_MAX:,} rows, which are all that are read")
        found.append(_arrival(row, place))
    if not found:
        raise TraceError(f"{source}: a trace without arrivals")
    return found


def read_rows(rows: Iterable[Mapping[str, Any]], source: str) -> list[Arrival]:
    """Return the arrivals of rows with the fields of a trace, or raise TraceError."""
    found: list[Arrival] = []
    for row in rows:
        _check_names(row, source)
        found.append(_arrival(row, source))
    return found


def _json_rows(text: str, source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        tree = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TraceError(f"{source}: not JSON: {error}") from None
    if not isinstance(tree, list):
        raise TraceError(f"{source}: expected an array of arrivals")
    for number, row in enumerate(tree):
        place = f"{source}: [{number}]"
        if not isinstance(row, dict):
            raise TraceError(f"{place}: expected an object with {', '.join(FIELDS)}")
        _check_names(row, place)
        yield place, row


def _csv_rows(text: str, source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_names(header, f"{source}:1")
        for cells in reader:
            place = f"{source}:{reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                fact = f"{len(cells)} cells, but the header has {len(header)}"
                raise TraceError(f"{place}: {fact}")
            yield place, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise TraceError(f"{source}:{reader.line_num}: {error}") from None


def _check_names(names: Iterable[str], place: str) -> None:
    found = list(names)
    for name in found:
        if name not in FIELDS:
            near = nearest(name, FIELDS)
            known = f"did you mean {near}?" if near else f"there are {', '.join(FIELDS)}"
            raise TraceError(f'{place}: unknown column "{name}"; {known}')
    for name in REQUIRED:
        if name not in found:
            raise TraceError(f"{place}: no {name}")
    if len(set(found)) != len(found):
        raise TraceError(f"{place}: a column is there twice")


def _arrival(row: Mapping[str, Any], place: str) -> Arrival:
    try:
        at_s = _seconds(row["arrival"], "arrival")
        workload = row["workload"]
        if not isinstance(workload, str) or not workload.strip():
            raise TraceError("workload: expected KIND/NAME")
        duration = row.get("duration")
        is_endless = duration is None or duration == ""
        duration_s = None if is_endless else _seconds(duration, "duration")
        count = _count(row.get("count"))
        return Arrival(at_s=at_s, workload=workload.strip(), duration_s=duration_s, count=count)
    except TraceError as error:
        raise TraceError(f"{place}: {error}") from None


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TraceError(f"{name}: expected seconds or a duration such as 1h30m")
    try:
        return seconds_of(value)
    except (TraceError, OverflowError) as error:
        raise TraceError(f"{name}: {error}") from None


def _count(value: Any) -> int:
    if value is None or value == "":
        return 1
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value.strip()[:20])
    if isinstance(value, bool) or not isinstance(value, int):
        raise TraceError("count: expected a whole number")
    return value


# --- arrivals at random ---------------------------------------------------------------------------


def draw_arrivals(
    workload: str,
    *,
    per_hour: float,
    duration_s: float | None,
    until_s: float,
    draw: Callable[[], float],
) -> list[Arrival]:
    """Return arrivals of a Poisson process, whose durations are exponentially distributed.

    `draw` gives numbers from 0 to 1, without 1; the same numbers give the same arrivals.
    """
    if not (isfinite(per_hour) and per_hour > 0):
        raise TraceError(f"{per_hour:g} arrivals per hour: must be more than 0")
    check_seconds("until", until_s)
    found: list[Arrival] = []
    at_s = _drawn(3600 / per_hour, draw)
    while at_s < until_s:
        if len(found) >= COUNT_MAX:
            fact = f"more than {COUNT_MAX:,} arrivals, which are all that are simulated"
            raise TraceError(f"{workload}: {fact}; lower the rate or the time")
        length_s = None if duration_s is None else min(_drawn(duration_s, draw), SECONDS_MAX)
        found.append(Arrival(at_s=at_s, workload=workload, duration_s=length_s))
        at_s += _drawn(3600 / per_hour, draw)
    return found


def _drawn(mean_s: float, draw: Callable[[], float]) -> float:
    left = 1 - draw()
    return -mean_s * log(left) if left > 0 else inf
