"""The resource claim controllers: claims come from templates and go with those who use them.

PodClaimController      claims for the entries of pods, their names in the status, reservations for
                        pods that have a node without having met the scheduler
GroupClaimController    claims for the entries of pod groups
ClaimReleaseController  what nobody uses any more (in `resource_claim_releases`)

Most changes of pods and claims need nothing. They are looked at as they come (`_needs_work`), and
only pods that may need something are queued. Nothing is created or reserved for a pod that is done:
its claims would be released at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.api.core.pod import Pod
from moorage.api.gates import Gate, Gates
from moorage.api.resource.v1 import (
    ResourceClaim,
    ResourceClaimTemplate,
)
from moorage.api.scheduling import PodGroup
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import (
    ClaimFeatures,
    Named,
    NotNeeded,
    check_made_for_pod,
    controller_of,
    group_name,
    is_group,
    reference_of,
)
from moorage.claims.pod_claims import ClaimRejection as NotOurs
from moorage.claims.reservations import (
    consumer_of,
    is_group_consumer,
    is_pod_done,
    is_reserved_for,
    reserved,
)
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Update, Write
from moorage.controllers import resource_claim_entries
from moorage.controllers.controller import (
    Answers,
    Controller,
    ObjectChange,
    ReconcileFailed,
    Step,
    WriteRefused,
)
from moorage.controllers.metrics import ClaimMetrics
from moorage.controllers.resource_claim_entries import (
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
    continues_after_create = True  # the status names the claims that were created

    def __init__(self, gates: Gates, metrics: ClaimMetrics | None = None) -> None:
        self._gates = gates
        self._features = ClaimFeatures.of(gates)
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
        return [
            object_key(pod)
            for pod in _pods_of(objects, change)
            if pod.spec.resource_claims and _needs_work(objects, pod, self._features)
        ]

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the needs of a pod's claims."""
        return plan_pod(objects, key, answers, self._gates)


def _pods_of(objects: Indexer, change: ObjectChange) -> Iterable[Pod]:
    """Return the pods that a change affects."""
    value = change.value
    namespace, name = object_key(value)
    match value:
        case Pod():
            return (value,) if change.new is not None else ()
        case PodGroup():
            return resource_claim_entries.members(objects, namespace, name)
        case ResourceClaimTemplate() if change.new is not None:
            return objects.by_index(Pod, resource_claim_entries.BY_TEMPLATE, f"{namespace}/{name}")
        case ResourceClaim():
            return _pods_of_claim(objects, change)
    return ()


def _pods_of_claim(objects: Indexer, change: ObjectChange) -> list[Pod]:
    """Return the pods that use a claim, whose group owns it, or that own one which is gone.

    The owner of a new or changed claim needs nothing: the creator of the claim also names it.
    """
    claim: ResourceClaim = change.value
    namespace, name = object_key(claim)
    users = objects.by_index(Pod, resource_claim_entries.BY_CLAIM, f"{namespace}/{name}")
    pods = {pod.metadata.name: pod for pod in users}
    controller = controller_of(claim.metadata)
    if controller is not None and is_group(controller):
        members = resource_claim_entries.members(objects, namespace, controller.name)
        pods.update((pod.metadata.name, pod) for pod in members)
    elif controller is not None and change.gone is not None:
        owner = objects.get(Pod, namespace, controller.name)
        pods.update(() if owner is None else ((controller.name, owner),))
    return list(pods.values())


def _needs_work(objects: Indexer, pod: Pod, features: ClaimFeatures) -> bool:
    """Return whether the plan of a pod may create, name or reserve a claim."""
    if pod.metadata.deletion_timestamp is not None or is_pod_done(pod):
        return False
    for entry in pod.spec.resource_claims:
        reference = reference_of(pod, entry)
        if isinstance(reference, NotNeeded):
            continue
        if not isinstance(reference, Named):
            return True
        claim = objects.get(ResourceClaim, pod.metadata.namespace, reference.name)
        if reference.is_generated and (
            claim is None or check_made_for_pod(claim, pod, features) is not None
        ):
            return True
        if claim is None or claim.status.allocation is None or not pod.spec.node_name:
            continue
        if not is_reserved_for(claim, pod, features):
            return True
    return False


class GroupClaimController(_ClaimController):
    """Makes the claims of groups of pods."""

    name = "resourceclaim-controller-groups"
    kinds = (PodGroup, ResourceClaim, ResourceClaimTemplate)
    workers = 10

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the groups whose claims a change affects."""
        if not objects.count(PodGroup):
            return ()
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
                owner = controller_of(value.metadata)
                if owner is not None and is_group(owner):
                    return {(namespace, owner.name), *map(object_key, groups)}
        return [object_key(group) for group in groups]

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Return the needs of a group's claims."""
        group = objects.get(PodGroup, *key)
        if group is None or group.metadata.deletion_timestamp is not None:
            return []
        if not self._gates.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS):
            return []
        features = self._features
        steps, _ = claim_steps(
            group,
            group.spec.resource_claims,
            lambda entry: group_need(objects, group, entry, answers=answers, features=features),
        )
        return steps
