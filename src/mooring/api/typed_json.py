"""The parts of objects that our structs keep as JSON, read as the Go types of Kubernetes read them.

Our structs of kinds that others own declare the fields that we use; a volume, a probe or a security
context is plain JSON to them. The schema has the type of every field, so `read_parts` can do to
those parts what decoding to a Go type and encoding again does (see `go_types`).
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields, replace

from mooring.api import go_types, schema
from mooring.api.field_path import Place
from mooring.api.go_types import GoField, Read, Unknown
from mooring.api.structs import EXTRA, Open

S = TypeVar("S", bound=Struct)


def read_parts(value: S, api_version: str, kind: str) -> tuple[S, Unknown]:
    """Return an object with its JSON as Go writes it, and the fields that its kind does not have.

    Raises DecodeError for a value of a wrong type. Kinds that the table does not have stay as they
    are, and so do those whose structs declare everything.
    """
    unknown = Unknown()
    message = schema.find_kind(api_version, kind)
    if message is None or not isinstance(value, Open):
        return value, unknown
    return _parts_of(type(value), message).read(value, (), unknown), unknown


def reports_unknown(struct: type[Struct], api_version: str, kind: str) -> bool:
    """Tell whether fields that a kind does not have are reported, and not kept."""
    return not issubclass(struct, Open) or schema.find_kind(api_version, kind) is not None


class _Parts:
    """The fields of a struct that are JSON, or hold structs in which some are."""

    def __init__(self, struct: type[Struct], message: str) -> None:
        self._struct, self._message = struct, message

    def read(self, value: S, place: Place, unknown: Unknown) -> S:
        changes: dict[str, Any] = {}
        for name, json_name, read in self._readers:
            before = getattr(value, name)
            if before is None or before == ():
                continue
            after = read(before, (*place, json_name), unknown)
            if after is not before:
                changes[name] = after
        if isinstance(value, Open) and value.extra:
            changes["extra"] = self._read_extra(value.extra, place, unknown)
        return replace(value, **changes) if changes else value

    def _read_extra(self, extra: Mapping[str, Any], place: Place, unknown: Unknown) -> Any:
        """Return the fields that the struct does not declare and the message has."""
        known = go_types.message_named(self._message).fields
        kept: dict[str, Any] = {}
        for name, given in extra.items():
            field = known.get(name)
            if field is None:
                unknown.append((*place, name))
            elif given is not None:
                kept[name] = field.read(given, (*place, name), unknown)
        return kept

    @cached_property
    def _readers(self) -> tuple[tuple[str, str, Read], ...]:
        """Attribute, JSON name and reader of all fields in which there may be JSON."""
        hints = get_type_hints(self._struct)
        known = go_types.message_named(self._message).fields
        found = []
        for info in fields(self._struct):
            field = known.get(info.encode_name)
            if field is None or info.encode_name == EXTRA:
                continue
            read = _part_reader(hints[info.name], field)
            if read is not None:
                found.append((info.name, info.encode_name, read))
        return tuple(found)


@lru_cache(maxsize=1024)
def _parts_of(struct: type[Struct], message: str) -> _Parts:
    return _Parts(struct, message)


def _part_reader(hint: Any, field: GoField) -> Read | None:
    """Return how the JSON in a field of a struct is read; None where there is none."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (hint,) = (argument for argument in arguments if argument is not types.NoneType)
        origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return field.read
    if origin is tuple and arguments[0] is Any:
        return lambda items, place, unknown: tuple(field.read(list(items), place, unknown))
    if origin is tuple and _holds_json(arguments[0], field.type):
        inner = _parts_of(arguments[0], field.type)
        return lambda items, place, unknown: _each(inner, items, place, unknown)
    if origin is tuple and "." in field.type:
        return _counted
    if _holds_json(hint, field.type):
        return _parts_of(hint, field.type).read
    return None


def _counted(items: tuple[Any, ...], place: Place, unknown: Unknown) -> Any:
    """Return structs that declare everything as they are, if they are not too many."""
    unknown.count_items(len(items), place)
    return items


def _each(parts: _Parts, items: tuple[Any, ...], place: Place, unknown: Unknown) -> Any:
    unknown.count_items(len(items), place)
    read = tuple(parts.read(item, (*place, i), unknown) for i, item in enumerate(items))
    return items if all(a is b for a, b in zip(read, items, strict=True)) else read


def _holds_json(hint: Any, message: str) -> bool:
    return isinstance(hint, type) and issubclass(hint, Open) and "." in message


# MOVED
from mooring.api.go_types import ITEMS_MAX as ITEMS_MAX  # noqa: E402, F401
from mooring.api.go_types import go_words as go_words  # noqa: E402, F401
from mooring.api.go_types import message_named as message_named  # noqa: E402, F401
