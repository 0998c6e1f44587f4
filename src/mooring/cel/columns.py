"""What many devices have at the end of each path, kept together: one column for each path.

Reading a path device by device is three maps deep, and with many devices none of the maps is in
the processor's cache. The columns of the few paths that an expression reads are.

The devices that have a domain make a table, whose columns are the names in that domain. All
columns together grow with the values in them and not with devices × names, because a name that
few devices of a table have gets no column: it is looked up in their maps when it is asked for.

# shape: the names in a map, in their order
# row: a device as expressions see it
# number: the place of a row
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from mooring.cel.inputs import DOMAIN_FIELDS
from mooring.cel.lang.attributes import ABSENT
from mooring.cel.lang.cells import Path

VARIABLE: Path = ("device",)
COLUMN_ROWS_MIN = 16  # With fewer rows a column is larger than what is in it.
COLUMN_GAPS_MAX = 3  # for each value of a column


class Columns:
    """The columns of some rows."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = rows
        self._tables: dict[Path, _Table] = {VARIABLE: _Table(rows)}
        for field in DOMAIN_FIELDS:
            self._add_domains(field)
        for table in self._tables.values():
            table.make_columns()

    def _add_domains(self, field: str) -> None:
        tables: dict[str, _Table] = {}
        for number, row in enumerate(self._rows):
            for domain, cells in row[field].items():
                table = tables.get(domain)
                if table is None:
                    table = tables[domain] = _Table()
                table.numbers.append(number)
                table.maps.append(cells)
        self._tables |= {(*VARIABLE, field, domain): table for domain, table in tables.items()}

    def batch(self, paths: Sequence[Path]) -> Iterable[tuple[Any, ...]]:
        """Return for each row what is at the end of the paths, ABSENT where nothing is."""
        if not paths:
            return repeat((), len(self._rows))
        return zip(*map(self._column, paths), strict=True)

    def _column(self, path: Path) -> Sequence[Any]:
        if path == VARIABLE:
            return self._rows
        column = [ABSENT] * len(self._rows)
        table = self._tables.get(path[:-1])
        if table is None:
            return column
        values = table.column(path[-1])
        if len(values) == len(column):
            return values
        for number, value in zip(table.numbers, values, strict=True):
            column[number] = value
        return column


class _Table:
    """The maps that some rows have at the same path, and columns for what is in most of them."""

    __slots__ = ("_columns", "maps", "numbers")

    def __init__(self, maps: Iterable[dict[str, Any]] = ()) -> None:
        self.maps = list(maps)
        self.numbers = array("I", range(len(self.maps)))
        self._columns: dict[str, list[Any]] | None = None

    def make_columns(self) -> None:
        """Keep the columns that are worth it."""
        if len(self.maps) < COLUMN_ROWS_MIN:
            return
        shapes = Counter(map(tuple, self.maps))
        if len(shapes) == 1:
            (names,) = shapes
            values = map(list, zip(*map(dict.values, self.maps), strict=True))
            self._columns = dict(zip(names, values, strict=True))
        else:
            counts = _counts(shapes).items()
            usual = [n for n, count in counts if len(self.maps) <= count * (1 + COLUMN_GAPS_MAX)]
            self._columns = {name: self._collected(name) for name in usual}

    def column(self, name: str) -> list[Any]:
        """Return what a name leads to in each map, or ABSENT."""
        found = None if self._columns is None else self._columns.get(name)
        return self._collected(name) if found is None else found

    def _collected(self, name: str) -> list[Any]:
        return [cells.get(name, ABSENT) for cells in self.maps]


def _counts(shapes: Counter[tuple[str, ...]]) -> dict[str, int]:
    """Return how many maps have each name, given how many have the same names."""
    counts: dict[str, int] = {}
    for names, count in shapes.items():
        for name in names:
            counts[name] = counts.get(name, 0) + count
    return counts
