"""The tables of claims, and of pods that wait for a node or use claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.core.pod import Pod
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims.pod_claims import owning_pod
from moorage.claims.reservations import is_pod_consumer
from moorage.insight.devices.model import ClaimId
from moorage.web.columns import Rows, Strings

PENDING, SCHEDULED, RUNNING, FINISHED = range(4)
PodKey = tuple[str, str]  # namespace, name
_FINISHED: Final = ("Succeeded", "Failed")


class OwnerRows:
    """Claims and pods as columns."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self.claims: Rows[ClaimId] = Rows(namespace=0, name=0, created=-1, pod=-1)
        self.pods: Rows[PodKey] = Rows(namespace=0, name=0, node=-1, state=0, created=-1, group=-1)
        self._claims_of: dict[PodKey, set[ClaimId]] = {}
        self._pod_of: dict[ClaimId, PodKey] = {}

    def copy(self, strings: Strings) -> OwnerRows:
        """Return a copy that uses these strings."""
        found = OwnerRows(strings)
        found.claims, found.pods = self.claims.copy(), self.pods.copy()
        found._claims_of = {pod: set(claims) for pod, claims in self._claims_of.items()}
        found._pod_of = dict(self._pod_of)
        return found

    def put_claim(self, claim: ResourceClaim) -> int:
        """Add or update a claim; return its row."""
        number, metadata = self._strings.number, claim.metadata
        key = ClaimId(metadata.namespace, metadata.name)
        self._refer(key, _pod_of(claim))
        return self.claims.put(
            key,
            namespace=number(key.namespace),
            name=number(key.name),
            created=created(metadata),
            pod=self.pods.row(self._pod_of[key]) if key in self._pod_of else -1,
        )

    def remove_claim(self, key: ClaimId) -> None:
        """Remove a claim."""
        self._refer(key, None)
        self.claims.remove(key)

    def put_pod(self, pod: Pod, node_row: int) -> None:
        """Add or update a pod, or remove it if it neither waits nor uses claims any more."""
        metadata = pod.metadata
        key = (metadata.namespace, metadata.name)
        if not is_shown(pod):
            self.remove_pod(key)
            return
        number, is_known = self._strings.number, key in self.pods
        row = self.pods.put(
            key,
            namespace=number(metadata.namespace),
            name=number(metadata.name),
            node=node_row,
            state=pod_state(pod),
            created=created(metadata),
        )
        if not is_known:
            self._point(key, row)

    def remove_pod(self, key: PodKey) -> None:
        """Remove a pod."""
        if key in self.pods:
            self.pods.remove(key)
            self._point(key, -1)

    def put_groups(self, groups: Mapping[PodKey, int]) -> None:
        """Update the groups of pending pods."""
        column = self.pods.columns["group"]
        for key in self.pods:
            column[self.pods.row(key)] = groups.get(key, -1)

    def _point(self, pod: PodKey, row: int) -> None:
        for claim in self._claims_of.get(pod, ()):
            if claim in self.claims:
                self.claims.put(claim, pod=row)

    def _refer(self, claim: ClaimId, pod: PodKey | None) -> None:
        before = self._pod_of.pop(claim, None)
        if before is not None:
            others = self._claims_of[before]
            others.discard(claim)
            if not others:
                del self._claims_of[before]
        if pod is not None:
            self._pod_of[claim] = pod
            self._claims_of.setdefault(pod, set()).add(claim)


def pod_state(pod: Pod) -> int:
    """Return the state of a pod as a number."""
    if pod.status.phase in _FINISHED:
        return FINISHED
    if not pod.spec.node_name:
        return PENDING
    return RUNNING if pod.status.phase == "Running" else SCHEDULED


def is_shown(pod: Pod) -> bool:
    """Return whether a pod waits for a node or uses claims."""
    if pod.spec.resource_claims or pod.status.extended_resource_claim_status is not None:
        return True
    return pod_state(pod) == PENDING


def created(metadata: ObjectMeta) -> int:
    """Return when an object was created, in seconds since 1970, or -1 if unknown."""
    stamp = metadata.creation_timestamp
    return -1 if stamp is None else int(stamp.instant.timestamp())


def _pod_of(claim: ResourceClaim) -> PodKey | None:
    """Return the first pod that the claim is reserved for, or else the pod that owns it."""
    namespace = claim.metadata.namespace
    for consumer in claim.status.reserved_for:
        if is_pod_consumer(consumer):
            return namespace, consumer.name
    owner = owning_pod(claim)
    return None if owner is None else (namespace, owner.name)
