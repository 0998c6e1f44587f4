"""Claims that nobody uses any more: reservations, allocation, finalizer and claim go in this order.

What is to go is for `mooring.claims.releases` to say. Here it is found out what is known of those
that claims are reserved for. A pod that is not among the objects was deleted if we saw that, else
the server is asked: taking away a reservation while the scheduler is at work would give a device
two owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.gates import Gates
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from mooring.api.scheduling import PodGroup
from mooring.api.timestamp import Timestamp
from mooring.claims import releases
from mooring.claims.consumers import is_pod_consumer, unprotected
from mooring.claims.features import Features
from mooring.claims.owners import Owner, owning_pod
from mooring.claims.references import claims_to_release
from mooring.claims.releases import Absent, Knowledge, Unknown, release_steps, review
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Delete, Target, Update
from mooring.controllers.controller import Answers, Ask, Change, Controller, Step
from mooring.controllers.resourceclaims import indexes
from mooring.controllers.resourceclaims.making import SOURCE
from mooring.controllers.vanished import Vanished


def plan_claim(
    objects: Objects, key: Key, answers: Answers, *, gates: Gates, vanished: Vanished
) -> list[Step]:
    """Return what is to go of a claim."""
    claim = objects.find(ResourceClaim, *key)
    if claim is None:
        return []
    namespace = claim.metadata.namespace
    match review(
        claim,
        lambda consumer: _known(objects, namespace, consumer, answers, vanished),
        Features.of(gates),
    ):
        case releases.AskServer(consumers=consumers):
            return [_ask(namespace, each) for each in consumers]
        case reservations:
            steps = release_steps(claim, reservations, _owner(objects, claim))
            return list(_writes(claim, steps))


def _writes(claim: ResourceClaim, steps: Iterable[releases.Step]) -> Iterator[Step]:
    for step in steps:
        match step:
            case releases.WriteStatus(status=status):
                claim = replace(claim, status=status)
                yield Update(claim, "status")
            case releases.RemoveFinalizer():
                claim = unprotected(claim)
                yield Update(claim)
            case releases.Delete():
                yield Delete(Target.of(claim))


def _known(
    objects: Objects,
    namespace: str,
    consumer: ResourceClaimConsumerReference,
    answers: Answers,
    vanished: Vanished,
) -> Knowledge:
    """Return what is known of the pod or group that a claim is reserved for."""
    if consumer.uid in vanished:
        return Absent()
    ask = _ask(namespace, consumer)
    found = objects.find(ask.struct, namespace, consumer.name)
    if found is None:
        if ask not in answers:
            return Unknown()
        found = answers[ask]
    return _seen(found)


def _seen(found: Owner | None) -> Knowledge:
    match found:
        case None:
            return Absent()
        case Pod():
            return releases.seen_pod(found)
        case PodGroup():
            return releases.seen_group(found)


def _owner(objects: Objects, claim: ResourceClaim) -> Knowledge:
    owner = owning_pod(claim)
    pod = None if owner is None else objects.find(Pod, claim.metadata.namespace, owner.name)
    return Unknown() if pod is None else releases.seen_pod(pod)


def _ask(namespace: str, consumer: ResourceClaimConsumerReference) -> Ask:
    struct = Pod if is_pod_consumer(consumer) else PodGroup
    return Ask(struct, namespace, consumer.name)


class ClaimReleases(Controller):
    """Takes back what is no longer used."""

    name = "resourceclaim-controller-releases"
    kinds = (ResourceClaim, Pod, PodGroup)
    optional = (PodGroup,)
    source = SOURCE
    workers = 50

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._vanished = Vanished()

    def prepare(self, objects: Objects) -> None:
        """Keep the indexes that lead from pods and groups to claims."""
        indexes.prepare(objects)

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give the claims to look at after a change."""
        if isinstance(change.value, ResourceClaim):
            if change.new is not None:
                yield key_of(change.new)
            return
        if change.gone is not None:
            self._vanished.note(change.gone.metadata.uid)
            yield from _held(objects, change.gone)
        if isinstance(change.new, Pod) and releases.is_pod_done(change.new):
            yield from _held(objects, change.new)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Give what is to go of a claim."""
        return plan_claim(objects, key, answers, gates=self._gates, vanished=self._vanished)


def _held(objects: Objects, owner: Owner) -> Iterator[Key]:
    """Give the claims that a pod or group uses, owns, or has reserved."""
    namespace = owner.metadata.namespace
    if isinstance(owner, Pod):
        yield from ((namespace, name) for name in claims_to_release(owner))
    yield from map(key_of, indexes.owned_claims(objects, owner))
    yield from map(key_of, indexes.reserved_claims(objects, owner))
