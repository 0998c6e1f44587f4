"""Claims for the entries of pods, from templates; and reservations that the scheduler never made.

A pod that has a node without having met the scheduler finds its allocated claims not reserved for
it; they are reserved here. Nothing is made or reserved for a pod that is done: its claims would be
released again at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.api.core.pod import Pod
from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from mooring.api.scheduling import PodGroup
from mooring.api.timestamp import Timestamp
from mooring.claims.consumers import consumer_of, is_group_consumer, is_reserved_for, reserved
from mooring.claims.features import Features
from mooring.claims.owners import check_made_for_pod, group_name
from mooring.claims.references import Named, reference_of
from mooring.claims.refusals import Refused as NotOurs
from mooring.claims.releases import is_pod_done
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Update, Write
from mooring.controllers.controller import Answers, Change, Controller, Failed, Refused, Step
from mooring.controllers.resourceclaims import indexes
from mooring.controllers.resourceclaims.counting import ClaimMetrics
from mooring.controllers.resourceclaims.entries import pod_need
from mooring.controllers.resourceclaims.making import SOURCE, claim_steps, complaint_about


def plan_pod(objects: Objects, key: Key, answers: Answers, gates: Gates) -> list[Step]:
    """Return what a pod's claims need."""
    pod = objects.find(Pod, *key)
    if pod is None or not pod.spec.resource_claims:
        return []
    if pod.metadata.deletion_timestamp is not None or is_pod_done(pod):
        return []
    features = Features.of(gates)
    group, name = None, group_name(pod)
    if name is not None:
        if not gates.enabled(Gate.GENERIC_WORKLOAD):
            return [Failed(_without_groups(name), attempts_max=1)]
        group = objects.find(PodGroup, pod.metadata.namespace, name)
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
    objects: Objects, pod: Pod, group: PodGroup | None, features: Features
) -> Iterator[Step]:
    """Give the updates that let a pod with a node use its allocated claims."""
    for entry in pod.spec.resource_claims:
        reference = reference_of(pod, entry)
        if not isinstance(reference, Named):
            continue
        claim = objects.find(ResourceClaim, pod.metadata.namespace, reference.name)
        if claim is None or claim.status.allocation is None:
            continue
        if reference.is_generated and check_made_for_pod(claim, pod, features) is not None:
            continue
        if is_reserved_for(claim, pod, features):
            continue
        consumer = consumer_of(pod, entry, group)
        if isinstance(consumer, NotOurs):
            yield Failed(consumer.reason)
        elif features.group_claims or not is_group_consumer(consumer):
            yield Update(reserved(claim, consumer), "status")


class PodClaims(Controller):
    """Makes the claims of pods."""

    name = "resourceclaim-controller"
    kinds = (Pod, PodGroup, ResourceClaim, ResourceClaimTemplate)
    optional = (PodGroup,)
    source = SOURCE
    workers = 50

    def __init__(self, gates: Gates, metrics: ClaimMetrics | None = None) -> None:
        self._gates = gates
        self._metrics = metrics or ClaimMetrics()

    def prepare(self, objects: Objects) -> None:
        """Keep the indexes that lead from claims, templates and groups to pods."""
        indexes.prepare(objects)

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give the pods whose claims may need something after a change."""
        value = change.value
        namespace, name = key_of(value)
        pods: Iterable[Pod] = ()
        match value:
            case Pod():
                pods = (value,) if change.new is not None else ()
            case PodGroup():
                pods = indexes.members(objects, namespace, name)
            case ResourceClaimTemplate() if change.new is not None:
                pods = objects.by(Pod, indexes.BY_TEMPLATE, f"{namespace}/{name}")
            case ResourceClaim():
                yield from _pods_of(objects, value)
        yield from (key_of(pod) for pod in pods if pod.spec.resource_claims)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Give what a pod's claims need."""
        return plan_pod(objects, key, answers, self._gates)

    def wrote(self, objects: Objects, key: Key, write: Write, now: Timestamp) -> Iterable[Step]:  # noqa: ARG002
        """Count claims that were made."""
        self._metrics.created(write, "success")
        return ()

    def refused(self, objects: Objects, key: Key, write: Write, refused: Refused) -> Iterable[Step]:
        """Count claims that could not be made, and tell of them."""
        self._metrics.created(write, "failure")
        return complaint_about(objects.find(Pod, *key), write, refused)


def _pods_of(objects: Objects, claim: ResourceClaim) -> Iterator[Key]:
    """Give the pods that use a claim, that own it, or whose group owns it."""
    namespace, name = key_of(claim)
    yield from (key_of(pod) for pod in objects.by(Pod, indexes.BY_CLAIM, f"{namespace}/{name}"))
    yield from ((namespace, pod) for pod in indexes.owner_names(claim, groups=False))
    for group in indexes.owner_names(claim, groups=True):
        yield from (key_of(pod) for pod in indexes.members(objects, namespace, group))
