"""When a claim is no longer used: which reservations are stale, and what follows from that.

1. `review` goes through the reservations with what is known of pods and groups. If something is
   known of none, it says whom to look for at the server, because a reservation that is taken away
   while the scheduler is at work gives a device two owners.
2. `release_steps` says what to write, in order. An allocation is cleared only when the last
   consumer goes, or when the claim is to be deleted: a claim that nobody ever reserved keeps it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import FAILED, SUCCEEDED
from mooring.api.resource.v1 import (
    FINALIZER,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from mooring.api.scheduling import PodGroup
from mooring.claims.consumers import is_group_consumer, is_pod_consumer
from mooring.claims.features import Features
from mooring.claims.owners import owning_pod

# --- what is known of a pod or group ----------------------------------------------------------


class Present(Struct, frozen=True):
    """One with the name is there; it needs no claims any more if it is done."""

    uid: str
    is_done: bool = False


class Absent(Struct, frozen=True):
    """It was deleted, or the server has none with the name."""


class Unknown(Struct, frozen=True):
    """We have not seen it, which may be because we are late."""


Knowledge = Present | Absent | Unknown

# What is known of the object that a reservation names, in the namespace of the claim.
Know = Callable[[ResourceClaimConsumerReference], Knowledge]


def seen_pod(pod: Pod) -> Present:
    """Return what a pod that is there tells."""
    return Present(pod.metadata.uid, is_pod_done(pod))


def seen_group(group: PodGroup) -> Present:
    """Return what a group that is there tells; its pods may run as long as it is."""
    return Present(group.metadata.uid)


def is_pod_done(pod: Pod) -> bool:
    """Tell whether no container of the pod runs or ever will."""
    if pod.status.phase in (SUCCEEDED, FAILED):
        return True
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


# --- reservations -----------------------------------------------------------------------------


class Reservations(Struct, frozen=True):
    """The consumers that still count, and those that do not."""

    remaining: tuple[ResourceClaimConsumerReference, ...]
    stale: tuple[ResourceClaimConsumerReference, ...]


class AskServer(Struct, frozen=True):
    """Nothing can be said before the server was asked for these consumers."""

    consumers: tuple[ResourceClaimConsumerReference, ...]


def review(claim: ResourceClaim, know: Know, features: Features) -> Reservations | AskServer:
    """Return which reservations of the claim are stale; consumers of other kinds are kept."""
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


# --- what to do -------------------------------------------------------------------------------


class WriteStatus(Struct, frozen=True):
    """Replace the status; fail if the claim has changed since."""

    status: ResourceClaimStatus


class RemoveFinalizer(Struct, frozen=True):
    """Take the finalizer of allocated claims away."""


class Delete(Struct, frozen=True):
    """Delete the claim, because the pod that it was made for needs it no more."""


Step = WriteStatus | RemoveFinalizer | Delete


def release_steps(
    claim: ResourceClaim, reservations: Reservations, owner: Knowledge
) -> tuple[Step, ...]:
    """Return what to do with the claim; owner is what is known of the pod it was made for."""
    steps = _unused(claim, reservations)
    is_deleting = claim.metadata.deletion_timestamp is not None
    if not reservations.remaining and not is_deleting and _has_lost_owner(claim, owner):
        steps.append(Delete())
    return tuple(steps)


def _unused(claim: ResourceClaim, reservations: Reservations) -> list[Step]:
    is_protected = FINALIZER in claim.metadata.finalizers
    is_deleting = claim.metadata.deletion_timestamp is not None
    steps: list[Step] = []
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


def _has_lost_owner(claim: ResourceClaim, owner: Knowledge) -> bool:
    # A pod that is not known is left to the garbage collector, which makes sure.
    reference = owning_pod(claim)
    if reference is None or not isinstance(owner, Present):
        return False
    return owner.uid != reference.uid or owner.is_done
