"""Releases claims: stale reservations, deallocation, finalizers, deletion, in this order.

`moorage.claims.reservations` decides what to release. If the informers do not have a pod and have
not seen its deletion, the server is asked: a reservation that is removed too early could give a
device two owners. A claim whose consumer only the server knows is looked at again.

Devices that a scheduler left to nobody are freed after a while: `moorage.claims.leftovers` has the
law. The managedFields that it needs are looked up, as informers do not keep them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from moorage.api.scheduling import PodGroup
from moorage.api.timestamp import Timestamp
from moorage.claims import reservations
from moorage.claims.leftovers import LEFT_AFTER_S, is_allocated_by_scheduler, may_be_left_over
from moorage.claims.pod_claims import ClaimFeatures, Owner, claims_to_release, owning_pod
from moorage.claims.reservations import (
    Absent,
    ConsumerState,
    Unknown,
    deallocated,
    is_pod_consumer,
    is_pod_done,
    release_steps,
    review,
    unprotected,
)
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Delete, RecordEvent, RequeueAfter, Target, Update
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
UNRESERVED_MAX = 10_000
DEALLOCATED = "Deallocated"
FREED = "a scheduler had allocated the devices, and left them reserved for nobody"


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
        self._unreserved = _UnreservedClaims()

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that lead from pods and groups to claims."""
        resource_claim_entries.prepare(objects)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the claims that a change affects."""
        value = change.value
        if isinstance(value, ResourceClaim):
            may_be_left = change.new is not None and may_be_left_over(value)
            if not may_be_left:
                self._unreserved.forget(object_key(value))
            needs_review = change.new is not None and _needs_review(objects, value)
            return (object_key(value),) if may_be_left or needs_review else ()
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
        steps = plan_claim(objects, key, answers, gates=self._gates, vanished=self._vanished)
        return steps or self._plan_leftover(objects, key, now, answers)

    def _plan_leftover(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterator[Step]:
        """Yield the steps that free the devices of a claim which a scheduler left behind."""
        claim = objects.get(ResourceClaim, *key)
        if claim is None or not may_be_left_over(claim) or _has_user_on_node(objects, claim):
            self._unreserved.forget(key)
            return
        left_s = LEFT_AFTER_S - self._unreserved.age_s(claim, now)
        if left_s > 0:
            yield RequeueAfter(key, left_s)
            return
        ask = Lookup(ResourceClaim, *key)
        if ask not in answers:
            yield ask
            return
        stored = answers[ask]
        if stored is None or not _is_same_version(stored, claim):
            return  # the informer is about to report another one
        if is_allocated_by_scheduler(stored):
            freed = deallocated(claim)
            yield Update(freed, "status")
            yield Update(unprotected(freed))
            yield RecordEvent(claim, DEALLOCATED, FREED)


class _UnreservedClaims:
    """Since when claims have had devices and no reservation; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._since: OrderedDict[ObjectKey, tuple[AllocationResult | None, Timestamp]] = (
            OrderedDict()
        )

    def age_s(self, claim: ResourceClaim, now: Timestamp) -> float:
        """Return for how long a claim has been seen like this, with the same devices."""
        key, allocation = object_key(claim), claim.status.allocation
        if key not in self._since or self._since[key][0] != allocation:
            self._since[key] = (allocation, now)
            if len(self._since) > UNRESERVED_MAX:
                self._since.popitem(last=False)
            return 0.0
        return (now.instant - self._since[key][1].instant).total_seconds()

    def forget(self, key: ObjectKey) -> None:
        """Record that a claim is no longer like this."""
        self._since.pop(key, None)


def _has_user_on_node(objects: Indexer, claim: ResourceClaim) -> bool:
    """Return whether a pod that is on a node may run with a claim."""
    name = "/".join(object_key(claim))
    users = objects.by_index(Pod, resource_claim_entries.BY_CLAIM, name)
    return any(pod.spec.node_name and not is_pod_done(pod) for pod in users)


def _is_same_version(one: ResourceClaim, other: ResourceClaim) -> bool:
    return one.metadata.resource_version == other.metadata.resource_version


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
