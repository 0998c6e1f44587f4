"""Reservations: which pod or PodGroup a claim is reserved for, and when that ends.

A PodGroup shares a claim among its pods. To release a claim:

1. `review` finds the stale reservations from the known pods and groups. It returns unknown
   consumers, to be looked up in the API server, because removing a reservation while the scheduler
   is running could give a device two owners.
2. `release_steps` returns the writes in order. An allocation is cleared only when the last consumer
   is gone, or when the claim is being deleted: a claim that was never reserved keeps it, unless
   a scheduler left it behind (see `leftovers`).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core.pod import FAILED, SUCCEEDED, Pod, PodResourceClaim
from moorage.api.meta import namespaced_name
from moorage.api.resource.v1 import (
    FINALIZER,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from moorage.api.scheduling import GROUP as SCHEDULING
from moorage.api.scheduling import PodGroup, PodGroupResourceClaim
from moorage.claims.pod_claims import (
    UNSUPPORTED,
    ClaimEntry,
    ClaimFeatures,
    ClaimRejection,
    group_name,
    owning_pod,
)

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
    """Return whether a reservation is for a pod."""
    return consumer.api_group == "" and consumer.resource == PODS


def is_group_consumer(consumer: ResourceClaimConsumerReference) -> bool:
    """Return whether a reservation is for a group."""
    return consumer.api_group == SCHEDULING and consumer.resource == POD_GROUPS


def consumer_of(
    pod: Pod, entry: PodResourceClaim, group: PodGroup | None
) -> ResourceClaimConsumerReference | ClaimRejection:
    """Return the consumer that the claim of a pod's entry is reserved for.

    That is the pod's group if the group has the same entry, else the pod. Pass the group only if
    the feature of claims for groups is enabled.
    """
    if not _is_supported(entry):
        return ClaimRejection(
            f"Pod {namespaced_name(pod.metadata)} claim {entry.name}: {UNSUPPORTED}"
        )
    if group is None:
        return pod_consumer(pod)
    if rejected := _check_member(pod, group):
        return rejected
    for other in group.spec.resource_claims:
        if not _is_supported(other):
            return ClaimRejection(
                f"PodGroup {namespaced_name(group.metadata)} claim {other.name}: {UNSUPPORTED}"
            )
        if _is_same(entry, other):
            return group_consumer(group)
    return pod_consumer(pod)


def is_reserved_for(claim: ResourceClaim, pod: Pod, features: ClaimFeatures) -> bool:
    """Return whether the pod may use the claim: by itself or, if enabled, by its group."""
    group = group_name(pod) if features.group_claims else None
    # By name, because a pod does not have the uid of its group.
    return any(
        _is_pod(consumer, pod)
        or (group is not None and is_group_consumer(consumer) and consumer.name == group)
        for consumer in claim.status.reserved_for
    )


def _is_pod(consumer: ResourceClaimConsumerReference, pod: Pod) -> bool:
    """Compare by uid; pods from files may have none."""
    uid = pod.metadata.uid
    return consumer.uid == uid and (uid != "" or consumer.name == pod.metadata.name)


def is_at_most_for(claim: ResourceClaim, uid: str) -> bool:
    """Return whether the claim is reserved for no other consumer than that with this uid.

    Then the scheduler may deallocate it, to try another allocation.
    """
    return [consumer.uid for consumer in claim.status.reserved_for] in ([], [uid])


def reserved(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> ResourceClaim:
    """Return the claim with one more consumer."""
    consumers = (*claim.status.reserved_for, consumer)
    return replace(claim, status=replace(claim.status, reserved_for=consumers))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without devices and consumers."""
    return replace(claim, status=ResourceClaimStatus())


def protected(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim with the finalizer of allocated claims."""
    if FINALIZER in claim.metadata.finalizers:
        return claim
    return _with_finalizers(claim, (*claim.metadata.finalizers, FINALIZER))


def unprotected(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without that finalizer."""
    kept = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
    return _with_finalizers(claim, kept)


def _with_finalizers(claim: ResourceClaim, finalizers: tuple[str, ...]) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))


def _check_member(pod: Pod, group: PodGroup) -> ClaimRejection | None:
    pod_key, group_key = namespaced_name(pod.metadata), namespaced_name(group.metadata)
    name = group_name(pod)
    if name is None:
        return ClaimRejection(f"Pod {pod_key} does not belong to a PodGroup")
    if (pod.metadata.namespace, name) == (group.metadata.namespace, group.metadata.name):
        return None
    own_key = namespaced_name(replace(group.metadata, namespace=pod.metadata.namespace, name=name))
    return ClaimRejection(f"Pod {pod_key} belongs to PodGroup {own_key}, not PodGroup {group_key}")


def _is_supported(entry: ClaimEntry) -> bool:
    names = (entry.resource_claim_name, entry.resource_claim_template_name)
    return names != (None, None)


def _is_same(entry: PodResourceClaim, other: PodGroupResourceClaim) -> bool:
    return (
        entry.name == other.name
        and entry.resource_claim_name == other.resource_claim_name
        and entry.resource_claim_template_name == other.resource_claim_template_name
    )


# --- the state of a pod or group ------------------------------------------------------------------


class Present(Struct, frozen=True):
    """One with the name exists; it no longer needs claims if it is done."""

    uid: str
    is_done: bool = False


class Absent(Struct, frozen=True):
    """It was deleted, or never existed."""


class Unknown(Struct, frozen=True):
    """The informer has not seen it, perhaps because it lags behind."""


ConsumerState = Present | Absent | Unknown

# Looks up the object that a reservation names, in the namespace of the claim.
LookUpConsumer = Callable[[ResourceClaimConsumerReference], ConsumerState]


def seen_pod(pod: Pod) -> Present:
    """Return the state of an existing pod."""
    return Present(pod.metadata.uid, is_pod_done(pod))


def seen_group(group: PodGroup) -> Present:
    """Return the state of an existing group, which is never done: its pods may run."""
    return Present(group.metadata.uid)


def is_pod_done(pod: Pod) -> bool:
    """Return whether no container of the pod runs or will run."""
    if pod.status.phase in (SUCCEEDED, FAILED):
        return True
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


# --- review ---------------------------------------------------------------------------------------


class Reservations(Struct, frozen=True):
    """The valid consumers and the stale ones."""

    remaining: tuple[ResourceClaimConsumerReference, ...]
    stale: tuple[ResourceClaimConsumerReference, ...]


class AskServer(Struct, frozen=True):
    """These consumers must be looked up in the API server first."""

    consumers: tuple[ResourceClaimConsumerReference, ...]


def review(
    claim: ResourceClaim, know: LookUpConsumer, features: ClaimFeatures
) -> Reservations | AskServer:
    """Find the stale reservations of the claim; consumers of other kinds are kept."""
    remaining, stale, unknown = [], [], []
    for consumer in claim.status.reserved_for:
        is_ours = is_pod_consumer(consumer) or (
            features.group_claims and is_group_consumer(consumer)
        )
        match know(consumer) if is_ours else Present(consumer.uid):
            case Unknown():
                unknown.append(consumer)
            case Present(uid=consumer.uid, is_done=False):
                remaining.append(consumer)
            case _:
                stale.append(consumer)
    if unknown:
        return AskServer(tuple(unknown))
    return Reservations(tuple(remaining), tuple(stale))


# --- release --------------------------------------------------------------------------------------


class WriteStatus(Struct, frozen=True):
    """Replace the status; fail if the claim has changed since."""

    status: ResourceClaimStatus


class RemoveFinalizer(Struct, frozen=True):
    """Remove the finalizer of allocated claims."""


class DeleteClaim(Struct, frozen=True):
    """Delete the claim, because the pod that it was created for is done."""


ReleaseStep = WriteStatus | RemoveFinalizer | DeleteClaim


def release_steps(
    claim: ResourceClaim, reservations: Reservations, owner: ConsumerState
) -> tuple[ReleaseStep, ...]:
    """Return the writes for the claim; `owner` is the state of the pod it was created for."""
    steps = _unused(claim, reservations)
    is_deleting = claim.metadata.deletion_timestamp is not None
    if not reservations.remaining and not is_deleting and _has_lost_owner(claim, owner):
        steps.append(DeleteClaim())
    return tuple(steps)


def _unused(claim: ResourceClaim, reservations: Reservations) -> list[ReleaseStep]:
    is_protected = FINALIZER in claim.metadata.finalizers
    is_deleting = claim.metadata.deletion_timestamp is not None
    steps: list[ReleaseStep] = []
    status = claim.status
    if reservations.stale:
        status = replace(status, reserved_for=reservations.remaining)
    elif not (is_protected and is_deleting) or reservations.remaining:
        return steps
    if is_protected and not reservations.remaining:
        status = replace(status, allocation=None, devices=())
    if status != claim.status:
        steps.append(WriteStatus(status))
    if is_protected and status.allocation is None:
        steps.append(RemoveFinalizer())
    return steps


def _has_lost_owner(claim: ResourceClaim, owner: ConsumerState) -> bool:
    # An unknown pod is left to the garbage collector, which checks the API server.
    reference = owning_pod(claim)
    if reference is None or not isinstance(owner, Present):
        return False
    return owner.uid != reference.uid or owner.is_done
