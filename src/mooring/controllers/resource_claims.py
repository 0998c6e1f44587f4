"""The resource claim controllers: claims come from templates and go with those who use them.

PodClaimController      claims for the entries of pods, their names in the status, reservations for
                        pods that have a node without having met the scheduler
GroupClaimController    claims for the entries of pod groups
ClaimReleaseController  stale reservations, deallocation, finalizers, deletion, in this order

Nothing is created or reserved for a pod that is done: its claims would be released at once. What to
release is decided by `mooring.claims.reservations`. A pod that the informers do not have was
deleted if that was seen, else it is looked up at the server: removing a reservation while the
scheduler is running could give a device two owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mooring.api.core.pod import Pod
from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from mooring.api.scheduling import PodGroup
from mooring.api.timestamp import Timestamp
from mooring.claims import reservations
from mooring.claims.pod_claims import (
    ClaimFeatures,
    Named,
    Owner,
    check_made_for_pod,
    claims_to_release,
    group_name,
    owning_pod,
    reference_of,
)
from mooring.claims.pod_claims import ClaimRejection as NotOurs
from mooring.claims.reservations import (
    Absent,
    ConsumerState,
    Unknown,
    consumer_of,
    is_group_consumer,
    is_pod_consumer,
    is_pod_done,
    is_reserved_for,
    release_steps,
    reserved,
    review,
    unprotected,
)
from mooring.client.indexer import Indexer, ObjectKey, object_key
from mooring.client.writes import Delete, Target, Update, Write
from mooring.controllers import resource_claim_entries
from mooring.controllers.controller import (
    Answers,
    Controller,
    DeletedUIDs,
    Lookup,
    ObjectChange,
    ReconcileFailed,
    Step,
    WriteRefused,
)
from mooring.controllers.metrics import ClaimMetrics
from mooring.controllers.resource_claim_entries import (
    SOURCE,
    claim_steps,
    complaint_about,
    group_need,
    pod_need,
)


def plan_pod(objects: Indexer, key: ObjectKey, answers: Answers, gates: Gates) -> list[Step]:
    """Return the needs of a pod's claims."""
    pod = objects.get(Pod, *key)
    if pod is None or not pod.spec.resource_claims:
        return []
    if pod.metadata.deletion_timestamp is not None or is_pod_done(pod):
        return []
    features = ClaimFeatures.of(gates)
    group, name = None, group_name(pod)
    if name is not None:
        if not gates.enabled(Gate.GENERIC_WORKLOAD):
            return [ReconcileFailed(_without_groups(name), attempts_max=1)]
        group = objects.get(PodGroup, pod.metadata.namespace, name)
        if group is None:
            return []  # Its coming wakes its pods.
    steps, is_complete = claim_steps(
        pod,
        pod.spec.resource_claims,
        lambda entry: pod_need(objects, pod, group, entry, answers=answers, features=features),
    )
    if is_complete and pod.spec.node_name:
        steps.extend(_reservations(objects, pod, group, features))
    return steps


def _without_groups(name: str) -> str:
    gate = Gate.GENERIC_WORKLOAD
    return f"Pod is a member of PodGroup {name} but {gate} feature is disabled"


def _reservations(
    objects: Indexer, pod: Pod, group: PodGroup | None, features: ClaimFeatures
) -> Iterator[Step]:
    """Yield the updates that let a pod with a node use its allocated claims."""
    for entry in pod.spec.resource_claims:
        reference = reference_of(pod, entry)
        if not isinstance(reference, Named):
            continue
        claim = objects.get(ResourceClaim, pod.metadata.namespace, reference.name)
        if claim is None or claim.status.allocation is None:
            continue
        if reference.is_generated and check_made_for_pod(claim, pod, features) is not None:
            continue
        if is_reserved_for(claim, pod, features):
            continue
        consumer = consumer_of(pod, entry, group)
        if isinstance(consumer, NotOurs):
            yield ReconcileFailed(consumer.reason)
        elif features.group_claims or not is_group_consumer(consumer):
            yield Update(reserved(claim, consumer), "status")


class _ClaimController(Controller):
    """Makes the claims of owners, which are of its first kind."""

    optional = (PodGroup,)
    source = SOURCE

    def __init__(self, gates: Gates, metrics: ClaimMetrics | None = None) -> None:
        self._gates = gates
        self._metrics = metrics or ClaimMetrics()

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that lead from claims, templates and groups to owners."""
        resource_claim_entries.prepare(objects)

    def wrote(
        self, objects: Indexer, key: ObjectKey, write: Write, now: Timestamp
    ) -> Iterable[Step]:
        """Count claims that were made."""
        self._metrics.created(write, "success")
        return ()

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Count claims that could not be created, and record events."""
        self._metrics.created(write, "failure")
        return complaint_about(objects.get(self.kinds[0], *key), write, refused)


class PodClaimController(_ClaimController):
    """Makes the claims of pods."""

    name = "resourceclaim-controller"
    kinds = (Pod, PodGroup, ResourceClaim, ResourceClaimTemplate)
    workers = 50

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the pods whose claims may need something after a change."""
        value = change.value
        namespace, name = object_key(value)
        pods: Iterable[Pod] = ()
        match value:
            case Pod():
                pods = (value,) if change.new is not None else ()
            case PodGroup():
                pods = resource_claim_entries.members(objects, namespace, name)
            case ResourceClaimTemplate() if change.new is not None:
                pods = objects.by_index(
                    Pod, resource_claim_entries.BY_TEMPLATE, f"{namespace}/{name}"
                )
            case ResourceClaim():
                yield from _pods_of(objects, value)
        yield from (object_key(pod) for pod in pods if pod.spec.resource_claims)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the needs of a pod's claims."""
        return plan_pod(objects, key, answers, self._gates)


def _pods_of(objects: Indexer, claim: ResourceClaim) -> Iterator[ObjectKey]:
    """Yield the pods that use a claim, that own it, or whose group owns it."""
    namespace, name = object_key(claim)
    yield from (
        object_key(pod)
        for pod in objects.by_index(Pod, resource_claim_entries.BY_CLAIM, f"{namespace}/{name}")
    )
    yield from ((namespace, pod) for pod in resource_claim_entries.owner_names(claim, groups=False))
    for group in resource_claim_entries.owner_names(claim, groups=True):
        yield from (
            object_key(pod) for pod in resource_claim_entries.members(objects, namespace, group)
        )


class GroupClaimController(_ClaimController):
    """Makes the claims of groups of pods."""

    name = "resourceclaim-controller-groups"
    kinds = (PodGroup, ResourceClaim, ResourceClaimTemplate)
    workers = 10

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the groups whose claims may need something after a change."""
        value = change.value
        namespace, name = object_key(value)
        groups: Iterable[PodGroup] = ()
        match value:
            case PodGroup() if change.new is not None and value.spec.resource_claims:
                groups = (value,)
            case ResourceClaimTemplate() if change.new is not None:
                groups = objects.by_index(
                    PodGroup, resource_claim_entries.BY_TEMPLATE, f"{namespace}/{name}"
                )
            case ResourceClaim():
                groups = objects.by_index(
                    PodGroup, resource_claim_entries.BY_CLAIM, f"{namespace}/{name}"
                )
                yield from (
                    (namespace, each)
                    for each in resource_claim_entries.owner_names(value, groups=True)
                )
        yield from (object_key(group) for group in groups)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Return the needs of a group's claims."""
        group = objects.get(PodGroup, *key)
        if group is None or group.metadata.deletion_timestamp is not None:
            return []
        if not self._gates.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS):
            return []
        features = ClaimFeatures.of(self._gates)
        steps, _ = claim_steps(
            group,
            group.spec.resource_claims,
            lambda entry: group_need(objects, group, entry, answers=answers, features=features),
        )
        return steps


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
            return list(_writes(claim, steps))


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
    ask = _ask(namespace, consumer)
    found = objects.get(ask.struct, namespace, consumer.name)
    if found is None:
        if ask not in answers:
            return Unknown()
        found = answers[ask]
    return _seen(found)


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
        """Yield the claims to look at after a change."""
        if isinstance(change.value, ResourceClaim):
            if change.new is not None:
                yield object_key(change.new)
            return
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


def _held(objects: Indexer, owner: Owner) -> Iterator[ObjectKey]:
    """Yield the claims that a pod or group uses, owns, or has reserved."""
    namespace = owner.metadata.namespace
    if isinstance(owner, Pod):
        yield from ((namespace, name) for name in claims_to_release(owner))
    yield from map(object_key, resource_claim_entries.owned_claims(objects, owner))
    yield from map(object_key, resource_claim_entries.reserved_claims(objects, owner))
