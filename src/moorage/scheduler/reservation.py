"""Reserve: a decision is applied to the cluster; claims get their devices, the pod its node.

`reserve` and `release` are exactly inverse. Planning reserves and goes on; a live scheduler
reserves, writes to the API server, and releases if that fails. Pods that share a claim may be
released in any order: the claim keeps its devices until the last of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core.pod import Pod, PodResourceClaim
from moorage.api.resource.v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from moorage.api.timestamp import Timestamp
from moorage.claims import (
    ClaimRejection,
    consumer_of,
    extended_status,
    group_name,
    is_reserved_for,
    pod_consumer,
    protected,
    reserved,
    with_claim_name,
)
from moorage.claims.extended_resources import is_in_memory
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.framework import DYNAMIC_RESOURCES, RESERVE, run_timed
from moorage.scheduler.plugins.claim_needs import (
    AssumedClaim,
    ClaimKey,
    claim_key,
    distinct_claims,
)
from moorage.scheduler.plugins.dynamic_resources import NodeAllocation
from moorage.scheduler.pod_signature import pod_key
from moorage.scheduler.scheduling_cycle import Placed


class IdSource(NamedTuple):
    """Where new names come from."""

    share_id: Callable[[], str]
    name: Callable[[str], str]  # for a claim, from its prefix


class Reservation(Struct, frozen=True):
    """The result for a placed pod: the pod and its claims as written."""

    pod: Pod
    node: str
    claims: tuple[ResourceClaim, ...] = ()  # all that the pod uses, the special one last
    before: tuple[ResourceClaim | None, ...] = ()  # as they were; None: made for the pod


def reserve(cluster: Cluster, placed: Placed, ids: IdSource) -> Reservation:
    """Write a decision and return the written objects."""
    times = None if placed.needs is None else cluster.work.times
    return run_timed(times, DYNAMIC_RESOURCES, RESERVE, _reserve, cluster, placed, ids)


def _reserve(cluster: Cluster, placed: Placed, ids: IdSource) -> Reservation:
    pod = _bound(placed.pod, placed.node, placed.allocation)
    if placed.needs is None:
        cluster.put_pod(pod)
        return Reservation(pod, placed.node)
    given = _allocations(placed.allocation, ids)
    before: list[ResourceClaim | None] = [*distinct_claims(placed.needs.uses)]
    claims = _claims(cluster, placed, given)
    special = placed.allocation.special
    if special is not None and claim_key(special) in given:
        claims.append(_special(cluster, special, given[claim_key(special)], pod, ids))
        before.append(None if is_in_memory(special) else cluster.find_claim(*claim_key(special)))
        pod = _with_special(pod, placed.allocation, claims[-1].metadata.name)
    for claim, old in zip(claims, before, strict=True):
        _write(cluster, claim, old, pod)
    cluster.put_pod(pod)
    return Reservation(pod, placed.node, tuple(claims), tuple(before))


def release(cluster: Cluster, reservation: Reservation) -> None:
    """Release the reservation."""
    pod = reservation.pod
    cluster.remove_pod(pod)
    for claim, before in zip(reservation.claims, reservation.before, strict=True):
        if before is None:
            cluster.remove_claim(*claim_key(claim))
        else:
            _take_back(cluster, before, pod)


def _write(cluster: Cluster, claim: ResourceClaim, before: ResourceClaim | None, pod: Pod) -> None:
    """Put a claim as the pod has it, and keep in mind how it was before any pod held it."""
    assumed = cluster.assumed_claims.get(claim_key(claim))
    cluster.put_claim(claim)
    if assumed is not None:
        cluster.assumed_claims[claim_key(claim)] = AssumedClaim(
            assumed.before, assumed.pods | {pod_key(pod)}
        )
    elif before is not None:
        cluster.assumed_claims[claim_key(claim)] = AssumedClaim(before, frozenset((pod_key(pod),)))


def _take_back(cluster: Cluster, before: ResourceClaim, pod: Pod) -> None:
    """Put a claim without the pod: in its first state, unless others have reserved it since."""
    key = claim_key(before)
    assumed, current = cluster.assumed_claims.get(key), cluster.find_claim(*key)
    others = assumed.pods - {pod_key(pod)} if assumed is not None else frozenset()
    if assumed is not None and not others:
        cluster.put_claim(assumed.before)
    elif current is not None:
        is_new = pod_consumer(pod) not in before.status.reserved_for
        cluster.put_claim(_unreserved(current, pod) if is_new else current)
        if assumed is not None:
            cluster.assumed_claims[key] = AssumedClaim(assumed.before, others)


def _unreserved(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """Return the claim without the pod; reservations for its group stay."""
    consumers = tuple(each for each in claim.status.reserved_for if each != pod_consumer(pod))
    return replace(claim, status=replace(claim.status, reserved_for=consumers))


def _claims(
    cluster: Cluster, placed: Placed, given: Mapping[ClaimKey, AllocationResult]
) -> list[ResourceClaim]:
    """Return the claims that the pod names, with their devices and reservations."""
    assert placed.needs is not None
    pod = placed.pod
    found: dict[ClaimKey, ResourceClaim] = {}
    for use in placed.needs.uses:
        key = claim_key(use.claim)
        if key not in found:
            claim = _with_devices(cluster, use.claim, given.get(key))
            if not is_reserved_for(claim, pod, cluster.features.claims):
                claim = reserved(claim, _consumer(cluster, pod, use.entry))
            found[key] = claim
    return [*found.values()]


def _allocations(allocation: NodeAllocation, ids: IdSource) -> dict[ClaimKey, AllocationResult]:
    if allocation.allocated is None:
        return {}
    results = allocation.allocated.results(ids.share_id)
    return {
        claim_key(claim): result
        for claim, result in zip(allocation.allocated.claims, results, strict=True)
    }


def _consumer(
    cluster: Cluster, pod: Pod, entry: PodResourceClaim
) -> ResourceClaimConsumerReference:
    group = None
    if cluster.features.claims.group_claims and (name := group_name(pod)) is not None:
        group = cluster.groups.get((pod.metadata.namespace, name))
    consumer = consumer_of(pod, entry, group)
    return pod_consumer(pod) if isinstance(consumer, ClaimRejection) else consumer


def _with_devices(
    cluster: Cluster, claim: ResourceClaim, allocation: AllocationResult | None
) -> ResourceClaim:
    if allocation is None:
        return claim
    if cluster.now is not None and cluster.features.allocator.device_binding_and_status:
        allocation = replace(allocation, allocation_timestamp=Timestamp(cluster.now))
    return replace(protected(claim), status=replace(claim.status, allocation=allocation))


def _special(
    cluster: Cluster,
    special: ResourceClaim,
    allocation: AllocationResult,
    pod: Pod,
    ids: IdSource,
) -> ResourceClaim:
    if is_in_memory(special):
        name = ids.name(special.metadata.generate_name)
        special = replace(special, metadata=replace(special.metadata, name=name))
    return reserved(_with_devices(cluster, special, allocation), pod_consumer(pod))


def _with_special(pod: Pod, allocation: NodeAllocation, name: str) -> Pod:
    """Return the pod with the status that maps containers to their devices."""
    assert allocation.extended is not None
    status = replace(
        pod.status,
        extended_resource_claim_status=extended_status(name, allocation.extended.mappings),
        node_allocatable_resource_claim_statuses=with_claim_name(
            pod.status.node_allocatable_resource_claim_statuses or (), name
        )
        or pod.status.node_allocatable_resource_claim_statuses,
    )
    return replace(pod, status=status)


def _bound(pod: Pod, node: str, allocation: NodeAllocation) -> Pod:
    bound = replace(pod, spec=replace(pod.spec, node_name=node))
    if not allocation.node_resources:
        return bound
    resources = allocation.node_resources
    return replace(
        bound,
        status=replace(bound.status, node_allocatable_resource_claim_statuses=resources),
    )
