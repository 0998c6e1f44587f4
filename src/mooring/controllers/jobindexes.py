"""Completion indexes of jobs as statuses write them: `0-3,5`."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.core import Pod
from mooring.api.gointegers import parse_int64
from mooring.controllers.podmaking import COMPLETION_INDEX

INDEXES_MAX = 100_000


def read_indexes(text: str, count: int) -> set[int]:
    """Return the indexes below a count that a text names; what cannot be read names none."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        low, dash, high = part.partition("-")
        first = parse_int64(low)
        last = parse_int64(high) if dash else first
        if first is not None and last is not None:
            found.update(range(max(0, first), min(last, count - 1, INDEXES_MAX) + 1))
    return found


def write_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as text: `0-3,5`, and two in a row as `6,7`."""
    parts: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1] = (parts[-1][0], index)
        else:
            parts.append((index, index))
    return ",".join(_written(*part) for part in parts)


def _written(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low},{high}" if high == low + 1 else f"{low}-{high}"


def index_of(pod: Pod) -> int | None:
    """Return the completion index of a pod, if it has one."""
    return parse_int64(pod.metadata.annotations.get(COMPLETION_INDEX, ""))
