"""How much of a quota a pod or a claim uses.

Every stored pod is one object (`count/pods`). Its requests and limits, and `pods`, count until the
pod has ended, or until its grace period is over while it is deleted.

A claim uses
1. one object;
2. as many devices of each class as it can get: for a prioritized list, the maximum of its
   alternatives; for all devices, the most that one claim can hold;
3. the same amounts of the extended resource of the class, under both of its names, so that a limit
   on the resource holds however devices are requested. The special claim of a pod counts only for
   resources not charged to the pod itself.

Names of a quota:

    count/PLURAL[.GROUP]                                objects of a resource
    pods, configmaps, …                                 by older names; pods that are not done
    [requests.]cpu, limits.memory …                     requests and limits of pods
    requests.NAME                                       an extended resource, of pods and of claims
    CLASS.deviceclass.resource.k8s.io/devices           devices of a class that claims request
    requests.deviceclass.resource.kubernetes.io/CLASS   the same as an extended resource
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from moorage.api.core.pod import (
    Container,
    ContainerResources,
    Pod,
    raise_resources_to,
    resources_at_once,
)
from moorage.api.core.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    PODS,
    ResourceList,
)
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    DEVICE_CLASS_RESOURCE_PREFIX,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.claims.extended_resources import DeviceClassIndex, is_device_resource
from moorage.claims.pod_claims import owning_pod
from moorage.claims.pod_resources import (
    RequestSources,
    is_pod_level_resource,
    is_resize_infeasible,
    requests_from,
)

DEVICES_MAX = 32  # that one claim can have

REQUESTS = "requests."
LIMITS = "limits."
CLASS_DEVICES = ".deviceclass.resource.k8s.io/devices"
IMPLICIT = REQUESTS + DEVICE_CLASS_RESOURCE_PREFIX

ZERO = Quantity.ZERO
ONE = Quantity.from_int(1)

COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)

# Resources of the core group that are counted under their plurals too.
_OLDER = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})

# The server has no objects of these kinds.
_UNSERVED = frozenset({"replicationcontrollers"})


def count_name(group: str, plural: str) -> str:
    """Return the name under which the objects of a resource are counted."""
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def object_names(group: str, plural: str) -> frozenset[str]:
    """Return all names under which the objects of a resource are counted."""
    older = {plural} & _OLDER if group == "" else set()
    return frozenset({count_name(group, plural)} | older)


POD_NAMES = frozenset(
    {count_name("", PODS), PODS}
    | set(COMPUTE)
    | {f"{prefix}{name}" for prefix in (REQUESTS, LIMITS) for name in COMPUTE}
)
CLAIM_COUNT = count_name("resource.k8s.io", "resourceclaims")
POD_COUNT = count_name("", PODS)


def is_of_pods(name: str) -> bool:
    """Return whether pods use a name."""
    is_huge_pages = name.startswith((HUGE_PAGES_PREFIX, f"{REQUESTS}{HUGE_PAGES_PREFIX}"))
    return name in POD_NAMES or is_huge_pages or is_extended(name)


def is_extended(name: str) -> bool:
    """Return whether a name means an extended resource."""
    if not name.startswith(REQUESTS):
        return False
    return name.startswith(IMPLICIT) or ("/" in name and "kubernetes.io/" not in name)


def is_unserved(name: str) -> bool:
    """Return whether a name counts objects that this server does not have."""
    return name in _UNSERVED


# --- usage ----------------------------------------------------------------------------------------

_WITH_STATUS = RequestSources(with_status=True)

# If a quota limits one of these, every container must specify it.
_MUST_SPECIFY = frozenset(
    f"{prefix}{name}" for prefix in ("", REQUESTS, LIMITS) for name in (CPU, MEMORY)
)


def pod_usage(pod: Pod, now: Timestamp) -> ResourceList:
    """Return the quota usage of the pod."""
    counted: ResourceList = {POD_COUNT: ONE}
    if not is_living(pod, now):
        return counted
    return added(counted, _quota_amounts(requests_from(pod, _WITH_STATUS), pod_limits(pod)))


def is_living(pod: Pod, now: Timestamp) -> bool:
    """Return whether the requests of a pod count."""
    if pod.status.phase in ("Failed", "Succeeded"):
        return False
    metadata = pod.metadata
    grace_s = metadata.deletion_grace_period_seconds
    if metadata.deletion_timestamp is None or grace_s is None:
        return True
    # A pod on a lost node stays for ever; it must not block others.
    return not metadata.deletion_timestamp.after(grace_s) < now


def pod_limits(pod: Pod) -> ResourceList:
    """Return the limits of a pod: the maximum of spec and status."""
    reported = resources_at_once(pod, _reported_limits(pod))
    total = (
        {} if is_resize_infeasible(pod) else resources_at_once(pod, lambda c: c.resources.limits)
    )
    raise_resources_to(total, reported)
    if pod.spec.resources is not None:
        limits = pod.spec.resources.limits.items()
        total |= {name: amount for name, amount in limits if is_pod_level_resource(name)}
    for name, amount in pod.spec.overhead.items():
        if name in total and not total[name].is_zero:
            total[name] += amount
    return total


def missing_amounts(pod: Pod, names: Collection[str]) -> str:
    """Return what containers must specify for these names; "" if they do."""
    resources = pod.spec.resources
    whole = () if resources is None else (*resources.requests, *resources.limits)
    if any(map(is_pod_level_resource, whole)):
        return ""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    parts = []
    for name in sorted(_MUST_SPECIFY.intersection(names)):
        silent = {
            container.name for container in containers if name not in _container_amounts(container)
        }
        if silent:
            parts.append(f"{name} for: {','.join(sorted(silent))}")
    return f"must specify {'; '.join(parts)}" if parts else ""


def _container_amounts(container: Container) -> ResourceList:
    return _quota_amounts(container.resources.requests, container.resources.limits)


def _quota_amounts(requests: ResourceList, limits: ResourceList) -> ResourceList:
    """Return requests and limits by the names of quotas."""
    usage = {PODS: ONE}
    for name, amount in requests.items():
        if name in COMPUTE or name.startswith(HUGE_PAGES_PREFIX):
            usage[name] = usage[f"{REQUESTS}{name}"] = amount
        elif is_device_resource(name):
            usage[f"{REQUESTS}{name}"] = amount
    for name in COMPUTE:
        if name in limits:
            usage[f"{LIMITS}{name}"] = limits[name]
    return usage


def _reported_limits(pod: Pod) -> ContainerResources:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    by_name = {status.name: status.resources for status in statuses}

    def limits(container: Container) -> ResourceList:
        resources = by_name.get(container.name)
        return container.resources.limits if resources is None else resources.limits

    return limits


# --- claims ---------------------------------------------------------------------------------------


class UsageContext(Struct, frozen=True):
    """What usage depends on, besides the object itself."""

    now: Timestamp
    classes: DeviceClassIndex
    has_extended: bool = True  # whether devices of a class count as its extended resource
    pods: Mapping[str, Pod] = {}  # by name, at least the owners of special claims
    special: Mapping[str, Sequence[ResourceClaim]] = {}  # special claims, by uid of their pod


def claim_usage(claim: ResourceClaim, context: UsageContext) -> ResourceList:
    """Return the quota usage of the claim."""
    devices = _devices(claim)
    usage = {f"{name}{CLASS_DEVICES}": amount for name, amount in devices.items()}
    usage[CLAIM_COUNT] = ONE
    if context.has_extended:
        usage |= _extended(devices, _charged_to_pod(claim, context), context.classes)
    return usage


def is_special(claim: ResourceClaim) -> bool:
    """Return whether a claim has the annotation of a special claim for extended resources."""
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true"


def special_by_pod(claims: Iterable[ResourceClaim]) -> dict[str, list[ResourceClaim]]:
    """Return the special claims by the uid of their pod."""
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
        total = added(total, _most_devices(request))
    return total


def _most_devices(request: DeviceRequest) -> ResourceList:
    alternatives: Sequence[DeviceSubRequest | ExactDeviceRequest] = request.first_available
    if not alternatives and request.exactly is not None:
        alternatives = (request.exactly,)
    most: ResourceList = {}
    for each in alternatives:
        count = Quantity.from_int(_count(each))
        most[each.device_class_name] = max(count, most.get(each.device_class_name, ZERO))
    return most


def _count(request: DeviceSubRequest | ExactDeviceRequest) -> int:
    match request.allocation_mode:
        case "ExactCount":
            return request.count or 0
        case "All":
            return DEVICES_MAX
    return 0


# --- extended resources ---------------------------------------------------------------------------


def _extended(
    devices: ResourceList, charged: ResourceList, classes: DeviceClassIndex
) -> ResourceList:
    """Return devices as extended resources, less those charged to the pod."""
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


def _charged_to_pod(claim: ResourceClaim, context: UsageContext) -> ResourceList:
    """Return the charges of a special claim's pod; nothing if it is not the pod's."""
    owner = owning_pod(claim) if is_special(claim) else None
    pod = None if owner is None else context.pods.get(owner.name)
    if owner is None or pod is None or pod.metadata.uid != owner.uid:
        return {}
    status = pod.status.extended_resource_claim_status
    if status is not None and status.resource_claim_name != claim.metadata.name:
        return {}
    if status is None and not _is_first(claim, context.special.get(owner.uid, ())):
        return {}
    return pod_usage(pod, context.now)


def _is_first(claim: ResourceClaim, others: Sequence[ResourceClaim]) -> bool:
    """Return whether this is the oldest special claim of the pod."""
    return all(_creation_order(claim) <= _creation_order(other) for other in others)


def _creation_order(claim: ResourceClaim) -> tuple[datetime, str]:
    metadata = claim.metadata
    return (metadata.creation_timestamp or NO_TIME).instant, metadata.name


# --- amounts --------------------------------------------------------------------------------------


def added(first: ResourceList, second: ResourceList) -> ResourceList:
    """Return the sum, name by name."""
    total = dict(first)
    for name, amount in second.items():
        before = total.get(name)
        total[name] = amount if before is None else before + amount
    return total


def grown(before: ResourceList, after: ResourceList) -> ResourceList:
    """Return the increase of the amounts that have grown."""
    growth = {name: amount - before.get(name, ZERO) for name, amount in after.items()}
    return {name: amount for name, amount in growth.items() if amount.sign > 0}


def restricted_to(amounts: ResourceList, names: Collection[str]) -> ResourceList:
    """Return the amounts of these names only."""
    return {name: amount for name, amount in amounts.items() if name in names}


def without_zeros(amounts: ResourceList) -> ResourceList:
    """Return the amounts that are not zero."""
    return {name: amount for name, amount in amounts.items() if not amount.is_zero}


def names_beyond(amounts: ResourceList, bounds: ResourceList) -> list[str]:
    """Return the names whose amounts exceed their bounds."""
    return [name for name, amount in amounts.items() if name in bounds and bounds[name] < amount]


def format_amounts(amounts: ResourceList) -> str:
    """Format amounts for messages, by name: `cpu=2,memory=1Gi`."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def format_names(names: Iterable[str]) -> str:
    """Format names for messages."""
    return ",".join(sorted(names))
