"""Departures: pods that end, and claims that are deleted because nobody uses them.

What is free then follows the rules of `moor whatif --delete-pod`: claims that were made for a pod
go with it, others keep their devices until their last user is gone.

    # holder: who has what a pod waits for, and goes as one: a pod, or all that use a claim
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from msgspec import Struct

from moorage.allocator.ledger import ClaimKey
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import owning_pod
from moorage.insight.answer.changes.changed_cluster import put_claim, remove_claim
from moorage.insight.messages import full_name
from moorage.insight.whatif.evicted_pods import released
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.pod_signature import PodInfo


class Holder(Struct, frozen=True):
    """The users of a claim, or a pod; or a claim that nobody uses."""

    pods: tuple[str, ...]  # their full names; those of a claim without users are gone
    uids: tuple[str, ...] = ()  # of the pods, and of their group if the claim is for that
    claim: ClaimKey | None = None
    is_unused: bool = False  # nobody frees the claim by leaving: it has to be deleted


Departure = tuple[Holder, ...]


def uids_of(departure: Departure) -> set[str]:
    """Return who is not there after a departure."""
    return {uid for each in departure for uid in each.uids}


def places_of(cluster: Cluster, departure: Departure) -> list[tuple[PodInfo, str]]:
    """Return the pods of a departure that have a node, with their nodes."""
    nodes = cluster.snapshot.nodes
    places = ((uid, cluster.snapshot.node_of(uid)) for uid in sorted(uids_of(departure)))
    return [(nodes[node].pods[uid], node) for uid, node in places if node is not None]


def freed_claims(cluster: Cluster, departure: Departure) -> Iterator[ClaimKey]:
    """Yield the claims that lose all their devices by a departure."""
    uids = uids_of(departure)
    deleted = {each.claim for each in departure if each.is_unused}
    for key, claim in cluster.claims.items():
        users = {each.uid for each in claim.status.reserved_for}
        if key in deleted or _owner(claim) in uids or (users and users <= uids):
            yield key


def depart(
    cluster: Cluster,
    departure: Departure,
    *,
    pods: Mapping[str, Pod],
    now: Timestamp,
    undo: ExitStack,
) -> None:
    """Remove pods, given by uid, and free what only they use, until the stack closes."""
    uids = uids_of(departure)
    deleted = {"/".join(each.claim) for each in departure if each.is_unused and each.claim}
    affected = [each for each in cluster.claims.values() if _is_affected(each, uids, deleted)]
    after = released(
        affected, gone_uids=uids, deleted=deleted, now=now, features=cluster.features.claims
    )
    for uid in sorted(uids):
        if cluster.snapshot.node_of(uid) is not None:
            cluster.remove_pod(pods[uid])
            undo.callback(cluster.put_pod, pods[uid])
    for claim in affected:
        if (claim.metadata.namespace, claim.metadata.name) in after.gone:
            remove_claim(cluster, claim, undo)
    for claim in after.kept:
        put_claim(cluster, claim, undo)


def _is_affected(claim: ResourceClaim, uids: set[str], deleted: set[str]) -> bool:
    users = (each.uid for each in claim.status.reserved_for)
    return _owner(claim) in uids or full_name(claim) in deleted or any(u in uids for u in users)


def _owner(claim: ResourceClaim) -> str | None:
    owner = owning_pod(claim)
    return None if owner is None else owner.uid
