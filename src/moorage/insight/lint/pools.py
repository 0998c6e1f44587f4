"""The given slices as pools, and the attributes that their devices have.

Only slices of the newest generation are members of a pool. Of slices with the same name the later
one counts.

    # sighting: how often something was seen, and where first
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from moorage.allocator.pools import PoolId
from moorage.api.resource.v1 import CounterSet, Device, DeviceAttribute, ResourceSlice
from moorage.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT

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


class DeviceHome(NamedTuple):
    """A slice, and an index into one of its lists."""

    slice: ResourceSlice
    position: int


class LintPool:
    """A pool and what its slices say together."""

    def __init__(self, pool_id: PoolId, slices: Iterable[ResourceSlice]) -> None:
        given = sorted(slices, key=lambda slice_: slice_.metadata.name)
        self.id = pool_id
        self.generation = max(slice_.spec.pool.generation for slice_ in given)
        self.slices = tuple(
            slice_ for slice_ in given if slice_.spec.pool.generation == self.generation
        )

    @property
    def first(self) -> ResourceSlice:
        """The first slice by name, which counts where slices disagree about their number."""
        return self.slices[0]

    @property
    def slices_wanted(self) -> int:
        """How many slices the pool says it has."""
        return self.first.spec.pool.resource_slice_count

    @cached_property
    def is_complete(self) -> bool:
        """Whether all slices are there: in the whole pool or, for every node, of that node."""
        if len(self.slices) == self.slices_wanted:
            return True
        by_node: defaultdict[str | None, list[ResourceSlice]] = defaultdict(list)
        for slice_ in self.slices:
            by_node[slice_.spec.node_name].append(slice_)
        shared = by_node.pop(None, [])
        return bool(by_node) and all(_is_whole(own, shared) for own in by_node.values())

    @cached_property
    def devices(self) -> dict[str, DeviceHome]:
        """The first home of each device."""
        homes: dict[str, DeviceHome] = {}
        for slice_ in self.slices:
            for i, device in enumerate(slice_.spec.devices or ()):
                homes.setdefault(device.name, DeviceHome(slice_, i))
        return homes

    @cached_property
    def counter_sets(self) -> dict[str, DeviceHome]:
        """The first home of each counter set."""
        homes: dict[str, DeviceHome] = {}
        for slice_ in self.slices:
            for i, counter_set in enumerate(slice_.spec.shared_counters or ()):
                homes.setdefault(counter_set.name, DeviceHome(slice_, i))
        return homes

    def counter_set(self, name: str) -> CounterSet | None:
        """Return a counter set by its name."""
        home = self.counter_sets.get(name)
        if home is None or home.slice.spec.shared_counters is None:
            return None
        return home.slice.spec.shared_counters[home.position]

    @cached_property
    def counters_consumed(self) -> frozenset[tuple[str, str]]:
        """Every set and counter that some device consumes."""
        return frozenset(
            (consumption.counter_set, counter)
            for _, device in devices_of(self.slices)
            for consumption in device.consumes_counters
            for counter in consumption.counters
        )


def _is_whole(own: list[ResourceSlice], shared: list[ResourceSlice]) -> bool:
    first = min((own[0], *shared[:1]), key=lambda slice_: slice_.metadata.name)
    return len(own) + len(shared) == first.spec.pool.resource_slice_count


def pools_of(slices: Iterable[ResourceSlice]) -> dict[PoolId, LintPool]:
    """Return slices as pools."""
    named: dict[str | int, ResourceSlice] = {}
    for slice_ in slices:
        named[slice_.metadata.name or len(named)] = slice_
    found: defaultdict[PoolId, list[ResourceSlice]] = defaultdict(list)
    for slice_ in named.values():
        found[pool_id_of(slice_)].append(slice_)
    return {pool_id: LintPool(pool_id, members) for pool_id, members in found.items()}


def pool_id_of(slice_: ResourceSlice) -> PoolId:
    """Return the id of a slice's pool."""
    return PoolId(slice_.spec.driver, slice_.spec.pool.name)


def devices_of(slices: Iterable[ResourceSlice]) -> Iterator[tuple[DeviceHome, Device]]:
    """Yield all devices with their homes."""
    for slice_ in slices:
        for i, device in enumerate(slice_.spec.devices or ()):
            yield DeviceHome(slice_, i), device


@dataclass(slots=True)
class Sighting:
    """How often something was seen, and where first."""

    first: DeviceHome
    name: str  # of the attribute or capacity, as written there
    count: int = 0


@dataclass(slots=True)
class DriverSightings:
    """How many devices of a driver were seen, and which standard attributes they lack."""

    first: DeviceHome
    devices: int = 0
    lacking: dict[str, Sighting] = field(default_factory=dict)  # by standard attribute
    greedy: dict[str, Sighting] = field(default_factory=dict)  # capacities shared without default
    boundless: Sighting | None = None  # devices shared without any capacity

    def lack(self, name: str) -> Sighting | None:
        """Return the devices that lack a standard attribute while others have it."""
        found = self.lacking.get(name)
        return None if found is None or found.count == self.devices else found


class Sightings:
    """The attributes of all devices: their types, and where they are missing."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self.types: dict[str, dict[str, Sighting]] = {}  # qualified name: type
        self.drivers: dict[str, DriverSightings] = {}
        self.doubles: dict[tuple[str, str], Sighting] = {}  # two drivers that publish the same
        self._hardware: dict[tuple[str, str], str] = {}  # node, PCI address: driver
        for home, device in devices_of(slices):
            self._see(home, device)

    def _see(self, home: DeviceHome, device: Device) -> None:
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

    def _see_hardware(self, home: DeviceHome, device: Device) -> None:
        """Note a device that another driver also publishes."""
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


def _see_shareable(seen: DriverSightings, home: DeviceHome, device: Device) -> None:
    """Note a device that is shared without limit, or whose plain request takes everything."""
    if not device.capacity:
        seen.boundless = seen.boundless or Sighting(home, "")
        seen.boundless.count += 1
    for name, capacity in device.capacity.items():
        if capacity.request_policy is None or capacity.request_policy.default is None:
            seen.greedy.setdefault(name, Sighting(home, name)).count += 1


def type_of(attribute: DeviceAttribute) -> str:
    """Return the type of an attribute's value, named as its field, "" if it has none."""
    for field_name, type_ in TYPES:
        if getattr(attribute, field_name) is not None:
            return type_
    return ""
