"""The types of the checker, and the well-known messages of protocol buffers.

A type is a kind, a name and parameters. Two types are equal when all three are. `str(type)` is the
form in which error messages show a type.

Most messages are other names of CEL's own types: a google.protobuf.Int32Value is an int that may be
null, a google.protobuf.Struct is a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType


class TypeKind(Enum):
    """What sort of type it is."""

    DYN = auto()
    ANY = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    ERROR = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    TYPE_PARAM = auto()
    UINT = auto()


# How messages show kinds whose name is longer.
_SHOWN = {
    TypeKind.ANY: "any",
    TypeKind.DURATION: "duration",
    TypeKind.ERROR: "!error!",
    TypeKind.NULL: "null",
    TypeKind.TIMESTAMP: "timestamp",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A CEL type."""

    kind: TypeKind
    name: str
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind in _SHOWN:
            return _SHOWN[self.kind]
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def is_dyn(self) -> bool:
        """Whether any value may have the type."""
        return self.kind in (TypeKind.DYN, TypeKind.ANY, TypeKind.ERROR)


DYN = Type(TypeKind.DYN, "dyn")
ANY = Type(TypeKind.ANY, "google.protobuf.Any")
BOOL = Type(TypeKind.BOOL, "bool")
BYTES = Type(TypeKind.BYTES, "bytes")
DOUBLE = Type(TypeKind.DOUBLE, "double")
DURATION = Type(TypeKind.DURATION, "google.protobuf.Duration")
ERROR = Type(TypeKind.ERROR, "*error*")
INT = Type(TypeKind.INT, "int")
NULL = Type(TypeKind.NULL, "null_type")
STRING = Type(TypeKind.STRING, "string")
TIMESTAMP = Type(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(TypeKind.TYPE, "type")
UINT = Type(TypeKind.UINT, "uint")


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type(TypeKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type(TypeKind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values."""
    return Type(TypeKind.OPAQUE, "optional_type", (value,))


def opaque(name: str, *params: Type) -> Type:
    """Return an abstract type."""
    return Type(TypeKind.OPAQUE, name, params)


def struct(name: str) -> Type:
    """Return an object type, whose fields the environment knows."""
    return Type(TypeKind.STRUCT, name)


def type_of(type_: Type) -> Type:
    """Return the type of a type."""
    return Type(TypeKind.TYPE, "type", (type_,))


def param(name: str) -> Type:
    """Return a type parameter of an overload."""
    return Type(TypeKind.TYPE_PARAM, name)


# --- predicates -----------------------------------------------------------------------------------

PRIMITIVES = {plain.kind: plain for plain in (BOOL, BYTES, DOUBLE, INT, STRING, UINT)}
# Null is assignable to these although their declarations do not mention it.
_ALWAYS_NULLABLE = {
    TypeKind.OPAQUE,
    TypeKind.STRUCT,
    TypeKind.ANY,
    TypeKind.DURATION,
    TypeKind.TIMESTAMP,
}


def same(first: Type, second: Type) -> bool:
    """Return whether two types are the same; a wrapper is the same as what it wraps."""
    if first == second:
        return True
    if first.kind is not second.kind or len(first.params) != len(second.params):
        return False
    if unwrapped(first).name != unwrapped(second).name:
        return False
    return all(map(same, first.params, second.params))


def accepts_null(type_: Type) -> bool:
    """Return whether null is assignable to the type."""
    return type_ == NULL or type_.kind in _ALWAYS_NULLABLE or is_wrapper(type_)


def wrapper_of(primitive: Type) -> Type:
    """Return the type of a primitive that may be null, such as google.protobuf.Int64Value."""
    return Type(primitive.kind, f"wrapper({primitive.name})")


def is_wrapper(type_: Type) -> bool:
    """Return whether a type is a primitive that may be null."""
    return type_.kind in PRIMITIVES and type_ != PRIMITIVES[type_.kind]


def unwrapped(type_: Type) -> Type:
    """Return the primitive of a wrapper, any other type unchanged."""
    return PRIMITIVES.get(type_.kind, type_)


def is_optional(type_: Type) -> bool:
    """Return whether values of the type are optional values."""
    return type_.kind is TypeKind.OPAQUE and type_.name == "optional_type"


def entry_types(type_: Type) -> tuple[Type, Type] | None:
    """Return the types of key (of a list: index) and value that a loop over a type meets."""
    match type_.kind:
        case TypeKind.LIST:
            return INT, type_.params[0]
        case TypeKind.MAP:
            return type_.params[0], type_.params[1]
        case TypeKind.DYN | TypeKind.ERROR | TypeKind.TYPE_PARAM:
            return DYN, DYN
        case _:
            return None


def full_name(type_: Type) -> str:
    """Return the name that Kubernetes prints for a type; errors within CEL print `str(type)`."""
    if not type_.params:
        return type_.name
    return f"{type_.name}({', '.join(map(full_name, type_.params))})"


# --- messages -------------------------------------------------------------------------------------

_PACKAGE = "google.protobuf."
_JSON_LIST = list_of(DYN)
_JSON_OBJECT = map_of(STRING, DYN)
_TIME_FIELDS = {"seconds": INT, "nanos": INT}

# Message name: the type it represents, and its fields.
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
    TypeKind.ANY: "Any",
    TypeKind.BOOL: "BoolValue",
    TypeKind.BYTES: "BytesValue",
    TypeKind.DOUBLE: "DoubleValue",
    TypeKind.DURATION: "Duration",
    TypeKind.DYN: "Value",
    TypeKind.INT: "Int64Value",
    TypeKind.LIST: "ListValue",
    TypeKind.MAP: "Struct",
    TypeKind.NULL: "NullValue",
    TypeKind.STRING: "StringValue",
    TypeKind.TIMESTAMP: "Timestamp",
    TypeKind.UINT: "UInt64Value",
}
_ALWAYS_MESSAGES = (ANY, TIMESTAMP, DURATION, DYN, NULL, _JSON_LIST, _JSON_OBJECT)


def message_name(type_: Type) -> str | None:
    """Return the message by which a type that is no struct can be written, None if by none."""
    if type_ in _ALWAYS_MESSAGES or is_wrapper(type_):
        return _PACKAGE + _MESSAGE_OF_KIND[type_.kind]
    return None
