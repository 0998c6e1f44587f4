"""Where objects hold raw JSON of drivers, found by the types of their structs.

`raw_json` is about the texts themselves; in a tree made here each of them is msgspec.Raw.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Raw, Struct
from msgspec.structs import fields

from mooring.api.codec import to_tree


def to_raw_tree(value: Struct) -> Any:
    """Return an object as a tree; raw JSON of drivers is msgspec.Raw in it, as it was given."""
    tree = to_tree(value)
    graft = _grafter(type(value))
    if graft is not None:
        graft(value, tree)
    return tree


def raws_of(value: Struct) -> list[Raw]:
    """Return the raw JSON of drivers in an object."""
    found: list[Raw] = []
    graft = _grafter(type(value))
    if graft is not None:
        graft(value, to_tree(value), found)
    return found


def holds_raw(struct: type[Struct]) -> bool:
    """Tell whether objects of a kind can hold raw JSON of drivers."""
    return _grafter(struct) is not None


# graft: (a value, its tree, where raws are noted) -> None; puts raws into the tree
Graft = Callable[[Any, Any, list[Raw] | None], None]


@lru_cache(maxsize=1024)
def _grafter(struct: type[Struct]) -> Callable[..., None] | None:
    """Return what puts the raws of an object into its tree; None if it cannot have any.

    The owners of fields are raw as well, but the server writes those itself.
    """
    if struct.__name__ == "ObjectMeta":
        return None
    plan: list[tuple[str, str, Graft | None]] = []
    hints = get_type_hints(struct, include_extras=True)
    for info in fields(struct):
        hint = hints[info.name]
        if hint is Raw:
            plan.append((info.name, info.encode_name, None))
        elif (inner := _member_grafter(hint)) is not None:
            plan.append((info.name, info.encode_name, inner))
    if not plan:
        return None

    def graft(value: Any, tree: Any, noted: list[Raw] | None = None) -> None:
        for name, key, inner in plan:
            if tree.get(key) is None:
                continue
            member = getattr(value, name)
            if inner is not None:
                inner(member, tree[key], noted)
                continue
            tree[key] = member
            if noted is not None:
                noted.append(member)

    return graft


def _member_grafter(hint: Any) -> Graft | None:
    """Return what grafts the raws of a field's value; None if it cannot have any."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (wanted,) = (a for a in arguments if a is not types.NoneType)
        return _member_grafter(wanted)
    if origin is tuple:
        inner = _member_grafter(arguments[0])
        return None if inner is None else _list_grafter(inner)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _grafter(hint)
    return None


def _list_grafter(inner: Graft) -> Graft:
    def graft(values: Any, trees: Any, noted: list[Raw] | None) -> None:
        for value, tree in zip(values, trees, strict=True):
            inner(value, tree, noted)

    return graft
