"""From a parsed document to an object: which kind it is, what it says, what is odd about it.

    tree ─ kind ─ seed forms ─ decode ─ extensions ─ Reading

Everything that does not stop the reading is a Remark; what does is a DecodeError.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mooring.api.catalogue import CATALOGUE
from mooring.api.codec import Decoded, decode_json, decode_tree, dotted, fitting, parse_json
from mooring.api.documents import Document
from mooring.api.errors import DecodeError
from mooring.api.field_path import Place
from mooring.api.gates import Gates
from mooring.api.kinds import Kind
from mooring.api.resource.v1 import DeviceTaintRule
from mooring.api.seedforms import rewrite
from mooring.api.typed_json import read_parts

UNKNOWN_FIELDS_MAX = 100


class Remark(NamedTuple):
    """Something about the text of an object that its author should know."""

    place: Place
    message: str
    is_strict: bool = False  # strict reading refuses it


class Reading(NamedTuple):
    """An object in the version it was written in."""

    kind: Kind
    value: Any
    remarks: tuple[Remark, ...] = ()
    problems: tuple[Remark, ...] = ()  # the object cannot be what its author meant


def read_tree(tree: Any, *, gates: Gates, extensions: bool = True) -> Reading:
    """Return the object that a parsed document describes."""
    kind = kind_of(tree, extensions=extensions)
    if not extensions:
        return _remarked(_decode_shipped(tree, kind), kind)
    value: Any = fitting(tree, kind.struct)
    rewritten = rewrite(tree, gates=gates, fits=value is not None)
    unknown: tuple[Place, ...] = ()
    if value is None or rewritten.tree is not tree:
        value, unknown = decode_tree(rewritten.tree, kind.struct)
    value, more = read_parts(value, kind.api_version, kind.name)
    unknown = (*unknown, *more)
    remarks = [Remark(notice.segments, str(notice)) for notice in rewritten.warnings]
    told = {notice.segments for notice in rewritten.warnings}
    remarks += [unknown_field(place) for place in unknown if place not in told]
    problems = [Remark(notice.segments, str(notice)) for notice in rewritten.errors]
    return Reading(kind, value, tuple(remarks), tuple(problems))


def read_document(document: Document, *, gates: Gates, extensions: bool = True) -> Reading:
    """Return the object that a document describes, with remarks on keys that come twice."""
    reading = read_tree(document.tree, gates=gates, extensions=extensions)
    if not document.duplicates:
        return reading
    twice = (
        Remark(found.segments, f'duplicate field "{dotted(found.segments)}"', is_strict=True)
        for found in document.duplicates
    )
    return reading._replace(remarks=(*twice, *reading.remarks))


def read_json(data: bytes, kind: Kind, *, extensions: bool) -> Reading:
    """Return the object of a known kind that JSON text describes, in shipped forms only."""
    if extensions or kind.struct is not DeviceTaintRule:
        decoded: Decoded[Any] = decode_json(data, kind.struct)
    else:
        decoded = _decode_shipped(parse_json(data), kind)
    if (decoded.value.api_version, decoded.value.kind) != (kind.api_version, kind.name):
        _check_type(data, kind)
    return _remarked(decoded, kind)


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
    """Check that the text does not say another kind or version than the one asked for."""
    tree = parse_json(data) or {}  # The object has defaults where the text says nothing.
    api_version, name = tree.get("apiVersion") or "", tree.get("kind") or ""
    unsaid = ("", "/", f"{kind.group}/")  # As Go reads them, none of these names a version.
    if api_version in (kind.api_version, *unsaid) and name in (kind.name, ""):
        return
    raise DecodeError(
        f"the API version or kind in the data ({api_version}, {name}) "
        f"does not match the expected ({kind.api_version}, {kind.name})"
    )


def _remarked(decoded: Decoded[Any], kind: Kind) -> Reading:
    """Return the object with remarks on unknown fields, of which Kubernetes names so many."""
    value, more = read_parts(decoded.value, kind.api_version, kind.name)
    remarks = map(unknown_field, (*decoded.unknown, *more)[:UNKNOWN_FIELDS_MAX])
    return Reading(kind, value, tuple(remarks))


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
