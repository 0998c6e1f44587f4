"""What is to be done for one entry of a pod or of a group.

1. A claim that is named is there, or was never to be made. One that the status names is looked for
   at the server before it is made anew, because the copy of the claims may be late.
2. A claim that was made before, though the status does not say so, is taken.
3. Otherwise it is made from the template.
"""

from __future__ import annotations

from msgspec import Struct

from mooring.api.core.pod import Pod, PodResourceClaim
from mooring.api.gates import Gate
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from mooring.api.scheduling import PodGroup
from mooring.claims.consumers import consumer_of, is_group_consumer
from mooring.claims.features import Features
from mooring.claims.generated import claim_from_template, find_generated
from mooring.claims.owners import Owner, check_made_for_group, check_made_for_pod
from mooring.claims.references import Entry, Named, NotNeeded, Unsupported, reference_of
from mooring.claims.refusals import Refused
from mooring.client.objects import Objects
from mooring.controllers.controller import Answers, Ask
from mooring.controllers.resourceclaims.indexes import owned_claims

TEMPLATES = "resourceclaimtemplate.resource.k8s.io"


class Nothing(Struct, frozen=True):
    """There is nothing to do for the entry, or not yet."""


class Made(Struct, frozen=True):
    """The claim is there, but the status does not name it."""

    claim: str


class ToMake(Struct, frozen=True):
    """The claim is to be made."""

    claim: ResourceClaim


class Problem(Struct, frozen=True):
    """The claim cannot be made, and why."""

    reason: str
    comes_again: bool = True


Need = Nothing | Made | ToMake | Problem | Ask


def pod_need(
    objects: Objects,
    pod: Pod,
    group: PodGroup | None,
    entry: PodResourceClaim,
    *,
    answers: Answers,
    features: Features,
) -> Need:
    """Return what an entry of a pod needs; the group is the pod's, if it is in one."""
    if (need := _as_named(objects, pod, entry, answers, features)) is not None:
        return need
    match consumer_of(pod, entry, group):
        case Refused(reason=reason):
            return Problem(reason)
        case consumer if not is_group_consumer(consumer):
            return _from_template(objects, pod, entry, features)
    if not features.group_claims:
        gate = Gate.DRA_WORKLOAD_RESOURCE_CLAIMS
        return Problem(
            f"claim {entry.name} is a PodGroup claim but the {gate} feature is disabled",
            comes_again=False,
        )
    assert group is not None
    claim = find_generated(group, entry.name, owned_claims(objects, group))
    return Nothing() if claim is None else Made(claim.metadata.name)


def group_need(
    objects: Objects, group: PodGroup, entry: Entry, *, answers: Answers, features: Features
) -> Need:
    """Return what an entry of a group needs."""
    need = _as_named(objects, group, entry, answers, features)
    return _from_template(objects, group, entry, features) if need is None else need


def _as_named(
    objects: Objects, owner: Owner, entry: Entry, answers: Answers, features: Features
) -> Need | None:
    """Return what follows from the name that the entry has; None if a claim is to be found."""
    match reference_of(owner, entry):
        case NotNeeded() | Named(is_generated=False):
            return Nothing()
        case Unsupported(reason=reason):
            return Problem(f"checking for claim before creating it: {reason}")
        case Named(name=name):
            namespace = owner.metadata.namespace
            claim = objects.find(ResourceClaim, namespace, name)
            ask = Ask(ResourceClaim, namespace, name)
            if claim is None and ask not in answers:
                return ask
            claim = claim or answers[ask]
            if claim is not None and _is_for(claim, owner, features):
                return Nothing()
    return None


def _is_for(claim: ResourceClaim, owner: Owner, features: Features) -> bool:
    if isinstance(owner, Pod):
        return check_made_for_pod(claim, owner, features) is None
    return check_made_for_group(claim, owner) is None


def _from_template(objects: Objects, owner: Owner, entry: Entry, features: Features) -> Need:
    before = find_generated(owner, entry.name, owned_claims(objects, owner))
    if before is not None:
        return Made(before.metadata.name)
    name = entry.resource_claim_template_name
    assert name is not None
    template = objects.find(ResourceClaimTemplate, owner.metadata.namespace, name)
    if template is None:
        return Problem(f'resource claim template "{name}": {TEMPLATES} "{name}" not found')
    match claim_from_template(owner, entry.name, template, features):
        case Refused(reason=reason):
            return Problem(reason)
        case claim:
            return ToMake(claim)
