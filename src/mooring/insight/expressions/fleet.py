"""The devices of many slices, and what they carry.

fleet = Fleet(slices)
for group in fleet.groups(reads_of(expression)): …  # devices that look alike to the expression
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, ResourceSlice
from mooring.api.semver import Version
from mooring.cel.inputs import Domains, device_variables
from mooring.cel.lang.values import EvalError
from mooring.insight.expressions.reads import MAPS, Read

Look = tuple[Any, ...]  # what an expression sees of a device, as something to compare


@dataclass(frozen=True, slots=True, eq=False)
class FleetDevice:
    """A device as expressions see it, or why no expression can."""

    index: int
    driver: str
    pool: str
    name: str
    slice_name: str
    node: str  # "" unless the slice or device is for one node
    variables: dict[str, Any] | None
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


class Group(NamedTuple):
    """Devices that look alike to an expression; the first speaks for all."""

    devices: tuple[FleetDevice, ...]

    @property
    def first(self) -> FleetDevice:
        """The device to evaluate."""
        return self.devices[0]


class Fleet:
    """All devices of the newest generation of every pool."""

    def __init__(self, slices: Iterable[ResourceSlice], *, names: bool = True) -> None:
        """With `names`, expressions see `device.name`, which Kubernetes does not have."""
        given = tuple(slices)
        newest = newest_slices(given)
        self.slices_outdated = len(given) - len(newest)
        self.slices = len(newest)
        self.devices = tuple(_devices(newest, names=names))

    def __len__(self) -> int:
        return len(self.devices)

    def groups(self, reads: frozenset[Read]) -> list[Group]:
        """Return the devices in groups that look alike, in the order of their first ones."""
        ordered = sorted(reads)
        found: defaultdict[Look, list[FleetDevice]] = defaultdict(list)
        for device in self.devices:
            found[_look(device, ordered)].append(device)
        return [Group(tuple(devices)) for devices in found.values()]

    @cached_property
    def carriers(self) -> Counter[Read]:
        """How many devices have something in each place: an attribute, a capacity, a domain."""
        counts: Counter[Read] = Counter()
        for device in self.devices:
            if device.variables is None:
                continue
            for field in MAPS:
                for domain, entries in device.variables["device"][field].items():
                    counts[Read(field, domain)] += 1
                    counts.update(Read(field, domain, name) for name in entries)
        return counts


def newest_slices(slices: tuple[ResourceSlice, ...]) -> list[ResourceSlice]:
    """Return the slices of the highest generation of their pools; others are no longer valid."""
    newest: dict[tuple[str, str], int] = {}
    for slice_ in slices:
        pool = slice_.spec.pool
        key = (slice_.spec.driver, pool.name)
        newest[key] = max(newest.get(key, pool.generation), pool.generation)
    return [
        slice_
        for slice_ in slices
        if slice_.spec.pool.generation == newest[slice_.spec.driver, slice_.spec.pool.name]
    ]


def _devices(slices: Iterable[ResourceSlice], *, names: bool) -> Iterator[FleetDevice]:
    index = 0
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            yield _device(index, slice_, device, names=names)
            index += 1


def _device(index: int, slice_: ResourceSlice, device: Device, *, names: bool) -> FleetDevice:
    spec = slice_.spec
    variables, problem = None, None
    try:
        variables = device_variables(
            spec.driver,
            device.attributes,
            device.capacity,
            allow_multiple_allocations=device.allow_multiple_allocations,
            name=device.name if names else None,
        )
    except EvalError as error:
        problem = str(error)
    return FleetDevice(
        index=index,
        driver=spec.driver,
        pool=spec.pool.name,
        name=device.name,
        slice_name=slice_.metadata.name,
        node=device.node_name or spec.node_name or "",
        variables=variables,
        problem=problem,
    )


def _look(device: FleetDevice, reads: Iterable[Read]) -> Look:
    """Return what reads see of a device."""
    if device.variables is None:
        return (device.problem,)
    fields = device.variables["device"]
    return tuple(_seen(fields, read) for read in reads)


def _seen(fields: dict[str, Any], read: Read) -> Any:
    if not read.field:
        return _comparable(fields)
    value = fields.get(read.field)
    if not read.domain:
        return _comparable(value)
    if not isinstance(value, Domains):
        return None
    entries = value.get(read.domain, {})
    return _comparable(entries.get(read.name) if read.name else entries)


def _comparable(value: Any) -> Any:
    """Return something that is equal only for values that no expression can tell apart.

    To Python 1 and True are equal, to us versions that differ in their build metadata are.
    """
    match value:
        case str() | None:
            return value
        case bool() | int() | float():
            return (type(value), value)
        case Quantity() | Version():
            return (type(value), str(value))
        case list() | tuple():
            return tuple(map(_comparable, value))
        case dict():
            return tuple((key, _comparable(inner)) for key, inner in value.items())
        case _:
            return (type(value), id(value))
