"""Validates lists that are sets or maps: no item, or no key of an item, occurs twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api.field_path import MapKey, Path
from moorage.api.raw_json import marshal
from moorage.validation.custom_resources.structural import Structural
from moorage.validation.errors import ErrorList, duplicate, invalid

_UNSPECIFIED = object()


def validate_list_types(value: Any, schema: Structural | None, path: Path | None) -> ErrorList:
    """Validate all lists below a value."""
    if schema is None:
        return []
    found: ErrorList = []
    if isinstance(value, dict):
        for name, member in value.items():
            if (additional := schema.additional_schema) is not None:
                found += validate_list_types(member, additional, Path(MapKey(name), path))
            if (declared := schema.properties.get(name)) is not None:
                found += validate_list_types(member, declared, Path(name, path))
    elif isinstance(value, list):
        assert path is not None
        if schema.list_type == "set":
            found += [duplicate(path.index(i), value[i]) for i in _repeated(value)]
        elif schema.list_type == "map":
            found += _validate_map(value, schema, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                found += validate_list_types(item, schema.items, path.index(index))
    return found


def _validate_map(items: list[Any], schema: Structural, path: Path) -> ErrorList:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            words = "must be an object for an array of list-type map"
            return [invalid(path.index(index), item, words)]
    keys = [_key(item, schema.list_map_keys) for item in items]
    return [duplicate(path.index(i), keys[i]) for i in _repeated(keys)]


def _key(item: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: item[name] for name in names if item is not None and name in item}


def _repeated(items: Iterable[Any]) -> list[int]:
    """Return the indexes of repeated items; of several equal ones, only the second."""
    times: dict[bytes, int] = {}
    found = []
    for index, item in enumerate(items):
        identity = marshal(item)
        times[identity] = times.get(identity, 0) + 1
        if times[identity] == 2:
            found.append(index)
    return found
