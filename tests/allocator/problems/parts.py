"""Parts that the families of problems share: sizes, and short ways to write objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from moorage.api.core.node import Node, NodeStatus
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    AllocationResult,
    CapacityRequirements,
    CELDeviceSelector,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

T = TypeVar("T")

ALL_FEATURES = frozenset(
    {
        "AdminAccess",
        "CompatibilityGroups",
        "ConsumableCapacity",
        "DerivedAttributes",
        "DeviceBindingAndStatus",
        "DeviceTaints",
        "FractionalCapacityRange",
        "ListTypeAttributes",
        "OptionalNodeOperations",
        "PartitionableDevices",
        "PrioritizedList",
    }
)
NODE = "node-1"
NUMA = "resource.kubernetes.io/numaNode"
PCIE = "resource.kubernetes.io/pcieRoot"


@dataclass(frozen=True)
class Size:
    """How large a problem is."""

    name: str
    devices_max: int
    slots_max: int  # devices wanted by all claims together

    @property
    def is_small(self) -> bool:
        """Whether the plain allocator can solve problems of this size."""
        return self.devices_max <= 6


SMALL = Size("small", devices_max=6, slots_max=5)
NEAR_CAPACITY = Size("near-capacity", devices_max=32, slots_max=32)


def is_lucky(random: Random, chance: float) -> bool:
    """Return true that often."""
    return random.random() < chance


def some(random: Random, values: Sequence[T], most: int) -> list[T]:
    """Return one to `most` of the values."""
    return random.sample(values, random.randint(1, min(most, len(values))))


def split(random: Random, total: int, parts: int) -> list[int]:
    """Return positive numbers with this sum; fewer than `parts` if the total is small."""
    parts = max(1, min(parts, total))
    cuts = sorted(random.sample(range(1, total), parts - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]


def wanted(random: Random, size: Size, devices: int) -> int:
    """Return how many devices to want when there are so many."""
    least = 1 if size.is_small else devices - 4
    over = is_lucky(random, 0.15)
    return max(1, min(size.slots_max, random.randint(least, devices) + over))


# --- objects ------------------------------------------------------------------------------


def node(*, labels: Mapping[str, str] | None = None, declared: Iterable[str] = ()) -> Node:
    """Return the node that the claims are tried on."""
    metadata = ObjectMeta(name=NODE, labels=dict(labels or {}))
    return Node(metadata=metadata, status=NodeStatus(declared_features=tuple(declared)))


def attribute(value: Any) -> DeviceAttribute:
    """Return the attribute of a Python value: a scalar, or a tuple of scalars."""
    if isinstance(value, tuple):
        if isinstance(value[0], int):
            return DeviceAttribute(int_values=value)
        return DeviceAttribute(string_values=value)
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    return DeviceAttribute(string_value=value)


def attributes(values: Mapping[str, Any]) -> dict[str, DeviceAttribute]:
    """Return attributes by name; None is none."""
    return {name: attribute(value) for name, value in values.items() if value is not None}


def quantities(amounts: Mapping[str, str]) -> dict[str, Quantity]:
    """Return quantities by name."""
    return {name: Quantity.parse(text) for name, text in amounts.items()}


def slice_(
    name: str, driver: str, devices: Sequence[Device] | None, **fields: Any
) -> ResourceSlice:
    """Return a slice for the node that is all of its pool, unless fields say otherwise."""
    values: dict[str, Any] = {
        "pool": ResourcePool(NODE, 1, 1),
        "node_name": NODE,
        "devices": None if devices is None else tuple(devices),
    }
    spec = ResourceSliceSpec(driver=driver, **{**values, **fields})
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    """Return CEL selectors."""
    return tuple(DeviceSelector(CELDeviceSelector(text)) for text in expressions)


def class_(name: str, *expressions: str, **fields: Any) -> DeviceClass:
    """Return a class with these selectors."""
    spec = DeviceClassSpec(selectors=selectors(*expressions), **fields)
    return DeviceClass(metadata=ObjectMeta(name=name), spec=spec)


def exactly(class_name: str, count: int = 1, **fields: Any) -> ExactDeviceRequest:
    """Return an ask for so many devices of a class."""
    values: dict[str, Any] = {"allocation_mode": "ExactCount", "count": count}
    return ExactDeviceRequest(device_class_name=class_name, **{**values, **fields})


def request(name: str, class_name: str, count: int = 1, **fields: Any) -> DeviceRequest:
    """Return a request for so many devices of a class."""
    return DeviceRequest(name, exactly(class_name, count, **fields))


def amounts(values: Mapping[str, str]) -> CapacityRequirements | None:
    """Return an ask for capacity, or None for none."""
    return CapacityRequirements(quantities(values)) if values else None


def claim(name: str, requests: Sequence[DeviceRequest], **fields: Any) -> ResourceClaim:
    """Return a claim to allocate."""
    devices = DeviceClaim(requests=tuple(requests), **fields)
    metadata = ObjectMeta(name=name, namespace="default")
    return ResourceClaim(metadata=metadata, spec=ResourceClaimSpec(devices))


def allocated(name: str, results: Iterable[DeviceRequestAllocationResult]) -> ResourceClaim:
    """Return a claim that has devices already."""
    allocation = AllocationResult(DeviceAllocationResult(tuple(results)))
    metadata = ObjectMeta(name=name, namespace="default")
    return ResourceClaim(metadata=metadata, status=ResourceClaimStatus(allocation))


def held(
    driver: str, device: str, pool: str = NODE, **fields: Any
) -> DeviceRequestAllocationResult:
    """Return a device that a claim has."""
    return DeviceRequestAllocationResult("r", driver, pool, device, **fields)


def share(number: int) -> str:
    """Return the ID of a share."""
    return f"00000000-0000-0000-0000-{number:012}"
