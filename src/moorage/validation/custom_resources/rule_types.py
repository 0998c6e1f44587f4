"""The types of a schema in expressions, with size bounds, and values of these types.

A property is a field of a struct if its escaped name is an identifier and it has a type;
expressions cannot see other properties. Sizes bound the cost of an expression before its
evaluation: they come from maxItems and the like, or from how many values fit into a request.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from moorage.api.json_schema import Schema
from moorage.api.raw_json import marshal
from moorage.cel.lang import types as t
from moorage.cel.lang.costs import Range
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import Type
from moorage.cel.lang.unordered import UnorderedList
from moorage.validation.custom_resources.structural import Structural, structural

REQUEST_BYTES_MAX: Final = 3 * 1024 * 1024
DURATION_MAX, DATETIME_MAX, DATE_SIZE = 32, 32, 12
DURATION_MIN, DATETIME_MIN, STRING_MIN, BOOL_MIN, NUMBER_MIN = 3, 21, 2, 4, 1

_RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return"),
        *("var", "void", "while"),
    )
)
_NAME: Final = re.compile("[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_ESCAPED: Final = re.compile("__|[-./]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_STRING: Final[Schema] = {"type": "string"}
_RESOURCE: Final[dict[str, Schema]] = {
    "apiVersion": _STRING,
    "kind": _STRING,
    "metadata": {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}},
}


def escaped(name: str) -> str | None:
    """Return the name of a property as an identifier, or None if that is impossible."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


def _plain_keyword(name: str) -> str:
    word = name[2:-2]
    return word if name == f"__{word}__" and word in _RESERVED else name


class DeclType(NamedTuple):
    """A type, with bounds of its values.

    size_max     elements, entries or bytes
    encoded_min  bytes of the smallest value as JSON
    """

    type: Type
    size_max: int = 0
    encoded_min: int = 2
    fields: dict[str, DeclType] | None = None
    elements: DeclType | None = None
    is_map: bool = False

    def structs(self) -> Iterator[tuple[str, dict[str, Type]]]:
        """Yield the structs in this type with their fields."""
        if self.fields is not None:
            fields = {name: each.type for name, each in self.fields.items()}
            # A keyword may also be written as it is, behind a dot.
            plain = {_plain_keyword(name): each for name, each in fields.items()}
            yield self.type.name, {**plain, **fields}
            for each in self.fields.values():
                yield from each.structs()
        if self.elements is not None:
            yield from self.elements.structs()

    def inside(self, step: str) -> DeclType | None:
        """Return the type one step of a path further."""
        if step in ("@items", "@values"):
            return self.elements
        if step == "@keys":
            return _KEYS if self.is_map else None
        return None if self.fields is None else self.fields.get(step)


_KEYS: Final = DeclType(t.STRING, 0, STRING_MIN)


class DeclaredSizes(NamedTuple):
    """Size hints from the type of `self`, which is the type of `oldSelf`, too."""

    root: DeclType

    def size(self, path: tuple[str, ...], _: Type) -> Range | None:
        """Return the size at the end of a path, or None if unknown."""
        if not path:
            return None
        here: DeclType | None = self.root
        for step in path[1:]:
            here = None if here is None else here.inside(step)
        return None if here is None else Range(0, here.size_max)


def resource_schema(schema: Structural) -> Structural:
    """Return the schema of a resource with its apiVersion, kind and the names of its metadata."""
    added = {name: structural(tree) for name, tree in _RESOURCE.items()}
    return schema._replace(properties={**schema.properties, **added})


def decl_type(schema: Structural, name: str, *, is_resource: bool) -> DeclType | None:
    """Return the type of a schema, or None if expressions cannot see its values."""
    tree = schema.tree
    if schema.is_int_or_string:
        size = _from_length(tree) if "maxLength" in tree else REQUEST_BYTES_MAX - 2
        return DeclType(t.DYN, size, 1)
    if is_resource:
        schema = resource_schema(schema)
    match schema.type:
        case "array":
            return _list_type(schema, name)
        case "object":
            return _object_type(schema, name)
        case "string":
            return _string_type(tree)
        case "boolean":
            return DeclType(t.BOOL, 0, BOOL_MIN)
        case "number":
            return DeclType(t.DOUBLE, 0, NUMBER_MIN)
        case "integer":
            return DeclType(t.INT, 0, NUMBER_MIN)
    return None


def _list_type(schema: Structural, name: str) -> DeclType | None:
    items = schema.items
    elements = (
        None if items is None else decl_type(items, f"{name}.@idx", is_resource=items.is_embedded)
    )
    if elements is None:
        return None
    most = schema.tree.get("maxItems")
    if most is None:
        most = (REQUEST_BYTES_MAX - 2) // (elements.encoded_min + 1)
    return DeclType(t.list_of(elements.type), max(most, 0), elements=elements)


def _object_type(schema: Structural, name: str) -> DeclType | None:
    additional = schema.additional_schema
    if additional is not None:
        elements = decl_type(additional, f"{name}.@elem", is_resource=additional.is_embedded)
        if elements is None:
            return None
        most = schema.tree.get("maxProperties")
        if most is None:
            most = (REQUEST_BYTES_MAX - 2) // (elements.encoded_min + 6)
        kind = t.map_of(t.STRING, elements.type)
        return DeclType(kind, max(most, 0), elements=elements, is_map=True)
    fields: dict[str, DeclType] = {}
    least = 2
    required = schema.tree.get("required", ())
    for key, each in schema.properties.items():
        identifier = escaped(key)
        below = decl_type(each, f"{name}.{identifier or key}", is_resource=each.is_embedded)
        if below is None:
            continue
        if identifier is not None:
            fields[identifier] = below
        if key in required and "default" not in each.tree:
            least += len(key.encode()) + below.encoded_min + 4
    return DeclType(t.struct(name), 0, least, fields)


def _string_type(tree: Schema) -> DeclType:
    match tree.get("format"):
        case "byte":
            most = max(tree["maxLength"], 0) if "maxLength" in tree else REQUEST_BYTES_MAX - 2
            return DeclType(t.BYTES, most, STRING_MIN)
        case "duration":
            return DeclType(t.DURATION, DURATION_MAX, DURATION_MIN)
        case "date":
            return DeclType(t.TIMESTAMP, DATE_SIZE, DATE_SIZE)
        case "date-time":
            return DeclType(t.TIMESTAMP, DATETIME_MAX, DATETIME_MIN)
    if "maxLength" in tree:
        return DeclType(t.STRING, _from_length(tree), STRING_MIN)
    texts = [len(each.encode()) for each in tree.get("enum", ()) if isinstance(each, str)]
    most = max(texts, default=0) if tree.get("enum") else REQUEST_BYTES_MAX - 2
    return DeclType(t.STRING, most, STRING_MIN)


def _from_length(tree: Schema) -> int:
    length: int = tree["maxLength"]
    return max(length, 0) * 4  # A character has up to four bytes.


# --- values ---------------------------------------------------------------------------------------


class InvalidData(Exception):  # noqa: N818  # as Kubernetes calls it
    """A value that does not fit its schema; an expression that reads it fails."""


def cel_value(value: Any, schema: Structural, *, is_resource: bool = False) -> Any:
    """Return a value as expressions see it, or raise InvalidData."""
    if value is None:
        if schema.nullable:
            return None
        raise InvalidData("invalid data, got null for schema with nullable=false")
    if schema.is_int_or_string:
        if isinstance(value, str) or type(value) is int:
            return value
        raise InvalidData(
            "invalid data, expected XIntOrString value to be either a string or integer"
        )
    if is_resource or schema.is_embedded:
        schema = resource_schema(schema)
    match schema.type:
        case "object":
            return _object_value(value, schema)
        case "array":
            return _list_value(value, schema)
        case "string":
            return _string_value(value, schema.tree.get("format", ""))
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case "integer" if type(value) is int:
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "" if schema.preserves_unknown:
            return _Preserved(marshal(value))
    raise InvalidData(f"invalid data, expected {schema.type or 'a known type'}")


def _object_value(value: Any, schema: Structural) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidData("invalid data, expected a map for the provided schema with type=object")
    additional = schema.additional_schema
    if not schema.properties and additional is not None:
        return {key: cel_value(member, additional) for key, member in value.items()}
    found: dict[str, Any] = {}
    for key, member in value.items():
        declared, name = schema.properties.get(key), escaped(key)
        if declared is None or name is None or member is None:
            continue  # A null counts as absent.
        try:
            found[name] = cel_value(member, declared)
        except InvalidData:
            continue  # Old objects may not fit the current schema.
        if key in _RESERVED:
            found[key] = found[name]
    return found


def _list_value(value: Any, schema: Structural) -> list[Any]:
    if not isinstance(value, list) or schema.items is None:
        raise InvalidData("invalid data, expected an array for the provided schema with type=array")
    items = schema.items
    elements = [cel_value(item, items) for item in value]
    if schema.list_type == "set":
        return UnorderedList(elements, _identity)
    if schema.list_type == "map":
        names = tuple(escaped(key) or key for key in schema.list_map_keys)
        return UnorderedList(
            elements,
            lambda item: (
                tuple(_identity(item.get(name)) for name in names)
                if isinstance(item, dict)
                else _identity(item)
            ),
        )
    return elements


def _identity(value: Any) -> Any:
    return (type(value).__name__, repr(value))


def _string_value(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        raise InvalidData("invalid data, expected string")
    try:
        match name:
            case "duration":
                return Duration.parse(value)
            case "date":
                return Timestamp.parse(f"{value}T00:00:00Z")
            case "date-time":
                return Timestamp.parse(value)
            case "byte":
                return base64.urlsafe_b64decode(value)
    except (EvalError, ValueError) as error:
        raise InvalidData(f"Invalid {name} formatted string {value}: {error}") from None
    return value


class _Preserved:
    """A value of unknown shape, which expressions can only compare."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text

    def cel_equal(self, other: Any) -> bool:
        """Return whether another value is the same JSON."""
        return isinstance(other, _Preserved) and self._text == other._text
