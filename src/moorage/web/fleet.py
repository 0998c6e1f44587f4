"""A fleet as columns, and the changes from one fleet to the next.

    delta(before, after)   changed cells, new rows and new strings; None if rows moved
    apply(delta, before)   the fleet after the changes

# cell: the value of one row in one column
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from moorage.web.columns import Column, decode, encode

Table = Mapping[str, Column]
# Clients identify a row by these columns; if they change, it is another row.
KEYS: Final[dict[str, tuple[str, ...]]] = {
    "nodes": ("name",),
    "devices": ("node", "driver", "pool", "name"),
}
TABLES: Final = ("nodes", "devices", "holdings", "claims", "pods")
CELLS_MAX: Final = 50_000  # in a delta; with more, the whole fleet is shorter


class Group(Struct, frozen=True):
    """Pending pods with the same cause."""

    cause: str
    count: int
    first: int  # row of a pod
    wants: str = ""


class Fleet(Struct, frozen=True):
    """A fleet at one revision."""

    revision: int
    time: str
    strings: Sequence[str]
    tables: Mapping[str, Table]
    groups: tuple[Group, ...] = ()

    def rows(self, table: str) -> int:
        """Return the number of rows of a table, including vacant ones."""
        return len(next(iter(self.tables[table].values())))


class Delta(Struct, frozen=True, omit_defaults=True):
    """The changes from one fleet to the next."""

    revision: int
    time: str
    set: dict[str, dict[str, list[tuple[int, int]]]] = {}
    append: dict[str, dict[str, Column]] = {}
    strings: tuple[str, ...] = ()
    groups: tuple[Group, ...] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether only the revision changes."""
        return not (self.set or self.append or self.strings) and self.groups is None


def fleet_tree(fleet: Fleet) -> dict[str, Any]:
    """Return a fleet as a JSON tree."""
    tables = {
        name: {column: encode(values) for column, values in fleet.tables[name].items()}
        for name in TABLES
    }
    facts = {"revision": fleet.revision, "time": fleet.time, "strings": list(fleet.strings)}
    return {**facts, **tables, "groups": fleet.groups}


def read_fleet(tree: Mapping[str, Any]) -> Fleet:
    """Return the fleet of a JSON tree, or raise ValueError."""
    return Fleet(
        tree["revision"],
        tree["time"],
        tuple(tree["strings"]),
        {
            name: {column: decode(values) for column, values in tree[name].items()}
            for name in TABLES
        },
        tuple(Group(**each) if isinstance(each, dict) else each for each in tree["groups"]),
    )


def delta(
    before: Fleet,
    after: Fleet,
    *,
    cells_max: int = CELLS_MAX,
    keys: Mapping[str, tuple[str, ...]] = KEYS,
) -> Delta | None:
    """Return the changes, or None if rows moved or vanished, or too much changed."""
    strings = tuple(after.strings[len(before.strings) :])
    if len(after.strings) < len(before.strings):
        return None
    changed: dict[str, dict[str, list[tuple[int, int]]]] = {}
    added: dict[str, dict[str, Column]] = {}
    cells = 0
    for name in TABLES:
        rows = before.rows(name)
        if after.rows(name) < rows or not _has_same_keys(before, after, name, rows, keys):
            return None
        for column, values in after.tables[name].items():
            found = _differences(before.tables[name][column], values)
            if found:
                changed.setdefault(name, {})[column] = found
                cells += len(found)
        if after.rows(name) > rows:
            added[name] = {c: list(v[rows:]) for c, v in after.tables[name].items()}
            cells += len(added[name]) * (after.rows(name) - rows)
        if cells > cells_max:
            return None
    groups = None if after.groups == before.groups else after.groups
    return Delta(after.revision, after.time, changed, added, strings, groups)


def _has_same_keys(
    before: Fleet, after: Fleet, name: str, rows: int, keys: Mapping[str, tuple[str, ...]]
) -> bool:
    old, new = before.tables[name], after.tables[name]
    return all(old[key] == new[key][:rows] for key in keys.get(name, ()))


def _differences(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int]]:
    rows = len(before)
    if (after if len(after) == rows else after[:rows]) == before:
        return []
    pairs = zip(before, after, strict=False)
    return [(row, new) for row, (old, new) in enumerate(pairs) if old != new]


def apply(change: Delta, before: Fleet) -> Fleet:
    """Return the fleet after a delta."""
    tables = {
        name: {
            column: _applied(
                values,
                change.set.get(name, {}).get(column, ()),
                change.append.get(name, {}).get(column, ()),
            )
            for column, values in before.tables[name].items()
        }
        for name in TABLES
    }
    groups = before.groups if change.groups is None else change.groups
    strings = (*before.strings, *change.strings)
    return Fleet(change.revision, change.time, strings, tables, groups)


def _applied(values: Column, cells: Iterable[tuple[int, int]], more: Iterable[int]) -> Column:
    found = [*values, *more]
    for row, value in cells:
        found[row] = value
    return found
