"""A device as expressions see it: `device.driver`, `.attributes`, `.capacity`.

Names are grouped by domain; one without a domain belongs to the driver's. A domain that a device
knows nothing of is an empty map when it is looked up, but not a member.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any, TypeVar

from mooring.api.errors import VersionError
from mooring.api.resource.v1 import DeviceAttribute, DeviceCapacity
from mooring.api.semver import Version, parse_version
from mooring.cel.lang.cells import Pattern
from mooring.cel.lang.values import EvalError

T = TypeVar("T")

VERSION_LENGTH_REMEMBERED = 64

DOMAIN_FIELDS = ("attributes", "capacity")
# Which paths of a device have columns: its fields, and what is in a domain. A domain itself has
# none, because one that a device knows nothing of would not be absent but empty.
CELLS: tuple[Pattern, ...] = (
    ("device", None),
    *(("device", field, None, None) for field in DOMAIN_FIELDS),
)


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
    """Return the variables of an evaluation, or raise EvalError for a value that is none."""
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
    """Put a value under its domain; of a short and a qualified name the qualified one counts."""
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
    """Return the one value of an attribute; if several are given, lists come first."""
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
        # Devices of a fleet share most of their texts; as one object they stay in the cache.
        return intern(attribute.string_value)
    if attribute.version_value is not None:
        return _version(attribute.version_value)
    raise EvalError("unsupported attribute value")


def _version(text: str) -> Version:
    # Devices of a fleet have few distinct versions.
    return _remembered(text) if len(text) <= VERSION_LENGTH_REMEMBERED else parse_version(text)


_remembered = lru_cache(maxsize=4096)(parse_version)
