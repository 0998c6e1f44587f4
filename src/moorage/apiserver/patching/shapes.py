"""The shapes of objects: what lists and maps mean when two objects are merged.

A shape says which forms a value may have: a scalar, a list, a map; most have one. Two readers
use it: server-side apply (which items of a list are the same, which values are owned whole) and
strategic merge patch (`strategy` and `merge_key`, which Kubernetes declares separately, and
which sometimes differ). Shapes derive from the schema (`moorage.api.schema`).
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from moorage.api import schema
from moorage.api.custom_resource import is_custom
from moorage.api.kinds import Kind
from moorage.api.schema import META
from moorage.validation.custom_resources.definition import definition_of
from moorage.validation.custom_resources.structural import MISSING, Structural


class Relation(Enum):
    """The list type: atomic, set or map."""

    ATOMIC = "atomic"  # the list is one value
    SET = "set"  # scalars, each at most once
    KEYED = "map"  # maps, identified by key fields


class ShapeField(NamedTuple):
    """A declared field of a struct."""

    shape: Shape
    strategy: tuple[str, ...] = ()  # of strategic merge patch: merge, replace, retainKeys
    merge_key: str = ""


class ListForm(NamedTuple):
    """A list."""

    element: Shape
    relation: Relation
    keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = {}  # noqa: RUF012  # never written to


class MapForm(NamedTuple):
    """A struct (its fields are declared), a map (its values have one shape), or both."""

    fields: dict[str, ShapeField]
    element: Shape | None
    is_atomic: bool


class Shape:
    """The forms that a value may have. Not changed once it is built."""

    __slots__ = ("_is_plain", "kind", "list", "map", "name", "scalar")

    def __init__(
        self,
        name: str,
        *,
        scalar: str = "",
        list_form: ListForm | None = None,
        map_form: MapForm | None = None,
        is_plain: bool | None = None,
        kind: Kind | None = None,
    ) -> None:
        self.name = name  # Go's name of the struct, or its name for the kind of type
        self.scalar = scalar  # string, numeric, boolean, untyped, or none
        self.list = list_form
        self.map = map_form
        self._is_plain = is_plain  # None: not worked out yet
        self.kind = kind  # of a whole custom resource

    @property
    def is_plain(self) -> bool:
        """Whether all below has one type each, so that values are the same if they are equal.

        In JSON of any shape they need not be: Python takes true for 1.
        """
        if self._is_plain is None:
            self._is_plain = self._has_plain_parts()
        return self._is_plain

    def _has_plain_parts(self) -> bool:
        """Look at all below; nothing is noted before it is certain, as other threads read it."""
        seen: set[int] = set()
        waiting = [self]
        while waiting:
            here = waiting.pop()
            if here._is_plain is False:
                return False
            if here._is_plain is None and id(here) not in seen:
                seen.add(id(here))
                waiting += here._below()
        return True

    def _below(self) -> list[Shape]:
        below = [self.list.element] if self.list is not None else []
        if self.map is not None:
            below.extend(field.shape for field in self.map.fields.values())
            below.extend([self.map.element] if self.map.element is not None else [])
        return below

    @property
    def is_struct(self) -> bool:
        """Whether fields are declared, or could be."""
        return self.map is not None and self.name != "map"


STRING = Shape("string", scalar="string")
NUMBER = Shape("int", scalar="numeric")
BOOLEAN = Shape("bool", scalar="boolean")
ANY = Shape("struct", scalar="untyped")  # quantities, times, numbers or percentages

# Any JSON, as one value.
JSON = Shape("RawExtension", scalar="untyped", is_plain=False)
JSON.list = ListForm(JSON, Relation.ATOMIC)
JSON.map = MapForm({}, JSON, is_atomic=True)

# Any JSON whose maps are merged; lists are one value.
DEDUCED = Shape("RawExtension", scalar="untyped", is_plain=False)
DEDUCED.list = ListForm(JSON, Relation.ATOMIC)
DEDUCED.map = MapForm({}, DEDUCED, is_atomic=False)

_SCALARS = {
    "string": STRING,
    "bytes": STRING,
    "bool": BOOLEAN,
    "int32": NUMBER,
    "int64": NUMBER,
    "quantity": ANY,
    "time": ANY,
    "microtime": ANY,
    "int-or-string": ANY,
    "json": JSON,
    "json-schema": DEDUCED,
    "strings": Shape("slice", list_form=ListForm(STRING, Relation.ATOMIC)),
}

_shapes: dict[str, Shape] = {}  # by the full name of the type; at most one for each in the schema


def shape_of_kind(kind: Kind) -> Shape | None:
    """Return the shape of a kind; None if nobody manages its fields."""
    if is_custom(kind.struct):
        return custom_shape(kind)
    return find_shape(kind.api_version, kind.name)


@lru_cache(maxsize=256)
def custom_shape(kind: Kind) -> Shape:
    """Return the shape of a custom resource, by its schema."""
    schema = definition_of(kind).version(kind.api_version).structural
    shape = _schema_shape(schema)
    form = shape.map or MapForm({}, DEDUCED, is_atomic=False)
    head = {"apiVersion": STRING, "kind": STRING, "metadata": shape_of(f"{META}.ObjectMeta")}
    fields = {**form.fields, **{name: ShapeField(each) for name, each in head.items()}}
    return Shape(kind.name, map_form=form._replace(fields=fields), is_plain=False, kind=kind)


def shape_in_version(kind: Kind, api_version: str) -> Shape | None:
    """Return the shape of a kind in another version, None if it has no such version."""
    if not is_custom(kind.struct):
        return find_shape(api_version, kind.name)
    kinds = definition_of(kind).kinds
    other = next((each for each in kinds if each.api_version == api_version), None)
    return None if other is None else custom_shape(other)


def _schema_shape(schema: Structural | None) -> Shape:
    """Return the shape of values that a schema describes."""
    if schema is None:
        return DEDUCED
    if schema.is_int_or_string:
        return ANY
    match schema.type:
        case "array":
            relation = Relation(schema.list_type or "atomic")
            items = None if schema.items is None else schema.items.properties
            defaults = {
                key: items[key].default
                for key in schema.list_map_keys
                if items is not None and key in items and items[key].default is not MISSING
            }
            element = _schema_shape(schema.items)
            return Shape(
                "slice", list_form=ListForm(element, relation, schema.list_map_keys, defaults)
            )
        case "object":
            return _object_shape(schema)
    return _SCALAR_TYPES.get(schema.type, DEDUCED)


_SCALAR_TYPES = {"string": STRING, "boolean": BOOLEAN, "integer": NUMBER, "number": NUMBER}


def _object_shape(schema: Structural) -> Shape:
    fields = {name: ShapeField(_schema_shape(each)) for name, each in schema.properties.items()}
    if schema.is_embedded:
        head = {"apiVersion": STRING, "kind": STRING, "metadata": shape_of(f"{META}.ObjectMeta")}
        fields.update((name, ShapeField(each)) for name, each in head.items())
    element: Shape | None = None
    if schema.additional_schema is not None:
        element = _schema_shape(schema.additional_schema)
    elif schema.preserves_unknown or schema.additional or not fields:
        element = DEDUCED
    is_atomic = schema.map_type == "atomic"
    return Shape("map", map_form=MapForm(fields, element, is_atomic=is_atomic), is_plain=False)


def find_shape(api_version: str, kind: str) -> Shape | None:
    """Return the shape of a kind; None if this version lacks it or nobody manages its fields."""
    name = schema.find_kind(api_version, kind)
    return _managed_shape(name) if name is not None else None


@lru_cache(maxsize=1024)
def _managed_shape(name: str) -> Shape | None:
    return shape_of(name) if schema.api_type(name).is_managed else None


def shape_of(name: str) -> Shape:
    """Return the shape of a type by its full name in the schema.

    Others find a shape once it is finished with all that it contains: several threads may ask.
    """
    found = _shapes.get(name)
    if found is None:
        made: dict[str, Shape] = {}
        _made(name, made)
        for each, shape in made.items():
            _shapes.setdefault(each, shape)
        found = _shapes[name]
    return found


def _made(name: str, made: dict[str, Shape]) -> Shape:
    """Return a new shape; `made` has those that are not finished yet."""
    declared = schema.api_type(name)
    shape = made[name] = Shape(declared.short_name)  # a struct may contain itself
    fields = {field.name: _field(field, made) for field in declared.json_fields()}
    if declared.is_kind:
        fields.update(apiVersion=ShapeField(STRING), kind=ShapeField(STRING))
    element = None if fields else DEDUCED  # Go's empty structs accept any field
    shape.map = MapForm(fields, element, is_atomic=declared.is_atomic)
    return shape


def _field(field: schema.Field, made: dict[str, Shape]) -> ShapeField:
    markers, name = field.markers, field.type
    shape = _SCALARS.get(name) or _shapes.get(name) or made.get(name) or _made(name, made)
    if field.is_list:
        shape = Shape("slice", list_form=_list_form(shape, field))
    elif field.is_map:
        form = MapForm({}, shape, is_atomic=markers.map_type == "atomic")
        shape = Shape("map", map_form=form)
    elif markers.map_type and shape.map is not None:  # says otherwise than its type
        form = shape.map
        granular = MapForm(form.fields, form.element, is_atomic=markers.map_type == "atomic")
        shape = Shape(shape.name, map_form=granular)
    return ShapeField(shape, markers.patch_strategy, markers.patch_merge_key)


def _list_form(element: Shape, field: schema.Field) -> ListForm:
    markers = field.markers
    relation = Relation(markers.list_type)
    if relation is not Relation.KEYED:
        return ListForm(element, relation)
    fields = {inner.name: inner for inner in schema.api_type(field.type).json_fields()}
    defaults = {key: _key_default(fields[key]) for key in markers.list_map_keys}
    known = {key: default for key, default in defaults.items() if default is not None}
    return ListForm(element, relation, markers.list_map_keys, known)


def _key_default(field: schema.Field) -> Any:
    """Return the default of a missing key of an item; None if it is then simply missing."""
    if field.markers.default is not None:
        return field.markers.default
    if field.is_shown:
        return "" if field.type == "string" else 0
    return None
