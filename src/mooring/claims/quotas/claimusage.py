"""What a claim uses of quotas.

1. It is one object.
2. It uses as many devices of each class as it can get: of requests with alternatives the most that
   any of them gets of the class, and where all devices are asked for the most that a claim holds.
3. The devices of a class count as its extended resource, too, under both of its names: so a bound
   on the resource holds however devices are asked for. The special claim of a pod counts only for
   what the pod itself is not charged for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.api.core.resources import ResourceList
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from mooring.api.timestamp import NO_TIME, Timestamp
from mooring.claims.classindex import ClassIndex
from mooring.claims.owners import owning_pod
from mooring.claims.quotas.amounts import ONE, ZERO, added
from mooring.claims.quotas.names import CLAIM_COUNT, CLASS_DEVICES, IMPLICIT, REQUESTS
from mooring.claims.quotas.podusage import pod_usage

DEVICES_MAX = 32  # what one claim can be given


class Surroundings(Struct, frozen=True):
    """What usage depends on besides the object itself."""

    now: Timestamp
    classes: ClassIndex
    has_extended: bool = True  # whether devices of a class count as its extended resource
    pods: Mapping[str, Pod] = {}  # of the namespace, by name: at least the owners of special claims
    special: Mapping[str, Sequence[ResourceClaim]] = {}  # special claims, by uid of their pod


def claim_usage(claim: ResourceClaim, around: Surroundings) -> ResourceList:
    """Return what the claim uses of quotas."""
    devices = _devices(claim)
    usage = {f"{name}{CLASS_DEVICES}": amount for name, amount in devices.items()}
    usage[CLAIM_COUNT] = ONE
    if around.has_extended:
        usage |= _extended(devices, _charged_to_pod(claim, around), around.classes)
    return usage


def is_special(claim: ResourceClaim) -> bool:
    """Return whether a claim says that it stands for the extended resources of a pod."""
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true"


def special_by_pod(claims: Iterable[ResourceClaim]) -> dict[str, list[ResourceClaim]]:
    """Return the special claims, by uid of the pod that each is made for."""
    found: dict[str, list[ResourceClaim]] = {}
    for claim in claims:
        owner = owning_pod(claim) if is_special(claim) else None
        if owner is not None:
            found.setdefault(owner.uid, []).append(claim)
    return found


# --- devices --------------------------------------------------------------------------------------


def _devices(claim: ResourceClaim) -> ResourceList:
    """Return how many devices of each class the claim may get."""
    total: ResourceList = {}
    for request in claim.spec.devices.requests or ():
        total = added(total, _most(request))
    return total


def _most(request: DeviceRequest) -> ResourceList:
    asks: Sequence[DeviceSubRequest | ExactDeviceRequest] = request.first_available
    if not asks and request.exactly is not None:
        asks = (request.exactly,)
    most: ResourceList = {}
    for ask in asks:
        count = Quantity.from_int(_count(ask))
        most[ask.device_class_name] = max(count, most.get(ask.device_class_name, ZERO))
    return most


def _count(ask: DeviceSubRequest | ExactDeviceRequest) -> int:
    match ask.allocation_mode:
        case "ExactCount":
            return ask.count or 0
        case "All":
            return DEVICES_MAX
    return 0


# --- extended resources ---------------------------------------------------------------------------


def _extended(devices: ResourceList, charged: ResourceList, classes: ClassIndex) -> ResourceList:
    """Return devices as extended resources, less what is charged already."""
    usage: ResourceList = {}
    for class_name, amount in devices.items():
        if not class_name:
            continue
        usage[f"{IMPLICIT}{class_name}"] = amount
        explicit = classes.explicit_name(class_name)
        if explicit:
            usage[f"{REQUESTS}{explicit}"] = amount
    rests = {name: amount - charged.get(name, ZERO) for name, amount in usage.items()}
    return {name: rest for name, rest in rests.items() if rest.sign > 0}


def _charged_to_pod(claim: ResourceClaim, around: Surroundings) -> ResourceList:
    """Return what the pod of a special claim is charged for; nothing if the claim only says so."""
    owner = owning_pod(claim) if is_special(claim) else None
    pod = None if owner is None else around.pods.get(owner.name)
    if owner is None or pod is None or pod.metadata.uid != owner.uid:
        return {}
    status = pod.status.extended_resource_claim_status
    if status is not None and status.resource_claim_name != claim.metadata.name:
        return {}
    if status is None and not _is_first(claim, around.special.get(owner.uid, ())):
        return {}
    return pod_usage(pod, around.now)


def _is_first(claim: ResourceClaim, others: Sequence[ResourceClaim]) -> bool:
    """Return whether no other special claim of the pod came before this one."""
    return all(_place(claim) <= _place(other) for other in others)


def _place(claim: ResourceClaim) -> tuple[datetime, str]:
    metadata = claim.metadata
    return (metadata.creation_timestamp or NO_TIME).instant, metadata.name
