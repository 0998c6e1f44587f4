"""When two objects mean the same, and which parts of an object an update left alone."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import Raw, Struct

from mooring.api.fieldpath import Key, Path
from mooring.api.raw_json import marshal
from mooring.api.resource.v1 import (
    AllocatedDeviceStatus,
    CounterSet,
    DeviceRequest,
    DeviceSubRequest,
)


def same(a: Any, b: Any) -> bool:
    """Tell whether two values mean the same: absent and empty lists and maps do."""
    if a == b:
        return True
    if not a and not b and _is_collection(a) and _is_collection(b):
        return True
    if isinstance(a, Struct) and type(a) is type(b):
        return all(same(getattr(a, name), getattr(b, name)) for name in a.__struct_fields__)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, Raw) and isinstance(b, Raw):
        return _is_same_json(a, b)
    return False


def _is_same_json(a: Raw, b: Raw) -> bool:
    """Tell whether two texts are the same JSON: a patch may have written one of them anew."""
    try:
        return marshal(a) == marshal(b)
    except (ValueError, RecursionError):
        return False


# Elements of other lists have no counterpart: one that changes is another list altogether.
_KEYS: dict[type[Struct], tuple[str, ...]] = {
    AllocatedDeviceStatus: ("driver", "pool", "device", "share_id"),
    CounterSet: ("name",),
    DeviceRequest: ("name",),
    DeviceSubRequest: ("name",),
}


class Change:
    """An update of an object, which remembers what it compared: many ask about the same parts."""

    def __init__(self, new: Any, old: Any) -> None:
        self._new = new
        self._old = old
        # By identity; the objects that hold these values outlive the change.
        self._same: dict[tuple[int, int], bool] = {}
        self._elements: dict[int, dict[Any, Any]] = {}

    def leaves(self, path: Path, *, key: str | None = None) -> bool:
        """Tell whether the part at the path, or one that holds it, is as it was.

        What has no counterpart in the old object is new, and so is everything in it. If a key is
        given, it is enough that the map at the path had it before.
        """
        new, old = self._new, self._old
        for segment in path.segments:
            if self._is_same(new, old):
                return True
            if old is None:
                return False
            match segment:
                case int():
                    new = new[segment]
                    old = self._counterpart(new, old)
                case Key(name):
                    new, old = _entry(new, name), _entry(old, name)
                case _:
                    new, old = _member(new, segment), _member(old, segment)
        return self._is_same(new, old) or (isinstance(old, dict) and key in old)

    def _is_same(self, new: Any, old: Any) -> bool:
        pair = (id(new), id(old))
        if pair not in self._same:
            self._same[pair] = same(new, old)
        return self._same[pair]

    def _counterpart(self, item: Any, old_items: tuple[Any, ...]) -> Any:
        """Return the element of the old list that an element continues, if there is one."""
        key_of = _key_of(item)
        if key_of is None:
            return None
        if id(old_items) not in self._elements:
            # The first of several with the same key counts, so it comes last into the map.
            elements = {key_of(old): old for old in reversed(old_items)}
            self._elements[id(old_items)] = elements
        return self._elements[id(old_items)].get(key_of(item))


def _key_of(item: Any) -> Callable[[Any], Any] | None:
    """Return what identifies elements like this one in their list, or None if nothing does."""
    if isinstance(item, str):
        return str
    names = _KEYS.get(type(item))
    return None if names is None else attrgetter(*names)


def _is_collection(value: Any) -> bool:
    return value is None or isinstance(value, tuple | dict)


def _entry(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, Struct):
        return None
    names = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
    return getattr(value, names[name]) if name in names else None
