"""What a pod asks for as a whole: defaults from its containers, and that it covers them."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod, PodSpec
from mooring.api.core.resource_sums import at_once
from mooring.api.core.resources import (
    CPU,
    HUGE_PAGES_PREFIX,
    MEMORY,
    ResourceList,
    ResourceRequirements,
)
from mooring.api.fieldpath import Path
from mooring.validation.errors import Errors, forbidden, invalid
from mooring.validation.pod.resources import check_pod_resources, is_node_allocatable


def _requests(container: Container) -> ResourceList:
    return container.resources.requests


def _limits(container: Container) -> ResourceList:
    return container.resources.limits


def check_whole_resources(spec: PodSpec, path: Path) -> Errors:
    """Check the resources of a whole pod, by themselves and beside those of its containers."""
    resources = spec.resources
    if resources is None:
        return []
    if spec.os is not None and spec.os.get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    claims = {claim.name for claim in spec.resource_claims if claim.name}
    found = check_pod_resources(resources, path, claims)
    pod = Pod(spec=spec)
    found += _check_sums(resources.requests, at_once(pod, _requests), "requests", path)
    huge = {n: q for n, q in at_once(pod, _limits).items() if n.startswith(HUGE_PAGES_PREFIX)}
    found += _check_sums(resources.limits, huge, "limits", path)
    return found + _check_each_limit(spec, resources.limits, path)


def _check_sums(whole: ResourceList, sums: ResourceList, field: str, path: Path) -> Errors:
    """Check that the pod has no less than its containers together."""
    return [
        invalid(
            path.child(field).key(name),
            str(whole[name]),
            f"must be greater than or equal to aggregate container {field} of {amount}",
        )
        for name, amount in sums.items()
        if name in whole and amount > whole[name]
    ]


def _check_each_limit(spec: PodSpec, limits: ResourceList, path: Path) -> Errors:
    """Check that no container has more than the pod; Kubernetes has its own name for the place."""
    return [
        invalid(
            path.child("containers").index(position).key(name).child("limits"),
            str(amount),
            f"must be less than or equal to pod limits of {limits[name]}",
        )
        for position, container in enumerate(spec.containers)
        for name, amount in container.resources.limits.items()
        if name in limits and amount > limits[name]
    ]


# --- defaults -------------------------------------------------------------------------------------


def default_whole_resources(spec: PodSpec) -> PodSpec:
    """Return a spec in which the resources of the pod, if it has some, say all that follows.

    1. Limits of huge pages are those of the containers together.
    2. Requests are those of the containers together, else the limits of the pod.
    3. Limits are those of the containers together if each has one, and no less than the requests.
    """
    resources = spec.resources
    if resources is None or not (resources.requests or resources.limits):
        return spec
    pod = Pod(spec=spec)
    asked, allowed = at_once(pod, _requests), at_once(pod, _limits)
    limits = {**_huge_limits(resources, allowed), **resources.limits}
    overcommitted = {name: asked[name] for name in (CPU, MEMORY) if name in asked}
    supported = {name: q for name, q in limits.items() if is_node_allocatable(name)}
    requests = {**supported, **overcommitted, **resources.requests}
    for name, request in requests.items():
        if name not in limits and is_node_allocatable(name) and _all_limited(spec, name):
            limits[name] = max(allowed[name], request)
    return replace(spec, resources=replace(resources, limits=limits, requests=requests))


def _huge_limits(resources: ResourceRequirements, allowed: ResourceList) -> ResourceList:
    return {
        name: amount
        for name, amount in allowed.items()
        if name.startswith(HUGE_PAGES_PREFIX) and name not in resources.requests
    }


def _all_limited(spec: PodSpec, name: str) -> bool:
    containers = (*spec.containers, *spec.init_containers)
    return all(name in container.resources.limits for container in containers)
