"""Columns of numbers in a compact JSON form, and strings as numbers.

plain    [0, 0, 1, …]
rle      {"rle": [value, count, value, count, …]}     repeated values
steps    {"steps": [difference, count, …]}            repeated values that grow or fall slowly
delta    {"delta": [first, difference, …]}            values that grow or fall slowly
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate, chain, groupby, pairwise, repeat
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Column = list[int]
Encoded = list[int] | dict[str, list[int]]
RUN_LENGTH_MIN: Final = 3.0  # average length from which runs are shorter than values
STEP_MAX: Final = 9  # of nearly all differences, so that they have one digit
DECODED_MAX: Final = 10_000_000


def encode(column: Sequence[int]) -> Encoded:
    """Return the shortest form of a column."""
    if not column:
        return []
    runs = [(value, sum(1 for _ in run)) for value, run in groupby(column)]
    if len(runs) * RUN_LENGTH_MIN <= len(column):
        return _repeated(runs)
    steps = [after - before for before, after in pairwise(column)]
    small = sum(1 for step in steps if -1 <= step <= STEP_MAX)
    if len(steps) > STEP_MAX and small * 10 >= len(steps) * 9 and max(column) > STEP_MAX:
        return {"delta": [column[0], *steps]}
    return list(column)


def _repeated(runs: Sequence[tuple[int, int]]) -> Encoded:
    values, counts = zip(*runs, strict=True)
    steps = [after - before for before, after in pairwise((0, *values))]
    # As digits count: a step is worth it if steps are a tenth of the values.
    if sum(map(abs, steps)) * 10 <= sum(map(abs, values)):
        return {"steps": list(chain.from_iterable(zip(steps, counts, strict=True)))}
    return {"rle": list(chain.from_iterable(runs))}


def decode(encoded: Any) -> Column:
    """Return the column, or raise ValueError for invalid input."""
    match encoded:
        case list():
            return [_number(each) for each in encoded]
        case {"rle": list() as flat} if len(flat) % 2 == 0:
            return _runs(flat[::2], flat[1::2])
        case {"steps": list() as flat} if len(flat) % 2 == 0:
            return _runs(accumulate(map(_number, flat[::2])), flat[1::2])
        case {"delta": list() as steps}:
            return list(accumulate(_number(each) for each in steps))
    raise ValueError("not a column")


def _runs(values: Iterable[Any], lengths: Sequence[Any]) -> Column:
    counts = [_number(each) for each in lengths]
    if min(counts, default=0) < 0 or sum(counts) > DECODED_MAX:
        raise ValueError("a run of an impossible length")
    pairs = zip(map(_number, values), counts, strict=True)
    return list(chain.from_iterable(repeat(value, count) for value, count in pairs))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"not a number: {value!r}")
    return value


class Strings:
    """Strings with numbers that never change; 0 is ""."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        for name in names:
            self.number(name)

    def __len__(self) -> int:
        return len(self.names)

    def copy(self) -> Strings:
        """Return a copy."""
        return Strings(self.names[1:])

    def number(self, name: str) -> int:
        """Return the number of a string, and add it if it is new."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


class Rows(Generic[K]):
    """A table whose rows keep their numbers: removed rows become vacant and are reused later."""

    def __init__(self, **vacant: int) -> None:
        self._vacant = vacant  # the value of a vacant row, by column
        self.columns: dict[str, Column] = {name: [] for name in vacant}
        self._rows: dict[K, int] = {}
        self._free: list[int] = []  # the first one is reused first

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[K]:
        return iter(self._rows)

    def copy(self) -> Rows[K]:
        """Return a copy."""
        found: Rows[K] = Rows(**self._vacant)
        found.columns = {name: list(values) for name, values in self.columns.items()}
        found._rows, found._free = dict(self._rows), list(self._free)
        return found

    def row(self, key: K) -> int:
        """Return the row of a key, or -1 if it has none."""
        return self._rows.get(key, -1)

    def put(self, key: K, **values: int) -> int:
        """Store values in the row of a key, and return the row."""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._new_row()
        for name, value in values.items():
            self.columns[name][row] = value
        return row

    def remove(self, key: K) -> None:
        """Make the row of a key vacant, if it has one."""
        row = self._rows.pop(key, None)
        if row is not None:
            for name, value in self._vacant.items():
                self.columns[name][row] = value
            heappush(self._free, row)

    def _new_row(self) -> int:
        if self._free:
            return heappop(self._free)
        for name, value in self._vacant.items():
            self.columns[name].append(value)
        return len(next(iter(self.columns.values()))) - 1
