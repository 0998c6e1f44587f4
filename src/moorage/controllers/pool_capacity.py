"""The remaining capacity of the partitions and shared devices of one pool.

# partition: a device that takes from counters which others take from too
# type: what its grouping attribute says; devices of one type take the same
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    CounterSet,
    Device,
    DeviceCounterConsumption,
    ResourceSlice,
)
from moorage.api.resource.v1alpha3 import (
    PartitionTypeStatus,
    ShareableCapacityStatus,
    ShareableSummaryStatus,
)

ITEMS_MAX = 32  # of each list in a status

Left = dict[tuple[str, str], Quantity]  # by counter set and counter


class CapacitySummary(NamedTuple):
    """The fields of a pool's status besides the number of its devices."""

    partitions: tuple[PartitionTypeStatus, ...] = ()
    shareable: ShareableSummaryStatus | None = None
    error: str = ""


class PoolUsage(NamedTuple):
    """The slices of one pool, all of its newest generation, and its usage."""

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...]
    used: Collection[str] = ()  # devices
    consumed: Mapping[str, Quantity] = {}  # by capacity

    @property
    def devices(self) -> list[Device]:
        """All devices, in the order of the slices."""
        return [device for each in self.slices for device in each.spec.devices or ()]

    @property
    def counters(self) -> list[CounterSet]:
        """All counter sets."""
        return [found for each in self.slices for found in each.spec.shared_counters or ()]

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


def capacity_summary(pool: PoolUsage, default_attribute: str | None) -> CapacitySummary:
    """Return what partitions and shared devices have left; partitions only without an error."""
    partitions, error = _partitions(pool, _grouped(pool, default_attribute))
    shareable, other_error = _shareable(pool)
    error = error or other_error
    return CapacitySummary(() if error else partitions, shareable, error)


# --- partitions -------------------------------------------------------------------------------


class _Grouped(NamedTuple):
    """A device and the attribute with its type; empty if none does."""

    device: Device
    attribute: str


def _grouped(pool: PoolUsage, default: str | None) -> list[_Grouped]:
    """Return the devices with what groups them: what their slices say, else the request."""
    declares = any(each.spec.partition_type_attribute for each in pool.slices)
    fallback = "" if declares else default or ""
    return [
        _Grouped(device, each.spec.partition_type_attribute or fallback)
        for each in pool.slices
        for device in each.spec.devices or ()
    ]


def _partitions(
    pool: PoolUsage, devices: list[_Grouped]
) -> tuple[tuple[PartitionTypeStatus, ...], str]:
    if not any(attribute for _, attribute in devices):
        return (), ""
    if not pool.counters:
        text = "declares partitionTypeAttribute but publishes no sharedCounters"
        return (), f"PartitionTypeMissing: pool {pool} {text}"
    groups: dict[tuple[str, str], list[Device]] = {}
    for device, attribute in devices:
        if not attribute or not device.consumes_counters:
            continue
        value = _type_of(pool.driver, device, attribute)
        if value is None:
            text = f"does not carry partition type attribute {_quoted(attribute)}"
            named = f"device {_quoted(device.name)} in pool {pool}"
            return (), f"PartitionTypeMissing: {named} {text}"
        group = groups.setdefault((attribute, value), [])
        if group and _cost(group[0].consumes_counters) != _cost(device.consumes_counters):
            named = f"devices of partition type {_quoted(value)} in pool {pool}"
            return (), f"PartitionCostMismatch: {named} consume different counters"
        group.append(device)
    if len(groups) > ITEMS_MAX:
        number = f"has {len(groups)} partition types, exceeding the maximum of {ITEMS_MAX}"
        return (), f"PartitionSummaryOverCap: pool {pool} {number}"
    return tuple(_summary(pool, *each) for each in sorted(groups.items())), ""


def _summary(pool: PoolUsage, key: tuple[str, str], devices: list[Device]) -> PartitionTypeStatus:
    left, allocatable = _left(pool), 0
    for device in devices:
        if device.name not in pool.used and _fits(device.consumes_counters, left):
            _take(device.consumes_counters, left)
            allocatable += 1
    return PartitionTypeStatus(
        attribute=key[0], type=key[1], total=len(devices), allocatable=allocatable
    )


def _type_of(driver: str, device: Device, attribute: str) -> str | None:
    """Return the value of an attribute; without a domain it is the driver's."""
    found = device.attributes.get(attribute)
    if found is None and attribute.startswith(f"{driver}/"):
        found = device.attributes.get(attribute.removeprefix(f"{driver}/"))
    return None if found is None else found.string_value


def _left(pool: PoolUsage) -> Left:
    left = {
        (each.name, name): counter.value
        for each in pool.counters
        for name, counter in each.counters.items()
    }
    for device in pool.devices:
        if device.name in pool.used:
            _take(device.consumes_counters, left)
    return left


def _fits(cost: Iterable[DeviceCounterConsumption], left: Left) -> bool:
    return all(key in left and left[key] >= value for key, value in _amounts(cost))


def _take(cost: Iterable[DeviceCounterConsumption], left: Left) -> None:
    for key, value in _amounts(cost):
        if key in left:
            left[key] = left[key] - value


def _amounts(
    cost: Iterable[DeviceCounterConsumption],
) -> Iterable[tuple[tuple[str, str], Quantity]]:
    for each in cost:
        for name, counter in each.counters.items():
            yield (each.counter_set, name), counter.value


def _cost(cost: Iterable[DeviceCounterConsumption]) -> list[tuple[tuple[str, str], str]]:
    return sorted((key, str(value)) for key, value in _amounts(cost))


# --- shared devices ---------------------------------------------------------------------------


def _shareable(pool: PoolUsage) -> tuple[ShareableSummaryStatus | None, str]:
    shared = [each for each in pool.devices if each.allow_multiple_allocations]
    if not shared:
        return None, ""
    totals: dict[str, Quantity] = {}
    for device in shared:
        for name, capacity in device.capacity.items():
            before = totals.get(name)
            totals[name] = capacity.value if before is None else before + capacity.value
    if len(totals) > ITEMS_MAX:
        number = f"has {len(totals)} shareable capacity keys, exceeding the maximum of {ITEMS_MAX}"
        return None, f"ShareableSummaryOverCap: pool {pool} {number}"
    partial = sum(each.name in pool.used for each in shared)
    capacities = (_capacity(pool, *each) for each in sorted(totals.items()))
    return (
        ShareableSummaryStatus(
            fully_available_devices=len(shared) - partial,
            partially_available_devices=partial,
            capacity=tuple(capacities),
        ),
        "",
    )


def _capacity(pool: PoolUsage, name: str, total: Quantity) -> ShareableCapacityStatus:
    consumed = pool.consumed.get(name, Quantity.ZERO)
    available = total - consumed
    if available.sign < 0:
        available = Quantity.from_int(0, total.format)
    return ShareableCapacityStatus(name=name, total=total, consumed=consumed, available=available)


def _quoted(text: str) -> str:
    return f'"{text}"'
