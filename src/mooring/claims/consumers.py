"""Who a claim is reserved for: a pod, or the group that shares the claim among its pods."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.core.pod import Pod, PodResourceClaim
from mooring.api.resource.v1 import (
    FINALIZER,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from mooring.api.scheduling import GROUP as SCHEDULING
from mooring.api.scheduling import PodGroup, PodGroupResourceClaim
from mooring.claims.features import Features
from mooring.claims.owners import group_name, key_of
from mooring.claims.references import UNSUPPORTED, Entry
from mooring.claims.refusals import Refused

PODS = "pods"
POD_GROUPS = "podgroups"


def pod_consumer(pod: Pod) -> ResourceClaimConsumerReference:
    """Return the reference to a pod."""
    return ResourceClaimConsumerReference(
        resource=PODS, name=pod.metadata.name, uid=pod.metadata.uid
    )


def group_consumer(group: PodGroup) -> ResourceClaimConsumerReference:
    """Return the reference to a group."""
    return ResourceClaimConsumerReference(
        api_group=SCHEDULING,
        resource=POD_GROUPS,
        name=group.metadata.name,
        uid=group.metadata.uid,
    )


def is_pod_consumer(consumer: ResourceClaimConsumerReference) -> bool:
    """Tell whether a reservation is for a pod."""
    return consumer.api_group == "" and consumer.resource == PODS


def is_group_consumer(consumer: ResourceClaimConsumerReference) -> bool:
    """Tell whether a reservation is for a group."""
    return consumer.api_group == SCHEDULING and consumer.resource == POD_GROUPS


def consumer_of(
    pod: Pod, entry: PodResourceClaim, group: PodGroup | None
) -> ResourceClaimConsumerReference | Refused:
    """Return who the claim of the pod's entry is reserved for.

    It is the pod's group if the group has the same entry, else the pod. Give the group only where
    groups may have claims.
    """
    if not _says_something(entry):
        return Refused(f"Pod {key_of(pod.metadata)} claim {entry.name}: {UNSUPPORTED}")
    if group is None:
        return pod_consumer(pod)
    if refused := _check_member(pod, group):
        return refused
    for other in group.spec.resource_claims:
        if not _says_something(other):
            return Refused(f"PodGroup {key_of(group.metadata)} claim {other.name}: {UNSUPPORTED}")
        if _is_same(entry, other):
            return group_consumer(group)
    return pod_consumer(pod)


def is_reserved_for(claim: ResourceClaim, pod: Pod, features: Features) -> bool:
    """Tell whether the pod may use the claim: by itself or, where that counts, by its group."""
    group = group_name(pod) if features.group_claims else None
    # By name, because a pod does not know the uid of its group.
    return any(
        _is_pod(consumer, pod)
        or (group is not None and is_group_consumer(consumer) and consumer.name == group)
        for consumer in claim.status.reserved_for
    )


def _is_pod(consumer: ResourceClaimConsumerReference, pod: Pod) -> bool:
    """Tell by the uid whether a reservation is for the pod; from files pods may have none."""
    uid = pod.metadata.uid
    return consumer.uid == uid and (uid != "" or consumer.name == pod.metadata.name)


def is_at_most_for(claim: ResourceClaim, uid: str) -> bool:
    """Tell whether nobody but the consumer with this uid holds the claim back.

    Then the scheduler may take the allocation away, to try another one.
    """
    return [consumer.uid for consumer in claim.status.reserved_for] in ([], [uid])


def reserved(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> ResourceClaim:
    """Return the claim with one consumer more."""
    consumers = (*claim.status.reserved_for, consumer)
    return replace(claim, status=replace(claim.status, reserved_for=consumers))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without devices and consumers."""
    return replace(claim, status=ResourceClaimStatus())


def protected(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim with the finalizer that an allocated claim must have."""
    if FINALIZER in claim.metadata.finalizers:
        return claim
    return _with_finalizers(claim, (*claim.metadata.finalizers, FINALIZER))


def unprotected(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without that finalizer."""
    kept = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
    return _with_finalizers(claim, kept)


def _with_finalizers(claim: ResourceClaim, finalizers: tuple[str, ...]) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))


def _check_member(pod: Pod, group: PodGroup) -> Refused | None:
    pod_key, group_key = key_of(pod.metadata), key_of(group.metadata)
    name = group_name(pod)
    if name is None:
        return Refused(f"Pod {pod_key} does not belong to a PodGroup")
    own_key = f"{pod.metadata.namespace}/{name}"
    if own_key == group_key:
        return None
    return Refused(f"Pod {pod_key} belongs to PodGroup {own_key}, not PodGroup {group_key}")


def _says_something(entry: Entry) -> bool:
    names = (entry.resource_claim_name, entry.resource_claim_template_name)
    return names != (None, None)


def _is_same(entry: PodResourceClaim, other: PodGroupResourceClaim) -> bool:
    return (
        entry.name == other.name
        and entry.resource_claim_name == other.resource_claim_name
        and entry.resource_claim_template_name == other.resource_claim_template_name
    )
