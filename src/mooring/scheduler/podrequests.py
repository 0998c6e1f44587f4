"""What a pod asks of a node, and what it holds once it is there.

Amounts are sums of exact quantities, brought to whole base units at the end: thousandths of a
CPU, bytes, pieces. The rule for containers:

1. Containers and sidecars (init containers that keep running) run together: their sum counts.
2. While an init container runs, the sidecars before it run too: its own sum with theirs counts.
3. The larger of both counts, resource by resource.
4. What the pod as a whole asks for takes the place of what its containers ask for.
5. The overhead of running the pod comes on top.

Preparing costs a few µs for each container, once for each shape of pods; nodes are then compared
by integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import ContainerStatus
from mooring.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, ResourceList
from mooring.api.quantity import Quantity
from mooring.scheduler.amounts import Amounts, Weights, amounts, weights

# What a container that asks for nothing counts for in scores.
MILLI_CPU_DEFAULT = 100
MEMORY_DEFAULT = 200 * 1024 * 1024
DEFAULTS: Mapping[str, Quantity] = {
    CPU: Quantity.from_milli(MILLI_CPU_DEFAULT),
    MEMORY: Quantity.from_int(MEMORY_DEFAULT),
}

RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"

Totals = dict[str, Quantity]


class _Reading(NamedTuple):
    """Which sources count."""

    defaults: Mapping[str, Quantity] = {}
    with_pod_level: bool = True
    with_status: bool = False
    with_claims: bool = False


def asked_by(pod: Pod) -> Amounts:
    """Return what the pod needs free on a node."""
    return amounts(_requests(pod, _Reading()))


def held_by(pod: Pod, *, with_claims: bool = True) -> Amounts:
    """Return what the pod takes of the node it is on.

    A pod that is being resized counts with the most of what it asks for, was given and uses.
    With `with_claims` the node's own resources that its claims stand for count, too.
    """
    return amounts(_requests(pod, _Reading(with_status=True, with_claims=with_claims)))


def held_in_scores(pod: Pod, *, with_claims: bool = True) -> Weights:
    """Return what the pod on its node counts for in scores: containers weigh something always."""
    reading = _Reading(with_status=True, with_claims=with_claims)
    totals = _requests(pod, reading)
    if _has_pod_level_requests(pod):
        missing = {name: default for name, default in DEFAULTS.items() if name not in totals}
        return weights(_requests(pod, reading._replace(defaults=missing)))
    return weights(_requests(pod, reading._replace(defaults=DEFAULTS)))


def asked_in_scores(pod: Pod) -> Weights:
    """Return what a pod that looks for a node counts for in LeastAllocated.

    Kubernetes leaves out what the pod asks for as a whole, here and only here.
    """
    return weights(_requests(pod, _Reading(defaults=DEFAULTS, with_pod_level=False)))


# --- the whole pod ------------------------------------------------------------------------------


def _requests(pod: Pod, reading: _Reading) -> Totals:
    totals = _container_requests(pod, reading)
    if reading.with_pod_level and _has_pod_level_requests(pod):
        totals |= _pod_level_requests(pod, reading)
    _add(totals, pod.spec.overhead)
    return totals


def _has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(_is_pod_level, resources.requests))


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def _pod_level_requests(pod: Pod, reading: _Reading) -> Totals:
    assert pod.spec.resources is not None
    requests: Totals = dict(pod.spec.resources.requests)
    if reading.with_status and pod.status.resources is not None:
        requests = {} if _is_resize_infeasible(pod) else requests
        _raise(requests, pod.status.resources.requests)
        _raise(requests, pod.status.allocated_resources)
    return {name: quantity for name, quantity in requests.items() if _is_pod_level(name)}


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == RESIZE_PENDING:
            return condition.reason == INFEASIBLE
    return False


# --- containers ---------------------------------------------------------------------------------

Source = Callable[[Container], ResourceList]


def _container_requests(pod: Pod, reading: _Reading) -> Totals:
    """Return the sum over containers, from the spec or the most of spec and status."""
    wanted = _sum_of(pod, lambda container: container.resources.requests, reading)
    if reading.with_claims:
        _add_claims(wanted, pod)
    if not reading.with_status or not _has_resource_status(pod):
        return wanted
    totals = {} if _is_resize_infeasible(pod) else wanted
    for reported in _reported_requests(pod, reading):
        _raise(totals, reported)
    return totals


def _has_resource_status(pod: Pod) -> bool:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return bool(
        pod.status.allocated_resources
        or pod.status.conditions
        or any(status.allocated_resources or status.resources for status in statuses)
    )


def _reported_requests(pod: Pod, reading: _Reading) -> tuple[ResourceList, ResourceList]:
    """Return what the node gave and what it uses, as the status tells."""
    whole = pod.status.resources
    if pod.status.allocated_resources and whole is not None and whole.requests:
        return pod.status.allocated_resources, whole.requests
    by_name = {
        status.name: status
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    is_infeasible = _is_resize_infeasible(pod)

    def given(container: Container) -> ResourceList:
        status = by_name.get(container.name, _NO_STATUS)
        return status.allocated_resources or ({} if is_infeasible else container.resources.requests)

    def used(container: Container) -> ResourceList:
        resources = by_name.get(container.name, _NO_STATUS).resources
        return (resources.requests if resources else {}) or given(container)

    allocated = _sum_of(pod, given, reading)
    if reading.with_claims:
        _add_claims(allocated, pod)
    return allocated, _sum_of(pod, used, reading)


_NO_STATUS = ContainerStatus()


def _sum_of(pod: Pod, source: Source, reading: _Reading) -> Totals:
    """Return the most that containers need at once: see the rule above."""
    together: Totals = {}
    for container in pod.spec.containers:
        _add(together, _completed(source(container), reading.defaults))
    sidecars: Totals = {}
    starting: Totals = {}
    for container in pod.spec.init_containers:
        requests = _completed(source(container), reading.defaults)
        if container.is_sidecar:
            _add(together, requests)
            _add(sidecars, requests)
            _raise(starting, sidecars)
        else:
            alone = dict(requests)
            _add(alone, sidecars)
            _raise(starting, alone)
    _raise(together, starting)
    return together


def _completed(requests: ResourceList, defaults: Mapping[str, Quantity]) -> Mapping[str, Quantity]:
    return {**defaults, **requests} if defaults else requests


def _add_claims(totals: Totals, pod: Pod) -> None:
    """Add the node's own resources that claims stand for, and what using them costs."""
    for claim in pod.status.node_allocatable_resource_claim_statuses or ():
        for mapped in claim.mapping:
            if mapped.quantity is not None:
                _add(totals, {mapped.name: mapped.quantity})
        for overhead in claim.overhead:
            if overhead.per_pod is not None:
                _add(totals, {overhead.name: overhead.per_pod})
            if overhead.per_container is not None:
                for _ in claim.containers:
                    _add(totals, {overhead.name: overhead.per_container})


def _add(totals: Totals, more: Mapping[str, Quantity]) -> None:
    for name, quantity in more.items():
        known = totals.get(name)
        totals[name] = quantity if known is None else known + quantity


def _raise(totals: Totals, other: Mapping[str, Quantity]) -> None:
    for name, quantity in other.items():
        known = totals.get(name)
        if known is None or known < quantity:
            totals[name] = quantity
