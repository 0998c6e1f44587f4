"""Stand-ins: pods for the claims and templates that no pod uses.

Whoever writes a claim wants to know which devices it would get before there is a pod. So a claim or
template that nothing uses is planned for a pod that uses it and requests nothing else. No such pod
is ever created, so a stand-in answers for itself alone: it comes after all pods, on the devices
that they leave, is charged to no quota of theirs, and gives its devices back before the next one.

    # unused: a claim or template that no pod, controller or pod group names
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Final

from msgspec.structs import replace

from moorage.api.core.pod import Container, Pod, PodResourceClaim, PodSpec
from moorage.api.core.resources import ContainerClaim, ResourceRequirements
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.insight.messages import full_name
from moorage.insight.snapshot.snapshot import Snapshot, identified

STAND_IN: Final = "moorage.dev/stands-in-for"  # an annotation: claim/NAME or template/NAME
ENTRY: Final = "claim"
Unused = ResourceClaim | ResourceClaimTemplate


def unused_in(manifests: Snapshot, everything: Snapshot) -> tuple[Unused, ...]:
    """Return the claims and templates of the manifests that nothing uses yet."""
    used = _used(everything)
    found: list[Unused] = [
        claim
        for claim in manifests.claims
        if claim.status.allocation is None and not claim.metadata.owner_references
    ]
    found += manifests.templates
    return tuple(each for each in found if (each.metadata.namespace, _title(each)) not in used)


def with_stand_ins(snapshot: Snapshot, unused: Sequence[Unused]) -> Snapshot:
    """Return the snapshot with a stand-in for each of the unused, last and under free names."""
    if not unused:
        return snapshot
    taken = {full_name(pod) for pod in snapshot.pods}
    added: list[Pod] = []
    for each in unused:
        added.append(stand_in(each, taken))
        taken.add(full_name(added[-1]))
    return replace(snapshot, pods=(*snapshot.pods, *added))


def stand_in(subject: Unused, taken: Collection[str] = ()) -> Pod:
    """Return a pod that uses a claim or template and requests nothing else."""
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
            name=_free_name(subject, taken),
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


def _free_name(subject: Unused, taken: Collection[str]) -> str:
    """Return the name of a stand-in: no pod may have it, it would be replaced."""
    space, first = subject.metadata.namespace, _title(subject).replace("/", "-")
    names = chain((first,), (f"{first}-{number}" for number in count(2)))
    return next(name for name in names if f"{space}/{name}" not in taken)


def stands_for(pod: Pod) -> str | None:
    """Return `claim/NAME` or `template/NAME` for a stand-in pod; None for a real one."""
    found = pod.metadata.annotations.get(STAND_IN)
    # The annotation alone is not enough: anybody can write it. But real pods have an image.
    return None if found and any(each.image for each in pod.spec.containers) else found


def _title(subject: Unused) -> str:
    kind = "template" if isinstance(subject, ResourceClaimTemplate) else "claim"
    return f"{kind}/{subject.metadata.name}"


def _used(everything: Snapshot) -> set[tuple[str, str]]:
    """Return the claims and templates that pods, controllers and pod groups name."""
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


def _named_by(namespace: str, entries: Iterable[PodResourceClaim]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        yield namespace, f"claim/{entry.resource_claim_name}"
        yield namespace, f"template/{entry.resource_claim_template_name}"
