"""What a pod asks for in all: of its containers, of the pod as a whole, of its claims.

1. Containers count as `api.core.resource_sums` has it.
2. The node resources that come with the pod's claims are added.
3. What the pod as a whole asks for takes the place of what its containers and claims ask for.
4. The overhead of running the pod comes on top.

On its node a pod counts with the most of what it asks for, was given and uses (`resizes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import NodeAllocatableResourceClaimStatus
from mooring.api.core.resource_sums import Source, add, at_once, raise_to
from mooring.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, ResourceList
from mooring.api.quantity import Quantity
from mooring.claims.resizes import (
    has_resource_status,
    is_resize_infeasible,
    reported_as_a_whole,
    reported_by_container,
)

ClaimStatuses = Iterable[NodeAllocatableResourceClaimStatus]


class Reading(NamedTuple):
    """Which sources count."""

    claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()  # what comes with claims
    defaults: Mapping[str, Quantity] = {}  # what a container counts for that does not say
    with_pod_level: bool = True
    with_status: bool = False


ASKED = Reading()


def pod_requests(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return what a node must have free for the pod."""
    return requests_read(pod, Reading(tuple(claim_statuses)))


def requests_read(pod: Pod, reading: Reading) -> ResourceList:
    """Return what the pod asks for, as a reading has it."""
    total = _container_requests(pod, reading)
    if reading.with_pod_level and has_pod_level_requests(pod):
        total |= _pod_level_requests(pod, with_status=reading.with_status)
    add(total, pod.spec.overhead)
    return total


def container_requests(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return what the containers and the claims of the pod ask for."""
    return _container_requests(pod, Reading(tuple(claim_statuses)))


def container_limits(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return what the containers and the claims of the pod may take.

    Claims raise limits that are declared; huge pages cannot be overcommitted, so these are
    limited by claims alone, too.
    """
    total = at_once(pod, lambda container: container.resources.limits)
    raised = {
        name: quantity
        for name, quantity in claim_resources(claim_statuses).items()
        if name in total or is_huge_page(name)
    }
    add(total, raised)
    return total


def claim_resources(claim_statuses: ClaimStatuses) -> ResourceList:
    """Return the node resources that come with claims: mapped, per pod and per container."""
    total: ResourceList = {}
    for status in claim_statuses:
        for mapped in status.mapping:
            if mapped.quantity is not None:
                add(total, {mapped.name: mapped.quantity})
        for overhead in status.overhead:
            if overhead.per_pod is not None:
                add(total, {overhead.name: overhead.per_pod})
            if overhead.per_container is not None and status.containers:
                add(total, {overhead.name: overhead.per_container * len(status.containers)})
    return total


def container_claim_resources(claim_statuses: ClaimStatuses, container: str) -> ResourceList:
    """Return the node resources that one container may take by its claims."""
    total: ResourceList = {}
    for status in claim_statuses:
        if container not in status.containers:
            continue
        for mapped in status.mapping:
            if mapped.quantity is not None:
                add(total, {mapped.name: mapped.quantity})
        for overhead in status.overhead:
            per_pod = overhead.per_pod or Quantity.ZERO
            add(total, {overhead.name: per_pod + (overhead.per_container or Quantity.ZERO)})
    return total


def is_huge_page(name: str) -> bool:
    """Tell whether a resource is huge pages of some size."""
    return name.startswith(HUGE_PAGES_PREFIX)


def is_pod_level_resource(name: str) -> bool:
    """Tell whether a pod can ask for the resource as a whole."""
    return name in (CPU, MEMORY) or is_huge_page(name)


def has_pod_level_requests(pod: Pod) -> bool:
    """Tell whether the pod asks for something as a whole."""
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level_resource, resources.requests))


# --- sums -----------------------------------------------------------------------------------


def _pod_level_requests(pod: Pod, *, with_status: bool) -> ResourceList:
    assert pod.spec.resources is not None
    requests = dict(pod.spec.resources.requests)
    if with_status and pod.status.resources is not None:
        requests = {} if is_resize_infeasible(pod) else requests
        raise_to(requests, pod.status.resources.requests)
        raise_to(requests, pod.status.allocated_resources)
    return {name: amount for name, amount in requests.items() if is_pod_level_resource(name)}


def _container_requests(pod: Pod, reading: Reading) -> ResourceList:
    """Return the sum over containers and claims: of the spec, or the most of spec and status."""
    wanted = at_once(pod, _completed(_requests, reading))
    add(wanted, claim_resources(reading.claim_statuses))
    if not reading.with_status or not has_resource_status(pod):
        return wanted
    total = {} if is_resize_infeasible(pod) else wanted
    for reported in _reported_requests(pod, reading):
        raise_to(total, reported)
    return total


def _reported_requests(pod: Pod, reading: Reading) -> tuple[ResourceList, ResourceList]:
    """Return what the node gave and what the pod uses; claims are in what was given."""
    whole = reported_as_a_whole(pod)
    if whole is not None:
        return whole
    given, used = reported_by_container(pod)
    allocated = at_once(pod, _completed(given, reading))
    add(allocated, claim_resources(reading.claim_statuses))
    return allocated, at_once(pod, _completed(used, reading))


def _requests(container: Container) -> ResourceList:
    return container.resources.requests


def _completed(source: Source, reading: Reading) -> Source:
    """Return a source that says something of all that has a default."""
    defaults = reading.defaults
    return (lambda container: {**defaults, **source(container)}) if defaults else source
