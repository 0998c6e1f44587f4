"""The total requests of a pod: of its containers, at the pod level, and of its claims.

1. Containers are summed by `moorage.api.core.pod.resources_at_once`.
2. The node allocatable resources of the pod's claims are added.
3. Pod-level requests replace those of containers and claims.
4. The overhead of the pod is added.

On its node a pod counts with the maximum of requested, allocated and used resources, because its
requests may be resized in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moorage.api.core.pod import (
    Container,
    ContainerResources,
    ContainerStatus,
    NodeAllocatableResourceClaimStatus,
    Pod,
    add_resources,
    raise_resources_to,
    resources_at_once,
)
from moorage.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, ResourceList
from moorage.api.quantity import Quantity

RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"

_NO_STATUS = ContainerStatus()

ClaimStatuses = Iterable[NodeAllocatableResourceClaimStatus]


class RequestSources(NamedTuple):
    """What to sum."""

    claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()  # of the pod's claims
    defaults: Mapping[str, Quantity] = {}  # for containers without a request
    with_pod_level: bool = True
    with_status: bool = False


SPEC_REQUESTS = RequestSources()


def pod_requests(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return the requests that a node must have free for the pod."""
    return requests_from(pod, RequestSources(tuple(claim_statuses)))


def requests_from(pod: Pod, sources: RequestSources) -> ResourceList:
    """Return the requests of a pod, from these sources."""
    total = _container_requests(pod, sources)
    if sources.with_pod_level and has_pod_level_requests(pod):
        total |= _pod_level_requests(pod, with_status=sources.with_status)
    add_resources(total, pod.spec.overhead)
    return total


def container_requests(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return the requests of the containers and claims of a pod."""
    return _container_requests(pod, RequestSources(tuple(claim_statuses)))


def container_limits(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return the limits of the containers and claims of a pod.

    Claims raise declared limits; huge pages cannot be overcommitted, so claims limit them even if
    no limit is declared.
    """
    total = resources_at_once(pod, lambda container: container.resources.limits)
    raised = {
        name: quantity
        for name, quantity in claim_resources(claim_statuses).items()
        if name in total or is_huge_page(name)
    }
    add_resources(total, raised)
    return total


def claim_resources(claim_statuses: ClaimStatuses) -> ResourceList:
    """Return the node resources of claims: mapped, per pod and per container."""
    total: ResourceList = {}
    for status in claim_statuses:
        for mapped in status.mapping:
            if mapped.quantity is not None:
                add_resources(total, {mapped.name: mapped.quantity})
        for overhead in status.overhead:
            if overhead.per_pod is not None:
                add_resources(total, {overhead.name: overhead.per_pod})
            if overhead.per_container is not None and status.containers:
                add_resources(
                    total, {overhead.name: overhead.per_container * len(status.containers)}
                )
    return total


def container_claim_resources(claim_statuses: ClaimStatuses, container: str) -> ResourceList:
    """Return the node resources of one container's claims."""
    total: ResourceList = {}
    for status in claim_statuses:
        if container not in status.containers:
            continue
        for mapped in status.mapping:
            if mapped.quantity is not None:
                add_resources(total, {mapped.name: mapped.quantity})
        for overhead in status.overhead:
            per_pod = overhead.per_pod or Quantity.ZERO
            add_resources(
                total, {overhead.name: per_pod + (overhead.per_container or Quantity.ZERO)}
            )
    return total


def is_huge_page(name: str) -> bool:
    """Return whether a resource is huge pages of any size."""
    return name.startswith(HUGE_PAGES_PREFIX)


def is_pod_level_resource(name: str) -> bool:
    """Return whether a resource can be requested at the pod level."""
    return name in (CPU, MEMORY) or is_huge_page(name)


def has_pod_level_requests(pod: Pod) -> bool:
    """Return whether a pod has pod-level requests."""
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level_resource, resources.requests))


# --- sums -----------------------------------------------------------------------------------------


def _pod_level_requests(pod: Pod, *, with_status: bool) -> ResourceList:
    assert pod.spec.resources is not None
    requests = dict(pod.spec.resources.requests)
    if with_status and pod.status.resources is not None:
        requests = {} if is_resize_infeasible(pod) else requests
        raise_resources_to(requests, pod.status.resources.requests)
        raise_resources_to(requests, pod.status.allocated_resources)
    return {name: amount for name, amount in requests.items() if is_pod_level_resource(name)}


def _container_requests(pod: Pod, sources: RequestSources) -> ResourceList:
    """Return the sum over containers and claims: of the spec, or the maximum of spec and status."""
    requested = resources_at_once(pod, _completed(lambda each: each.resources.requests, sources))
    add_resources(requested, claim_resources(sources.claim_statuses))
    if not sources.with_status or not has_resource_status(pod):
        return requested
    total = {} if is_resize_infeasible(pod) else requested
    for reported in _reported_requests(pod, sources):
        raise_resources_to(total, reported)
    return total


def _reported_requests(pod: Pod, sources: RequestSources) -> tuple[ResourceList, ResourceList]:
    """Return the allocated resources, with claims, and the used ones."""
    whole = reported_at_pod_level(pod)
    if whole is not None:
        return whole
    allocated, used = reported_by_container(pod)
    total = resources_at_once(pod, _completed(allocated, sources))
    add_resources(total, claim_resources(sources.claim_statuses))
    return total, resources_at_once(pod, _completed(used, sources))


def _completed(source: ContainerResources, sources: RequestSources) -> ContainerResources:
    """Return a source with the defaults added."""
    defaults = sources.defaults
    return (lambda container: {**defaults, **source(container)}) if defaults else source


# --- resizes --------------------------------------------------------------------------------------


def is_resize_infeasible(pod: Pod) -> bool:
    """Return whether the node cannot satisfy the requests: then they do not count."""
    for condition in pod.status.conditions:
        if condition.type == RESIZE_PENDING:
            return condition.reason == INFEASIBLE
    return False


def has_resource_status(pod: Pod) -> bool:
    """Return whether the status may differ from the spec."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return bool(
        pod.status.allocated_resources
        or pod.status.conditions
        or any(status.allocated_resources or status.resources for status in statuses)
    )


def reported_at_pod_level(pod: Pod) -> tuple[ResourceList, ResourceList] | None:
    """Return the allocated and used resources, if the status has them at the pod level."""
    whole = pod.status.resources
    if pod.status.allocated_resources and whole is not None and whole.requests:
        return pod.status.allocated_resources, whole.requests
    return None


def reported_by_container(pod: Pod) -> tuple[ContainerResources, ContainerResources]:
    """Return the sources of a container's allocated and used resources."""
    by_name = {
        status.name: status
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    is_infeasible = is_resize_infeasible(pod)

    def allocated(container: Container) -> ResourceList:
        status = by_name.get(container.name, _NO_STATUS)
        return status.allocated_resources or ({} if is_infeasible else container.resources.requests)

    def used(container: Container) -> ResourceList:
        resources = by_name.get(container.name, _NO_STATUS).resources
        return (resources.requests if resources else {}) or allocated(container)

    return allocated, used
