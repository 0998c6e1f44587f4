"""Correlation: matches values of the new object with those of the old one.

Fields of maps correspond by name, items of lists by their keys if the list is a map. Unchanged
values may break rules of the schema (ratcheting).
"""

from __future__ import annotations

from typing import Any, Final

from moorage.api.raw_json import marshal
from moorage.validation.custom_resources.structural import Structural

_UNKNOWN: Final = object()


class Correlated:
    """A value, and the corresponding value before the update."""

    __slots__ = ("_children", "_is_same", "_old_items", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Structural | None) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._is_same: bool | None = None
        self._children: dict[str | int, Correlated | None] = {}
        self._old_items: dict[bytes, Any] | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether the value is unchanged; numbers and booleans are never equal."""
        if self._is_same is None:
            self._is_same = self.new is self.old or (
                self.new is not None
                and self.old is not None
                and marshal(self.new) == marshal(self.old)
            )
        return self._is_same

    def key(self, name: str) -> Correlated | None:
        """Return the correlated field of a map, if the old map had it."""
        if name not in self._children:
            self._children[name] = self._member(name)
        return self._children[name]

    def index(self, position: int) -> Correlated | None:
        """Return the correlated item of a list, if the old list had one with its keys."""
        if position not in self._children:
            self._children[position] = self._item(position)
        return self._children[position]

    def _member(self, name: str) -> Correlated | None:
        if self.schema is None or not isinstance(self.new, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.old or name not in self.new:
            return None
        return Correlated(self.new[name], self.old[name], self.schema.below(name))

    def _item(self, position: int) -> Correlated | None:
        schema = self.schema
        if schema is None or not isinstance(self.new, list) or not isinstance(self.old, list):
            return None
        if self._old_items is None:
            self._old_items = items_by_key(self.old, schema)
        item = self.new[position]
        before = self._old_items.get(_key(item, schema), _UNKNOWN)
        return None if before is _UNKNOWN else Correlated(item, before, schema.items)


def items_by_key(items: Any, schema: Structural) -> dict[bytes, Any]:
    """Return the items of a list by their keys, or nothing for a list that is not a map."""
    if schema.list_type != "map" or not schema.list_map_keys or not isinstance(items, list):
        return {}
    found: dict[bytes, Any] = {}
    for item in items:
        if isinstance(item, dict):
            found.setdefault(_key(item, schema), item)
    return found


def item_with_key_of(item: Any, found: dict[bytes, Any], schema: Structural) -> Any:
    """Return the item that has the same keys as another, or None."""
    return found.get(_key(item, schema)) if isinstance(item, dict) else None


def _key(item: Any, schema: Structural) -> bytes:
    if not isinstance(item, dict):
        return b""
    return marshal([item.get(name, {}) for name in schema.list_map_keys])
