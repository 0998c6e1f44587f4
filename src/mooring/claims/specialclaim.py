"""The special claim: one for all extended resources of a pod that devices serve.

It lives in memory while a node is looked for, with other requests for each node, and is created
once the node is chosen. One that is found in the cluster before that is left over from an earlier
attempt; it is deleted, and the pod tried again.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import (
    NodeAllocatableResourceClaimStatus,
    PodExtendedResourceClaimStatus,
)
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceClaim,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from mooring.claims.extendedrequests import ExtendedRequests, Mappings
from mooring.claims.owners import controller_reference
from mooring.claims.refusals import Refused

# No claim in the cluster can have this name.
IN_MEMORY_NAME = "<extended-resources>"


def special_claim(pod: Pod, *, uid: str) -> ResourceClaim:
    """Return the claim in memory, which asks for nothing yet; the uid is ours to make up."""
    metadata = ObjectMeta(
        name=IN_MEMORY_NAME,
        generate_name=f"{pod.metadata.name}-extended-resources-",
        namespace=pod.metadata.namespace,
        uid=uid,
        annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        owner_references=(controller_reference(pod),),
    )
    return ResourceClaim(metadata=metadata)


def find_special(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Return the special claim that the cluster has for the pod; of several the first by name."""
    found = [claim for claim in claims if is_special_for(claim, pod)]
    return min(found, key=lambda claim: claim.metadata.name, default=None)


def is_special_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Tell whether a claim stands for the extended resources of the pod."""
    metadata = claim.metadata
    if metadata.namespace != pod.metadata.namespace:
        return False
    if metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
        return False
    own = (pod.metadata.name, pod.metadata.uid)
    return any(
        owner.controller and (owner.name, owner.uid) == own for owner in metadata.owner_references
    )


def is_in_memory(claim: ResourceClaim) -> bool:
    """Tell whether the special claim is not in the cluster yet."""
    return claim.metadata.name == IN_MEMORY_NAME


def check_fresh(claim: ResourceClaim) -> Refused | None:
    """Refuse a special claim that is left over from an earlier attempt."""
    if claim.spec.devices.requests is None:
        return None
    return Refused("cannot schedule extended resource claim")


def with_requests(claim: ResourceClaim, wanted: ExtendedRequests) -> ResourceClaim:
    """Return the special claim as one node must serve it."""
    return replace(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=wanted.requests)))


def to_create(claim: ResourceClaim) -> ResourceClaim:
    """Return the special claim as it is sent to the server, which names it."""
    metadata = replace(claim.metadata, name="", uid="")
    return replace(claim, metadata=metadata, status=ResourceClaimStatus())


def extended_status(claim_name: str, mappings: Mappings) -> PodExtendedResourceClaimStatus:
    """Return what the pod's status says of the special claim."""
    return PodExtendedResourceClaimStatus(request_mappings=mappings, resource_claim_name=claim_name)


def with_claim_name(
    statuses: Iterable[NodeAllocatableResourceClaimStatus], claim_name: str
) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    """Return the node resources of a pod's claims with the name that the special one has got."""
    renamed = (
        replace(status, resource_claim_name=claim_name)
        if status.resource_claim_name == IN_MEMORY_NAME
        else status
        for status in statuses
    )
    return tuple(sorted(renamed, key=lambda status: status.resource_claim_name))
