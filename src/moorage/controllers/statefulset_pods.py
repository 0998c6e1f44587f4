"""The pods of stateful sets: their identities, and the volume claims that belong to these.

# ordinal: the number at the end of a pod's name, which decides its host name and claims
# condemned: a pod whose ordinal the set no longer wants
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.apps import StatefulSet
from moorage.api.codec import decode_tree
from moorage.api.core.persistent_volume import PersistentVolumeClaim
from moorage.api.core.pod import Pod, PodTemplateSpec
from moorage.api.errors import DecodeError
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.client.indexer import Indexer
from moorage.client.writes import Create, RecordEvent, Update
from moorage.controllers.controller import Step
from moorage.controllers.controller_history import REVISION_HASH
from moorage.controllers.controller_ref_manager import reference_to

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"

_NAME = re.compile(r"(.*)-([0-9]{1,9})")


def ordinal_of(owner: StatefulSet, pod: Pod) -> int | None:
    """Return the ordinal of a pod, or None if its name is not that of a pod of the set."""
    match = _NAME.fullmatch(pod.metadata.name)
    if match is None or match[1] != owner.metadata.name:
        return None
    return int(match[2])


def start_of(owner: StatefulSet) -> int:
    """Return the first ordinal."""
    ordinals = owner.spec.ordinals
    start = ordinals.get("start", 0) if isinstance(ordinals, dict) else 0
    return start if isinstance(start, int) else 0


def replicas_of(owner: StatefulSet) -> int:
    """Return the number of replicas of a set, which defaults to one."""
    return 1 if owner.spec.replicas is None else max(0, owner.spec.replicas)


def stateful_pod(owner: StatefulSet, template: PodTemplateSpec, revision: str, ordinal: int) -> Pod:
    """Return the pod of an ordinal, made from a template and labelled with its revision."""
    name = f"{owner.metadata.name}-{ordinal}"
    labels = {
        **template.metadata.labels,
        POD_NAME: name,
        POD_INDEX: str(ordinal),
        REVISION_HASH: revision,
    }
    metadata = ObjectMeta(
        name=name,
        generate_name=f"{owner.metadata.name}-",
        namespace=owner.metadata.namespace,
        labels=labels,
        annotations=dict(template.metadata.annotations),
        finalizers=template.metadata.finalizers,
        owner_references=(reference_to(owner),),
    )
    spec = replace(
        template.spec,
        hostname=name,
        subdomain=owner.spec.service_name,
        volumes=_volumes(owner, template, ordinal),
    )
    return Pod(metadata=metadata, spec=spec)


def _volumes(owner: StatefulSet, template: PodTemplateSpec, ordinal: int) -> tuple[Any, ...]:
    """Return the volumes; the claims of the ordinal replace volumes of the same names."""
    claims = {
        _template_name(tree): claim_name(owner, _template_name(tree), ordinal)
        for tree in owner.spec.volume_claim_templates
    }
    added = (
        {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        for name, claim in claims.items()
    )
    return (*added, *(v for v in template.spec.volumes if v.get("name") not in claims))


def claim_name(owner: StatefulSet, template: str, ordinal: int) -> str:
    """Return the name of the claim of an ordinal."""
    return f"{template}-{owner.metadata.name}-{ordinal}"


def _template_name(tree: Any) -> str:
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


# --- claims ------------------------------------------------------------------------------------


def missing_claims(objects: Indexer, owner: StatefulSet, ordinal: int) -> Iterator[Step]:
    """Yield the creations of missing claims that the pod of an ordinal needs."""
    for tree in owner.spec.volume_claim_templates:
        name = claim_name(owner, _template_name(tree), ordinal)
        if objects.get(PersistentVolumeClaim, owner.metadata.namespace, name) is not None:
            continue
        claim = _claim_of(owner, tree, name)
        if claim is not None:
            pod = f"{owner.metadata.name}-{ordinal}"
            yield Create(claim)
            words = f"create Claim {name} Pod {pod} in StatefulSet {owner.metadata.name} success"
            yield RecordEvent(owner, "SuccessfulCreate", words, "Create")


def stale_claims(objects: Indexer, owner: StatefulSet, ordinal: int) -> bool:
    """Return whether a claim of the ordinal is about to be deleted, so that its pod must wait."""
    claims = _claims(objects, owner, ordinal)
    pod = f"{owner.metadata.name}-{ordinal}"
    existing = objects.get(Pod, owner.metadata.namespace, pod)
    uid = "" if existing is None else existing.metadata.uid
    return any(
        claim.metadata.deletion_timestamp is not None
        or any(
            ref.kind == "Pod" and ref.name == pod and ref.uid != uid
            for ref in claim.metadata.owner_references
        )
        for claim in claims
    )


def _claims(objects: Indexer, owner: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
    names = (
        claim_name(owner, _template_name(tree), ordinal)
        for tree in owner.spec.volume_claim_templates
    )
    found = (objects.get(PersistentVolumeClaim, owner.metadata.namespace, name) for name in names)
    return [claim for claim in found if claim is not None]


def _claim_of(owner: StatefulSet, tree: Any, name: str) -> PersistentVolumeClaim | None:
    try:
        claim: PersistentVolumeClaim = decode_tree(tree, PersistentVolumeClaim).value
    except DecodeError:
        return None
    selector = owner.spec.selector
    labels = dict(selector.match_labels) if selector is not None else {}
    metadata = replace(
        claim.metadata,
        name=name,
        namespace=owner.metadata.namespace,
        labels={**claim.metadata.labels, **labels},
        owner_references=_owners(owner, claim, None),
        creation_timestamp=None,
    )
    return PersistentVolumeClaim(metadata=metadata, spec=claim.spec)


def retention(
    objects: Indexer, owner: StatefulSet, ordinal: int, condemned: Pod | None
) -> Iterator[Step]:
    """Yield the writes that give the claims of an ordinal the owners that the policy asks for."""
    for claim in _claims(objects, owner, ordinal):
        owners = _owners(owner, claim, condemned)
        if owners != claim.metadata.owner_references:
            yield Update(replace(claim, metadata=replace(claim.metadata, owner_references=owners)))


def _owners(
    owner: StatefulSet, claim: PersistentVolumeClaim, condemned: Pod | None
) -> tuple[OwnerReference, ...]:
    """Return the owners of a claim: the set, the condemned pod, or neither."""
    policy = owner.spec.persistent_volume_claim_retention_policy
    said = policy if isinstance(policy, dict) else {}
    deletes_with_set = said.get("whenDeleted") == "Delete"
    goes_with_pod = said.get("whenScaled") == "Delete" and condemned is not None
    ours = {owner.metadata.uid}
    ours |= {r.uid for r in claim.metadata.owner_references if r.kind == "Pod"}
    others = tuple(r for r in claim.metadata.owner_references if r.uid not in ours)
    if any(each.controller for each in others):
        return claim.metadata.owner_references  # Another controller manages the claim.
    if goes_with_pod and condemned is not None:
        return (*others, reference_to(condemned))
    return (*others, reference_to(owner)) if deletes_with_set else others
