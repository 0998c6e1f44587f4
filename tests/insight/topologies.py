"""Short builders of devices, slices and allocated claims for the topology tests."""

from __future__ import annotations

from typing import Any

from moorage.api.core import Node
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    AllocationResult,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.topology import Topology, topology
from moorage.insight.topology.model import Box, Item, NodeBox, Unit

GPU = "gpu.example.com"


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))


def attribute(value: Any) -> DeviceAttribute:
    match value:
        case int():
            return DeviceAttribute(int_value=value)
        case str():
            return DeviceAttribute(string_value=value)
        case [int(), *_]:
            return DeviceAttribute(int_values=tuple(value))
    return DeviceAttribute(string_values=tuple(value))


def device(name: str, attributes: dict[str, Any] | None = None, **more: Any) -> Device:
    given = {key: attribute(value) for key, value in (attributes or {}).items()}
    return Device(name=name, attributes=given, **more)


def shareable(name: str, **capacity: str) -> Device:
    amounts = {k: DeviceCapacity(value=Quantity.parse(v)) for k, v in capacity.items()}
    return Device(name=name, capacity=amounts, allow_multiple_allocations=True)


def partition(name: str, slices: int, counter_set: str = "gpu-0") -> Device:
    taken = {"slices": Counter(value=Quantity.from_int(slices))}
    consumption = DeviceCounterConsumption(counter_set=counter_set, counters=taken)
    return Device(name=name, consumes_counters=(consumption,))


def counters(slices: int, name: str = "gpu-0") -> CounterSet:
    return CounterSet(name=name, counters={"slices": Counter(value=Quantity.from_int(slices))})


def slice_of(
    *devices: Device,
    driver: str = GPU,
    pool: str = "n",
    generation: int = 1,
    count: int = 1,
    name: str = "",
    **spec: Any,
) -> ResourceSlice:
    if not {"all_nodes", "node_selector", "per_device_node_selection"} & spec.keys():
        spec.setdefault("node_name", pool)
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{driver}-{pool}-{generation}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
            devices=devices,
            **spec,
        ),
    )


def result(device: str, *, driver: str = GPU, pool: str = "n", **more: Any) -> Any:
    return DeviceRequestAllocationResult(
        request="r", driver=driver, pool=pool, device=device, **more
    )


def share(device: str, number: int, **capacity: str) -> Any:
    consumed = {key: Quantity.parse(value) for key, value in capacity.items()}
    return result(device, share_id=f"share-{number}", consumed_capacity=consumed)


def claim(
    name: str, *results: Any, namespace: str = "team", pods: tuple[str, ...] = ()
) -> ResourceClaim:
    users = tuple(ResourceClaimConsumerReference(resource="pods", name=pod) for pod in pods)
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(namespace=namespace, name=name),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=users),
    )


def drawn(*objects: Any) -> Topology:
    return topology(Snapshot.of(objects))


def item_of(found: Topology, name: str) -> Item:
    (item,) = (item for item in found.items() if item.name == name)
    return item


def outline(part: NodeBox | Box) -> list[Any]:
    """Return a part as nested lists: names of units, then parts with their labels."""
    inside = [[box.label, *outline(box)] for box in part.boxes]
    return [*map(unit_name, part.units), *inside]


def unit_name(unit: Unit) -> str:
    return unit.name
