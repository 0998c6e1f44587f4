"""What the value of an expression means: a match, or a derived attribute."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import DeviceAttribute
from mooring.api.semver import Version
from mooring.cel.lang.dispatch import PythonTypes, runtime_type
from mooring.cel.lang.time import Duration, Timestamp
from mooring.cel.lang.values import EvalError, Optional, TypeValue, UInt

NO_SUCH_KEY: Final = "no such key:"
KEY_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check "
    "with has() for optional fields"
)

_NOT_A_BOOL: dict[type, str] = {
    list: "type conversion error from list to 'bool'",
    tuple: "type conversion error from list to 'bool'",
    dict: "type conversion error from map to 'bool'",
    str: "unsupported native conversion from string to 'bool'",
    int: "unsupported type conversion from 'int' to bool",
    UInt: "unsupported type conversion from 'uint' to bool",
    float: "type conversion error from Double to 'bool'",
    bytes: "type conversion error from Bytes to 'bool'",
    type(None): "type conversion error from 'null_type' to 'bool'",
    Timestamp: "type conversion error from 'Timestamp' to 'bool'",
    Duration: "type conversion error from 'Duration' to 'bool'",
    Version: "type conversion error from 'Semver' to 'bool'",
    Quantity: "type conversion error from 'Quantity' to 'bool'",
    TypeValue: "type conversion not supported for 'type'",
}

_GO_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    UInt: "uint64",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    Timestamp: "time.Time",
    Duration: "time.Duration",
    Quantity: "*resource.Quantity",
    Version: "semver.Version",
    dict: "map[ref.Val]ref.Val",
    list: "[]ref.Val",
    tuple: "[]ref.Val",
    TypeValue: "string",
}


def with_hint(message: str) -> str:
    """Return a message of a selector's evaluation, with the hint that Kubernetes adds."""
    return f"{message}{KEY_HINT}" if NO_SUCH_KEY in message else message


def as_match(value: Any, python_types: PythonTypes) -> bool:
    """Return whether a device matches, or raise EvalError if the value does not say."""
    while isinstance(value, Optional):
        value = value.value
    if isinstance(value, bool):
        return value
    name = runtime_type(value, python_types).name
    reason = _NOT_A_BOOL.get(type(value), f"type conversion error from '{name}' to 'bool'")
    raise EvalError(f"CEL result of type {name} could not be converted to bool: {reason}")


def as_attribute(value: Any) -> DeviceAttribute:
    """Return the attribute that a derived expression gives, or raise EvalError."""
    while isinstance(value, Optional):
        value = value.value if value.has_value else None
    match value:
        case bool():
            return DeviceAttribute(bool_value=value)
        case UInt():
            pass
        case int():
            return DeviceAttribute(int_value=value)
        case str():
            return DeviceAttribute(string_value=value)
        case Version():
            return DeviceAttribute(version_value=str(value))
        case list() | tuple():
            return _list_attribute(tuple(value))
        case TypeValue():
            return DeviceAttribute(string_value=value.name)
    raise EvalError(f"unsupported CEL return type: {_go_name(value)}")


def _list_attribute(values: tuple[Any, ...]) -> DeviceAttribute:
    if not values:
        return DeviceAttribute(string_values=())
    for wanted, name, field in (
        (bool, "bool", "bool_values"),
        (int, "int", "int_values"),
        (str, "string", "string_values"),
        (Version, "semver", "version_values"),
    ):
        if type(values[0]) is not wanted:
            continue
        for index, value in enumerate(values):
            if type(value) is not wanted:
                raise EvalError(
                    f"expected list element at index {index} to be {name}, got {_go_name(value)}"
                )
        kept = tuple(map(str, values)) if wanted is Version else values
        return replace(DeviceAttribute(), **{field: kept})
    raise EvalError(f"unsupported list element type: {_go_name(values[0])}")


def _go_name(value: Any) -> str:
    return _GO_NAMES.get(type(value), type(value).__name__)
