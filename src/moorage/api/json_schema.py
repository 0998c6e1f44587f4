"""The schemas of custom resources, read as Kubernetes reads them into its type JSONSchemaProps.

A schema stays a tree. `read_schema` checks the type of every field, drops what is null or empty,
and names fields that the type does not have. Where Kubernetes reads a union (`items`,
`additionalProperties`, `dependencies`) it drops unknown fields without a word, and so do we.

How large a schema may be is bounded here, before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api.documents.scalars import NumberText
from moorage.api.errors import DecodeError
from moorage.api.field_path import MapKey, Place, render

DEPTH_MAX = 64  # of schemas in schemas
NODES_MAX = 20_000  # schemas in a schema

Schema = dict[str, Any]


class SchemaReader:
    """Reads one schema."""

    def __init__(self, unknown: list[Place]) -> None:
        self._unknown: list[Place] | None = unknown
        self._nodes_left = NODES_MAX

    def read(self, tree: Any, place: Place, depth: int = 0) -> Schema:
        """Return a schema without what says nothing, or raise DecodeError."""
        if type(tree) is not dict:
            raise _mismatch(tree, place, "v1.JSONSchemaProps")
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise DecodeError(f"{render(place)}: the schema has more than {NODES_MAX:,} parts")
        if depth > DEPTH_MAX:
            raise DecodeError(f"{render(place)}: the schema is nested more than {DEPTH_MAX} deep")
        found: Schema = {}
        for name, value in tree.items():
            read = _FIELDS.get(name)
            if read is None:
                if self._unknown is not None:
                    self._unknown.append((*place, name))
            elif value is not None:
                after = read(self, value, (*place, name), depth)
                if after is not None:
                    found[name] = after
        return found

    def quietly(self, tree: Any, place: Place, depth: int) -> Schema:
        """Return a schema in a union, in which unknown fields are dropped silently."""
        unknown, self._unknown = self._unknown, None
        try:
            return self.read(tree, place, depth)
        finally:
            self._unknown = unknown


Read = Callable[[SchemaReader, Any, Place, int], Any]


def read_schema(tree: Any, place: Place, unknown: list[Place]) -> Schema:
    """Return a schema as Kubernetes writes it; `unknown` gets the places of unknown fields."""
    return SchemaReader(unknown).read(tree, place)


def plain_json(value: Any) -> Any:
    """Return JSON with numbers as Go's float64 has them: 1.0 is 1."""
    match value:
        case NumberText():
            return plain_number(float(value))
        case float():
            return plain_number(value)
        case int() if not isinstance(value, bool) and not -(2**63) <= value < 2**63:
            return plain_number(float(value))
        case dict():
            return {name: plain_json(member) for name, member in value.items()}
        case list():
            return [plain_json(item) for item in value]
    return value


def plain_number(value: float) -> float | int:
    """Return a float, or the integer that Go writes it as."""
    if value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


# --- fields ---------------------------------------------------------------------------------------


def _string(_: SchemaReader, value: Any, place: Place, __: int) -> str | None:
    if type(value) is not str:
        raise _mismatch(value, place, "string")
    return value or None


def _pointer_to_string(_: SchemaReader, value: Any, place: Place, __: int) -> str:
    if type(value) is not str:
        raise _mismatch(value, place, "string")
    return value


def _bool(_: SchemaReader, value: Any, place: Place, __: int) -> bool | None:
    if type(value) is not bool:
        raise _mismatch(value, place, "bool")
    return value or None


def _pointer_to_bool(_: SchemaReader, value: Any, place: Place, __: int) -> bool:
    if type(value) is not bool:
        raise _mismatch(value, place, "bool")
    return value


def _integer(_: SchemaReader, value: Any, place: Place, __: int) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise _mismatch(value, place, "int64")
    return value


def _number(_: SchemaReader, value: Any, place: Place, __: int) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float | NumberText):
        raise _mismatch(value, place, "float64")
    number: float | int = plain_json(value)
    return number


def _strings(_: SchemaReader, value: Any, place: Place, __: int) -> list[str] | None:
    if type(value) is not list:
        raise _mismatch(value, place, "[]string")
    for item in value:
        if type(item) is not str:
            raise _mismatch(item, place, "string")
    return value or None


def _json(_: SchemaReader, value: Any, __: Place, ___: int) -> Any:
    return plain_json(value)


def _values(_: SchemaReader, value: Any, place: Place, __: int) -> list[Any] | None:
    if type(value) is not list:
        raise _mismatch(value, place, "[]v1.JSON")
    return plain_json(value) or None


def _schema(reader: SchemaReader, value: Any, place: Place, depth: int) -> Schema:
    return reader.read(value, place, depth + 1)


def _schemas(reader: SchemaReader, value: Any, place: Place, depth: int) -> list[Schema] | None:
    if type(value) is not list:
        raise _mismatch(value, place, "[]v1.JSONSchemaProps")
    return [
        reader.read({} if item is None else item, (*place, i), depth + 1)
        for i, item in enumerate(value)
    ] or None


def _named_schemas(
    reader: SchemaReader, value: Any, place: Place, depth: int
) -> dict[str, Schema] | None:
    if type(value) is not dict:
        raise _mismatch(value, place, "map[string]v1.JSONSchemaProps")
    return {
        name: reader.read({} if item is None else item, (*place, MapKey(name)), depth + 1)
        for name, item in value.items()
    } or None


def _schema_or_bool(
    reader: SchemaReader, value: Any, place: Place, depth: int
) -> Schema | bool | None:
    if type(value) is dict:
        return reader.quietly(value, place, depth + 1)
    if type(value) is bool:
        return value
    raise DecodeError(f"{render(place)}: boolean or JSON schema expected", place)


def _schema_or_schemas(
    reader: SchemaReader, value: Any, place: Place, depth: int
) -> Schema | list[Schema] | None:
    if type(value) is dict:
        return reader.quietly(value, place, depth + 1)
    if type(value) is not list:
        return None
    return [reader.quietly(item, (*place, i), depth + 1) for i, item in enumerate(value)] or None


def _dependencies(
    reader: SchemaReader, value: Any, place: Place, depth: int
) -> dict[str, Any] | None:
    if type(value) is not dict:
        raise _mismatch(value, place, "map[string]v1.JSONSchemaPropsOrStringArray")
    found: dict[str, Any] = {}
    for name, item in value.items():
        here = (*place, MapKey(name))
        found[name] = item if type(item) is list else reader.quietly(item or {}, here, depth + 1)
    return found or None


def _documentation(_: SchemaReader, value: Any, place: Place, __: int) -> Any:
    if type(value) is not dict:
        raise _mismatch(value, place, "v1.ExternalDocumentation")
    return {name: text for name, text in value.items() if name in ("description", "url") and text}


_RULE: dict[str, type] = {
    "rule": str,
    "message": str,
    "messageExpression": str,
    "reason": str,
    "fieldPath": str,
    "optionalOldSelf": bool,
}


def _rules(reader: SchemaReader, value: Any, place: Place, _: int) -> list[Any] | None:
    if type(value) is not list:
        raise _mismatch(value, place, "[]v1.ValidationRule")
    return [_rule(reader, item, (*place, i)) for i, item in enumerate(value)] or None


def _rule(reader: SchemaReader, value: Any, place: Place) -> dict[str, Any]:
    if type(value) is not dict:
        raise _mismatch(value, place, "v1.ValidationRule")
    found: dict[str, Any] = {"rule": ""}
    for name, part in value.items():
        wanted = _RULE.get(name)
        if wanted is None:
            if reader._unknown is not None:
                reader._unknown.append((*place, name))
            continue
        if part is None:
            continue
        if type(part) is not wanted:
            raise _mismatch(part, (*place, name), "string" if wanted is str else "bool")
        if part != "" or name in ("rule", "reason"):
            found[name] = part
    return found


_FIELDS: dict[str, Read] = {
    "id": _string,
    "$schema": _string,
    "$ref": _pointer_to_string,
    "description": _string,
    "type": _string,
    "format": _string,
    "title": _string,
    "default": _json,
    "maximum": _number,
    "exclusiveMaximum": _bool,
    "minimum": _number,
    "exclusiveMinimum": _bool,
    "maxLength": _integer,
    "minLength": _integer,
    "pattern": _string,
    "maxItems": _integer,
    "minItems": _integer,
    "uniqueItems": _bool,
    "multipleOf": _number,
    "enum": _values,
    "maxProperties": _integer,
    "minProperties": _integer,
    "required": _strings,
    "items": _schema_or_schemas,
    "allOf": _schemas,
    "oneOf": _schemas,
    "anyOf": _schemas,
    "not": _schema,
    "properties": _named_schemas,
    "additionalProperties": _schema_or_bool,
    "patternProperties": _named_schemas,
    "dependencies": _dependencies,
    "additionalItems": _schema_or_bool,
    "definitions": _named_schemas,
    "externalDocs": _documentation,
    "example": _json,
    "nullable": _bool,
    "x-kubernetes-preserve-unknown-fields": _pointer_to_bool,
    "x-kubernetes-embedded-resource": _bool,
    "x-kubernetes-int-or-string": _bool,
    "x-kubernetes-list-map-keys": _strings,
    "x-kubernetes-list-type": _pointer_to_string,
    "x-kubernetes-map-type": _pointer_to_string,
    "x-kubernetes-validations": _rules,
}

_JSON_TYPES = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}


def _mismatch(value: Any, place: Place, wanted: str) -> DecodeError:
    found = _JSON_TYPES.get(type(value), "number" if isinstance(value, NumberText) else "object")
    parts = ".".join(part for part in place if isinstance(part, str))
    words = f"json: cannot unmarshal {found} into Go struct field "
    return DecodeError(f"{words}CustomResourceDefinition.{parts} of type {wanted}", place)
