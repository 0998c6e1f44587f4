"""When two objects mean the same, and which parts of an object an update left alone."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mooring.api.fieldpath import Key, Path


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


def is_untouched(path: Path, new: Any, old: Any) -> bool:
    """Tell whether the part at the path, or one that holds it, is as it was.

    Elements of lists have no counterpart in the old list, so below a changed list nothing is
    untouched.
    """
    for segment in path.segments:
        if same(new, old):
            return True
        match segment:
            case int():
                return False
            case Key(name):
                new, old = _entry(new, name), _entry(old, name)
            case _:
                new, old = _member(new, segment), _member(old, segment)
    return same(new, old)


def _is_collection(value: Any) -> bool:
    return value is None or isinstance(value, tuple | dict)


def _entry(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, Struct):
        return None
    names = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
    return getattr(value, names[name]) if name in names else None
