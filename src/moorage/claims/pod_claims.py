"""The claims of a pod or of a PodGroup: which it uses, and which were created for it.

# entry: one of spec.resourceClaims; it names a claim, or a template to create one from
# owner: the pod or PodGroup that a claim was created for
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from moorage.api.core.pod import API_VERSION as POD_VERSION
from moorage.api.core.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from moorage.api.gates import Gate, Gates
from moorage.api.meta import ObjectMeta, OwnerReference, namespaced_name
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.scheduling import API_VERSION as GROUP_VERSION
from moorage.api.scheduling import GROUP as SCHEDULING
from moorage.api.scheduling import PodGroup, PodGroupResourceClaim, PodGroupResourceClaimStatus

Owner = Pod | PodGroup

POD = "Pod"
POD_GROUP = "PodGroup"

ClaimEntry = PodResourceClaim | PodGroupResourceClaim
EntryStatus = PodResourceClaimStatus | PodGroupResourceClaimStatus

UNSUPPORTED = "none of the supported fields are set"

# Finds a claim by namespace and name.
FindClaim = Callable[[str, str], ResourceClaim | None]


class ClaimFeatures(NamedTuple):
    """The feature gates of this package; those of allocation are the allocator's."""

    admin_access: bool = False
    prioritized_list: bool = False
    group_claims: bool = False

    @classmethod
    def of(cls, gates: Gates) -> ClaimFeatures:
        """Return the features that the gates enable."""
        return cls(
            admin_access=gates.enabled(Gate.DRA_ADMIN_ACCESS),
            prioritized_list=gates.enabled(Gate.DRA_PRIORITIZED_LIST),
            group_claims=gates.enabled(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS),
        )


ALL_FEATURES = ClaimFeatures(*(True for _ in ClaimFeatures._fields))


class ClaimRejection(Struct, frozen=True):
    """The expected "no": a claim cannot be used, or an object is over quota, for a reason."""

    reason: str


# --- references -----------------------------------------------------------------------------------


class Named(Struct, frozen=True):
    """The claim with this name; one that was generated from a template must be the owner's."""

    name: str
    is_generated: bool


class NotNeeded(Struct, frozen=True):
    """No claim was generated, on purpose; the entry can be ignored."""


class NotCreated(Struct, frozen=True):
    """The claim was not generated yet from its template."""

    reason: str


class Unsupported(Struct, frozen=True):
    """The entry has none of the supported fields."""

    reason: str


ClaimReference = Named | NotNeeded | NotCreated | Unsupported


def reference_of(owner: Owner, entry: ClaimEntry) -> ClaimReference:
    """Return the claim that an entry of a pod or group refers to."""
    if entry.resource_claim_name is not None:
        return Named(entry.resource_claim_name, is_generated=False)
    if entry.resource_claim_template_name is None:
        name = f'"{entry.name}"' if isinstance(owner, Pod) else entry.name
        return Unsupported(f"{_describe(owner)}, spec.resourceClaim {name}: {UNSUPPORTED}")
    for status in statuses_of(owner):
        if status.name == entry.name:
            generated = status.resource_claim_name
            return NotNeeded() if generated is None else Named(generated, is_generated=True)
    return NotCreated(f"{_describe(owner)}: ResourceClaim not created yet")


def statuses_of(owner: Owner) -> tuple[EntryStatus, ...]:
    """Return the status of the claims generated for the entries of a pod or group."""
    return owner.status.resource_claim_statuses or ()


def claim_names(owner: Owner) -> tuple[str, ...]:
    """Return the distinct names of the claims that a pod or group refers to."""
    entries = owner.spec.resource_claims
    if not entries:
        return ()
    found = [_name_of(owner, entry) for entry in entries]
    names = {name for name in found if name is not None}
    return tuple(sorted(names) if len(names) > 1 else names)


def _name_of(owner: Owner, entry: ClaimEntry) -> str | None:
    """Return the name of the claim that an entry refers to, as in its reference; None: none."""
    if entry.resource_claim_name is not None or entry.resource_claim_template_name is None:
        return entry.resource_claim_name
    for status in owner.status.resource_claim_statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name
    return None


def claims_to_release(pod: Pod) -> tuple[str, ...]:
    """Return the names of all claims to review once the pod is done.

    This includes the special claim for extended resources, whatever the gates are now.
    """
    special = pod.status.extended_resource_claim_status
    return (*claim_names(pod), *(() if special is None else (special.resource_claim_name,)))


def _describe(owner: Owner) -> str:
    key = namespaced_name(owner.metadata)
    return f"PodGroup {key}" if isinstance(owner, PodGroup) else f'pod "{key}"'


# --- owners ---------------------------------------------------------------------------------------


def controller_reference(owner: Owner) -> OwnerReference:
    """Return the controller reference to an owner."""
    is_pod = isinstance(owner, Pod)
    return OwnerReference(
        api_version=POD_VERSION if is_pod else GROUP_VERSION,
        kind=POD if is_pod else POD_GROUP,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the controller of an object."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None


def is_controlled_by(claim: ResourceClaim, owner: Owner) -> bool:
    """Return whether this pod or group, by uid, controls the claim."""
    controller = controller_of(claim.metadata)
    return controller is not None and controller.uid == owner.metadata.uid


def is_pod(owner: OwnerReference) -> bool:
    """Return whether a reference is to a pod."""
    return owner.kind == POD and owner.api_version == POD_VERSION


def is_group(owner: OwnerReference) -> bool:
    """Return whether a reference is to a PodGroup, of any version."""
    return owner.kind == POD_GROUP and owner.api_version.startswith(f"{SCHEDULING}/")


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a claim was created for, if any."""
    owners = claim.metadata.owner_references
    return next((owner for owner in owners if owner.controller and is_pod(owner)), None)


def group_name(pod: Pod) -> str | None:
    """Return the name of the pod's PodGroup."""
    group = pod.spec.scheduling_group
    return None if group is None else group.pod_group_name


def check_made_for_pod(
    claim: ResourceClaim, pod: Pod, features: ClaimFeatures
) -> ClaimRejection | None:
    """Reject a claim that was created neither for the pod nor, if enabled, for its group."""
    claim_key, pod_key = namespaced_name(claim.metadata), namespaced_name(pod.metadata)
    if claim.metadata.namespace != pod.metadata.namespace:
        return ClaimRejection(
            f"ResourceClaim {claim_key} is not in the same namespace as Pod {pod_key}"
        )
    if is_controlled_by(claim, pod):
        return None
    group = group_name(pod) if features.group_claims else None
    if group is None:
        owners = "Pod is not owner"
    elif _is_of_group(claim, group):
        return None
    else:
        owners = f"neither Pod nor PodGroup {group} is the owner"
    return ClaimRejection(f"ResourceClaim {claim_key} was not created for Pod {pod_key} ({owners})")


def check_made_for_group(claim: ResourceClaim, group: PodGroup) -> ClaimRejection | None:
    """Reject a claim that was not created for the group."""
    claim_key, group_key = namespaced_name(claim.metadata), namespaced_name(group.metadata)
    if claim.metadata.namespace != group.metadata.namespace:
        return ClaimRejection(
            f"ResourceClaim {claim_key} is not in the same namespace as PodGroup {group_key}"
        )
    if is_controlled_by(claim, group):
        return None
    return ClaimRejection(
        f"ResourceClaim {claim_key} was not created for PodGroup {group_key} "
        "(PodGroup is not owner)"
    )


def _is_of_group(claim: ResourceClaim, name: str) -> bool:
    # By name, because a pod does not have the uid of its group.
    controller = controller_of(claim.metadata)
    return controller is not None and controller.name == name and is_group(controller)


# --- uses -----------------------------------------------------------------------------------------


class ClaimUse(Struct, frozen=True):
    """An entry of the pod and its claim."""

    entry: PodResourceClaim
    claim: ResourceClaim


def uses_of(
    pod: Pod, find: FindClaim, features: ClaimFeatures
) -> tuple[ClaimUse, ...] | ClaimRejection:
    """Return the claims that the pod uses, in order, or why the first of them cannot be used."""
    uses = []
    for entry in pod.spec.resource_claims:
        match _use(pod, entry, find, features):
            case ClaimUse() as use:
                uses.append(use)
            case ClaimRejection() as rejected:
                return rejected
            case None:
                pass
    return tuple(uses)


def _use(
    pod: Pod, entry: PodResourceClaim, find: FindClaim, features: ClaimFeatures
) -> ClaimUse | ClaimRejection | None:
    reference = reference_of(pod, entry)
    if isinstance(reference, NotNeeded):
        return None
    if not isinstance(reference, Named):
        return ClaimRejection(reference.reason)
    namespace = pod.metadata.namespace
    claim = find(namespace, reference.name)
    if claim is None:
        return ClaimRejection(f'could not find ResourceClaim "{namespace}/{reference.name}"')
    if claim.metadata.deletion_timestamp is not None:
        return ClaimRejection(f'resourceclaim "{claim.metadata.name}" is being deleted')
    if reference.is_generated and (rejected := check_made_for_pod(claim, pod, features)):
        return rejected
    return ClaimUse(entry, claim)
