"""From a parsed document to an object: its kind, its value, and remarks about its text.

    tree ─ kind ─ seed forms ─ decode ─ JSON parts ─ ReadObject

Everything that does not stop the reading is a Remark; what does is a DecodeError.

JSON parts: our structs of kinds that others own declare the fields that we use; a volume, a probe
or a security context is plain JSON to them. The schema has the type of every field, so `read_parts`
can do to those parts what decoding to a Go type and encoding again does (see `go_types`).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields, replace

from moorage.api import go_types, schema
from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import Decoded, decode_json, decode_tree, dotted, fitting, parse_json
from moorage.api.documents import Document
from moorage.api.errors import DecodeError
from moorage.api.field_path import Place
from moorage.api.gates import Gates
from moorage.api.go_types import GoField, Read, Unknown
from moorage.api.kep_forms import rewrite
from moorage.api.kinds import Kind
from moorage.api.resource.v1 import DeviceTaintRule
from moorage.api.structs import EXTRA, Open

UNKNOWN_FIELDS_MAX = 100


class Remark(NamedTuple):
    """A remark for the author of an object about its text."""

    place: Place
    message: str
    is_strict: bool = False  # strict reading refuses it


class ReadObject(NamedTuple):
    """An object in the version it was written in."""

    kind: Kind
    value: Any
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Remark, ...] = ()  # the object cannot be what its author intended


def read_tree(
    tree: Any, *, gates: Gates, extensions: bool = True, is_plain: bool = False
) -> ReadObject:
    """Return the object that a parsed document describes.

    `is_plain` means that the document has few values, and printable ASCII characters only.
    """
    kind = kind_of(tree, extensions=extensions)
    if not extensions:
        return _remarked(_decode_shipped(tree, kind), kind)
    value: Any = fitting(tree, kind.struct)
    rewritten = rewrite(tree, gates=gates, fits=value is not None)
    unknown: tuple[Place, ...] = ()
    is_exact = is_plain and value is not None and rewritten.tree is tree
    if value is None or rewritten.tree is not tree:
        value, unknown = decode_tree(rewritten.tree, kind.struct)
    value, more = read_parts(value, kind.api_version, kind.name, is_exact=is_exact)
    unknown = (*unknown, *more)
    remarks = [Remark(notice.segments, str(notice)) for notice in rewritten.warnings]
    noticed = {notice.segments for notice in rewritten.warnings}
    remarks += [unknown_field(place) for place in unknown if place not in noticed]
    problems = [Remark(notice.segments, str(notice)) for notice in rewritten.errors]
    return ReadObject(kind, value, tuple(remarks), tuple(problems))


def read_document(document: Document, *, gates: Gates, extensions: bool = True) -> ReadObject:
    """Return the object that a document describes, with remarks on keys that come twice."""
    reading: ReadObject = document.reading or read_tree(
        document.tree, gates=gates, extensions=extensions
    )
    if not document.duplicates:
        return reading
    twice = (duplicate_field(found.segments) for found in document.duplicates)
    return reading._replace(remarks=(*twice, *reading.remarks))


def read_json(data: bytes, kind: Kind, *, extensions: bool) -> ReadObject:
    """Return the object of a known kind that JSON text describes, in shipped forms only."""
    if extensions or kind.struct is not DeviceTaintRule:
        decoded: Decoded[Any] = decode_json(data, kind.struct)
    else:
        decoded = _decode_shipped(parse_json(data), kind)
    if (decoded.value.api_version, decoded.value.kind) != (kind.api_version, kind.name):
        _check_type(data, kind)
    return _remarked(decoded, kind)


def duplicate_field(place: Place) -> Remark:
    """Return the remark on a field that is written several times."""
    return Remark(place, f'duplicate field "{dotted(place)}"', is_strict=True)


def unknown_field(place: Place) -> Remark:
    """Return the remark on a field that the kind does not have."""
    return Remark(place, f'unknown field "{dotted(place)}"', is_strict=True)


def kind_of(tree: Any, *, extensions: bool = True) -> Kind:
    """Return the kind that a document says it is."""
    if not isinstance(tree, dict):
        raise DecodeError("not a Kubernetes object: expected a map with apiVersion and kind")
    for name in ("apiVersion", "kind"):
        value = tree.get(name)
        if value is None or value == "":
            raise DecodeError(f"not a Kubernetes object: {name} is not set")
        if not isinstance(value, str):
            raise DecodeError(f"not a Kubernetes object: {name} is not a string", (name,))
    return CATALOGUE.find(tree["apiVersion"], tree["kind"], extensions=extensions)


def _check_type(data: bytes, kind: Kind) -> None:
    """Check that the text has no other kind or version than the requested one."""
    tree = parse_json(data) or {}  # The object has defaults where the text says nothing.
    api_version, name = tree.get("apiVersion") or "", tree.get("kind") or ""
    unsaid = ("", "/", f"{kind.group}/")  # As Go reads them, none of these names a version.
    if api_version in (kind.api_version, *unsaid) and name in (kind.name, ""):
        return
    raise DecodeError(
        f"the API version or kind in the data ({api_version}, {name}) "
        f"does not match the expected ({kind.api_version}, {kind.name})"
    )


def _remarked(decoded: Decoded[Any], kind: Kind) -> ReadObject:
    """Return the object with remarks on unknown fields, as many as Kubernetes names."""
    value, more = read_parts(decoded.value, kind.api_version, kind.name)
    remarks = map(unknown_field, (*decoded.unknown, *more)[:UNKNOWN_FIELDS_MAX])
    return ReadObject(kind, value, tuple(remarks))


def _decode_shipped(tree: Any, kind: Kind) -> Decoded[Any]:
    """Return the object without what Kubernetes does not have: two fields of a taint rule."""
    match tree:
        case {"spec": {"deviceSelector": dict(selector)} as spec} if kind.struct is DeviceTaintRule:
            dropped = [name for name in ("deviceClassName", "selectors") if name in selector]
            kept = {name: value for name, value in selector.items() if name not in dropped}
            tree = {**tree, "spec": {**spec, "deviceSelector": kept}}
        case _:
            dropped = []
    value, unknown = decode_tree(tree, kind.struct)
    places = (("spec", "deviceSelector", name) for name in dropped)
    return Decoded(value, (*unknown, *places))


# --- parts that structs keep as JSON -----------------------------------------------------------


S = TypeVar("S", bound=Struct)


def read_parts(
    value: S, api_version: str, kind: str, *, is_exact: bool = False
) -> tuple[S, Unknown]:
    """Return an object with its JSON as Go writes it, and the fields that its kind does not have.

    Raises DecodeError for a value of a wrong type. Kinds that the table does not have are left
    unchanged, and so are kinds whose structs declare everything. `is_exact` means that no struct
    in the object holds fields that it does not declare, and that its items are few: then only the
    JSON itself is looked at.
    """
    unknown = Unknown()
    message = schema.find_kind(api_version, kind)
    if message is None or not isinstance(value, Open):
        return value, unknown
    return _parts_of(type(value), message, is_exact).read(value, (), unknown), unknown


def reports_unknown(struct: type[Struct], api_version: str, kind: str) -> bool:
    """Return whether unknown fields of a kind are reported and dropped."""
    return not issubclass(struct, Open) or schema.find_kind(api_version, kind) is not None


class _Parts:
    """The fields of a struct that are JSON, or hold structs in which some are."""

    def __init__(self, struct: type[Struct], message: str, is_exact: bool) -> None:
        self._struct, self._message, self._is_exact = struct, message, is_exact

    @cached_property
    def is_empty(self) -> bool:
        """Whether there is nothing to read: no JSON, and no fields beyond the declared ones."""
        return self._is_exact and not self._readers

    def read(self, value: S, place: Place, unknown: Unknown) -> S:
        given = self._given(value)
        extra = value.extra if isinstance(value, Open) else None
        if given == self._absent and not extra:  # as most are
            return value
        changes: dict[str, Any] = {}
        for before, (name, json_name, read) in zip(given, self._readers, strict=True):
            if not before and (before is None or before == ()):
                continue
            after = read(before, (*place, json_name), unknown)
            if after is not before:
                changes[name] = after
        if extra:
            changes["extra"] = self._read_extra(extra, place, unknown)
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
    def _given(self) -> Callable[[Any], tuple[Any, ...]]:
        """The function that returns what an object has in all fields with readers."""
        names = [name for name, _, _ in self._readers]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: tuple(getattr(value, name) for name in names)

    @cached_property
    def _absent(self) -> tuple[Any, ...]:
        """What an object without these fields has in them, where there is nothing to read then."""
        defaults = {info.name: info.default for info in fields(self._struct)}
        found = (defaults[name] for name, _, _ in self._readers)
        return tuple(each if each is None or each == () else NODEFAULT for each in found)

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
            read = _part_reader(hints[info.name], field, self._is_exact)
            if read is not None:
                found.append((info.name, info.encode_name, read))
        return tuple(found)


@lru_cache(maxsize=1024)
def _parts_of(struct: type[Struct], message: str, is_exact: bool) -> _Parts:
    return _Parts(struct, message, is_exact)


def _part_reader(hint: Any, field: GoField, is_exact: bool) -> Read | None:
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
        inner = _parts_of(arguments[0], field.type, is_exact)
        if inner.is_empty:
            return None
        return lambda items, place, unknown: _each(inner, items, place, unknown)
    if origin is tuple and "." in field.type and not is_exact:
        return _counted
    if _holds_json(hint, field.type):
        inner = _parts_of(hint, field.type, is_exact)
        return None if inner.is_empty else inner.read
    return None


def _counted(items: tuple[Any, ...], place: Place, unknown: Unknown) -> Any:
    """Return structs that declare everything unchanged, if they are not too many."""
    unknown.count_items(len(items), place)
    return items


def _each(parts: _Parts, items: tuple[Any, ...], place: Place, unknown: Unknown) -> Any:
    unknown.count_items(len(items), place)
    read = tuple(parts.read(item, (*place, i), unknown) for i, item in enumerate(items))
    return items if all(a is b for a, b in zip(read, items, strict=True)) else read


def _holds_json(hint: Any, message: str) -> bool:
    return isinstance(hint, type) and issubclass(hint, Open) and "." in message
