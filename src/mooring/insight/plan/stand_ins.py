"""Pods that stand in for claims and templates that no pod uses.

Someone who has written a claim wants to know which devices it would get, before there is a pod.
So a claim by itself counts as one that is used by a pod which asks for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod, PodResourceClaim, PodSpec
from mooring.api.core.resources import ContainerClaim, ResourceRequirements
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from mooring.insight.snapshot.snapshot import Snapshot, identified

STAND_IN = "mooring.dev/stands-in-for"  # an annotation: claim/NAME or template/NAME
ENTRY = "claim"

Subject = ResourceClaim | ResourceClaimTemplate


def stand_ins(manifests: Snapshot, everything: Snapshot) -> tuple[Pod, ...]:
    """Return a pod for each claim and template of the manifests that nothing uses yet."""
    used = _used(everything)
    found: list[Subject] = [
        claim
        for claim in manifests.claims
        if claim.status.allocation is None and not claim.metadata.owner_references
    ]
    found += manifests.templates
    return tuple(stand_in(each) for each in found if _name_of(each) not in used)


def stand_in(subject: Subject) -> Pod:
    """Return a pod that uses a claim, or one made from a template, and asks for nothing else."""
    metadata = subject.metadata
    is_template = isinstance(subject, ResourceClaimTemplate)
    entry = PodResourceClaim(
        name=ENTRY,
        resource_claim_name=None if is_template else metadata.name,
        resource_claim_template_name=metadata.name if is_template else None,
    )
    resources = ResourceRequirements(claims=(ContainerClaim(name=ENTRY),))
    pod = Pod(
        metadata=ObjectMeta(
            name=f"{'template' if is_template else 'claim'}-{metadata.name}",
            namespace=metadata.namespace,
            annotations={STAND_IN: _title(subject)},
        ),
        spec=PodSpec(
            containers=(Container(name="container", resources=resources),),
            resource_claims=(entry,),
        ),
    )
    named: Pod = identified(pod)
    return named


def stands_for(pod: Pod) -> str | None:
    """Return what a pod stands in for: `claim/NAME` or `template/NAME`; None if it is real."""
    return pod.metadata.annotations.get(STAND_IN)


def _title(subject: Subject) -> str:
    kind = "template" if isinstance(subject, ResourceClaimTemplate) else "claim"
    return f"{kind}/{subject.metadata.name}"


def _name_of(subject: Subject) -> tuple[str, str]:
    return subject.metadata.namespace, _title(subject)


def _used(everything: Snapshot) -> set[tuple[str, str]]:
    """Return which claims and templates pods, controllers and groups name."""
    found: set[tuple[str, str]] = set()
    for pod in everything.pods:
        found.update(_named_by(pod.metadata.namespace, pod.spec.resource_claims))
    for controller in everything.controllers:
        entries = controller.spec.template.spec.resource_claims
        found.update(_named_by(controller.metadata.namespace, entries))
    for group in everything.groups:
        for entry in group.spec.resource_claims:
            found.add((group.metadata.namespace, f"claim/{entry.resource_claim_name}"))
            found.add((group.metadata.namespace, f"template/{entry.resource_claim_template_name}"))
    return found


def _named_by(namespace: str, entries: Iterable[PodResourceClaim]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        yield namespace, f"claim/{entry.resource_claim_name}"
        yield namespace, f"template/{entry.resource_claim_template_name}"
