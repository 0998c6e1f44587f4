"""What a pod asks for in all: of its containers, of the pod as a whole, of its claims.

Init containers run one after the other, before the others, so only the largest counts; a sidecar
is an init container that stays, so it counts with all that run after it. What running containers
were resized to is not looked at.

    # claim statuses: the node resources that come with the pod's claims; always added
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import NodeAllocatableResourceClaimStatus
from mooring.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, ResourceList
from mooring.api.quantity import Quantity

ClaimStatuses = Iterable[NodeAllocatableResourceClaimStatus]


def pod_requests(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return what a node must have free for the pod.

    What the pod asks for as a whole is there for its containers and claims together, and its
    overhead comes on top.
    """
    total = container_requests(pod, claim_statuses)
    for name, quantity in _pod_level_requests(pod).items():
        if is_pod_level_resource(name):
            total[name] = quantity
    _add(total, pod.spec.overhead)
    return total


def container_requests(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return what the containers and the claims of the pod ask for."""
    total = _aggregate(pod, lambda container: container.resources.requests)
    _add(total, claim_resources(claim_statuses))
    return total


def container_limits(pod: Pod, claim_statuses: ClaimStatuses = ()) -> ResourceList:
    """Return what the containers and the claims of the pod may take.

    Claims raise limits that are declared; huge pages cannot be overcommitted, so these are
    limited by claims alone, too.
    """
    total = _aggregate(pod, lambda container: container.resources.limits)
    raised = {
        name: quantity
        for name, quantity in claim_resources(claim_statuses).items()
        if name in total or is_huge_page(name)
    }
    _add(total, raised)
    return total


def claim_resources(claim_statuses: ClaimStatuses) -> ResourceList:
    """Return the node resources that come with claims: mapped, per pod and per container."""
    total: ResourceList = {}
    for status in claim_statuses:
        for mapped in status.mapping:
            if mapped.quantity is not None:
                _add(total, {mapped.name: mapped.quantity})
        for overhead in status.overhead:
            per_pod = overhead.per_pod or Quantity.ZERO
            per_container = overhead.per_container or Quantity.ZERO
            _add(total, {overhead.name: per_pod + per_container * len(status.containers)})
    return total


def container_claim_resources(claim_statuses: ClaimStatuses, container: str) -> ResourceList:
    """Return the node resources that one container may take by its claims."""
    total: ResourceList = {}
    for status in claim_statuses:
        if container not in status.containers:
            continue
        for mapped in status.mapping:
            if mapped.quantity is not None:
                _add(total, {mapped.name: mapped.quantity})
        for overhead in status.overhead:
            per_pod = overhead.per_pod or Quantity.ZERO
            _add(total, {overhead.name: per_pod + (overhead.per_container or Quantity.ZERO)})
    return total


def is_huge_page(name: str) -> bool:
    """Tell whether a resource is huge pages of some size."""
    return name.startswith(HUGE_PAGES_PREFIX)


def is_pod_level_resource(name: str) -> bool:
    """Tell whether a pod can ask for the resource as a whole."""
    return name in (CPU, MEMORY) or is_huge_page(name)


def _pod_level_requests(pod: Pod) -> ResourceList:
    return {} if pod.spec.resources is None else pod.spec.resources.requests


def _aggregate(pod: Pod, amounts_of: Callable[[Container], ResourceList]) -> ResourceList:
    running: ResourceList = {}
    for container in pod.spec.containers:
        _add(running, amounts_of(container))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in pod.spec.init_containers:
        amounts = amounts_of(container)
        if container.is_sidecar:
            _add(running, amounts)
            _add(sidecars, amounts)
            _raise(starting, sidecars)
        else:
            together = dict(amounts)
            _add(together, sidecars)
            _raise(starting, together)
    _raise(running, starting)
    return running


def _add(total: ResourceList, more: ResourceList) -> None:
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise(total: ResourceList, least: ResourceList) -> None:
    for name, quantity in least.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity
