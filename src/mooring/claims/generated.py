"""Claims made from templates, for pods and for groups of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import PodResourceClaimStatus
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim, ResourceClaimTemplate
from mooring.api.scheduling import PodGroup, PodGroupResourceClaimStatus
from mooring.claims.features import Features
from mooring.claims.owners import (
    Owner,
    controller_of,
    controller_reference,
    is_controlled_by,
    is_group,
    is_pod,
)
from mooring.claims.references import statuses_of
from mooring.claims.refusals import Refused

# Of the 63 characters of a name the server needs five for its random ones, and one for a hyphen.
BASE_LENGTH_MAX = 57


def claim_from_template(
    owner: Owner, entry_name: str, template: ResourceClaimTemplate, features: Features
) -> ResourceClaim | Refused:
    """Return the claim to create for an entry of a pod or group; the server completes its name."""
    if not features.admin_access and _wants_admin_access(template):
        return Refused("admin access is requested, but the feature is disabled")
    if not features.prioritized_list and _has_alternatives(template):
        return Refused(
            "template includes a prioritized list of subrequests, but the feature is disabled"
        )
    wanted = template.spec.metadata
    metadata = ObjectMeta(
        generate_name=generate_name(owner.metadata.name, entry_name),
        namespace=owner.metadata.namespace,
        labels=dict(wanted.labels),
        annotations={**wanted.annotations, POD_CLAIM_ANNOTATION: entry_name},
        owner_references=(controller_reference(owner),),
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def generate_name(owner_name: str, entry_name: str) -> str:
    """Return the beginning of the claim's name.

    Where it is too long both parts are cut by the same factor, so that something of each is left;
    nothing then separates them from what the server appends.
    """
    whole = f"{owner_name}-{entry_name}-"
    length = len(whole)
    if length <= BASE_LENGTH_MAX:
        return whole
    owner_part = owner_name[: len(owner_name) * BASE_LENGTH_MAX // length]
    entry_part = entry_name[: len(entry_name) * BASE_LENGTH_MAX // length]
    return f"{owner_part}-{entry_part}"


def find_generated(
    owner: Owner, entry_name: str, claims: Iterable[ResourceClaim]
) -> ResourceClaim | None:
    """Return the claim that was made for an entry before, though the status does not say so.

    It is found by its owner and its annotation. Of several the first by name is it.
    """
    found = [claim for claim in claims if _is_made_for(claim, owner, entry_name)]
    return min(found, key=lambda claim: claim.metadata.name, default=None)


def pod_claim_statuses(pod: Pod, made: Mapping[str, str]) -> tuple[PodResourceClaimStatus, ...]:
    """Return the entries to apply to the pod's status: claims made now, and those it had."""
    return tuple(
        PodResourceClaimStatus(name=name, resource_claim_name=claim)
        for name, claim in _merged(pod, made)
    )


def group_claim_statuses(
    group: PodGroup, made: Mapping[str, str]
) -> tuple[PodGroupResourceClaimStatus, ...]:
    """Return the entries to apply to the group's status: claims made now, and those it had."""
    return tuple(
        PodGroupResourceClaimStatus(name=name, resource_claim_name=claim)
        for name, claim in _merged(group, made)
    )


def _merged(owner: Owner, made: Mapping[str, str]) -> list[tuple[str, str]]:
    # Entries without a name are not ours: whoever wrote them keeps them.
    before = {
        status.name: status.resource_claim_name
        for status in statuses_of(owner)
        if status.resource_claim_name is not None
    }
    return sorted({**before, **made}.items())


def _is_made_for(claim: ResourceClaim, owner: Owner, entry_name: str) -> bool:
    metadata = claim.metadata
    if metadata.namespace != owner.metadata.namespace or not is_controlled_by(claim, owner):
        return False
    controller = controller_of(metadata)
    is_of_kind = is_pod if isinstance(owner, Pod) else is_group
    is_ours = controller is not None and is_of_kind(controller)
    return is_ours and metadata.annotations.get(POD_CLAIM_ANNOTATION) == entry_name


def _wants_admin_access(template: ResourceClaimTemplate) -> bool:
    requests = template.spec.spec.devices.requests or ()
    return any(request.exactly and request.exactly.admin_access for request in requests)


def _has_alternatives(template: ResourceClaimTemplate) -> bool:
    return any(request.first_available for request in template.spec.spec.devices.requests or ())
