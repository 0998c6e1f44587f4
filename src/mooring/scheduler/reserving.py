"""Writes a decision into the cluster: claims get their devices, the pod its node.

`reserve` and `release` are exactly inverse. Planning reserves and goes on; a live scheduler
reserves, writes to the API server, and releases if that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.pod import Pod, PodResourceClaim
from mooring.api.resource.v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from mooring.api.timestamp import Timestamp
from mooring.claims import (
    Refused,
    consumer_of,
    extended_status,
    group_name,
    is_reserved_for,
    pod_consumer,
    protected,
    reserved,
    with_claim_name,
)
from mooring.scheduler.claimcheck import Grant
from mooring.scheduler.cluster import ClaimKey, Cluster
from mooring.scheduler.cycle import Placed


class Fresh(NamedTuple):
    """Where new names come from."""

    share_id: Callable[[], str]
    name: Callable[[str], str]  # for a claim, from its prefix


class Reservation(Struct, frozen=True):
    """What became of a placed pod: it and its claims as they are written."""

    pod: Pod
    node: str
    claims: tuple[ResourceClaim, ...] = ()  # all that the pod uses, the special one last
    before: tuple[ResourceClaim | None, ...] = ()  # as they were; None: made for the pod


def reserve(cluster: Cluster, placed: Placed, fresh: Fresh) -> Reservation:
    """Write a decision and return what was written."""
    if placed.needs is None:
        pod = _bound(placed.pod, placed.node, placed.grant)
        cluster.put_pod(pod)
        return Reservation(pod, placed.node)
    claims, before = _claims(cluster, placed, fresh)
    for claim in claims:
        cluster.put_claim(claim)
    pod = _bound(placed.pod, placed.node, placed.grant)
    if before and before[-1] is None:
        pod = _with_special(pod, placed.grant, claims[-1].metadata.name)
    cluster.put_pod(pod)
    return Reservation(pod, placed.node, tuple(claims), tuple(before))


def release(cluster: Cluster, reservation: Reservation) -> None:
    """Take back what was reserved."""
    cluster.remove_pod(reservation.pod)
    for claim, before in zip(reservation.claims, reservation.before, strict=True):
        if before is None:
            cluster.remove_claim(claim.metadata.namespace, claim.metadata.name)
        else:
            cluster.put_claim(before)


def _claims(
    cluster: Cluster, placed: Placed, fresh: Fresh
) -> tuple[list[ResourceClaim], list[ResourceClaim | None]]:
    """Return the claims with their devices and reservations, and as they were."""
    assert placed.needs is not None
    pod, grant = placed.pod, placed.grant
    given = _allocations(grant, fresh)
    found: dict[ClaimKey, tuple[ResourceClaim, ResourceClaim]] = {}
    for use in placed.needs.uses:
        key = _key(use.claim)
        if key not in found:
            consumer = _consumer(cluster, pod, use.entry)
            claim = _with_devices(cluster, use.claim, given.get(key))
            if not is_reserved_for(claim, pod, cluster.features.claims):
                claim = reserved(claim, consumer)
            found[key] = (claim, use.claim)
    claims = [claim for claim, _ in found.values()]
    before: list[ResourceClaim | None] = [old for _, old in found.values()]
    if grant.special is not None and _key(grant.special) in given:
        claims.append(_special(cluster, grant.special, given[_key(grant.special)], pod, fresh))
        before.append(None)
    return claims, before


def _allocations(grant: Grant, fresh: Fresh) -> dict[ClaimKey, AllocationResult]:
    if grant.answer is None:
        return {}
    results = grant.answer.results(fresh.share_id)
    return {_key(claim): result for claim, result in zip(grant.answer.claims, results, strict=True)}


def _consumer(
    cluster: Cluster, pod: Pod, entry: PodResourceClaim
) -> ResourceClaimConsumerReference:
    group = None
    if cluster.features.claims.group_claims and (name := group_name(pod)) is not None:
        group = cluster.groups.get((pod.metadata.namespace, name))
    consumer = consumer_of(pod, entry, group)
    return pod_consumer(pod) if isinstance(consumer, Refused) else consumer


def _with_devices(
    cluster: Cluster, claim: ResourceClaim, allocation: AllocationResult | None
) -> ResourceClaim:
    if allocation is None:
        return claim
    if cluster.now is not None and cluster.features.allocator.device_binding_and_status:
        allocation = replace(allocation, allocation_timestamp=Timestamp(cluster.now))
    return replace(protected(claim), status=replace(claim.status, allocation=allocation))


def _special(
    cluster: Cluster, special: ResourceClaim, allocation: AllocationResult, pod: Pod, fresh: Fresh
) -> ResourceClaim:
    name = fresh.name(special.metadata.generate_name)
    named = replace(special, metadata=replace(special.metadata, name=name))
    return reserved(_with_devices(cluster, named, allocation), pod_consumer(pod))


def _with_special(pod: Pod, grant: Grant, name: str) -> Pod:
    """Return the pod with the status that tells containers which devices are theirs."""
    assert grant.extended is not None
    status = replace(
        pod.status,
        extended_resource_claim_status=extended_status(name, grant.extended.mappings),
        node_allocatable_resource_claim_statuses=with_claim_name(
            pod.status.node_allocatable_resource_claim_statuses or (), name
        )
        or pod.status.node_allocatable_resource_claim_statuses,
    )
    return replace(pod, status=status)


def _bound(pod: Pod, node: str, grant: Grant) -> Pod:
    bound = replace(pod, spec=replace(pod.spec, node_name=node))
    if not grant.node_resources:
        return bound
    resources = grant.node_resources
    return replace(
        bound,
        status=replace(bound.status, node_allocatable_resource_claim_statuses=resources),
    )


def _key(claim: ResourceClaim) -> ClaimKey:
    return claim.metadata.namespace, claim.metadata.name
