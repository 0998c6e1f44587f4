"""The devices that drivers publish, as expressions see them, and the fields that they have.

devices = PublishedDevices(slices)
for group in devices.groups(reads_of(expression)): …  # devices that look alike to it
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, Final, NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, ResourceSlice
from moorage.api.semver import Version
from moorage.cel.device_batch import is_readable
from moorage.cel.device_values import Domains, attribute_value, device_variables, named
from moorage.cel.lang.errors import EvalError
from moorage.insight.expressions.syntax import MAPS, DeviceField, shown
from moorage.insight.messages import counted
from moorage.kit.similar_names import likeness, similar

Carriers = Counter[DeviceField]
Look = tuple[Any, ...]  # the fields of a device that an expression sees, comparable
NAMES_SHOWN_MAX: Final = 8
LIKENESS_ELSEWHERE_MIN: Final = 0.8  # of names in other domains
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PublishedDevice:
    """A device as expressions see it, or why no expression can read it."""

    __slots__ = (
        "_device",
        "_is_readable",
        "_names",
        "_shape",
        "_variables",
        "driver",
        "index",
        "name",
        "node",
        "pool",
        "slice_name",
    )

    @property
    def is_shareable(self) -> bool:
        """Whether the device may be allocated several times."""
        return bool(self._device.allow_multiple_allocations)

    def __init__(self, index: int, slice_: ResourceSlice, device: Device, *, names: bool) -> None:
        spec = slice_.spec
        self.index = index
        self.driver = spec.driver
        self.pool = spec.pool.name
        self.name = device.name
        self.slice_name = slice_.metadata.name
        self.node = device.node_name or spec.node_name or ""  # "" unless it is for one node
        self._device = device
        self._names = names
        self._is_readable: bool | None = None
        self._shape: tuple[Any, ...] | None = None
        self._variables: dict[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"

    @property
    def is_readable(self) -> bool:
        """Whether expressions can read the device: all its values are valid."""
        if self._is_readable is None:
            self._is_readable = is_readable(self._device)
        return self._is_readable

    @property
    def variables(self) -> dict[str, Any] | None:
        """The variables of expressions, made on demand; None if the device cannot be read."""
        if self._variables is None and self.is_readable:
            self._variables = self._made()
        return self._variables

    @property
    def problem(self) -> str | None:
        """Why no expression can read the device, if that is so."""
        if self.is_readable:
            return None
        try:
            self._made()
        except EvalError as error:
            return str(error)
        return None

    def _made(self) -> dict[str, Any]:
        device = self._device
        return device_variables(
            self.driver,
            device.attributes,
            device.capacity,
            allow_multiple_allocations=device.allow_multiple_allocations,
            name=device.name if self._names else None,
        )

    def has(self, read: DeviceField) -> bool:
        """Whether a device that can be read has an attribute or capacity."""
        entries: Mapping[str, Any] = getattr(self._device, read.field)
        found = named(entries, self.driver, read.domain, read.name) is not None
        return found and self.is_readable

    def knows(self, domain: str) -> bool:
        """Whether a domain is that of the driver, or the device has something in it."""
        prefix = f"{domain}/"
        names = (*self._device.attributes, *self._device.capacity)
        return domain == self.driver or any(name.startswith(prefix) for name in names)

    @property
    def shape(self) -> tuple[Any, ...]:
        """What decides which fields the device has: equal for all that have the same."""
        if self._shape is None:
            device = self._device
            self._shape = (self.driver, tuple(device.attributes), tuple(device.capacity))
        return self._shape

    def look(self, read: DeviceField) -> Any:
        """Return a field so that it is equal only if no expression can tell devices apart."""
        if not self.is_readable:
            return None
        if read.name and read.field in MAPS:
            return _comparable(self.value(read))
        if read.field == "driver":
            return self.driver
        return _seen((self.variables or {})["device"], read)

    def value(self, read: DeviceField) -> Any:
        """Return an attribute or capacity that the device has; None if it does not have it."""
        device = self._device
        if read.field == "capacity":
            amount = named(device.capacity, self.driver, read.domain, read.name)
            return None if amount is None else amount.value
        found = named(device.attributes, self.driver, read.domain, read.name)
        return None if found is None else attribute_value(found)


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
        self._columns: dict[DeviceField, tuple[dict[int, int], dict[Any, int]]] = {}

    def __len__(self) -> int:
        return len(self.devices)

    def groups(
        self, reads: frozenset[DeviceField], among: Sequence[PublishedDevice] | None = None
    ) -> list[DeviceGroup]:
        """Return devices in groups that look alike, ordered by their first devices."""
        devices = self.devices if among is None else among
        columns = [self.looks(read, devices) for read in sorted(reads)]
        found: defaultdict[Look, list[PublishedDevice]] = defaultdict(list)
        keys = zip(*columns, strict=True) if columns else repeat((), len(devices))
        for key, device in zip(keys, devices, strict=True):
            found[key].append(device)
        if any(not each.is_readable for each in devices):
            found = _parted(found.values())
        return [DeviceGroup(tuple(each)) for each in found.values()]

    def looks(self, read: DeviceField, devices: Sequence[PublishedDevice]) -> list[int]:
        """Return a number for each device; the same where no expression can tell them apart."""
        column, numbers = self._columns.setdefault(read, ({}, {}))
        for device in devices:
            if device.index not in column:
                column[device.index] = numbers.setdefault(device.look(read), len(numbers))
        return [column[device.index] for device in devices]

    @cached_property
    def carriers(self) -> Carriers:
        """How many devices have each field: an attribute, a capacity, a domain."""
        return carriers_of(self.devices)


def carriers_of(devices: Iterable[PublishedDevice]) -> Carriers:
    """Return how many devices have each attribute, capacity and domain."""
    shapes: defaultdict[tuple[Any, ...], list[PublishedDevice]] = defaultdict(list)
    for device in devices:
        shapes[device.shape].append(device)
    counts: Carriers = Counter()
    for alike in shapes.values():
        first = next((each for each in alike if each.is_readable), None)
        fields = {} if first is None else (first.variables or {})["device"]
        for field in MAPS if fields else ():
            for domain, entries in fields[field].items():
                counts[DeviceField(field, domain)] += len(alike)
                for name in entries:
                    counts[DeviceField(field, domain, name)] += len(alike)
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
            yield PublishedDevice(index, slice_, device, names=names)
            index += 1


def _parted(groups: Iterable[list[PublishedDevice]]) -> defaultdict[Look, list[PublishedDevice]]:
    """Return groups in which devices that cannot be read are together by their problem only."""
    found: defaultdict[Look, list[PublishedDevice]] = defaultdict(list)
    for number, group in enumerate(groups):
        for device in group:
            found[number if device.is_readable else device.problem,].append(device)
    return found


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


def field_candidates(read: DeviceField, fleet: PublishedDevices) -> list[DeviceField]:
    """Return the fields of devices that may have been meant, the likeliest first."""
    return similar_fields(read, fleet.carriers)


def similar_fields(read: DeviceField, known: Iterable[DeviceField]) -> list[DeviceField]:
    """Return the known fields that may have been meant, the likeliest first."""
    return list(dict.fromkeys(_similar_fields(read, sorted(set(known)))))


def _similar_fields(read: DeviceField, known: Sequence[DeviceField]) -> Iterator[DeviceField]:
    (other,) = (field for field in MAPS if field != read.field)
    fields = set(known)
    if read._replace(field=other) in fields:
        yield read._replace(field=other)
    domains = {each.domain for each in known}
    near_domains = [read.domain] if read.domain in domains else similar(read.domain, domains)
    if not read.name:
        for domain in near_domains:
            yield read._replace(domain=domain)
        return
    for domain in near_domains:
        for field in (read.field, other):
            if DeviceField(field, domain, read.name) in fields:
                yield DeviceField(field, domain, read.name)
    for domain in near_domains:
        for field in (read.field, other):
            names = {each.name for each in known if each[:2] == (field, domain) and each.name}
            for name in similar(read.name, names):
                yield DeviceField(field, domain, name)
    for each in known:
        if each.name == read.name:
            yield each
    by_name = {each.name for each in known if each.name}
    for name in similar(read.name, by_name):
        if likeness(read.name, name) >= LIKENESS_ELSEWHERE_MIN:
            yield from (each for each in known if each.name == name and each.field == read.field)


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
