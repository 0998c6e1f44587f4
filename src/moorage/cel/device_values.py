"""Devices as expressions see them, and the results of expressions as matches and attributes.

    device          device.driver, .attributes, .capacity: three maps deep
    domains         attributes and capacities are grouped by domain; a name without one belongs to
                    the driver's. A domain that a device does not have is an empty map when it is
                    looked up, but not a member.

The maps of a device take longer to build than an expression to evaluate. Most expressions read a
few constant paths, the cells; see `device_batch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from moorage.api.errors import VersionError
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.api.semver import Version, parse_version
from moorage.cel.lang.attributes import Pattern
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.values import Optional, PythonTypes, TypeValue, UInt, runtime_type

VERSION_LENGTH_REMEMBERED = 64
TEXT_LENGTH_REMEMBERED = 64
DOMAIN_FIELDS = ("attributes", "capacity")
# The paths of a device that have columns: its fields, and entries of a domain. A domain itself has
# none, because one that a device does not have would not be absent but empty.
CELLS: tuple[Pattern, ...] = (
    ("device", None),
    *(("device", field, None, None) for field in DOMAIN_FIELDS),
)
T = TypeVar("T")


class Domains(dict[str, dict[str, Any]]):
    """Maps by domain; looking up an unknown domain gives an empty map."""

    __slots__ = ()

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


def device_variables(
    driver: str,
    attributes: Mapping[str, DeviceAttribute],
    capacity: Mapping[str, DeviceCapacity],
    *,
    allow_multiple_allocations: bool | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Return the variables of an evaluation, or raise EvalError for an invalid value."""
    device: dict[str, Any] = {
        "driver": driver,
        "allowMultipleAllocations": bool(allow_multiple_allocations),
        "attributes": _attributes(driver, attributes),
        "capacity": _capacity(driver, capacity),
    }
    if name is not None:
        device["name"] = name
    return {"device": device}


def _attributes(driver: str, attributes: Mapping[str, DeviceAttribute]) -> Domains:
    domains = Domains()
    for name, attribute in attributes.items():
        try:
            value = attribute_value(attribute)
        except VersionError as error:
            raise EvalError(f"attribute {name}: parse semantic version: {error}") from None
        except EvalError as error:
            raise EvalError(f"attribute {name}: {error}") from None
        _put(domains, driver, name, value)
    return domains


def _capacity(driver: str, capacity: Mapping[str, DeviceCapacity]) -> Domains:
    domains = Domains()
    for name, entry in capacity.items():
        _put(domains, driver, name, entry.value)
    return domains


def _put(domains: Domains, driver: str, name: str, value: Any) -> None:
    """Put a value under its domain; a qualified name wins over a short one."""
    domain, slash, identifier = name.partition("/")
    if slash:
        domains.setdefault(domain, {})[identifier] = value
    else:
        domains.setdefault(driver, {}).setdefault(name, value)


def named(entries: Mapping[str, T], driver: str, domain: str, name: str) -> T | None:
    """Return the attribute or capacity that expressions see under a domain and a name."""
    if "/" in domain:
        return None  # A domain ends at the first slash.
    full, short = key_names(driver, domain, name)
    return entries.get(full) or entries.get(short)


def key_names(driver: str, domain: str, name: str) -> tuple[str, str]:
    """Return under which keys a device may publish something; the first one counts."""
    full = f"{domain}/{name}"
    return full, name if domain == driver and "/" not in name else full


def attribute_value(attribute: DeviceAttribute) -> Any:
    """Return the value of an attribute; if it has several, lists come first."""
    if attribute.int_values is not None:
        return attribute.int_values
    if attribute.bool_values is not None:
        return attribute.bool_values
    if attribute.string_values is not None:
        return attribute.string_values
    if attribute.version_values is not None:
        return tuple(map(_version, attribute.version_values))
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        # Devices share most of their texts; as one object they stay in the cache.
        return intern(attribute.string_value)
    if attribute.version_value is not None:
        return _version(attribute.version_value)
    raise EvalError("unsupported attribute value")


def _version(text: str) -> Version:
    # Devices have few distinct versions.
    return _remembered(text) if len(text) <= VERSION_LENGTH_REMEMBERED else parse_version(text)


_remembered = lru_cache(maxsize=4096)(parse_version)


# --- results --------------------------------------------------------------------------------------


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
    """Return an error of a selector, with the hint that Kubernetes adds."""
    return f"{message}{KEY_HINT}" if NO_SUCH_KEY in message else message


def as_match(value: Any, python_types: PythonTypes) -> bool:
    """Return whether a device matches, or raise EvalError if the value is no bool."""
    while isinstance(value, Optional):
        value = value.value
    if isinstance(value, bool):
        return value
    name = runtime_type(value, python_types).name
    reason = _NOT_A_BOOL.get(type(value), f"type conversion error from '{name}' to 'bool'")
    raise EvalError(f"CEL result of type {name} could not be converted to bool: {reason}")


def as_attribute(value: Any) -> DeviceAttribute:
    """Return the attribute that a derived expression gives, or raise EvalError."""
    if type(value) is int or (type(value) is str and len(value) <= TEXT_LENGTH_REMEMBERED):
        return _plain_attribute(value)
    while isinstance(value, Optional):
        value = value.value if value.has_value else None
    match value:
        case bool():
            return DeviceAttribute(bool_value=value)
        case UInt():
            pass
        case int() | str():
            return _plain_attribute.__wrapped__(value)
        case Version():
            return DeviceAttribute(version_value=str(value))
        case list() | tuple():
            return _list_attribute(tuple(value))
        case TypeValue():
            return DeviceAttribute(string_value=value.name)
    raise EvalError(f"unsupported CEL return type: {_go_name(value)}")


@lru_cache(maxsize=4096)
def _plain_attribute(value: int | str) -> DeviceAttribute:
    """Return the attribute of an int or a text; devices have few distinct ones."""
    if isinstance(value, str):
        return DeviceAttribute(string_value=value)
    return DeviceAttribute(int_value=value)


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
