"""A plan in plain terms: pods, their claims, the devices of each request.

Commands print this; JSON and YAML show it unchanged.

A claim or template that no pod uses gets a stand-in: a pod that uses it and requests nothing else.
So whoever writes a claim learns which devices it would get before there is a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from moorage.api.core.pod import Container, Pod, PodResourceClaim, PodSpec
from moorage.api.core.resources import ContainerClaim, ResourceRequirements
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
)
from moorage.claims import is_device_resource, pod_requests
from moorage.insight.messages import full_name
from moorage.insight.plan.planner import Result
from moorage.insight.snapshot.snapshot import Snapshot, identified
from moorage.scheduler.binding_conditions import is_ready
from moorage.scheduler.pod_signature import PodInfo
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending

STAND_IN = "moorage.dev/stands-in-for"  # an annotation: claim/NAME or template/NAME
ENTRY = "claim"
Subject = ResourceClaim | ResourceClaimTemplate


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


def stand_ins(manifests: Snapshot, everything: Snapshot) -> tuple[Pod, ...]:
    """Return a pod for each claim and template of the manifests that nothing uses yet."""
    used = _used(everything)
    found: list[Subject] = [
        claim
        for claim in manifests.claims
        if claim.status.allocation is None and not claim.metadata.owner_references
    ]
    found += manifests.templates
    return tuple(
        stand_in(each) for each in found if (each.metadata.namespace, _title(each)) not in used
    )


def stand_in(subject: Subject) -> Pod:
    """Return a pod that uses a claim or template and requests nothing else."""
    metadata = subject.metadata
    is_template = isinstance(subject, ResourceClaimTemplate)
    entry = PodResourceClaim(
        name=ENTRY,
        resource_claim_name=None if is_template else metadata.name,
        resource_claim_template_name=metadata.name if is_template else None,
    )
    resources = ResourceRequirements(claims=(ContainerClaim(name=ENTRY),))
    pod = Pod(
        metadata=ObjectMeta(
            name=f"{'template' if is_template else 'claim'}-{metadata.name}",
            namespace=metadata.namespace,
            annotations={STAND_IN: _title(subject)},
        ),
        spec=PodSpec(
            containers=(Container(name="container", resources=resources),),
            resource_claims=(entry,),
        ),
    )
    named: Pod = identified(pod)
    return named


def stands_for(pod: Pod) -> str | None:
    """Return `claim/NAME` or `template/NAME` for a stand-in pod; None for a real one."""
    return pod.metadata.annotations.get(STAND_IN)


def _title(subject: Subject) -> str:
    kind = "template" if isinstance(subject, ResourceClaimTemplate) else "claim"
    return f"{kind}/{subject.metadata.name}"


def _used(everything: Snapshot) -> set[tuple[str, str]]:
    """Return the claims and templates that pods, controllers and pod groups name."""
    found: set[tuple[str, str]] = set()
    for pod in everything.pods:
        found.update(_named_by(pod.metadata.namespace, pod.spec.resource_claims))
    for controller in everything.controllers:
        entries = controller.spec.template.spec.resource_claims
        found.update(_named_by(controller.metadata.namespace, entries))
    for group in everything.groups:
        for entry in group.spec.resource_claims:
            found.add((group.metadata.namespace, f"claim/{entry.resource_claim_name}"))
            found.add((group.metadata.namespace, f"template/{entry.resource_claim_template_name}"))
    return found


def _named_by(namespace: str, entries: Iterable[PodResourceClaim]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        yield namespace, f"claim/{entry.resource_claim_name}"
        yield namespace, f"template/{entry.resource_claim_template_name}"
