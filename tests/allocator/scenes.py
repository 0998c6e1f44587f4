"""Small clusters to ask for devices in: one node, a class of all devices, a few slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.allocator import COMPILER
from moorage.allocator import ALL_FEATURES, AllocationOutcome, Features, Inventory, allocate
from moorage.allocator.allocation import BUDGET, Budget
from moorage.api.core.node import Node
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceClass,
    DeviceCounterConsumption,
    DeviceRequest,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
)
from tests.allocator.problems.parts import NODE, class_, node, request, slice_

DRIVER = "gpu.example.com"
HERE = node()


def inventory(
    *slices: ResourceSlice,
    classes: Iterable[DeviceClass] = (),
    allocated: Iterable[ResourceClaim] = (),
    features: Features = ALL_FEATURES,
) -> Inventory:
    """Return an inventory of slices, and a class `gpu` of all devices besides those given."""
    found = Inventory(features, compiler=COMPILER)
    for each in slices:
        found.put_slice(each)
    for device_class in (class_("gpu"), *classes):
        found.put_class(device_class)
    for claim in allocated:
        found.put_claim(claim)
    return found


def asked(
    found: Inventory, *claims: ResourceClaim, at: Node = HERE, budget: Budget = BUDGET
) -> AllocationOutcome:
    """Return what claims get on the node."""
    return allocate(found, at, claims, budget=budget)


def gpus(count: int, **fields: Any) -> list[Device]:
    """Return devices that are alike."""
    return [Device(name=f"gpu-{number}", **fields) for number in range(count)]


def gpu(name: str = "r", count: int = 1, **fields: Any) -> DeviceRequest:
    """Return a request for devices of the class of all."""
    return request(name, "gpu", count, **fields)


def published(*devices: Device, name: str = "s", **fields: Any) -> ResourceSlice:
    """Return a slice that is a whole pool."""
    return slice_(name, DRIVER, devices, **fields)


def with_counters(
    amounts: dict[str, str], devices: Sequence[Device], **fields: Any
) -> list[ResourceSlice]:
    """Return the slices of a pool with a counter set `set`."""
    whole = CounterSet(name="set", counters=counters(amounts))
    pool = ResourcePool(NODE, 1, 2)
    return [
        slice_("counters", DRIVER, None, pool=pool, shared_counters=(whole,)),
        slice_("devices", DRIVER, devices, pool=pool, **fields),
    ]


def counters(amounts: dict[str, str]) -> dict[str, Counter]:
    """Return counters by name."""
    return {name: Counter(Quantity.parse(text)) for name, text in amounts.items()}


def consuming(name: str, amounts: dict[str, str], *groups: str, **fields: Any) -> Device:
    """Return a device that takes of the counter set `set`."""
    consumption = DeviceCounterConsumption(
        counter_set="set", counters=counters(amounts), compatibility_groups=groups
    )
    return Device(name=name, consumes_counters=(consumption,), **fields)


def capacity(**amounts: str) -> dict[str, DeviceCapacity]:
    """Return capacities by name."""
    return {name: DeviceCapacity(Quantity.parse(text)) for name, text in amounts.items()}


def shareable(name: str, **amounts: str) -> Device:
    """Return a device that several claims may use, with capacities."""
    return Device(name=name, allow_multiple_allocations=True, capacity=capacity(**amounts))
