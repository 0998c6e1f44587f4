"""Rules of a pod status: conditions, resource claims, the health of devices.

`status_fields` has the rules of addresses, users and states.
"""

from __future__ import annotations

from moorage.api.core.pod import (
    CLAIM_STATUS_PREFIX,
    HEALTHY,
    POD_SCHEDULED,
    UNHEALTHY,
    UNKNOWN,
    Container,
    ContainerExtendedResourceRequest,
    ContainerStatus,
    NodeAllocatableMappedResource,
    NodeAllocatableOverheadResource,
    Pod,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceHealth,
    ResourceStatus,
    health_name,
)
from moorage.api.field_path import Path, root
from moorage.api.names import byte_length
from moorage.api.quantity import Quantity
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.validation.field_rules import label, label_name, subdomain
from moorage.validation.metadata import IMMUTABLE
from moorage.validation.pod.resources import is_node_allocatable
from moorage.validation.pod.status_fields import (
    validate_addresses,
    validate_states,
    validate_user,
)

STATUS = root("status")

HEALTH_MESSAGE_MAX_BYTES = 1024

_SYSTEM_CONDITIONS = {POD_SCHEDULED, "Ready", "Initialized"}
_NOT_A_CLAIM = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
    "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)


def validate_pod_status(new: Pod, old: Pod) -> ErrorList:
    """Validate a changed status."""
    status = new.status
    found = _validate_conditions(status.conditions, STATUS.child("conditions"))
    found += _validate_nomination(new, old, STATUS.child("nominatedNodeName"))
    if status.observed_generation < 0:
        path = STATUS.child("observedGeneration")
        found.append(invalid(path, status.observed_generation, "must be a non-negative integer"))
    if status.qos_class != old.status.qos_class:
        found.append(invalid(STATUS.child("qosClass"), status.qos_class, IMMUTABLE))
    found += validate_states(new, old, STATUS)
    found += _validate_claims(status, new.spec)
    found += validate_addresses(new, old, STATUS)
    for name, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
        ("ephemeralContainerStatuses", status.ephemeral_container_statuses),
    ):
        for position, container in enumerate(statuses):
            found += validate_user(container, new.spec, STATUS.child(name).index(position))
    return found + _validate_healths(status, new.spec)


def _validate_claims(status: PodStatus, spec: PodSpec) -> ErrorList:
    found = _validate_claim_statuses(status, spec, STATUS.child("resourceClaimStatuses"))
    extended = status.extended_resource_claim_status
    if extended is not None:
        path = STATUS.child("extendedResourceClaimStatus")
        found += _validate_extended_claim(extended, spec, path)
    path = STATUS.child("nodeAllocatableResourceClaimStatuses")
    return found + _validate_node_allocatable(status, spec, path)


def _validate_conditions(conditions: tuple[PodCondition, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    for position, condition in enumerate(conditions):
        place = path.index(position)
        if condition.observed_generation < 0:
            detail = "must be a non-negative integer"
            generation = condition.observed_generation
            found.append(invalid(place.child("observedGeneration"), generation, detail))
        if condition.type not in _SYSTEM_CONDITIONS:
            found += label_name(condition.type, place.child("Type"))
    return found


def _validate_nomination(new: Pod, old: Pod, path: Path) -> ErrorList:
    nominated = new.status.nominated_node_name
    if not nominated or nominated == old.status.nominated_node_name:
        return []
    found = subdomain(nominated, path)
    if old.spec.node_name:
        detail = "may not be set on pods that are already bound to a node"
        found.append(forbidden(path, detail))
    return found


# --- claims -------------------------------------------------------------------------------


def _validate_claim_statuses(status: PodStatus, spec: PodSpec, path: Path) -> ErrorList:
    found: ErrorList = []
    wanted = {claim.name for claim in spec.resource_claims}
    seen: set[str] = set()
    for position, claim in enumerate(status.resource_claim_statuses or ()):
        place = path.index(position)
        if claim.name not in wanted:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            found.append(invalid(place.child("name"), claim.name, detail))
        if claim.name in seen:
            found.append(duplicate(place.child("name"), claim.name))
        seen.add(claim.name)
        if claim.resource_claim_name is not None:
            found += subdomain(claim.resource_claim_name, place.child("resourceClaimName"))
    return found


def _validate_extended_claim(
    status: PodExtendedResourceClaimStatus, spec: PodSpec, path: Path
) -> ErrorList:
    found: ErrorList = []
    mappings_path = path.child("requestMappings")
    if not status.request_mappings:
        found.append(required(mappings_path, "at least one request mapping is required"))
    # Regular containers last: they win over init containers of the same name.
    containers = {c.name: c for c in (*spec.init_containers, *spec.containers)}
    seen: set[tuple[str, str, str]] = set()
    for position, mapping in enumerate(status.request_mappings):
        place = mappings_path.index(position)
        found += _validate_mapped(mapping, containers, place)
        # Kubernetes omits the index of the mapping here.
        found += label(mapping.request_name, path.child("requestName"))
        found += _validate_mapping_is_new(mapping, seen, place)
    claim_path = path.child("resourceClaimName")
    if not status.resource_claim_name:
        return [*found, required(claim_path)]
    return found + subdomain(status.resource_claim_name, claim_path)


def _validate_mapped(
    mapping: ContainerExtendedResourceRequest, containers: dict[str, Container], path: Path
) -> ErrorList:
    container = containers.get(mapping.container_name)
    if container is None:
        detail = (
            "must match the name of an entry in spec.initContainers.name or spec.containers.name"
        )
        return [invalid(path.child("containerName"), mapping.container_name, detail)]
    if mapping.resource_name not in container.resources.requests:
        detail = (
            "must match the extended resource name of an entry in "
            "spec.initContainers.resources.requests or spec.containers.resources.requests"
        )
        return [invalid(path.child("resourceName"), mapping.resource_name, detail)]
    return []


def _validate_mapping_is_new(
    mapping: ContainerExtendedResourceRequest, seen: set[tuple[str, str, str]], path: Path
) -> ErrorList:
    key = (mapping.container_name, mapping.resource_name, mapping.request_name)
    if key in seen:
        fields = ("containerName", "resourceName", "requestName")
        return [duplicate(path.child(name), value) for name, value in zip(fields, key, strict=True)]
    seen.add(key)
    return []


def _validate_node_allocatable(status: PodStatus, spec: PodSpec, path: Path) -> ErrorList:
    known = {claim.resource_claim_name for claim in spec.resource_claims}
    known |= {claim.resource_claim_name for claim in status.resource_claim_statuses or ()}
    if status.extended_resource_claim_status is not None:
        known.add(status.extended_resource_claim_status.resource_claim_name)
    found: ErrorList = []
    for position, entry in enumerate(status.node_allocatable_resource_claim_statuses or ()):
        place = path.index(position)
        if not entry.resource_claim_name:
            continue
        if entry.resource_claim_name not in known:
            detail = "no mapping found in pod reference"
            found.append(
                invalid(place.child("resourceClaimName"), entry.resource_claim_name, detail)
            )
        found += _validate_mapping(entry.mapping, place.child("mapping"))
        found += _validate_overhead(entry.overhead, place.child("overhead"))
    return found


def _validate_mapping(mapping: tuple[NodeAllocatableMappedResource, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    for position, item in enumerate(mapping):
        place = path.index(position)
        found += _validate_node_resource(item.name, place)
        found += _validate_not_negative(item.quantity, place.child("quantity"))
    return found


def _validate_overhead(
    overhead: tuple[NodeAllocatableOverheadResource, ...], path: Path
) -> ErrorList:
    found: ErrorList = []
    for position, item in enumerate(overhead):
        place = path.index(position)
        found += _validate_node_resource(item.name, place)
        if item.per_pod is None and item.per_container is None:
            detail = "at least one of perPod or perContainer must be set"
            found.append(invalid(place, "", detail))
        found += _validate_not_negative(item.per_pod, place.child("perPod"))
        found += _validate_not_negative(item.per_container, place.child("perContainer"))
    return found


def _validate_node_resource(name: str, path: Path) -> ErrorList:
    if is_node_allocatable(name):
        return []
    return [invalid(path.child("name"), name, "must be a node allocatable resource name")]


def _validate_not_negative(amount: Quantity | None, path: Path) -> ErrorList:
    if amount is None or amount.sign >= 0:
        return []
    return [invalid(path, str(amount), "must be non-negative")]


# --- health -------------------------------------------------------------------------------


def _validate_healths(status: PodStatus, spec: PodSpec) -> ErrorList:
    extended = status.extended_resource_claim_status
    found: ErrorList = []
    for name, statuses, containers in (
        ("containerStatuses", status.container_statuses, spec.containers),
        ("initContainerStatuses", status.init_container_statuses, spec.init_containers),
    ):
        by_name = {container.name: container for container in reversed(containers)}
        for position, container_status in enumerate(statuses):
            path = STATUS.child(name).index(position).child("allocatedResourcesStatus")
            container = by_name.get(container_status.name)
            found += _validate_container_health(container_status, container, extended, path)
    path = STATUS.child("ephemeralContainerStatuses")
    return found + [
        forbidden(
            path.index(position).child("allocatedResourcesStatus"),
            "must not be specified in container status",
        )
        for position, container_status in enumerate(status.ephemeral_container_statuses)
        if container_status.allocated_resources_status
    ]


def _validate_container_health(
    status: ContainerStatus,
    container: Container | None,
    extended: PodExtendedResourceClaimStatus | None,
    path: Path,
) -> ErrorList:
    found: ErrorList = []
    for position, resource in enumerate(status.allocated_resources_status):
        place = path.index(position)
        # The status of a container that the pod does not have is ignored.
        if container is not None:
            found += _validate_health_name(resource, container, extended, place.child("name"))
        found += _validate_devices(resource.resources, place.child("resources"))
    return found


def _validate_health_name(
    resource: ResourceStatus,
    container: Container,
    extended: PodExtendedResourceClaimStatus | None,
    path: Path,
) -> ErrorList:
    name = resource.name
    if not name.startswith(CLAIM_STATUS_PREFIX):
        if name in container.resources.requests:
            return []
        return [invalid(path, name, "must match one of the container's resource requests")]
    claims = container.resources.claims
    if any(name == health_name(claim.name, claim.request) for claim in claims):
        return []
    if extended is not None and _is_extended(name, container, extended):
        return []
    return [invalid(path, name, _NOT_A_CLAIM)]


def _is_extended(name: str, container: Container, extended: PodExtendedResourceClaimStatus) -> bool:
    """Return whether the name is a request that serves an extended resource of the container."""
    claim, _, request = name.removeprefix(CLAIM_STATUS_PREFIX).partition("/")
    if not claim or not request or claim != extended.resource_claim_name:
        return False
    requests = container.resources.requests
    return any(
        mapping.container_name == container.name
        and mapping.request_name == request
        and not requests.get(mapping.resource_name, _ZERO).is_zero
        for mapping in extended.request_mappings
    )


_ZERO = Quantity.from_int(0)


def _validate_devices(devices: tuple[ResourceHealth, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    seen: set[str] = set()
    for position, device in enumerate(devices):
        place = path.index(position)
        healths = (HEALTHY, UNHEALTHY, UNKNOWN)
        if device.health not in healths:
            found.append(not_supported(place.child("health"), device.health, healths))
        if device.message is not None:
            found += _validate_health_message(device.message, place.child("message"))
        if device.resource_id in seen:
            found.append(duplicate(place.child("resourceID"), device.resource_id))
        seen.add(device.resource_id)
    return found


def _validate_health_message(message: str, path: Path) -> ErrorList:
    if not message:
        return [required(path, "must be non-empty if specified")]
    if byte_length(message) > HEALTH_MESSAGE_MAX_BYTES:
        return [too_long(path, HEALTH_MESSAGE_MAX_BYTES)]
    return []
