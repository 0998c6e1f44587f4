"""What the declarations of our structs say of their fields."""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Raw, Struct
from msgspec.structs import fields

from mooring.api.quantity import Quantity
from mooring.api.structs import EXTRA
from mooring.api.timestamp import MicroTimestamp, Timestamp
from mooring.apiserver.openapi import names

Tree = dict[str, Any]

SCALARS: dict[Any, Tree] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    Quantity: names.reference(names.QUANTITY),
    Timestamp: names.reference(names.TIME),
    MicroTimestamp: names.reference(names.MICRO_TIME),
    Raw: names.reference(names.RAW),
}


@cache
def declared_fields(struct: type[Struct]) -> dict[str, Any]:
    """Return the types of a struct's fields by their names in JSON."""
    hints = get_type_hints(struct, include_extras=True)
    return {
        info.encode_name: bare(hints[info.name])
        for info in fields(struct)
        if info.encode_name != EXTRA
    }


def bare(hint: Any) -> Any:
    """Return a type without the None that stands for absence."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not types.NoneType)
    return hint


def scalar_schema(hint: Any) -> Tree | None:
    """Return the schema of a scalar type; None if the type is no scalar."""
    if get_origin(hint) is Annotated:
        (bounds,) = hint.__metadata__
        return {"type": "integer", "format": "int32" if bounds.le < 2**31 else "int64"}
    return SCALARS.get(hint)


def element_hint(hint: Any) -> Any:
    """Return the type of the items of a list or map; Any if it is not known."""
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is tuple:
            return bare(arguments[0])
        case origin if origin is dict:
            return bare(arguments[1])
    return Any


def struct_of(hint: Any) -> type[Struct] | None:
    """Return the struct that a type is."""
    return hint if isinstance(hint, type) and issubclass(hint, Struct) else None
