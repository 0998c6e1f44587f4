"""The node resources that come with a claim: what its devices stand for, and what they cost.

A device may stand for CPUs, memory or the like (a mapping), so much for each device or for each
unit of a capacity that was taken; and using it may cost some (an overhead), for each pod and for
each container that uses the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import (
    NodeAllocatableMappedResource,
    NodeAllocatableOverheadResource,
    NodeAllocatableResourceClaimStatus,
)
from mooring.api.core.resources import ResourceList
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    AllocationResult,
    Device,
    DeviceRequestAllocationResult,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    ResourceClaim,
    ResourceSlice,
)
from mooring.claims.consumers import is_reserved_for
from mooring.claims.features import Features
from mooring.claims.owners import key_of
from mooring.claims.refusals import Refused

# Finds the device of a result among those that can be used on a node.
FindDevice = Callable[[DeviceRequestAllocationResult], Device | Refused]

ONE = Quantity.from_int(1)


class AllocatedClaim(Struct, frozen=True):
    """A claim of a pod with its devices; the special claim belongs to no entry of the pod."""

    claim: ResourceClaim
    allocation: AllocationResult
    entries: frozenset[str] = frozenset()


def finder(slices: Iterable[ResourceSlice], is_on_node: Callable[[Device], bool]) -> FindDevice:
    """Return what finds devices in slices of a node; a device of the newest generation wins."""
    found: dict[tuple[str, str, str], tuple[Device, bool]] = {}
    for each in sorted(slices, key=lambda each: (each.spec.pool.generation, each.metadata.name)):
        driver, pool = each.spec.driver, each.spec.pool.name
        is_per_device = bool(each.spec.per_device_node_selection)
        for device in each.spec.devices or ():
            found[driver, pool, device.name] = (device, is_per_device)

    def find(result: DeviceRequestAllocationResult) -> Device | Refused:
        driver, pool, name = result.driver, result.pool, result.device
        match found.get((driver, pool, name)):
            case None:
                return Refused(f"device {name} not found in pool {pool} for driver {driver}")
            case (device, True) if not is_on_node(device):
                return Refused(f"device {name} does not match node")
            case (device, _):
                return device

    return find


def claim_statuses(
    pod: Pod, claims: Sequence[AllocatedClaim], find: FindDevice
) -> tuple[NodeAllocatableResourceClaimStatus, ...] | Refused:
    """Return the node resources that come with the pod's claims, by the name of the claim.

    Claims none of whose devices have to do with node resources are passed over, whether or not
    their devices are found.
    """
    statuses = []
    for each in claims:
        if not any(_resources(result, find) for result in each.allocation.devices.results):
            continue
        match _status(pod, each, find):
            case Refused() as refused:
                return refused
            case NodeAllocatableResourceClaimStatus() as status:
                statuses.append(status)
    return tuple(sorted(statuses, key=lambda status: status.resource_claim_name))


def is_mapped(allocation: AllocationResult, find: FindDevice) -> bool:
    """Tell whether an allocated device stands for node resources."""
    return any(
        resource.mapping is not None
        for result in allocation.devices.results
        for resource in _resources(result, find).values()
    )


def check_unshared(
    claim: ResourceClaim, pod: Pod, features: Features, *, pending_for: Iterable[str] = ()
) -> Refused | None:
    """Refuse a claim with a mapped device that other pods have as well.

    pending_for has the uids of pods that were given the claim and are not bound yet.
    """
    others = bool(claim.status.reserved_for) and not is_reserved_for(claim, pod, features)
    if not others and all(uid == pod.metadata.uid for uid in pending_for):
        return None
    return Refused(
        f"node allocatable resource claim {claim.metadata.name} has a mapped device "
        "and cannot be shared across pods"
    )


# --- one claim --------------------------------------------------------------------------------


def _resources(
    result: DeviceRequestAllocationResult, find: FindDevice
) -> dict[str, NodeAllocatableResource]:
    device = find(result)
    return {} if isinstance(device, Refused) else device.node_allocatable_resources


class _Amounts(Struct, frozen=True):
    """What the devices of a claim stand for and cost, by resource."""

    mapping: ResourceList
    overhead: dict[str, NodeAllocatableOverheadResource]


def _status(
    pod: Pod, allocated: AllocatedClaim, find: FindDevice
) -> NodeAllocatableResourceClaimStatus | Refused | None:
    amounts = _amounts(allocated, find)
    if isinstance(amounts, Refused):
        return amounts
    if not (amounts.mapping or amounts.overhead):
        return None
    return NodeAllocatableResourceClaimStatus(
        resource_claim_name=allocated.claim.metadata.name,
        containers=tuple(_containers(pod, allocated.entries)),
        mapping=tuple(
            NodeAllocatableMappedResource(name=name, quantity=quantity)
            for name, quantity in sorted(amounts.mapping.items())
        ),
        overhead=tuple(amounts.overhead[name] for name in sorted(amounts.overhead)),
    )


def _amounts(allocated: AllocatedClaim, find: FindDevice) -> _Amounts | Refused:
    key = key_of(allocated.claim.metadata)
    total = _Amounts({}, {})
    for result in allocated.allocation.devices.results:
        device = find(result)
        if isinstance(device, Refused):
            place = f"claim {key}, device {result.device}, driver {result.driver}"
            return Refused(f"{place}: {device.reason}")
        for name, resource in sorted(device.node_allocatable_resources.items()):
            quantity = _mapped(name, resource.mapping, result, key)
            if isinstance(quantity, Refused):
                return quantity
            if quantity is not None:
                total.mapping[name] = total.mapping.get(name, Quantity.ZERO) + quantity
            if cost := _cost(total.overhead.get(name), name, resource.overhead):
                total.overhead[name] = cost
    return total


def _mapped(
    name: str,
    mapping: NodeAllocatableMapping | None,
    result: DeviceRequestAllocationResult,
    claim_key: str,
) -> Quantity | Refused | None:
    """Return how much of a node resource an allocated device stands for."""
    if mapping is None or not mapping.capacity_key:
        return None if mapping is None else mapping.device_multiplier
    if result.consumed_capacity is None:
        return Refused(
            f"claim {claim_key}, device {result.device}: ConsumedCapacity is nil, but Capacity key "
            f"'{mapping.capacity_key}' is set in NodeAllocatableResources for resource {name}"
        )
    consumed = result.consumed_capacity.get(mapping.capacity_key)
    multiplier = mapping.capacity_multiplier
    if consumed is None or multiplier is None or multiplier == ONE:
        return consumed
    return consumed * multiplier


def _cost(
    before: NodeAllocatableOverheadResource | None,
    name: str,
    overhead: NodeAllocatableOverhead | None,
) -> NodeAllocatableOverheadResource | None:
    """Return the overhead so far with that of one device more, or None if that has none."""
    if overhead is None or (overhead.per_pod is None and overhead.per_container is None):
        return None
    before = before or NodeAllocatableOverheadResource(name=name)
    return NodeAllocatableOverheadResource(
        name=name,
        per_pod=_sum(before.per_pod, overhead.per_pod),
        per_container=_sum(before.per_container, overhead.per_container),
    )


def _sum(first: Quantity | None, second: Quantity | None) -> Quantity | None:
    if first is None or second is None:
        return first if second is None else second
    return first + second


def _containers(pod: Pod, entries: frozenset[str]) -> Iterator[str]:
    """Yield the containers that use a claim, each once however often it lists it."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(claim.name in entries for claim in container.resources.claims):
            yield container.name
