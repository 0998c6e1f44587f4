"""Objects made from the declarations of their structs, for laws that hold for every kind.

`instances(struct)` is a hypothesis strategy of sparse objects: a few fields of each struct are
set. `trees(message)` is one of sparse JSON trees of a type of the schema, which also
knows what our structs keep as JSON. `full(struct)` is one object in which every field of every
struct is set, down to a depth.
"""

from __future__ import annotations

import types
from base64 import b64encode
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import NODEFAULT, Raw, Struct
from msgspec.structs import FieldInfo, fields

from moorage.api.quantity import Quantity
from moorage.api.schema import Field, api_type
from moorage.api.structs import EXTRA
from moorage.api.timestamp import MicroTimestamp, Timestamp

S = TypeVar("S", bound=Struct)

FIELDS_MAX = 4
ITEMS_MAX = 2
DEPTH_MAX = 6
FULL_DEPTH_MAX = 8

INSTANT = datetime(2026, 2, 3, 4, 5, 6, 789012, UTC)

# Field names that no struct declares.
UNKNOWN_NAMES = ("someday", "x-later", "ünknown", "")

texts = st.text(st.characters(codec="utf-8"), max_size=6)
quantities = st.sampled_from(["0", "1", "500m", "10Gi", "2500M", "1e3", "-3", "1.5", "100n"]).map(
    Quantity.parse
)
_instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
timestamps = _instants.map(lambda instant: Timestamp(instant).truncated())
micro_timestamps = _instants.map(MicroTimestamp)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts | st.just(1.5),
    lambda inner: (
        st.lists(inner, max_size=ITEMS_MAX) | st.dictionaries(texts, inner, max_size=ITEMS_MAX)
    ),
    max_leaves=4,
)
raw_values = st.sampled_from([b'{"a":1}', b"[]", b'"text"']).map(Raw)
unknown_fields = st.dictionaries(
    st.sampled_from(UNKNOWN_NAMES), json_values, min_size=1, max_size=ITEMS_MAX
)

_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    bool: st.booleans(),
    # Null is absence, for a field of any JSON value as for all others.
    Any: json_values.filter(lambda value: value is not None),
    Quantity: quantities,
    Raw: raw_values,
    Timestamp: timestamps,
    MicroTimestamp: micro_timestamps,
}


@cache
def instances(struct: type[S], depth: int = 0) -> st.SearchStrategy[S]:
    """Return a strategy of sparse objects of a struct."""
    hints = get_type_hints(struct, include_extras=True)
    by_name = {
        info.name: _field(info, hints[info.name], depth)
        for info in fields(struct)
        if info.name not in ("api_version", "kind")
    }
    if depth > DEPTH_MAX or not by_name:
        return st.just(struct())

    @st.composite
    def draw_instance(draw: st.DrawFn) -> S:
        chosen = draw(st.sets(st.sampled_from(sorted(by_name)), max_size=FIELDS_MAX))
        return struct(**{name: draw(by_name[name]) for name in sorted(chosen)})

    return draw_instance()


@cache
def trees(message: str, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of sparse JSON trees of a type of the schema."""
    by_name = {
        field.name: _deferred_values(field, depth)
        for field in api_type(message).json_fields()
        if field.number and field.name not in ("apiVersion", "kind")
    }
    if depth > DEPTH_MAX or not by_name:
        return st.just({})

    @st.composite
    def draw_tree(draw: st.DrawFn) -> dict[str, Any]:
        chosen = draw(st.sets(st.sampled_from(sorted(by_name)), max_size=FIELDS_MAX))
        return {name: draw(by_name[name]) for name in sorted(chosen)}

    return draw_tree()


def _deferred_values(field: Field, depth: int) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: _tree_values(field, depth))


def _tree_values(field: Field, depth: int) -> st.SearchStrategy[Any]:
    one = trees(field.type, depth + 1) if "." in field.type else _JSON_SCALARS[field.type]
    if field.is_list:
        return st.lists(one, max_size=ITEMS_MAX)
    return st.dictionaries(texts, one, max_size=ITEMS_MAX) if field.is_map else one


_JSON_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bytes": st.binary(max_size=4).map(lambda data: b64encode(data).decode()),
    "quantity": quantities.map(str),
    "time": timestamps.map(str),
    "microtime": micro_timestamps.map(str),
    "int-or-string": st.integers(-(2**31), 2**31 - 1) | texts,
    "json": json_values.filter(lambda value: value is not None),
    "strings": st.lists(texts, max_size=ITEMS_MAX),
}


def full(struct: type[S], depth: int = 0) -> S:
    """Return an object in which every field is set, and none to its default."""
    hints = get_type_hints(struct, include_extras=True)
    values = {
        info.name: _full_value(hints[info.name], depth)
        for info in fields(struct)
        if info.encode_name != EXTRA and info.name not in ("api_version", "kind")
    }
    return struct(**values)


def default_of(info: FieldInfo) -> Any:
    """Return what a field is when it is not given."""
    if info.default is not NODEFAULT:
        return info.default
    return cast("Any", info.default_factory)()


def _field(info: FieldInfo, annotation: Any, depth: int) -> st.SearchStrategy[Any]:
    if info.encode_name == EXTRA:
        return unknown_fields
    return _values(annotation, depth)


def _values(annotation: Any, depth: int) -> st.SearchStrategy[Any]:
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        (bounds,) = annotation.__metadata__
        if bounds.pattern is not None:
            return st.binary(max_size=6).map(lambda data: b64encode(data).decode())
        return st.integers(bounds.ge, bounds.le)
    if origin in (Union, types.UnionType):
        return st.none() | _values(_some(arguments), depth)
    if origin is tuple:
        return st.lists(_values(arguments[0], depth), max_size=ITEMS_MAX).map(tuple)
    if origin is dict:
        return st.dictionaries(texts, _values(arguments[1], depth), max_size=ITEMS_MAX)
    return st.deferred(lambda: instances(annotation, depth + 1))


def _full_value(annotation: Any, depth: int) -> Any:
    match annotation:
        case type() if annotation is str:
            return "text"
        case type() if annotation is bool:
            return True
        case type() if annotation is Quantity:
            return Quantity.parse("10Gi")
        case type() if annotation is Raw:
            return Raw(b'{"a":1}')
        case type() if annotation is Timestamp:
            return Timestamp(INSTANT).truncated()
        case type() if annotation is MicroTimestamp:
            return MicroTimestamp(INSTANT)
        case type() if issubclass(annotation, Struct):
            return annotation() if depth > FULL_DEPTH_MAX else full(annotation, depth + 1)
    if annotation is Any:
        return {"any": [1, None, {"thing": True}]}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return 7 if arguments[0] is int else "aGk="
    if origin in (Union, types.UnionType):
        return _full_value(_some(arguments), depth)
    if origin is tuple:
        return (_full_value(arguments[0], depth),)
    return {"key": _full_value(arguments[1], depth)}


def _some(arguments: tuple[Any, ...]) -> Any:
    (wanted,) = (a for a in arguments if a is not types.NoneType)
    return wanted
