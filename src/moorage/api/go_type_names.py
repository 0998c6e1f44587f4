"""The names of types that errors of Kubernetes use: those of JSON, and those of Go."""

from __future__ import annotations

from typing import Any

from moorage.api import schema


def json_type(value: Any) -> str:
    """Return the JSON type of a value, as Go's errors name it."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def short_name(message: str) -> str:
    """Return the name of a message without its package."""
    return message.rpartition(".")[2]


# What Go reads a scalar as, where that is not its name in the table.
_GO_TYPES = {
    "bytes": "[]uint8",
    "strings": "[]string",
    "time": "string",
    "microtime": "string",
    "int-or-string": "int32",
}


def go_type(field: schema.Field) -> str:
    """Return the Go type of a field, or of its items."""
    if "." in field.type:
        version, _, name = field.type.rpartition(".")
        return f"{version.rpartition('/')[2]}.{name}"
    if field.name == "uid":
        return "types.UID"
    return _GO_TYPES.get(field.type, field.type)


def map_type(field: schema.Field) -> str:
    """Return the Go type of a field that is a map."""
    if field.type == "quantity":
        return "v1.ResourceList"
    return f"map[string]{go_type(field)}"


def type_name(value: Any) -> str:
    """Return the Go type that a JSON value is decoded into."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"
