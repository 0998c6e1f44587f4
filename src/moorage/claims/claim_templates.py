"""Claims generated from templates, for pods and PodGroups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.core.pod import Pod, PodResourceClaimStatus
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim, ResourceClaimTemplate
from moorage.api.scheduling import PodGroup, PodGroupResourceClaimStatus
from moorage.claims.pod_claims import (
    ClaimFeatures,
    ClaimRejection,
    Owner,
    controller_of,
    controller_reference,
    is_controlled_by,
    is_group,
    is_pod,
    statuses_of,
)

# A name has 63 characters; the server needs five for its suffix, and one for a hyphen.
BASE_LENGTH_MAX = 57


def claim_from_template(
    owner: Owner, entry_name: str, template: ResourceClaimTemplate, features: ClaimFeatures
) -> ResourceClaim | ClaimRejection:
    """Return the claim to create for an entry of a pod or group; the server adds a suffix."""
    if not features.admin_access and _requests_admin_access(template):
        return ClaimRejection("admin access is requested, but the feature is disabled")
    if not features.prioritized_list and _has_alternatives(template):
        return ClaimRejection(
            "template includes a prioritized list of subrequests, but the feature is disabled"
        )
    template_metadata = template.spec.metadata
    metadata = ObjectMeta(
        generate_name=generate_name(owner.metadata.name, entry_name),
        namespace=owner.metadata.namespace,
        labels=dict(template_metadata.labels),
        annotations={**template_metadata.annotations, POD_CLAIM_ANNOTATION: entry_name},
        owner_references=(controller_reference(owner),),
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def generate_name(owner_name: str, entry_name: str) -> str:
    """Return the generateName of a claim.

    If it is too long, both parts are cut by the same factor, so that some of each remains; then
    nothing separates them from the server's suffix.
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
    """Return the claim that was generated for an entry before, even if the status does not list it.

    It is found by its owner and its annotation; of several, the first by name.
    """
    found = [claim for claim in claims if _is_made_for(claim, owner, entry_name)]
    return min(found, key=lambda claim: claim.metadata.name, default=None)


def pod_claim_statuses(pod: Pod, made: Mapping[str, str]) -> tuple[PodResourceClaimStatus, ...]:
    """Return the entries to apply to the pod's status: new claims, and those it had."""
    return tuple(
        PodResourceClaimStatus(name=name, resource_claim_name=claim)
        for name, claim in _merged(pod, made)
    )


def group_claim_statuses(
    group: PodGroup, made: Mapping[str, str]
) -> tuple[PodGroupResourceClaimStatus, ...]:
    """Return the entries to apply to the group's status: new claims, and those it had."""
    return tuple(
        PodGroupResourceClaimStatus(name=name, resource_claim_name=claim)
        for name, claim in _merged(group, made)
    )


def _merged(owner: Owner, made: Mapping[str, str]) -> list[tuple[str, str]]:
    # Entries without a name are not ours: their field manager keeps them.
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


def _requests_admin_access(template: ResourceClaimTemplate) -> bool:
    requests = template.spec.spec.devices.requests or ()
    return any(request.exactly and request.exactly.admin_access for request in requests)


def _has_alternatives(template: ResourceClaimTemplate) -> bool:
    return any(request.first_available for request in template.spec.spec.devices.requests or ())
