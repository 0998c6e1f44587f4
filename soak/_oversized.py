"""Requests as large as the server takes: every list, map and text of every kind filled up.

The schema tables say which fields there are. A field of a type is filled once, in the first kind
that has the type, because all kinds read and check it with the same code.

# spot: a field and the way to it from the root of a kind
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from moorage.api import schema
from moorage.api.kinds import Kind
from moorage.api.schema import Field
from soak._requests import SERVED

DEPTH_MAX = 12

_SCALARS: dict[str, Any] = {
    "string": "a",
    "bool": True,
    "int32": 1,
    "int64": 1,
    "bytes": "YQ==",
    "quantity": "1",
    "time": "2026-01-01T00:00:00Z",
    "microtime": "2026-01-01T00:00:00.000000Z",
    "int-or-string": 1,
    "json": {},
    "strings": ["a"],
}
_WORDS = {
    "apiVersion": "v1",
    "image": "registry.example/a:1",
    "mountPath": "/a",
    "expression": "true",
    "operator": "Exists",
    "driver": "a.example.com",
    "deviceClassName": "a",
}


class Spot(NamedTuple):
    """A field that can be filled."""

    kind: Kind
    way: tuple[Field, ...]

    @property
    def field(self) -> Field:
        """The field itself."""
        return self.way[-1]

    def __str__(self) -> str:
        return f"{self.kind.api_version} {self.kind.name} " + ".".join(f.name for f in self.way)


@cache
def spots() -> tuple[Spot, ...]:
    """Return every list, map and text of every served kind."""
    seen: set[tuple[str, str]] = set()
    return tuple(spot for kind in SERVED for spot in _spots_of(kind, seen))


def _spots_of(kind: Kind, seen: set[tuple[str, str]]) -> Iterator[Spot]:
    name = schema.find_kind(kind.api_version, kind.name)
    if name is None:
        return
    waiting: list[tuple[str, tuple[Field, ...]]] = [(name, ())]
    for type_name, way in waiting:
        for field in schema.api_type(type_name).json_fields():
            if (type_name, field.name) in seen or field.name in ("apiVersion", "kind"):
                continue
            seen.add((type_name, field.name))
            if field.is_list or field.is_map or field.type in ("string", "json", "bytes"):
                yield Spot(kind, (*way, field))
            if field.is_struct and len(way) < DEPTH_MAX:
                waiting.append((field.type, (*way, field)))


# --- bodies ---------------------------------------------------------------------------------------

# How a field is filled: its items differ, are all equal, or are empty.
FILLINGS = ("distinct", "equal", "empty")


def filled(spot: Spot, filling: str, size: int) -> dict[str, Any]:
    """Return an object whose field takes about a number of bytes as JSON."""
    tree: dict[str, Any] = _with(least(spot.kind), spot.way, _content(spot.field, filling, size))
    return tree


def least(kind: Kind) -> dict[str, Any]:
    """Return an object of a kind with what it requires."""
    name = schema.find_kind(kind.api_version, kind.name)
    assert name is not None
    tree: dict[str, Any] = _least(name, 0, "a")
    return {**tree, "apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}}


def _least(type_name: str, depth: int, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in schema.api_type(type_name).json_fields():
        if field.is_list or field.is_map:
            continue
        if field.name == "name":
            found["name"] = name
        elif field.markers.required and field.name not in ("apiVersion", "kind", "metadata"):
            found[field.name] = _value(field, depth)
    return found


def _value(field: Field, depth: int) -> Any:
    if field.is_struct:
        return _least(field.type, depth + 1, "a") if depth < DEPTH_MAX else {}
    if field.markers.enum:
        return field.markers.enum[0]
    return _WORDS.get(field.name, _SCALARS[field.type])


def _with(tree: Any, way: tuple[Field, ...], content: Any) -> Any:
    first, *rest = way
    if not rest:
        return {**tree, first.name: content}
    below = tree.get(first.name)
    if isinstance(below, list):
        below = below[0]
    if below is None:
        below = _least(first.type, 0, "a")
    below = _with(below, tuple(rest), content)
    if first.is_list:
        below = [below]
    elif first.is_map:
        below = {"a": below}
    return {**tree, first.name: below}


def _content(field: Field, filling: str, size: int) -> Any:
    if not (field.is_list or field.is_map):
        return _text(field, filling, size)
    sample = _item(field, filling, 100_000)
    count = max(size // (len(json.dumps(sample, separators=(",", ":"))) + 1), 1)
    if field.is_list:
        return [_item(field, filling, number) for number in range(count)]
    count = max(size // (len(json.dumps(sample, separators=(",", ":"))) + 12), 1)
    return {f"a{number}": _item(field, filling, number) for number in range(count)}


def _item(field: Field, filling: str, number: int) -> Any:
    name = "a" if filling == "equal" else f"a{number}"
    if field.is_struct:
        return {} if filling == "empty" else _least(field.type, 0, name)
    if field.type == "string" and not field.is_map:
        if field.name == "finalizers":
            name = f"a/{name}"
        return "" if filling == "empty" else name
    return _SCALARS[field.type]


def _text(field: Field, filling: str, size: int) -> Any:
    match filling:
        case "distinct":
            return "ab-/.,"[:6] * (size // 6)
        case "equal":
            return "a" * size
    if field.type == "json":
        return {f"a{number}": [] for number in range(size // 12)}
    return '\u00e9\\"' * (size // 6)
