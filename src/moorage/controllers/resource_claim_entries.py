"""The needs of one entry of a pod or pod group, and the steps for it.

1. A claim that the status names is looked up at the server before it is created again, because the
   informer of claims may lag.
2. A claim that was created before, though the status does not name it, is taken.
3. Otherwise it is created from the template.

Indexes lead from claims, templates and groups to pods; every key is `namespace/name`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from msgspec import Struct

from moorage.api.codec import to_tree
from moorage.api.core.pod import Pod, PodResourceClaim
from moorage.api.gates import Gate
from moorage.api.meta import namespaced_name
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim, ResourceClaimTemplate
from moorage.api.scheduling import PodGroup
from moorage.claims.claim_templates import (
    claim_from_template,
    find_generated,
    group_claim_statuses,
    pod_claim_statuses,
)
from moorage.claims.pod_claims import (
    ClaimEntry,
    ClaimFeatures,
    ClaimRejection,
    Named,
    NotNeeded,
    Owner,
    Unsupported,
    check_made_for_group,
    check_made_for_pod,
    claim_names,
    controller_of,
    group_name,
    reference_of,
)
from moorage.claims.reservations import consumer_of, is_group_consumer
from moorage.client.indexer import Indexer
from moorage.client.writes import Apply, Create, RecordEvent, Target, Write
from moorage.controllers.controller import Answers, Lookup, ReconcileFailed, Step, WriteRefused

TEMPLATES = "resourceclaimtemplate.resource.k8s.io"
BY_CLAIM = "claims used"
BY_TEMPLATE = "claim templates"
BY_GROUP = "pod group"
BY_OWNER = "claim owner"
BY_CONSUMER = "claim consumers"
MANAGER = "ResourceClaimController"
SOURCE = "resource_claim"
FAILED_CREATION = "FailedResourceClaimCreation"


class NothingNeeded(Struct, frozen=True):
    """There is nothing to do for the entry, or not yet."""


class ClaimCreated(Struct, frozen=True):
    """The claim is there, but the status does not name it."""

    claim: str


class ClaimToCreate(Struct, frozen=True):
    """The claim must be created."""

    claim: ResourceClaim


class EntryProblem(Struct, frozen=True):
    """The claim cannot be made, and why."""

    reason: str
    comes_again: bool = True


EntryNeed = NothingNeeded | ClaimCreated | ClaimToCreate | EntryProblem | Lookup


def pod_need(
    objects: Indexer,
    pod: Pod,
    group: PodGroup | None,
    entry: PodResourceClaim,
    *,
    answers: Answers,
    features: ClaimFeatures,
) -> EntryNeed:
    """Return the needs of a pod's entry; the group is the pod's, if it is in one."""
    if (need := _as_named(objects, pod, entry, answers, features)) is not None:
        return need
    match consumer_of(pod, entry, group):
        case ClaimRejection(reason=reason):
            return EntryProblem(reason)
        case consumer if not is_group_consumer(consumer):
            return _from_template(objects, pod, entry, answers, features)
    if not features.group_claims:
        gate = Gate.DRA_WORKLOAD_RESOURCE_CLAIMS
        return EntryProblem(
            f"claim {entry.name} is a PodGroup claim but the {gate} feature is disabled",
            comes_again=False,
        )
    assert group is not None
    claim = find_generated(group, entry.name, owned_claims(objects, group))
    return NothingNeeded() if claim is None else ClaimCreated(claim.metadata.name)


def group_need(
    objects: Indexer,
    group: PodGroup,
    entry: ClaimEntry,
    *,
    answers: Answers,
    features: ClaimFeatures,
) -> EntryNeed:
    """Return the needs of a group's entry."""
    need = _as_named(objects, group, entry, answers, features)
    return _from_template(objects, group, entry, answers, features) if need is None else need


def _as_named(
    objects: Indexer, owner: Owner, entry: ClaimEntry, answers: Answers, features: ClaimFeatures
) -> EntryNeed | None:
    """Return what follows from the name that the entry has; None if a claim must be found."""
    match reference_of(owner, entry):
        case NotNeeded() | Named(is_generated=False):
            return NothingNeeded()
        case Unsupported(reason=reason):
            return EntryProblem(f"checking for claim before creating it: {reason}")
        case Named(name=name):
            namespace = owner.metadata.namespace
            claim = objects.get(ResourceClaim, namespace, name)
            ask = Lookup(ResourceClaim, namespace, name)
            if claim is None and ask not in answers:
                return ask
            claim = claim or answers[ask]
            if claim is not None and _is_for(claim, owner, features):
                return NothingNeeded()
    return None


def _is_for(claim: ResourceClaim, owner: Owner, features: ClaimFeatures) -> bool:
    if isinstance(owner, Pod):
        return check_made_for_pod(claim, owner, features) is None
    return check_made_for_group(claim, owner) is None


def _from_template(
    objects: Indexer, owner: Owner, entry: ClaimEntry, answers: Answers, features: ClaimFeatures
) -> EntryNeed:
    created = [each for each in answers.values() if isinstance(each, ResourceClaim)]
    before = find_generated(owner, entry.name, (*owned_claims(objects, owner), *created))
    if before is not None:
        return ClaimCreated(before.metadata.name)
    name = entry.resource_claim_template_name
    assert name is not None
    template = objects.get(ResourceClaimTemplate, owner.metadata.namespace, name)
    if template is None:
        return EntryProblem(f'resource claim template "{name}": {TEMPLATES} "{name}" not found')
    match claim_from_template(owner, entry.name, template, features):
        case ClaimRejection(reason=reason):
            return EntryProblem(reason)
        case claim:
            return ClaimToCreate(claim)


def prepare(objects: Indexer) -> None:
    """Keep all indexes of this package."""
    for struct in (Pod, PodGroup):
        objects.index(struct, BY_CLAIM, _claims)
        objects.index(struct, BY_TEMPLATE, _templates)
    objects.index(Pod, BY_GROUP, _group)
    objects.index(ResourceClaim, BY_OWNER, _owner)
    objects.index(ResourceClaim, BY_CONSUMER, _consumers)


def owned_claims(objects: Indexer, owner: Owner) -> Collection[ResourceClaim]:
    """Return the claims that this very pod or group controls."""
    key = f"{owner.metadata.namespace}/{owner.metadata.uid}"
    return objects.by_index(ResourceClaim, BY_OWNER, key)


def reserved_claims(objects: Indexer, consumer: Owner) -> Collection[ResourceClaim]:
    """Return the claims that are reserved for this very pod or group."""
    key = f"{consumer.metadata.namespace}/{consumer.metadata.uid}"
    return objects.by_index(ResourceClaim, BY_CONSUMER, key)


def members(objects: Indexer, namespace: str, group: str) -> Collection[Pod]:
    """Return the pods of a group, whether it is there or not."""
    return objects.by_index(Pod, BY_GROUP, f"{namespace}/{group}")


def _claims(owner: Owner) -> Iterable[str]:
    if not owner.spec.resource_claims:
        return ()
    return [f"{owner.metadata.namespace}/{name}" for name in claim_names(owner)]


def _templates(owner: Owner) -> Iterable[str]:
    names = {each.resource_claim_template_name for each in owner.spec.resource_claims}
    return [f"{owner.metadata.namespace}/{name}" for name in names if name is not None]


def _group(pod: Pod) -> Iterable[str]:
    name = group_name(pod)
    return () if name is None else (f"{pod.metadata.namespace}/{name}",)


def _owner(claim: ResourceClaim) -> Iterable[str]:
    controller = controller_of(claim.metadata)
    return () if controller is None else (f"{claim.metadata.namespace}/{controller.uid}",)


def _consumers(claim: ResourceClaim) -> Iterable[str]:
    return {f"{claim.metadata.namespace}/{each.uid}" for each in claim.status.reserved_for}


def claim_steps(
    owner: Owner, entries: Iterable[ClaimEntry], need_of: Callable[[Any], EntryNeed]
) -> tuple[list[Step], bool]:
    """Return the steps for the entries, and whether all of them have what they need.

    Questions come first. Missing claims are created before the status names any: then the key is
    planned again, finds them all by their owner, and names them with one write.
    """
    asks: list[Step] = []
    creates: list[Step] = []
    made: dict[str, str] = {}
    for entry in entries:
        match need_of(entry):
            case Lookup() as ask:
                asks.append(ask)
            case ClaimToCreate(claim=claim):
                creates.append(Create(claim))
            case ClaimCreated(claim=name):
                made[entry.name] = name
            case EntryProblem() as problem:
                return [*asks] or [*creates, *_complaint(owner, entry.name, problem)], False
    if asks or creates:
        return asks or creates, False
    return ([_naming(owner, made)] if made else []), True


def _complaint(owner: Owner, entry: str, problem: EntryProblem) -> Iterator[Step]:
    yield complaint(owner, entry, problem.reason)
    noun = "pod" if isinstance(owner, Pod) else "PodGroup"
    reason = f"{noun} {namespaced_name(owner.metadata)}, {_field(owner)} {entry}: {problem.reason}"
    yield ReconcileFailed(reason, attempts_max=None if problem.comes_again else 1)


def complaint(owner: Owner, entry: str, reason: str) -> RecordEvent:
    """Return the event for a claim that could not be created."""
    return RecordEvent(
        owner, FAILED_CREATION, f"{_field(owner)} {entry}: {reason}", is_warning=True
    )


def complaint_about(owner: Owner | None, write: Write, refused: WriteRefused) -> Iterator[Step]:
    """Yield the event for a claim that the server did not take."""
    if isinstance(write, Create) and isinstance(write.value, ResourceClaim) and owner is not None:
        entry = write.value.metadata.annotations.get(POD_CLAIM_ANNOTATION, "")
        # The claim has no name yet, so that Kubernetes' text has none either.
        yield complaint(owner, entry, f"create ResourceClaim : {refused.message}")


def _field(owner: Owner) -> str:
    return "PodResourceClaim" if isinstance(owner, Pod) else "PodGroupResourceClaim"


def _naming(owner: Owner, made: dict[str, str]) -> Apply:
    statuses: Iterable[Any]
    if isinstance(owner, Pod):
        statuses = pod_claim_statuses(owner, made)
    else:
        statuses = group_claim_statuses(owner, made)
    metadata = owner.metadata
    body = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        # With the uid, so that a new object of the same name does not get claims that are not its.
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "status": {"resourceClaimStatuses": [to_tree(status) for status in statuses]},
    }
    return Apply(Target.of(owner), body, MANAGER, "status")
