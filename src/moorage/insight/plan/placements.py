"""A plan in plain terms: pods, their claims, the devices of each request.

Commands print this; JSON and YAML show it unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim
from moorage.claims import is_device_resource, pod_requests
from moorage.insight.messages import full_name
from moorage.insight.plan.planner import Result
from moorage.insight.plan.unknown import is_undecided
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.stand_ins import stands_for
from moorage.scheduler.binding_conditions import is_ready
from moorage.scheduler.pod_signature import PodInfo
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending


class GrantedDevice(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A device that a request gets."""

    driver: str
    pool: str
    device: str
    share_id: str | None = None
    consumed: dict[str, str] = {}
    admin_access: bool = False


class GrantedRequest(Struct, frozen=True, rename="camel"):
    """A request and the devices that it gets."""

    claim: str
    request: str
    devices: tuple[GrantedDevice, ...]


class Placement(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What happens to one pod."""

    pod: str
    node: str | None = None
    requests: tuple[GrantedRequest, ...] = ()
    stands_for: str | None = None  # a claim or template that no pod uses
    extended_resources: dict[str, str] = {}  # by generated request
    plugin_resources: dict[str, str] = {}  # amounts from the node's device plugins
    waits_for: tuple[str, ...] = ()  # binding conditions of devices
    reason: str = ""
    message: str = ""  # Kubernetes' message
    written: tuple[str, ...] = ()  # what Kubernetes writes where its scheduler has no message
    preempts: tuple[str, ...] = ()  # pods that would be evicted for it or its group
    unknown: bool = False  # whether it gets a node, because what decides could not be read


def placement_of(result: Result) -> Placement:
    """Return what happens to a pod."""
    name, instead = full_name(result.pod), stands_for(result.pod)
    if isinstance(result, Pending):
        return Placement(
            name,
            stands_for=instead,
            reason=result.reason,
            message=result.message,
            preempts=tuple(victim.full_name for victim in victims_of(result)),
            unknown=is_undecided(result),
        )
    extended = dict(_extended(result))
    return Placement(
        name,
        result.node,
        tuple(granted for claim in result.claims for granted in _granted(claim)),
        stands_for=instead,
        extended_resources=extended,
        plugin_resources=dict(_from_plugins(result.pod, set(extended.values()))),
        waits_for=tuple(dict.fromkeys(_conditions(result.claims))),
    )


def victims_of(pending: Pending) -> tuple[PodInfo, ...]:
    """Return the pods that would be evicted for a pod, or for its group."""
    return pending.group_victims if pending.preemption is None else pending.preemption.victims


def chosen_results(results: Iterable[Result], manifests: Snapshot) -> list[Result]:
    """Return the results of pods that the manifests have, or whose controllers they have."""
    pods = {full_name(pod) for pod in manifests.pods}
    makers = {(each.kind, full_name(each)) for each in manifests.controllers}
    return [
        result
        for result in results
        if full_name(result.pod) in pods or not makers.isdisjoint(_owners(result.pod))
    ]


def _owners(pod: Pod) -> Iterator[tuple[str, str]]:
    for owner in pod.metadata.owner_references:
        yield owner.kind, f"{pod.metadata.namespace}/{owner.name}"


def _granted(claim: ResourceClaim) -> Iterator[GrantedRequest]:
    allocation = claim.status.allocation
    if allocation is None:
        return
    by_request: dict[str, list[GrantedDevice]] = {}
    for result in allocation.devices.results:
        by_request.setdefault(result.request, []).append(_given(result))
    for request, devices in by_request.items():
        yield GrantedRequest(claim.metadata.name, request, tuple(devices))


def _given(result: DeviceRequestAllocationResult) -> GrantedDevice:
    consumed = result.consumed_capacity or {}
    return GrantedDevice(
        result.driver,
        result.pool,
        result.device,
        result.share_id,
        {name: str(amount) for name, amount in consumed.items()},
        bool(result.admin_access),
    )


def _extended(result: Reservation) -> Iterator[tuple[str, str]]:
    status = result.pod.status.extended_resource_claim_status
    for mapping in status.request_mappings if status is not None else ():
        yield mapping.request_name, mapping.resource_name


def _from_plugins(pod: Pod, from_devices: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the extended resources that come from device plugins."""
    for name, quantity in sorted(pod_requests(pod).items()):
        if is_device_resource(name) and name not in from_devices and not quantity.is_zero:
            yield name, str(quantity)


def _conditions(claims: Iterable[ResourceClaim]) -> Iterator[str]:
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is not None and not is_ready(claim):
            for result in allocation.devices.results:
                yield from result.binding_conditions
