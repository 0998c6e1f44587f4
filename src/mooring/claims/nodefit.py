"""Does a node have room for what a pod asks for together with its claims?"""

from __future__ import annotations

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from mooring.api.quantity import Quantity
from mooring.claims.podresources import (
    ClaimStatuses,
    container_claim_resources,
    container_limits,
    container_requests,
    is_huge_page,
    is_pod_level_resource,
)
from mooring.claims.refusals import Refused


class Shortage(Struct, frozen=True):
    """A resource that the node lacks; if it never had enough, evicting pods does not help."""

    resource: str
    is_unresolvable: bool

    @property
    def reason(self) -> str:
        """The reason in Kubernetes' words."""
        return f"Insufficient {self.resource}"


def shortages(
    demand: ResourceList, *, allocatable: ResourceList, requested: ResourceList
) -> tuple[Shortage, ...]:
    """Return what is missing on a node; resources that claims cannot stand for are not looked at.

    requested is what the pods on the node take.
    """
    huge_pages = sorted(name for name in demand if is_huge_page(name))
    found = []
    for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *huge_pages):
        wanted, has = _amount(name, demand), _amount(name, allocatable)
        if wanted > 0 and wanted > has - _amount(name, requested):
            found.append(Shortage(name, is_unresolvable=wanted > has))
    return tuple(found)


def check_pod_level(pod: Pod, claim_statuses: ClaimStatuses) -> Refused | None:
    """Refuse a pod that asks, as a whole, for less than its containers and claims together."""
    statuses = tuple(claim_statuses)
    if pod.spec.resources is None or not statuses:
        return None
    return (
        _check_requests(pod, pod.spec.resources.requests, statuses)
        or _check_huge_pages(pod, pod.spec.resources.limits, statuses)
        or _check_limits(pod, pod.spec.resources.limits, statuses)
    )


def _check_requests(pod: Pod, most: ResourceList, statuses: ClaimStatuses) -> Refused | None:
    wanted = container_requests(pod, statuses) if most else {}
    for name in sorted(most):
        if is_pod_level_resource(name) and name in wanted and wanted[name] > most[name]:
            return Refused(
                f"pod level request for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            )
    return None


def _check_huge_pages(pod: Pod, most: ResourceList, statuses: ClaimStatuses) -> Refused | None:
    wanted = container_limits(pod, statuses) if most else {}
    for name in sorted(wanted):
        if is_huge_page(name) and name in most and wanted[name] > most[name]:
            return Refused(
                f"pod level limit for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA limits"
            )
    return None


def _check_limits(pod: Pod, most: ResourceList, statuses: ClaimStatuses) -> Refused | None:
    for container in pod.spec.containers:
        raised = container_claim_resources(statuses, container.name)
        for name, limit in sorted(container.resources.limits.items()):
            if is_huge_page(name) or name not in most:
                continue
            if limit + raised.get(name, Quantity.ZERO) > most[name]:
                return Refused(
                    f"pod level limit for {name} is insufficient to cover the limit and DRA "
                    f"overhead for container {container.name}"
                )
    return None


def _amount(name: str, amounts: ResourceList) -> int:
    """Return how much there is of a resource, in the whole units that scheduling counts in."""
    quantity = amounts.get(name, Quantity.ZERO)
    return quantity.milli_value if name == CPU else quantity.value
