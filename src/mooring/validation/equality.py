"""When two objects mean the same, and which parts of an object an update left alone."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from msgspec import Struct

from mooring.api.fieldpath import Key, Path
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
    return False


def is_untouched(path: Path, new: Any, old: Any, *, key: str | None = None) -> bool:
    """Tell whether the part at the path, or one that holds it, is as it was.

    What has no counterpart in the old object is new, and so is everything in it. If a key is
    given, the question is whether the map at the path had it before.
    """
    for segment in path.segments:
        if same(new, old):
            return True
        if old is None:
            return False
        match segment:
            case int(position):
                new = new[position]
                old = _counterpart(new, old)
            case Key(name):
                new, old = _entry(new, name), _entry(old, name)
            case _:
                new, old = _member(new, segment), _member(old, segment)
    return same(new, old) or (isinstance(old, dict) and key in old)


# Elements of other lists have no counterpart: one that changes is another list altogether.
_KEYS: dict[type[Struct], tuple[str, ...]] = {
    AllocatedDeviceStatus: ("driver", "pool", "device", "share_id"),
    CounterSet: ("name",),
    DeviceRequest: ("name",),
    DeviceSubRequest: ("name",),
}


def _counterpart(item: Any, old_items: Any) -> Any:
    """Return the element of the old list that an element continues, if there is one."""
    if isinstance(item, str):
        return item if item in old_items else None
    names = _KEYS.get(type(item))
    if names is None:
        return None
    key_of = attrgetter(*names)
    return next((old for old in old_items if key_of(old) == key_of(item)), None)


def _is_collection(value: Any) -> bool:
    return value is None or isinstance(value, tuple | dict)


def _entry(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, Struct):
        return None
    names = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
    return getattr(value, names[name]) if name in names else None
