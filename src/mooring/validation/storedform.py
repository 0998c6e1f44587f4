"""The form in which storage gives objects back: empty lists and maps are absent.

Kubernetes stores objects in a format that cannot tell an empty list from none. Only a few of our
fields can; a plan per struct, made once, says which of its fields these are or hold them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import is_not
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Raw, Struct
from msgspec.structs import replace

from mooring.api.resource.v1 import DeviceAttribute
from mooring.api.structs import NULL

Form = Callable[[Any], Any]


def stored_form(value: Any) -> Any:
    """Return the object as it comes back from storage; itself if nothing changes."""
    struct: Any = type(value)
    form = _struct_form(struct)
    return value if form is None else form(value)


@lru_cache(maxsize=1024)
def _struct_form(struct: type[Struct]) -> Form | None:
    """Return how objects of a struct change, or None if they never do."""
    if struct is DeviceAttribute:
        return None  # An empty list of values does not pass validation.
    hints = get_type_hints(struct)
    plan = [(name, form) for name, hint in hints.items() if (form := _form(hint)) is not None]
    if not plan:
        return None

    def change(value: Any) -> Any:
        changes = {}
        for name, form in plan:
            member = getattr(value, name)
            if member is not None and (kept := form(member)) is not member:
                changes[name] = kept
        return replace(value, **changes) if changes else value

    return change


def _form(hint: Any) -> Form | None:
    """Return how values of a declared type change, or None if they never do."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        wanted, *others = (argument for argument in arguments if argument is not NoneType)
        if others:
            return None
        inner = _form(wanted)
        if get_origin(wanted) in (tuple, dict):
            return lambda value: (inner(value) if inner and value else value) or None
        return None if inner is None else lambda value: value and inner(value)
    if origin is tuple:
        return _tuple_form(_form(arguments[0]))
    if origin is dict:
        return _map_form(_form(arguments[1]))
    if hint is Raw:
        return lambda value: NULL if value == NULL else value
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct_form(hint)
    return None


def _tuple_form(item_form: Form | None) -> Form | None:
    if item_form is None:
        return None

    def change(value: tuple[Any, ...]) -> tuple[Any, ...]:
        items = tuple(map(item_form, value))
        return items if any(map(is_not, items, value)) else value

    return change


def _map_form(item_form: Form | None) -> Form | None:
    if item_form is None:
        return None

    def change(value: dict[str, Any]) -> dict[str, Any]:
        items = {key: item_form(item) for key, item in value.items()}
        return items if any(map(is_not, items.values(), value.values())) else value

    return change
