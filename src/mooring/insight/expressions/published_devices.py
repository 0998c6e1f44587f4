"""The devices that drivers publish, as expressions see them, and the fields that they have.

devices = PublishedDevices(slices)
for group in devices.groups(reads_of(expression)): …  # devices that look alike to it
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, ResourceSlice
from mooring.api.semver import Version
from mooring.cel.device_values import Domains, device_variables
from mooring.cel.lang.errors import EvalError
from mooring.insight.expressions.syntax import MAPS, DeviceField, shown
from mooring.insight.messages import counted, nearest

Look = tuple[Any, ...]  # the fields of a device that an expression sees, comparable
NAMES_SHOWN_MAX: Final = 8
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, eq=False)
class PublishedDevice:
    """A device as expressions see it, or why no expression can read it."""

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


class DeviceGroup(NamedTuple):
    """Devices that look alike to an expression; the first represents all."""

    devices: tuple[PublishedDevice, ...]

    @property
    def first(self) -> PublishedDevice:
        """The device to evaluate."""
        return self.devices[0]


class PublishedDevices:
    """All devices of the newest generation of every pool."""

    def __init__(self, slices: Iterable[ResourceSlice], *, names: bool = True) -> None:
        """With `names`, expressions see `device.name`, which Kubernetes does not have."""
        given = tuple(slices)
        newest = _newest_slices(given)
        self.slices_outdated = len(given) - len(newest)
        self.slices = len(newest)
        self.devices = tuple(_devices(newest, names=names))

    def __len__(self) -> int:
        return len(self.devices)

    def groups(self, reads: frozenset[DeviceField]) -> list[DeviceGroup]:
        """Return the devices in groups that look alike, ordered by their first devices."""
        ordered = sorted(reads)
        found: defaultdict[Look, list[PublishedDevice]] = defaultdict(list)
        for device in self.devices:
            found[_look(device, ordered)].append(device)
        return [DeviceGroup(tuple(devices)) for devices in found.values()]

    @cached_property
    def carriers(self) -> Counter[DeviceField]:
        """How many devices have each field: an attribute, a capacity, a domain."""
        counts: Counter[DeviceField] = Counter()
        for device in self.devices:
            if device.variables is None:
                continue
            for field in MAPS:
                for domain, entries in device.variables["device"][field].items():
                    counts[DeviceField(field, domain)] += 1
                    counts.update(DeviceField(field, domain, name) for name in entries)
        return counts


def _newest_slices(slices: tuple[ResourceSlice, ...]) -> list[ResourceSlice]:
    """Return the slices of the newest generation of their pools; others are no longer valid."""
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


def _devices(slices: Iterable[ResourceSlice], *, names: bool) -> Iterator[PublishedDevice]:
    index = 0
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            yield _device(index, slice_, device, names=names)
            index += 1


def _device(index: int, slice_: ResourceSlice, device: Device, *, names: bool) -> PublishedDevice:
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
    return PublishedDevice(
        index=index,
        driver=spec.driver,
        pool=spec.pool.name,
        name=device.name,
        slice_name=slice_.metadata.name,
        node=device.node_name or spec.node_name or "",
        variables=variables,
        problem=problem,
    )


def _look(device: PublishedDevice, reads: Iterable[DeviceField]) -> Look:
    if device.variables is None:
        return (device.problem,)
    fields = device.variables["device"]
    return tuple(_seen(fields, read) for read in reads)


def _seen(fields: dict[str, Any], read: DeviceField) -> Any:
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
    """Return a key that is equal only for values that no expression can distinguish.

    Python takes 1 for True, and versions that differ only in build metadata compare as equal.
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


def written(read: DeviceField, *, optional: bool = False) -> str:
    """Return a field as an expression reads it."""
    mark = "?" if optional else ""
    text = f"device.{read.field}[{shown(read.domain)}]"
    if not read.name:
        return text
    if _IDENTIFIER.fullmatch(read.name):
        return f"{text}.{mark}{read.name}"
    return f"{text}[{mark}{shown(read.name)}]"


def qualified(read: DeviceField) -> str | None:
    """Return an attribute as a constraint names it; None if it is no attribute."""
    is_attribute = read.field == "attributes" and read.name
    return f"{read.domain}/{read.name}" if is_attribute else None


def did_you_mean(
    read: DeviceField,
    fleet: PublishedDevices,
    *,
    write: Callable[[DeviceField], str | None] = written,
) -> str:
    """Return the most similar field that devices have, and how many have it."""
    for candidate in field_candidates(read, fleet):
        text = write(candidate)
        if text is not None:
            devices = fleet.carriers[candidate]
            verb = "has" if devices == 1 else "have"
            return f"did you mean {text}? {devices:,} of {counted(len(fleet), 'device')} {verb} it"
    return _what_there_is(read, fleet)


def field_candidates(read: DeviceField, fleet: PublishedDevices) -> Iterator[DeviceField]:
    """Yield the fields that may have been meant, the likeliest first."""
    known = fleet.carriers
    (other,) = (field for field in MAPS if field != read.field)
    if read._replace(field=other) in known:
        yield read._replace(field=other)
    domains = {r.domain for r in known if r.field == read.field}
    if read.domain not in domains:
        near = nearest(read.domain, domains)
        if near is not None:
            read = read._replace(domain=near)
            if read in known:
                yield read
    names = {r.name for r in known if r[:2] == read[:2] and r.name}
    if near_name := nearest(read.name, names):
        yield read._replace(name=near_name)
    for elsewhere in sorted(known):
        if read.name and elsewhere.name == read.name:
            yield elsewhere


def _what_there_is(read: DeviceField, fleet: PublishedDevices) -> str:
    names = sorted({r.name for r in fleet.carriers if r[:2] == read[:2] and r.name})
    if names:
        return f"{written(DeviceField(read.field, read.domain))} has {_some(names)}"
    domains = sorted({r.domain for r in fleet.carriers if r.field == read.field})
    return f"devices have {read.field} in {_some(domains)}" if domains else "no device has any"


def _some(names: list[str]) -> str:
    shown_names = names[:NAMES_SHOWN_MAX]
    more = len(names) - len(shown_names)
    return ", ".join([*shown_names, f"{more:,} more"] if more else shown_names)
