"""The messages every environment knows: the well-known types of protocol buffers.

Most of them are only other names of CEL's own types: a google.protobuf.Int32Value is an int that
may be null, a google.protobuf.Struct is a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mooring.cel.lang.inference import is_wrapper, wrapper_of
from mooring.cel.lang.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Kind,
    Type,
    list_of,
    map_of,
    struct,
)

_PACKAGE = "google.protobuf."
_JSON_LIST = list_of(DYN)
_JSON_OBJECT = map_of(STRING, DYN)
_TIME_FIELDS = {"seconds": INT, "nanos": INT}

# Message name: the type it stands for, and its fields.
_MESSAGES: dict[str, tuple[Type, dict[str, Type]]] = {
    "Any": (ANY, {"type_url": STRING, "value": BYTES}),
    "Duration": (DURATION, _TIME_FIELDS),
    "Timestamp": (TIMESTAMP, _TIME_FIELDS),
    "Empty": (struct("google.protobuf.Empty"), {}),
    "BoolValue": (wrapper_of(BOOL), {"value": BOOL}),
    "BytesValue": (wrapper_of(BYTES), {"value": BYTES}),
    "DoubleValue": (wrapper_of(DOUBLE), {"value": DOUBLE}),
    "FloatValue": (wrapper_of(DOUBLE), {"value": DOUBLE}),
    "Int64Value": (wrapper_of(INT), {"value": INT}),
    "Int32Value": (wrapper_of(INT), {"value": INT}),
    "UInt64Value": (wrapper_of(UINT), {"value": UINT}),
    "UInt32Value": (wrapper_of(UINT), {"value": UINT}),
    "StringValue": (wrapper_of(STRING), {"value": STRING}),
    "ListValue": (_JSON_LIST, {"values": _JSON_LIST}),
    "Struct": (_JSON_OBJECT, {"fields": _JSON_OBJECT}),
    "Struct.FieldsEntry": (
        struct("google.protobuf.Struct.FieldsEntry"),
        {"key": STRING, "value": DYN},
    ),
    "Value": (
        DYN,
        {
            "null_value": INT,
            "number_value": DOUBLE,
            "string_value": STRING,
            "bool_value": BOOL,
            "struct_value": _JSON_OBJECT,
            "list_value": _JSON_LIST,
        },
    ),
}

MESSAGE_TYPES: Mapping[str, Type] = MappingProxyType(
    {_PACKAGE + name: type_ for name, (type_, _) in _MESSAGES.items()}
)
MESSAGE_FIELDS: Mapping[str, Mapping[str, Type]] = MappingProxyType(
    {_PACKAGE + name: MappingProxyType(fields) for name, (_, fields) in _MESSAGES.items()}
)
ENUM_VALUES: Mapping[str, int] = MappingProxyType({_PACKAGE + "NullValue.NULL_VALUE": 0})

_MESSAGE_OF_KIND = {
    Kind.ANY: "Any",
    Kind.BOOL: "BoolValue",
    Kind.BYTES: "BytesValue",
    Kind.DOUBLE: "DoubleValue",
    Kind.DURATION: "Duration",
    Kind.DYN: "Value",
    Kind.INT: "Int64Value",
    Kind.LIST: "ListValue",
    Kind.MAP: "Struct",
    Kind.NULL: "NullValue",
    Kind.STRING: "StringValue",
    Kind.TIMESTAMP: "Timestamp",
    Kind.UINT: "UInt64Value",
}
_ALWAYS_MESSAGES = (ANY, TIMESTAMP, DURATION, DYN, NULL, _JSON_LIST, _JSON_OBJECT)


def message_name(type_: Type) -> str | None:
    """Return the message by which a type that is no struct can be written, None if by none."""
    if type_ in _ALWAYS_MESSAGES or is_wrapper(type_):
        return _PACKAGE + _MESSAGE_OF_KIND[type_.kind]
    return None
