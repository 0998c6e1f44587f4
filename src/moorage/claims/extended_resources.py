"""Extended resources that devices serve: the class behind each, and the special claim for a pod.

A device class has the extended resource `spec.extendedResourceName` and, always,
`deviceclass.resource.kubernetes.io/<class>`. If several classes have the same name, the newest
wins, so that one class can replace another; of classes of the same age, the first by name.

A node with an extended resource of its own, from a device plugin, serves it with that. Any other
node serves it with devices of the class. They are allocated by one special claim for the pod, which
lives in memory while the scheduler looks for a node, with other requests for each node, and is
created once the node is chosen. One that exists before that is left over from an earlier attempt:
it is deleted, and the pod is retried.

For each resource, in the order of names:

1. Every container that stays (regular ones and sidecars) gets a request of its own.
2. A plain init container ends before later containers start. So it shares the devices of those
   that stay from its position on, and requests only the difference.
3. Plain init containers run one after the other, so one request suffices for these differences:
   the largest, and of equal ones the first. All of them are mapped to it.

# position: the index of a container among init containers and then regular ones
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from moorage.api import names
from moorage.api.core.pod import (
    Container,
    ContainerExtendedResourceRequest,
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodExtendedResourceClaimStatus,
)
from moorage.api.core.resources import ResourceList
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    DEVICE_CLASS_RESOURCE_PREFIX,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from moorage.api.timestamp import NO_TIME
from moorage.claims.pod_claims import ClaimRejection, controller_reference
from moorage.claims.pod_resources import pod_requests

EXACT_COUNT = "ExactCount"

RequestMappings = tuple[ContainerExtendedResourceRequest, ...]
# resource -> how many of it a pod needs
ExtendedNeeds = Mapping[str, int]
# No claim in the cluster can have this name.
IN_MEMORY_NAME = "<extended-resources>"


# --- device classes -------------------------------------------------------------------------------


def is_device_resource(name: str) -> bool:
    """Return whether devices of a class can serve a resource."""
    return name.startswith(DEVICE_CLASS_RESOURCE_PREFIX) or names.is_extended_resource(name)


def implicit_name(class_name: str) -> str:
    """Return the implicit extended resource of a class."""
    return DEVICE_CLASS_RESOURCE_PREFIX + class_name


class DeviceClassIndex:
    """Device classes by extended resource, updated one class at a time."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        # resource -> names of the classes with this name
        self._claimants: dict[str, set[str]] = {}
        # resource -> the class that wins
        self._winners: dict[str, DeviceClass] = {}

    def put_class(self, device_class: DeviceClass) -> None:
        """Add or replace a class."""
        name = device_class.metadata.name
        self.remove_class(name)
        self._classes[name] = device_class
        resource = device_class.spec.extended_resource_name
        if resource is not None:
            self._claimants.setdefault(resource, set()).add(name)
            self._decide(resource)

    def remove_class(self, name: str) -> None:
        """Remove a class, if it exists."""
        removed = self._classes.pop(name, None)
        if removed is None or removed.spec.extended_resource_name is None:
            return
        resource = removed.spec.extended_resource_name
        self._claimants[resource].discard(name)
        self._decide(resource)

    def class_for(self, resource: str) -> DeviceClass | None:
        """Return the class that serves a resource."""
        if resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX):
            return self._classes.get(resource.removeprefix(DEVICE_CLASS_RESOURCE_PREFIX))
        return self._winners.get(resource)

    def resources(self) -> list[str]:
        """Return the explicit extended resources of all classes."""
        return sorted(self._winners)

    def has_class(self, name: str) -> bool:
        """Return whether a class exists."""
        return name in self._classes

    def explicit_name(self, class_name: str) -> str | None:
        """Return the explicit extended resource of a class, whether the class wins it or not."""
        found = self._classes.get(class_name)
        return None if found is None else found.spec.extended_resource_name

    def _decide(self, resource: str) -> None:
        claimants = self._claimants[resource]
        if not claimants:
            del self._claimants[resource]
            self._winners.pop(resource, None)
            return
        # max() keeps the first of equals, which is the first by name.
        self._winners[resource] = max(
            (self._classes[name] for name in sorted(claimants)), key=_created_at
        )


def _created_at(device_class: DeviceClass) -> datetime:
    return (device_class.metadata.creation_timestamp or NO_TIME).instant


# --- node resources of a pod ----------------------------------------------------------------------


def extended_needs(pod: Pod, index: DeviceClassIndex) -> ExtendedNeeds:
    """Return all extended resources of the pod, if devices of a class may have to serve one."""
    if not any(index.class_for(name) for name in _resource_names(pod)):
        return {}
    needs = {
        name: quantity.value
        for name, quantity in pod_requests(pod).items()
        if is_device_resource(name) and not quantity.is_zero
    }
    return needs if any(index.class_for(name) for name in needs) else {}


def _resource_names(pod: Pod) -> set[str]:
    names = set(pod.spec.overhead)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        names.update(container.resources.requests)
    return names


def is_served_by_devices(resource: str, allocatable: ResourceList, index: DeviceClassIndex) -> bool:
    """Return whether a node with these resources needs devices for this one."""
    own = allocatable.get(resource)
    has_none = own is None or own.value == 0
    return has_none and index.class_for(resource) is not None


def needs_on_node(
    needs: ExtendedNeeds, allocatable: ResourceList, index: DeviceClassIndex
) -> ExtendedNeeds | ClaimRejection:
    """Return the needs that this node must serve with devices."""
    served = {}
    for name, count in needs.items():
        if is_served_by_devices(name, allocatable, index):
            served[name] = count
        elif name not in allocatable:
            return ClaimRejection("cannot fit resource")
    return served


# --- requests -------------------------------------------------------------------------------------


class ExtendedRequests(Struct, frozen=True):
    """Requests by name, and the mappings of containers to them."""

    requests: tuple[DeviceRequest, ...]
    mappings: RequestMappings


class _Share(Struct, frozen=True):
    """The devices that a container requests, and the requests of others that it shares."""

    name: str
    count: int
    uses: tuple[str, ...]

    @property
    def all_uses(self) -> tuple[str, ...]:
        return (*self.uses, self.name) if self.count else self.uses


def extended_requests(
    pod: Pod, resources: Collection[str], index: DeviceClassIndex
) -> ExtendedRequests:
    """Return the requests for these resources of the pod, except those without a class."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = index.class_for(resource)
        if device_class is None:
            continue
        shares = _merged(_shares(pod, resource), _plain_positions(pod))
        class_name = device_class.metadata.name
        requests += [_request(request, class_name) for request in shares.values() if request.count]
        mappings += _mappings(pod, resource, shares)
    requests.sort(key=lambda request: request.name)
    return ExtendedRequests(tuple(requests), tuple(mappings))


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)


def _plain_positions(pod: Pod) -> list[int]:
    """Return the positions of init containers that end before others start."""
    return [
        position
        for position, container in enumerate(pod.spec.init_containers)
        if not container.is_sidecar
    ]


def _shares(pod: Pod, resource: str) -> dict[int, _Share]:
    """Return what each container requests, by position: first those that stay."""
    containers = _containers(pod)
    plain = _plain_positions(pod)
    requesting = [place for place, each in enumerate(containers) if _count(each, resource)]
    shares = {
        position: _share(position, containers[position], resource, ())
        for position in requesting
        if position not in plain
    }
    staying = tuple(shares.items())
    for position in requesting:
        if position in plain:
            later = [request for place, request in staying if place >= position]
            shares[position] = _share(position, containers[position], resource, later)
    return shares


def _share(
    position: int, container: Container, resource: str, reusable: Iterable[_Share]
) -> _Share:
    missing = _count(container, resource)
    uses = []
    for request in reusable:
        if missing <= 0:
            break
        uses.append(request.name)
        missing -= request.count
    # The number is the index among all resources that the container requests.
    number = sorted(container.resources.requests).index(resource)
    name = f"container-{position}-request-{number}"
    return _Share(name, max(missing, 0), tuple(uses))


def _merged(shares: dict[int, _Share], plain: list[int]) -> dict[int, _Share]:
    """Return the requests with those of plain init containers merged into the largest."""
    rests = [
        shares[position] for position in plain if position in shares and shares[position].count
    ]
    if not rests:
        return shares
    largest = max(rests, key=lambda request: request.count)
    return {
        position: _sharing(request, largest) if position in plain else request
        for position, request in shares.items()
    }


def _sharing(request: _Share, largest: _Share) -> _Share:
    """Return the request of a plain init container as one that shares the largest."""
    if request is largest or not request.count:
        return request
    return replace(request, count=0, uses=(*request.uses, largest.name))


def _request(request: _Share, class_name: str) -> DeviceRequest:
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode=EXACT_COUNT, count=request.count
    )
    return DeviceRequest(name=request.name, exactly=exactly)


def _mappings(
    pod: Pod, resource: str, shares: dict[int, _Share]
) -> list[ContainerExtendedResourceRequest]:
    containers = _containers(pod)
    return [
        ContainerExtendedResourceRequest(
            container_name=containers[position].name, resource_name=resource, request_name=name
        )
        for position, request in shares.items()
        for name in request.all_uses
    ]


def _count(container: Container, resource: str) -> int:
    quantity = container.resources.requests.get(resource)
    count = None if quantity is None else quantity.as_int64()
    return max(count or 0, 0)


# --- the special claim ----------------------------------------------------------------------------


def special_claim(pod: Pod, *, uid: str) -> ResourceClaim:
    """Return the claim in memory, without requests, with a uid that we make up."""
    metadata = ObjectMeta(
        name=IN_MEMORY_NAME,
        generate_name=f"{pod.metadata.name}-extended-resources-",
        namespace=pod.metadata.namespace,
        uid=uid,
        annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        owner_references=(controller_reference(pod),),
    )
    return ResourceClaim(metadata=metadata)


def find_special(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Return the special claim in the cluster for the pod; of several, the first by name."""
    found = [claim for claim in claims if is_special_for(claim, pod)]
    return min(found, key=lambda claim: claim.metadata.name, default=None)


def is_special_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether a claim is for the extended resources of the pod."""
    metadata = claim.metadata
    if metadata.namespace != pod.metadata.namespace:
        return False
    if metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return False
    own = (pod.metadata.name, pod.metadata.uid)
    return any(
        owner.controller and (owner.name, owner.uid) == own for owner in metadata.owner_references
    )


def is_in_memory(claim: ResourceClaim) -> bool:
    """Return whether the special claim is not in the cluster yet."""
    return claim.metadata.name == IN_MEMORY_NAME


def check_fresh(claim: ResourceClaim) -> ClaimRejection | None:
    """Reject a special claim that is left over from an earlier attempt."""
    if claim.spec.devices.requests is None:
        return None
    return ClaimRejection("cannot schedule extended resource claim")


def with_requests(claim: ResourceClaim, extended: ExtendedRequests) -> ResourceClaim:
    """Return the special claim with the requests for one node."""
    return replace(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=extended.requests)))


def to_create(claim: ResourceClaim) -> ResourceClaim:
    """Return the special claim to create; the server names it."""
    metadata = replace(claim.metadata, name="", uid="")
    return replace(claim, metadata=metadata, status=ResourceClaimStatus())


def extended_status(claim_name: str, mappings: RequestMappings) -> PodExtendedResourceClaimStatus:
    """Return the entry of the special claim in the pod's status."""
    return PodExtendedResourceClaimStatus(request_mappings=mappings, resource_claim_name=claim_name)


def with_claim_name(
    statuses: Iterable[NodeAllocatableResourceClaimStatus], claim_name: str
) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    """Return the node resources of a pod's claims with the name of the created special claim."""
    renamed = (
        replace(status, resource_claim_name=claim_name)
        if status.resource_claim_name == IN_MEMORY_NAME
        else status
        for status in statuses
    )
    return tuple(sorted(renamed, key=lambda status: status.resource_claim_name))
