"""The difference between two fleets, drawn over the first: rows keep their places, new ones follow.

Removed rows stay as ghosts: a device in no slice, a node without an object. So nothing moves when a
user looks at what a change would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.kit.checkpoints import checkpoint
from moorage.web.columns import Column, Strings
from moorage.web.fleet import TABLES, Delta, Fleet, delta

# The columns that identify a row; names are compared as text, rows by what they are.
KEYS: Final[dict[str, tuple[str, ...]]] = {
    "nodes": ("name",),
    "devices": ("driver", "pool", "name"),
    "holdings": ("device", "claim"),
    "claims": ("namespace", "name"),
    "pods": ("namespace", "name"),
}
STRING_COLUMNS: Final = frozenset(
    {("nodes", "name"), ("nodes", "zone"), ("claims", "namespace"), ("claims", "name")}
    | {("pods", "namespace"), ("pods", "name")}
    | {("devices", name) for name in ("driver", "pool", "name", "root")}
)
ROW_COLUMNS: Final[dict[tuple[str, str], str]] = {
    ("devices", "node"): "nodes",
    ("devices", "parent"): "devices",
    ("holdings", "device"): "devices",
    ("holdings", "claim"): "claims",
    ("claims", "pod"): "pods",
    ("pods", "node"): "nodes",
}
GONE: Final[dict[str, dict[str, int]]] = {
    "nodes": {"state": 3, "devices": 0},
    "devices": {"state": 6, "used": 0, "claims": 0},
    "holdings": {"device": -1, "claim": -1, "share": 0},
    "claims": {"namespace": 0, "name": 0, "created": -1, "pod": -1},
    "pods": {"namespace": 0, "name": 0, "node": -1, "state": 0, "created": -1, "group": -1},
}
MISSING: Final = 6
PLACE: Final = ("node", "numa", "root")
ORDER: Final = (
    "nodes",
    "devices",
    "pods",
    "claims",
    "holdings",
)  # referred to first


def ghosts(before: Fleet, after: Fleet) -> tuple[Delta, list[int]]:
    """Return the changes that turn a fleet into another one with its rows in place.

    The second value has the new row of each device of the other fleet.
    """
    moved, devices = _over(before, after)
    found = delta(before, moved, cells_max=1 << 40, keys={})
    assert found is not None
    return found, devices


def _over(before: Fleet, after: Fleet) -> tuple[Fleet, list[int]]:
    """Return the second fleet with the rows of the first."""
    strings = Strings(before.strings[1:])
    numbers = [strings.number(name) for name in after.strings]
    rows: dict[str, list[int]] = {}  # rows of the second fleet, in the first
    tables: dict[str, dict[str, Column]] = {}
    for name in ORDER:
        checkpoint()
        moved = {
            column: _moved(values, name, column, numbers, rows)
            for column, values in after.tables[name].items()
            if ROW_COLUMNS.get((name, column)) != name
        }
        tables[name], rows[name] = _placed(name, before.tables[name], moved)
        for column, values in after.tables[name].items():
            if ROW_COLUMNS.get((name, column)) == name:  # references to rows of the same table
                column_before = list(before.tables[name][column])
                size = len(next(iter(tables[name].values())))
                column_before += [-1] * (size - len(column_before))
                for row, value in zip(rows[name], values, strict=True):
                    column_before[row] = rows[name][value] if value >= 0 else -1
                tables[name][column] = column_before
    ordered = {
        name: {column: tables[name][column] for column in after.tables[name]} for name in TABLES
    }
    found = Fleet(before.revision, before.time, strings.names, ordered, after.groups)
    return found, rows["devices"]


def _moved(
    values: Column, table: str, column: str, numbers: list[int], rows: Mapping[str, list[int]]
) -> Column:
    """Return a column with the strings and row numbers of the first fleet."""
    if (table, column) in STRING_COLUMNS:
        return [numbers[value] for value in values]
    target = ROW_COLUMNS.get((table, column))
    if target is None:
        return list(values)
    places = rows[target]
    return [places[value] if value >= 0 else -1 for value in values]


def _placed(
    name: str, before: Mapping[str, Column], moved: Mapping[str, Column]
) -> tuple[dict[str, Column], list[int]]:
    """Return the rows in the order of the first fleet, and where each row of the second went."""
    keys = KEYS[name]
    known = {key: row for row, key in enumerate(zip(*(before[k] for k in keys), strict=True))}
    size = len(before[keys[0]])
    gone = set(range(size))
    places: list[int] = []
    for key in zip(*(moved[k] for k in keys), strict=True):
        row = known.get(key, -1)
        if row in gone:
            gone.discard(row)
        else:  # new, or vacant in both
            row, size = size, size + 1
        places.append(row)
    found: dict[str, Column] = {}
    known_rows, kept = len(before[keys[0]]), PLACE if name == "devices" else ()
    for column, values in moved.items():
        target = list(before[column])
        target += [0] * (size - len(target))
        for row in gone:
            target[row] = GONE[name].get(column, target[row])
        for number, (row, value) in enumerate(zip(places, values, strict=True)):
            if row < known_rows and column in kept and moved["state"][number] == MISSING:
                continue  # No slice has the device any more, so it is drawn where it was.
            target[row] = value
        found[column] = target
    return found, places
