"""Types, as the checker knows them.

A type is a kind, a name and parameters. Two types are equal when all three are. `str(type)` is
the form in which error messages show a type.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
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
    Kind.ANY: "any",
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A CEL type."""

    kind: Kind
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
        return self.kind in (Kind.DYN, Kind.ANY, Kind.ERROR)


DYN = Type(Kind.DYN, "dyn")
ANY = Type(Kind.ANY, "google.protobuf.Any")
BOOL = Type(Kind.BOOL, "bool")
BYTES = Type(Kind.BYTES, "bytes")
DOUBLE = Type(Kind.DOUBLE, "double")
DURATION = Type(Kind.DURATION, "google.protobuf.Duration")
ERROR = Type(Kind.ERROR, "*error*")
INT = Type(Kind.INT, "int")
NULL = Type(Kind.NULL, "null_type")
STRING = Type(Kind.STRING, "string")
TIMESTAMP = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(Kind.TYPE, "type")
UINT = Type(Kind.UINT, "uint")


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values."""
    return Type(Kind.OPAQUE, "optional_type", (value,))


def opaque(name: str, *params: Type) -> Type:
    """Return an abstract type."""
    return Type(Kind.OPAQUE, name, params)


def struct(name: str) -> Type:
    """Return an object type, whose fields the environment knows."""
    return Type(Kind.STRUCT, name)


def type_of(type_: Type) -> Type:
    """Return the type of a type."""
    return Type(Kind.TYPE, "type", (type_,))


def param(name: str) -> Type:
    """Return a type parameter of an overload."""
    return Type(Kind.TYPE_PARAM, name)
