"""Devices as expressions see them, and the results of expressions as matches and attributes.

    device          device.driver, .attributes, .capacity: three maps deep
    domains         attributes and capacities are grouped by domain; a name without one belongs to
                    the driver's. A domain that a device does not have is an empty map when it is
                    looked up, but not a member.
    DeviceBatch     the devices of a driver, for expressions over many of them

The maps of a device take longer to build than an expression to evaluate. Most expressions read a
few constant paths; a batch takes those straight from the devices. The maps are built for a device
when an expression reads something else, or fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from sys import intern
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from mooring.api.errors import VersionError
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, DeviceAttribute, DeviceCapacity
from mooring.api.semver import Version, parse_version
from mooring.cel.lang.attributes import ABSENT, Path, Pattern
from mooring.cel.lang.errors import EvalError
from mooring.cel.lang.program import Evaluated
from mooring.cel.lang.time import Duration, Timestamp
from mooring.cel.lang.values import Optional, PythonTypes, TypeValue, UInt, runtime_type

if TYPE_CHECKING:
    from mooring.cel.device import Compiled


VERSION_LENGTH_REMEMBERED = 64
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
    found = entries.get(f"{domain}/{name}")
    if found is None and domain == driver and "/" not in name:
        return entries.get(name)
    return found


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


# --- many devices ---------------------------------------------------------------------------------


# Paths that end in a map, which has to be built.
MAPS: frozenset[Path] = frozenset([("device",), *(("device", name) for name in DOMAIN_FIELDS)])


class DeviceBatch:
    """Devices of one driver.

    One with an invalid attribute fails for every expression, whatever that reads.
    """

    def __init__(self, driver: str, devices: Sequence[Device], *, names: bool = False) -> None:
        self._driver = driver
        self._devices = devices
        self._names = names  # whether expressions may read device.name, an extension
        self._numbers = list(range(len(devices)))
        self._columns: dict[Path, list[Any]] = {}
        self._variables: dict[int, dict[str, Any] | str] = {}
        self._unreadable = {n for n, device in enumerate(devices) if not is_readable(device)}

    def matches(self, compiled: Compiled, numbers: Sequence[int]) -> list[bool | str]:
        """Return for each numbered device whether it matches, or the error."""
        return [
            value if type(value) is bool else self._planned(compiled, number)
            for number, value in zip(numbers, self._values(compiled, numbers), strict=True)
        ]

    def attributes(self, compiled: Compiled, numbers: Sequence[int]) -> list[DeviceAttribute | str]:
        """Return the attribute derived for each numbered device, or the error."""
        found: list[DeviceAttribute | str] = []
        for number, value in zip(numbers, self._values(compiled, numbers), strict=True):
            try:
                found.append(as_attribute(value))
            except EvalError:
                found.append(self._planned(compiled, number))
        return found

    def _values(self, compiled: Compiled, numbers: Sequence[int]) -> Iterable[Any]:
        """Return the results of generated code for the devices; None where it fails."""
        assert compiled.program is not None
        many = compiled.program.many
        if many is None or not MAPS.isdisjoint(many.paths):
            return repeat(None, len(numbers))
        columns = [self._column(path) for path in many.paths]
        if list(numbers) != self._numbers:
            columns = [[column[number] for number in numbers] for column in columns]
        batch = zip(*columns, strict=True) if columns else repeat((), len(numbers))
        values = compiled.evaluate_batch(batch)
        if self._unreadable:
            values = [
                None if number in self._unreadable else value
                for number, value in zip(numbers, values, strict=True)
            ]
        return values

    def _column(self, path: Path) -> list[Any]:
        """Return the values of all devices at the end of a path."""
        column = self._columns.get(path)
        if column is None:
            column = self._columns[path] = list(self._cells(path))
        return column

    def _cells(self, path: Path) -> Iterable[Any]:
        devices = self._devices
        match path:
            case (_, "driver"):
                return repeat(self._driver, len(devices))
            case (_, "name") if self._names:
                return [device.name for device in devices]
            case (_, "allowMultipleAllocations"):
                return [bool(device.allow_multiple_allocations) for device in devices]
            case (_, "attributes", domain, name):
                return self._attribute_cells(domain, name)
            case (_, "capacity", domain, name):
                return self._capacity_cells(domain, name)
        return repeat(ABSENT, len(devices))

    def _attribute_cells(self, domain: str, name: str) -> Iterator[Any]:
        for number, device in enumerate(self._devices):
            found = named(device.attributes, self._driver, domain, name)
            if found is None or number in self._unreadable:
                yield ABSENT
            else:
                yield attribute_value(found)

    def _capacity_cells(self, domain: str, name: str) -> Iterator[Any]:
        for device in self._devices:
            found = named(device.capacity, self._driver, domain, name)
            yield ABSENT if found is None else found.value

    def _planned(self, compiled: Compiled, number: int) -> Any:
        """Return the result of the plan for a device; a text is an error."""
        variables = self._variables.get(number)
        if variables is None:
            variables = self._variables[number] = self._built(self._devices[number])
        if isinstance(variables, str):
            return variables
        answer: Evaluated = compiled.evaluate_variables(variables)
        return answer.value if answer.error is None else answer.error

    def _built(self, device: Device) -> dict[str, Any] | str:
        try:
            return device_variables(
                self._driver,
                device.attributes,
                device.capacity,
                allow_multiple_allocations=device.allow_multiple_allocations,
                name=device.name if self._names else None,
            )
        except EvalError as error:
            return str(error)


def is_readable(device: Device) -> bool:
    """Return whether every attribute of a device has a valid value."""
    for attribute in device.attributes.values():
        if (
            attribute.string_value is None
            and attribute.int_value is None
            and attribute.bool_value is None
        ):
            try:
                attribute_value(attribute)
            except ValueError:  # an invalid version
                return False
            except EvalError:
                return False
    return True
