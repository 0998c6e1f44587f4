"""Where attributes of devices were seen, of which types: what drivers agree about, and what not.

# sighting: how often something was seen, and where first
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from mooring.api.resource.v1 import Device, DeviceAttribute, ResourceSlice
from mooring.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT
from mooring.insight.lint.pools import Home, devices_of

STANDARD: Final = (NUMA_NODE, PCI_BUS_ID, PCIE_ROOT)

# In the order in which Kubernetes looks at them where several are set.
TYPES: Final = (
    ("int_values", "ints"),
    ("bool_values", "bools"),
    ("string_values", "strings"),
    ("version_values", "versions"),
    ("int_value", "int"),
    ("bool_value", "bool"),
    ("string_value", "string"),
    ("version_value", "version"),
)


@dataclass(slots=True)
class Sighting:
    """How often something was seen, and where first."""

    first: Home
    name: str  # of the attribute or capacity, as it is written there
    count: int = 0


@dataclass(slots=True)
class DriverSightings:
    """How many devices of a driver were seen, and which standard attributes they lack."""

    first: Home
    devices: int = 0
    lacking: dict[str, Sighting] = field(default_factory=dict)  # by standard attribute
    greedy: dict[str, Sighting] = field(default_factory=dict)  # capacities shared without default
    boundless: Sighting | None = None  # devices shared without any capacity

    def lack(self, name: str) -> Sighting | None:
        """Return the devices that lack a standard attribute while others have it."""
        found = self.lacking.get(name)
        return None if found is None or found.count == self.devices else found


class Sightings:
    """What was seen of the attributes of all devices."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self.types: dict[str, dict[str, Sighting]] = {}  # qualified name: type
        self.drivers: dict[str, DriverSightings] = {}
        self.doubles: dict[tuple[str, str], Sighting] = {}  # two drivers that publish the same
        self._hardware: dict[tuple[str, str], str] = {}  # node, PCI address: driver
        for home, device in devices_of(slices):
            self._see(home, device)

    def _see(self, home: Home, device: Device) -> None:
        driver = home.slice.spec.driver
        seen = self.drivers.setdefault(driver, DriverSightings(home))
        seen.devices += 1
        for name, attribute in device.attributes.items():
            qualified = name if "/" in name else f"{driver}/{name}"
            types = self.types.setdefault(qualified, {})
            type_ = type_of(attribute)
            sighting = types.get(type_)
            if sighting is None:
                sighting = types[type_] = Sighting(home, name)
            sighting.count += 1
        for name in STANDARD:
            if name not in device.attributes:
                seen.lacking.setdefault(name, Sighting(home, name)).count += 1
        if device.allow_multiple_allocations:
            _see_shareable(seen, home, device)
        self._see_hardware(home, device)

    def _see_hardware(self, home: Home, device: Device) -> None:
        """Note a device that another driver publishes, too."""
        spec = home.slice.spec
        node = device.node_name or spec.node_name
        address = device.attributes.get(PCI_BUS_ID)
        if not node or address is None or not address.string_value:
            return
        driver = self._hardware.setdefault((node, address.string_value), spec.driver)
        if driver != spec.driver:
            pair = (driver, spec.driver)
            self.doubles.setdefault(pair, Sighting(home, PCI_BUS_ID)).count += 1

    @cached_property
    def mixed(self) -> tuple[str, ...]:
        """The attributes that were seen with several types."""
        return tuple(name for name, types in self.types.items() if len(types) > 1)

    def clashes(self, name: str) -> list[tuple[str, Sighting, str, Sighting]]:
        """Return the rarer types of an attribute, each with the one that most devices have."""
        by_count = sorted(self.types[name].items(), key=lambda item: (-item[1].count, item[0]))
        (usual, most), *others = by_count
        return [(type_, sighting, usual, most) for type_, sighting in others]


def _see_shareable(seen: DriverSightings, home: Home, device: Device) -> None:
    """Note a device that is shared without a limit, or taken whole unless a request says more."""
    if not device.capacity:
        seen.boundless = seen.boundless or Sighting(home, "")
        seen.boundless.count += 1
    for name, capacity in device.capacity.items():
        if capacity.request_policy is None or capacity.request_policy.default is None:
            seen.greedy.setdefault(name, Sighting(home, name)).count += 1


def type_of(attribute: DeviceAttribute) -> str:
    """Return the type of an attribute's value as its field is called, "" if it has none."""
    for field_name, type_ in TYPES:
        if getattr(attribute, field_name) is not None:
            return type_
    return ""
