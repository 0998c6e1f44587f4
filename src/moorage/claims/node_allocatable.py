"""Node allocatable resources of claims, and whether a node and a pod have enough for them.

A device may provide CPUs, memory or the like (a mapping), an amount for each device or for each
unit of consumed capacity; and it may cost some (an overhead), for each pod and for each container
that uses the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from moorage.api.core.pod import (
    NodeAllocatableMappedResource,
    NodeAllocatableOverheadResource,
    NodeAllocatableResourceClaimStatus,
    Pod,
)
from moorage.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from moorage.api.meta import namespaced_name
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    AllocationResult,
    Device,
    DeviceRequestAllocationResult,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    ResourceClaim,
    ResourceSlice,
)
from moorage.claims.pod_claims import ClaimFeatures, ClaimRejection
from moorage.claims.pod_resources import (
    ClaimStatuses,
    container_claim_resources,
    container_limits,
    container_requests,
    is_huge_page,
    is_pod_level_resource,
)
from moorage.claims.reservations import is_reserved_for

# Finds the device of a result among those that can be used on a node.
FindDevice = Callable[[DeviceRequestAllocationResult], Device | ClaimRejection]

ONE = Quantity.from_int(1)


class AllocatedClaim(Struct, frozen=True):
    """A claim of a pod with its devices, and its entries; the special claim has none."""

    claim: ResourceClaim
    allocation: AllocationResult
    entries: frozenset[str] = frozenset()


def finder(slices: Iterable[ResourceSlice], is_on_node: Callable[[Device], bool]) -> FindDevice:
    """Return a function that finds devices in slices of a node, of the newest generation."""
    found: dict[tuple[str, str, str], tuple[Device, bool]] = {}
    for each in sorted(slices, key=lambda each: (each.spec.pool.generation, each.metadata.name)):
        driver, pool = each.spec.driver, each.spec.pool.name
        is_per_device = bool(each.spec.per_device_node_selection)
        for device in each.spec.devices or ():
            found[driver, pool, device.name] = (device, is_per_device)

    def find(result: DeviceRequestAllocationResult) -> Device | ClaimRejection:
        driver, pool, name = result.driver, result.pool, result.device
        match found.get((driver, pool, name)):
            case None:
                return ClaimRejection(f"device {name} not found in pool {pool} for driver {driver}")
            case (device, True) if not is_on_node(device):
                return ClaimRejection(f"device {name} does not match node")
            case (device, _):
                return device

    return find


def claim_statuses(
    pod: Pod, claims: Sequence[AllocatedClaim], find: FindDevice
) -> tuple[NodeAllocatableResourceClaimStatus, ...] | ClaimRejection:
    """Return the node resources of the pod's claims, by the name of the claim.

    Claims whose devices have no node resources are skipped, whether their devices are found or not.
    """
    statuses = []
    for each in claims:
        if not any(_resources(result, find) for result in each.allocation.devices.results):
            continue
        match _status(pod, each, find):
            case ClaimRejection() as rejected:
                return rejected
            case NodeAllocatableResourceClaimStatus() as status:
                statuses.append(status)
    return tuple(sorted(statuses, key=lambda status: status.resource_claim_name))


def is_mapped(allocation: AllocationResult, find: FindDevice) -> bool:
    """Return whether an allocated device provides node resources."""
    return any(
        resource.mapping is not None
        for result in allocation.devices.results
        for resource in _resources(result, find).values()
    )


def check_unshared(
    claim: ResourceClaim, pod: Pod, features: ClaimFeatures, *, pending_for: Iterable[str] = ()
) -> ClaimRejection | None:
    """Reject a claim with a mapped device that other pods use, too.

    `pending_for` has the uids of pods that reserve the claim and are not bound yet.
    """
    others = bool(claim.status.reserved_for) and not is_reserved_for(claim, pod, features)
    if not others and all(uid == pod.metadata.uid for uid in pending_for):
        return None
    return ClaimRejection(
        f"node allocatable resource claim {claim.metadata.name} has a mapped device "
        "and cannot be shared across pods"
    )


# --- one claim ------------------------------------------------------------------------------------


def _resources(
    result: DeviceRequestAllocationResult, find: FindDevice
) -> dict[str, NodeAllocatableResource]:
    device = find(result)
    return {} if isinstance(device, ClaimRejection) else device.node_allocatable_resources


class _ClaimTotals(Struct, frozen=True):
    """The resources that a claim's devices provide and cost."""

    mapping: ResourceList
    overhead: dict[str, NodeAllocatableOverheadResource]


def _status(
    pod: Pod, allocated: AllocatedClaim, find: FindDevice
) -> NodeAllocatableResourceClaimStatus | ClaimRejection | None:
    totals = _totals(allocated, find)
    if isinstance(totals, ClaimRejection):
        return totals
    if not (totals.mapping or totals.overhead):
        return None
    return NodeAllocatableResourceClaimStatus(
        resource_claim_name=allocated.claim.metadata.name,
        containers=tuple(_containers(pod, allocated.entries)),
        mapping=tuple(
            NodeAllocatableMappedResource(name=name, quantity=quantity)
            for name, quantity in sorted(totals.mapping.items())
        ),
        overhead=tuple(totals.overhead[name] for name in sorted(totals.overhead)),
    )


def _totals(allocated: AllocatedClaim, find: FindDevice) -> _ClaimTotals | ClaimRejection:
    key = namespaced_name(allocated.claim.metadata)
    total = _ClaimTotals({}, {})
    for result in allocated.allocation.devices.results:
        device = find(result)
        if isinstance(device, ClaimRejection):
            place = f"claim {key}, device {result.device}, driver {result.driver}"
            return ClaimRejection(f"{place}: {device.reason}")
        for name, resource in sorted(device.node_allocatable_resources.items()):
            quantity = _mapped(name, resource.mapping, result, key)
            if isinstance(quantity, ClaimRejection):
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
) -> Quantity | ClaimRejection | None:
    """Return how much of a node resource an allocated device provides."""
    if mapping is None or not mapping.capacity_key:
        return None if mapping is None else mapping.device_multiplier
    if result.consumed_capacity is None:
        return ClaimRejection(
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
    """Return the overhead plus one more device's, or None if that has none."""
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
    """Yield the containers that use a claim, each once."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(claim.name in entries for claim in container.resources.claims):
            yield container.name


# --- fit ------------------------------------------------------------------------------------------


class Shortage(Struct, frozen=True):
    """A resource that the node lacks; if it never had enough, preemption does not help."""

    resource: str
    is_unresolvable: bool

    @property
    def reason(self) -> str:
        """Kubernetes' message."""
        return f"Insufficient {self.resource}"


def shortages(
    demand: ResourceList, *, allocatable: ResourceList, requested: ResourceList
) -> tuple[Shortage, ...]:
    """Return the missing amounts of resources that claims can provide.

    `requested` is the sum of the requests of the node's pods.
    """
    huge_pages = sorted(name for name in demand if is_huge_page(name))
    found = []
    for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *huge_pages):
        needed, total = _units(name, demand), _units(name, allocatable)
        if needed > 0 and needed > total - _units(name, requested):
            found.append(Shortage(name, is_unresolvable=needed > total))
    return tuple(found)


def check_pod_level(pod: Pod, claim_statuses: ClaimStatuses) -> ClaimRejection | None:
    """Reject a pod whose pod-level resources are less than its containers and claims together."""
    statuses = tuple(claim_statuses)
    if pod.spec.resources is None or not statuses:
        return None
    return (
        _check_requests(pod, pod.spec.resources.requests, statuses)
        or _check_huge_pages(pod, pod.spec.resources.limits, statuses)
        or _check_limits(pod, pod.spec.resources.limits, statuses)
    )


def _check_requests(pod: Pod, most: ResourceList, statuses: ClaimStatuses) -> ClaimRejection | None:
    wanted = container_requests(pod, statuses) if most else {}
    for name in sorted(most):
        if is_pod_level_resource(name) and name in wanted and wanted[name] > most[name]:
            return ClaimRejection(
                f"pod level request for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            )
    return None


def _check_huge_pages(
    pod: Pod, most: ResourceList, statuses: ClaimStatuses
) -> ClaimRejection | None:
    wanted = container_limits(pod, statuses) if most else {}
    for name in sorted(wanted):
        if is_huge_page(name) and name in most and wanted[name] > most[name]:
            return ClaimRejection(
                f"pod level limit for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA limits"
            )
    return None


def _check_limits(pod: Pod, most: ResourceList, statuses: ClaimStatuses) -> ClaimRejection | None:
    for container in pod.spec.containers:
        raised = container_claim_resources(statuses, container.name)
        for name, limit in sorted(container.resources.limits.items()):
            if is_huge_page(name) or name not in most:
                continue
            if limit + raised.get(name, Quantity.ZERO) > most[name]:
                return ClaimRejection(
                    f"pod level limit for {name} is insufficient to cover the limit and DRA "
                    f"overhead for container {container.name}"
                )
    return None


def _units(name: str, amounts: ResourceList) -> int:
    """Return the amount of a resource in the units of scheduling."""
    quantity = amounts.get(name, Quantity.ZERO)
    return quantity.milli_value if name == CPU else quantity.value
