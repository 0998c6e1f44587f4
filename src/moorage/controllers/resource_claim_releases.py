"""Releases claims: stale reservations, deallocation, finalizers, deletion, in this order.

`moorage.claims.reservations` decides what to release. If the informers do not have a pod and have
not seen its deletion, the server is asked: a reservation that is removed too early could give a
device two owners. A claim whose consumer only the server knows is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from moorage.api.scheduling import PodGroup
from moorage.api.timestamp import Timestamp
from moorage.claims import reservations
from moorage.claims.pod_claims import ClaimFeatures, Owner, claims_to_release, owning_pod
from moorage.claims.reservations import (
    Absent,
    ConsumerState,
    Unknown,
    is_pod_consumer,
    is_pod_done,
    release_steps,
    review,
    unprotected,
)
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Delete, RequeueAfter, Target, Update
from moorage.controllers import resource_claim_entries
from moorage.controllers.controller import (
    Answers,
    Controller,
    DeletedUIDs,
    Lookup,
    ObjectChange,
    Step,
)
from moorage.controllers.resource_claim_entries import SOURCE

UNSEEN_AGAIN_S = 10.0


def plan_claim(
    objects: Indexer, key: ObjectKey, answers: Answers, *, gates: Gates, vanished: DeletedUIDs
) -> list[Step]:
    """Return what to release of a claim."""
    claim = objects.get(ResourceClaim, *key)
    if claim is None:
        return []
    namespace = claim.metadata.namespace
    match review(
        claim,
        lambda consumer: _known(objects, namespace, consumer, answers, vanished),
        ClaimFeatures.of(gates),
    ):
        case reservations.AskServer(consumers=consumers):
            return [_ask(namespace, each) for each in consumers]
        case stale:
            steps = release_steps(claim, stale, _owner(objects, claim))
            return [*_writes(claim, steps), *_later(objects, claim, answers)]


def _writes(claim: ResourceClaim, steps: Iterable[reservations.ReleaseStep]) -> Iterator[Step]:
    for step in steps:
        match step:
            case reservations.WriteStatus(status=status):
                claim = replace(claim, status=status)
                yield Update(claim, "status")
            case reservations.RemoveFinalizer():
                claim = unprotected(claim)
                yield Update(claim)
            case reservations.DeleteClaim():
                yield Delete(Target.of(claim))


def _later(objects: Indexer, claim: ResourceClaim, answers: Answers) -> Iterator[Step]:
    """Look again at a claim of which only the server knows a consumer.

    The consumer may go before the informers see it: then no change of it is ever told.
    """
    namespace = claim.metadata.namespace
    for consumer in claim.status.reserved_for:
        is_unseen = _cached(objects, namespace, consumer) is None
        if is_unseen and answers.get(_ask(namespace, consumer)) is not None:
            yield RequeueAfter(object_key(claim), UNSEEN_AGAIN_S)
            return


def _known(
    objects: Indexer,
    namespace: str,
    consumer: ResourceClaimConsumerReference,
    answers: Answers,
    vanished: DeletedUIDs,
) -> ConsumerState:
    """Return the known state of the pod or group that a claim is reserved for."""
    if consumer.uid in vanished:
        return Absent()
    found = _cached(objects, namespace, consumer)
    if found is None:
        ask = _ask(namespace, consumer)
        if ask not in answers:
            return Unknown()
        found = answers[ask]
    return _seen(found)


def _cached(
    objects: Indexer, namespace: str, consumer: ResourceClaimConsumerReference
) -> Owner | None:
    """Return the consumer as the informers have it; a namesake may be older, and be gone."""
    ask = _ask(namespace, consumer)
    found: Owner | None = objects.get(ask.struct, namespace, ask.name)
    return found if found is not None and found.metadata.uid == consumer.uid else None


def _seen(found: Owner | None) -> ConsumerState:
    match found:
        case None:
            return Absent()
        case Pod():
            return reservations.seen_pod(found)
        case PodGroup():
            return reservations.seen_group(found)


def _owner(objects: Indexer, claim: ResourceClaim) -> ConsumerState:
    owner = owning_pod(claim)
    pod = None if owner is None else objects.get(Pod, claim.metadata.namespace, owner.name)
    return Unknown() if pod is None else reservations.seen_pod(pod)


def _ask(namespace: str, consumer: ResourceClaimConsumerReference) -> Lookup:
    struct = Pod if is_pod_consumer(consumer) else PodGroup
    return Lookup(struct, namespace, consumer.name)


class ClaimReleaseController(Controller):
    """Releases claims that are no longer used."""

    name = "resourceclaim-controller-releases"
    kinds = (ResourceClaim, Pod, PodGroup)
    optional = (PodGroup,)
    source = SOURCE
    workers = 50

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._vanished = DeletedUIDs()

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that lead from pods and groups to claims."""
        resource_claim_entries.prepare(objects)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the claims that a change affects."""
        value = change.value
        if isinstance(value, ResourceClaim):
            needs_review = change.new is not None and _needs_review(objects, value)
            return (object_key(value),) if needs_review else ()
        if change.gone is None and not (isinstance(value, Pod) and is_pod_done(value)):
            return ()
        return self._keys(objects, change)

    def _keys(self, objects: Indexer, change: ObjectChange) -> Iterator[ObjectKey]:
        if change.gone is not None:
            self._vanished.note(change.gone.metadata.uid)
            yield from _held(objects, change.gone)
        if isinstance(change.new, Pod) and reservations.is_pod_done(change.new):
            yield from _held(objects, change.new)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Return what to release of a claim."""
        return plan_claim(objects, key, answers, gates=self._gates, vanished=self._vanished)


def _needs_review(objects: Indexer, claim: ResourceClaim) -> bool:
    """Return whether the plan of a claim may release something."""
    metadata = claim.metadata
    if metadata.deletion_timestamp is not None:
        return True
    for consumer in claim.status.reserved_for:
        struct: type[Any] = Pod if is_pod_consumer(consumer) else PodGroup
        found = objects.get(struct, metadata.namespace, consumer.name)
        if found is None or found.metadata.uid != consumer.uid:
            return True
        if isinstance(found, Pod) and is_pod_done(found):
            return True
    owner = owning_pod(claim)
    pod = None if owner is None else objects.get(Pod, metadata.namespace, owner.name)
    return (
        owner is not None
        and pod is not None
        and (pod.metadata.uid != owner.uid or is_pod_done(pod))
    )


def _held(objects: Indexer, owner: Owner) -> Iterator[ObjectKey]:
    """Yield the claims that a pod or group uses, owns, or has reserved."""
    namespace = owner.metadata.namespace
    if isinstance(owner, Pod):
        yield from ((namespace, name) for name in claims_to_release(owner))
    yield from map(object_key, resource_claim_entries.owned_claims(objects, owner))
    yield from map(object_key, resource_claim_entries.reserved_claims(objects, owner))
